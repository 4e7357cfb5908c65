//! Every setting of a run, by name; two profiles that set them all.

mod check;
mod check_inner;
mod choices;
mod layer;
mod list;
mod parts;
mod profiles;

pub use crate::training::{Inner, LevelSource, Schedule, Split, Start, TrainConfig, Validation};
pub use choices::{Algorithm, DensityKind, Meaning, Profile, Proposal, Scoring};
pub use layer::Layer;
pub use parts::{Architecture, EnsembleConfig, FailureConfig, ScoreArchitecture, Truncation};

use crate::density::DensityConfig;
use crate::density::coordinates::CoordinateConfig;
use crate::error::{Error, Result};
use crate::named::Named;
use crate::training::estimator::{Method, Settings};
use list::SETTINGS;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Every setting of a run.
///
/// ```
/// use didyma::config::{Config, Profile};
/// use didyma::estimator::Method;
/// let mut config = Config::new(Profile::Paper, Method::Tgrr);
/// config.set("train.batch", "200")?;
/// config.set("estimator.coupling", "planted")?; // as in the authors' code
/// assert!(config.set("train.batch", "many").is_err());
/// config.check()?;
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the settings started from.
    pub profile: Profile,
    /// Rounds.
    pub rounds: u32,
    /// Simulations of a round.
    pub simulations: usize,
    /// Where later rounds propose parameters from.
    pub proposal: Proposal,
    /// Share of later rounds' parameters that come from the prior all the same.
    #[serde(default)]
    pub prior_share: f64,
    /// How much wider than q(· | x_o) they do it, if from there: the standard deviation of the flow's base.
    pub width: f64,
    /// Where they do it, if from a part of the prior.
    pub truncation: Truncation,
    /// What is made of simulations that fail.
    #[serde(default = "FailureConfig::before")]
    pub failures: FailureConfig,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Posterior samples that a run ends with.
    pub samples: usize,
    /// Which rounds are scored, where the truth is known.
    pub scores: Scoring,
    /// The estimator of rounds 2 and later.
    pub estimator: Settings,
    /// Members of the mixture that q(θ | x) is.
    #[serde(default)]
    pub ensemble: EnsembleConfig,
    /// Form of a member: a flow or a score.
    pub density: DensityKind,
    /// The shape of the flow, if it is one.
    pub flow: Architecture,
    /// The shape of the score network, if it is one.
    pub score: ScoreArchitecture,
    /// The coordinates that it works in.
    pub coordinates: CoordinateConfig,
    /// How a round is trained.
    pub train: TrainConfig,
}

impl Config {
    /// The settings of a profile.
    pub fn new(profile: Profile, algorithm: impl Into<Algorithm>) -> Self {
        match profile {
            Profile::Default => Self::best(algorithm.into()),
            Profile::Paper => Self::paper(algorithm.into()),
        }
    }

    /// What users call it.
    pub fn algorithm(&self) -> Algorithm {
        match (self.density, self.estimator.method, self.proposal) {
            (DensityKind::Score, ..) => Algorithm::Snse,
            (_, Method::Likelihood, Proposal::Truncated) => Algorithm::Tsnpe,
            (_, method, _) => method.into(),
        }
    }

    /// The shape of the model for θ and x of these dimensions.
    pub fn shape(&self, theta_dim: usize, x_dim: usize) -> DensityConfig {
        match self.density {
            DensityKind::Flow => DensityConfig::Flow(self.flow.flow(theta_dim, x_dim)),
            DensityKind::Score => DensityConfig::Score(self.score.score(theta_dim, x_dim)),
        }
    }

    /// True if rounds are trained with the posteriors of all rounds before.
    pub(crate) fn needs_posteriors(&self) -> bool {
        self.train.inner.needs_posteriors() && self.estimator.method != Method::Likelihood
    }

    /// How many of a later round's parameters come from the prior all the same.
    pub(crate) fn draws_of_prior(&self, simulations: usize) -> usize {
        (self.prior_share * simulations as f64).round() as usize
    }

    /// Its name.
    pub fn method_name(&self) -> &'static str {
        self.algorithm().name()
    }

    /// Changes one setting by its name, as `train.batch`.
    pub fn set(&mut self, key: &str, text: &str) -> Result<()> {
        if key == "profile" {
            return Err(Error::ProfileSetting { value: text.to_owned() });
        }
        if !SETTINGS.iter().any(|(known, _)| *known == key) {
            return Err(Error::UnknownSetting { key: key.to_owned(), similar: similar(key) });
        }
        let with = |value: Value| {
            let mut all = self.to_json();
            *all.pointer_mut(&pointer(key)).expect("every listed setting is there") = value;
            serde_json::from_value::<Self>(all)
        };
        let word = Value::String(text.to_owned());
        let present = self.to_json().pointer(&pointer(key)).cloned().unwrap_or_default();
        let takes_words = present.is_string();
        let value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_) if text == "none" && !takes_words => Value::Null,
            Err(_) => word.clone(),
        };
        // A number may be the text of a setting that takes words.
        *self =
            with(value).or_else(|problem| with(word).map_err(|_| problem)).map_err(|problem| {
                let fault = match &present {
                    Value::Bool(_) => "give true or false".to_owned(),
                    Value::Number(n) if n.is_f64() => "give a number".to_owned(),
                    Value::Number(_) => "give a whole number".to_owned(),
                    Value::Null => "give a number, or none".to_owned(),
                    _ => problem.to_string(),
                };
                let (key, value) = (key.to_owned(), text.to_owned());
                Error::BadSetting { key, value, fault }
            })?;
        Ok(())
    }

    /// All settings in one object, as files hold them.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("numbers and strings")
    }

    /// All settings by name, in order, with what they are.
    pub fn list(&self) -> Vec<(&'static str, String, &'static str)> {
        let all = self.to_json();
        let text = |key: &str| match all.pointer(&pointer(key)) {
            Some(Value::Null) => "none".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        SETTINGS.iter().map(|(key, about)| (*key, text(key), *about)).collect()
    }
}

impl Default for Config {
    /// The default method by the default profile.
    fn default() -> Self {
        Self::new(Profile::default(), Algorithm::default())
    }
}

/// The setting whose name is most like this one, if any is: nearly the same, or the same without its group.
fn similar(key: &str) -> Option<&'static str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let distance = |known: &&'static str| {
        strsim::osa_distance(known, key).min(strsim::osa_distance(&last(known), &last(key)))
    };
    let names = SETTINGS.iter().map(|(known, _)| *known);
    // A third of the letters may be wrong: two letters resemble everything.
    let most = (last(key).len() / 3).min(2);
    names.min_by_key(distance).filter(|known| distance(known) <= most)
}

/// Where a setting is in the JSON of all.
fn pointer(key: &str) -> String {
    format!("/{}", key.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_listed_and_every_listed_one_is_there() {
        for (_, profile) in Profile::ALL {
            let config = Config::new(*profile, Method::Tgrr);
            let mut names = Vec::new();
            let all = config.to_json();
            for (key, value) in all.as_object().unwrap() {
                match value.as_object() {
                    Some(group) => names.extend(group.keys().map(|k| format!("{key}.{k}"))),
                    None => names.push(key.clone()),
                }
            }
            let mut listed: Vec<_> = config.list().into_iter().map(|(key, ..)| key).collect();
            names.sort();
            listed.sort();
            assert_eq!(names, listed);
        }
    }

    #[test]
    fn every_setting_can_be_set_to_what_it_is() {
        for (_, profile) in Profile::ALL {
            for (name, algorithm) in Algorithm::ALL {
                let config = Config::new(*profile, *algorithm);
                config.check().unwrap();
                assert_eq!(config.method_name(), *name);
                let mut again = config.clone();
                for (key, value, _) in config.list().into_iter().skip(1) {
                    again.set(key, &value).unwrap_or_else(|e| panic!("{key}={value}: {e}"));
                }
                assert_eq!(again, config);
                let text = config.to_json().to_string();
                assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
            }
        }
    }

    /// A run goes on with what it began with.
    #[test]
    fn a_manifest_from_before_there_were_meanings_keeps_its_own() {
        let mut all = Config::new(Profile::Default, Method::Tgrr).to_json();
        all.as_object_mut().unwrap().remove("failures");
        let config: Config = serde_json::from_value(all).unwrap();
        assert_eq!(config.failures, FailureConfig { meaning: Meaning::Outcome, in_a_row: 0 });
    }

    /// A run goes on without the noise that it began without.
    #[test]
    fn a_manifest_from_before_there_was_noise_has_none() {
        let mut all = Config::new(Profile::Default, Method::Tgrr).to_json();
        all["train"].as_object_mut().unwrap().remove("noise").unwrap();
        let config: Config = serde_json::from_value(all).unwrap();
        assert_eq!(config.train.noise, 0.0);
    }

    #[test]
    fn noise_is_a_size_and_has_a_scale() {
        let mut config = Config::default();
        assert!(config.set("train.noise", "some").unwrap_err().to_string().contains("a number"));
        for noise in [-0.25, f64::NAN, f64::INFINITY] {
            config.train.noise = noise;
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains("train.noise") && error.contains("between 0 and 10"), "{error}");
        }
        config.set("train.noise", "0.25").unwrap();
        config.check().unwrap();
        let mut paper = Config::new(Profile::Paper, Method::Tgrr);
        paper.train.noise = 0.25;
        assert!(paper.check().unwrap_err().to_string().contains("coordinates.x"));
    }

    #[test]
    fn bad_settings_are_named() {
        let mut config = Config::new(Profile::Default, Method::Tgrr);
        for (key, value, told) in [
            ("train.batches", "10", "list of settings"),
            ("train/batch", "10", "list of settings"),
            ("layers", "10", "did you mean flow.layers?"),
            ("train.bacth", "10", "did you mean train.batch?"),
            ("train.batch", "1.5", "give a whole number"),
            ("train.rate", "fast", "give a number"),
            ("train.clip", "high", "give a number"),
            ("profile", "paper", "chosen as the profile"),
            ("train", "10", "list of settings"),
            ("train.batch", "-1", "train.batch"),
            ("train.split", "half", "fixed, newest, pooled"),
            ("failures.meaning", "fatal", "missing, outcome"),
            ("failures.in_a_row", "none", "give a whole number"),
            ("estimator.tails", "scaled much", "no number"),
        ] {
            let error = config.set(key, value).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        for early in ["0", "0.005", "1.5"] {
            config.set("train.early", early).unwrap();
            assert!(config.check().unwrap_err().to_string().contains("train.early"));
        }
        config.set("train.early", "0.5").unwrap();
        let mut carried = Config::new(Profile::Paper, Method::Tgrr);
        carried.set("coordinates.relevance", "true").unwrap();
        assert!(carried.check().unwrap_err().to_string().contains("train.start"));
        config.set("flow.layers", "0").unwrap();
        assert!(config.check().unwrap_err().to_string().contains("flow.layers"));
        config.set("flow.layers", "6").unwrap();
        config.set("train.inner", "batch").unwrap();
        config.set("failures.meaning", "outcome").unwrap();
        assert!(config.check().unwrap_err().to_string().contains("failures.meaning"));
        config.set("train.inner", "pool").unwrap();
        config.set("estimator.method", "npe").unwrap();
        assert!(config.check().unwrap_err().to_string().contains("proposal"));
        config.set("proposal", "truncated").unwrap();
        config.set("truncation.share", "0.5").unwrap();
        assert!(config.check().unwrap_err().to_string().contains("truncation.share"));
        config.set("proposal", "prior").unwrap();
        config.set("truncation.share", "0.01").unwrap();
        config.set("estimator.tails", "0.5, 0.25").unwrap();
        config.set("train.batch", "0").unwrap();
        assert!(config.check().unwrap_err().to_string().contains("train.batch"));
    }
}
