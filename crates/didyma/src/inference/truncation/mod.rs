//! The prior, restricted to the region that holds nearly all of the posterior so far.
//!
//! Truncated proposals (Deistler et al. 2022) follow the prior p on A = {θ : q(θ | x_o) ≥ κ}, where κ leaves out a small
//! share of q. Inside A the proposal is the prior up to a constant, so that maximum likelihood needs no correction at x_o.
//!
//! A may be a millionth of the prior, so that drawing from the prior until a draw falls into A may never end; and q is no
//! law to draw from either, since most of A is where q is smallest. So a swarm of particles goes from q to p in stages
//! (population Monte Carlo): particles of the law ∝ q^(1−β) p^β on A are the centres of a mixture of kernels, from
//! which candidates for a larger β are drawn and weighted exactly by law over mixture. At β = 1 candidates are accepted
//! with a probability proportional to their weights: a good mixture only makes it quick. Where it is not good enough, as
//! with many parameters, particles that are drawn by their weights walk in the region until they have forgotten where they
//! began.

mod mixture;
mod walk;

use crate::error::{Error, Result};
use crate::inference::posterior::{Point, Posterior, SampleStreams, Samples};
use crate::math::particles::{effective, normalised};
use crate::parallel;
use crate::rng::Purpose;
use mixture::Mixture;
use rand::RngExt;

/// Candidates that come from one random stream.
const BLOCK: usize = 256;
/// Blocks of candidates of a stage, of which those inside the region are its particles; half as many as there are draws of
/// q if these are few.
const STAGE: usize = 8;
/// Stages at most. If they are not enough, sampling only takes longer.
const STAGES: u64 = 40;
/// Share of a stage's particles that its weights are worth, at least, when β rises.
const WORTH: f64 = 0.3;
/// Candidates inside the region that tell how large weights are, at least, and enough of them.
const LEAST: usize = 20;
const ENOUGH: usize = 200;
/// Candidates that are tried for that.
const MOST_OF_A_PILOT: usize = 200_000;
/// Share of candidates accepted below which the mixture is no law to draw from, and particles walk instead.
const THIN: f64 = 0.003;
/// Candidates per draw after which sampling gives up.
const PATIENCE: usize = 1000;
/// Largest share of all weight that is cut off, in favour of a higher acceptance rate.
const CUT: f64 = 0.01;

/// p(θ) on {q(θ | x_o) ≥ κ}.
#[derive(Debug)]
pub struct TruncatedPrior<'a> {
    posterior: &'a Posterior,
    streams: SampleStreams,
    /// log κ.
    threshold: f64,
    /// What candidates come from, and the stage after the last.
    mixture: Mixture,
    stage: u64,
    /// Blocks of a stage.
    blocks: usize,
}

/// A candidate inside the region.
struct Candidate {
    point: Point,
    /// Logarithm of the mixture's density, in the flow's coordinates.
    log_mixture: f64,
    /// Uniform in (0, 1): it is accepted if this is below its weight.
    chance: f64,
}

impl Candidate {
    /// log of q^(1−β) p^β over the mixture.
    fn log_weight(&self, beta: f64) -> f64 {
        let Point { log_q, log_prior, log_jacobian, .. } = self.point;
        (1.0 - beta) * log_q + beta * log_prior + log_jacobian - self.log_mixture
    }
}

impl<'a> TruncatedPrior<'a> {
    /// The region that leaves out a `share` of the posterior, found by `draws` of it from these streams; candidates and
    /// walks have purposes of their own.
    pub fn new(
        posterior: &'a Posterior,
        share: f64,
        draws: usize,
        streams: SampleStreams,
        threads: usize,
    ) -> Result<Self> {
        let mut points = draws_of_q(posterior, draws, streams, threads)?;
        let threshold = threshold(&points, share, draws)?;
        points.retain(|point| point.log_q >= threshold);
        let blocks = (draws / BLOCK / 2).clamp(2, STAGE);
        points.truncate(blocks * BLOCK);
        let mixture = Mixture::new(points.iter(), &vec![0.0; points.len()], draws)?;
        let mut region = Self { posterior, streams, threshold, mixture, stage: 0, blocks };
        region.spread(threads)?;
        Ok(region)
    }

    /// log κ: the density of the posterior at the edge of the region.
    pub fn log_threshold(&self) -> f64 {
        self.threshold
    }

    /// Takes the mixture from q to p.
    fn spread(&mut self, threads: usize) -> Result<()> {
        let mut beta = 0.0;
        while self.stage < STAGES && beta < 1.0 {
            let swarm = self.swarm(0, self.blocks, threads)?;
            if swarm.len() <= self.mixture.dim {
                // Too few to say anything of their covariance: the mixture before is better.
                break;
            }
            let weights = |beta: f64| swarm.iter().map(|c| c.log_weight(beta)).collect::<Vec<_>>();
            let worth =
                |beta: f64| effective(&normalised(&weights(beta))) >= WORTH * swarm.len() as f64;
            let (mut low, mut high) = (beta, 1.0);
            if worth(high) {
                low = high;
            }
            for _ in 0..20 {
                let middle = 0.5 * (low + high);
                if worth(middle) { low = middle } else { high = middle }
            }
            // A little farther in any case: the weights are right, only fewer.
            beta = low.max(beta + 0.02).min(1.0);
            let points = swarm.iter().map(|candidate| &candidate.point);
            self.mixture = Mixture::new(points, &weights(beta), self.blocks * BLOCK)?;
            self.stage += 1;
        }
        Ok(())
    }

    /// `count` draws.
    pub fn sample(&self, count: usize, threads: usize) -> Result<Samples> {
        let (mut pilot, mut drawn) = (self.swarm(0, self.blocks, threads)?, self.blocks * BLOCK);
        while pilot.len() < ENOUGH && drawn < MOST_OF_A_PILOT {
            pilot.extend(self.swarm(drawn / BLOCK, self.blocks, threads)?);
            drawn += self.blocks * BLOCK;
        }
        if pilot.len() < LEAST {
            return Err(Error::ThinRegion { drawn, accepted: pilot.len() });
        }
        let bound = log_bound(pilot.iter().map(|candidate| candidate.log_weight(1.0)).collect());
        let accepts = |c: &Candidate| c.chance.ln() < c.log_weight(1.0) - bound;
        let accepted = pilot.iter().filter(|c| accepts(c)).count();
        if (accepted as f64) < THIN * drawn as f64 {
            let theta = self.walk(count, &pilot, threads)?;
            let (dim, acceptance) = (self.posterior.dim(), accepted as f64 / drawn as f64);
            return Ok(Samples { theta, dim, acceptance });
        }
        let theta = |c: Candidate| c.point.theta;
        let mut rows: Vec<Vec<f64>> = pilot.into_iter().filter(accepts).map(theta).collect();
        while rows.len() < count {
            if drawn >= count.saturating_mul(PATIENCE) {
                return Err(Error::ThinRegion { drawn, accepted: rows.len() });
            }
            // As many as the rate so far suggests; which draws are taken does not depend on it.
            let rate = (rows.len() as f64 / drawn as f64).max(0.01);
            let blocks = ((count - rows.len()) as f64 / rate / BLOCK as f64).ceil() as usize;
            let more = self.swarm(drawn / BLOCK, blocks, threads)?;
            rows.extend(more.into_iter().filter(accepts).map(theta));
            drawn += blocks * BLOCK;
        }
        let acceptance = rows.len() as f64 / drawn as f64;
        rows.truncate(count);
        Ok(Samples { theta: rows.concat(), dim: self.posterior.dim(), acceptance })
    }

    /// The candidates of some blocks that lie inside the region.
    fn swarm(&self, first: usize, blocks: usize, threads: usize) -> Result<Vec<Candidate>> {
        let found = parallel::map(blocks, threads, |i| self.candidates((first + i) as u64));
        let mut all = Vec::new();
        for block in found {
            all.extend(block?);
        }
        Ok(all)
    }

    fn candidates(&self, block: u64) -> Result<Vec<Candidate>> {
        let SampleStreams { streams, round, .. } = self.streams;
        let mut rng = streams.stream(Purpose::Candidates, round, block);
        rng.set_stream(self.stage);
        let mut z = Vec::with_capacity(BLOCK * self.mixture.dim);
        for _ in 0..BLOCK {
            z.extend(self.mixture.sample(&mut rng).into_iter().map(|z| z as f32));
        }
        let inside = self.posterior.at(&z)?.into_iter().flatten();
        Ok(inside
            .filter(|point| point.log_q >= self.threshold)
            .map(|point| {
                let (log_mixture, chance) = (self.mixture.log_density(&point.z), rng.random());
                Candidate { point, log_mixture, chance }
            })
            .collect())
    }
}

/// log κ of the region that [`TruncatedPrior::new`] finds, without what is needed to draw from it.
pub(crate) fn log_threshold(
    posterior: &Posterior,
    share: f64,
    draws: usize,
    streams: SampleStreams,
    threads: usize,
) -> Result<f64> {
    threshold(&draws_of_q(posterior, draws, streams, threads)?, share, draws)
}

/// The density of q that a share of its draws lies below.
fn threshold(points: &[Point], share: f64, draws: usize) -> Result<f64> {
    let mut log_q: Vec<f64> = points.iter().map(|point| point.log_q).collect();
    log_q.sort_unstable_by(f64::total_cmp);
    let place = (share * log_q.len() as f64) as usize;
    // As in sampling: fewer than one in 200 inside say nothing of q.
    let found = log_q.get(place).filter(|_| log_q.len() >= draws / 200);
    found.copied().ok_or(Error::Leakage { drawn: draws, accepted: log_q.len() })
}

fn draws_of_q(
    posterior: &Posterior,
    draws: usize,
    streams: SampleStreams,
    threads: usize,
) -> Result<Vec<Point>> {
    let blocks = parallel::map(draws.div_ceil(BLOCK), threads, |i| {
        let mut rng = streams.streams.stream(streams.purpose, streams.round, i as u64);
        posterior.drawn(&posterior.ensemble.base(BLOCK, 1.0, &mut rng))
    });
    let mut points = Vec::with_capacity(draws);
    for block in blocks {
        points.extend(block?);
    }
    Ok(points)
}

/// The logarithm of the smallest of the weights, b, for which Σ min(w, b) is at least 1 − [`CUT`] of Σ w. A few candidates
/// where the mixture is thin may weigh a hundred times as much as the rest: cutting them down costs the proposal next to
/// nothing.
fn log_bound(mut log_weights: Vec<f64>) -> f64 {
    log_weights.sort_unstable_by(f64::total_cmp);
    let Some(&largest) = log_weights.last() else { return 0.0 };
    let weights: Vec<f64> = log_weights.iter().map(|l| (l - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut below = 0.0;
    for (i, w) in weights.iter().enumerate() {
        if below + w * (weights.len() - i) as f64 >= (1.0 - CUT) * total {
            return largest + w.ln();
        }
        below += w;
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::coordinates::{Coordinates, Space};
    use crate::density::flow::{FlowConfig, SplineFlow};
    use crate::density::{Density, Ensemble};
    use crate::problem::prior::Prior;
    use crate::rng::Streams;
    use crate::rows::Rows;

    const SHARE: f64 = 0.01;

    fn streams() -> SampleStreams {
        SampleStreams::new(Streams::new(3), Purpose::Parameters, 2)
    }

    /// A flow whose splines act on \[−bound, bound\], of random weights that are `strength` times as large as usual.
    fn posterior(bound: f64, strength: f32) -> Posterior {
        let prior = Prior::uniform(["a", "b"], [-8.0; 2], [8.0; 2]).unwrap();
        let flow = SplineFlow::new(FlowConfig { layers: 2, bound, ..FlowConfig::new(2, 1) });
        let flow = flow.unwrap();
        let mut rng = Streams::new(1).stream(Purpose::Weights, 0, 0);
        let params: Vec<f32> = flow.initial_params(&mut rng);
        let params = params.iter().map(|w| w * strength).collect();
        let coordinates = Coordinates::plain(Space::Bounded, 2, 1);
        let ensemble = Ensemble::new(Density::Flow(flow), vec![params]);
        let (device, observation) = (std::sync::Arc::new(crate::training::Cpu), vec![0.3]);
        Posterior { prior, coordinates, ensemble, observation, ranges: None, device }
    }

    /// Where q is a standard normal law of the plane, 1 % of it is outside the disc of radius² −2 log 0.01, on which the
    /// prior is uniform: radius² is uniform too.
    #[test]
    fn the_prior_on_a_disc_is_uniform() {
        let posterior = posterior(1e-3, 0.0);
        // All weights 0 leave the linear layers' diagonals at softplus(0) instead of 1: a normal law all the same.
        let (draws, count) = (100_000, 4000);
        let region = TruncatedPrior::new(&posterior, SHARE, draws, streams(), 2).unwrap();
        let found = region.sample(count, 2).unwrap();
        assert!(found.acceptance > 0.3, "{}", found.acceptance);
        let row = Rows::new("theta", &found.theta, 2).unwrap();
        let log_q = posterior.log_density(row, 1).unwrap();
        // log q = log q(0) − radius²/2. In the very middle the splines act.
        let top =
            posterior.log_density(Rows::new("theta", &[0.01, 0.01], 2).unwrap(), 1).unwrap()[0];
        let radius2: Vec<f64> = log_q.iter().map(|l| 2.0 * (top - l)).collect();
        let edge = 2.0 * (top - region.log_threshold());
        // The ε-quantile of n draws: standard error of −2 log ε is 2 / √(n ε) = 0.063, four of them.
        assert!((edge + 2.0 * SHARE.ln()).abs() < 0.26, "{edge}");
        assert!(radius2.iter().all(|r| *r <= edge + 1e-3));
        // Uniform on (0, edge): mean ½ edge, standard error edge / √(12 n), four of them.
        let mean = radius2.iter().sum::<f64>() / count as f64;
        let error = edge / (12.0 * count as f64).sqrt();
        assert!((mean - edge / 2.0).abs() < 4.0 * error + 0.26 / 2.0, "{mean} {edge}");
        assert_eq!(found, region.sample(count, 1).unwrap(), "any number of threads");
    }

    /// Particles that begin in the inner half of the disc end up uniform on all of it.
    #[test]
    fn a_walk_forgets_where_it_began() {
        let posterior = posterior(1e-3, 0.0);
        let region = TruncatedPrior::new(&posterior, SHARE, 20_000, streams(), 2).unwrap();
        let top =
            posterior.log_density(Rows::new("theta", &[0.01, 0.01], 2).unwrap(), 1).unwrap()[0];
        let edge = 2.0 * (top - region.log_threshold());
        let mut inner = region.swarm(0, 4, 2).unwrap();
        inner.retain(|candidate| 2.0 * (top - candidate.point.log_q) < edge / 2.0);
        let count = 4000;
        let theta = region.walk(count, &inner, 2).unwrap();
        assert_eq!(theta, region.walk(count, &inner, 1).unwrap(), "any number of threads");
        let log_q = posterior.log_density(Rows::new("theta", &theta, 2).unwrap(), 1).unwrap();
        let mean = log_q.iter().map(|l| 2.0 * (top - l)).sum::<f64>() / count as f64;
        // Uniform on (0, edge): mean ½ edge (a quarter where they began), standard error edge / √(12 n), four of them.
        let error = edge / (12.0 * count as f64).sqrt();
        assert!((mean - edge / 2.0).abs() < 4.0 * error, "{mean} {edge} ± {error}");
    }

    /// Draws agree with those that are taken from the prior until they fall into the region.
    #[test]
    fn draws_follow_the_prior_in_a_bent_region() {
        let posterior = posterior(5.0, 2.0);
        let region = TruncatedPrior::new(&posterior, SHARE, 50_000, streams(), 2).unwrap();
        let found = region.sample(4000, 2).unwrap().theta;
        let prior = posterior.prior();
        let uniform =
            prior.sample_rows(200_000, &Streams::new(5).simulations(Purpose::Posterior, 0), 2);
        let log_q = posterior.log_density(Rows::new("theta", &uniform, 2).unwrap(), 2).unwrap();
        let inside = uniform.chunks_exact(2).zip(&log_q);
        let inside: Vec<&[f64]> =
            inside.filter(|(_, l)| **l >= region.log_threshold()).map(|(row, _)| row).collect();
        assert!(inside.len() > 1000, "{} of the prior's draws", inside.len());
        for (name, statistic) in [
            ("a", (|r| r[0]) as fn(&[f64]) -> f64),
            ("b", |r| r[1]),
            ("a²", |r| r[0].powi(2)),
            ("b²", |r| r[1].powi(2)),
            ("ab", |r| r[0] * r[1]),
        ] {
            let moments = |values: Vec<f64>| {
                let (n, mean) =
                    (values.len() as f64, values.iter().sum::<f64>() / values.len() as f64);
                (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n / n)
            };
            let (mean, error2) = moments(found.chunks_exact(2).map(statistic).collect());
            let (exact, exact_error2) = moments(inside.iter().map(|r| statistic(r)).collect());
            // Weights are cut by 1 % at most, which moves a mean by less than 1 % of the spread √(n error²).
            let bias = CUT * (error2 * 4000.0).sqrt() * 3.0;
            let allowed = 4.0 * (error2 + exact_error2).sqrt() + bias;
            assert!((mean - exact).abs() < allowed, "{name}: {mean} {exact} ± {allowed}");
        }
    }

    /// A region that cannot be found, or not be drawn from, is an error that says so, not an arbitrary proposal.
    #[test]
    fn what_cannot_be_drawn_from_is_told() {
        let mut far = posterior(1e-3, 0.0);
        far.prior = Prior::uniform(["a", "b"], [50.0; 2], [58.0; 2]).unwrap();
        let found = TruncatedPrior::new(&far, SHARE, 2000, streams(), 1);
        assert!(matches!(found, Err(Error::Leakage { drawn: 2000, accepted: 0 })), "{found:?}");
        let near = posterior(1e-3, 0.0);
        let mut region = TruncatedPrior::new(&near, SHARE, 2000, streams(), 1).unwrap();
        region.threshold = 10.0;
        let found = region.sample(10, 1).map(|samples| samples.acceptance);
        assert!(matches!(found, Err(Error::ThinRegion { accepted: 0, .. })), "{found:?}");
    }

    #[test]
    fn the_bound_cuts_off_no_more_than_allowed() {
        // One weight of 100 among 10,000 of 1: cutting it to 1 takes 99 of 10,100, less than 1 %.
        let mut weights = vec![0.0; 10_000];
        weights.push(100.0f64.ln());
        assert!(log_bound(weights.clone()).abs() < 1e-12);
        // Ten of them are 9 %: here nothing can be cut by the next smaller weight, and the bound is theirs.
        weights.extend([100.0f64.ln(); 9]);
        assert!((log_bound(weights).exp() - 100.0).abs() < 1e-9);
        assert_eq!(log_bound(Vec::new()), 0.0);
    }
}
