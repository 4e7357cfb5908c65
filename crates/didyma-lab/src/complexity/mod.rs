//! What an error of ε costs: nested sampling, multilevel Monte Carlo and random levels, realised.
//!
//! # Theory
//! An estimate of the loss L(φ) with bias β and variance V has the mean squared error β² + V. With
//! E ψ_M = L − b/M, E Δψ_l = b/M_l, Var Δψ_l = V_l and C_l pairs for a term of level l, the sizes of least
//! cost at which it is ε² are
//!
//! ```text
//! nested   N = Var ψ_M / (ε² − b²/M²),  M → √3 b/ε  (bias² = ε²/3)         cost ∝ ε^(−3)
//! mlmc     N_l = √(V_l/C_l) Σ √(V_k C_k) / (ε² − b²/M_top²)                cost ∝ ε^(−2), if V_l falls faster than 1/M_l
//! ru, rr   N = Var / ε²                                                   cost ∝ ε^(−2)
//! ```
//!
//! For nested sampling, N (M + 1) ∝ M/(ε² − b²/M²) is least where M² = 3b²/ε². M is any integer, not a power
//! of two; and with integers anyway, N takes what error the bias leaves, so that ε² is met at every ε and
//! rounding shows in the cost by a second-order amount only. The levels of mlmc are powers of two: on a ladder
//! of ratio √2 its top level rises at every second step.
//!
//! # What is measured
//! A pilot with its own random streams measures b, variances and costs. Then, for each ε, every scheme is run
//! with the sizes that follow, many times; the points of the report are the *realised* mean squared error
//! about the exact loss, and the realised pairs.
//!
//! # The slope and its error
//! Of the two coordinates of a point the cost is all but exact, while ln RMSE has the standard error
//! τ = s.e.(MSE)/(2 MSE), where s.e.(MSE) is that of a mean of squared errors over independent replicates. So
//! ln RMSE is regressed on ln cost, β ± s(β) with weights 1/(τ² + β² κ²), κ the relative standard error of the
//! cost (β from theory there, where it matters little): that has no attenuation, which the regression of ln
//! cost on the noisier ln RMSE would have. The exponent is 1/β, and its standard error s(β)/β². Replicates of
//! different points come from different streams, so that points are independent.

mod pilot;
mod scheme;

pub use scheme::{Scheme, Sizes};

use crate::toy::Toy;
use didyma::math::{Estimate, Moments, line};
use didyma::rng::{Purpose, Streams};
use didyma::{Error, Named, Result, parallel};
use pilot::Pilot;
use serde::Serialize;

/// Rounds of the streams of the pilot; the index is the summand's.
const PILOT: u64 = 1 << 32;
/// Rounds of the streams of the points: this + 256 · scheme + place on the ladder; the index is the replicate's.
const POINTS: u64 = PILOT + 256;

/// How to measure.
///
/// ```
/// use didyma::rng::Streams;
/// use didyma_lab::{ComplexityStudy, Scheme, Toy};
///
/// let toy = Toy::named("benign").unwrap();
/// let study = ComplexityStudy { epsilons: vec![0.02, 0.014, 0.01], ..ComplexityStudy::quick(toy) };
/// let report = study.run(Streams::new(1), 2)?;
/// let nested = &report.schemes[0];
/// assert_eq!(nested.scheme, Scheme::Nested);
/// // An error half as large costs more than twice as much.
/// assert!(nested.points[2].cost.mean > 2.0 * nested.points[0].cost.mean);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ComplexityStudy {
    /// The problem, with the φ at which its loss is estimated.
    pub toy: Toy,
    /// The errors asked for.
    pub epsilons: Vec<f64>,
    /// Replicates of a point, at least.
    pub least: usize,
    /// Replicates of a point, at most: as many as `pairs` pay for.
    pub most: usize,
    /// Pairs of all replicates of a point; more if that is fewer than `least` of them.
    pub pairs: usize,
    /// Pairs of the pilot, for each of its summands.
    pub pilot: usize,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComplexityReport {
    /// Name of the toy.
    pub toy: &'static str,
    /// Its exact loss.
    pub loss: f64,
    /// Scheme by scheme.
    pub schemes: Vec<SchemeCost>,
}

/// A scheme's cost as a function of its error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SchemeCost {
    /// The scheme.
    pub scheme: Scheme,
    /// One for each ε.
    pub points: Vec<CostPoint>,
    /// Exponent of the realised cost in the realised error.
    pub exponent: Estimate,
    /// The exponent over the same ladder by the pilot's moments: where it is not that of theory, the ladder is not yet
    /// asymptotic.
    pub predicted: f64,
    /// χ² of the fit per degree of freedom: about 1 if the points lie on a line.
    pub scatter: f64,
}

/// Realised error and cost at one ε.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostPoint {
    /// The error asked for.
    pub epsilon: f64,
    /// What was drawn.
    pub sizes: Sizes,
    /// Replicates.
    pub replicates: usize,
    /// (θ, x) pairs of a replicate.
    pub cost: Estimate,
    /// Pairs by the pilot's moments.
    pub predicted_cost: f64,
    /// Root of the mean squared error about the exact loss.
    pub rmse: Estimate,
    /// Mean error: the bias.
    pub bias: Estimate,
}

impl ComplexityStudy {
    /// The full study: ε from 0.0113 to 0.0014, less than 60 s of one core.
    pub fn full(toy: Toy) -> Self {
        let epsilons = ladder(0.0113, 7);
        Self { toy, epsilons, least: 64, most: 512, pairs: 30_000_000, pilot: 4_000_000 }
    }

    /// A short one, about 3 s of one core: ε from 0.016 to 0.004.
    pub fn quick(toy: Toy) -> Self {
        let epsilons = ladder(0.016, 5);
        Self { toy, epsilons, least: 40, most: 256, pairs: 3_000_000, pilot: 500_000 }
    }

    /// Measures the pilot, chooses sizes, and realises them, on some threads. The result does not depend on their number.
    pub fn run(&self, streams: Streams, threads: usize) -> Result<ComplexityReport> {
        self.check()?;
        let pilot = Pilot::measure(&self.toy, self.pilot, threads, streams)?;
        // All sizes first: an error that is too small for one scheme is refused before any time is spent.
        let sizes = |&(_, scheme): &(_, Scheme)| {
            self.epsilons.iter().map(|&epsilon| pilot.sizes(scheme, epsilon)).collect()
        };
        let sizes = Scheme::ALL.iter().map(sizes).collect::<Result<Vec<Vec<_>>>>()?;
        let schemes = Scheme::ALL.iter().zip(sizes).enumerate();
        let schemes = schemes.map(|(number, (&(_, scheme), sizes))| {
            let points = self.epsilons.iter().zip(sizes).enumerate();
            let points = points.map(|(place, (&epsilon, (sizes, cost)))| {
                let round = POINTS + 256 * number as u64 + place as u64;
                self.point(scheme, epsilon, sizes, cost, (streams, round), threads)
            });
            Ok(SchemeCost::fit(scheme, points.collect::<Result<_>>()?))
        });
        let schemes = schemes.collect::<Result<_>>()?;
        Ok(ComplexityReport { toy: self.toy.name, loss: self.toy.loss(), schemes })
    }

    fn check(&self) -> Result<()> {
        let Self { epsilons, least, most, .. } = self;
        if !(3..=256).contains(&epsilons.len()) || epsilons.iter().any(|e| !(1e-5..1.0).contains(e))
        {
            let why = "3 to 256 errors between 1e-5 and 1: the error of a slope needs three";
            return Err(Error::setting("epsilons", format!("{epsilons:?}"), why));
        }
        if *least < 8 || most < least {
            let why = "at least 8, for the error of a mean squared error, and at most `most`";
            return Err(Error::setting("least", least, why));
        }
        Ok(())
    }

    fn point(
        &self,
        scheme: Scheme,
        epsilon: f64,
        sizes: Sizes,
        predicted_cost: f64,
        (streams, round): (Streams, u64),
        threads: usize,
    ) -> Result<CostPoint> {
        let paid = (self.pairs as f64 / predicted_cost) as usize;
        let replicates = paid.clamp(self.least, self.most);
        let found = parallel::map(replicates, threads, |replicate| {
            let mut rng = streams.stream(Purpose::Diagnostic, round, replicate as u64);
            scheme::estimate(&self.toy, scheme, &sizes, &mut rng)
        });
        let [mut cost, mut error, mut square] = [Moments::default(); 3];
        for found in found {
            let (value, pairs) = found?;
            let off = value - self.toy.loss();
            cost.add(pairs);
            error.add(off);
            square.add(off * off);
        }
        let mse = square.estimate();
        let rmse = mse.mean.sqrt();
        let rmse = Estimate { mean: rmse, error: 0.5 * mse.error / rmse };
        let (cost, bias) = (cost.estimate(), error.estimate());
        Ok(CostPoint { epsilon, sizes, replicates, cost, predicted_cost, rmse, bias })
    }
}

impl SchemeCost {
    /// ln RMSE against ln cost; the exponent is the inverse of that slope.
    fn fit(scheme: Scheme, points: Vec<CostPoint>) -> Self {
        let relative = |e: &Estimate| e.error / e.mean;
        let realised = points.iter().map(|p| {
            let tau = relative(&p.rmse).hypot(relative(&p.cost) / scheme.exponent());
            (p.cost.mean.ln(), p.rmse.mean.ln(), tau * tau)
        });
        let found = line(&realised.collect::<Vec<_>>());
        let predicted = points.iter().map(|p| (p.epsilon.ln(), p.predicted_cost.ln(), 1.0));
        let predicted = line(&predicted.collect::<Vec<_>>()).slope;
        let exponent =
            Estimate { mean: found.slope.recip(), error: found.slope_error / found.slope.powi(2) };
        let scatter = found.chi_squared / (points.len() - 2) as f64;
        Self { scheme, points, exponent, predicted, scatter }
    }
}

/// Errors from `largest` down, each 1/√2 of the one before.
fn ladder(largest: f64, count: u32) -> Vec<f64> {
    (0..count).map(|i| largest * (-0.5 * f64::from(i)).exp2()).collect()
}
