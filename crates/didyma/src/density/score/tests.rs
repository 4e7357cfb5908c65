//! The differential equation on laws whose score is known, and its divergence on networks.

use super::field::NetworkScore;
use super::ode::{Grid, Integrator, Point, Score, Way};
use super::{Moment, Output, ScoreConfig, ScoreModel};
use crate::network::kernel::PANEL;
use crate::rng::{Purpose, Streams};
use rand::RngExt;

/// A normal law with independent coordinates: at any time it is N(m μ, m² sd² + std²).
struct Normal {
    mean: [f64; 3],
    sd: [f64; 3],
}

const NORMAL: Normal = Normal { mean: [0.4, -0.7, 1.2], sd: [1.0, 0.3, 0.05] };

impl Normal {
    fn at(&self, moment: Moment, f: usize) -> (f64, f64) {
        (moment.mean * self.mean[f], (moment.mean * self.sd[f]).hypot(moment.std))
    }

    /// What the exact flow between the grid's ends makes of a row: (θ − mean)/sd of each coordinate is constant.
    fn carry(&self, grid: Grid, way: Way, row: &[f64]) -> (Vec<f64>, f64) {
        let (data, noise) = (grid.point(0).moment, grid.point(grid.len() - 1).moment);
        let (here, there) = if way == Way::ToData { (noise, data) } else { (data, noise) };
        let mut log_det = 0.0;
        let carried = row.iter().enumerate().map(|(f, v)| {
            let ((mean, sd), (to_mean, to_sd)) = (self.at(here, f), self.at(there, f));
            log_det += (to_sd / sd).ln();
            to_mean + to_sd * (v - mean) / sd
        });
        (carried.collect(), log_det)
    }
}

impl Score<f64> for Normal {
    fn dim(&self) -> usize {
        3
    }

    fn score(
        &mut self,
        at: Point,
        _: usize,
        theta: &[f64],
        score: &mut [f64],
        divergence: Option<&mut [f64]>,
    ) {
        let precision = |f| self.at(at.moment, f).1.powi(-2);
        for (i, (s, theta)) in score.iter_mut().zip(theta).enumerate() {
            *s = -(theta - self.at(at.moment, i / PANEL).0) * precision(i / PANEL);
        }
        if let Some(divergence) = divergence {
            divergence.fill(-(0..3).map(precision).sum::<f64>());
        }
    }
}

/// The largest errors over rows within two standard deviations: of the carried θ, in standard deviations there, and of
/// the log-density that follows.
fn errors(steps: usize, way: Way) -> (f64, f64) {
    let grid = Grid::new(steps);
    let mut integrator = Integrator::new(grid, 3, true);
    let here = grid.point(if way == Way::ToData { grid.len() - 1 } else { 0 }).moment;
    let there = grid.point(if way == Way::ToData { 0 } else { grid.len() - 1 }).moment;
    let from: Vec<f32> = (0..3 * 50)
        .map(|i| {
            let (mean, sd) = NORMAL.at(here, i % 3);
            (mean + sd * 2.0 * (0.7 * i as f64).sin()) as f32
        })
        .collect();
    let (mut row, mut of_theta, mut of_density) = (0, 0.0f64, 0.0f64);
    let mut field = NORMAL;
    integrator.carry(&mut field, way, &from, |found, log_det| {
        let exact: Vec<f64> = from[3 * row..][..3].iter().map(|&v| f64::from(v)).collect();
        let (exact, exact_log_det) = NORMAL.carry(grid, way, &exact);
        let log_normal = |row: &[f64]| -0.5 * row.iter().map(|b| b * b).sum::<f64>();
        for (f, (found, exact)) in found.iter().zip(&exact).enumerate() {
            of_theta = of_theta.max((found - exact).abs() / NORMAL.at(there, f).1);
        }
        let base = if way == Way::ToNoise { log_normal(found) - log_normal(&exact) } else { 0.0 };
        of_density = of_density.max((log_det - exact_log_det + base).abs());
        row += 1;
    });
    assert_eq!(row, 50);
    (of_theta, of_density)
}

/// A fourth-order method: from some number of steps on, twice as many make the error 16 times smaller, and with the next
/// order's share 8 to 32 times. It must have fallen far below what a density is used for at the default number.
#[test]
fn normal_laws_are_carried_exactly_to_fourth_order() {
    for way in [Way::ToData, Way::ToNoise] {
        let found = [8, 16, 32, 64, 128].map(|steps| errors(steps, way));
        found.iter().for_each(|(theta, density)| println!("{way:?} {theta:.1e} {density:.1e}"));
        for pair in found[2..].windows(2) {
            for ratio in [pair[0].0 / pair[1].0, pair[0].1 / pair[1].1] {
                assert!((8.0..32.0).contains(&ratio), "{way:?}: {found:?}");
            }
        }
        let default = errors(ScoreConfig::new(3, 1).ode_steps, way);
        assert!(default.0 < 1e-4 && default.1 < 3e-4, "{way:?}: {default:?}");
    }
}

fn network(output: Output, scaled: bool, dim: usize) -> (ScoreModel, Vec<f64>) {
    let shape = ScoreConfig::new(dim, 2);
    let config = ScoreConfig { units: 8, output, scaled, ode_steps: 64, ..shape };
    let model = ScoreModel::new(config).unwrap();
    let mut rng = Streams::new(5).stream(Purpose::Weights, 0, 0);
    // Twice the first weights, so that the score is far from linear.
    let params = model.initial_params(&mut rng).iter().map(|&p| 2.0 * f64::from(p)).collect();
    (model, params)
}

const X: [f32; 2] = [0.3, -0.8];

/// Where these rows are carried to, and log |det|.
fn carried(model: &ScoreModel, params: &[f64], steps: usize, base: &[f32]) -> Vec<(Vec<f64>, f64)> {
    let (grid, dim) = (Grid::new(steps), model.config().theta_dim);
    let mut field = NetworkScore::new(model, params, grid);
    field.set_x([&X[..]].into_iter());
    let mut found = Vec::new();
    Integrator::new(grid, dim, true)
        .carry(&mut field, Way::ToData, base, |z, log_det| found.push((z.to_vec(), log_det)));
    found
}

/// log |dz/dbase| by the trace against central differences of the map itself, with steps h = 2⁻⁹ and 2h extrapolated to
/// O(h⁴). Both are off by the method's error, which is at most that of half as many steps.
#[test]
fn the_trace_is_the_determinant_of_the_map() {
    for (output, scaled, dim) in [
        (Output::Direct, true, 3),
        (Output::Direct, false, 2),
        (Output::Energy, true, 3),
        (Output::Energy, false, 1),
    ] {
        let (model, params) = network(output, scaled, dim);
        let mut rng = Streams::new(6).stream(Purpose::Synthetic, 0, 0);
        // Multiples of h, so that base ± h is exact in f32.
        let base: Vec<f32> = (0..dim).map(|_| rng.random_range(-512..512) as f32 / 512.0).collect();
        let column = |j: usize| {
            let slope = |h: f32| {
                let moved = |h: f32| {
                    let mut base = base.clone();
                    base[j] += h;
                    carried(&model, &params, 128, &base).remove(0).0
                };
                let both = moved(h).into_iter().zip(moved(-h));
                both.map(|(a, b)| (a - b) / (2.0 * f64::from(h))).collect::<Vec<f64>>()
            };
            let (fine, coarse) = (slope(1.0 / 512.0), slope(1.0 / 256.0));
            fine.iter().zip(coarse).map(|(f, c)| (4.0 * f - c) / 3.0).collect::<Vec<f64>>()
        };
        let expected = log_abs_determinant((0..dim).map(column).collect());
        let log_det = |steps| carried(&model, &params, steps, &base)[0].1;
        let tolerance = (log_det(64) - log_det(128)).abs() + 1e-8;
        let found = log_det(128);
        assert!(tolerance < 1e-5, "{tolerance:e}");
        assert!(found.abs() > 0.1, "something to compare: {found}");
        assert!(
            (found - expected).abs() < tolerance,
            "{output:?} {found} {expected} {tolerance:e}"
        );
    }
}

/// By Gaussian elimination; the matrices here need no pivoting.
fn log_abs_determinant(mut a: Vec<Vec<f64>>) -> f64 {
    let mut sum = 0.0;
    for i in 0..a.len() {
        sum += a[i][i].abs().ln();
        for r in i + 1..a.len() {
            let factor = a[r][i] / a[i][i];
            let (above, below) = a.split_at_mut(r);
            below[0].iter_mut().zip(&above[i]).for_each(|(b, a)| *b -= factor * a);
        }
    }
    sum
}
