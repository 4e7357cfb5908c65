//! Scales: how far along an edge a value lies, and the round numbers there.

/// Values along an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// True where only whole numbers have a name.
    whole: bool,
}

impl Scale {
    /// From low to high; an interval without width is widened around its place.
    pub fn new(low: f64, high: f64) -> Self {
        let (low, high) =
            if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) };
        let (low, high) = (low.min(high), low.max(high));
        let pad = if high > low { 0.0 } else { 0.5 * low.abs().max(1.0) };
        Self { low: low - pad, high: high + pad, logarithmic: false, whole: false }
    }

    /// All of these values, and a little more. None of them: 0 to 1.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = extent(values);
        let pad = 0.05 * (high - low);
        Self::new(low - pad, high + pad)
    }

    /// All of these that are above 0, by their logarithm.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = extent(values.into_iter().filter(|&value| value > 0.0));
        let (low, high) = if low.is_finite() { (low, high) } else { (0.1, 1.0) };
        let high = (high * 1.3).min(f64::MAX);
        Self { low: low / 1.3, high, logarithmic: true, whole: false }
    }

    /// Values with half the heights of their bars. A bar that goes far down a logarithmic scale counts to a sixteenth of
    /// its value: one uncertain value would squeeze all others.
    pub fn with_bars(logarithmic: bool, values: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let values = values.into_iter().filter(|&(value, _)| shown(logarithmic, value));
        let ends = values.flat_map(|(value, error)| match (error > 0.0, logarithmic) {
            (false, _) => [value; 3],
            (true, false) => [value - error, value, value + error],
            (true, true) => [(value - error).max(value / 16.0), value, value + error],
        });
        if logarithmic { Self::logarithmic(ends) } else { Self::around(ends) }
    }

    /// Things that are counted, from `first` to `last`, with a little room.
    pub fn counted(first: u32, last: u32) -> Self {
        Self { whole: true, ..Self::new(f64::from(first) - 0.3, f64::from(last) + 0.3) }
    }

    /// The lowest value.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The highest value.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// True for a value that has a place on it, within its ends or beyond.
    pub fn shows(&self, value: f64) -> bool {
        shown(self.logarithmic, value)
    }

    /// 0 at the low end, 1 at the high one.
    pub fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            // Differences, since the quotient of the ends may be too large for a number.
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// About this many round values with their names, which differ however narrow the scale is.
    pub fn named_ticks(&self, about: usize) -> Vec<(f64, String)> {
        let ticks = self.ticks(about);
        let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let name =
            |value: f64| if self.logarithmic { number(value) } else { number_to(value, step) };
        ticks.iter().map(|&tick| (tick, name(tick))).collect()
    }

    /// About this many round values.
    pub fn ticks(&self, about: usize) -> Vec<f64> {
        if self.logarithmic { self.powers(about) } else { self.multiples(about) }
    }

    fn multiples(&self, about: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / about.max(1) as f64;
        let rough = if self.whole { rough.max(1.0) } else { rough };
        let unit = 10f64.powf(rough.log10().floor());
        let miss = |step: &f64| (step / rough).ln().abs();
        let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * unit);
        let step = steps.into_iter().min_by(|a, b| miss(a).total_cmp(&miss(b))).unwrap_or(unit);
        let (first, last) = ((self.low / step).ceil(), (self.high / step + 1e-9).floor());
        (0..=(last - first).clamp(0.0, 50.0) as usize).map(|i| (first + i as f64) * step).collect()
    }

    /// Powers of ten; between few of them 2 and 5 too, then every digit, then multiples.
    fn powers(&self, about: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().floor() as i32);
        let inside = |value: &f64| (self.low..=self.high).contains(value);
        let tens: Vec<f64> = (first..=last).map(|k| 10f64.powi(k)).filter(inside).collect();
        if tens.len() > 2 {
            return tens.iter().copied().step_by(tens.len().div_ceil(about.max(1))).collect();
        }
        let digits: [&[f64]; 2] =
            [&[1.0, 2.0, 5.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]];
        let sets = digits.map(|digits| -> Vec<f64> {
            let all = (first..=last).flat_map(|k| digits.iter().map(move |m| m * 10f64.powi(k)));
            all.filter(inside).collect()
        });
        let fits = |set: &Vec<f64>| (3..=about + 1).contains(&set.len());
        match sets.into_iter().find(fits) {
            Some(set) => set,
            None if tens.len() > 1 => tens,
            None => self.multiples(4),
        }
    }
}

/// True for a value with a place on a scale of this kind.
pub(crate) fn shown(logarithmic: bool, value: f64) -> bool {
    value.is_finite() && (!logarithmic || value > 0.0)
}

fn extent(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

/// A number in few letters.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !(1e-3..1e5).contains(&size) {
        let text = format!("{value:.1e}");
        text.replace(".0e", "e").replace('-', "−")
    } else {
        let digits = (2 - size.log10().floor() as i32).clamp(0, 5) as usize;
        let text = format!("{value:.digits$}");
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        text.replace('-', "−")
    }
}

/// A number with as many digits as tell differences of this size.
pub fn number_to(value: f64, resolution: f64) -> String {
    if !(resolution > 0.0 && resolution.is_finite() && value.is_finite()) {
        return number(value);
    }
    // The smallest place that matters: 0.2 needs one digit, 0.05 two.
    let place = (resolution.log10() + 1e-9).floor();
    let size = value.abs().max(resolution);
    // Of a date such as 2459000.66 all digits are read as they are; an exponent would only add to them.
    let digits = size.log10().floor() - place;
    let text = if (1e-4..1e6).contains(&size) || (size < 1e12 && digits > 6.0) && size >= 1.0 {
        format!("{value:.*}", (-place).clamp(0.0, 12.0) as usize)
    } else {
        format!("{value:.*e}", digits.clamp(0.0, 12.0) as usize)
    };
    match text.parse() {
        Ok(0.0) => "0".to_owned(),
        _ => text.replace('-', "−"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let ticks = Scale::new(0.13, 0.98).ticks(5);
        assert_eq!(
            ticks.iter().map(|&t| number(t)).collect::<Vec<_>>(),
            ["0.2", "0.4", "0.6", "0.8"]
        );
        assert_eq!(Scale::new(-1.0, 1.0).ticks(4), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(Scale::counted(1, 3).ticks(8), [1.0, 2.0, 3.0]);
        assert_eq!(Scale::logarithmic([1e-3, 20.0]).ticks(5), [1e-3, 1e-2, 1e-1, 1.0, 10.0]);
        assert_eq!(Scale::logarithmic([1.0, 6.0]).ticks(5), [1.0, 2.0, 5.0]);
        assert_eq!(Scale::logarithmic([0.8, 15.0]).ticks(5), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(Scale::logarithmic([0.2, 50.0]).ticks(5), [1.0, 10.0]);
        assert_eq!(Scale::logarithmic([1.0, 1e6]).ticks(4), [1.0, 100.0, 1e4, 1e6]);
        assert_eq!(Scale::logarithmic([3.3]).ticks(5), [3.0, 3.5, 4.0]);
        assert_eq!(Scale::logarithmic([1.45]).ticks(2).len(), 4);
    }

    #[test]
    fn names_of_ticks_differ() {
        for (low, high) in
            [(0.247, 0.248), (1234.1, 1234.3), (-1.0, 1.0), (1e-9, 2e-9), (3e7, 3.1e7), (1.0, 1.0)]
        {
            for about in [2, 5, 9] {
                let named = Scale::new(low, high).named_ticks(about);
                let mut names: Vec<_> = named.iter().map(|(_, name)| name).collect();
                names.dedup();
                assert_eq!(names.len(), named.len(), "{named:?}");
            }
        }
        assert_eq!(number_to(-0.0001, 0.01), "0");
        assert_eq!(number_to(-4.5899, 0.005), "−4.590");
        assert_eq!(number_to(1.23456e-7, 1e-9), "1.23e−7");
    }

    #[test]
    fn no_interval_breaks_a_scale() {
        for scale in [
            Scale::new(3.0, 3.0),
            Scale::new(f64::NAN, 1.0),
            Scale::around([]),
            Scale::around([1e300, -1e300]),
            Scale::logarithmic([-1.0]),
            Scale::logarithmic([1e-300, f64::MAX]),
            Scale::with_bars(true, [(1.0, f64::INFINITY), (0.0, 1.0), (2.0, f64::NAN)]),
        ] {
            assert!(scale.share(1.0).is_finite(), "{scale:?}");
            assert!(scale.high() > scale.low() && scale.ticks(5).len() <= 51, "{scale:?}");
        }
    }

    #[test]
    fn bars_are_inside_but_do_not_rule() {
        let scale = Scale::with_bars(false, [(1.0, 0.5), (2.0, 0.0)]);
        assert!(scale.low() < 0.5 && scale.low() > 0.4 && scale.high() < 2.1, "{scale:?}");
        let scale = Scale::with_bars(true, [(1.6, 1.599), (2.0, 1.0)]);
        assert!((scale.low() - 0.1 / 1.3).abs() < 1e-12 && scale.high() > 3.199, "{scale:?}");
        assert!(scale.shows(1e-9) && !scale.shows(0.0) && !scale.shows(f64::NAN));
    }

    #[test]
    fn numbers_are_short() {
        let found = [0.0, 0.25, -1.5, 1234.6, 1.2e-7, 3.0e6, 99.96].map(number);
        assert_eq!(found, ["0", "0.25", "−1.5", "1235", "1.2e−7", "3e6", "100"]);
    }
}
