//! Simulations that training never saw, as sets of candidates: from what is known of the law of their parameters.

use super::Candidates;
use crate::density::{Cpu, Ensemble};
use crate::error::Result;
use crate::inference::failures::{FLOOR, Validity};
use crate::inference::posterior::Posterior;
use crate::parallel;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;

/// Simulations that are worked on together.
const CHUNK: usize = 16;

/// The law that parameters were proposed by.
#[derive(Clone, Debug)]
pub(crate) enum Law {
    /// The prior.
    Prior,
    /// A posterior at x_o, of this width.
    Posterior { posterior: Box<Posterior>, width: f64 },
    /// The prior where a posterior has this density at x_o, at least.
    Region { posterior: Box<Posterior>, log_threshold: f64 },
}

impl Law {
    /// log p̃ − log p of each row, up to a constant; −∞ where there is none.
    pub(super) fn log_ratio(&self, theta: Rows) -> Result<Vec<f64>> {
        let of_prior = |posterior: &Posterior| -> Vec<f64> {
            theta.iter().map(|row| posterior.prior().log_density(row)).collect()
        };
        match self {
            Self::Prior => Ok(vec![0.0; theta.len()]),
            Self::Posterior { posterior, width } => {
                let log_q = posterior.log_proposal(theta, *width)?.into_iter();
                let ratio = |(log_q, log_p): (f64, f64)| match log_p.is_finite() {
                    true => log_q - log_p,
                    false => f64::NEG_INFINITY,
                };
                Ok(log_q.zip(of_prior(posterior)).map(ratio).collect())
            }
            Self::Region { posterior, log_threshold } => {
                let inside = |log_q: f64| match log_q >= *log_threshold {
                    true => 0.0,
                    false => f64::NEG_INFINITY,
                };
                Ok(posterior.log_proposal(theta, 1.0)?.into_iter().map(inside).collect())
            }
        }
    }
}

impl Law {
    /// log p̃ of each row up to a constant, and of a region that of the posterior that it was cut from; none of the prior.
    pub(crate) fn log_density(&self, theta: Rows) -> Result<Option<Vec<f64>>> {
        match self {
            Self::Prior => Ok(None),
            Self::Posterior { posterior, width } => posterior.log_proposal(theta, *width).map(Some),
            Self::Region { posterior, .. } => posterior.log_proposal(theta, 1.0).map(Some),
        }
    }
}

/// A simulation that training never saw.
#[derive(Clone, Debug)]
pub(crate) struct HeldOutRow {
    /// The round that simulated it.
    pub round: u32,
    pub theta: Vec<f64>,
    /// Its x as q reads it.
    pub features: Vec<f32>,
    /// The member of the ensemble that never saw it; none if no member did.
    pub member: Option<usize>,
    /// The number of the law that proposed it.
    pub law: usize,
}

/// Simulations that training never saw, and what is known of them.
pub(crate) struct HeldOut<'a> {
    pub posterior: &'a Posterior,
    pub laws: Vec<Law>,
    pub rows: Vec<HeldOutRow>,
    /// Where simulations succeed, if those that failed are missing from the rows and the posterior makes up for it.
    pub success: Option<&'a Validity>,
}

/// Sets of candidates, with the x of each in the units that q reads.
pub(crate) struct Sets {
    pub candidates: Candidates,
    pub features: Vec<f64>,
}

/// Candidates of some rows.
struct Piece {
    theta: Vec<f64>,
    /// The same in the coordinates of the flow.
    z: Vec<f32>,
    log_q: Vec<f64>,
    log_weights: Vec<f64>,
}

impl HeldOut<'_> {
    /// The candidates of all rows: θ, and so many draws of the law that never saw it. Their statistics are each parameter, log q,
    /// and the distance to a random point, which depends on the whole set alone.
    pub(crate) fn sets(&self, draws: usize, streams: &Streams, threads: usize) -> Result<Sets> {
        // Rows of one member follow each other, so that few pieces are of two.
        let mut order: Vec<&HeldOutRow> = self.rows.iter().collect();
        order.sort_by_key(|row| (row.member, row.law));
        let alike = |a: &&HeldOutRow, b: &&HeldOutRow| (a.member, a.law) == (b.member, b.law);
        let chunks: Vec<&[&HeldOutRow]> =
            order.chunk_by(alike).flat_map(|rows| rows.chunks(CHUNK)).collect();
        let laws = self.ensembles();
        let pieces = parallel::map(chunks.len(), threads, |index| {
            let q = chunks[index][0].member.map_or(&self.posterior.ensemble, |m| &laws[m]);
            self.piece(chunks[index], q, draws, (streams, index as u64))
        });
        self.assembled(&order, pieces.into_iter().collect::<Result<_>>()?, draws + 1, streams)
    }

    /// Each member as a law of its own.
    fn ensembles(&self) -> Vec<Ensemble> {
        let ensemble = &self.posterior.ensemble;
        let alone =
            |params: &Vec<f32>| Ensemble::new(ensemble.density().clone(), vec![params.clone()]);
        ensemble.members().iter().map(alone).collect()
    }

    /// Candidates of rows that have one law and one proposal.
    fn piece(
        &self,
        rows: &[&HeldOutRow],
        q: &Ensemble,
        draws: usize,
        (streams, index): (&Streams, u64),
    ) -> Result<Piece> {
        let Self { posterior, .. } = self;
        let (prior, coordinates, dim) =
            (posterior.prior(), &posterior.coordinates, posterior.dim());
        let features: Vec<f32> = rows.iter().flat_map(|row| &row.features).copied().collect();
        let x = Rows::new("x", &features, features.len() / rows.len())?;
        let mut rng = streams.stream(Purpose::HeldOut, 0, index);
        let base = q.base(rows.len() * draws, 1.0, &mut rng);
        let drawn = q.transport_groups(&Cpu, &base, x, &vec![draws; rows.len()])?;
        let (mut all_z, mut theta, mut jacobians) = (Vec::new(), Vec::new(), Vec::new());
        let mut z = vec![0.0; dim];
        for (row, drawn) in rows.iter().zip(drawn.chunks_exact(draws * dim)) {
            jacobians.push(coordinates.to_z(prior, &row.theta, &mut z));
            all_z.extend(z.iter().map(|&z| z as f32));
            theta.extend_from_slice(&row.theta);
            for own in drawn.chunks_exact(dim) {
                let own_z: Vec<f64> = own.iter().map(|&z| z.into()).collect();
                jacobians.push(coordinates.to_theta(prior, &own_z, &mut z));
                all_z.extend_from_slice(own);
                if coordinates.is_unbounded() {
                    theta.extend(prior.nearest_inside(&z));
                } else {
                    theta.extend_from_slice(&z);
                }
            }
        }
        let sizes = vec![draws + 1; rows.len()];
        let log_q = q.log_density_of_groups(Rows::new("z", &all_z, dim)?, x, &sizes, 1.0)?;
        let log_q =
            log_q.iter().zip(&jacobians).map(|(log_q, jacobian)| log_q - jacobian).collect();
        let log_weights = self.log_weights(rows, Rows::new("theta", &theta, dim)?, draws + 1)?;
        Ok(Piece { theta, z: all_z, log_q, log_weights })
    }

    /// log p̃ s / p of each candidate, where s is the probability of success.
    fn log_weights(&self, rows: &[&HeldOutRow], theta: Rows, each: usize) -> Result<Vec<f64>> {
        let law = &self.laws[rows[0].law];
        let mut log_weights = law.log_ratio(theta)?;
        if let Law::Region { .. } = law {
            // The region holds what was drawn from it, whatever single precision makes of its border.
            log_weights.iter_mut().step_by(each).for_each(|weight| *weight = 0.0);
        }
        if let Some(validity) = self.success {
            let s = validity.probabilities(theta);
            log_weights.iter_mut().zip(s).for_each(|(weight, s)| *weight += s.max(FLOOR).ln());
        }
        for (weight, row) in log_weights.iter_mut().zip(theta.iter()) {
            if !self.posterior.prior().contains(row) {
                *weight = f64::NEG_INFINITY;
            }
        }
        Ok(log_weights)
    }

    fn assembled(
        &self,
        rows: &[&HeldOutRow],
        pieces: Vec<Piece>,
        each: usize,
        streams: &Streams,
    ) -> Result<Sets> {
        let dim = self.posterior.dim();
        let join = |of: fn(&Piece) -> &Vec<f64>| pieces.iter().flat_map(of).copied().collect();
        let (theta, log_q): (Vec<f64>, Vec<f64>) = (join(|p| &p.theta), join(|p| &p.log_q));
        let log_weights: Vec<f64> = join(|piece| &piece.log_weights);
        let (candidates, kept) = Candidates::new(each, &log_weights);
        let of_kept = |all: Vec<f64>, numbers: usize| -> Vec<f64> {
            let sets = all.chunks_exact(each * numbers).zip(&kept);
            sets.filter(|(_, kept)| **kept).flat_map(|(set, _)| set.to_vec()).collect()
        };
        let theta = of_kept(theta, dim);
        let z = pieces.iter().flat_map(|piece| &piece.z).map(|&z| f64::from(z)).collect();
        let z = of_kept(z, dim);
        let candidates = candidates
            .with_parameters(Rows::new("theta", &theta, dim)?)?
            .with(of_kept(log_q, 1))
            .with_distances(Rows::new("z", &z, dim)?, streams)?;
        let mut features = Vec::new();
        for (row, _) in rows.iter().zip(&kept).filter(|(_, kept)| **kept) {
            features.extend(row.features.iter().map(|&feature| f64::from(feature)));
        }
        Ok(Sets { candidates, features })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::Density;
    use crate::density::coordinates::{Coordinates, Space};
    use crate::density::flow::{FlowConfig, SplineFlow};
    use crate::evaluation::calibration::Uniformity;
    use crate::inference::posterior::SampleStreams;
    use crate::problem::prior::Prior;
    use std::sync::Arc;

    /// A posterior that is the prior for every x, which is exact where x says nothing.
    fn prior_for_every_x() -> Posterior {
        let prior = Prior::uniform(["a", "b"], [0.0; 2], [1.0; 2]).unwrap();
        let config = FlowConfig { layers: 1, bound: 1e-3, ..FlowConfig::new(2, 1) };
        let flow = SplineFlow::new(config).unwrap();
        let params = flow.initial_params(&mut Streams::new(1).stream(Purpose::Weights, 0, 0));
        let coordinates = Coordinates::plain(Space::Unbounded, 2, 1);
        let ensemble = Ensemble::new(Density::Flow(flow), vec![params; 2]);
        let (device, observation) = (Arc::new(Cpu), vec![0.3]);
        Posterior { prior, coordinates, ensemble, observation, ranges: None, device }
    }

    /// Simulations of a proposal of this width, which is said to be of another.
    fn sets(width: f64, said: f64, threads: usize) -> Sets {
        let posterior = prior_for_every_x();
        let from = SampleStreams::new(Streams::new(5), Purpose::Parameters, 2);
        let theta = posterior.propose(500, width, from, 1).unwrap().theta;
        let row = |(i, theta): (usize, &[f64])| {
            let (features, member) = (vec![(i % 7) as f32], [Some(0), Some(1), None][i % 3]);
            HeldOutRow { round: 2, theta: theta.to_vec(), features, member, law: 1 }
        };
        let rows = theta.chunks_exact(2).enumerate().map(row).collect();
        let law = Law::Posterior { posterior: Box::new(posterior.clone()), width: said };
        let laws = vec![Law::Prior, law];
        let held_out = HeldOut { posterior: &posterior, laws, rows, success: None };
        held_out.sets(60, &Streams::new(2), threads).unwrap()
    }

    fn p_values(sets: &Sets) -> Vec<f64> {
        let mut rng = Streams::new(3).stream(Purpose::Synthetic, 0, 0);
        let of = |statistic| sets.candidates.places(statistic, &mut rng);
        let places: Vec<Vec<f64>> = (0..sets.candidates.statistics()).map(of).collect();
        places.iter().map(|places| Uniformity::of(places).unwrap().p_value).collect()
    }

    /// Parameters that were proposed by half the width are in place among draws of the prior, by every statistic, once the
    /// law of the proposal is known; and are not without it. Four p-values of one seed: below 0.001 by chance in 1 of 250.
    #[test]
    fn the_law_of_a_proposal_is_made_up_for() {
        let right = p_values(&sets(0.5, 0.5, 2));
        assert!(right.iter().all(|p| *p > 1e-3), "{right:?}");
        // A law of width 1 is the prior: all weights are 1.
        let wrong = p_values(&sets(0.5, 1.0, 2));
        assert!(wrong.iter().all(|p| *p < 1e-6), "{wrong:?}");
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let of = |threads| {
            let Sets { candidates, features } = sets(0.7, 0.7, threads);
            (candidates.below(2, 7), features)
        };
        assert_eq!(of(1), of(3));
    }
}
