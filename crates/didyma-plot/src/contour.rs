//! Outlines of the places of a grid that are higher than a level (marching squares).

use std::collections::HashMap;

/// A side of a cell: its first corner, and whether it runs along the second index.
type Edge = (usize, usize, bool);

/// Closed outlines of the region where `heights`, linear between the points of a square grid, exceed `level`. Places are
/// (first index, second index); the first runs fastest. The border must be below the level.
pub(crate) fn rings(heights: &[f64], side: usize, level: f64) -> Vec<Vec<(f64, f64)>> {
    let height = |i: usize, j: usize| heights[j * side + i];
    // The high side is on the left, so that a line leaves every side of a cell once at most.
    let mut next: HashMap<Edge, Edge> = HashMap::new();
    for (i, j) in (0..side - 1).flat_map(|j| (0..side - 1).map(move |i| (i, j))) {
        let corners = [height(i, j), height(i + 1, j), height(i + 1, j + 1), height(i, j + 1)];
        next.extend(crossings((i, j), corners, level));
    }
    let cross = |(i, j, along): Edge| {
        let (a, b) = (height(i, j), if along { height(i, j + 1) } else { height(i + 1, j) });
        let share = if a == b { 0.5 } else { (level - a) / (b - a) };
        if along { (i as f64, j as f64 + share) } else { (i as f64 + share, j as f64) }
    };
    let mut starts: Vec<Edge> = next.keys().copied().collect();
    starts.sort_unstable();
    let mut found = Vec::new();
    for start in starts {
        let mut ring = Vec::new();
        let mut at = start;
        while let Some(to) = next.remove(&at) {
            ring.push(cross(at));
            at = to;
        }
        if ring.len() > 2 {
            found.push(ring);
        }
    }
    found
}

/// The lines through a cell, each with the high side on its left, from side to side.
fn crossings((i, j): (usize, usize), corners: [f64; 4], level: f64) -> Vec<(Edge, Edge)> {
    let (below, right, above, left) =
        ((i, j, false), (i + 1, j, true), (i, j + 1, false), (i, j, true));
    let [a, b, c, d] = corners.map(|height| height > level);
    let joined = corners.iter().sum::<f64>() > 4.0 * level;
    // Corners in order: (i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1).
    match (a, b, c, d) {
        (false, false, false, false) | (true, true, true, true) => vec![],
        (true, false, false, false) => vec![(below, left)],
        (false, true, false, false) => vec![(right, below)],
        (false, false, true, false) => vec![(above, right)],
        (false, false, false, true) => vec![(left, above)],
        (true, true, false, false) => vec![(right, left)],
        (false, true, true, false) => vec![(above, below)],
        (false, false, true, true) => vec![(left, right)],
        (true, false, false, true) => vec![(below, above)],
        (false, true, true, true) => vec![(left, below)],
        (true, false, true, true) => vec![(below, right)],
        (true, true, false, true) => vec![(right, above)],
        (true, true, true, false) => vec![(above, left)],
        // Two corners across: the middle decides if they are joined.
        (true, false, true, false) if joined => vec![(below, right), (above, left)],
        (true, false, true, false) => vec![(below, left), (above, right)],
        (false, true, false, true) if joined => vec![(left, below), (right, above)],
        (false, true, false, true) => vec![(right, below), (left, above)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(ring: &[(f64, f64)]) -> f64 {
        let next = ring.iter().cycle().skip(1);
        ring.iter().zip(next).map(|(a, b)| 0.5 * (a.0 * b.1 - a.1 * b.0)).sum()
    }

    fn grid(side: usize, height: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let middle = (side - 1) as f64 / 2.0;
        (0..side * side)
            .map(|k| height((k % side) as f64 - middle, (k / side) as f64 - middle))
            .collect()
    }

    #[test]
    fn a_disc_has_its_area_and_a_hole_is_an_outline_of_its_own() {
        let disc = rings(&grid(41, |x, y| -x.hypot(y)), 41, -10.0);
        assert_eq!(disc.len(), 1);
        // Chords cut off about h²/12 of the curvature's arc: far below 1 %.
        assert!((area(&disc[0]) / (std::f64::consts::PI * 100.0) - 1.0).abs() < 0.01);
        let annulus = rings(&grid(41, |x, y| -(x.hypot(y) - 10.0).abs()), 41, -3.0);
        let mut areas: Vec<f64> = annulus.iter().map(|ring| area(ring)).collect();
        areas.sort_unstable_by(f64::total_cmp);
        let expected = [-49.0, 169.0].map(|r2: f64| r2 * std::f64::consts::PI);
        assert!(areas.len() == 2);
        for (found, expected) in areas.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.02, "{areas:?}");
        }
    }

    #[test]
    fn every_outline_closes() {
        // Waves have saddles of both kinds.
        let waves = grid(30, |x, y| {
            if x.abs().max(y.abs()) > 14.0 {
                -9.0
            } else {
                (1.3 * x).sin() + (1.7 * y).cos() + 0.3 * (0.5 * x * y).sin()
            }
        });
        for level in [-1.0, -0.2, 0.1, 0.9] {
            let found = rings(&waves, 30, level);
            assert!(found.len() > 3, "{level}: {}", found.len());
            for ring in found {
                let (a, b) = (ring[0], ring[ring.len() - 1]);
                assert!((a.0 - b.0).hypot(a.1 - b.1) <= 2f64.sqrt() + 1e-9, "{a:?} {b:?}");
            }
        }
    }
}
