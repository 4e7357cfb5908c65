//! Samples of one quantity: quantiles, the interval that is drawn, and bars.

/// An interval of one quantity; densities are not smoothed across its ends.
pub type Range = (f64, f64);

/// Widths of the samples within which a true value beside them is still in view.
const FAR: f64 = 2.0;

/// The value below which this share of sorted values lies; NaN if there are none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The interval that is drawn: nearly all samples with some room around, the true value if it is not far, but nothing
/// outside of the support.
pub fn view<'a>(
    samples: impl IntoIterator<Item = &'a [f64]>,
    truth: Option<f64>,
    support: Range,
) -> Range {
    let (low, high) = samples
        .into_iter()
        .filter(|column| !column.is_empty())
        .map(|column| {
            let mut sorted = column.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            (quantile(&sorted, 0.002), quantile(&sorted, 0.998))
        })
        .fold((f64::INFINITY, f64::NEG_INFINITY), |all, one| (all.0.min(one.0), all.1.max(one.1)));
    if !(low.is_finite() && high.is_finite()) {
        return (0.0, 1.0);
    }
    let far = FAR * (high - low);
    let (low, high) = match truth {
        Some(truth) => (low.min(truth.max(low - far)), high.max(truth.min(high + far))),
        None => (low, high),
    };
    let pad = if high > low { 0.08 * (high - low) } else { 0.5 * low.abs().max(1e-3) };
    ((low - pad).max(support.0), (high + pad).min(support.1))
}

/// Bars of equal width over an interval, whose areas are the shares of the samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Where the bars are.
    pub range: Range,
    /// Their heights.
    pub density: Vec<f64>,
}

impl Histogram {
    /// Of all samples; those outside of the interval count, but have no bar.
    pub fn new(samples: &[f64], range: Range, bars: usize) -> Self {
        let width = (range.1 - range.0) / bars as f64;
        let mut density = vec![0.0; bars];
        let unit = 1.0 / (samples.len().max(1) as f64 * width);
        for &sample in samples.iter().filter(|s| (range.0..=range.1).contains(*s)) {
            density[(((sample - range.0) / width) as usize).min(bars - 1)] += unit;
        }
        Self { range, density }
    }

    /// As many bars as the samples can fill.
    pub fn bars(samples: usize) -> usize {
        ((samples as f64).cbrt() * 2.5).clamp(12.0, 48.0) as usize
    }

    /// Left end, right end and height of every bar.
    pub fn iter(&self) -> impl Iterator<Item = (f64, f64, f64)> {
        let width = (self.range.1 - self.range.0) / self.density.len() as f64;
        let left = move |i: usize| self.range.0 + i as f64 * width;
        self.density.iter().enumerate().map(move |(i, &height)| (left(i), left(i + 1), height))
    }

    /// The height of the highest bar.
    pub fn highest(&self) -> f64 {
        self.density.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampled::{distribution, normals};

    const N: usize = 20_000;
    const ALL: Range = (f64::NEG_INFINITY, f64::INFINITY);

    #[test]
    fn a_true_value_beside_the_samples_is_in_view() {
        let x = normals(0, N);
        let (low, high) = view([&*x], Some(7.0), ALL);
        assert!(high > 7.0 && low < -2.0);
        assert!(view([&*x], Some(1e6), ALL).1 < 20.0, "but not at any price");
        assert_eq!(view([&*x], Some(7.0), (-1.0, 1.0)), (-1.0, 1.0));
    }

    #[test]
    fn bars_hold_their_share() {
        let x = normals(0, N);
        let histogram = Histogram::new(&x, (-2.0, 2.0), 40);
        let area: f64 = histogram.iter().map(|(left, right, height)| (right - left) * height).sum();
        let inside = x.iter().filter(|x| x.abs() <= 2.0).count() as f64 / N as f64;
        assert!((area - inside).abs() < 1e-12);
        let (left, right, height) = histogram.iter().nth(25).unwrap();
        let share = distribution(right) - distribution(left);
        let error = (share / N as f64).sqrt();
        assert!((height * (right - left) - share).abs() < 4.0 * error);
    }

    #[test]
    fn few_samples_are_drawn_too() {
        assert_eq!(view([&[][..]], None, (0.0, 1.0)), (0.0, 1.0));
        let (low, high) = view([&[2.0, 2.0][..]], None, ALL);
        assert!(low < 2.0 && high > 2.0);
        assert_eq!(Histogram::new(&[], (0.0, 1.0), 12).highest(), 0.0);
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.5), 2.0);
    }
}
