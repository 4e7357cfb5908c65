//! The settings of a run in a problem file.

use super::reader::{Fields, Node};
use crate::error::{Error, Result};
use crate::inference::config::{Algorithm, Config, Profile};
use crate::named::Named;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The settings of a run that a problem file has.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSettings {
    path: PathBuf,
    method: Option<Algorithm>,
    profile: Option<Profile>,
    /// Name, value and line of each other setting.
    set: Vec<(String, String, usize)>,
}

impl FileSettings {
    pub(super) fn of(root: &Fields, path: &Path) -> Result<Self> {
        let mut found =
            Self { path: path.to_owned(), method: None, profile: None, set: Vec::new() };
        let Some(table) = root.table("inference")? else { return Ok(found) };
        for name in table.names() {
            let Some(node) = table.get(name) else { continue };
            match name {
                "method" => found.method = Some(named(&node)?),
                "profile" => found.profile = Some(named(&node)?),
                _ => found.take(name, &node)?,
            }
        }
        // All are tried at once, so that a mistake is told with its line before anything begins.
        found.config(None, None)?;
        Ok(found)
    }

    /// A setting, or a group of them.
    fn take(&mut self, key: &str, node: &Node) -> Result<()> {
        let value = match node.json()? {
            Value::Object(_) => {
                let group = node.table()?;
                let mut inner = group.names().filter_map(|name| Some((name, group.get(name)?)));
                return inner
                    .try_for_each(|(name, node)| self.take(&format!("{key}.{name}"), &node));
            }
            Value::String(text) => text,
            Value::Array(values) => {
                values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        };
        self.set.push((key.to_owned(), value, node.line()));
        Ok(())
    }

    /// The settings of the file, starting from this profile and method rather than the file's if they are given.
    pub fn config(&self, profile: Option<Profile>, method: Option<Algorithm>) -> Result<Config> {
        let method = method.or(self.method).unwrap_or(Algorithm::Tsnpe);
        let profile = profile.or(self.profile).unwrap_or(Profile::Default);
        let mut config = Config::new(profile, method);
        for (key, value, line) in &self.set {
            config.set(key, value).map_err(|error| self.told(*line, key, &error))?;
        }
        Ok(config)
    }

    /// The error about a setting, with its line if it is in the file.
    pub fn located(&self, error: Error) -> Error {
        let Error::Setting { name, .. } = &error else { return error };
        match self.set.iter().find(|(key, ..)| key == name) {
            Some((key, _, line)) => self.told(*line, key, &error),
            None => error,
        }
    }

    fn told(&self, line: usize, key: &str, error: &Error) -> Error {
        let field = format!("inference.{key}");
        let problem = format!("cannot be used: {error}");
        Error::ProblemFile { path: self.path.clone(), line, field, problem }
    }
}

/// One of the names of a choice.
fn named<T: Named + Copy>(node: &Node) -> Result<T> {
    let name = node.text()?;
    T::named(&name).ok_or_else(|| {
        let all: Vec<&str> = T::ALL.iter().map(|(name, _)| *name).collect();
        node.error(format!("is {name}: give one of {}", all.join(", ")))
    })
}
