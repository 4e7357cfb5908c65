//! A run at one moment, read without disturbing the process that works on it.

use crate::terminal::bounds;
use didyma::math::mean_and_deviation;
use didyma::prior::Marginal as Law;
use didyma::report::columns;
use didyma::rng::{Purpose, Streams};
use didyma::run::{RunDir, Summary};
use didyma::{EpochRecord, Error, Posterior, SampleStreams};
use std::path::{Path, PathBuf};

/// Draws that histograms are made of.
const DRAWS: usize = 2000;

/// A run at one moment.
pub struct Look<'a> {
    pub dir: &'a Path,
    pub summary: Summary,
    /// True while a process works on the run.
    pub worked_on: bool,
    /// Simulations stored.
    pub stored: usize,
    /// Stored simulations that failed.
    pub failed: usize,
    /// The parameters after the last finished round; empty before there is one.
    pub marginals: &'a [Marginal],
    /// The epochs of the round that was trained last, in order; empty before the first one.
    pub epochs: Vec<EpochRecord>,
}

impl Look<'_> {
    /// Tells if there is nothing left to wait for: all rounds are done, and their results are written.
    pub fn is_finished(&self) -> bool {
        self.summary.finished && !self.worked_on
    }
}

/// One parameter of the posterior.
pub struct Marginal {
    pub name: String,
    pub low: f64,
    pub high: f64,
    pub mean: f64,
    pub sd: f64,
    pub truth: Option<f64>,
    pub draws: Vec<f64>,
}

/// Looks at a run again and again; what changes only with a round is kept in between.
pub struct Watcher {
    dir: PathBuf,
    marginals: Vec<Marginal>,
    /// Rounds that were finished when `marginals` were drawn.
    drawn: usize,
}

impl Watcher {
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), marginals: Vec::new(), drawn: 0 }
    }

    /// The run is opened for this look alone: as long as somebody reads it, the database cannot be tidied.
    pub fn look(&mut self) -> didyma::Result<Look<'_>> {
        let run = RunDir::read(&self.dir)?;
        // Asked first: of a process that ends meanwhile it must not be said that it left the run unfinished.
        let worked_on = run.is_worked_on()?;
        let summary = Summary::read(&run)?;
        if summary.rounds.len() != self.drawn {
            self.marginals = marginals(&summary, &run.posterior()?)?;
            self.drawn = summary.rounds.len();
        }
        let (stored, failed) = run.counts()?;
        let epochs = of_last_round(run.epochs()?);
        let (dir, marginals) = (&*self.dir, &*self.marginals);
        Ok(Look { dir, summary, worked_on, stored, failed, marginals, epochs })
    }
}

/// Drawn by one thread, to leave the others to the run.
fn marginals(summary: &Summary, posterior: &Posterior) -> didyma::Result<Vec<Marginal>> {
    let from = SampleStreams::new(Streams::new(summary.seed), Purpose::Posterior, 0);
    let theta = match posterior.draw(DRAWS, from, 1) {
        Ok(found) => found.theta,
        // Nearly all of it is outside of the prior, of which the summary warns.
        Err(Error::Leakage { .. }) => return Ok(Vec::new()),
        Err(other) => return Err(other),
    };
    let truth = &summary.truth;
    let parameters = posterior.prior().parameters();
    let marginal = |(i, draws): (usize, Vec<f64>)| {
        let truth = truth.as_ref().map(|truth| truth[i]);
        let (low, high) = range(parameters[i].marginal, draws.iter().copied().chain(truth));
        let (mean, sd) = mean_and_deviation(&draws);
        Marginal { name: parameters[i].name.clone(), low, high, mean, sd, truth, draws }
    };
    Ok(columns(&theta, parameters.len()).into_iter().enumerate().map(marginal).collect())
}

/// The bounds of a law, or of the values where it has none.
fn range(law: Law, values: impl Iterator<Item = f64>) -> (f64, f64) {
    match law.support() {
        (low, high) if low.is_finite() && high.is_finite() => (low, high),
        _ => bounds(values),
    }
}

/// The epochs of the last round that has any, of the ensemble's first member that has.
fn of_last_round(mut epochs: Vec<EpochRecord>) -> Vec<EpochRecord> {
    let last = epochs.last().map(|epoch| epoch.round);
    epochs.retain(|epoch| Some(epoch.round) == last);
    let first = epochs.first().map(|epoch| epoch.member);
    epochs.retain(|epoch| Some(epoch.member) == first);
    epochs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epochs_of_the_last_round_are_shown() {
        let epoch = |round, epoch| EpochRecord {
            round,
            member: 0,
            epoch,
            train_loss: None,
            validation_loss: None,
            seconds: None,
        };
        assert_eq!(of_last_round(Vec::new()), []);
        let found = of_last_round(vec![epoch(1, 1), epoch(1, 2), epoch(2, 1), epoch(2, 2)]);
        assert_eq!(found, [epoch(2, 1), epoch(2, 2)]);
    }

    #[test]
    fn unbounded_parameters_are_drawn_where_their_values_are() {
        let values = || [0.5, -2.0, 3.0].into_iter();
        assert_eq!(range(Law::Uniform { low: -1.0, high: 1.0 }, values()), (-1.0, 1.0));
        assert_eq!(range(Law::Normal { mean: 0.0, sd: 1.0 }, values()), (-2.0, 3.0));
    }
}
