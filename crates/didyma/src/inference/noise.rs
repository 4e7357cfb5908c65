//! Noise on training summaries, so that a posterior bears an observation that the model cannot give.

use crate::inference::config::Config;
use crate::rng::{Purpose, SimulationStreams, Streams};
use rand::RngExt;
use rand_distr::{Cauchy, Distribution, StandardNormal};
use std::collections::BTreeMap;

/// Standard deviation of the spike, in units of a summary's scale.
const SPIKE: f64 = 0.01;
/// Probability of the slab.
const SLAB: f64 = 0.5;

/// A law of spike and slab for each summary (Ward et al. 2022): it is nearly right, or wrong by a Cauchy law of this
/// scale. Trained on summaries with such noise, q(θ | x_o) is the posterior of a model whose summaries may each be wrong:
/// one that contradicts the others counts for little, however far out it is.
///
/// The draws of a simulation depend on seed, round and index alone: a resumed run, any number of threads and every
/// member of an ensemble have the same.
#[derive(Clone, Debug)]
pub(crate) struct SummaryNoise {
    scale: f64,
    streams: Streams,
    /// Streams of the rounds that were asked for.
    rounds: BTreeMap<u32, SimulationStreams>,
}

impl SummaryNoise {
    /// The noise of a run; none where the settings have none.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let (scale, streams) = (config.train.noise, Streams::new(config.seed));
        (scale > 0.0).then(|| Self { scale, streams, rounds: BTreeMap::new() })
    }

    /// The noise of one simulation, summary after summary, in units of their scales.
    pub(crate) fn of_row(&mut self, round: u32, index: u32) -> impl Iterator<Item = f64> + use<> {
        let (scale, streams) = (self.scale, self.streams);
        let of_round = self
            .rounds
            .entry(round)
            .or_insert_with(|| streams.simulations(Purpose::SummaryNoise, round.into()));
        let mut rng = of_round.stream(index.into());
        let slab = Cauchy::new(0.0, scale).expect("a positive scale");
        std::iter::repeat_with(move || {
            if rng.random::<f64>() < SLAB {
                slab.sample(&mut rng)
            } else {
                let spike: f64 = StandardNormal.sample(&mut rng);
                SPIKE * spike
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64) -> SummaryNoise {
        let mut config = Config { seed, ..Config::default() };
        assert!(SummaryNoise::of(&config).is_none());
        config.train.noise = 0.25;
        SummaryNoise::of(&config).unwrap()
    }

    #[test]
    fn a_row_has_its_own_noise_whenever_it_is_asked() {
        let of = |seed, round, index| noise(seed).of_row(round, index).take(3).collect::<Vec<_>>();
        let mut other = noise(1);
        other.of_row(2, 9).take(5).for_each(drop);
        assert_eq!(other.of_row(1, 4).take(3).collect::<Vec<_>>(), of(1, 1, 4));
        let all = [of(1, 1, 4), of(2, 1, 4), of(1, 2, 4), of(1, 1, 5)];
        for (i, row) in all.iter().enumerate() {
            assert!(row[0] != row[1] && all[i + 1..].iter().all(|other| row[0] != other[0]));
        }
    }

    /// Half of 40,000 draws are of the slab. Beyond ±0.25 lie a half of the slab and none of the spike: a quarter, by a
    /// standard error of 0.22 %. Within ±0.02 lie 95.4 % of the spike and (2/π) atan(0.08) = 5.1 % of the slab: 50.3 %, by
    /// 0.25 %. Four standard errors each.
    #[test]
    fn half_of_the_draws_are_a_spike_and_half_a_slab() {
        let mut noise = noise(3);
        let draws: Vec<f64> = (0..10_000).flat_map(|i| noise.of_row(1, i).take(4)).collect();
        let share = |test: &dyn Fn(f64) -> bool| {
            draws.iter().filter(|&&e| test(e)).count() as f64 / draws.len() as f64
        };
        assert!((share(&|e| e.abs() > 0.25) - 0.25).abs() < 0.009);
        assert!((share(&|e| e.abs() < 0.02) - 0.503).abs() < 0.010);
        assert!((share(&|e| e > 0.0) - 0.5).abs() < 0.010);
    }
}
