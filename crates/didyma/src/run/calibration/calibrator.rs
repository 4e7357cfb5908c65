//! A finished run whose calibration is made: by what there is, or by new simulations.

use super::{NewRows, NewSimulations, Parts, Spread};
use crate::error::{Error, Fault, Result};
use crate::evaluation::calibration::LEAST_ROWS;
use crate::inference::events::{Event, Observer};
use crate::inference::posterior::Posterior;
use crate::inference::simulations::gaps;
use crate::inference::{Assignment, SimulatedRow};
use crate::problem::simulator::Simulator;
use crate::rows::Rows;
use crate::run::{Findings, RunDir, error};
use std::ops::ControlFlow;
use std::path::Path;

/// What is asked of a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibrationRequest {
    /// Whether a local test is trained: a classifier's view of the posterior at the observation.
    pub local: bool,
    /// Whether conformal levels are made, which need new simulations with parameters that spread evenly.
    pub conformal: bool,
    /// Whether the run's own simulations are asked also where there are new ones.
    pub held_out: bool,
}

impl Default for CalibrationRequest {
    fn default() -> Self {
        Self { local: true, conformal: false, held_out: false }
    }
}

/// A finished run whose calibration is made. Nobody else works on the run until it is dropped.
#[derive(Debug)]
pub struct Calibrator {
    pub(in crate::run) findings: Findings,
    pub(in crate::run) posterior: Posterior,
    pub(in crate::run) request: CalibrationRequest,
    new: Option<NewRows>,
    /// True if simulations were made or merged, or were there and are asked for: the calibration is then made anew.
    pub(in crate::run) simulated: bool,
}

impl Calibrator {
    /// Opens a finished run. One of a score network is an error, since its densities at many summaries take too long.
    pub fn open(path: &Path, request: CalibrationRequest, threads: usize) -> Result<Self> {
        let run = RunDir::hold(path)?;
        let (done, rounds) = (run.rounds()?, run.manifest().config.rounds as usize);
        if done < rounds {
            return Err(error(path, Fault::Unfinished { done, rounds }));
        }
        let posterior = run.posterior()?;
        if posterior.model().flow().is_none() {
            let why =
                "flow for a calibration: a score network has no quick densities at many summaries";
            return Err(Error::setting("density", "score", why));
        }
        let new = NewRows::open(&run, &posterior, false)?;
        let findings = Findings::of(run, threads)?;
        Ok(Self { findings, posterior, request, new, simulated: false })
    }

    /// The run.
    pub fn run(&self) -> &RunDir {
        self.findings.run()
    }

    /// How new simulations spread: evenly for conformal levels, else as the next round's would.
    pub fn spread(&self) -> Spread {
        if self.request.conformal { Spread::Even } else { Spread::Next }
    }

    /// The round whose numbers new simulations have: one after the last.
    pub fn round(&self) -> u32 {
        self.round_of(self.spread())
    }

    fn round_of(&self, spread: Spread) -> u32 {
        let config = &self.run().manifest().config;
        spread.round(config, config.rounds + 1)
    }

    /// New simulations that are stored: done, and failed.
    pub fn stored(&self) -> Result<(usize, usize)> {
        let rows = self.rows(self.spread())?;
        Ok((rows.len(), rows.iter().filter(|row| row.x.is_err()).count()))
    }

    pub(in crate::run) fn rows(&self, spread: Spread) -> Result<Vec<SimulatedRow>> {
        self.new.as_ref().map_or(Ok(Vec::new()), |new| new.rows(self.round_of(spread)))
    }

    /// Where new simulations are stored; made if it is not there.
    pub(in crate::run) fn new_rows(&mut self) -> Result<&mut NewRows> {
        if self.new.is_none() {
            self.new = NewRows::open(self.findings.run(), &self.posterior, true)?;
        }
        Ok(self.new.as_mut().expect("it was made"))
    }

    /// Parameters of so many new simulations, row after row.
    pub fn theta(&self, count: usize) -> Result<Vec<f64>> {
        let (config, threads) = (&self.run().manifest().config, self.findings.threads());
        self.spread().theta(&self.posterior, config, (self.round(), count), threads)
    }

    /// Deletes failed new simulations, so that they are made again; returns how many there were.
    pub fn forget_failures(&mut self) -> Result<usize> {
        let round = self.round();
        self.new.as_mut().map_or(Ok(0), |new| new.forget_failures(round))
    }

    /// Makes those of so many new simulations that are not stored, and stores them as they come: whatever ends it, the same call
    /// continues, and ends with the same rows. They are those that the next round would make. Breaks if `observer` does.
    pub fn simulate(
        &mut self,
        simulator: &dyn Simulator,
        count: usize,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>> {
        let (round, threads) = (self.round(), self.findings.threads());
        let stored = self.rows(self.spread())?;
        let done: Vec<usize> = stored.iter().map(|row| row.index as usize).collect();
        let of_these = || stored.iter().filter(|row| (row.index as usize) < count);
        let failed = of_these().filter(|row| row.x.is_err()).count();
        let done: Vec<usize> = done.into_iter().filter(|index| *index < count).collect();
        let missing = gaps(&done, 0..count);
        self.simulated = true;
        if missing.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let theta = self.theta(count)?;
        let config = &self.run().manifest().config;
        let assignment = Assignment {
            simulator,
            seed: config.seed,
            round,
            theta: Rows::new("theta", &theta, self.posterior.dim())?,
            missing,
            done: (done.len(), failed),
            in_a_row: config.failures.in_a_row,
        };
        let mut both = (self.new_rows()?, observer);
        let (_, go_on) = assignment.run(threads, &mut both)?;
        Ok(go_on)
    }

    /// Calibrates, writes it down with the verdict that follows from it, and lets go of the run. A calibration that is there
    /// already is kept if nothing else is asked for.
    pub fn finish(self) -> Result<Findings> {
        let CalibrationRequest { local, conformal, held_out } = self.request;
        let path = self.run().path().to_owned();
        let round = self.run().manifest().config.rounds;
        let there = self.run().calibration(round).and_then(|stored| stored.ok());
        let whole = there.as_ref().is_some_and(|found| found.local.is_some() || !local);
        let calibration = match there {
            Some(found) if whole && !(self.simulated || conformal || held_out) => found,
            before => {
                let (new, parts) = (self.evidence()?, Parts { local, conformal });
                let (run, threads) = (self.findings.run(), self.findings.threads());
                let found = run.calibration_of(&self.posterior, (new.as_ref(), parts), threads);
                let mut found = found.map_err(|why| error(&path, Fault::Uncalibrated { why }))?;
                // Levels of before are of the same posterior; its local test, of the same simulations.
                if let Some(before) = before {
                    let same = (before.evidence, before.rows) == (found.evidence, found.rows);
                    found.local = found.local.or(before.local.filter(|_| same));
                    found.conformal = found.conformal.or(before.conformal);
                }
                found
            }
        };
        drop(self.new);
        self.findings.with_calibration(Ok(calibration))?.released(&path)
    }

    /// New simulations of the kind that is asked for, or of the other if there are enough; none if the run's own are asked.
    fn evidence(&self) -> Result<Option<NewSimulations>> {
        let CalibrationRequest { conformal, held_out, .. } = self.request;
        let of = |spread| -> Result<(NewSimulations, usize)> {
            let new = NewSimulations { spread, rows: self.rows(spread)? };
            let successes = new.successes();
            Ok((new, successes))
        };
        if held_out && !conformal && !self.simulated {
            return Ok(None);
        }
        let (asked, successes) = of(self.spread())?;
        if successes >= LEAST_ROWS {
            return Ok(Some(asked));
        }
        if conformal || self.simulated {
            let why =
                format!("it has {successes} new simulations of the {LEAST_ROWS} that are needed");
            return Err(error(self.run().path(), Fault::Uncalibrated { why }));
        }
        let (even, successes) = of(Spread::Even)?;
        Ok((successes >= LEAST_ROWS).then_some(even))
    }
}

/// Stores what it is told of.
impl Observer for NewRows {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        if let Event::Simulated { rows, .. } = event
            && !rows.is_empty()
        {
            self.store(rows)?;
        }
        Ok(ControlFlow::Continue(()))
    }
}
