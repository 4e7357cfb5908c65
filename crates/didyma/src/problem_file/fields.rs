//! Every field of a problem file: one list for messages, for `didyma settings --problem` and for the JSON schema.

use serde_json::{Value, json};

/// A field of a problem file.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name with those of the tables around it; NAME stands for one of the user's choice.
    pub path: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What it is without a value; empty if it has to be given or may be missing.
    pub default: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// What a field takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Text.
    Text,
    /// A number.
    Number,
    /// A whole number of at least this.
    Whole(u64),
    /// true or false.
    Flag,
    /// A list of two numbers.
    Pair,
    /// A list of numbers.
    Numbers,
    /// A list of texts.
    Texts,
    /// A table of fields of the user's choice.
    Table,
}

impl Takes {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Text => "a text in quotes",
            Self::Number => "a number",
            Self::Whole(_) => "a whole number",
            Self::Flag => "true or false",
            Self::Pair => "two numbers in brackets",
            Self::Numbers => "numbers in brackets",
            Self::Texts => "texts in brackets",
            Self::Table => "a table",
        }
    }

    pub(super) fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Number => json!({"type": "number"}),
            Self::Whole(least) => json!({"type": "integer", "minimum": least}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Pair => {
                json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2})
            }
            Self::Numbers => json!({"type": "array", "items": {"type": "number"}, "minItems": 1}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            Self::Table => json!({"type": "object"}),
        }
    }
}

const fn field(
    path: &'static str,
    takes: Takes,
    default: &'static str,
    about: &'static str,
) -> Field {
    Field { path, takes, default, about }
}

/// Every field, those of `inference` excepted: they are the settings of a run.
pub const FIELDS: &[Field] = &[
    field("name", Takes::Text, "that of the file, or of its folder", "what the problem is called"),
    field("about", Takes::Text, "", "the problem in one line"),
    field(
        "parameters.NAME.uniform",
        Takes::Pair,
        "",
        "prior: uniform from the first number to the second",
    ),
    field("parameters.NAME.normal", Takes::Pair, "", "prior: normal, mean and standard deviation"),
    field(
        "parameters.NAME.log_normal",
        Takes::Pair,
        "",
        "prior: log-normal, mean and standard deviation of the natural logarithm",
    ),
    field("parameters.NAME.low", Takes::Number, "", "cuts a normal or log-normal prior off below"),
    field("parameters.NAME.high", Takes::Number, "", "cuts it off above"),
    field(
        "parameters.NAME.label",
        Takes::Text,
        "its name",
        "what the parameter is called in figures",
    ),
    field("parameters.NAME.truth", Takes::Number, "", "its true value, if the data are made up"),
    field("observation.x", Takes::Numbers, "", "the observed summaries"),
    field(
        "observation.csv",
        Takes::Text,
        "",
        "or a CSV file with one row of them, with or without a header of names",
    ),
    field(
        "observation.names",
        Takes::Texts,
        "x1, x2, … or the header",
        "names of the summaries, in the simulator's order",
    ),
    field(
        "simulator.command",
        Takes::Texts,
        "",
        "a worker: program and arguments; it answers JSON lines, many simulations by one process",
    ),
    field(
        "simulator.run",
        Takes::Texts,
        "",
        "or a program that is started for each simulation; {NAME}, {seed}, {input}, {output} are filled in",
    ),
    field("simulator.umbridge.url", Takes::Text, "", "or an UM-Bridge server, as http://host:4242"),
    field("simulator.umbridge.model", Takes::Text, "forward", "the name of its model"),
    field("simulator.umbridge.config", Takes::Table, "{}", "what the model is configured with"),
    field("simulator.umbridge.seed", Takes::Text, "seed", "the key of config that takes the seed"),
    field(
        "simulator.umbridge.retries",
        Takes::Whole(0),
        "7",
        "times to try again when the server cannot be reached or is busy; 7 take 20 s",
    ),
    field("simulator.task", Takes::Text, "", "or the simulator of a built-in task"),
    field("simulator.workers", Takes::Whole(1), "one a thread", "simulations under way at once"),
    field("simulator.time_limit", Takes::Number, "600", "seconds that a simulation may take"),
    field(
        "simulator.start_limit",
        Takes::Number,
        "60",
        "seconds more for the first answer of a worker, which has to start",
    ),
    field("simulator.batch", Takes::Whole(1), "1", "simulations in one line to a worker"),
    field(
        "simulator.stream",
        Takes::Flag,
        "false",
        "give workers the 256-bit state of a built-in task's random stream as well",
    ),
    field(
        "simulator.launcher",
        Takes::Texts,
        "",
        "words before the command, as [\"srun\", \"-n1\"]",
    ),
    field("inference.method", Takes::Text, "tgrr", "name of the method"),
    field("inference.profile", Takes::Text, "default", "name of the profile"),
];

/// The names that a table may have.
pub(super) fn names_in(table: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for field in FIELDS {
        let within = match table {
            "" => Some(field.path),
            table => field.path.strip_prefix(table).and_then(|rest| rest.strip_prefix('.')),
        };
        let name = within.and_then(|rest| rest.split('.').next());
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::config::{Algorithm, Profile};
    use crate::named::Named;

    /// Defaults are chosen in one place, and the list of fields repeats them.
    #[test]
    fn the_defaults_are_those_of_the_library() {
        let default = |path| FIELDS.iter().find(|field| field.path == path).map(|f| f.default);
        assert_eq!(default("inference.method"), Some(Algorithm::default().name()));
        assert_eq!(default("inference.profile"), Some(Profile::default().name()));
    }
}
