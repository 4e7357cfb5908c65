//! `didyma settings`: every setting by name; every field of a problem file.

use crate::ExitCode;
use crate::arguments::ConfigArgs;
use crate::output::show;
use clap::Parser;
use didyma::problem_file::{FIELDS, schema};
use serde::Serialize;
use std::fmt;

/// List every setting of a profile, with its value and what it is.
#[derive(Debug, Parser)]
pub struct SettingsArgs {
    #[command(flatten)]
    pub config: ConfigArgs,

    /// List the fields of a problem file instead.
    #[arg(long)]
    pub problem: bool,

    /// Print the JSON schema of problem files, for editors that check and complete.
    #[arg(long, requires = "problem", conflicts_with = "json")]
    pub schema: bool,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &SettingsArgs) -> anyhow::Result<ExitCode> {
    show(&settings(args)?, args.json)
}

/// A list, as it is asked for.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Listed {
    /// All settings of a profile and method.
    Settings { settings: Vec<Line> },
    /// All fields of a problem file.
    Fields { fields: Vec<FieldLine> },
    /// The JSON schema of a problem file.
    Schema(serde_json::Value),
}

#[derive(Debug, Serialize)]
struct Line {
    key: &'static str,
    value: String,
    about: &'static str,
}

#[derive(Debug, Serialize)]
struct FieldLine {
    field: &'static str,
    takes: &'static str,
    default: &'static str,
    about: &'static str,
}

fn settings(args: &SettingsArgs) -> anyhow::Result<Listed> {
    let field = |field: &didyma::problem_file::Field| FieldLine {
        field: field.path,
        takes: field.takes.words(),
        default: field.default,
        about: field.about,
    };
    let line = |(key, value, about)| Line { key, value, about };
    Ok(match (args.problem, args.schema) {
        (_, true) => Listed::Schema(schema()),
        (true, false) => Listed::Fields { fields: FIELDS.iter().map(field).collect() },
        _ => {
            let all = args.config.config(None, None)?.list();
            Listed::Settings { settings: all.into_iter().map(line).collect() }
        }
    })
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema(schema) => write!(f, "{schema:#}"),
            Self::Settings { settings } => {
                write!(
                    f,
                    "{:<24}  {:<12}  what it is (change it with --set KEY=VALUE)",
                    "setting", "value"
                )?;
                settings.iter().try_for_each(|Line { key, value, about }| {
                    write!(f, "\n{key:<24}  {value:<12}  {about}")
                })
            }
            Self::Fields { fields } => {
                write!(f, "{:<27}  {:<23}  what it is", "field", "takes")?;
                for FieldLine { field, takes, default, about } in fields {
                    write!(f, "\n{field:<27}  {takes:<23}  {about}")?;
                    if !default.is_empty() {
                        write!(f, " (default: {default})")?;
                    }
                }
                write!(
                    f,
                    "\n{:<27}  {:<23}  any setting that `didyma settings` lists, as rounds = 5 or train.batch = 200",
                    "inference.…", "its value"
                )
            }
        }
    }
}
