//! Cutting a plan into tiles of whole groups, and tiles into chunks.
//!
//! Both depend on the plan alone, never on the number of threads: the gradients of a chunk are added
//! up in the order of its tiles, those of the chunks in their order, so that the sum is the same bytes
//! whoever computes it.

use crate::estimator::{Group, Plan};
use crate::kernel::{PANEL, whole_lanes};
use std::ops::Range;

/// Pairs of one tile, at most.
pub(super) const TILE: usize = 192;
/// Chunks of a step: enough for 16 threads, few enough that their gradients are added up quickly.
pub(super) const CHUNKS: usize = 16;
/// What a tile costs beside its rows, in rows: its weights pass through the cache once more.
const TILE_COST: f64 = 8.0;

/// Pairs that go through the flow together.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tile {
    /// Some whole groups.
    Whole(Range<usize>),
    /// A part of the atoms of a group that is too large for one tile.
    Part { group: usize, atoms: Range<usize>, slot: usize },
}

/// The tiles of a plan, in chunks.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    pub tiles: Vec<Tile>,
    /// Ranges of tiles with nearly the same number of pairs.
    pub chunks: Vec<Range<usize>>,
    /// Chunk numbers, the largest first: the order in which threads take them.
    pub order: Vec<usize>,
    /// Number of parts, and so of slots for their log-densities.
    pub parts: usize,
}

impl Tiles {
    /// Cuts anew, in the memory of the last cut.
    pub fn cut(&mut self, plan: &Plan) {
        self.tiles.clear();
        self.parts = 0;
        let groups = plan.groups();
        let mut next = 0;
        while next < groups.len() {
            if groups[next].len > TILE {
                self.split(next, &groups[next]);
                next += 1;
            } else {
                let end = next + best_prefix(&groups[next..]);
                self.tiles.push(Tile::Whole(next..end));
                next = end;
            }
        }
        self.make_chunks(plan);
    }

    fn split(&mut self, number: usize, group: &Group) {
        for start in (0..group.len).step_by(TILE) {
            let atoms = start..group.len.min(start + TILE);
            self.tiles.push(Tile::Part { group: number, atoms, slot: self.parts });
            self.parts += 1;
        }
    }

    fn make_chunks(&mut self, plan: &Plan) {
        let Self { tiles, chunks, order, .. } = self;
        let pairs = |tile: &Tile| match tile {
            Tile::Whole(groups) => plan.groups()[groups.clone()].iter().map(|g| g.len).sum(),
            Tile::Part { atoms, .. } => atoms.len(),
        };
        chunks.clear();
        let (mut start, mut done, total) = (0, 0, plan.pairs());
        for (i, tile) in tiles.iter().enumerate() {
            done += pairs(tile);
            let share = done * CHUNKS;
            if share >= (chunks.len() + 1) * total || i + 1 == tiles.len() {
                chunks.push(start..i + 1);
                start = i + 1;
            }
        }
        order.clear();
        order.extend(0..chunks.len());
        // Insertion sort: short, stable, and in place.
        for i in 1..order.len() {
            for j in (1..=i).rev().take_while(|_| true) {
                if chunks[order[j]].len() <= chunks[order[j - 1]].len() {
                    break;
                }
                order.swap(j, j - 1);
            }
        }
    }
}

/// How many of the next groups make the cheapest tile per pair: full lanes, few tiles.
fn best_prefix(groups: &[Group]) -> usize {
    let (mut pairs, mut best, mut least) = (0, 1, f64::INFINITY);
    for (i, group) in groups.iter().take(PANEL).enumerate() {
        pairs += group.len;
        if pairs > TILE {
            break;
        }
        let cost = (whole_lanes(pairs) as f64 + TILE_COST) / pairs as f64;
        if cost <= least {
            (best, least) = (i + 1, cost);
        }
    }
    best
}
