//! Numbers as lines of characters: histograms of blocks, curves of braille dots.

/// An eighth of a line more in each.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The bits of the dots of a braille character, in its four rows and two columns.
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
/// The braille character without dots.
const NO_DOTS: u32 = 0x2800;

/// The least and the greatest of these values; of none at all, (∞, −∞).
pub fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    values.fold(none, |(low, high), value| (low.min(value), high.max(value)))
}

/// In which of equal bins between two bounds a value lies, if it lies between them.
pub fn bin(value: f64, (low, high): (f64, f64), bins: usize) -> Option<usize> {
    let share = if high > low { (value - low) / (high - low) } else { 0.5 };
    let inside = (low..=high).contains(&value) && bins > 0;
    inside.then(|| ((share * bins as f64) as usize).min(bins - 1))
}

/// A histogram of so many columns and rows, from above. A bin with anything in it is never empty.
pub fn bars(values: &[f64], range: (f64, f64), columns: usize, rows: usize) -> Vec<String> {
    let mut counts = vec![0; columns];
    for bin in values.iter().filter_map(|&value| bin(value, range, columns)) {
        counts[bin] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let eighths = |count: usize| (count * 8 * rows).div_ceil(most);
    let block = |count: usize, row: usize| BLOCKS[eighths(count).saturating_sub(8 * row).min(8)];
    (0..rows).rev().map(|row| counts.iter().map(|&count| block(count, row)).collect()).collect()
}

/// A line through values from left to right, in so many columns and rows of braille characters, from above. It is
/// broken where there is no value.
pub fn curve(
    values: &[Option<f64>],
    (low, high): (f64, f64),
    columns: usize,
    rows: usize,
) -> Vec<String> {
    let (width, height) = ((2 * columns).max(1) - 1, (4 * rows).max(1) - 1);
    let last = values.len().saturating_sub(1).max(1) as f64;
    let point = |(i, value): (usize, &Option<f64>)| {
        let value = (*value)?;
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        Some((i as f64 / last * width as f64, (1.0 - share) * height as f64))
    };
    let mut cells = vec![0; columns * rows];
    let mut before = None;
    for point in values.iter().enumerate().map(point) {
        if let Some(to) = point {
            segment(before.unwrap_or(to), to, |x, y| {
                if let Some(cell) = cells.get_mut(y / 4 * columns + x / 2) {
                    *cell |= DOTS[y % 4][x % 2];
                }
            });
        }
        before = point;
    }
    cells
        .chunks(columns.max(1))
        .map(|row| row.iter().map(|&dots| braille(dots)).collect())
        .collect()
}

/// Dots from one point to another, none further from the next than one row or column.
fn segment(from: (f64, f64), to: (f64, f64), mut dot: impl FnMut(usize, usize)) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let steps = dx.abs().max(dy.abs()).ceil().max(1.0);
    for step in 0..=steps as usize {
        let share = step as f64 / steps;
        dot((from.0 + share * dx).round() as usize, (from.1 + share * dy).round() as usize);
    }
}

/// A space where there is no dot, since fonts differ in how wide they draw nothing.
fn braille(dots: u8) -> char {
    match dots {
        0 => ' ',
        _ => char::from_u32(NO_DOTS + u32::from(dots)).unwrap_or(' '),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_share_the_range_and_nothing_else() {
        let found = [-0.1, 0.0, 0.49, 0.5, 1.0, 1.1, f64::NAN].map(|v| bin(v, (0.0, 1.0), 2));
        assert_eq!(found, [None, Some(0), Some(0), Some(1), Some(1), None, None]);
        assert_eq!(bin(3.0, (3.0, 3.0), 5), Some(2));
        assert_eq!(bin(0.5, (0.0, 1.0), 0), None);
    }

    #[test]
    fn bars_are_as_high_as_their_counts() {
        // Counts 1, 0, 8, 4 in bins of one each.
        let values = [&[0.5][..], &[2.5; 8], &[3.5; 4]].concat();
        assert_eq!(bars(&values, (0.0, 4.0), 4, 1), ["▁ █▄"]);
        assert_eq!(bars(&values, (0.0, 4.0), 4, 2), ["  █ ", "▂ ██"]);
        // One in a thousand is seen.
        let values = [&[0.5][..], &[1.5; 1000]].concat();
        assert_eq!(bars(&values, (0.0, 2.0), 2, 1), ["▁█"]);
        assert_eq!(bars(&[], (0.0, 1.0), 3, 1), ["   "]);
    }

    #[test]
    fn curves_fall_and_rise_as_their_values() {
        let curve =
            |values: &[Option<f64>], columns, rows| curve(values, (0.0, 1.0), columns, rows);
        assert_eq!(curve(&[Some(1.0), Some(0.0)], 2, 1), ["⠑⢄"]);
        assert_eq!(curve(&[Some(0.0), Some(1.0)], 2, 1), ["⡠⠊"]);
        assert_eq!(curve(&[Some(1.0), Some(1.0), Some(0.0)], 1, 2), ["⢹", "⢸"]);
        // A single value, and a gap.
        assert_eq!(curve(&[Some(1.0)], 2, 1), ["⠁ "]);
        assert_eq!(curve(&[Some(1.0), None, Some(1.0)], 3, 1), ["⠁ ⠈"]);
        assert_eq!(curve(&[], 2, 1), ["  "]);
    }

    #[test]
    fn curves_of_any_size_are_drawn() {
        let values: Vec<Option<f64>> =
            (0..1000).map(|i| Some((f64::from(i) / 50.0).sin())).collect();
        for (columns, rows) in [(0, 0), (0, 3), (1, 1), (7, 2), (300, 40)] {
            let lines = curve(&values, (-1.0, 1.0), columns, rows);
            assert!(lines.iter().all(|line| line.chars().count() == columns));
            assert_eq!(lines.len(), if columns == 0 { 0 } else { rows });
        }
        assert_eq!(curve(&[Some(2.0)], (2.0, 2.0), 1, 1), ["⠄"], "no range: in the middle");
    }
}
