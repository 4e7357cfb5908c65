//! Exact posteriors, broken in one way each.

use super::exact::{Exact, mean};
use didyma::rng::SimulationStream;
use rand::RngExt;

/// Draws among which a tilted law chooses.
const CHOICE: usize = 20;

/// A fault of q.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    Width(f64),
    Shift(f64),
    Correlation(f64),
    LostMode,
    Leak(f64),
    Tilt,
    Summaries(f64),
    Prior,
    Proposal,
    Member(f64),
}

pub const FAULTS: [(&str, Fault); 15] = [
    ("exact", Fault::None),
    ("narrowed by half", Fault::Width(0.5)),
    ("0.8 times as wide", Fault::Width(0.8)),
    ("1.25 times as wide", Fault::Width(1.25)),
    ("twice as wide", Fault::Width(2.0)),
    ("shifted by one sd", Fault::Shift(1.0)),
    ("shifted by 0.3 sd", Fault::Shift(0.3)),
    ("two parameters correlated, 0.7", Fault::Correlation(0.7)),
    ("a mode lost (half of the law)", Fault::LostMode),
    ("a fifth of it leaked to the whole prior", Fault::Leak(0.2)),
    ("wrong prior: tilted by exp(θ₁ / sd)", Fault::Tilt),
    ("wrong x: off by one sd of its neighbourhood", Fault::Summaries(1.0)),
    ("untrained: the prior", Fault::Prior),
    ("half trained: half of it the proposal", Fault::Proposal),
    ("one of four members half as wide", Fault::Member(0.5)),
];

impl Fault {
    /// The fault of a row's law: a member has every fourth of them.
    pub fn of_row(self, row: usize) -> Self {
        match self {
            Self::Member(factor) if row.is_multiple_of(4) => Self::Width(factor),
            Self::Member(_) => Self::None,
            other => other,
        }
    }
}

/// A log-density up to a constant.
type LogDensity<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;

/// A law as draws, and log q up to a constant.
pub struct Law<'a> {
    pub draws: Vec<Vec<f64>>,
    pub log_density: LogDensity<'a>,
}

/// A map of parameters, or its inverse.
type Map<'a> = Box<dyn Fn(&[f64]) -> Vec<f64> + 'a>;

impl Exact {
    /// q(· | x) with a fault.
    pub fn law(
        &self,
        fault: Fault,
        x: &[f64],
        count: usize,
        rng: &mut SimulationStream,
    ) -> Law<'_> {
        let draws: Vec<Vec<f64>> = (0..count).map(|_| self.draw(x, rng)).collect();
        let centre = mean(&draws);
        match fault {
            Fault::None | Fault::Member(_) => {
                self.mapped(x, draws, [Box::new(<[f64]>::to_vec), Box::new(<[f64]>::to_vec)])
            }
            Fault::Width(factor) => self.mapped(x, draws, widened(centre, factor)),
            Fault::Shift(by) => self.mapped(x, draws, shifted(by * self.sd[0])),
            Fault::Correlation(rho) => self.mapped(x, draws, correlated(centre, &self.sd, rho)),
            Fault::LostMode => self.lost(x, &centre, count, rng),
            Fault::Leak(share) => {
                let mut any = vec![0.0; self.dim()];
                self.mixed(
                    x,
                    draws,
                    share,
                    rng,
                    move |rng| {
                        self.prior.sample(rng, &mut any);
                        any.clone()
                    },
                    |theta| self.prior.log_density(theta),
                )
            }
            Fault::Tilt => self.tilted(x, count, rng),
            Fault::Summaries(by) => {
                let off: Vec<f64> = x.iter().zip(&self.x_sd).map(|(x, sd)| x + by * sd).collect();
                self.law(Fault::None, &off, count, rng)
            }
            Fault::Prior => self.law(Fault::Leak(1.0), x, count, rng),
            Fault::Proposal => {
                let propose = |rng: &mut SimulationStream| self.propose(rng);
                self.mixed(x, draws, 0.5, rng, propose, |theta| self.log_proposal(theta))
            }
        }
    }

    /// Draws of the exact law, moved by a map of constant volume; the second map is its inverse.
    fn mapped<'a>(&'a self, x: &[f64], draws: Vec<Vec<f64>>, [map, back]: [Map<'a>; 2]) -> Law<'a> {
        let (draws, x) = (draws.iter().map(|theta| map(theta)).collect(), x.to_vec());
        Law { draws, log_density: Box::new(move |theta| (self.log_density)(&x, &back(theta))) }
    }

    /// A share of the draws is of another law.
    fn mixed<'a>(
        &'a self,
        x: &[f64],
        mut draws: Vec<Vec<f64>>,
        share: f64,
        rng: &mut SimulationStream,
        mut other: impl FnMut(&mut SimulationStream) -> Vec<f64>,
        log_other: impl Fn(&[f64]) -> f64 + 'a,
    ) -> Law<'a> {
        for theta in &mut draws {
            if rng.random::<f64>() < share {
                *theta = other(rng);
            }
        }
        let x = x.to_vec();
        let log_density = move |theta: &[f64]| {
            let (own, other) = ((self.log_density)(&x, theta), log_other(theta));
            ((1.0 - share) * own.exp() + share * other.exp()).ln()
        };
        Law { draws, log_density: Box::new(log_density) }
    }

    /// The half of the law on one side of its mean, along the diagonal.
    fn lost(&self, x: &[f64], centre: &[f64], count: usize, rng: &mut SimulationStream) -> Law<'_> {
        let middle = centre[0] + centre[1];
        let kept = move |theta: &[f64]| theta[0] + theta[1] >= middle;
        let draws = std::iter::repeat_with(|| self.draw(x, rng)).filter(|theta| kept(theta));
        let (draws, x) = (draws.take(count).collect(), x.to_vec());
        let log_density = move |theta: &[f64]| match kept(theta) {
            true => (self.log_density)(&x, theta),
            false => f64::NEG_INFINITY,
        };
        Law { draws, log_density: Box::new(log_density) }
    }

    /// The law times exp(θ₁ / sd), by choosing among draws.
    fn tilted(&self, x: &[f64], count: usize, rng: &mut SimulationStream) -> Law<'_> {
        let slope = 1.0 / self.sd[0];
        let draw = |rng: &mut SimulationStream| {
            let some: Vec<Vec<f64>> = (0..CHOICE).map(|_| self.draw(x, rng)).collect();
            let weights: Vec<f64> = some.iter().map(|theta| (slope * theta[0]).exp()).collect();
            let mut place = rng.random::<f64>() * weights.iter().sum::<f64>();
            let chosen = weights.iter().position(|weight| {
                place -= weight;
                place < 0.0
            });
            some[chosen.unwrap_or(0)].clone()
        };
        let (draws, x) = ((0..count).map(|_| draw(rng)).collect(), x.to_vec());
        let log_density = move |theta: &[f64]| (self.log_density)(&x, theta) + slope * theta[0];
        Law { draws, log_density: Box::new(log_density) }
    }
}

fn widened<'a>(centre: Vec<f64>, factor: f64) -> [Map<'a>; 2] {
    let by = move |factor: f64, centre: Vec<f64>| -> Map<'a> {
        Box::new(move |theta| {
            theta.iter().zip(&centre).map(|(t, c)| c + factor * (t - c)).collect()
        })
    };
    [by(factor, centre.clone()), by(1.0 / factor, centre)]
}

fn shifted<'a>(by: f64) -> [Map<'a>; 2] {
    let first =
        |by: f64| -> Map<'a> { Box::new(move |theta| [&[theta[0] + by], &theta[1..]].concat()) };
    [first(by), first(-by)]
}

/// The second parameter follows the first.
fn correlated<'a>(centre: Vec<f64>, sd: &[f64], rho: f64) -> [Map<'a>; 2] {
    let (slope, rest, own) = (rho * sd[1] / sd[0], (1.0 - rho * rho).sqrt(), centre.clone());
    let map = move |theta: &[f64]| {
        let mut moved = theta.to_vec();
        moved[1] = own[1] + slope * (theta[0] - own[0]) + rest * (theta[1] - own[1]);
        moved
    };
    let back = move |theta: &[f64]| {
        let mut moved = theta.to_vec();
        moved[1] = centre[1] + (theta[1] - centre[1] - slope * (theta[0] - centre[0])) / rest;
        moved
    };
    [Box::new(map), Box::new(back)]
}
