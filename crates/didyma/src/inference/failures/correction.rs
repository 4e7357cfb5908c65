//! What failed simulations do to a round: what is learnt of them, how training makes up for them, what is told.
//!
//! Successes follow p̃(θ) s(θ) p(x | θ), with s the probability of success. `docs/failures.md` derives what follows from it.

use super::{Correction, FLOOR, Validity, ValidityReport};
use crate::error::{Error, Result};
use crate::inference::config::{Config, Meaning};
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::inference::simulations::Records;
use crate::math::particles::effective;
use crate::problem::prior::Prior;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::training::TrainRows;
use crate::training::estimator::Method;

/// Draws of the posterior that tell how much of it is where simulations nearly never succeed.
const DRAWS: usize = 2000;

/// What is known of the failures of all rounds up to one.
pub(crate) struct Failing {
    round: u32,
    /// Share of the simulations that failed.
    share: f64,
    /// Where they fail, if there are enough to tell.
    validity: Option<Validity>,
    correction: Correction,
    /// What the successful rows count for, by their numbers; empty if they count alike.
    weights: Vec<f64>,
    /// Failed rows that stay inner samples.
    inner_only: Vec<u32>,
}

impl Failing {
    /// Nothing if no simulation failed, else what can be learnt of those that did.
    pub(crate) fn new(
        prior: &Prior,
        records: &Records,
        config: &Config,
        round: u32,
        threads: usize,
    ) -> Result<Option<Self>> {
        let (theta, succeeded) = records.outcomes();
        let failures = succeeded.iter().filter(|succeeded| !**succeeded).count();
        if failures == 0 {
            return Ok(None);
        }
        let (rows, streams) = (Rows::new("theta", &theta, prior.dim())?, Streams::new(config.seed));
        let validity = Validity::fit(prior, rows, &succeeded, streams, round, threads)?;
        let mut failing = Self {
            round,
            share: failures as f64 / succeeded.len() as f64,
            validity,
            correction: Correction::None,
            weights: Vec::new(),
            inner_only: Vec::new(),
        };
        failing.correct(records, config)?;
        Ok(Some(failing))
    }

    /// Decides how the round's training makes up for failures.
    fn correct(&mut self, records: &Records, config: &Config) -> Result<()> {
        let failed = records.without_x();
        if config.failures.meaning == Meaning::Outcome {
            self.inner_only = failed.collect();
            return Ok(());
        }
        let depends = self.validity.as_ref().filter(|validity| validity.depends());
        let likelihood = self.round == 1 || config.estimator.method == Method::Likelihood;
        if let (true, Some(validity)) = (likelihood, depends) {
            let pool = records.pool();
            let s = validity.probabilities(pool.rows()?.0);
            self.weights = s.into_iter().map(|s| 1.0 / s.max(FLOOR)).collect();
            self.correction = Correction::Weights;
        } else if !likelihood {
            // Where nothing succeeds there are no inner samples either, and nothing would keep q away: failed rows do.
            if let Some(validity) = depends {
                let theta: Vec<f64> = records.failures().flatten().copied().collect();
                let s = validity.probabilities(Rows::new("theta", &theta, validity.dim())?);
                let never = failed.zip(s).filter(|(_, s)| *s <= FLOOR);
                self.inner_only = never.map(|(row, _)| row).collect();
            }
            self.correction = Correction::InnerSamples;
        }
        Ok(())
    }

    /// Rows as training is to take them.
    pub(crate) fn applied(&self, mut rows: TrainRows) -> TrainRows {
        rows.inner_only.clone_from(&self.inner_only);
        rows.weights.clone_from(&self.weights);
        rows
    }

    /// The probability of success, by which inner samples of another law than the rows' are weighted, where it depends on θ
    /// and the successes stand for all simulations.
    pub(crate) fn selection(&self) -> Option<&Validity> {
        let depends = self.validity.as_ref().filter(|validity| validity.depends());
        depends.filter(|_| self.correction == Correction::InnerSamples)
    }

    /// The probability of success that the law of the successful rows has and the posterior has not, where it depends on θ.
    pub(crate) fn success(&self) -> Option<&Validity> {
        let depends = self.validity.as_ref().filter(|validity| validity.depends());
        depends.filter(|_| self.correction != Correction::None)
    }

    /// What a round tells of it.
    pub(crate) fn report(
        &self,
        posterior: &Posterior,
        streams: Streams,
        threads: usize,
    ) -> Result<ValidityReport> {
        let validity = self.validity.as_ref();
        let total: f64 = self.weights.iter().sum();
        let shares: Vec<f64> = self.weights.iter().map(|w| w / total).collect();
        let depends = validity.filter(|validity| validity.depends());
        let beyond = match depends {
            None => None,
            Some(validity) => self.beyond(validity, posterior, streams, threads)?,
        };
        Ok(ValidityReport {
            failed: self.share,
            gain: validity.map(Validity::gain),
            z: validity.map(Validity::z),
            depends: depends.is_some(),
            corrected: self.correction,
            effective: (!shares.is_empty()).then(|| effective(&shares) / shares.len() as f64),
            beyond,
        })
    }

    /// Share of the posterior where simulations nearly never succeed; none if it cannot be drawn from.
    fn beyond(
        &self,
        validity: &Validity,
        posterior: &Posterior,
        streams: Streams,
        threads: usize,
    ) -> Result<Option<f64>> {
        let from = SampleStreams::new(streams, Purpose::ValidityDraws, self.round);
        let draws = match posterior.draw(DRAWS, from, threads) {
            Err(Error::Leakage { .. }) => return Ok(None),
            draws => draws?.theta,
        };
        Ok(Some(validity.share_beyond(Rows::new("draws", &draws, posterior.dim())?)))
    }
}
