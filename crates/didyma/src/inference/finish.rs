//! The end of a round: its posterior is judged and told of.

use super::rounds::Run;
use super::state::{MemberReport, RoundReport, Scores};
use crate::error::{Error, Result};
use crate::inference::config::Scoring;
use crate::inference::events::{Event, Observer};
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::problem::Oddity;
use crate::rng::Purpose;
use std::ops::ControlFlow;
use std::time::Instant;

impl Run<'_> {
    /// Judges the posterior of a round whose training is done, and tells of it.
    pub(super) fn finish(
        &mut self,
        round: u32,
        seconds_simulate: f64,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>> {
        self.learn_of_failures(round)?;
        let posterior = self.posterior()?.expect("training is done");
        let report = self.report(&posterior, round, seconds_simulate)?;
        let go_on =
            observer.notice(&Event::RoundFinished { report: &report, posterior: &posterior })?;
        self.reports.push(report);
        let needed = self.config.needs_posteriors();
        if needed && self.posteriors.len() + 1 == round as usize {
            self.posteriors.push(posterior.clone());
        }
        self.latest = Some(posterior);
        Ok(go_on)
    }

    /// The report of a round whose training is done.
    fn report(
        &self,
        posterior: &Posterior,
        round: u32,
        seconds_simulate: f64,
    ) -> Result<RoundReport> {
        let threads = self.machine.threads;
        let streams = |purpose| SampleStreams::new(self.streams, purpose, round);
        let outside_prior = posterior.mass_outside(streams(Purpose::Diagnostic), threads)?;
        let clock = Instant::now();
        let scores = self.scores(posterior, round)?;
        let disagreement = posterior.disagreement(streams(Purpose::Disagreement), threads)?;
        let seconds_score = clock.elapsed().as_secs_f64();
        let failing = self.failing.1.as_ref();
        let validity = failing.map(|f| f.report(posterior, self.streams, threads)).transpose()?;
        let (simulations, failures) = self.records.counts(round);
        let training = self.training.as_ref().expect("training is done");
        let restored = self.config.train.restore_best;
        let members = training.members.iter().map(|fit| MemberReport::new(fit, restored));
        let members: Vec<_> = members.collect::<Option<_>>().expect("training is done");
        let together = MemberReport::together(&members).expect("a member at least");
        let x_o = self.problem.observation();
        Ok(RoundReport {
            round,
            simulations,
            failures,
            epochs: together.epochs,
            steps: together.steps,
            stop_reason: together.stop_reason,
            seconds_simulate,
            seconds_train: training.seconds,
            seconds_score,
            train_loss: together.train_loss,
            validation_loss: together.validation_loss,
            scores,
            outside_prior,
            pairs: training.members.iter().map(|fit| fit.pairs).sum(),
            members: if members.len() > 1 { members } else { Vec::new() },
            disagreement,
            inner: self.inner_law(round).filter(|_| self.config.train.inner.is_special()),
            levels: training.levels.clone(),
            drawn_elsewhere: self.drawn_elsewhere,
            recentred: training.recentred,
            device: self.trained_on(),
            validity,
            oddities: Oddity::of_rows(x_o, self.records.of_round(round)?.rows()?.1),
        })
    }

    /// Scores of the round, where there is a judge and the settings ask for them.
    fn scores(&self, posterior: &Posterior, round: u32) -> Result<Scores> {
        let last = round == self.config.rounds;
        let scored = match self.config.scores {
            Scoring::Every => true,
            Scoring::Last => last,
            Scoring::None => false,
        };
        match self.judge.filter(|_| scored).map(|judge| judge.score(posterior, round, last)) {
            // A posterior that cannot be sampled has no scores; the round is saved all the same.
            None | Some(Err(Error::Leakage { .. })) => Ok(Scores::default()),
            Some(scores) => scores,
        }
    }
}
