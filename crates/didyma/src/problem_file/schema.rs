//! The JSON schema of a problem file, for editors that check and complete.

use super::fields::FIELDS;
use crate::inference::config::{Algorithm, Config, Profile};
use crate::named::Named;
use crate::problem::tasks::Task;
use serde_json::{Map, Value, json};

/// The schema, made from the same lists as the reader.
///
/// ```
/// let schema = didyma::problem_file::schema();
/// let simulator = &schema["properties"]["simulator"]["properties"];
/// assert_eq!(simulator["time_limit"]["type"], "number");
/// ```
pub fn schema() -> Value {
    let mut root = object("A problem for Didyma: parameters, observation, simulator.");
    for field in FIELDS {
        let mut described = field.takes.schema();
        let default = match field.default {
            "" => String::new(),
            default => format!(" (default: {default})"),
        };
        described["description"] = json!(format!("{}{default}", field.about));
        place(&mut root, &field.path.split('.').collect::<Vec<_>>(), described);
    }
    let names = |all: Vec<&str>| json!({"type": "string", "enum": all});
    let of = &mut root["properties"]["inference"]["properties"];
    of["method"]["enum"] = json!(Algorithm::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    of["profile"]["enum"] = json!(Profile::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    root["properties"]["simulator"]["properties"]["task"] = names(Task::NAMES.to_vec());
    // What a setting is now tells what it takes.
    let config = Config::default();
    let all = config.to_json();
    for (key, _, about) in config.list() {
        let present = all.pointer(&format!("/{}", key.replace('.', "/"))).unwrap_or(&Value::Null);
        let described = match (key, present) {
            ("profile", _) => continue,
            (_, Value::Bool(_)) => json!({"type": "boolean", "description": about}),
            (_, Value::Number(n)) if n.is_f64() => json!({"type": "number", "description": about}),
            (_, Value::Number(_)) => json!({"type": "integer", "description": about}),
            _ => json!({"type": ["string", "number", "array"], "description": about}),
        };
        let path: Vec<&str> = ["inference"].into_iter().chain(key.split('.')).collect();
        place(&mut root, &path, described);
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["required"] = json!(["simulator"]);
    root
}

fn object(about: &str) -> Value {
    json!({"type": "object", "description": about, "properties": {}, "additionalProperties": false})
}

/// Puts the description of a field where its path says; NAME is any name.
fn place(table: &mut Value, path: &[&str], described: Value) {
    let Some((name, rest)) = path.split_first() else { return };
    let inner = match *name {
        "NAME" => &mut table["additionalProperties"],
        name => &mut table["properties"][name],
    };
    match rest {
        [] => *inner = described,
        rest => {
            if !inner.get("properties").is_some_and(Value::is_object) {
                *inner = object("");
                inner.as_object_mut().unwrap_or(&mut Map::new()).remove("description");
            }
            place(inner, rest, described);
        }
    }
}
