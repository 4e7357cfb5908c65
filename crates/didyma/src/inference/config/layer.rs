//! Settings in layers: a problem file's, then a caller's.

use super::{Algorithm, Config, Profile};
use crate::error::{Error, Result};

/// Settings that somebody chose: a profile and a method to start from, and others by name.
///
/// ```
/// use didyma::config::{Algorithm, Layer};
/// use didyma::problem_file::FileSettings;
/// let mut call = Layer { method: Some(Algorithm::Npe), ..Layer::default() };
/// call.set("rounds", 3).set("train.batch", 200);
/// let config = FileSettings::default().config(&call)?; // no file, then the call
/// assert_eq!((config.method_name(), config.rounds, config.train.batch), ("npe", 3, 200));
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// The method, if it was chosen.
    pub method: Option<Algorithm>,
    /// The profile, if it was chosen.
    pub profile: Option<Profile>,
    /// Other settings in order: names and values.
    pub settings: Vec<(String, String)>,
}

impl Layer {
    /// Sets one more by its name.
    pub fn set(&mut self, key: impl Into<String>, value: impl ToString) -> &mut Self {
        self.settings.push((key.into(), value.to_string()));
        self
    }

    /// Sets one more where a value was given.
    pub fn set_some(&mut self, key: &str, value: Option<impl ToString>) -> &mut Self {
        if let Some(value) = value {
            self.set(key, value);
        }
        self
    }

    /// True if an error is about a setting of this layer.
    pub fn sets(&self, error: &Error) -> bool {
        match error {
            Error::Setting { name, .. } => self.settings.iter().any(|(key, _)| key == name),
            _ => false,
        }
    }

    /// Changes the settings of `config`, one after another.
    pub fn apply(&self, config: &mut Config) -> Result<()> {
        self.settings.iter().try_for_each(|(key, value)| config.set(key, value))
    }
}
