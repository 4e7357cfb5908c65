//! The results of a run in short.

use super::{Manifest, RunDir, SUMMARY, Verdict, warnings};
use crate::error::Result;
use crate::inference::config::{Config, Inner, LevelSource};
use crate::inference::{RoundReport, sound};
use crate::named::Named;
use crate::storage::files::read_inside;
use crate::training::estimator::alpha::LEAST_RATE;
use crate::training::estimator::{Method, Pool, Settings};
use serde::{Deserialize, Serialize};

/// The results of a run in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Version of the program.
    pub version: String,
    /// The task.
    pub task: String,
    /// The estimator's name.
    pub method: String,
    /// The profile's name.
    pub profile: String,
    /// The seed.
    pub seed: u64,
    /// Whether all rounds are done.
    pub finished: bool,
    /// The finished rounds.
    pub rounds: Vec<RoundReport>,
    /// Wall-clock time of all rounds.
    pub seconds_total: f64,
    /// The most memory that the process held, where the system tells.
    pub peak_rss_mb: Option<f64>,
    /// Pairs (θ, x) per second of training.
    pub pairs_per_second: f64,
    /// The true parameters, if they are known.
    #[serde(default)]
    pub truth: Option<Vec<f64>>,
    /// In plain words.
    pub warnings: Vec<String>,
    /// The verdict on the posterior; none before a round is finished, and of runs of older versions.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// Every setting.
    pub config: Config,
}

impl Summary {
    /// The results of a run so far. How much memory it took is known to its own process only, which wrote it down.
    pub fn read(run: &RunDir) -> Result<Self> {
        let written = read_inside(&run.file(SUMMARY)).ok();
        let written = written.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        Ok(Self {
            peak_rss_mb: written.and_then(|written| written.peak_rss_mb),
            version: run.version().to_owned(),
            ..Self::new(run.manifest(), run.reports()?)
        })
    }

    /// Sums the rounds up.
    pub fn new(manifest: &Manifest, rounds: Vec<RoundReport>) -> Self {
        let Manifest { task, config, .. } = manifest.clone();
        let seconds =
            |of: fn(&RoundReport) -> f64| rounds.iter().map(of).fold(0.0, |sum, s| sum + s);
        let train = seconds(|r| r.seconds_train);
        let pairs: u64 = rounds.iter().map(|round| round.pairs).sum();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            task,
            method: config.method_name().to_owned(),
            profile: config.profile.name().to_owned(),
            seed: config.seed,
            finished: rounds.len() == config.rounds as usize,
            seconds_total: train + seconds(|r| r.seconds_simulate + r.seconds_score),
            peak_rss_mb: peak_rss_mb(),
            pairs_per_second: if train > 0.0 { pairs as f64 / train } else { 0.0 },
            truth: manifest.truth(),
            warnings: warnings(manifest, &rounds),
            verdict: None,
            rounds,
            config,
        }
    }
}

/// C2ST from which a posterior is visibly not the reference.
pub(super) const VISIBLE: f64 = 0.6;
/// How far apart members of an ensemble are from which a user is told.
pub(super) const APART: f64 = 0.08;

/// What a user should know before trusting the posterior.
fn warnings(manifest: &Manifest, rounds: &[RoundReport]) -> Vec<String> {
    let config = &manifest.config;
    let mut found = of_settings(manifest, rounds);
    found.extend(warnings::of_failures(config, rounds));
    found.extend(of_levels(config, rounds));
    found.extend(rounds.iter().filter_map(diverged));
    found.extend(rounds.iter().filter_map(left_out));
    found.extend(rounds.last().and_then(apart));
    found.extend(rounds.last().and_then(told_apart));
    found.extend(rounds.last().and_then(outside));
    found
}

/// Those of them that no check of a verdict says: of early rounds, of settings, and of what was done.
pub(super) fn notes(manifest: &Manifest, rounds: &[RoundReport]) -> Vec<String> {
    let (config, early) = (&manifest.config, &rounds[..rounds.len().saturating_sub(1)]);
    let mut found = of_settings(manifest, rounds);
    found.extend(warnings::notes_of_failures(config, rounds));
    found.extend(of_levels(config, rounds));
    found.extend(early.iter().filter_map(diverged));
    found.extend(early.iter().filter_map(left_out));
    found
}

/// Blocks that were cut down, and odd summaries.
fn of_settings(manifest: &Manifest, rounds: &[RoundReport]) -> Vec<String> {
    let oddities = rounds.last().map_or(&[][..], |last| &last.oddities);
    let odd = oddities.iter().map(|odd| odd.sentence(&manifest.summary_name(odd.summary)));
    cut_down(&manifest.config, rounds).into_iter().chain(odd).collect()
}

/// Inner samples and levels that are not those that were asked for.
fn of_levels(config: &Config, rounds: &[RoundReport]) -> impl Iterator<Item = String> {
    let found = [other_law, unmeasured_levels, slow_levels].map(|of| of(config, rounds));
    found.into_iter().flatten()
}

/// A round whose loss was no longer a number.
fn diverged(round: &RoundReport) -> Option<String> {
    let number = round.round;
    (round.stop_reason.name() == "diverged").then(|| {
        format!(
            "training of round {number} diverged, and weights from before that were kept: lower train.rate"
        )
    })
}

/// A posterior that is visibly not the reference.
fn told_apart(last: &RoundReport) -> Option<String> {
    let c2st = last.scores.c2st.filter(|c| *c > VISIBLE)?;
    let error = last.scores.c2st_error.map_or(String::new(), |e| format!(" ± {:.1}", 100.0 * e));
    Some(format!(
        "a classifier tells the posterior from the reference in {:.1}{error} % of cases (50 % would be perfect)",
        100.0 * c2st
    ))
}

/// A flow whose mass is in part outside of the prior.
fn outside(last: &RoundReport) -> Option<String> {
    (last.outside_prior > 0.05).then(|| {
        format!(
            "{:.1} % of the flow lies outside the prior and is rejected: unbounded coordinates leave nothing outside",
            100.0 * last.outside_prior
        )
    })
}

/// Rounds whose inner samples could not follow the law that was asked for.
fn other_law(config: &Config, rounds: &[RoundReport]) -> Option<String> {
    let asked = config.train.inner;
    let others = rounds.iter().filter(|round| round.inner.is_some_and(|used| used != asked));
    let others: Vec<String> = others.map(|round| round.round.to_string()).collect();
    (!others.is_empty()).then(|| {
        format!(
            "round {} took inner samples from the pool, not by train.inner={}, since parameters were drawn elsewhere: simulate all \
             that are proposed",
            others.join(", "),
            asked.name()
        )
    })
}

/// Rounds whose levels could not be chosen by what was measured.
fn unmeasured_levels(config: &Config, rounds: &[RoundReport]) -> Option<String> {
    let asked = config.train.levels == LevelSource::Auto;
    let left = rounds.iter().filter(|round| asked && round.round > 1 && round.levels.is_none());
    let left: Vec<String> = left.map(|round| round.round.to_string()).collect();
    (!left.is_empty()).then(|| {
        format!(
            "round {} kept the levels of the settings in spite of train.levels=auto, since fewer than three could be measured: \
             simulate more a round, or raise estimator.top",
            left.join(", ")
        )
    })
}

/// Second moments that fall too slowly for a method without a top level, where they were measured.
fn slow_levels(config: &Config, rounds: &[RoundReport]) -> Option<String> {
    let untruncated = config.estimator.top.is_none();
    let chosen =
        rounds.iter().rev().filter_map(|round| Some((round.round, round.levels.as_ref()?)));
    let (round, levels) = chosen.filter(|(_, levels)| levels.is_slow()).find(|_| untruncated)?;
    let remedy = match config.train.inner {
        Inner::Mixture | Inner::Sobol => "take tgrr",
        _ => "take tgrr, or inner samples of the mixture (train.inner=mixture)",
    };
    Some(format!(
        "r2 less two standard errors was {:.2} in round {round}, which kept the levels of the settings, and {} without a top level \
         needs more than {LEAST_RATE}: {remedy}",
        levels.r2_safe(),
        config.estimator.method.name()
    ))
}

/// Members of an ensemble that a round did without.
fn left_out(round: &RoundReport) -> Option<String> {
    let kept = sound(&round.members, |member| Some(member.stop_reason));
    let (gone, members) = (kept.iter().filter(|kept| kept.is_none()).count(), kept.len());
    (gone > 0).then(|| {
        let number = round.round;
        format!(
            "{gone} of {members} members diverged in round {number}, and its posterior is that of the others: lower train.rate"
        )
    })
}

/// Members of an ensemble that are not of one mind.
fn apart(last: &RoundReport) -> Option<String> {
    let found = last.disagreement.filter(|apart| *apart > APART)?;
    Some(format!(
        "the ensemble's members are {found:.2} apart at the observation, more than {APART} (1 is no overlap): simulate more, or \
         compare other seeds"
    ))
}

/// Round 2 has the fewest rows to take inner samples from. Methods without a top level always get one, which needs no
/// word.
fn cut_down(config: &Config, rounds: &[RoundReport]) -> Option<String> {
    let successes: usize = rounds.get(..2)?.iter().map(|r| r.simulations - r.failures).sum();
    let rows = match config.train.inner {
        Inner::Batch => config.train.batch as u32,
        // Its blocks come from samples that are made for each row, of which there are enough.
        Inner::Mixture | Inner::Sobol => return None,
        _ => (successes as f64 * (1.0 - config.train.validation_share)) as u32,
    };
    let pool = Pool::new(0..rows, config.estimator.replacement).ok()?;
    let (asked, method) = (&config.estimator, config.estimator.method);
    let used = asked.clone().fitted_to(&pool);
    let levels = method.is_multilevel();
    let chosen = config.train.levels == LevelSource::Auto;
    let cut = [
        ("atoms", !levels && method != Method::Likelihood, asked.atoms, used.atoms),
        ("m0", levels && !chosen, asked.m0, used.m0),
        ("base", levels && !chosen, asked.base as usize, used.base as usize),
        ("top", levels && asked.top.is_some(), top(asked), top(&used)),
    ];
    let cut: Vec<_> = cut
        .iter()
        .filter(|(_, matters, asked, used)| *matters && used < asked)
        .map(|(name, _, asked, used)| format!("estimator.{name} {used} instead of {asked}"))
        .collect();
    (!cut.is_empty()).then(|| {
        let cut = cut.join(", ");
        format!("early rounds have too few simulations for the blocks asked for, and use {cut}: simulate more a round")
    })
}

fn top(settings: &Settings) -> usize {
    settings.top.map_or(0, |top| top as usize)
}

/// The most memory that this process held, in MB of 10⁶ bytes, by Linux's account.
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
