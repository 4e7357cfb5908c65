//! p̃, the law that all rounds' parameters are a sample of, as a density and as a source of fresh draws.

use crate::density::coordinates::Coordinates;
use crate::density::{Cpu, Ensemble};
use crate::error::Result;
use crate::inference::config::Config;
use crate::inference::failures::{FLOOR, Validity};
use crate::inference::posterior::Posterior;
use crate::math::log_sum_exp;
use crate::parallel;
use crate::problem::prior::Prior;
use crate::rng::Stream;
use crate::rows::Rows;
use rand::RngExt;

/// Draws of one random stream.
const BLOCK: usize = 512;

/// The mixture of all rounds' proposals in the flow's coordinates, by their shares of the simulations,
///
/// ```text
/// p̃(z) = Σ_k N_k/N [ s_k p(z) + (1 − s_k) q_{k−1}(z | x_o) ]
/// ```
///
/// where s_k is the share of draws of the prior in round k, 1 in the first, and q_{k−1} has the width of proposals.
pub(crate) struct ProposalLaw<'a> {
    prior: &'a Prior,
    coordinates: &'a Coordinates,
    of_prior: f64,
    parts: Vec<Part<'a>>,
    width: f64,
    /// Where simulations succeed, if successes alone are outer samples and stand for all.
    selection: Option<&'a Validity>,
}

/// The share that a posterior proposed.
struct Part<'a> {
    share: f64,
    ensemble: &'a Ensemble,
    /// The features of x_o.
    features: Vec<f32>,
}

impl<'a> ProposalLaw<'a> {
    /// That of rounds with so many simulations each, all but the first of them proposed by the posterior of the round before.
    pub(crate) fn new(
        config: &Config,
        prior: &'a Prior,
        coordinates: &'a Coordinates,
        simulations: &[usize],
        posteriors: &'a [Posterior],
    ) -> Result<Self> {
        let all = simulations.iter().sum::<usize>() as f64;
        let mut of_prior = simulations.first().map_or(0, |&first| first) as f64 / all;
        let mut parts = Vec::new();
        for (&count, posterior) in simulations.iter().skip(1).zip(posteriors) {
            let drawn = config.draws_of_prior(count);
            of_prior += drawn as f64 / all;
            parts.push(Part {
                share: (count - drawn) as f64 / all,
                ensemble: &posterior.ensemble,
                features: posterior.features(&posterior.observation)?,
            });
        }
        Ok(Self { prior, coordinates, of_prior, parts, width: config.width, selection: None })
    }

    /// This law, where outer samples are selected with this probability.
    pub(crate) fn selected(self, selection: Option<&'a Validity>) -> Self {
        Self { selection, ..self }
    }

    /// log s(z) of each row, s being the probability that p̃ is selected by: 0 everywhere if it is not, and where nearly
    /// nothing succeeds: there no outer sample would keep q away (`docs/failures.md`).
    pub(crate) fn log_selection(&self, z: Rows<f32>) -> Result<Vec<f64>> {
        let Some(validity) = self.selection else { return Ok(vec![0.0; z.len()]) };
        let mut theta = vec![0.0; z.data().len()];
        for (to, z) in theta.chunks_exact_mut(z.columns()).zip(z.iter()) {
            let z: Vec<f64> = z.iter().map(|&z| z.into()).collect();
            self.coordinates.to_theta(self.prior, &z, to);
        }
        let s = validity.probabilities(Rows::new("theta", &theta, z.columns())?);
        Ok(s.into_iter().map(|s| if s > FLOOR { s.ln() } else { 0.0 }).collect())
    }

    /// log p(z) of each row.
    pub(crate) fn log_prior(&self, z: Rows<f32>) -> Vec<f64> {
        let mut wide = vec![0.0; z.columns()];
        let of = |row: &[f32]| {
            wide.iter_mut().zip(row).for_each(|(to, &from)| *to = f64::from(from));
            self.coordinates.log_prior(self.prior, &wide)
        };
        z.iter().map(of).collect()
    }

    /// log p̃(z) of each row, whose log p(z) is known.
    pub(crate) fn log_density(&self, z: Rows<f32>, log_prior: &[f64]) -> Result<Vec<f64>> {
        let log_share = self.of_prior.ln();
        let mut terms = vec![log_prior.iter().map(|log_p| log_p + log_share).collect::<Vec<_>>()];
        for Part { share, ensemble, features } in &self.parts {
            let (sizes, x) = ([z.len()], Rows::new("x", features, features.len())?);
            let mut log_q = ensemble.log_density_of_groups(z, x, &sizes, self.width)?;
            log_q.iter_mut().for_each(|log_q| *log_q += share.ln());
            terms.push(log_q);
        }
        Ok((0..z.len()).map(|row| log_sum_exp(terms.iter().map(|term| term[row]))).collect())
    }

    /// log p̃(z) of each row, on several threads.
    pub(crate) fn log_density_of_all(
        &self,
        z: Rows<f32>,
        log_prior: &[f64],
        threads: usize,
    ) -> Result<Vec<f64>> {
        let blocks = parallel::map(z.len().div_ceil(BLOCK), threads, |block| {
            let rows = block * BLOCK..z.len().min((block + 1) * BLOCK);
            let part = &z.data()[rows.start * z.columns()..rows.end * z.columns()];
            self.log_density(Rows::new("z", part, z.columns())?, &log_prior[rows])
        });
        Ok(blocks.into_iter().collect::<Result<Vec<_>>>()?.concat())
    }

    /// log p − log (p̃ s) of each row, by which self-normalised losses divide.
    pub(crate) fn log_ratios(
        &self,
        z: Rows<f32>,
        log_prior: &[f64],
        threads: usize,
    ) -> Result<Vec<f64>> {
        let log_p = self.log_density_of_all(z, log_prior, threads)?;
        let known = log_p.into_iter().zip(self.log_selection(z)?);
        Ok(log_prior
            .iter()
            .zip(known)
            .map(|(prior, (log_p, log_s))| prior - log_p - log_s)
            .collect())
    }

    /// So many independent draws; the same for any number of threads.
    pub(crate) fn draw(
        &self,
        count: usize,
        stream: impl Fn(u64) -> Stream + Sync,
        threads: usize,
    ) -> Result<Vec<f32>> {
        let blocks = parallel::map(count.div_ceil(BLOCK), threads, |block| {
            let size = BLOCK.min(count - block * BLOCK);
            let mut rng = stream(block as u64);
            self.draw_block(size, &mut rng)
        });
        Ok(blocks.into_iter().collect::<Result<Vec<_>>>()?.concat())
    }

    /// Draws in order of their components.
    fn draw_block(&self, count: usize, rng: &mut Stream) -> Result<Vec<f32>> {
        let mut counts = vec![0; self.parts.len()];
        let mut of_prior = 0;
        for _ in 0..count {
            match self.component(rng.random()) {
                Some(part) => counts[part] += 1,
                None => of_prior += 1,
            }
        }
        let dim = self.prior.dim();
        let (mut theta, mut z, mut all) = (vec![0.0; dim], vec![0.0; dim], Vec::new());
        for _ in 0..of_prior {
            self.prior.sample(rng, &mut theta);
            let inside: Vec<f64> = self.prior.nearest_inside(&theta).collect();
            self.coordinates.to_z(self.prior, &inside, &mut z);
            all.extend(z.iter().map(|&z| z as f32));
        }
        for (part, count) in self.parts.iter().zip(counts).filter(|(_, count)| *count > 0) {
            let base = part.ensemble.base(count, self.width, rng);
            all.extend(part.ensemble.sample(&Cpu, &part.features, &base)?);
        }
        Ok(all)
    }

    /// The component that a uniform number stands for; none for the prior.
    fn component(&self, u: f64) -> Option<usize> {
        let mut below = self.of_prior;
        (u >= below).then(|| {
            let found = self.parts.iter().position(|part| {
                below += part.share;
                u < below
            });
            // Shares sum up to 1 but for rounding.
            found.unwrap_or(self.parts.len() - 1)
        })
    }
}
