//! A task whose posterior is exact at any x, with a proposal around that at x_o.

use didyma::Prior;
use didyma::rng::{Purpose, SimulationStream, Streams};
use didyma::tasks::{self, Density, LogPosterior, Reference, Sampler, Task};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;

/// Draws by which the posterior at x_o is known.
const PILOT: usize = 2000;

/// A task with an exact posterior.
pub struct Exact {
    pub name: &'static str,
    pub prior: Prior,
    pub x_o: Vec<f64>,
    /// Standard deviations of the posterior at x_o, and of x among simulations of the proposal.
    pub sd: Vec<f64>,
    pub x_sd: Vec<f64>,
    pub log_density: LogPosterior,
    sample: Sampler,
    simulate: fn(&[f64], &mut SimulationStream, &mut [f64]),
    /// Centres of the proposal's normal kernels, and their width in `sd`.
    centres: Vec<Vec<f64>>,
    kernel: f64,
}

pub fn mean(rows: &[Vec<f64>]) -> Vec<f64> {
    let of = |i: usize| rows.iter().map(|row| row[i]).sum::<f64>() / rows.len() as f64;
    (0..rows[0].len()).map(of).collect()
}

fn deviation(rows: &[Vec<f64>]) -> Vec<f64> {
    let centre = mean(rows);
    let of = |i: usize| rows.iter().map(|row| (row[i] - centre[i]).powi(2)).sum::<f64>();
    (0..centre.len()).map(|i| (of(i) / (rows.len() - 1) as f64).sqrt()).collect()
}

impl Exact {
    /// Its proposal is one normal law, or many narrow ones at draws of the posterior.
    pub fn new(name: &'static str, centres: usize, kernel: f64) -> Self {
        let task = Task::named(name).expect("a task of the library");
        let (Reference::Exact(sample), Density::Normalised(log_density)) =
            (task.reference, task.density)
        else {
            panic!("{name} has no exact posterior");
        };
        let simulate = if name == "two-moons" { tasks::two_moons } else { tasks::gaussian_linear };
        let (prior, x_o) = (task.problem.prior().clone(), task.problem.observation().to_vec());
        let (sd, x_sd) = (vec![1.0; prior.dim()], vec![1.0; x_o.len()]);
        let mut exact = Self {
            name,
            prior,
            x_o,
            sd,
            x_sd,
            log_density,
            sample,
            simulate,
            centres: Vec::new(),
            kernel,
        };
        let mut rng = Streams::new(1).simulations(Purpose::Synthetic, 0).stream(0);
        let draws: Vec<Vec<f64>> = (0..PILOT).map(|_| exact.draw(&exact.x_o, &mut rng)).collect();
        exact.sd = deviation(&draws);
        exact.centres = if centres == 1 { vec![mean(&draws)] } else { draws[..centres].to_vec() };
        let x: Vec<Vec<f64>> = (0..PILOT).map(|_| exact.simulation(&mut rng).1).collect();
        exact.x_sd = deviation(&x);
        exact
    }

    pub fn dim(&self) -> usize {
        self.sd.len()
    }

    pub fn names(&self) -> Vec<String> {
        self.prior.names().map(str::to_owned).collect()
    }

    /// A draw of the exact posterior.
    pub fn draw(&self, x: &[f64], rng: &mut SimulationStream) -> Vec<f64> {
        let mut theta = vec![0.0; self.sd.len()];
        (self.sample)(x, rng, &mut theta);
        theta
    }

    /// A draw of the proposal.
    pub fn propose(&self, rng: &mut SimulationStream) -> Vec<f64> {
        loop {
            let centre = &self.centres[rng.random_range(0..self.centres.len())];
            let mut normal = || -> f64 { StandardNormal.sample(rng) };
            let around = centre.iter().zip(&self.sd).map(|(c, sd)| c + self.kernel * sd * normal());
            let theta: Vec<f64> = around.collect();
            if self.prior.contains(&theta) {
                return theta;
            }
        }
    }

    /// Parameters of the proposal, and their x.
    pub fn simulation(&self, rng: &mut SimulationStream) -> (Vec<f64>, Vec<f64>) {
        let theta = self.propose(rng);
        let mut x = vec![0.0; self.x_o.len()];
        (self.simulate)(&theta, rng, &mut x);
        (theta, x)
    }

    /// log p̃ − log p, but for what the prior cuts off.
    pub fn log_weight(&self, theta: &[f64]) -> f64 {
        match self.prior.contains(theta) {
            true => self.log_proposal(theta) - self.prior.log_density(theta),
            false => f64::NEG_INFINITY,
        }
    }

    /// log p̃, but for what the prior cuts off.
    pub fn log_proposal(&self, theta: &[f64]) -> f64 {
        let of = |centre: &Vec<f64>| -> f64 {
            let units = theta.iter().zip(centre).zip(&self.sd);
            units.map(|((t, c), sd)| -0.5 * ((t - c) / (self.kernel * sd)).powi(2)).sum()
        };
        let terms: Vec<f64> = self.centres.iter().map(of).collect();
        let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = terms.iter().map(|term| (term - top).exp()).sum();
        let units: f64 = self.sd.iter().map(|sd| (self.kernel * sd * TAU.sqrt()).ln()).sum();
        top + (sum / terms.len() as f64).ln() - units
    }
}
