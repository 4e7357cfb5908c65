//! The posterior that a run ends with: samples inside the prior's support, densities, files.

mod density;
mod file;
mod many;
mod streams;

pub use streams::{Points, SampleStreams};

use crate::density::coordinates::Coordinates;
use crate::density::{Base, Density, Ensemble};
use crate::error::{Error, Result};
use crate::inference::ranges::{Ranges, Untrained};
use crate::parallel;
use crate::problem::prior::Prior;
use crate::problem::question::check_observation;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::training::Device;
use std::sync::Arc;
use streams::BLOCK;

/// q(θ | x), and the observation at which it is the posterior.
///
/// q is exact at no observation and best at x_o, where all later rounds went.
#[derive(Clone, Debug)]
pub struct Posterior {
    pub(crate) prior: Prior,
    pub(crate) coordinates: Coordinates,
    pub(crate) ensemble: Ensemble,
    pub(crate) observation: Vec<f64>,
    /// Where the summaries of the last round fell, which is no part of the law; `None` of a model of an earlier version.
    pub(crate) ranges: Option<Ranges>,
    /// Where it is computed, which is no part of the law.
    pub(crate) device: Arc<dyn Device>,
}

/// Draws of a posterior.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// θ, row after row, each inside the prior's support.
    pub theta: Vec<f64>,
    /// Numbers of a row.
    pub dim: usize,
    /// Share of the draws that were kept: inside the support (all of them, in unbounded coordinates), or, of a truncated
    /// prior's candidates, accepted.
    pub acceptance: f64,
}

impl Samples {
    /// Number of draws.
    pub fn len(&self) -> usize {
        self.theta.len() / self.dim
    }

    /// True if there are no draws.
    pub fn is_empty(&self) -> bool {
        self.theta.is_empty()
    }

    /// The draws, one by one.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.theta.chunks_exact(self.dim)
    }
}

/// A point inside the prior's support, and the densities there.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// In the flow's coordinates.
    pub z: Vec<f32>,
    /// In the prior's.
    pub theta: Vec<f64>,
    /// log q(θ | x_o), not normalised over the support.
    pub log_q: f64,
    /// log p(θ).
    pub log_prior: f64,
    /// log |dθ/dz|.
    pub log_jacobian: f64,
}

/// Draws per sample after which sampling gives up: fewer than one in this many is inside the prior.
const PATIENCE: usize = 200;
/// Draws that are always tried.
const LEAST_DRAWS: usize = 100_000;

impl Posterior {
    /// The prior.
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// Whether it is the same law: of the same prior and observation, with the same parameters.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = self.prior == other.prior && self.observation == other.observation;
        same && self.ensemble.is_same(&other.ensemble) && self.coordinates == other.coordinates
    }

    /// The same law, computed there. One that was read is computed by the cores of this machine, that of a run where
    /// the run was.
    pub fn on(self, device: Arc<dyn Device>) -> Self {
        Self { device, ..self }
    }

    /// Where it is computed.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Number of parameters.
    pub fn dim(&self) -> usize {
        self.prior.dim()
    }

    /// x_o.
    pub fn observation(&self) -> &[f64] {
        &self.observation
    }

    /// Says where observations, one in each row, are outside of all simulations of the last round: q was hardly trained there.
    /// `None` if none is, or if the model is of an earlier version, which does not know. `names` are those of the summaries,
    /// or none.
    pub fn untrained(&self, x: Rows, names: &[String]) -> Option<Untrained> {
        self.ranges.as_ref().and_then(|ranges| ranges.untrained(x, names))
    }

    /// What q is made of.
    pub fn model(&self) -> &Density {
        self.ensemble.density()
    }

    /// Number of members that q is a mixture of.
    pub fn members(&self) -> usize {
        self.ensemble.members().len()
    }

    /// How far the members are apart at x_o, from 0 (they are one law) to 1 (no two of them overlap); none of a single one.
    pub(crate) fn disagreement(
        &self,
        streams: SampleStreams,
        threads: usize,
    ) -> Result<Option<f64>> {
        let features = self.features(&self.observation)?;
        let SampleStreams { streams, purpose, round, .. } = streams;
        let rng = |member| streams.stream(purpose, round, member);
        match self.ensemble.disagreement(&*self.device, &features, BLOCK, threads, rng) {
            // A member that has no number for its own draws: the posterior is saved all the same.
            Err(Error::OutOfRange { .. }) => Ok(None),
            other => other,
        }
    }

    /// Samples of the posterior: the same rows for the same seed, on all cores.
    ///
    /// The work is bounded: if nearly all of q lies outside the prior's support, it is an error that tells the share.
    pub fn sample(&self, rows: usize, seed: u64) -> Result<Samples> {
        let streams = SampleStreams::new(Streams::new(seed), Purpose::Posterior, 0);
        self.draw(rows, streams, parallel::cores())
    }

    /// `count` draws of the posterior, by these streams and on so many threads.
    pub fn draw(&self, count: usize, streams: SampleStreams, threads: usize) -> Result<Samples> {
        self.sample_at(&self.observation, count, streams, threads)
    }

    /// Draws of a law that is wider than the posterior, to propose parameters from: the base's standard deviation is
    /// `width` instead of 1.
    pub fn propose(
        &self,
        count: usize,
        width: f64,
        streams: SampleStreams,
        threads: usize,
    ) -> Result<Samples> {
        self.draw_wide(&self.observation, count, width, streams, threads)
    }

    /// Draws of q at another observation.
    pub fn sample_at(
        &self,
        x: &[f64],
        count: usize,
        streams: SampleStreams,
        threads: usize,
    ) -> Result<Samples> {
        self.draw_wide(x, count, 1.0, streams, threads)
    }

    fn draw_wide(
        &self,
        x: &[f64],
        count: usize,
        width: f64,
        streams: SampleStreams,
        threads: usize,
    ) -> Result<Samples> {
        streams.check(self.dim())?;
        let features = self.features(x)?;
        let most = count.saturating_mul(PATIENCE).max(LEAST_DRAWS);
        let (mut theta, mut drawn, mut accepted) = (Vec::new(), 0, 0);
        let dim = self.prior.dim();
        while accepted < count {
            // As many blocks as the rate so far suggests; which blocks are used does not depend on it.
            let rate = if drawn == 0 { 1.0 } else { (accepted as f64 / drawn as f64).max(0.01) };
            let blocks = (((count - accepted) as f64 / rate / BLOCK as f64).ceil() as usize).max(1);
            let first = drawn / BLOCK;
            let waves = parallel::map(blocks, threads, |i| {
                self.block(&features, width, streams, (first + i) as u64)
            });
            for block in waves {
                if accepted < count {
                    let block = block?;
                    drawn += BLOCK;
                    accepted += block.len() / dim;
                    theta.extend(block);
                }
            }
            if drawn >= most && accepted < count {
                return Err(Error::Leakage { drawn, accepted });
            }
        }
        theta.truncate(count * dim);
        let acceptance = if drawn == 0 { 1.0 } else { accepted as f64 / drawn as f64 };
        Ok(Samples { theta, dim: self.dim(), acceptance })
    }

    /// The points that draws of the base go to, without those outside the support.
    pub(crate) fn drawn(&self, base: &Base) -> Result<Vec<Point>> {
        let features = self.features(&self.observation)?;
        let (z, log_q) = self.ensemble.transport(&*self.device, &features, base)?;
        Ok(self.points(&z, log_q).into_iter().flatten().collect())
    }

    /// These points; none for those outside the support.
    pub(crate) fn at(&self, z: &[f32]) -> Result<Vec<Option<Point>>> {
        let features = self.features(&self.observation)?;
        let (rows, x) =
            (Rows::new("z", z, self.dim())?, Rows::new("x", &features, features.len())?);
        Ok(self.points(z, self.ensemble.log_density(&*self.device, rows, x)?))
    }

    fn points(&self, z: &[f32], log_q: Vec<f64>) -> Vec<Option<Point>> {
        let point = |(z, log_q): (&[f32], f64)| {
            let (theta, log_jacobian) = self.theta_inside(z)?;
            let (log_prior, log_q) = (self.prior.log_density(&theta), log_q - log_jacobian);
            Some(Point { z: z.to_vec(), theta, log_q, log_prior, log_jacobian })
        };
        z.chunks_exact(self.dim()).zip(log_q).map(point).collect()
    }

    /// θ of a z, and log |dθ/dz|; none if it is outside the support.
    fn theta_inside(&self, z: &[f32]) -> Option<(Vec<f64>, f64)> {
        let z: Vec<f64> = z.iter().map(|&z| f64::from(z)).collect();
        let mut theta = vec![0.0; z.len()];
        let log_jacobian = self.coordinates.to_theta(&self.prior, &z, &mut theta);
        if self.coordinates.is_unbounded() {
            return Some((self.prior.nearest_inside(&theta).collect(), log_jacobian));
        }
        self.prior.contains(&theta).then_some((theta, log_jacobian))
    }

    /// One block of draws, without those outside the support.
    fn block(
        &self,
        features: &[f32],
        width: f64,
        from: SampleStreams,
        index: u64,
    ) -> Result<Vec<f64>> {
        let base = from.base(&self.ensemble, width, index)?;
        let z = self.ensemble.sample(&*self.device, features, &base)?;
        let rows = z.chunks_exact(self.prior.dim()).filter_map(|z| self.theta_inside(z));
        Ok(rows.flat_map(|(theta, _)| theta).collect())
    }

    /// What the flow reads of an observation.
    pub(crate) fn features(&self, x: &[f64]) -> Result<Vec<f32>> {
        let expected = self.coordinates.x_dim();
        if x.len() != expected {
            let (found, why) = (x.len(), "one for each summary of the simulator");
            let (name, unit) = ("observation", "numbers");
            return Err(Error::Shape { name, unit, found, expected, why });
        }
        check_observation(x)?;
        Ok(self.coordinates.features(x.iter().copied()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::coordinates::Space;
    use crate::density::flow::{FlowConfig, SplineFlow};
    use crate::rng::Purpose;
    use crate::training::Cpu;

    /// A law of normal parameters on the unbounded side of the prior: splines that act nearly nowhere leave the flow the
    /// identity.
    fn normal<const D: usize>(members: usize) -> Posterior {
        let names: [String; D] = std::array::from_fn(|k| format!("p{k}"));
        let names = names.each_ref().map(String::as_str);
        let prior = Prior::uniform(names, [0.0; D], [1.0; D]).unwrap();
        let config = FlowConfig { layers: 1, bound: 1e-3, ..FlowConfig::new(D, 1) };
        let flow = SplineFlow::new(config).unwrap();
        let params = flow.initial_params(&mut Streams::new(1).stream(Purpose::Weights, 0, 0));
        let coordinates = Coordinates::plain(Space::Unbounded, D, 1);
        let ensemble = Ensemble::new(Density::Flow(flow), vec![params; members]);
        let (device, observation, ranges) = (Arc::new(Cpu), vec![0.3], None);
        Posterior { prior, coordinates, ensemble, observation, ranges, device }
    }

    /// Proposals have the width as their standard deviation.
    #[test]
    fn proposals_are_wider_by_the_factor_asked_for() {
        let posterior = normal::<2>(1);
        let streams = SampleStreams::new(Streams::new(1), Purpose::Posterior, 0);
        let variance = |width: f64| {
            let theta = posterior.propose(4000, width, streams, 1).unwrap().theta;
            let mut z = [0.0; 2];
            let squares = theta.chunks_exact(2).map(|row| {
                posterior.prior.unbounded(row, &mut z);
                z.iter().map(|z| z * z).sum::<f64>()
            });
            squares.sum::<f64>() / 8000.0
        };
        // The standard error of a variance of n = 8000 draws is √(2/n) of it: 1.6 %, four of them.
        assert!((variance(1.0) - 1.0).abs() < 0.064, "{}", variance(1.0));
        assert!((variance(1.5) / 2.25 - 1.0).abs() < 0.064, "{}", variance(1.5));
    }

    /// Parameters are uniform on the unit cube: a mean of n independent ones has the error 1/√(12 n), 0.0090 for 1024, and one of
    /// a net at most 1/n, since every one of n intervals has one point. Of an ensemble, too; for any number of threads.
    #[test]
    fn means_over_a_net_have_smaller_errors() {
        for members in [1, 3] {
            let posterior = normal::<3>(members);
            let error = |points: Points, seed: u64| {
                let streams = SampleStreams::new(Streams::new(seed), Purpose::Posterior, 1);
                let theta = posterior.draw(1024, streams.by(points), 2).unwrap().theta;
                let sum: f64 = theta.iter().step_by(3).sum();
                (sum / 1024.0 - 0.5).powi(2)
            };
            let of = |points| (0..16).map(|seed| error(points, seed)).sum::<f64>() / 16.0;
            assert!(of(Points::Sobol).sqrt() < 1.0 / 1024.0, "{}", of(Points::Sobol).sqrt());
            assert!(of(Points::Random).sqrt() > 0.004);
        }
        let streams = SampleStreams::new(Streams::new(1), Purpose::Posterior, 1).by(Points::Sobol);
        let draw = |threads| normal::<3>(3).draw(2000, streams, threads).unwrap();
        assert_eq!(draw(1), draw(3));
        let told = normal::<128>(1).draw(8, streams, 1).unwrap_err().to_string();
        assert!(told.contains("points is sobol") && told.contains("127"), "{told}");
    }
}
