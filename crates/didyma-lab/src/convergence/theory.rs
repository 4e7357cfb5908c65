//! Where a constant-step descent should level off: by noise, and at the minimiser of a biased loss.

use super::curvature::{Curvature, Matrix, Vector, derivative, product, scaled, sum, transposed};
use super::descent::{Descent, Gradients, is_sane};
use crate::toy::Toy;
use didyma::Result;
use didyma::math::{Estimate, Moments};
use didyma::rng::{Purpose, Stream, Streams};

/// What theory says of a method.
#[derive(Clone, Debug)]
pub(super) struct Theory {
    /// The gap at the minimiser of the mean of its loss, unless that has none near the truth.
    pub floor: Option<Estimate>,
    /// ‖bias of the gradient at the truth‖² / (2μ).
    pub bias_bound: f64,
    /// A, the derivative of the mean gradient there (at the truth if there is none).
    slope: Matrix,
    /// C = E ρ ρᵀ there, of single queries.
    noise: Matrix,
    /// U = E ‖ρ‖².
    pub trace: Estimate,
}

impl Theory {
    /// Measures bias, minimiser and noise of a method, about `pairs` pairs at a time; the streams of its parts are
    /// those of (`round`, 0), (`round`, 1), ….
    pub fn of(
        method: &Descent,
        toy: &Toy,
        curvature: &Curvature,
        pairs: usize,
        (streams, round): (Streams, u64),
    ) -> Result<Self> {
        let stream = |part: u64| streams.stream(Purpose::Diagnostic, round, part);
        let (target, mut gradients) = (method.mean()?, method.gradients(toy)?);
        let mut parts = (0..PARTS).map(|part| Mean::new(&target, toy, pairs, stream(part)));
        let mut parts = parts.by_ref().collect::<Result<Vec<_>>>()?;
        let bias = match target.is_exact()? {
            true => [0.0; 3],
            false => average(parts.iter_mut().map(|part| part.gradient([0.0; 3])))?,
        };
        // Atomic methods are biased, but their minimiser is the truth.
        let found = match target.has_exact_minimiser()? {
            true => vec![Some([0.0; 3])],
            false => {
                parts.iter_mut().map(|part| part.minimiser(curvature)).collect::<Result<_>>()?
            }
        };
        let found: Option<Vec<Vector>> = found.into_iter().collect();
        let gap = |offset: Vector| toy.at(offset).loss() - toy.at([0.0; 3]).loss();
        let minimiser = found.as_ref().map(|found| average(found.iter().map(|&offset| Ok(offset))));
        let minimiser = minimiser.transpose()?;
        let error = found.map_or(0.0, |found| spread(found.into_iter().map(gap)));
        let at = minimiser.unwrap_or_default();
        let slope = match target.is_exact()? {
            true => curvature.hessian,
            false => derivative(
                |offset| average(parts.iter_mut().map(|part| part.gradient(offset))),
                at,
            )?,
        };
        gradients.move_to(at);
        let (noise, trace) = noise(&mut gradients, pairs, &mut stream(PARTS))?;
        let floor = minimiser.map(|offset| Estimate { mean: gap(offset), error });
        let bias_bound = bias.iter().map(|b| b * b).sum::<f64>() / (2.0 * curvature.smallest());
        Ok(Self { floor, bias_bound, slope, noise, trace })
    }

    /// The gap ½ tr(HS) of the stationary law of φ ← φ − γ (Aφ + noise of covariance C/B), where S solves
    /// S = F S Fᵀ + γ² C/B with F = 1 − γA. For the exact loss A = H, and it is γ/(2B) Σ C_ii/(2 − γλ_i) ≈ γU/(4B).
    pub fn noise_gap(&self, curvature: &Curvature, gamma: f64, batch: usize) -> Estimate {
        let mut f = scaled(&self.slope, -gamma);
        (0..3).for_each(|i| f[i][i] += 1.0);
        let mut s = scaled(&self.noise, gamma * gamma / batch as f64);
        // S = Σ_k F^k Q F^kᵀ, twice as many terms at a time: 2⁴⁰ of them.
        for _ in 0..40 {
            s = sum(&s, &product(&product(&f, &s), &transposed(&f)));
            f = product(&f, &f);
        }
        let hs = product(&curvature.hessian, &s);
        let mean = 0.5 * (hs[0][0] + hs[1][1] + hs[2][2]);
        Estimate { mean, error: mean * self.trace.error / self.trace.mean }
    }
}

/// Independent parts of the sample, whose minimisers give the error of a floor.
const PARTS: u64 = 4;

fn average(vectors: impl ExactSizeIterator<Item = Result<Vector>>) -> Result<Vector> {
    let (mut sum, count) = ([0.0; 3], vectors.len() as f64);
    for vector in vectors {
        sum.iter_mut().zip(vector?).for_each(|(sum, v)| *sum += v / count);
    }
    Ok(sum)
}

/// Standard error of the mean; 0 of a single number, which is exact here.
fn spread(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let (count, mut moments) = (values.len(), Moments::default());
    values.for_each(|value| moments.add(value));
    if count > 1 { moments.estimate().error } else { 0.0 }
}

/// The mean gradient E ρ as a function of φ, on a fixed sample.
///
/// Over the sample, ρ minus the exact gradient of the same query is averaged, and the exact ∇L added: so the noise of the
/// outer samples, which is nearly all of it, is out. With the sample fixed the function is smooth.
struct Mean {
    gradients: Gradients,
    toy: Toy,
    batches: usize,
    rng: Stream,
}

impl Mean {
    const BATCH: usize = 100;

    fn new(method: &Descent, toy: &Toy, pairs: usize, rng: Stream) -> Result<Self> {
        let gradients = method.gradients(toy)?;
        let queries = pairs as f64 / PARTS as f64 / gradients.expected_pairs();
        let batches = (queries / Self::BATCH as f64).ceil() as usize;
        Ok(Self { gradients, toy: *toy, batches, rng })
    }

    fn gradient(&mut self, offset: Vector) -> Result<Vector> {
        let (mut rng, mut mean) = (self.rng.clone(), self.toy.at(offset).gradient());
        self.gradients.move_to(offset);
        for _ in 0..self.batches {
            let found = self.gradients.batch(Self::BATCH, &mut rng)?;
            let exact = self.gradients.exact();
            (0..3).for_each(|i| mean[i] += (found[i] - exact[i]) / self.batches as f64);
        }
        Ok(mean)
    }

    /// Its zero, by steps φ ← φ − H⁻¹ E ρ, which contract as far as the Hessian of the biased loss is near H.
    fn minimiser(&mut self, curvature: &Curvature) -> Result<Option<Vector>> {
        let mut offset = [0.0; 3];
        for _ in 0..STEPS {
            let step = curvature.solve(self.gradient(offset)?);
            offset.iter_mut().zip(step).for_each(|(phi, step)| *phi -= step);
            if !is_sane(offset) {
                return Ok(None);
            }
            if step.iter().all(|step| step.abs() < PRECISION) {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }
}

/// A step to the minimiser that is the last: the gap changes by its square.
const PRECISION: f64 = 3e-4;
/// Steps to the minimiser, at most: one that takes more has no minimum near the truth.
const STEPS: usize = 20;

/// C = E ρ ρᵀ of single queries, and its trace. At the minimiser it is the covariance.
fn noise(gradients: &mut Gradients, pairs: usize, rng: &mut Stream) -> Result<(Matrix, Estimate)> {
    let (mut noise, mut trace) = ([[0.0; 3]; 3], Moments::default());
    let queries = (pairs as f64 / gradients.expected_pairs()).max(2.0) as usize;
    for _ in 0..queries {
        let g = gradients.batch(1, rng)?;
        let outer: Matrix = g.map(|a| g.map(|b| a * b / queries as f64));
        noise = sum(&noise, &outer);
        trace.add(g.iter().map(|g| g * g).sum());
    }
    Ok((noise, trace.estimate()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the recursion itself, with a derivative that is not symmetric.
    #[test]
    fn the_stationary_gap_is_that_of_the_recursion() {
        let zero = Estimate { mean: 0.0, error: 0.0 };
        let toy = crate::toy::TOYS[2];
        let curvature = Curvature::at_truth(&toy).expect("exact gradients are finite");
        let slope = [[4.0, 0.5, 0.0], [1.0, 2.0, 0.0], [0.0, 0.2, 1.0]];
        let noise = [[3.0, 1.0, 0.0], [1.0, 5.0, 0.5], [0.0, 0.5, 7.0]];
        let trace = Estimate { mean: 15.0, error: 1.5 };
        let theory = Theory { floor: Some(zero), bias_bound: 0.0, slope, noise, trace };
        let (gamma, mut s) = (0.1, [[0.0; 3]; 3]);
        let mut f = scaled(&slope, -gamma);
        (0..3).for_each(|i| f[i][i] += 1.0);
        for _ in 0..1000 {
            s = sum(
                &product(&product(&f, &s), &transposed(&f)),
                &scaled(&noise, gamma * gamma / 10.0),
            );
        }
        let hs = product(&curvature.hessian, &s);
        let expected = 0.5 * (hs[0][0] + hs[1][1] + hs[2][2]);
        let found = theory.noise_gap(&curvature, gamma, 10);
        assert!((found.mean - expected).abs() < 1e-12 * expected);
        assert!((found.error - 0.1 * expected).abs() < 1e-12 * expected);
    }
}
