//! Where simulations of a round fell, and whether an observation is among them.

use super::RunDir;
use crate::error::Result;
use crate::inference::SimulatedRow;
use crate::storage::table::digits;
use didyma_plot::number_to;

/// Where each summary fell in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Summaries {
    names: Vec<String>,
    /// The least and the greatest value of each, and how far from them the tails begin.
    ranges: Vec<Range>,
}

/// Where a summary fell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    ends: (f64, f64),
    /// Distances of the ends from the quantiles at 5 and 95 %.
    tails: (f64, f64),
}

/// Share of the simulations in a tail. An observation is far if it is beyond the last simulation by more than the length of
/// the tail: of a normal law and 100 simulations beyond 3.4 deviations, where 1 in 1500 are by chance; of a summary that
/// cannot be negative, just below 0.
const TAIL: f64 = 0.05;

impl Summaries {
    /// Of the successful simulations of a round.
    pub fn of_round(run: &RunDir, round: u32) -> Result<Self> {
        // A task of another version has no names here.
        let names = run.manifest().task().map_or_else(|_| Vec::new(), |task| task.summaries);
        Ok(Self::new(names, &run.rows()?, round))
    }

    fn new(names: Vec<String>, rows: &[SimulatedRow], round: u32) -> Self {
        let of_round = rows.iter().filter(|row| row.round == round);
        let x: Vec<&Vec<f64>> = of_round.filter_map(|row| row.x.as_ref().ok()).collect();
        let column = |i: usize| {
            let mut column: Vec<f64> = x.iter().map(|x| x[i]).collect();
            column.sort_unstable_by(f64::total_cmp);
            let last = column.len() - 1;
            let tail = ((TAIL * last as f64).round() as usize).max(1).min(last);
            let ends = (column[0], column[last]);
            Range { ends, tails: (column[tail] - ends.0, ends.1 - column[last - tail]) }
        };
        let ranges = x.first().map_or(0..0, |first| 0..first.len()).map(column).collect();
        Self { names, ranges }
    }

    /// The first summary that is outside by more than so many of its tails, and its range.
    fn outside(&self, x: &[f64], tails: f64) -> Option<String> {
        let far = |(x, range): (&f64, &Range)| {
            let Range { ends: (low, high), tails: (below, above) } = range;
            *x < low - tails * below || *x > high + tails * above
        };
        let column = x.iter().zip(&self.ranges).position(far)?;
        let ((low, high), number) = (self.ranges[column].ends, format!("summary {}", column + 1));
        let name = self.names.get(column).unwrap_or(&number);
        let short = |value: f64| number_to(value, (high - low) / 100.0);
        let (value, low, high) = (digits(x[column]), short(low), short(high));
        Some(format!(
            "{name} is {value}, where all simulations of the last round are between {low} and {high}"
        ))
    }

    /// Says so if an observation was hardly trained for: outside of all simulations.
    pub fn untrained(&self, x: &[f64]) -> Option<String> {
        let outside = self.outside(x, 0.0)?;
        Some(format!(
            "of this observation {outside}: the flow was hardly trained there; infer anew for this observation"
        ))
    }

    /// Says so if the observation of a run is far from all of its simulations.
    pub fn far(&self, x_o: &[f64]) -> Option<String> {
        let outside = self.outside(x_o, 1.0)?;
        Some(format!(
            "of the observation {outside}: the model may not be able to give it, and the posterior means little then"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_is_near_outside_or_far() {
        let row = |round, x: Vec<f64>| SimulatedRow { round, index: 0, theta: vec![0.0], x: Ok(x) };
        let failed = SimulatedRow { round: 2, index: 3, theta: vec![0.0], x: Err("no".to_owned()) };
        let rows = [row(1, vec![9.0, 9.0]), row(2, vec![0.0, 5.0]), row(2, vec![1.0, 6.0]), failed];
        let names = || vec!["mean".to_owned(), "sd".to_owned()];
        let found = Summaries::new(names(), &rows, 2);
        assert_eq!((found.untrained(&[0.5, 5.5]), found.far(&[0.5, 5.5])), (None, None));
        let told = found.untrained(&[0.5, 6.2]).unwrap();
        assert!(told.starts_with("of this observation sd is 6.2, where all"), "{told}");
        assert!(told.contains("between 5.00 and 6.00"), "{told}");
        assert_eq!(found.far(&[0.5, 6.2]), None);
        let told = found.far(&[-1.2, 5.0]).unwrap();
        assert!(told.starts_with("of the observation mean is -1.2, "), "{told}");
        assert_eq!(Summaries::new(names(), &[], 1).far(&[1.0]), None);
        assert!(
            Summaries::new(Vec::new(), &rows, 2).far(&[9.0]).unwrap().contains("summary 1 is 9")
        );
    }
}
