//! The settings of a run in a problem file.

use super::reader::{Fields, Node};
use crate::error::{Error, Result};
use crate::inference::config::{Config, Layer};
use crate::named::Named;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The settings of a run that a problem file has; by default none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileSettings {
    path: PathBuf,
    layer: Layer,
    /// The line of each of the layer's settings.
    lines: Vec<usize>,
}

impl FileSettings {
    pub(super) fn of(root: &Fields, path: &Path) -> Result<Self> {
        let mut found = Self { path: path.to_owned(), ..Self::default() };
        let Some(table) = root.table("inference")? else { return Ok(found) };
        for (name, node) in table.entries() {
            match name {
                "method" => found.layer.method = Some(named(&node)?),
                "profile" => found.layer.profile = Some(named(&node)?),
                _ => found.take(name, &node)?,
            }
        }
        // All are tried at once, so that a mistake is told with its line before anything begins.
        found.start(&Layer::default())?;
        Ok(found)
    }

    /// A setting, or a group of them.
    fn take(&mut self, key: &str, node: &Node) -> Result<()> {
        let value = match node.json()? {
            Value::Object(_) => {
                let group = node.table()?;
                return group
                    .entries()
                    .try_for_each(|(name, node)| self.take(&format!("{key}.{name}"), &node));
            }
            Value::String(text) => text,
            Value::Array(values) => {
                values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        };
        self.layer.set(key, value);
        self.lines.push(node.line());
        Ok(())
    }

    /// All settings, checked: the file's on top of its profile and method, then those of the caller, who may also choose
    /// another profile and method to start from.
    pub fn config(&self, caller: &Layer) -> Result<Config> {
        let mut config = self.start(caller)?;
        caller.apply(&mut config)?;
        config
            .check()
            .map_err(|error| if caller.sets(&error) { error } else { self.located(error) })?;
        Ok(config)
    }

    /// The file's settings on top of the profile and the method that `caller` or the file chooses.
    fn start(&self, caller: &Layer) -> Result<Config> {
        let method = caller.method.or(self.layer.method).unwrap_or_default();
        let profile = caller.profile.or(self.layer.profile).unwrap_or_default();
        let mut config = Config::new(profile, method);
        for (key, value, line) in self.settings() {
            config.set(key, value).map_err(|error| self.told(line, key, error))?;
        }
        Ok(config)
    }

    fn settings(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        let settings = self.layer.settings.iter().zip(&self.lines);
        settings.map(|((key, value), line)| (&**key, &**value, *line))
    }

    /// The error about a setting, with its line if it is in the file.
    fn located(&self, error: Error) -> Error {
        let Error::Setting { name, .. } = &error else { return error };
        match self.settings().find(|(key, ..)| key == name) {
            Some((key, _, line)) => self.told(line, key, error),
            None => error,
        }
    }

    fn told(&self, line: usize, key: &str, error: Error) -> Error {
        let field = format!("inference.{key}");
        Error::SettingInFile { path: self.path.clone(), line, field, error: Box::new(error) }
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
