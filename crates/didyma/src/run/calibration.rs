//! The calibration of a run, by simulations of its rounds that training never saw: no new ones are needed.

use super::{CALIBRATION, RunDir};
use crate::error::Result;
use crate::evaluation::calibration::{
    Calibration, Evidence, HeldOut, HeldOutRow, Law, share_outside,
};
use crate::inference::config::{Config, Meaning, Proposal, Split};
use crate::inference::failures::Failing;
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::inference::simulations::Records;
use crate::inference::split::split;
use crate::inference::truncation::log_threshold;
use crate::inference::{RoundReport, SimulatedRow, sound};
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::storage::files::read_inside;
use serde::{Deserialize, Serialize};

/// Held-out simulations that are asked, at most: the newest.
const MOST: usize = 800;

/// Draws of the posterior that are compared with where the last round simulated.
const OUTSIDE_DRAWS: usize = 2000;

/// A calibration, or the reason why there is none.
pub type Checked = std::result::Result<Calibration, String>;

/// A calibration as a file holds it, with the run that it is of.
#[derive(Serialize, Deserialize)]
struct Stored {
    run: String,
    round: u32,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Calibration(Box<Calibration>),
    NotChecked(String),
}

impl RunDir {
    /// Calibrates the posterior of the last finished round; the reason if that cannot be done. A function of the stored rows
    /// and models alone.
    pub fn calibrate(&self, posterior: &Posterior, threads: usize) -> Checked {
        let reports = self.reports().map_err(|error| error.to_string())?;
        let last = reports.last().ok_or("no round is finished")?;
        if reports.iter().any(|report| report.drawn_elsewhere) {
            return Err("parameters were drawn elsewhere, by a law that is not known".to_owned());
        }
        if posterior.model().flow().is_none() {
            return Err("a score network has no quick densities at many summaries".to_owned());
        }
        let known = Known { run: self, posterior, reports: &reports, last, threads };
        known.calibration().map_err(|error| error.to_string())
    }

    /// Writes it down beside the run.
    pub(super) fn save_calibration(&self, round: u32, checked: &Checked) -> Result<()> {
        let outcome = match checked.clone() {
            Ok(calibration) => Outcome::Calibration(Box::new(calibration)),
            Err(why) => Outcome::NotChecked(why),
        };
        let stored = Stored { run: self.identity(), round, outcome };
        let json = serde_json::to_string(&stored).expect("numbers and strings");
        self.write(CALIBRATION, json.as_bytes())
    }

    /// What was written down of this round, if anything was.
    pub fn calibration(&self, round: u32) -> Option<Checked> {
        let bytes = read_inside(&self.file(CALIBRATION)).ok()?;
        let stored: Stored = serde_json::from_slice(&bytes).ok()?;
        (stored.run == self.identity() && stored.round == round).then_some(match stored.outcome {
            Outcome::Calibration(calibration) => Ok(*calibration),
            Outcome::NotChecked(why) => Err(why),
        })
    }
}

/// A run whose rows and proposals are known.
struct Known<'a> {
    run: &'a RunDir,
    posterior: &'a Posterior,
    reports: &'a [RoundReport],
    last: &'a RoundReport,
    threads: usize,
}

impl Known<'_> {
    fn config(&self) -> &Config {
        &self.run.manifest().config
    }

    fn calibration(&self) -> Result<Calibration> {
        let (config, last) = (self.config(), self.last.round);
        let mut rows = self.run.rows()?;
        rows.retain(|row| row.round <= last);
        let dims = (self.posterior.dim(), self.posterior.observation().len());
        let records = Records::new(dims, config.simulations, rows.clone());
        let failing = Failing::new(self.posterior.prior(), &records, config, last, self.threads)?;
        let missing = config.failures.meaning == Meaning::Missing;
        let success = failing.as_ref().and_then(Failing::success).filter(|_| missing);
        let held_out = self.held_out(&rows, &records)?;
        let (laws, rows) = self.laws(held_out)?;
        let first = rows.iter().map(|row| row.round).min().unwrap_or(last);
        let held_out = HeldOut { posterior: self.posterior, laws, rows, success };
        let (streams, evidence) = (Streams::new(config.seed), Evidence::HeldOut(first, last));
        let found = Calibration::of(&held_out, evidence, &streams, self.threads)?;
        Ok(Calibration { outside: self.outside(&records)?, ..found })
    }

    /// Share of the posterior where the last round has no simulations; none where it drew from the prior.
    fn outside(&self, records: &Records) -> Result<Option<f64>> {
        let last = self.last.round;
        if last == 1 || self.config().proposal == Proposal::Prior {
            return Ok(None);
        }
        let law = self.law(last, Proposal::Posterior)?;
        let (simulated, dim) = (records.theta(last), self.posterior.dim());
        let of_prior = self.config().draws_of_prior(simulated.len() / dim);
        let proposed = Rows::new("theta", &simulated[of_prior * dim..], dim)?;
        let streams = Streams::new(self.config().seed);
        let from = SampleStreams::new(streams, Purpose::HeldOut, last);
        let drawn = self.posterior.draw(OUTSIDE_DRAWS, from, self.threads)?.theta;
        let proposed = law.log_density(proposed)?;
        let drawn = law.log_density(Rows::new("theta", &drawn, dim)?)?;
        Ok(proposed.zip(drawn).map(|(proposed, drawn)| share_outside(proposed, &drawn)))
    }

    /// The newest simulations that some member never saw, with its place in the posterior.
    fn held_out<'r>(
        &self,
        rows: &'r [SimulatedRow],
        records: &Records,
    ) -> Result<Vec<(&'r SimulatedRow, usize)>> {
        let (config, last) = (self.config(), self.last.round);
        let mut successes: Vec<&SimulatedRow> = rows.iter().filter(|row| row.x.is_ok()).collect();
        successes.sort_by_key(|row| (row.round, row.index));
        let streams = Streams::new(config.seed);
        let mut found = Vec::new();
        for (member, place) in self.members() {
            let split = split(records, config, last, streams.of_member(member as u32))?;
            let of_member = split.held_out.iter().map(|&row| (successes[row as usize], place));
            found.extend(of_member.filter(|(row, _)| row.round >= self.first()));
        }
        found.sort_by_key(|(row, member)| (std::cmp::Reverse(row.round), row.index, *member));
        found.truncate(MOST);
        Ok(found)
    }

    /// The earliest round whose held-out rows count. Those of the second half of a run are near enough to x_o for what q is
    /// made for; where a round holds out other rows than the one before, only those of the last one were never seen.
    fn first(&self) -> u32 {
        match (self.config().train.split, self.last.round) {
            (Split::Newest | Split::Pooled, last) => last,
            (Split::Fixed, _) if self.config().proposal == Proposal::Prior => 1,
            (Split::Fixed, last) => last / 2 + 1,
        }
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
        let mut found = Vec::new();
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
            let (theta, x) = (row.theta.clone(), row.x.clone().unwrap_or_default());
            found.push(HeldOutRow { round: row.round, theta, x, member: Some(member), law });
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
        let config = self.config();
        let posterior = Box::new(self.run.model_after(round - 1)?);
        if proposal == Proposal::Posterior {
            return Ok(Law::Posterior { posterior, width: config.width });
        }
        let streams = SampleStreams::new(Streams::new(config.seed), Purpose::Parameters, round);
        let (share, draws) = (config.truncation.share, config.truncation.draws);
        let log_threshold = log_threshold(&posterior, share, draws, streams, self.threads)?;
        Ok(Law::Region { posterior, log_threshold })
    }
}
