//! Inner samples made where q is: half of p̃, half of the posterior of the round before at each row's own x.

use super::proposal::ProposalLaw;
use crate::density::{Base, Cpu, Dataset};
use crate::error::{Error, Result};
use crate::inference::posterior::Posterior;
use crate::math::Net;
use crate::parallel;
use crate::rng::{Purpose, Stream, Streams};
use crate::rows::Rows;
use crate::training::estimator::Stock;
use rand::RngExt;
use rand::seq::SliceRandom;

/// Outer rows that are worked on together: their samples fill a few tiles.
const CHUNK: usize = 64;
/// Samples of all rows together, at most: some ten gigabytes.
const MOST: usize = 1 << 28;

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
    /// True if they are those of a net, false if they are independent.
    pub nets: bool,
    pub streams: Streams,
    /// Of the draws of p̃, and of the samples of each row.
    pub purposes: [Purpose; 2],
    pub round: u32,
    pub threads: usize,
}

/// Parameters, and what is known of p̃ there.
struct Known {
    z: Vec<f32>,
    log_prior: Vec<f64>,
    log_proposal: Vec<f64>,
    log_selection: Vec<f64>,
}

impl Known {
    fn new(law: &ProposalLaw, z: Vec<f32>, dim: usize, threads: usize) -> Result<Self> {
        let rows = Rows::new("z", &z, dim)?;
        let log_prior = law.log_prior(rows);
        let log_proposal = law.log_density_of_all(rows, &log_prior, threads)?;
        let log_selection = law.log_selection(rows)?;
        Ok(Self { z, log_prior, log_proposal, log_selection })
    }

    fn len(&self) -> usize {
        self.log_prior.len()
    }

    fn z(&self, row: usize) -> &[f32] {
        let dim = self.z.len() / self.len();
        &self.z[row * dim..(row + 1) * dim]
    }
}

/// Samples of some outer rows.
#[derive(Default)]
struct Piece {
    /// Draws of q and their log p, row after row.
    z: Vec<f32>,
    log_prior: Vec<f64>,
    /// For each sample the draw of p̃ that it is; none for the next one of q.
    picks: Vec<Option<u32>>,
    log_weights: Vec<f32>,
    outer: Vec<f32>,
}

/// Outer rows that samples are made for to measure levels with.
const MEASURED: usize = 1000;

/// Some of these outer rows, at random, in their order.
pub(crate) fn measured_rows(mut rows: Vec<u32>, mut rng: Stream) -> Vec<u32> {
    rows.shuffle(&mut rng);
    rows.truncate(MEASURED);
    rows.sort_unstable();
    rows
}

impl Stocking<'_> {
    /// The dataset with the samples after its rows, and which of them belong to which of the rows `of`. `x` are those of all
    /// rows, as the simulator gave them.
    pub(crate) fn make(&self, data: Dataset, of: &[u32], x: Rows) -> Result<(Dataset, Stock)> {
        self.check_memory(of.len())?;
        let shared = self.shared(data.len())?;
        let pieces = parallel::map(of.len().div_ceil(CHUNK), self.threads, |index| {
            let places = index * CHUNK..of.len().min((index + 1) * CHUNK);
            let mut rng = self.streams.stream(self.purposes[1], self.round.into(), index as u64);
            let x = of[places.clone()].iter().map(|&row| x.row(row as usize));
            self.piece(&data, &of[places.clone()], x, &shared, &mut rng)
        });
        let (data, stock) = assemble(data, of, shared, pieces.into_iter().collect::<Result<_>>()?)?;
        Ok((data, if self.nets { stock.of_nets() } else { stock }))
    }

    /// Refuses more samples than memory is made for.
    fn check_memory(&self, rows: usize) -> Result<()> {
        let most = MOST / rows.max(1);
        if self.size <= most {
            return Ok(());
        }
        let why = format!("at most {most} for {rows} simulations");
        Err(Error::setting("train.stock", self.size, why))
    }

    /// Draws of p̃.
    fn shared(&self, count: usize) -> Result<Known> {
        let streams = |block| self.streams.stream(self.purposes[0], self.round.into(), block);
        let z = self.law.draw(count, streams, self.threads)?;
        Known::new(self.law, z, self.snapshot.dim(), self.threads)
    }

    /// The samples of some outer rows.
    fn piece<'x>(
        &self,
        data: &Dataset,
        of: &[u32],
        x: impl Iterator<Item = &'x [f64]>,
        shared: &Known,
        rng: &mut Stream,
    ) -> Result<Piece> {
        let dim = self.snapshot.dim();
        let features = x.map(|x| self.snapshot.features(x)).collect::<Result<Vec<_>>>()?.concat();
        let x = Rows::new("x", &features, features.len() / of.len())?;
        let toss = if self.nets { Self::toss_nets } else { Self::toss };
        let (picks, base) = toss(self, of.len(), shared.len(), rng);
        let own = Known::new(self.law, self.draw(x, &picks, &base)?, dim, 1)?;
        let row = |&row: &u32| data.theta().row(row as usize);
        let outer = of.iter().flat_map(row).copied().collect();
        let outer = Known::new(self.law, outer, dim, 1)?;
        let weights = self.log_weights(x, &picks, [&outer, &own, shared])?;
        let rows = weights.chunks_exact(self.size + 1);
        Ok(Piece {
            outer: rows.clone().map(|row| row[0]).collect(),
            log_weights: rows.flat_map(|row| &row[1..]).copied().collect(),
            picks,
            z: own.z,
            log_prior: own.log_prior,
        })
    }

    /// For each sample of so many rows the draw of p̃ that it is, by the toss of a coin, and the base of the others.
    fn toss(&self, rows: usize, shared: usize, rng: &mut Stream) -> (Vec<Option<u32>>, Base) {
        let pick = |_| rng.random::<bool>().then(|| rng.random_range(0..shared as u32));
        let picks: Vec<Option<u32>> = (0..rows * self.size).map(pick).collect();
        let own = picks.iter().filter(|pick| pick.is_none()).count();
        let base = self.snapshot.ensemble.base(own, self.width, rng);
        (picks, base)
    }

    /// The same by a net for each row. The lower half of the first coordinate is heads, and chooses a draw of p̃; the upper
    /// half chooses the member that draws.
    fn toss_nets(&self, rows: usize, shared: usize, rng: &mut Stream) -> (Vec<Option<u32>>, Base) {
        let ensemble = &self.snapshot.ensemble;
        let (mut picks, mut own) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let net = Net::new(ensemble.coordinates_of_a_draw(), rng);
            for index in 0..self.size as u32 {
                let mut point: Vec<f64> = net.point(index).collect();
                let coin = 2.0 * point[0];
                picks.push((coin < 1.0).then_some((coin * shared as f64) as u32));
                if coin >= 1.0 {
                    point[0] = coin - 1.0;
                    own.push(point);
                }
            }
        }
        (picks, ensemble.base_of(own.iter().map(Vec::as_slice), self.width))
    }

    /// Draws of q(· | x) for each row of x: as many as it has samples that are none of p̃.
    fn draw(&self, x: Rows<f32>, picks: &[Option<u32>], base: &Base) -> Result<Vec<f32>> {
        let own = |row: &[Option<u32>]| row.iter().filter(|pick| pick.is_none()).count();
        let sizes: Vec<usize> = picks.chunks_exact(self.size).map(own).collect();
        self.snapshot.ensemble.transport_groups(&Cpu, base, x, &sizes)
    }

    /// Log-weights of the outer θ of each row and of its samples, row after row.
    fn log_weights(
        &self,
        x: Rows<f32>,
        picks: &[Option<u32>],
        [outer, own, shared]: [&Known; 3],
    ) -> Result<Vec<f32>> {
        let mut next = 0..;
        let place = |pick: &Option<u32>| match pick {
            Some(draw) => (shared, *draw as usize),
            None => (own, next.next().expect("no end")),
        };
        let samples: Vec<_> = picks.iter().map(place).collect();
        let rows = samples.chunks_exact(self.size).enumerate();
        let all: Vec<_> = rows
            .flat_map(|(row, samples)| [(outer, row)].into_iter().chain(samples.iter().copied()))
            .collect();
        let z: Vec<f32> = all.iter().flat_map(|(of, row)| of.z(*row)).copied().collect();
        let (z, sizes) = (Rows::new("z", &z, self.snapshot.dim())?, vec![self.size + 1; x.len()]);
        let log_q = self.snapshot.ensemble.log_density_of_groups(z, x, &sizes, self.width)?;
        let weight = |(&(of, row), log_q): (&(&Known, usize), &f64)| {
            (log_weight(log_q - of.log_proposal[row]) + of.log_selection[row]) as f32
        };
        Ok(all.iter().zip(&log_q).map(weight).collect())
    }
}

/// log 2 − log (1 + ratio), by the ratio's logarithm: between −∞ and log 2.
fn log_weight(log_ratio: f64) -> f64 {
    let log_sum = log_ratio.max(0.0) + (-log_ratio.abs()).exp().ln_1p();
    std::f64::consts::LN_2 - log_sum
}

/// Puts the pieces behind the rows of the dataset, in their order.
fn assemble(
    data: Dataset,
    of: &[u32],
    shared: Known,
    pieces: Vec<Piece>,
) -> Result<(Dataset, Stock)> {
    let dim = data.theta().columns();
    let first = data.len() as u32;
    let mut next = first + shared.log_prior.len() as u32;
    let Known { mut z, mut log_prior, .. } = shared;
    let (mut rows, mut log_weights, mut outer) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        z.extend(piece.z);
        log_prior.extend(piece.log_prior);
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
