//! The evidence for a calibration: simulations of the run's rounds that training never saw, or new ones.

use super::{NewSimulations, Spread};
use crate::error::Result;
use crate::evaluation::calibration::{Evidence, HeldOut, HeldOutRow, Law, share_outside};
use crate::inference::config::{Config, Meaning, Proposal, Split, Start};
use crate::inference::failures::Failing;
use crate::inference::noise::SummaryNoise;
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::inference::simulations::Records;
use crate::inference::split::split;
use crate::inference::truncation::log_threshold;
use crate::inference::{RoundReport, SimulatedRow, sound};
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::run::RunDir;
use crate::training::estimator::Method;

/// Held-out simulations that are asked, at most: the newest.
const MOST: usize = 800;
/// New simulations that are asked, at most: the first. More would only cost memory.
const MOST_NEW: usize = 5000;
/// Draws of the posterior that are compared with where the last round simulated.
const OUTSIDE_DRAWS: usize = 2000;

/// A run whose rows and proposals are known.
pub(super) struct Known<'a> {
    pub run: &'a RunDir,
    pub posterior: &'a Posterior,
    pub reports: &'a [RoundReport],
    pub last: &'a RoundReport,
    pub threads: usize,
}

impl Known<'_> {
    fn config(&self) -> &Config {
        &self.run.manifest().config
    }

    /// Does some work with the evidence: new simulations if there are some, else those of the run that were held out; and with
    /// the share of the posterior where the last round simulated nothing.
    pub(super) fn asked<T>(
        &self,
        new: Option<&NewSimulations>,
        work: impl FnOnce(&HeldOut, Evidence, Option<f64>) -> Result<T>,
    ) -> Result<T> {
        let (config, last) = (self.config(), self.last.round);
        let mut rows = self.run.rows()?;
        rows.retain(|row| row.round <= last);
        let dims = (self.posterior.dim(), self.posterior.observation().len());
        let records = Records::new(dims, config.simulations, rows.clone());
        let failing = Failing::new(self.posterior.prior(), &records, config, last, self.threads)?;
        let missing = config.failures.meaning == Meaning::Missing;
        let success = failing.as_ref().and_then(Failing::success).filter(|_| missing);
        // A model of the round before may be lost: the rest stands without it.
        let outside = self.outside(&rows).unwrap_or(None);
        let (laws, rows) = match new {
            Some(new) => (vec![self.law_of(new.spread)?], self.new_rows(new)?),
            None => self.laws(self.held_out(&rows, &records)?)?,
        };
        let first = rows.iter().map(|row| row.round).min().unwrap_or(last);
        let evidence = new.map_or(Evidence::HeldOut(first, last), |_| Evidence::New);
        work(&HeldOut { posterior: self.posterior, laws, rows, success }, evidence, outside)
    }

    /// Share of the posterior where the last round has no simulations; none where it drew from the prior, or nobody knows how.
    fn outside(&self, rows: &[SimulatedRow]) -> Result<Option<f64>> {
        let (last, config) = (self.last.round, self.config());
        if last == 1 || config.proposal == Proposal::Prior || self.last.drawn_elsewhere {
            return Ok(None);
        }
        let of_round = rows.iter().filter(|row| row.round == last);
        let of_prior = config.draws_of_prior(of_round.clone().count()) as u32;
        let proposed = of_round.filter(|row| row.index >= of_prior);
        let proposed: Vec<f64> = proposed.flat_map(|row| row.theta.iter().copied()).collect();
        let from = SampleStreams::new(Streams::new(config.seed), Purpose::HeldOut, last);
        let drawn = self.posterior.draw(OUTSIDE_DRAWS, from, self.threads)?.theta;
        let (law, dim) = (self.law(last, Proposal::Posterior)?, self.posterior.dim());
        let proposed = law.log_density(Rows::new("theta", &proposed, dim)?)?;
        let drawn = law.log_density(Rows::new("theta", &drawn, dim)?)?;
        Ok(proposed.zip(drawn).map(|(proposed, drawn)| share_outside(proposed, &drawn)))
    }

    /// New simulations that succeeded, the first of them. No member saw them, so that q itself is asked.
    fn new_rows(&self, new: &NewSimulations) -> Result<Vec<HeldOutRow>> {
        let mut noise = SummaryNoise::of(self.config());
        let rows = new.rows.iter().filter(|row| row.x.is_ok()).take(MOST_NEW);
        rows.map(|row| self.held_out_row(row, (None, 0), &mut noise)).collect()
    }

    /// A simulation as q is asked about it: summaries have the noise that they had in training, or would have had.
    fn held_out_row(
        &self,
        row: &SimulatedRow,
        (member, law): (Option<usize>, usize),
        noise: &mut Option<SummaryNoise>,
    ) -> Result<HeldOutRow> {
        let x = row.x.as_deref().unwrap_or_default();
        let features = match noise {
            None => self.posterior.features(x)?,
            Some(noise) => {
                let noise = noise.of_row(row.round, row.index);
                self.posterior.coordinates.noisy_features(x.iter().copied(), noise).collect()
            }
        };
        Ok(HeldOutRow { round: row.round, theta: row.theta.clone(), features, member, law })
    }

    /// The law that parameters of new simulations are drawn from.
    fn law_of(&self, spread: Spread) -> Result<Law> {
        let (config, after) = (self.config(), self.last.round + 1);
        let (proposal, round) = (spread.proposal(config), spread.round(config, after));
        match proposal {
            Proposal::Prior => Ok(Law::Prior),
            proposal => law(self.posterior.clone(), config, (round, proposal), self.threads),
        }
    }

    /// The newest simulations that some member never saw, with its place in the posterior.
    fn held_out<'r>(
        &self,
        rows: &'r [SimulatedRow],
        records: &Records,
    ) -> Result<Vec<(&'r SimulatedRow, usize)>> {
        // The rows of a step that was taken by hand have a number of their own.
        let (simulations, last) = (self.last.simulations, self.last.round);
        let config = &Config { simulations, ..self.config().clone() };
        let mut successes: Vec<&SimulatedRow> = rows.iter().filter(|row| row.x.is_ok()).collect();
        successes.sort_by_key(|row| (row.round, row.index));
        let streams = Streams::new(config.seed);
        let mut found = Vec::new();
        for (member, place) in self.members() {
            let split = split(records, config, last, streams.of_member(member as u32))?;
            let of_member = split.held_out.iter().map(|&row| (successes[row as usize], place));
            let first = self.first().max(self.replaced(member) + 1);
            found.extend(of_member.filter(|(row, _)| row.round >= first && self.is_asked(row)));
        }
        found.sort_by_key(|(row, member)| (std::cmp::Reverse(row.round), row.index, *member));
        // Where members draw their rows anew, several may hold out the same one, whose places are alike.
        found.dedup_by_key(|(row, _)| (row.round, row.index));
        found.truncate(MOST);
        Ok(found)
    }

    /// The earliest round whose held-out rows count. Those of the second half of a run are near enough to x_o for what q is
    /// made for; where a round holds out other rows than the one before, only those of the last one were never seen.
    fn first(&self) -> u32 {
        match (self.config().train.split, self.last.round) {
            (Split::Newest | Split::Pooled, last) => last,
            _ if self.is_truncated() => self.last.round,
            (Split::Fixed, _) if self.config().proposal == Proposal::Prior => 1,
            (Split::Fixed, last) => last / 2 + 1,
        }
    }

    /// True if q is learnt by maximum likelihood from proposals that are cut from the prior: it is the posterior in the
    /// innermost region alone, since rows of wider ones make q larger there than outside.
    fn is_truncated(&self) -> bool {
        let config = self.config();
        config.proposal == Proposal::Truncated && config.estimator.method == Method::Likelihood
    }

    /// True of rows whose law q is meant to have.
    fn is_asked(&self, row: &SimulatedRow) -> bool {
        let inside = row.round == 1 || self.proposal(row) != Proposal::Prior;
        !self.is_truncated() || self.last.round == 1 || inside
    }

    /// The last round after which a member went on with the weights of another, which had trained on its held-out rows; 0 if
    /// none.
    fn replaced(&self, member: usize) -> u32 {
        if self.config().train.start == Start::Fresh {
            return 0;
        }
        let diverged = |report: &&RoundReport| {
            let kept = sound(&report.members, |member| Some(member.stop_reason));
            report.round < self.last.round && kept.get(member).is_some_and(Option::is_none)
        };
        self.reports.iter().filter(diverged).map(|report| report.round).max().unwrap_or(0)
    }

    /// Members of the run that are part of the posterior: their numbers, and their places in it.
    fn members(&self) -> Vec<(usize, usize)> {
        if self.last.members.is_empty() {
            return vec![(0, 0)];
        }
        let kept = sound(&self.last.members, |member| Some(member.stop_reason));
        let kept = kept.iter().enumerate().filter(|(_, kept)| kept.is_some());
        kept.map(|(member, _)| member).enumerate().map(|(place, member)| (member, place)).collect()
    }

    /// The laws that these rows were proposed by, and each row with its own.
    fn laws(&self, rows: Vec<(&SimulatedRow, usize)>) -> Result<(Vec<Law>, Vec<HeldOutRow>)> {
        let mut laws = vec![Law::Prior];
        let mut known: Vec<((u32, Proposal), usize)> = Vec::new();
        let (mut found, mut noise) = (Vec::new(), SummaryNoise::of(self.config()));
        for (row, member) in rows {
            let proposal = self.proposal(row);
            let key = (row.round, proposal);
            let law = match known.iter().find(|(known, _)| *known == key) {
                _ if proposal == Proposal::Prior => 0,
                Some((_, law)) => *law,
                None => {
                    laws.push(self.law(row.round, proposal)?);
                    known.push((key, laws.len() - 1));
                    laws.len() - 1
                }
            };
            found.push(self.held_out_row(row, (Some(member), law), &mut noise)?);
        }
        Ok((laws, found))
    }

    /// Where a row's parameters come from: the prior's share is first, then what is drawn from a region.
    fn proposal(&self, row: &SimulatedRow) -> Proposal {
        let config = self.config();
        let simulations = self.reports[row.round as usize - 1].simulations;
        let of_prior = config.draws_of_prior(simulations);
        let flat = of_prior + (simulations - of_prior) / 2;
        match config.proposal {
            _ if row.round == 1 || (row.index as usize) < of_prior => Proposal::Prior,
            Proposal::Mixed if (row.index as usize) < flat => Proposal::Truncated,
            Proposal::Mixed => Proposal::Posterior,
            other => other,
        }
    }

    /// The law of a round's rows that the posterior of the round before proposed.
    fn law(&self, round: u32, proposal: Proposal) -> Result<Law> {
        law(self.run.model_after(round - 1)?, self.config(), (round, proposal), self.threads)
    }
}

/// The law by which a posterior proposes parameters of a round.
fn law(
    posterior: Posterior,
    config: &Config,
    (round, proposal): (u32, Proposal),
    threads: usize,
) -> Result<Law> {
    let posterior = Box::new(posterior);
    if proposal == Proposal::Posterior {
        return Ok(Law::Posterior { posterior, width: config.width });
    }
    let streams = SampleStreams::new(Streams::new(config.seed), Purpose::Parameters, round);
    let (share, draws) = (config.truncation.share, config.truncation.draws);
    let log_threshold = log_threshold(&posterior, share, draws, streams, threads)?;
    Ok(Law::Region { posterior, log_threshold })
}
