//! Every setting of a run, by name; two profiles that set them all.

use crate::coordinates::{CoordinateConfig, Scale, Space};
use crate::error::{Error, Result};
use crate::estimator::{
    Blocks, Coupling, Estimator, Levels, Method, Named, Settings, Tails, serde_by_name,
};
use crate::flow::FlowConfig;
use crate::train::{AdamConfig, Decay};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A set of choices for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The best posterior per simulation and per second that we know of: see `docs/choices.md`.
    Default,
    /// The paper's protocol as printed.
    Paper,
}

/// Where the inner samples of a step come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// All training rows.
    Pool,
    /// The rows of the batch.
    Batch,
}

/// Which rows are held out for validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The same share of every round, for the whole run: no row is ever on both sides.
    Fixed,
    /// A share of the newest round, anew each round: the paper as printed.
    Newest,
    /// As many rows, anew each round from all rounds: the authors' code.
    Pooled,
}

/// How the validation loss is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// By the atomic loss with atoms fixed for the round: the same random numbers for every epoch.
    Fixed,
    /// By the training estimator with fresh levels and inner samples each time: the paper's way.
    Random,
}

/// How the learning rate goes over the epochs of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// It stays.
    Constant,
    /// It falls to 0 along half a cosine over the epochs of the round.
    Cosine,
}

/// Which rounds are compared with what is known of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoring {
    /// Every one.
    Every,
    /// The last.
    Last,
    /// None.
    None,
}

/// What later rounds start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The weights and the optimiser of the round before.
    Carried,
    /// The weights of the round before, with a new optimiser; a change of x's scale is folded into them.
    Warm,
    /// New weights.
    Fresh,
}

impl Named for Profile {
    const ALL: &'static [(&'static str, Self)] =
        &[("default", Self::Default), ("paper", Self::Paper)];
}
impl Named for Inner {
    const ALL: &'static [(&'static str, Self)] = &[("pool", Self::Pool), ("batch", Self::Batch)];
}
impl Named for Split {
    const ALL: &'static [(&'static str, Self)] =
        &[("fixed", Self::Fixed), ("newest", Self::Newest), ("pooled", Self::Pooled)];
}
impl Named for Validation {
    const ALL: &'static [(&'static str, Self)] =
        &[("fixed", Self::Fixed), ("random", Self::Random)];
}
impl Named for Schedule {
    const ALL: &'static [(&'static str, Self)] =
        &[("constant", Self::Constant), ("cosine", Self::Cosine)];
}
impl Named for Start {
    const ALL: &'static [(&'static str, Self)] =
        &[("carried", Self::Carried), ("warm", Self::Warm), ("fresh", Self::Fresh)];
}
impl Named for Scoring {
    const ALL: &'static [(&'static str, Self)] =
        &[("every", Self::Every), ("last", Self::Last), ("none", Self::None)];
}
serde_by_name!(Profile, Inner, Split, Validation, Schedule, Scoring, Start);

/// The shape of the flow, whatever the problem's dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Coupling layers, each followed by a linear layer.
    pub layers: usize,
    /// Residual blocks of a conditioner.
    pub blocks: usize,
    /// Units of a conditioner.
    pub units: usize,
    /// Bins of a spline.
    pub bins: usize,
    /// The splines act on \[−bound, bound\].
    pub bound: f64,
}

impl Architecture {
    /// The flow for θ and x of these dimensions.
    pub fn flow(&self, theta_dim: usize, x_dim: usize) -> FlowConfig {
        let Self { layers, blocks, units, bins, bound } = *self;
        FlowConfig { theta_dim, x_dim, layers, blocks, units, bins, bound }
    }
}

/// How a round is trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Outer samples of a step.
    pub batch: usize,
    /// Learning rate, at the start of a round.
    pub rate: f64,
    /// How it goes on.
    pub schedule: Schedule,
    /// Steps of a round, rounded up to whole epochs; none for no limit but `epochs`.
    pub steps: Option<u64>,
    /// Epochs of a round, at most.
    pub epochs: u32,
    /// Training of a round stops after this many epochs without a better validation loss.
    pub patience: u32,
    /// Share of rows held out.
    pub validation_share: f64,
    /// Which rows are held out.
    pub split: Split,
    /// How the validation loss is estimated.
    pub validation: Validation,
    /// Whether a round ends with the weights of its best epoch, or with the last.
    pub restore_best: bool,
    /// What later rounds start from.
    pub start: Start,
    /// Where inner samples come from.
    pub inner: Inner,
    /// Weight decay.
    pub decay: f64,
    /// Whether the decay is added to the gradient (Adam), or apart from it (AdamW).
    pub decay_coupled: bool,
    /// The gradient's norm is cut down to this; none for never.
    pub clip: Option<f64>,
}

impl TrainConfig {
    /// The optimiser.
    pub fn adam(&self) -> AdamConfig {
        let decay = if self.decay_coupled {
            Decay::Coupled(self.decay)
        } else {
            Decay::Decoupled(self.decay)
        };
        AdamConfig { decay, clip: self.clip.unwrap_or(f64::INFINITY), ..AdamConfig::default() }
    }
}

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
    /// How much wider than q(· | x_o) later rounds propose: the standard deviation of the flow's base.
    pub width: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Posterior samples that a run ends with.
    pub samples: usize,
    /// Which rounds are scored, where the truth is known.
    pub scores: Scoring,
    /// The estimator of rounds 2 and later.
    pub estimator: Settings,
    /// The shape of the flow.
    pub flow: Architecture,
    /// The coordinates that it works in.
    pub coordinates: CoordinateConfig,
    /// How a round is trained.
    pub train: TrainConfig,
}

impl Config {
    /// The settings of a profile.
    pub fn new(profile: Profile, method: Method) -> Self {
        match profile {
            Profile::Default => Self::best(method),
            Profile::Paper => Self::paper(method),
        }
    }

    /// The estimator's name as users say it: maximum likelihood on draws of the prior is neural posterior estimation.
    pub fn method_name(&self) -> &'static str {
        match self.estimator.method {
            Method::Likelihood => "npe",
            method => method.name(),
        }
    }

    fn paper(method: Method) -> Self {
        Self {
            profile: Profile::Paper,
            rounds: 20,
            simulations: 1000,
            width: 1.0,
            seed: 1,
            samples: 10_000,
            scores: Scoring::Every,
            estimator: Settings::paper(method),
            flow: Architecture { layers: 8, blocks: 2, units: 50, bins: 10, bound: 20.0 },
            coordinates: CoordinateConfig {
                space: Space::Bounded,
                whiten: false,
                x: Scale::None,
                bend: None,
                tolerance: 0.0,
            },
            train: TrainConfig {
                batch: 100,
                rate: 1e-4,
                schedule: Schedule::Constant,
                steps: None,
                epochs: 10_000,
                patience: 20,
                validation_share: 0.05,
                split: Split::Newest,
                validation: Validation::Random,
                restore_best: false,
                start: Start::Carried,
                inner: Inner::Pool,
                decay: 1e-4,
                decay_coupled: true,
                clip: None,
            },
        }
    }

    fn best(method: Method) -> Self {
        let paper = Self::paper(method);
        let estimator = Self::best_estimator(method);
        Self {
            profile: Profile::Default,
            rounds: 10,
            width: 1.25,
            estimator,
            flow: Architecture { layers: 6, blocks: 2, units: 32, bins: 10, bound: 5.0 },
            coordinates: CoordinateConfig {
                space: Space::Unbounded,
                whiten: true,
                x: Scale::Newest,
                bend: Some(3.0),
                tolerance: 0.5,
            },
            train: TrainConfig {
                batch: 50,
                rate: 1e-3,
                schedule: Schedule::Cosine,
                steps: Some(STEPS),
                epochs: 1000,
                patience: 50,
                validation_share: 0.1,
                split: Split::Fixed,
                validation: Validation::Fixed,
                restore_best: true,
                start: Start::Warm,
                decay_coupled: false,
                clip: Some(5.0),
                ..paper.train
            },
            ..paper
        }
    }

    /// About 16 inner samples of a query at the base, whatever the method; the outer θ among them, where the method
    /// allows it: the loss is then bounded.
    fn best_estimator(method: Method) -> Settings {
        let paper = Settings::paper(method);
        let levels = matches!(method, Method::Grr | Method::Tgrr);
        let apart = matches!(method, Method::Likelihood | Method::Nested);
        Settings {
            atoms: if method == Method::Nested { 32 } else { 20 },
            m0: if levels { 4 } else { 16 },
            top: if method == Method::Tru { Some(2) } else { paper.top },
            coupling: if apart { Coupling::Excluded } else { Coupling::Inclusive },
            tails: if levels { Tails::Scaled { kappa: 0.5 } } else { Tails::Paper },
            blocks: Blocks::Reused,
            levels: Levels::Systematic,
            ..paper
        }
    }

    /// Refuses settings outside their range.
    pub fn check(&self) -> Result<()> {
        let train = &self.train;
        let whole = |name, value: u64, most: u64| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(Error::setting(name, value, format!("between 1 and {most}"))),
        };
        whole("rounds", self.rounds.into(), 10_000)?;
        whole("simulations", self.simulations as u64, 100_000_000)?;
        whole("samples", self.samples as u64, 10_000_000)?;
        whole("train.batch", train.batch as u64, 1_000_000)?;
        whole("train.epochs", train.epochs.into(), 1_000_000)?;
        whole("train.patience", train.patience.into(), 1_000_000)?;
        train.steps.map_or(Ok(()), |steps| whole("train.steps", steps, 1_000_000_000))?;
        if !(self.width >= 0.1 && self.width <= 10.0) {
            return Err(Error::setting("width", self.width, "between 0.1 and 10"));
        }
        if !(train.rate > 0.0 && train.rate <= 1.0) {
            return Err(Error::setting("train.rate", train.rate, "above 0 and up to 1"));
        }
        let (share, rows) = (train.validation_share, self.simulations as f64);
        if !(share > 0.0 && share < 1.0 && share * rows >= 1.0 && (1.0 - share) * rows >= 2.0) {
            let why =
                "a share of the simulations of a round that leaves rows on both sides, e.g. 0.1";
            return Err(Error::setting("train.validation_share", share, why));
        }
        train.adam().check()?;
        self.coordinates.check()?;
        self.flow.flow(1, 1).check()?;
        Estimator::new(self.estimator.clone()).map(|_| ())
    }

    /// Changes one setting by its name, as `train.batch`.
    pub fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let unknown = || Error::UnknownSetting { key: key.to_owned() };
        if key == "profile" {
            let why = "chosen by --profile, since it sets everything else";
            return Err(Error::setting("profile", text, why));
        }
        if !SETTINGS.iter().any(|(known, _)| *known == key) {
            return Err(unknown());
        }
        let mut all = self.to_json();
        let place = all.pointer_mut(&format!("/{}", key.replace('.', "/"))).ok_or_else(unknown)?;
        let refused = |problem: serde_json::Error| {
            let (key, value) = (key.to_owned(), text.to_owned());
            // serde_json ends with a place in a text that the user never saw.
            Error::BadSetting { key, value, problem: problem.to_string() }
        };
        let text_value = Value::String(text.to_owned());
        let value = if text == "none" && !matches!(place, Value::String(_)) {
            Value::Null
        } else {
            serde_json::from_str(text).unwrap_or_else(|_| text_value.clone())
        };
        *place = value;
        let read = serde_json::from_value(all.clone());
        *self = read.or_else(|problem| {
            // A number may be the text of a setting that takes words.
            *all.pointer_mut(&format!("/{}", key.replace('.', "/"))).expect("found above") =
                text_value;
            serde_json::from_value(all).map_err(|_| refused(problem))
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
        let text = |key: &str| match all.pointer(&format!("/{}", key.replace('.', "/"))) {
            Some(Value::Null) => "none".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        SETTINGS.iter().map(|(key, about)| (*key, text(key), *about)).collect()
    }
}

/// Steps of a round in the default profile.
const STEPS: u64 = 3000;

/// What every setting is.
const SETTINGS: &[(&str, &str)] = &[
    ("profile", "where the settings started from: default or paper"),
    ("rounds", "rounds of simulating and training"),
    ("simulations", "simulations of a round"),
    ("width", "how much wider than the posterior so far later rounds propose parameters"),
    ("seed", "seed of all random numbers"),
    ("samples", "posterior samples that the run ends with"),
    ("scores", "rounds whose posterior is scored where the truth is known: every, last or none"),
    (
        "estimator.method",
        "loss of rounds 2 and later: likelihood (npe), atomic, nested, ru, tru, rr, grr, tgrr",
    ),
    ("estimator.atoms", "inner samples of nested; atoms of atomic, the true one among them"),
    ("estimator.m0", "inner samples of level 0; level l has m0 * 2^l"),
    ("estimator.base", "lowest level"),
    ("estimator.top", "highest level; none: as high as the pool allows"),
    ("estimator.alpha", "how fast the probability of a level falls: a number, or paper"),
    (
        "estimator.tails",
        "law of the level: paper, \"scaled K\", or P(L >= j) for each level above the base",
    ),
    ("estimator.coupling", "the outer theta among the inner samples: excluded, inclusive, planted"),
    ("estimator.difference", "how levels are compared: antithetic or naive"),
    ("estimator.blocks", "inner samples of the levels of a query: fresh or reused"),
    ("estimator.levels", "levels of a batch: independent or systematic"),
    ("estimator.replacement", "inner samples drawn without or with replacement"),
    ("flow.layers", "spline coupling layers"),
    ("flow.blocks", "residual blocks of a conditioner"),
    ("flow.units", "units of a conditioner"),
    ("flow.bins", "bins of a spline"),
    ("flow.bound", "the splines act on [-bound, bound]"),
    ("coordinates.space", "parameters unbounded (no leakage), or bounded (rejection)"),
    ("coordinates.whiten", "whether parameters are centred and whitened by the first round"),
    ("coordinates.x", "summaries scaled by: none, first or newest round"),
    ("coordinates.bend", "units beyond which summaries grow logarithmically; none: never"),
    (
        "coordinates.tolerance",
        "the scaling of summaries is renewed when it moved by more than this",
    ),
    ("train.batch", "outer samples of a step"),
    ("train.rate", "learning rate at the start of a round"),
    ("train.schedule", "learning rate over a round: constant or cosine"),
    ("train.steps", "steps of a round, in whole epochs; none: until it stops by itself"),
    ("train.epochs", "epochs of a round, at most"),
    ("train.patience", "epochs without a better validation loss after which a round stops"),
    ("train.validation_share", "share of rows held out for validation"),
    ("train.split", "rows held out: fixed for life, newest round, or pooled anew"),
    ("train.validation", "validation loss: fixed random numbers, or random each time"),
    ("train.restore_best", "whether a round ends with its best weights, or its last"),
    ("train.start", "what later rounds start from: carried (optimiser too), warm or fresh weights"),
    ("train.inner", "where inner samples come from: pool or batch"),
    ("train.decay", "weight decay"),
    ("train.decay_coupled", "whether the decay is part of the gradient (Adam) or not (AdamW)"),
    ("train.clip", "largest norm of a gradient; none: any"),
];

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
            for (_, method) in Method::ALL {
                let config = Config::new(*profile, *method);
                config.check().unwrap();
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

    #[test]
    fn bad_settings_are_named() {
        let mut config = Config::new(Profile::Default, Method::Tgrr);
        for (key, value, told) in [
            ("train.batches", "10", "didyma settings"),
            ("train/batch", "10", "didyma settings"),
            ("profile", "paper", "--profile"),
            ("train", "10", "didyma settings"),
            ("train.batch", "-1", "train.batch"),
            ("train.split", "half", "fixed, newest, pooled"),
            ("estimator.tails", "scaled much", "no number"),
        ] {
            let error = config.set(key, value).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        config.set("train.batch", "0").unwrap();
        assert!(config.check().unwrap_err().to_string().contains("train.batch"));
    }
}
