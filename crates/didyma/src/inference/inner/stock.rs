//! Inner samples made where q is: half of p̃, half of the posterior of the round before at each row's own x.

use super::proposal::ProposalLaw;
use crate::density::{Dataset, Ensemble};
use crate::error::Result;
use crate::inference::posterior::Posterior;
use crate::parallel;
use crate::rng::{Purpose, Stream, Streams};
use crate::rows::Rows;
use crate::training::estimator::Stock;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Outer rows that are worked on together: their samples fill a few tiles.
const CHUNK: usize = 64;

/// Makes inner samples for a round. Each is, by the toss of a coin, a draw of p̃ or of q(· | x), q being the posterior of
/// the round before and x that of its outer row; in either case its law is r = ½ p̃ + ½ q(· | x), and its log-weight
///
/// ```text
/// log p̃ − log r = log 2 − log (1 + q / p̃)
/// ```
///
/// and log s(θ) more where outer samples were selected with a probability s. The draws of p̃ are fresh ones, as many as there are rows, which all outer rows share.
pub(crate) struct Stocking<'a> {
    pub law: &'a ProposalLaw<'a>,
    /// The posterior of the round before.
    pub snapshot: &'a Posterior,
    /// Standard deviation of its base.
    pub width: f64,
    /// Samples of a row.
    pub size: usize,
    pub streams: Streams,
    pub round: u32,
    pub threads: usize,
}

/// Draws of p̃ and their densities.
struct Shared {
    z: Vec<f32>,
    log_prior: Vec<f64>,
    known: Known,
}

/// What is known of p̃ at some parameters.
struct Known {
    log_proposal: Vec<f64>,
    log_selection: Vec<f64>,
}

impl Known {
    fn at(&self, row: usize) -> [f64; 2] {
        [self.log_proposal[row], self.log_selection[row]]
    }
}

/// What was made for some outer rows.
#[derive(Default)]
struct Piece {
    /// Draws of q, row after row.
    own: Vec<f32>,
    own_log_prior: Vec<f64>,
    /// For each sample the draw of p̃ that it is; none for the next one of q.
    picks: Vec<Option<u32>>,
    log_weights: Vec<f32>,
    outer: Vec<f32>,
}

impl Stocking<'_> {
    /// The dataset with the samples after its rows, and which of them belong to which of the rows `of`, whose x, as the
    /// simulator gave them, are `x`.
    pub(crate) fn make(&self, data: Dataset, of: &[u32], x: Rows) -> Result<(Dataset, Stock)> {
        let shared = self.shared(data.len())?;
        let pieces = parallel::map(of.len().div_ceil(CHUNK), self.threads, |index| {
            let places = index * CHUNK..of.len().min((index + 1) * CHUNK);
            let mut rng = self.streams.stream(Purpose::InnerStock, self.round.into(), index as u64);
            let x = places.clone().map(|place| x.row(place));
            self.piece(&data, &of[places.clone()], x, &shared, &mut rng)
        });
        assemble(data, of, shared, pieces.into_iter().collect::<Result<_>>()?)
    }

    /// Draws of p̃.
    fn shared(&self, count: usize) -> Result<Shared> {
        let z = self.law.draw(count, self.streams, self.round, self.threads)?;
        let rows = Rows::new("z", &z, self.snapshot.dim())?;
        let log_prior = self.law.log_prior(rows);
        let log_proposal = self.law.log_density_of_all(rows, &log_prior, self.threads)?;
        let known = Known { log_proposal, log_selection: self.law.log_selection(rows)? };
        Ok(Shared { log_prior, known, z })
    }

    fn known(&self, z: &[f32], log_prior: &[f64]) -> Result<Known> {
        let z = Rows::new("z", z, self.snapshot.dim())?;
        let log_proposal = self.law.log_density(z, log_prior)?;
        Ok(Known { log_proposal, log_selection: self.law.log_selection(z)? })
    }

    /// The samples of some outer rows.
    fn piece<'x>(
        &self,
        data: &Dataset,
        of: &[u32],
        x: impl Iterator<Item = &'x [f64]>,
        shared: &Shared,
        rng: &mut Stream,
    ) -> Result<Piece> {
        let (dim, ensemble) = (self.snapshot.dim(), &self.snapshot.ensemble);
        let features = x.map(|x| self.snapshot.features(x)).collect::<Result<Vec<_>>>()?.concat();
        let x = Rows::new("x", &features, features.len() / of.len())?;
        let draws = shared.log_prior.len() as u32;
        let pick = |_| rng.random::<bool>().then(|| rng.random_range(0..draws));
        let picks: Vec<Option<u32>> = (0..of.len() * self.size).map(pick).collect();
        let sizes: Vec<usize> = picks
            .chunks_exact(self.size)
            .map(|row| row.iter().filter(|pick| pick.is_none()).count())
            .collect();
        let own = draw_at(ensemble, x, &sizes, self.width, rng)?;
        let own_log_prior = self.law.log_prior(Rows::new("z", &own, dim)?);
        let known_of_own = self.known(&own, &own_log_prior)?;
        let row = |&row: &u32| data.theta().row(row as usize);
        let outer: Vec<f32> = of.iter().flat_map(row).copied().collect();
        let of_outer: Vec<f64> = of.iter().map(|&row| data.log_prior()[row as usize]).collect();
        let known_of_outer = self.known(&outer, &of_outer)?;

        // Every outer θ and its samples, with what is known of p̃ there.
        let (mut all, mut known) = (Vec::new(), Vec::new());
        let mut next = own.chunks_exact(dim).zip(0..);
        for (row, picks) in picks.chunks_exact(self.size).enumerate() {
            all.extend_from_slice(&outer[row * dim..(row + 1) * dim]);
            known.push(known_of_outer.at(row));
            for pick in picks {
                let (z, found) = match pick {
                    Some(draw) => {
                        let draw = *draw as usize;
                        (&shared.z[draw * dim..(draw + 1) * dim], shared.known.at(draw))
                    }
                    None => {
                        let (z, place) = next.next().expect("one for each");
                        (z, known_of_own.at(place))
                    }
                };
                all.extend_from_slice(z);
                known.push(found);
            }
        }
        let sizes = vec![self.size + 1; of.len()];
        let log_q =
            ensemble.log_density_of_groups(Rows::new("z", &all, dim)?, x, &sizes, self.width)?;
        let weights: Vec<f32> = known
            .iter()
            .zip(&log_q)
            .map(|([log_p, log_s], log_q)| (log_weight(log_q - log_p) + log_s) as f32)
            .collect();
        let mut piece = Piece { own, own_log_prior, picks, ..Piece::default() };
        for row in weights.chunks_exact(self.size + 1) {
            piece.outer.push(row[0]);
            piece.log_weights.extend_from_slice(&row[1..]);
        }
        Ok(piece)
    }
}

/// log 2 − log (1 + ratio), by the ratio's logarithm: between −∞ and log 2.
fn log_weight(log_ratio: f64) -> f64 {
    let log_sum = log_ratio.max(0.0) + (-log_ratio.abs()).exp().ln_1p();
    std::f64::consts::LN_2 - log_sum
}

/// So many draws of q(· | x) for each row of x, each by a member at random.
fn draw_at(
    ensemble: &Ensemble,
    x: Rows<f32>,
    sizes: &[usize],
    width: f64,
    rng: &mut Stream,
) -> Result<Vec<f32>> {
    let count: usize = sizes.iter().sum();
    let dim = ensemble.density().dims().0;
    let mut normal = || -> f64 { StandardNormal.sample(&mut *rng) };
    let base: Vec<f32> = (0..count * dim).map(|_| (width * normal()) as f32).collect();
    let members: Vec<usize> =
        (0..count).map(|_| rng.random_range(0..ensemble.members().len())).collect();
    ensemble.transport_groups(&base, &members, x, sizes)
}

/// Puts the pieces behind the rows of the dataset, in their order.
fn assemble(
    data: Dataset,
    of: &[u32],
    shared: Shared,
    pieces: Vec<Piece>,
) -> Result<(Dataset, Stock)> {
    let dim = data.theta().columns();
    let first = data.len() as u32;
    let mut next = first + shared.log_prior.len() as u32;
    let Shared { mut z, mut log_prior, .. } = shared;
    let (mut rows, mut log_weights, mut outer) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        z.extend(piece.own);
        log_prior.extend(piece.own_log_prior);
        log_weights.extend(piece.log_weights);
        outer.extend(piece.outer);
        rows.extend(piece.picks.into_iter().map(|pick| match pick {
            Some(draw) => first + draw,
            None => {
                next += 1;
                next - 1
            }
        }));
    }
    let data = data.with_parameters(Rows::new("z", &z, dim)?, &log_prior)?;
    Ok((data, Stock::new(of, rows, log_weights, outer)))
}
