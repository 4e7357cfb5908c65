//! The spline, its inverse and its gradient.

use super::{EPSILON, Numbers, check};
use didyma::kernel::*;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

struct Spline {
    shape: SplineShape,
    logits: Numbers,
    x: Numbers,
}

impl Spline {
    /// Anything from a nearly straight spline to bins at the smallest size allowed.
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let bins = rng.random_range(2..14);
        let bound = *[3.0, 20.0].get(rng.random_range(0..2usize)).unwrap();
        let shape = SplineShape { bins, bound, logit_scale: 0.3 };
        let spread = 10f32.powf(rng.random_range(-1.0..2.0));
        let logits = Numbers::random(rng, shape.logits() * PANEL, spread);
        Self { shape, logits, x: Numbers::random(rng, PANEL, 1.1 * bound as f32) }
    }

    /// Value, log-derivative, and the saved softmax at x.
    fn run<F: Real>(&self, kernel: fn(SplineJob<'_, F>), logits: &[F], x: &[F]) -> [Vec<F>; 3] {
        let (mut logits, mut value) = (logits.to_vec(), x.to_vec());
        let mut log_det = vec![F::zero(); PANEL];
        (kernel)(SplineJob {
            shape: self.shape,
            rows: PANEL,
            logits: &mut logits,
            value: &mut value,
            log_det: &mut log_det,
        });
        [value, log_det, logits]
    }

    fn exact(&self, shift: f64) -> [Vec<f64>; 3] {
        let x: Vec<f64> = self.x.double.iter().map(|x| x + shift).collect();
        self.run(Kernels::<f64>::scalar().spline, &self.logits.double, &x)
    }

    /// Gradients of x and of all logits, for d_value = 1 and d_log_det = ½.
    fn gradient<F: Real>(&self, k: &Kernels<F>, logits: &[F], x: &[F]) -> (Vec<F>, Vec<F>) {
        let [_, _, mut saved] = self.run(k.spline, logits, x);
        let mut d_value = vec![F::one(); PANEL];
        (k.spline_gradient)(SplineGradientJob {
            shape: self.shape,
            rows: PANEL,
            logits: &mut saved,
            input: x,
            d_value: &mut d_value,
            d_log_det: &[F::of(0.5); PANEL],
        });
        (d_value, saved)
    }
}

/// How far the knots of a spline in f32 lie from the exact ones.
///
/// An extent 2B p has a relative error of at most 4 ε from the softmax (exp 2 ulp, its argument and
/// the quotient 1 each), together 8 ε B over all bins; each of the K partial sums rounds by ½ ε B. So
/// what a spline gives at x in f32 lies among what the exact one gives within this δ of x, up to a
/// few rounding errors of its own formula.
fn spline_tolerance(spline: &Spline) -> f64 {
    (0.5 * spline.shape.bins as f64 + 8.0) * EPSILON * spline.shape.bound
}

fn within(what: &str, found: f32, nearby: [f64; 3], rounding: f64) -> TestCaseResult {
    let low = nearby.into_iter().fold(f64::INFINITY, f64::min) - rounding;
    let high = nearby.into_iter().fold(f64::NEG_INFINITY, f64::max) + rounding;
    prop_assert!((low..=high).contains(&f64::from(found)), "{what}: {found} not in {low}..{high}");
    Ok(())
}

#[test]
fn splines() {
    check(|rng, kernels| {
        let spline = Spline::random(rng);
        let delta = spline_tolerance(&spline);
        let [value, log_det, _] =
            spline.run(kernels.spline, &spline.logits.single, &spline.x.single);
        let nearby = [-delta, 0.0, delta].map(|shift| spline.exact(shift));
        let bound = spline.shape.bound;
        for i in 0..PANEL {
            if (spline.x.double[i].abs() - bound).abs() < delta {
                continue; // the derivative jumps to 1 at the bound
            }
            let at = |column: usize| [0, 1, 2].map(|n: usize| nearby[n][column][i]);
            within("value", value[i], at(0), delta)?;
            // The slope h / w has a relative error of about 14 ε (6 for an extent near the smallest
            // allowed, whose logit is rounded too) and enters squared, in D and in E: 64 ε.
            within("log_det", log_det[i], at(1), 64.0 * EPSILON * (1.0 + at(1)[1].abs()))?;
        }
        Ok(())
    });
}

/// x' = f⁻¹(y) is right if the exact spline at x' ± δ brackets y: backward error at f32 precision,
/// however flat or steep the bin.
#[test]
fn spline_inverses() {
    check(|rng, kernels| {
        let mut spline = Spline::random(rng);
        let delta = spline_tolerance(&spline);
        let y = spline.x.single.clone();
        let [x, log_det, _] = spline.run(kernels.spline_inverse, &spline.logits.single, &y);
        prop_assert!(x.iter().chain(&log_det).all(|v| v.is_finite()));
        spline.x = Numbers::new(x);
        let nearby = [-delta, 0.0, delta].map(|shift| spline.exact(shift));
        for i in 0..PANEL {
            let at = |column: usize| [0, 1, 2].map(|n: usize| nearby[n][column][i]);
            within("y", y[i], at(0), delta)?;
            if (f64::from(y[i]).abs() - spline.shape.bound).abs() > delta {
                within("log_det", log_det[i], at(1), 64.0 * EPSILON * (1.0 + at(1)[1].abs()))?;
            }
        }
        Ok(())
    });
}

#[test]
fn spline_gradients() {
    check(|rng, kernels| {
        let spline = Spline::random(rng);
        let delta = spline_tolerance(&spline);
        let found = spline.gradient(kernels, &spline.logits.single, &spline.x.single);
        let nearby = [-delta, 0.0, delta].map(|shift| {
            let x: Vec<f64> = spline.x.double.iter().map(|x| x + shift).collect();
            spline.gradient(Kernels::scalar(), &spline.logits.double, &x)
        });
        let [_, _, softmax] = spline.exact(0.0);
        for i in 0..PANEL {
            let logits = || (0..spline.shape.logits()).map(|j| j * PANEL + i);
            // Every component is a sum of a dozen terms, each with the 14 ε of the slope, or fewer. The
            // terms are as large as the largest component, or as 1 / w, by which d_x is divided.
            let largest =
                logits().map(|j| nearby[1].1[j].abs()).fold(nearby[1].0[i].abs(), f64::max);
            let share = (0..spline.shape.bins).map(|j| softmax[j * PANEL + i]).fold(1.0, f64::min);
            let narrowest = 2.0 * spline.shape.bound * share.max(MIN_BIN);
            let rounding = 12.0 * 14.0 * EPSILON * largest.max(1.0 / narrowest);
            // A knot within δ of x: the derivative jumps there.
            let moved = (nearby[0].0[i] - nearby[2].0[i]).abs() > 0.1 * nearby[1].0[i].abs();
            if moved || (spline.x.double[i].abs() - spline.shape.bound).abs() < delta {
                continue;
            }
            within("d_x", found.0[i], [0, 1, 2].map(|n: usize| nearby[n].0[i]), rounding)?;
            for j in logits() {
                within("d_logit", found.1[j], [0, 1, 2].map(|n: usize| nearby[n].1[j]), rounding)?;
            }
        }
        Ok(())
    });
}

/// Tails, ends, knots and absurd logits: everything stays finite, forward, backward and inverse.
#[test]
fn splines_are_finite_everywhere() {
    for kernels in Kernels::available() {
        for scale in [0.0, 1.0, 1e2, 1e4, 1e6] {
            let shape = SplineShape { bins: 10, bound: 20.0, logit_scale: 0.14 };
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let logits = Numbers::random(&mut rng, shape.logits() * PANEL, scale);
            let special =
                [0.0, 20.0, -20.0, 19.999998, -19.999998, 1e-30, 1e10, -1e10, 1e30, 4.0, 0.04];
            let x = Numbers::new((0..PANEL).map(|i| special[i % special.len()]).collect());
            let spline = Spline { shape, logits, x };
            let (logits, x) = (&spline.logits.single, &spline.x.single);
            let forward = spline.run(kernels.spline, logits, x);
            let inverse = spline.run(kernels.spline_inverse, logits, x);
            let (d_x, d_logits) = spline.gradient(kernels, logits, x);
            let all = forward.iter().chain(&inverse).chain([&d_x, &d_logits]).flatten();
            assert!(all.clone().all(|v| v.is_finite()), "{} at scale {scale}", kernels.name);
        }
    }
}
