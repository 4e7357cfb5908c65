//! Samples of pairs: a smooth density, and the regions that hold most.

use crate::contour::rings;
use crate::histogram::Range;

/// Cells along each side of a smooth density.
const CELLS: usize = 96;

/// The density of two quantities on a grid, smoothed by a Gaussian whose width is chosen by cross-validation: as wide
/// as noise asks for, as narrow as a thin crescent needs.
#[derive(Clone, Debug)]
pub struct Density {
    x: Range,
    y: Range,
    /// Heights at the centres of the cells, x fastest; their unit is arbitrary.
    cells: Vec<f64>,
    /// The height at every sample by the other half of the samples, in order: its own would raise it.
    heights: Vec<f64>,
}

impl Density {
    /// The density of the pairs (x_i, y_i).
    pub fn new(xs: &[f64], ys: &[f64], x: Range, y: Range) -> Self {
        let [even, odd] = [0, 1].map(|parity| counts(xs, ys, x, y, parity));
        // Cells of 1/96 of a side: from less than one to a twelfth of the side.
        let widths = [0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0];
        let score = |width: f64| {
            log_likelihood(&smoothed(&even, width), &odd)
                + log_likelihood(&smoothed(&odd, width), &even)
        };
        let best = widths.map(score).into_iter().zip(widths).fold(
            (f64::NEG_INFINITY, widths[0]),
            |best, one| if one.0 > best.0 { one } else { best },
        );
        let of = |cells: Vec<f64>| Self { x, y, cells, heights: Vec::new() };
        let halves = [&even, &odd].map(|half| of(smoothed(half, best.1)));
        let other = |i: usize| &halves[1 - i % 2];
        let points = xs.iter().zip(ys).enumerate();
        let mut heights: Vec<f64> = points.map(|(i, (&x, &y))| 2.0 * other(i).at(x, y)).collect();
        heights.sort_unstable_by(f64::total_cmp);
        let cells = halves[0].cells.iter().zip(&halves[1].cells).map(|(a, b)| a + b).collect();
        Self { heights, ..of(cells) }
    }

    /// The height above which this share of the samples lies.
    pub fn level(&self, share: f64) -> f64 {
        let below = ((1.0 - share) * self.heights.len() as f64) as usize;
        self.heights.get(below).copied().unwrap_or(0.0)
    }

    /// The height at a place, linear between the centres of cells; 0 outside.
    pub fn at(&self, x: f64, y: f64) -> f64 {
        let share = |value: f64, (low, high): Range| (value - low) / (high - low);
        let (u, v) = (share(x, self.x), share(y, self.y));
        if !((0.0..=1.0).contains(&u) && (0.0..=1.0).contains(&v)) {
            return 0.0;
        }
        let last = (CELLS - 1) as f64;
        let (u, v) = [u, v].map(|s| (s * CELLS as f64 - 0.5).clamp(0.0, last)).into();
        let (i, j) = ((u as usize).min(CELLS - 2), (v as usize).min(CELLS - 2));
        let (a, b) = (u - i as f64, v - j as f64);
        let cell = |i: usize, j: usize| self.cells[j * CELLS + i];
        (1.0 - b) * ((1.0 - a) * cell(i, j) + a * cell(i + 1, j))
            + b * ((1.0 - a) * cell(i, j + 1) + a * cell(i + 1, j + 1))
    }

    /// The outlines of the region that is higher than `level`.
    pub fn outlines(&self, level: f64) -> Vec<Vec<(f64, f64)>> {
        // Centres of cells, the outermost again at the edge, and a border of nothing there, so that outlines close.
        let side = CELLS + 4;
        let inner = |k: usize| k.saturating_sub(2).min(CELLS - 1);
        let border = |k: usize| k == 0 || k + 1 == side;
        let height = |(i, j): (usize, usize)| {
            if border(i) || border(j) { 0.0 } else { self.cells[inner(j) * CELLS + inner(i)] }
        };
        let heights: Vec<f64> = (0..side * side).map(|k| height((k % side, k / side))).collect();
        let place = |index: f64, (low, high): Range| {
            let share = ((index - 1.5) / CELLS as f64).clamp(0.0, 1.0);
            low + share * (high - low)
        };
        let outlines = rings(&heights, side, level);
        outlines
            .into_iter()
            .map(|ring| ring.iter().map(|&(i, j)| (place(i, self.x), place(j, self.y))).collect())
            .collect()
    }
}

/// Samples by cell, of even or odd number.
fn counts(xs: &[f64], ys: &[f64], x: Range, y: Range, parity: usize) -> Vec<f64> {
    let mut cells = vec![0.0; CELLS * CELLS];
    let cell = |value: f64, (low, high): Range| {
        let share = (value - low) / (high - low);
        (0.0..=1.0).contains(&share).then(|| ((share * CELLS as f64) as usize).min(CELLS - 1))
    };
    for (&a, &b) in xs.iter().zip(ys).skip(parity).step_by(2) {
        if let (Some(i), Some(j)) = (cell(a, x), cell(b, y)) {
            cells[j * CELLS + i] += 1.0;
        }
    }
    cells
}

/// Σ n log p with p the heights as probabilities, and a little everywhere.
fn log_likelihood(heights: &[f64], counts: &[f64]) -> f64 {
    let total: f64 = heights.iter().sum::<f64>().max(1e-300);
    let floor = 1e-4 / heights.len() as f64;
    heights.iter().zip(counts).map(|(h, n)| n * (h / total + floor).ln()).sum()
}

/// Smoothed along both sides by a Gaussian of this width in cells, reflected at the ends.
fn smoothed(cells: &[f64], width: f64) -> Vec<f64> {
    let reach = (3.5 * width).ceil() as usize;
    let kernel: Vec<f64> = (0..=reach).map(|k| (-0.5 * (k as f64 / width).powi(2)).exp()).collect();
    let sum = kernel[0] + 2.0 * kernel[1..].iter().sum::<f64>();
    let kernel: Vec<f64> = kernel.iter().map(|k| k / sum).collect();
    let rows = along(cells, &kernel);
    transposed(&along(&transposed(&rows), &kernel))
}

fn along(cells: &[f64], kernel: &[f64]) -> Vec<f64> {
    let reflected = |i: isize| {
        let last = CELLS as isize - 1;
        let i = if i < 0 { -i - 1 } else { i };
        (if i > last { 2 * last + 1 - i } else { i }) as usize
    };
    let mut smooth = vec![0.0; cells.len()];
    for (from, to) in cells.chunks_exact(CELLS).zip(smooth.chunks_exact_mut(CELLS)) {
        for (i, &height) in from.iter().enumerate().filter(|(_, height)| **height > 0.0) {
            to[i] += kernel[0] * height;
            for (k, weight) in kernel.iter().enumerate().skip(1) {
                to[reflected(i as isize + k as isize)] += weight * height;
                to[reflected(i as isize - k as isize)] += weight * height;
            }
        }
    }
    smooth
}

fn transposed(cells: &[f64]) -> Vec<f64> {
    (0..cells.len()).map(|i| cells[(i % CELLS) * CELLS + i / CELLS]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::view;
    use crate::sampled::{distribution, normals};

    const N: usize = 20_000;
    const ALL: Range = (f64::NEG_INFINITY, f64::INFINITY);

    fn normal(stream: u64) -> Vec<f64> {
        normals(stream, N)
    }

    /// True for a point inside by the even-odd rule.
    fn inside(rings: &[Vec<(f64, f64)>], (x, y): (f64, f64)) -> bool {
        let edges = rings.iter().flat_map(|r| r.iter().zip(r.iter().cycle().skip(1)));
        let crossed = edges.filter(|((x0, y0), (x1, y1))| {
            (*y0 > y) != (*y1 > y) && x < (x1 - x0) * (y - y0) / (y1 - y0) + x0
        });
        crossed.count() % 2 == 1
    }

    /// The region's outlines hold their share of new samples. The level has the standard error √(share (1 − share) / n) of
    /// the n samples drawn, the share found that of the new ones; four errors of their difference, and 0.5 % for the grid.
    #[test]
    fn regions_hold_their_share() {
        for ((curve, spread, name), n) in [(0.0, 1.0, "normal"), (1.0, 0.2, "crescent")]
            .into_iter()
            .flat_map(|law| [N, 2000].map(|n| (law, n)))
        {
            let law = |x: &[f64], y: Vec<f64>| -> Vec<f64> {
                x.iter().zip(y).map(|(x, y)| curve * x * x + spread * y).collect()
            };
            let (x, new_x) = (normals(0, n), normal(2));
            let (y, new_y) = (law(&x, normals(1, n)), law(&new_x, normal(3)));
            let density = Density::new(&x, &y, view([&*x], None, ALL), view([&*y], None, ALL));
            for share in [0.68, 0.95] {
                let rings = density.outlines(density.level(share));
                let held = new_x.iter().zip(&new_y).filter(|p| inside(&rings, (*p.0, *p.1)));
                let found = held.count() as f64 / N as f64;
                let error = (share * (1.0 - share) * (1.0 / n as f64 + 1.0 / N as f64)).sqrt();
                assert!((found - share).abs() < 4.0 * error + 0.005, "{name} {n} {share}: {found}");
            }
        }
    }

    /// Against the exact region of a normal law: radius² = −2 log (1 − share).
    #[test]
    fn the_region_of_a_normal_law_is_a_disc() {
        let (x, y) = (normal(0), normal(1));
        let range = (-4.0, 4.0);
        let density = Density::new(&x, &y, range, range);
        let radius = (-2.0 * (1.0f64 - 0.68).ln()).sqrt();
        let rings = density.outlines(density.level(0.68));
        let ring = rings.iter().max_by_key(|ring| ring.len()).unwrap();
        let mean = ring.iter().map(|(x, y)| x.hypot(*y)).sum::<f64>() / ring.len() as f64;
        // The share p has the error √(p q / n), and d radius / d p = 1 / (radius (1 − p)); four errors, and a fifth of
        // a cell of 1/12.
        let error = (0.68 * 0.32 / N as f64).sqrt() / (radius * 0.32);
        assert!((mean - radius).abs() < 4.0 * error + 0.2 / 12.0, "{mean} {radius}");
    }

    /// Nothing is lost at the edge of a uniform prior. A Gaussian of w cells averages over 4πw² of the 9216; for w = 5.6, the
    /// second widest, that are 850 samples in the middle and half as many at the edge: relative errors of 0.034 and 0.048,
    /// 0.06 of their ratio; four of these. The outline of 95 % touches every edge.
    #[test]
    fn edges_do_not_fade() {
        let unit =
            |stream| -> Vec<f64> { normal(stream).iter().map(|&z| distribution(z)).collect() };
        let (x, y) = (unit(0), unit(1));
        let density = Density::new(&x, &y, (0.0, 1.0), (0.0, 1.0));
        let (edge, middle) = (density.at(0.001, 0.5), density.at(0.5, 0.5));
        assert!((edge / middle - 1.0).abs() < 0.24, "{edge} {middle}");
        assert_eq!(density.at(-0.1, 0.5), 0.0);
        let rings = density.outlines(density.level(0.95));
        let corners = || rings.iter().flatten();
        for (end, found) in [
            (0.0, corners().map(|p| p.0).fold(1.0, f64::min)),
            (0.0, corners().map(|p| p.1).fold(1.0, f64::min)),
            (1.0, corners().map(|p| p.0).fold(0.0, f64::max)),
            (1.0, corners().map(|p| p.1).fold(0.0, f64::max)),
        ] {
            assert_eq!(found, end);
        }
    }

    #[test]
    fn a_few_equal_samples_are_drawn_too() {
        let (low, high) = view([&[2.0, 2.0][..]], None, ALL);
        assert!(low < 2.0 && high > 2.0);
        let density = Density::new(&[2.0; 5], &[2.0; 5], (low, high), (low, high));
        assert!(!density.outlines(density.level(0.68)).is_empty());
    }
}
