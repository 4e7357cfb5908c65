//! Where simulations of a round fell, and whether an observation is among them.

use crate::error::Result;
use crate::inference::SimulatedRow;
use crate::run::RunDir;
use didyma_plot::number_to;

/// Where each summary fell in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Summaries {
    names: Vec<String>,
    /// The least and the greatest value of each.
    ranges: Vec<(f64, f64)>,
}

/// How far outside an observation is called far, in widths of the simulations.
const FAR: f64 = 0.5;

impl Summaries {
    /// Of the successful simulations of a round.
    pub fn of_round(run: &RunDir, round: u32) -> Result<Self> {
        // A task of another version has no names here.
        let names = run.manifest().task().map_or_else(|_| Vec::new(), |task| task.summaries);
        Ok(Self::new(names, &run.rows()?, round))
    }

    fn new(names: Vec<String>, rows: &[SimulatedRow], round: u32) -> Self {
        let mut ranges = Vec::new();
        for x in rows.iter().filter(|row| row.round == round).filter_map(|row| row.x.as_ref().ok())
        {
            ranges.resize(x.len(), (f64::INFINITY, f64::NEG_INFINITY));
            for ((low, high), &value) in ranges.iter_mut().zip(x) {
                (*low, *high) = (low.min(value), high.max(value));
            }
        }
        Self { names, ranges }
    }

    /// The first summary that is outside by more than so many widths, and its range.
    fn outside(&self, x: &[f64], widths: f64) -> Option<String> {
        let far = |(x, (low, high)): (&f64, &(f64, f64))| {
            let margin = widths * (high - low);
            *x < low - margin || *x > high + margin
        };
        let column = x.iter().zip(&self.ranges).position(far)?;
        let ((low, high), number) = (self.ranges[column], format!("summary {}", column + 1));
        let name = self.names.get(column).unwrap_or(&number);
        let short = |value: f64| number_to(value, (high - low) / 100.0);
        let (value, low, high) = (x[column], short(low), short(high));
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
        let outside = self.outside(x_o, FAR)?;
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
        let told = found.far(&[-0.6, 5.0]).unwrap();
        assert!(told.starts_with("of the observation mean is -0.6, "), "{told}");
        assert_eq!(Summaries::new(names(), &[], 1).far(&[1.0]), None);
        assert!(
            Summaries::new(Vec::new(), &rows, 2).far(&[9.0]).unwrap().contains("summary 1 is 9")
        );
    }
}
