//! Several models of q(θ | x), mixed in equal parts.

mod groups;

use super::{Density, DensityConfig, Evaluator};
use crate::error::Result;
use crate::math::{log_mean_exp, normal_quantile};
use crate::parallel;
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Base {
    draws: Vec<f32>,
    /// Empty if there is one member.
    members: Vec<usize>,
}

impl Base {
    /// Takes the first draws of another one, of rows of so many numbers.
    pub(crate) fn extend(&mut self, other: &Self, rows: usize, dim: usize) {
        self.draws.extend_from_slice(&other.draws[..rows * dim]);
        self.members.extend(other.members.iter().take(rows));
    }
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

    /// True if it is the same law.
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

    /// Numbers in (0, 1) that a draw of the base is made of by [`Ensemble::base_of`].
    pub(crate) fn coordinates_of_a_draw(&self) -> usize {
        self.density.dims().0 + 1
    }

    /// The draw of the base that each point of the unit cube stands for: its first coordinate chooses the member.
    pub(crate) fn base_of<'p>(&self, points: impl Iterator<Item = &'p [f64]>, width: f64) -> Base {
        let (mut draws, mut members) = (Vec::new(), Vec::new());
        let count = self.members.len();
        for point in points {
            draws.extend(point[1..].iter().map(|&u| (width * normal_quantile(u)) as f32));
            if count > 1 {
                members.push(((point[0] * count as f64) as usize).min(count - 1));
            }
        }
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
        Ok(mixed(self.each_log_density(device, theta, x)?))
    }

    /// How far the members are apart at x, from 0 (they are one law) to 1 (no two of them overlap): the mean divergence
    /// of a member from the mixture, 1/K Σ E_k[log q_k − log q], over its largest value log K. `rows` draws of each member
    /// estimate it; there is none of a single member.
    pub(crate) fn disagreement(
        &self,
        device: &dyn Evaluator,
        x: &[f32],
        rows: usize,
        threads: usize,
        rng: impl Fn(u64) -> Stream + Sync,
    ) -> Result<Option<f64>> {
        let members = self.members.len();
        if members < 2 {
            return Ok(None);
        }
        let of = |member: usize| self.divergence(device, x, member, rows, &mut rng(member as u64));
        let sum = parallel::map(members, threads, of).into_iter().sum::<Result<f64>>()?;
        let count = members as f64;
        Ok(Some((sum / count / count.ln()).clamp(0.0, 1.0)))
    }

    /// The divergence of a member from the mixture.
    fn divergence(
        &self,
        device: &dyn Evaluator,
        x: &[f32],
        member: usize,
        rows: usize,
        rng: &mut Stream,
    ) -> Result<f64> {
        let alone = Self::new(self.density.clone(), vec![self.members[member].clone()]);
        let theta = alone.sample(device, x, &alone.base(rows, 1.0, rng))?;
        let theta = Rows::new("theta", &theta, self.density.dims().0)?;
        let each = self.each_log_density(device, theta, Rows::new("x", x, x.len())?)?;
        let at = |row: usize| each[member][row] - log_mean_exp(each.iter().map(|log_q| log_q[row]));
        Ok((0..rows).map(at).sum::<f64>() / rows as f64)
    }

    /// log q_k(θ | x) of each member.
    fn each_log_density(
        &self,
        device: &dyn Evaluator,
        theta: Rows<f32>,
        x: Rows<f32>,
    ) -> Result<Vec<Vec<f64>>> {
        let of = |params: &Vec<f32>| self.density.log_density(device, params, theta, x);
        self.members.iter().map(of).collect()
    }
}

/// Log-densities of the mixture in equal parts, from those of its members row by row.
fn mixed(mut each: Vec<Vec<f64>>) -> Vec<f64> {
    if let [only] = &mut *each {
        return std::mem::take(only);
    }
    let rows = each.first().map_or(0, Vec::len);
    (0..rows).map(|row| log_mean_exp(each.iter().map(|log_q| log_q[row]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::Cpu;
    use crate::density::flow::{FlowConfig, SplineFlow};
    use crate::rng::{Purpose, Streams};

    /// Members of a flow on the line whose weights differ by `far`.
    fn ensemble(members: u64, far: f32) -> Ensemble {
        let flow = SplineFlow::new(FlowConfig { layers: 2, ..FlowConfig::new(1, 1) }).unwrap();
        let params = |k| flow.initial_params(&mut Streams::new(k).stream(Purpose::Weights, 0, 0));
        let first = params(0);
        let of = |k| first.iter().zip(params(k)).map(|(a, b): (&f32, f32)| a + far * b).collect();
        let members = (1..=members).map(of).collect();
        Ensemble::new(Density::Flow(flow), members)
    }

    fn apart(ensemble: &Ensemble) -> Option<f64> {
        let rng = |member| Streams::new(1).stream(Purpose::Disagreement, 1, member);
        ensemble.disagreement(&Cpu, &[0.5], 4000, 2, rng).unwrap()
    }

    /// By quadrature over the line: the mixture's density is the mean of the members', has mass 1, and the divergence
    /// is the integral that its draws estimate.
    #[test]
    fn densities_mix_and_the_disagreement_is_its_integral() {
        let mixed = ensemble(3, 1.0);
        let step = 0.01f32;
        let theta: Vec<f32> = (-1000..=1000).map(|i| i as f32 * step).collect();
        let (theta, x) =
            (Rows::new("theta", &theta, 1).unwrap(), Rows::new("x", &[0.5], 1).unwrap());
        let found = mixed.log_density(&Cpu, theta, x).unwrap();
        let each = mixed.each_log_density(&Cpu, theta, x).unwrap();
        let (mut mass, mut divergence, mut square) = (0.0, 0.0, 0.0);
        for (row, log_q) in found.iter().enumerate() {
            let mean = each.iter().map(|log_q| log_q[row].exp()).sum::<f64>() / 3.0;
            assert!((log_q.exp() - mean).abs() <= 1e-12 * mean);
            mass += mean * f64::from(step);
            for own in &each {
                let (q, ratio) = (own[row].exp(), own[row] - log_q);
                divergence += q * ratio * f64::from(step) / 3.0;
                square += q * ratio * ratio * f64::from(step) / 3.0;
            }
        }
        assert!((mass - 1.0).abs() < 1e-3, "{mass}");
        // Of 12,000 draws: 4.5 standard errors, the variance bounded by the mean square.
        let (expected, error) =
            (divergence / 3f64.ln(), 4.5 * (square / 12_000.0).sqrt() / 3f64.ln());
        let found = apart(&mixed).unwrap();
        assert!(expected > 3.0 * error, "{expected} ± {error}: too small to tell");
        assert!((found - expected).abs() < error, "{found}, expected {expected} ± {error}");
    }

    /// Of points that are spread evenly each member carries its share, to θ of its own.
    #[test]
    fn points_are_shared_out_among_the_members() {
        let mixed = ensemble(3, 1.0);
        let points: Vec<[f64; 2]> = (0..300).map(|i| [(f64::from(i) + 0.5) / 300.0, 0.3]).collect();
        let base = mixed.base_of(points.iter().map(|point| &point[..]), 1.0);
        let found = mixed.sample(&Cpu, &[0.5], &base).unwrap();
        let mut distinct = found.clone();
        distinct.dedup();
        assert_eq!(distinct.len(), 3);
        assert!(found.chunks(100).all(|share| share.iter().all(|theta| *theta == share[0])));
        assert!((f64::from(base.draws[0]) - normal_quantile(0.3)).abs() < 1e-6);
    }

    #[test]
    fn members_of_one_law_are_not_apart() {
        assert_eq!(apart(&ensemble(1, 0.0)), None);
        assert!(apart(&ensemble(4, 0.0)).unwrap() < 1e-12);
    }
}
