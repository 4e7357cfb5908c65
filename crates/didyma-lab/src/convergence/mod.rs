//! How far a constant-step descent comes: noise shrinks with the step, bias does not.
//!
//! # Theory
//! Let L have curvature between μ and K, and let the gradient g_k have the mean ∇L + bias and, for a query, the
//! variance U. With φ_{k+1} = φ_k − γ g_k, γ ≤ 1/K, and batches of B queries,
//!
//! ```text
//! E L(φ_k) − L(φ*) ≤ (1 − γμ)^k (L(φ_0) − L(φ*)) + γ K U/(2μB) + ‖bias‖²/(2μ)
//! ```
//!
//! The first term vanishes, the second is as small as one likes with the step or the batch, the third stays. (In the
//! paper's statement the second lacks γ, which makes noise and bias look interchangeable.) These are bounds; near
//! the minimum what is really left can be computed. The gap that bias leaves is that of the minimiser φ_M of the
//! biased loss, which is found by Newton-like steps on a fixed sample from which the exact gradients are taken
//! out; the gap that noise leaves is ½ tr(HS), where S = (1 − γA) S (1 − γA)ᵀ + γ² C/B is the stationary covariance of
//! φ, C that of a query's gradient and A the derivative of its mean, both at φ_M: about γ tr(C)/(4B). Both are in the
//! report, with the bounds. C rests on few draws where gradients have heavy tails, and its standard error shows it.
//!
//! # What is measured
//! The gap L(φ_k) − L(φ*) itself, which is exact for a toy, over replicates; the plateau is its mean over the second
//! half of a descent, which lasts some 1/(γμ). Plateaus at several steps are extrapolated: on the line plateau =
//! floor + κ · (noise part by theory), weighted by their standard errors, the floor is what a step of 0 would leave.

mod curvature;
mod descent;
mod theory;

pub use descent::Descent;

use crate::toy::Toy;
use curvature::Curvature;
use descent::{Path, descend};
use didyma::math::{Estimate, Moments, line};
use didyma::rng::{Purpose, Streams};
use didyma::{Error, Result, parallel};
use serde::Serialize;
use theory::Theory;

/// Rounds of the streams of theory: this + method; the index is the part's.
const THEORY: u64 = 2 << 32;
/// Rounds of the streams of descents: this + 256 · method + place of the step; the index is the replicate's.
const DESCENTS: u64 = THEORY + 256;
/// Standard errors by which a floor must be above 0 to be one.
const CLEAR: f64 = 3.0;

/// How to measure.
///
/// ```
/// use didyma::rng::Streams;
/// use didyma_lab::{ConvergenceStudy, Descent, Toy};
///
/// let toy = Toy::named("sharp").unwrap();
/// let study = ConvergenceStudy { methods: vec![Descent::exact()], ..ConvergenceStudy::quick(toy) };
/// let report = study.run(Streams::new(1), 2)?;
/// let exact = &report.methods[0];
/// assert_eq!(exact.floor.unwrap().mean, 0.0);
/// let plateau = |i: usize| exact.curves[i].plateau.unwrap().mean;
/// assert!(plateau(1) < 0.5 * plateau(0)); // a step a quarter as large
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ConvergenceStudy {
    /// The problem; its offset is not used.
    pub toy: Toy,
    /// φ_0 minus the truth.
    pub start: [f64; 3],
    /// Where gradients come from.
    pub methods: Vec<Descent>,
    /// Step sizes γ.
    pub gammas: Vec<f64>,
    /// B, queries of a step.
    pub batch: usize,
    /// Length of a descent in units of 1/(γμ); the plateau is its second half.
    pub length: f64,
    /// Descents of a method at a step size.
    pub replicates: usize,
    /// Pairs for the bias of a method, and again for its noise.
    pub pairs: usize,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConvergenceReport {
    /// Name of the toy.
    pub toy: &'static str,
    /// L(φ_0) − L(φ*).
    pub initial_gap: f64,
    /// μ, the smallest curvature at the minimum.
    pub mu: f64,
    /// K, the largest.
    pub smoothness: f64,
    /// B.
    pub batch: usize,
    /// Method by method.
    pub methods: Vec<MethodConvergence>,
}

/// One method at all step sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodConvergence {
    /// Its name.
    pub name: String,
    /// What its mean is, in words.
    pub target: String,
    /// The gap at the minimiser of its mean: what bias leaves, whatever the step. None if there is no minimum near the
    /// truth.
    pub floor: Option<Estimate>,
    /// The theorem's bound on that: ‖bias‖²/(2μ), with the bias at the truth.
    pub floor_bound: f64,
    /// The measured gap at step size 0, by extrapolation; None with fewer than two plateaus, or if any descent
    /// diverged.
    pub extrapolated: Option<Estimate>,
    /// One for each step size.
    pub curves: Vec<Curve>,
    /// In a word.
    pub verdict: Verdict,
}

/// One method at one step size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// γ.
    pub gamma: f64,
    /// (θ, x) pairs of a step.
    pub pairs: f64,
    /// The gap at steps in equal ratios, over the replicates that came so far.
    pub points: Vec<GapPoint>,
    /// Mean gap over the second half, over the replicates that reached the end; None if fewer than two did.
    pub plateau: Option<Estimate>,
    /// What noise leaves, by theory: about γ tr(C)/(4B). None where there is no minimiser to be near to.
    pub noise: Option<Estimate>,
    /// The theorem's bound on that: γ K U/(2μB).
    pub noise_bound: f64,
    /// Replicates that left all bounds.
    pub diverged: usize,
    /// All replicates.
    pub replicates: usize,
}

/// The gap after some steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GapPoint {
    /// k.
    pub step: usize,
    /// L(φ_k) − L(φ*).
    pub gap: Estimate,
}

/// What becomes of a method as the step size falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The plateau falls with the step: no floor is predicted, and none is seen.
    FallsWithStep,
    /// It levels off: the extrapolated floor is more than three standard errors above 0.
    LevelsOff,
    /// A floor is predicted, but noise hides it at these step sizes.
    Unresolved,
    /// Some descents left all bounds.
    Diverges,
}

impl ConvergenceStudy {
    /// The full study: all methods, three step sizes, less than 90 s of one core.
    pub fn full(toy: Toy) -> Self {
        Self {
            toy,
            start: [-0.1, 0.2, 0.4],
            methods: Descent::all(),
            gammas: vec![0.02, 0.005, 0.00125],
            batch: 100,
            length: 10.0,
            replicates: 6,
            pairs: 2_000_000,
        }
    }

    /// A short one, about 3 s of one core: four methods, two step sizes.
    pub fn quick(toy: Toy) -> Self {
        let shown = ["exact", "nested 8", "nested 32", "tgrr"];
        let is_shown = |method: &Descent| shown.contains(&method.name.as_str());
        let methods = Descent::all().into_iter().filter(is_shown).collect();
        let gammas = vec![0.02, 0.005];
        Self { methods, gammas, replicates: 4, pairs: 400_000, ..Self::full(toy) }
    }

    /// Runs all descents, on some threads. The result does not depend on their number.
    pub fn run(&self, streams: Streams, threads: usize) -> Result<ConvergenceReport> {
        self.check()?;
        let curvature = Curvature::at_truth(&self.toy)?;
        let theories = parallel::map(self.methods.len(), threads, |method| {
            let streams = (streams, THEORY + method as u64);
            Theory::of(&self.methods[method], &self.toy, &curvature, self.pairs, streams)
        });
        let paths = self.paths(&curvature, streams, threads)?;
        let methods = theories.into_iter().zip(&self.methods).zip(paths.chunks(self.gammas.len()));
        let methods = methods.map(|((theory, method), paths)| {
            let theory = theory?;
            let curves = self.gammas.iter().zip(paths);
            let curves =
                curves.map(|(&gamma, paths)| self.curve(gamma, paths, &theory, &curvature));
            MethodConvergence::new(method, &theory, curves.collect())
        });
        Ok(ConvergenceReport {
            toy: self.toy.name,
            initial_gap: self.toy.at(self.start).loss() - self.toy.at([0.0; 3]).loss(),
            mu: curvature.smallest(),
            smoothness: curvature.largest(),
            batch: self.batch,
            methods: methods.collect::<Result<_>>()?,
        })
    }

    fn check(&self) -> Result<()> {
        let Self { gammas, batch, length, replicates, .. } = self;
        if gammas.is_empty()
            || gammas.len() > 256
            || gammas.iter().any(|g| !(1e-6..1.0).contains(g))
        {
            let why = "up to 256 numbers between 1e-6 and 1";
            return Err(Error::setting("gammas", format!("{gammas:?}"), why));
        }
        if *batch == 0 || *replicates < 2 || !(1.0..=1000.0).contains(length) {
            let what = format!("{batch}, {replicates} and {length}");
            let why = "at least 1, at least 2 (for a standard error), and between 1 and 1000";
            return Err(Error::setting("batch, replicates and length", what, why));
        }
        Ok(())
    }

    fn steps(&self, gamma: f64, curvature: &Curvature) -> usize {
        (self.length / (gamma * curvature.smallest())).ceil() as usize
    }

    /// All replicates of each method at each step size, in this order.
    fn paths(
        &self,
        curvature: &Curvature,
        streams: Streams,
        threads: usize,
    ) -> Result<Vec<Vec<Path>>> {
        let (gammas, replicates) = (self.gammas.len(), self.replicates);
        let paths = parallel::map(self.methods.len() * gammas * replicates, threads, |job| {
            let (curve, replicate) = (job / replicates, job % replicates);
            let (method, place) = (curve / gammas, curve % gammas);
            let round = DESCENTS + 256 * method as u64 + place as u64;
            let mut rng = streams.stream(Purpose::Diagnostic, round, replicate as u64);
            let (gamma, mut gradients) =
                (self.gammas[place], self.methods[method].gradients(&self.toy)?);
            let steps = self.steps(gamma, curvature);
            let (from, size) = ((self.start, gamma), (steps, self.batch));
            descend(&mut gradients, from, size, &recorded(steps), &mut rng)
        });
        let paths = paths.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(paths.chunks(replicates).map(<[_]>::to_vec).collect())
    }

    fn curve(&self, gamma: f64, paths: &[Path], theory: &Theory, curvature: &Curvature) -> Curve {
        let over = |values: &mut dyn Iterator<Item = f64>| {
            let mut moments = Moments::default();
            let count = values.map(|value| moments.add(value)).count();
            (count > 1).then(|| moments.estimate())
        };
        let record = recorded(self.steps(gamma, curvature));
        let points = record.into_iter().enumerate().filter_map(|(i, step)| {
            let gap = over(&mut paths.iter().filter_map(|path| path.gaps.get(i).copied()))?;
            Some(GapPoint { step, gap })
        });
        let worst = curvature.largest() / curvature.smallest();
        Curve {
            gamma,
            pairs: paths.iter().map(|path| path.pairs).sum::<f64>() / paths.len() as f64,
            points: points.collect(),
            plateau: over(&mut paths.iter().filter_map(|path| path.plateau)),
            noise: theory.floor.map(|_| theory.noise_gap(curvature, gamma, self.batch)),
            noise_bound: gamma * worst * theory.trace.mean / (2.0 * self.batch as f64),
            diverged: paths.iter().filter(|path| path.plateau.is_none()).count(),
            replicates: paths.len(),
        }
    }
}

impl MethodConvergence {
    fn new(method: &Descent, theory: &Theory, curves: Vec<Curve>) -> Result<Self> {
        let point = |c: &Curve| Some((c.noise?.mean, c.plateau?.mean, c.plateau?.error.powi(2)));
        let plateaus: Vec<_> = curves.iter().filter_map(point).collect();
        let diverged = curves.iter().any(|curve| curve.diverged > 0);
        let extrapolated = (plateaus.len() > 1 && !diverged).then(|| {
            let line = line(&plateaus);
            Estimate { mean: line.intercept, error: line.intercept_error }
        });
        let verdict = match (extrapolated, theory.floor) {
            _ if diverged => Verdict::Diverges,
            (Some(floor), _) if floor.mean > CLEAR * floor.error => Verdict::LevelsOff,
            (Some(_), Some(floor)) if floor.mean == 0.0 => Verdict::FallsWithStep,
            _ => Verdict::Unresolved,
        };
        let (name, target) = (method.name.clone(), method.target()?.to_string());
        let (floor, floor_bound) = (theory.floor, theory.bias_bound);
        Ok(Self { name, target, floor, floor_bound, extrapolated, curves, verdict })
    }
}

/// Steps 0, 1, 2, 3, 4, 6, 8, 11, …, each about √2 times the one before, and the last.
fn recorded(steps: usize) -> Vec<usize> {
    let ratios = (0..).map(|i| (0.5 * f64::from(i)).exp2().round() as usize);
    let mut recorded = vec![0];
    recorded.extend(ratios.take_while(|&step| step < steps));
    recorded.push(steps);
    recorded.dedup();
    recorded
}
