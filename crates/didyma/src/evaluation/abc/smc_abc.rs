//! Sequential Monte Carlo approximate Bayesian computation, adaptive (Beaumont, Cornuet, Marin and Robert, 2009).
//!
//! Generation t holds P particles whose simulations came within ε_t of the observation, with weights that make them a
//! sample of p(θ | ρ ≤ ε_t). The next one draws a particle by its weight, moves it by a Gaussian with twice the weighted
//! covariance, simulates, and keeps what comes within ε_{t+1}, the median distance of the generation before:
//!
//! ```text
//! w_i ∝ p(θ_i) / Σ_j w_j N(θ_i; θ_j, Σ_t)
//! ```

use super::adjust::regression_adjust;
use super::population::{Accepted, Law, Population};
use crate::error::{Error, Result};
use crate::parallel;
use crate::problem::prior::Prior;
use crate::problem::simulator::{Simulator, simulate_once};
use crate::rng::{SimulationStream, Streams};
use rand::RngExt;
use std::ops::ControlFlow;

/// Attempts of a piece of work, and of a batch after which the particles are counted, at most.
const PIECE: usize = 256;
const LARGEST_BATCH: usize = 1 << 20;

/// The problem and how to go about it.
pub struct SmcAbc<'a> {
    /// The prior.
    pub prior: &'a Prior,
    /// The simulator.
    pub simulator: &'a dyn Simulator,
    /// x_o.
    pub observation: &'a [f64],
    /// Where the posterior can be, if that is known to be less than the prior's support.
    pub support: Option<&'a Prior>,
    /// s: distances are ‖(x − x_o)/s‖.
    pub scale: &'a [f64],
    /// P.
    pub particles: usize,
    /// Simulations at most; the generation under way when they are spent is given up.
    pub simulations: u64,
    /// The tolerance at which to stop, if it is ever reached.
    pub tolerance: f64,
    /// The share of simulations accepted below which it stops; 0.005 is usual.
    pub acceptance: f64,
    /// Threads.
    pub threads: usize,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct SmcAbcResult {
    /// Particles of the last generation, row after row.
    pub theta: Vec<f64>,
    /// Their summaries.
    pub x: Vec<f64>,
    /// Their distances.
    pub distance: Vec<f64>,
    /// Their weights, which sum to 1.
    pub weights: Vec<f64>,
    /// All generations that were finished.
    pub generations: Vec<Generation>,
    /// Simulations in all, those of a generation given up included.
    pub simulations: u64,
    /// Why it ended.
    pub reason: StopReason,
}

/// A generation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Generation {
    /// ε.
    pub tolerance: f64,
    /// Simulations so far.
    pub simulations: u64,
    /// Particles so far.
    pub particles: usize,
    /// Particles per simulation of this generation.
    pub acceptance: f64,
    /// Effective sample size, 1 / Σ w²; 0 while the generation is under way.
    pub effective: f64,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The simulations are spent.
    Budget,
    /// Too few simulations were accepted.
    Acceptance,
    /// Half of the particles have the same distance: no smaller tolerance halves them.
    Ties,
    /// The tolerance asked for is reached.
    Tolerance,
    /// The observer asked for it.
    Stopped,
}

impl SmcAbc<'_> {
    /// Runs generation after generation; the result does not depend on the number of threads.
    pub fn run(
        &self,
        streams: &Streams,
        observe: &mut dyn FnMut(&Generation) -> ControlFlow<()>,
    ) -> Result<SmcAbcResult> {
        self.check()?;
        let mut spent = 0;
        let pilot = self.attempts(
            &Law::prior(self.prior, streams, 0),
            0..5 * self.particles,
            f64::INFINITY,
        );
        spent += 5 * self.particles as u64;
        if pilot.len() < 2 * self.particles {
            let failed =
                format!("such that at least two in five succeed: {} of {spent} did", pilot.len());
            return Err(Error::setting("simulator", "failing", failed));
        }
        let mut distances: Vec<f64> = pilot.iter().map(|a| a.distance).collect();
        let mut tolerance = median(&mut distances);
        let kept = pilot.into_iter().filter(|a| a.distance <= tolerance).take(self.particles);
        let mut population = Population::new(self, kept.collect(), None)?;
        let acceptance = self.particles as f64 / spent as f64;
        let mut generations = vec![population.generation(tolerance, spent, acceptance)];
        let reason = loop {
            let last = generations[generations.len() - 1];
            if observe(&last).is_break() {
                break StopReason::Stopped;
            }
            if last.acceptance < self.acceptance {
                break StopReason::Acceptance;
            }
            if tolerance <= self.tolerance {
                break StopReason::Tolerance;
            }
            let next = median(&mut population.distance.clone()).max(self.tolerance);
            if next >= tolerance {
                break StopReason::Ties;
            }
            let law = Law::moved(self.prior, &population, streams, generations.len() as u64);
            match self.generation(&law, next, &mut spent, observe) {
                Ok(accepted) => {
                    let before = last.simulations;
                    population = Population::new(self, accepted, Some(&population))?;
                    tolerance = next;
                    let acceptance = self.particles as f64 / (spent - before) as f64;
                    generations.push(population.generation(tolerance, spent, acceptance));
                }
                Err(reason) => break reason,
            }
        };
        self.expect_no_lack()?;
        let Population { theta, x, distance, weights, .. } = population;
        Ok(SmcAbcResult { theta, x, distance, weights, generations, simulations: spent, reason })
    }

    /// Plain rejection instead: simulates at draws of the prior (inside the support, if it is known) until the
    /// simulations are spent, and keeps the P nearest. No weights, and so no weight that dominates.
    pub fn reject(
        &self,
        streams: &Streams,
        observe: &mut dyn FnMut(&Generation) -> ControlFlow<()>,
    ) -> Result<SmcAbcResult> {
        self.check()?;
        let law = Law::prior(self.support.unwrap_or(self.prior), streams, 0);
        let (mut nearest, mut spent): (Vec<Accepted>, u64) = (Vec::new(), 0);
        let mut now = Generation { tolerance: f64::INFINITY, ..Generation::default() };
        let reason = loop {
            let left = (self.simulations - spent).min(LARGEST_BATCH as u64);
            if left == 0 {
                break StopReason::Budget;
            }
            let numbers = spent as usize..(spent + left) as usize;
            nearest.extend(self.attempts(&law, numbers, now.tolerance));
            spent += left;
            if nearest.len() > self.particles {
                nearest.select_nth_unstable_by(self.particles, |a, b| {
                    a.distance.total_cmp(&b.distance)
                });
                nearest.truncate(self.particles);
                now.tolerance = nearest.iter().map(|a| a.distance).fold(0.0, f64::max);
            }
            now.simulations = spent;
            now.particles = nearest.len();
            now.acceptance = nearest.len() as f64 / spent as f64;
            if observe(&now).is_break() || self.simulator.lack().is_some() {
                break StopReason::Stopped;
            }
        };
        self.expect_no_lack()?;
        now.effective = nearest.len() as f64;
        Ok(SmcAbcResult {
            theta: nearest.iter().flat_map(|a| a.theta.iter().copied()).collect(),
            x: nearest.iter().flat_map(|a| a.x.iter().copied()).collect(),
            distance: nearest.iter().map(|a| a.distance).collect(),
            weights: vec![1.0 / now.effective; nearest.len()],
            generations: vec![now],
            simulations: spent,
            reason,
        })
    }

    fn check(&self) -> Result<()> {
        let (dim, x_dim) = (self.prior.dim(), self.simulator.x_dim());
        for (name, found, expected) in [
            ("prior", dim, self.simulator.theta_dim()),
            ("observation", self.observation.len(), x_dim),
            ("scale", self.scale.len(), x_dim),
        ] {
            if found != expected {
                let (unit, why) = ("numbers", "those of the simulator");
                return Err(Error::Shape { name, unit, found, expected, why });
            }
        }
        if let Some(scale) = self.scale.iter().find(|s| !(**s > 0.0 && s.is_finite())) {
            return Err(Error::setting("scale", scale, "above 0 for every summary"));
        }
        let least = 10 * (dim + x_dim);
        if !(least..=100_000).contains(&self.particles) {
            let why = format!("between {least} (ten for each parameter and summary) and 100000");
            return Err(Error::setting("particles", self.particles, why));
        }
        if self.simulations < 6 * self.particles as u64 {
            let why = format!("at least {}, six for each particle", 6 * self.particles);
            return Err(Error::setting("simulations", self.simulations, why));
        }
        if !(0.0..=f64::MAX).contains(&self.tolerance) {
            return Err(Error::setting("tolerance", self.tolerance, "0 or above"));
        }
        if !(0.0..1.0).contains(&self.acceptance) {
            return Err(Error::setting("acceptance", self.acceptance, "from 0 on and below 1"));
        }
        Ok(())
    }

    /// An error if simulations are missing since this process lacked something: the nearest may be among them.
    fn expect_no_lack(&self) -> Result<()> {
        self.simulator.lack().map_or(Ok(()), Err)
    }

    /// Attempts batch after batch until there are P particles, the first ones in order.
    fn generation(
        &self,
        law: &Law,
        tolerance: f64,
        spent: &mut u64,
        observe: &mut dyn FnMut(&Generation) -> ControlFlow<()>,
    ) -> std::result::Result<Vec<Accepted>, StopReason> {
        let (mut accepted, mut next, start) = (Vec::new(), 0, *spent);
        while accepted.len() < self.particles {
            let left = self.simulations.saturating_sub(*spent) as usize;
            if left == 0 {
                return Err(StopReason::Budget);
            }
            // As many as are likely to be enough; a batch is the same whatever the number of threads.
            let rate = (accepted.len() + 1) as f64 / (next + 1) as f64;
            let wanted = (1.1 * (self.particles - accepted.len()) as f64 / rate) as usize;
            let batch = wanted.clamp(self.particles, LARGEST_BATCH).min(left);
            accepted.extend(self.attempts(law, next..next + batch, tolerance));
            next += batch;
            *spent += batch as u64;
            let (particles, simulations) = (accepted.len().min(self.particles), *spent);
            let acceptance = accepted.len() as f64 / (*spent - start) as f64;
            let now = Generation { tolerance, simulations, particles, acceptance, effective: 0.0 };
            if observe(&now).is_break() || self.simulator.lack().is_some() {
                return Err(StopReason::Stopped);
            }
        }
        accepted.truncate(self.particles);
        Ok(accepted)
    }

    /// Those of the attempts with these numbers that come within the tolerance, in order.
    fn attempts(
        &self,
        law: &Law,
        numbers: std::ops::Range<usize>,
        tolerance: f64,
    ) -> Vec<Accepted> {
        let pieces = parallel::map(numbers.len().div_ceil(PIECE), self.threads, |piece| {
            let first = numbers.start + piece * PIECE;
            let numbers = first..numbers.end.min(first + PIECE);
            numbers
                .filter_map(|number| self.attempt(law, number as u64, tolerance))
                .collect::<Vec<_>>()
        });
        pieces.into_iter().flatten().collect()
    }

    fn attempt(&self, law: &Law, number: u64, tolerance: f64) -> Option<Accepted> {
        let mut theta = vec![0.0; self.prior.dim()];
        let mut x = vec![0.0; self.simulator.x_dim()];
        law.draw(&mut law.proposals.stream(number), &mut theta);
        let mut rng = law.simulations.stream(number);
        simulate_once(self.simulator, &theta, &mut rng, &mut x).ok()?;
        let distance = self.distance(&x);
        (distance <= tolerance).then_some(Accepted { theta, x, distance })
    }

    fn distance(&self, x: &[f64]) -> f64 {
        let parts = x.iter().zip(self.observation).zip(self.scale);
        parts.map(|((x, o), s)| ((x - o) / s).powi(2)).sum::<f64>().sqrt()
    }
}

impl SmcAbcResult {
    /// `count` equally weighted draws: the particles resampled, after regression adjustment if asked for.
    pub fn sample(
        &self,
        abc: &SmcAbc,
        count: usize,
        adjust: bool,
        rng: &mut SimulationStream,
    ) -> Result<Vec<f64>> {
        let dim = abc.prior.dim();
        let (theta, mut weights) = match adjust {
            true => regression_adjust(self, abc)?,
            false => (self.theta.clone(), self.weights.clone()),
        };
        // A particle that the line moved out of the support is no draw of the posterior.
        for (theta, weight) in theta.chunks_exact(dim).zip(&mut weights) {
            if !abc.support.unwrap_or(abc.prior).contains(theta) {
                *weight = 0.0;
            }
        }
        let total: f64 = weights.iter().sum();
        if total <= 0.0 {
            let why =
                "such that some particle stays inside the support: simulate more, or do not adjust";
            return Err(Error::setting("simulations", abc.simulations, why));
        }
        // Systematic resampling: each particle as often as its weight says, up to rounding.
        let start: f64 = rng.random();
        let (mut rows, mut sum, mut particle) = (Vec::with_capacity(count * dim), weights[0], 0);
        for i in 0..count {
            let place = (i as f64 + start) / count as f64 * total;
            while sum < place && particle + 1 < weights.len() {
                particle += 1;
                sum += weights[particle];
            }
            rows.push(particle);
        }
        // In random order, so that any part of the rows is a sample, too.
        rand::seq::SliceRandom::shuffle(&mut rows[..], rng);
        let row = |&particle: &usize| theta[particle * dim..][..dim].iter().copied();
        Ok(rows.iter().flat_map(row).collect())
    }
}

fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}
