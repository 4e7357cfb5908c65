//! The simulations of all rounds, and the successful ones among them as training reads them.

use crate::density::Dataset;
use crate::density::coordinates::Coordinates;
use crate::error::{Error, Result};
use crate::inference::SimulatedRow;
use crate::inference::noise::SummaryNoise;
use crate::problem::prior::Prior;
use crate::rows::Rows;
use std::collections::BTreeMap;
use std::ops::Range;

/// All simulations by round and number.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    theta_dim: usize,
    x_dim: usize,
    /// Simulations of a round.
    simulations: usize,
    rows: BTreeMap<(u32, u32), SimulatedRow>,
}

/// The successful simulations of a round, or of all.
pub(crate) struct RoundRows {
    theta: Vec<f64>,
    x: Vec<f64>,
    dims: (usize, usize),
    /// Their places among the successful simulations of all rounds.
    pub places: Range<u32>,
}

/// Successful simulations of a round that training needs at least.
const LEAST: usize = 4;

impl Records {
    pub(crate) fn new(dims: (usize, usize), simulations: usize, rows: Vec<SimulatedRow>) -> Self {
        let (theta_dim, x_dim) = dims;
        let rows = rows.into_iter().map(|row| ((row.round, row.index), row)).collect();
        Self { theta_dim, x_dim, simulations, rows }
    }

    pub(crate) fn extend(&mut self, rows: Vec<SimulatedRow>) {
        self.rows.extend(rows.into_iter().map(|row| ((row.round, row.index), row)));
    }

    /// Requires every row to have the dimensions of the problem.
    pub(crate) fn check(&self) -> Result<()> {
        for row in self.rows.values() {
            let x = row.x.as_ref().map_or(self.x_dim, Vec::len);
            for (name, found, expected) in
                [("theta", row.theta.len(), self.theta_dim), ("x", x, self.x_dim)]
            {
                if found != expected {
                    let (unit, why) = ("numbers", "as the problem has; the run is of another one");
                    return Err(Error::Shape { name, unit, found, expected, why });
                }
            }
        }
        Ok(())
    }

    fn round_rows(&self, round: u32) -> impl Iterator<Item = &SimulatedRow> {
        self.rows.range((round, 0)..=(round, u32::MAX)).map(|(_, row)| row)
    }

    /// Numbers of the round that are not simulated yet, as ranges.
    pub(crate) fn missing(&self, round: u32) -> Vec<Range<usize>> {
        let done: Vec<usize> = self.round_rows(round).map(|row| row.index as usize).collect();
        gaps(&done, 0..self.simulations)
    }

    /// θ of a round's simulations, in order.
    pub(crate) fn theta(&self, round: u32) -> Vec<f64> {
        self.round_rows(round).flat_map(|row| row.theta.iter().copied()).collect()
    }

    /// Simulations of a round: done, and failed.
    pub(crate) fn counts(&self, round: u32) -> (usize, usize) {
        let failed = self.round_rows(round).filter(|row| row.x.is_err()).count();
        (self.round_rows(round).count(), failed)
    }

    /// The successful simulations: their numbers in their rounds, θ and x.
    pub(crate) fn successes(&self) -> impl Iterator<Item = (u32, &[f64], &[f64])> {
        let success = |row: &SimulatedRow| row.x.is_ok();
        self.rows.values().filter(move |row| success(row)).map(|row| {
            let x = row.x.as_deref().unwrap_or_default();
            (row.index, &*row.theta, x)
        })
    }

    /// The successful simulations of a round, if they are enough to train on.
    pub(crate) fn of_round(&self, round: u32) -> Result<RoundRows> {
        let before = self.rows.range(..(round, 0)).filter(|(_, row)| row.x.is_ok()).count() as u32;
        let (mut theta, mut x) = (Vec::new(), Vec::new());
        for row in self.round_rows(round) {
            if let Ok(found) = &row.x {
                theta.extend_from_slice(&row.theta);
                x.extend_from_slice(found);
            }
        }
        let succeeded = theta.len() / self.theta_dim;
        if succeeded < LEAST {
            let reason = self.round_rows(round).find_map(|row| row.x.as_ref().err()).cloned();
            let simulations = self.simulations;
            return Err(Error::FewSimulations { round, simulations, succeeded, reason });
        }
        let places = before..before + succeeded as u32;
        Ok(RoundRows { theta, x, dims: (self.theta_dim, self.x_dim), places })
    }

    /// The successful simulations of all rounds.
    pub(crate) fn pool(&self) -> RoundRows {
        let (mut theta, mut x) = (Vec::new(), Vec::new());
        for (_, row_theta, row_x) in self.successes() {
            theta.extend_from_slice(row_theta);
            x.extend_from_slice(row_x);
        }
        let places = 0..(theta.len() / self.theta_dim) as u32;
        RoundRows { theta, x, dims: (self.theta_dim, self.x_dim), places }
    }

    /// θ of the failed simulations, in the order of the dataset's rows without summaries.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &[f64]> {
        self.rows.values().filter(|row| row.x.is_err()).map(|row| &*row.theta)
    }

    /// θ of all simulations, and whether they succeeded.
    pub(crate) fn outcomes(&self) -> (Vec<f64>, Vec<bool>) {
        let theta = self.rows.values().flat_map(|row| row.theta.iter().copied()).collect();
        (theta, self.rows.values().map(|row| row.x.is_ok()).collect())
    }

    /// Rows of the dataset that have parameters and no summaries.
    pub(crate) fn without_x(&self) -> Range<u32> {
        let successes = self.successes().count() as u32;
        successes..successes + self.failures().count() as u32
    }

    /// All successful simulations in these coordinates, then the parameters of the failed ones, which have no x and can be
    /// inner samples only. Summaries have this noise, if any.
    pub(crate) fn dataset(
        &self,
        prior: &Prior,
        coordinates: &Coordinates,
        noise: Option<SummaryNoise>,
    ) -> Result<Dataset> {
        let (mut all_z, mut log_prior) = (Vec::new(), Vec::new());
        let mut z = vec![0.0; self.theta_dim];
        let successes = self.successes().map(|(_, theta, _)| theta);
        for theta in successes.chain(self.failures()) {
            prior.expect_inside(theta)?;
            let log_jacobian = coordinates.to_z(prior, theta, &mut z);
            all_z.extend(z.iter().map(|&z| z as f32));
            log_prior.push(prior.log_density(theta) + log_jacobian);
        }
        let all_x = self.features(coordinates, noise);
        let x = Rows::new("x", &all_x, self.x_dim)?;
        let (of_successes, of_failures) = all_z.split_at(x.len() * self.theta_dim);
        let theta = |z| Rows::new("theta", z, self.theta_dim);
        let (successes, failures) = log_prior.split_at(x.len());
        let data = Dataset::new(theta(of_successes)?, x, successes)?;
        if failures.is_empty() {
            Ok(data)
        } else {
            data.with_parameters(theta(of_failures)?, failures)
        }
    }

    /// The features of the successful simulations, with this noise.
    fn features(&self, coordinates: &Coordinates, mut noise: Option<SummaryNoise>) -> Vec<f32> {
        let mut all = Vec::new();
        for SimulatedRow { round, index, x, .. } in self.rows.values() {
            let Ok(x) = x else { continue };
            let x = x.iter().copied();
            match &mut noise {
                Some(noise) => {
                    all.extend(coordinates.noisy_features(x, noise.of_row(*round, *index)));
                }
                None => all.extend(coordinates.features(x)),
            }
        }
        all
    }
}

/// What is left of a range without these numbers, which are in order.
pub(crate) fn gaps(done: &[usize], of: Range<usize>) -> Vec<Range<usize>> {
    let (mut ranges, mut next) = (Vec::new(), of.start);
    for &index in done.iter().chain([&of.end]) {
        if index > next {
            ranges.push(next..index);
        }
        next = index + 1;
    }
    ranges
}

impl RoundRows {
    pub(crate) fn rows(&self) -> Result<(Rows<'_>, Rows<'_>)> {
        let (theta_dim, x_dim) = self.dims;
        Ok((Rows::new("theta", &self.theta, theta_dim)?, Rows::new("x", &self.x, x_dim)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rows_are_found_wherever_they_are() {
        let row = |index| SimulatedRow { round: 2, index, theta: vec![0.0], x: Ok(vec![0.0]) };
        let missing = |done: &[u32]| {
            let rows = done.iter().map(|&index| row(index)).collect();
            let missing = Records::new((1, 1), 6, rows).missing(2);
            // A list of one range would look like the numbers in it.
            missing.into_iter().map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        assert_eq!(missing(&[]), [(0, 6)]);
        assert_eq!(missing(&[0, 1, 3]), [(2, 3), (4, 6)]);
        assert_eq!(missing(&[5, 0]), [(1, 5)]);
        assert!(missing(&[0, 1, 2, 3, 4, 5]).is_empty());
    }

    #[test]
    fn failed_rows_are_counted_and_left_out() {
        let row = |round, index, x: std::result::Result<f64, &str>| SimulatedRow {
            round,
            index,
            theta: vec![0.5],
            x: x.map(|x| vec![x]).map_err(str::to_owned),
        };
        let mut rows: Vec<_> = (0..5).map(|i| row(1, i, Ok(i as f64))).collect();
        rows.extend([row(2, 0, Err("it broke")), row(2, 1, Ok(7.0))]);
        let records = Records::new((1, 1), 5, rows);
        assert_eq!(records.counts(2), (2, 1));
        assert_eq!(records.of_round(1).unwrap().places, 0..5);
        let told = records.of_round(2).err().unwrap().to_string();
        assert!(told.contains("only 1 of the 5") && told.contains("it broke"), "{told}");
        let indices: Vec<u32> = records.successes().map(|(index, ..)| index).collect();
        assert_eq!(indices, [0, 1, 2, 3, 4, 1]);
    }
}
