//! Cutting a plan into tiles of whole groups, and tiles into chunks.
//!
//! Both depend on the plan alone, never on the number of threads: the gradients of a chunk are added
//! up in the order of its tiles, those of the chunks in their order, so that the sum is the same bytes
//! whoever computes it.

use crate::network::kernel::{PANEL, whole_lanes};
use crate::training::estimator::{Group, Plan};
use std::cmp::Reverse;
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

impl Tile {
    /// The context and the atoms of each group, or part of one.
    pub(super) fn runs<'a>(&self, plan: &'a Plan) -> impl Iterator<Item = (u32, &'a [u32])> {
        let (groups, part) = match self {
            Self::Whole(groups) => (groups.clone(), 0..usize::MAX),
            Self::Part { group, atoms, .. } => (*group..*group + 1, atoms.clone()),
        };
        plan.groups()[groups].iter().map(move |group| {
            let atoms = plan.atoms(group);
            (group.context, &atoms[part.start..part.end.min(atoms.len())])
        })
    }
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
    pub(super) fn cut(&mut self, plan: &Plan) {
        self.tiles.clear();
        self.parts = 0;
        let groups = plan.groups();
        let share = whole_lanes(plan.pairs().div_ceil(CHUNKS)).clamp(PANEL, TILE);
        // Thinning keeps few pairs of a tile: of small tiles, fewer than fill the lanes. A step of 1000 pairs then keeps six
        // threads busy, not sixteen; members of an ensemble keep the others.
        let target = if plan.thinning().is_some() { TILE } else { share };
        let mut next = 0;
        while next < groups.len() {
            if groups[next].pairs() > TILE {
                self.split(next, &groups[next]);
                next += 1;
            } else {
                let end = next + best_prefix(&groups[next..], target);
                self.tiles.push(Tile::Whole(next..end));
                next = end;
            }
        }
        self.make_chunks(plan);
    }

    fn split(&mut self, number: usize, group: &Group) {
        for start in (0..group.pairs()).step_by(TILE) {
            let atoms = start..group.pairs().min(start + TILE);
            self.tiles.push(Tile::Part { group: number, atoms, slot: self.parts });
            self.parts += 1;
        }
    }

    /// The slots of the parts of a split group, in the order of its atoms.
    pub(super) fn slots(&self, number: usize) -> impl Iterator<Item = usize> {
        self.tiles.iter().filter_map(move |tile| match tile {
            Tile::Part { group, slot, .. } if *group == number => Some(*slot),
            _ => None,
        })
    }

    fn make_chunks(&mut self, plan: &Plan) {
        let Self { tiles, chunks, order, .. } = self;
        let pairs = |tile: &Tile| match tile {
            Tile::Whole(groups) => plan.groups()[groups.clone()].iter().map(Group::pairs).sum(),
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
        let chunk_pairs =
            |chunk: &Range<usize>| tiles[chunk.clone()].iter().map(pairs).sum::<usize>();
        order.sort_unstable_by_key(|&chunk| (Reverse(chunk_pairs(&chunks[chunk])), chunk));
    }
}

/// How many of the next groups make the cheapest tile per pair: full lanes, few tiles, and no more
/// than `target` pairs unless one group has more.
fn best_prefix(groups: &[Group], target: usize) -> usize {
    let (mut pairs, mut best, mut least) = (0, 1, f64::INFINITY);
    for (i, group) in groups.iter().take(PANEL).enumerate() {
        pairs += group.pairs();
        if pairs > target && i > 0 {
            break;
        }
        let cost = (whole_lanes(pairs) as f64 + TILE_COST) / pairs as f64;
        if cost <= least {
            (best, least) = (i + 1, cost);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(sizes: &[usize]) -> Tiles {
        let mut plan = Plan::default();
        for &n in sizes {
            plan.group(0, (0..n as u32).map(|_| 0)).log_mean_exp(1.0);
        }
        let mut tiles = Tiles::default();
        tiles.cut(&plan);
        tiles
    }

    #[test]
    fn every_group_is_in_exactly_one_tile_and_every_tile_in_one_chunk() {
        for sizes in
            [vec![1; 300], vec![33; 100], vec![32; 100], vec![500, 1, 128, 193, 7], vec![1]]
        {
            let Tiles { tiles, chunks, order, .. } = cut(&sizes);
            let mut pairs = vec![0; sizes.len()];
            for tile in &tiles {
                match tile {
                    Tile::Whole(groups) => {
                        assert!(
                            groups.len() <= PANEL
                                && sizes[groups.clone()].iter().sum::<usize>() <= TILE
                        );
                        groups.clone().for_each(|g| pairs[g] += sizes[g]);
                    }
                    Tile::Part { group, atoms, .. } => pairs[*group] += atoms.len(),
                }
            }
            assert_eq!(pairs, sizes);
            assert!(chunks.len() <= CHUNKS);
            assert!(chunks.iter().cloned().flatten().eq(0..tiles.len()));
            let mut sorted = order.clone();
            sorted.sort();
            assert!(sorted.into_iter().eq(0..chunks.len()));
        }
    }

    #[test]
    fn groups_that_fill_lanes_are_not_mixed_with_padding() {
        let tiles = cut(&[32; 8]).tiles;
        assert_eq!(tiles, [0..2, 2..4, 4..6, 6..8].map(Tile::Whole));
    }
}
