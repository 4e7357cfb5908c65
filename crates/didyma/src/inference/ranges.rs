//! Where the summaries of simulations fell, and which observations are outside.

use crate::rows::Rows;
use crate::storage::table::digits;
use didyma_plot::number_to;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where each summary fell in a round: four numbers of each, so that a model keeps them though there are ten thousand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ranges {
    /// The least value of each.
    low: Vec<f64>,
    /// The greatest value of each.
    high: Vec<f64>,
    /// Distance of the least value from the quantile at 5 %.
    below: Vec<f64>,
    /// Distance of the greatest value from the quantile at 95 %.
    above: Vec<f64>,
}

/// Share of the simulations in a tail. An observation is far if it is beyond the last simulation by more than the length of
/// the tail: of a normal law and 100 simulations beyond 3.4 deviations, where 1 in 1500 are by chance; of a summary that
/// cannot be negative, just below 0.
const TAIL: f64 = 0.05;

impl Ranges {
    /// Of simulations, one at least.
    pub(crate) fn of(x: Rows) -> Self {
        let mut found = Self { low: vec![], high: vec![], below: vec![], above: vec![] };
        let mut column = Vec::with_capacity(x.len());
        for i in 0..x.columns() {
            column.clear();
            column.extend(x.iter().map(|row| row[i]));
            let last = column.len() - 1;
            let tail = ((TAIL * last as f64).round() as usize).max(1).min(last);
            let mut at = |place| *column.select_nth_unstable_by(place, f64::total_cmp).1;
            let [low, from, to, high] = [0, tail, last - tail, last].map(&mut at);
            found.low.push(low);
            found.high.push(high);
            found.below.push(from - low);
            found.above.push(high - to);
        }
        found
    }

    /// True if these are ranges of so many summaries: a file may say anything.
    pub(crate) fn fit(&self, x_dim: usize) -> bool {
        let Self { low, high, below, above } = self;
        let all = [low, high, below, above];
        all.iter().all(|column| column.len() == x_dim && column.iter().all(|v| v.is_finite()))
    }

    /// Observations, one in each row, that were hardly trained for: outside of all simulations.
    pub(crate) fn untrained(&self, x: Rows, names: &[String]) -> Option<Untrained> {
        let mut outside = x
            .iter()
            .enumerate()
            .filter_map(|(row, x)| self.outside(x, 0.0).map(|column| (row, column)));
        let (first, column) = outside.next()?;
        let (rows, of) = (1 + outside.count(), x.len());
        Some(Untrained { rows, of, first, outside: self.describe(column, x.row(first), names) })
    }

    /// Says so if the observation of a run is far from all of its simulations.
    pub(crate) fn far(&self, x_o: &[f64], names: &[String]) -> Option<String> {
        let outside = self.describe(self.outside(x_o, 1.0)?, x_o, names);
        Some(format!(
            "of the observation {outside}: the model may not be able to give it, and the posterior means little then"
        ))
    }

    /// The first summary that is outside by more than so many of its tails.
    fn outside(&self, x: &[f64], tails: f64) -> Option<usize> {
        let far = |(i, x): (usize, &f64)| {
            *x < self.low[i] - tails * self.below[i] || *x > self.high[i] + tails * self.above[i]
        };
        x.iter().take(self.low.len()).enumerate().position(far)
    }

    fn describe(&self, column: usize, x: &[f64], names: &[String]) -> String {
        let (low, high) = (self.low[column], self.high[column]);
        let number = format!("summary {}", column + 1);
        let name = names.get(column).unwrap_or(&number);
        let short = |value: f64| number_to(value, (high - low) / 100.0);
        let (value, low, high) = (digits(x[column]), short(low), short(high));
        format!(
            "{name} is {value}, where all simulations of the last round are between {low} and {high}"
        )
    }
}

/// Observations outside of all simulations of the last round; `Display` says it in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrained {
    /// How many.
    pub rows: usize,
    /// Of how many.
    pub of: usize,
    /// The first of them: its row, from 0.
    pub first: usize,
    /// Its first summary that is outside, and the range of that.
    outside: String,
}

impl fmt::Display for Untrained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, of, first, outside } = self;
        let first = first + 1;
        if *of == 1 {
            return write!(
                f,
                "of this observation {outside}: the flow was hardly trained there; infer anew for this observation"
            );
        }
        write!(
            f,
            "{rows} of {of} observations are outside of all simulations; of observation {first}, the first of them, \
             {outside}: the flow was hardly trained there; infer anew for such an observation"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<const N: usize>(x: &[f64; N]) -> Rows<'_> {
        Rows::new("x", x, 2).unwrap()
    }

    #[test]
    fn an_observation_is_near_outside_or_far() {
        let names = ["mean".to_owned(), "sd".to_owned()];
        let found = Ranges::of(rows(&[0.0, 5.0, 1.0, 6.0]));
        assert_eq!(found.untrained(rows(&[0.5, 5.5]), &names), None);
        assert_eq!(found.far(&[0.5, 5.5], &names), None);
        let told = found.untrained(rows(&[0.5, 6.2]), &names).unwrap().to_string();
        assert!(told.starts_with("of this observation sd is 6.2, where all"), "{told}");
        assert!(told.contains("between 5.00 and 6.00"), "{told}");
        assert_eq!(found.far(&[0.5, 6.2], &names), None);
        let told = found.far(&[-1.2, 5.0], &names).unwrap();
        assert!(told.starts_with("of the observation mean is -1.2, "), "{told}");
        assert!(found.far(&[9.0, 5.0], &[]).unwrap().contains("summary 1 is 9"));
    }

    #[test]
    fn of_many_observations_the_first_outside_is_named() {
        let ranges = Ranges::of(rows(&[0.0, 5.0, 1.0, 6.0]));
        let x = [0.5, 5.5, 0.5, 9.0, 1.0, 6.0, -1.0, 5.0];
        let found = ranges.untrained(rows(&x), &[]).unwrap();
        assert_eq!((found.rows, found.of, found.first), (2, 4, 1));
        let told = found.to_string();
        assert!(told.starts_with("2 of 4 observations are outside"), "{told}");
        assert!(told.contains("of observation 2, the first of them, summary 2 is 9,"), "{told}");
    }

    /// Tails of the numbers 0 to 100, in any order, end at 5 and 95; a file has the same ranges.
    #[test]
    fn tails_are_those_of_sorted_numbers() {
        let x: Vec<f64> = (0..=100).map(|i| f64::from(i * 37 % 101)).collect();
        let found = Ranges::of(Rows::new("x", &x, 1).unwrap());
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(text, r#"{"low":[0.0],"high":[100.0],"below":[5.0],"above":[5.0]}"#);
        assert_eq!(serde_json::from_str::<Ranges>(&text).unwrap(), found);
        assert!(found.fit(1) && !found.fit(2));
    }
}
