//! The data of a local test: two classes of θ that share each x, as observed and under the null hypothesis.

use crate::math::mean_and_deviation;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use rand::RngExt;
use rand_distr::StandardNormal;

/// Largest number of standard deviations that a network is shown, so that f32 does not overflow.
const FARTHEST: f64 = 1e6;

/// How data arise in which both classes have one law.
pub(super) enum Null<'a> {
    /// Each θ_i and the draw beside it change places with probability ½.
    Swaps(Rows<'a>),
    /// All θ are normal draws.
    Normal,
}

/// Pairs of true parameters and summaries, and what the parameters are told from.
pub(super) struct Pairs<'a> {
    theta: Rows<'a>,
    x: Rows<'a>,
    null: Null<'a>,
    scales: Scales,
}

/// Mean and deviation of every column: of θ first, then of x.
#[derive(Clone, Debug)]
pub(super) struct Scales {
    columns: Vec<(f64, f64)>,
    pub dim: usize,
}

impl Scales {
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Adds a row of the networks' input.
    pub(super) fn push(&self, theta: &[f64], x: &[f64], to: &mut Vec<f32>) {
        let values = theta.iter().chain(x).zip(&self.columns);
        to.extend(values.map(|(value, (mean, deviation))| {
            ((value - mean) / deviation).clamp(-FARTHEST, FARTHEST) as f32
        }));
    }
}

/// Rows of both classes: those of q, or of N(0, I), and then as many of the problem, in the order of their x.
pub(super) struct Classes {
    pub data: Vec<f32>,
    pub pairs: usize,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(theta: Rows<'a>, x: Rows<'a>, null: Null<'a>) -> Self {
        let columns = (0..theta.columns()).map(|column| match &null {
            // Of both classes, so that swaps change nothing.
            Null::Swaps(draws) => scale(theta.iter().chain(draws.iter()), column),
            Null::Normal => (0.0, 1.0),
        });
        let columns = columns.chain((0..x.columns()).map(|column| scale(x.iter(), column)));
        let scales = Scales { columns: columns.collect(), dim: theta.columns() };
        Self { theta, x, null, scales }
    }

    pub(super) fn scales(&self) -> &Scales {
        &self.scales
    }

    /// Trial 0 is the data as observed; all others are under the null hypothesis.
    pub(super) fn trial(&self, trial: usize, streams: &Streams) -> Classes {
        let (pairs, dim) = (self.theta.len(), self.theta.columns());
        let mut rng = streams.stream(Purpose::LocalNull, trial as u64, 0);
        let mut of_law = Vec::with_capacity(2 * pairs * self.scales.width());
        let mut of_problem = Vec::with_capacity(pairs * self.scales.width());
        for row in 0..pairs {
            let mut normal = || (0..dim).map(|_| rng.sample(StandardNormal)).collect::<Vec<f64>>();
            let (first, second) = match &self.null {
                Null::Normal => {
                    let first = normal();
                    (first, if trial == 0 { self.theta.row(row).to_vec() } else { normal() })
                }
                Null::Swaps(draws) => {
                    let (draw, truth) = (draws.row(row).to_vec(), self.theta.row(row).to_vec());
                    let swap = trial > 0 && rng.random::<bool>();
                    if swap { (truth, draw) } else { (draw, truth) }
                }
            };
            self.scales.push(&first, self.x.row(row), &mut of_law);
            self.scales.push(&second, self.x.row(row), &mut of_problem);
        }
        of_law.append(&mut of_problem);
        Classes { data: of_law, pairs }
    }
}

/// Mean and deviation of a column; deviation 1 if all its numbers are the same.
fn scale<'r>(rows: impl Iterator<Item = &'r [f64]>, column: usize) -> (f64, f64) {
    let values: Vec<f64> = rows.map(|row| row[column]).collect();
    let (mean, deviation) = mean_and_deviation(&values);
    (mean, if deviation > 0.0 { deviation } else { 1.0 })
}
