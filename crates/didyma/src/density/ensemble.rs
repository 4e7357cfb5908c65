//! Several models of q(θ | x), mixed in equal parts.

use super::{Density, DensityConfig, Evaluator};
use crate::error::Result;
use crate::rng::Stream;
use crate::rows::Rows;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// q(θ | x) = 1/K Σ q_k(θ | x): members of one shape that were trained apart.
///
/// Members err in different directions where the simulations say little, so that their mean errs less than each of them
/// (Lakshminarayanan et al. 2017; Hermans et al. 2022 for posteriors), and tells by their disagreement how much that is.
#[derive(Clone, Debug)]
pub(crate) struct Ensemble {
    density: Density,
    members: Vec<Vec<f32>>,
}

/// Draws of the base, and which member carries each of them to θ.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    draws: Vec<f32>,
    /// Empty if there is one member.
    members: Vec<usize>,
}

impl Ensemble {
    /// A mixture of these members, one at least, by their parameters.
    pub(crate) fn new(density: Density, members: Vec<Vec<f32>>) -> Self {
        debug_assert!(!members.is_empty());
        Self { density, members }
    }

    /// The model that all members are.
    pub(crate) fn density(&self) -> &Density {
        &self.density
    }

    /// The parameters of each.
    pub(crate) fn members(&self) -> &[Vec<f32>] {
        &self.members
    }

    /// Whether it is the same law.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let shapes: [DensityConfig; 2] = [self.density.config(), other.density.config()];
        shapes[0] == shapes[1] && self.members == other.members
    }

    /// So many draws of the base, whose standard deviation is `width`; each goes to a member at random.
    pub(crate) fn base(&self, rows: usize, width: f64, rng: &mut Stream) -> Base {
        let count = rows * self.density.dims().0;
        let mut normal = || -> f64 { StandardNormal.sample(&mut *rng) };
        let draws = (0..count).map(|_| (width * normal()) as f32).collect();
        let several = self.members.len() > 1;
        let members = if several {
            (0..rows).map(|_| rng.random_range(0..self.members.len())).collect()
        } else {
            Vec::new()
        };
        Base { draws, members }
    }

    /// θ of draws of the base.
    pub(crate) fn sample(
        &self,
        device: &dyn Evaluator,
        x: &[f32],
        base: &Base,
    ) -> Result<Vec<f32>> {
        if base.members.is_empty() {
            return self.density.sample(device, &self.members[0], x, &base.draws);
        }
        let dim = self.density.dims().0;
        let mut theta = vec![0.0; base.draws.len()];
        for (k, params) in self.members.iter().enumerate() {
            let mine = || base.members.iter().enumerate().filter(|(_, m)| **m == k).map(|(i, _)| i);
            let rows = |i: usize| i * dim..(i + 1) * dim;
            let draws: Vec<f32> = mine().flat_map(|i| &base.draws[rows(i)]).copied().collect();
            let found = self.density.sample(device, params, x, &draws)?;
            for (i, row) in mine().zip(found.chunks_exact(dim)) {
                theta[rows(i)].copy_from_slice(row);
            }
        }
        Ok(theta)
    }

    /// θ of draws of the base, and log q(θ | x).
    pub(crate) fn transport(
        &self,
        device: &dyn Evaluator,
        x: &[f32],
        base: &Base,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        if base.members.is_empty() {
            return self.density.transport(device, &self.members[0], x, &base.draws);
        }
        let theta = self.sample(device, x, base)?;
        let rows = Rows::new("theta", &theta, self.density.dims().0)?;
        let log_q = self.log_density(device, rows, Rows::new("x", x, x.len())?)?;
        Ok((theta, log_q))
    }

    /// log q(θ | x) for each row of `theta`; `x` has as many rows, or one that all share.
    pub(crate) fn log_density(
        &self,
        device: &dyn Evaluator,
        theta: Rows<f32>,
        x: Rows<f32>,
    ) -> Result<Vec<f64>> {
        let of = |params: &Vec<f32>| self.density.log_density(device, params, theta, x);
        if let [only] = &*self.members {
            return of(only);
        }
        let each = self.members.iter().map(of).collect::<Result<Vec<_>>>()?;
        Ok((0..theta.len()).map(|row| log_mean(each.iter().map(|log_q| log_q[row]))).collect())
    }

    /// How far the members are apart at x, from 0 (they are one law) to 1 (no two of them overlap): the mean divergence
    /// of a member from the mixture, 1/K Σ E_k[log q_k − log q], over its largest value log K. `rows` draws of each member
    /// estimate it; there is none of a single member.
    pub(crate) fn disagreement(
        &self,
        device: &dyn Evaluator,
        x: &[f32],
        rows: usize,
        mut rng: impl FnMut(u64) -> Stream,
    ) -> Result<Option<f64>> {
        if self.members.len() < 2 {
            return Ok(None);
        }
        let mut sum = 0.0;
        for (k, params) in self.members.iter().enumerate() {
            let alone = Self::new(self.density.clone(), vec![params.clone()]);
            let base = alone.base(rows, 1.0, &mut rng(k as u64));
            let (theta, log_q) = alone.transport(device, x, &base)?;
            let theta = Rows::new("theta", &theta, self.density.dims().0)?;
            let mixed = self.log_density(device, theta, Rows::new("x", x, x.len())?)?;
            sum += log_q.iter().zip(&mixed).map(|(own, mixed)| own - mixed).sum::<f64>();
        }
        let (count, members) = (rows * self.members.len(), self.members.len() as f64);
        Ok(Some((sum / count as f64 / members.ln()).clamp(0.0, 1.0)))
    }
}

/// The logarithm of the mean of what these are logarithms of.
fn log_mean(logs: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let count = logs.len() as f64;
    let largest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + (logs.map(|log| (log - largest).exp()).sum::<f64>() / count).ln()
}
