//! Simulations that training never saw, as sets of candidates: from what is known of the law of their parameters.

use super::Candidates;
use crate::density::Ensemble;
use crate::error::Result;
use crate::inference::failures::{FLOOR, Validity};
use crate::inference::posterior::Posterior;
use crate::parallel;
use crate::rng::{Purpose, Stream, Streams};
use crate::rows::Rows;
use rand::RngExt;

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

/// A simulation that training never saw.
#[derive(Clone, Debug)]
pub(crate) struct HeldOutRow {
    /// The round that simulated it.
    pub round: u32,
    pub theta: Vec<f64>,
    pub x: Vec<f64>,
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
    log_q: Vec<f64>,
    distances: Vec<f64>,
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
        self.assembled(&order, pieces.into_iter().collect::<Result<_>>()?, draws + 1)
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
        let features = rows.iter().map(|row| posterior.features(&row.x));
        let features = features.collect::<Result<Vec<_>>>()?.concat();
        let x = Rows::new("x", &features, features.len() / rows.len())?;
        let mut rng = streams.stream(Purpose::HeldOut, 0, index);
        let base = q.base(rows.len() * draws, 1.0, &mut rng);
        let drawn = q.transport_groups(&base, x, &vec![draws; rows.len()])?;
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
        let sets = all_z.chunks_exact((draws + 1) * dim);
        let distances = sets.flat_map(|set| distances(set, dim, &mut rng)).collect();
        let log_weights = self.log_weights(rows, Rows::new("theta", &theta, dim)?, draws + 1)?;
        Ok(Piece { theta, log_q, distances, log_weights })
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

    fn assembled(&self, rows: &[&HeldOutRow], pieces: Vec<Piece>, each: usize) -> Result<Sets> {
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
        let candidates = candidates
            .with_parameters(Rows::new("theta", &theta, dim)?)?
            .with(of_kept(log_q, 1))
            .with(of_kept(join(|piece| &piece.distances), 1));
        let mut features = Vec::new();
        for (row, _) in rows.iter().zip(&kept).filter(|(_, kept)| **kept) {
            features.extend(self.posterior.features(&row.x)?.into_iter().map(f64::from));
        }
        Ok(Sets { candidates, features })
    }
}

/// Distances of a set's candidates from a point of the box that holds them all, in units of its sides: a function of the set
/// alone, whichever of them made x.
fn distances(set: &[f32], dim: usize, rng: &mut Stream) -> Vec<f64> {
    let ends = |i: usize| {
        let column = set.iter().skip(i).step_by(dim).copied();
        column.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), z| (low.min(z), high.max(z)))
    };
    let box_of: Vec<(f64, f64)> = (0..dim)
        .map(|i| {
            let (low, high) = ends(i);
            let side = f64::from(high - low).max(f64::MIN_POSITIVE);
            (f64::from(low) + side * rng.random::<f64>(), side)
        })
        .collect();
    let distance = |z: &[f32]| {
        let along = z.iter().zip(&box_of).map(|(z, (at, side))| (f64::from(*z) - at) / side);
        along.map(|d| d * d).sum::<f64>().sqrt()
    };
    set.chunks_exact(dim).map(distance).collect()
}
