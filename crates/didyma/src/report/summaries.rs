//! Where simulations of a round fell, and whether an observation is among them.

use crate::rounds::SimulatedRow;

/// The least and the greatest value of each summary in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Summaries(Vec<(f64, f64)>);

/// How far outside an observation is called far, in widths of the simulations.
const FAR: f64 = 0.5;

impl Summaries {
    /// Of the successful simulations of a round.
    pub fn of_round(rows: &[SimulatedRow], round: u32) -> Self {
        let mut ranges = Vec::new();
        for x in rows.iter().filter(|row| row.round == round).filter_map(|row| row.x.as_ref().ok())
        {
            ranges.resize(x.len(), (f64::INFINITY, f64::NEG_INFINITY));
            for ((low, high), &value) in ranges.iter_mut().zip(x) {
                (*low, *high) = (low.min(value.into()), high.max(value.into()));
            }
        }
        Self(ranges)
    }

    /// The first summary that is outside by more than so many widths, and its range.
    fn outside(&self, x: &[f64], widths: f64) -> Option<(usize, (f64, f64))> {
        let far = |(x, (low, high)): (&f64, &(f64, f64))| {
            let margin = widths * (high - low);
            *x < low - margin || *x > high + margin
        };
        let column = x.iter().zip(&self.0).position(far)?;
        Some((column, self.0[column]))
    }

    /// Says so if an observation was hardly trained for: outside of all simulations.
    pub fn untrained(&self, x: &[f64]) -> Option<String> {
        let (column, (low, high)) = self.outside(x, 0.0)?;
        Some(format!(
            "summary {} of this observation is {}, outside of all simulations of the last round ({low} to {high}): the flow was \
             hardly trained there; infer anew for this observation",
            column + 1,
            x[column]
        ))
    }

    /// Says so if the observation of a run is far from all of its simulations.
    pub fn far(&self, x_o: &[f64]) -> Option<String> {
        let (column, (low, high)) = self.outside(x_o, FAR)?;
        Some(format!(
            "summary {} of the observation is {}, far from all simulations of the last round ({low} to {high}): the model may not \
             be able to give it, and the posterior means little then",
            column + 1,
            x_o[column]
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_is_near_outside_or_far() {
        let row = |round, x: Vec<f32>| SimulatedRow { round, index: 0, theta: vec![0.0], x: Ok(x) };
        let failed = SimulatedRow { round: 2, index: 3, theta: vec![0.0], x: Err("no".to_owned()) };
        let rows = [row(1, vec![9.0, 9.0]), row(2, vec![0.0, 5.0]), row(2, vec![1.0, 6.0]), failed];
        let found = Summaries::of_round(&rows, 2);
        assert_eq!((found.untrained(&[0.5, 5.5]), found.far(&[0.5, 5.5])), (None, None));
        let told = found.untrained(&[0.5, 6.2]).unwrap();
        assert!(
            told.starts_with("summary 2 of this observation is 6.2") && told.contains("(5 to 6)")
        );
        assert_eq!(found.far(&[0.5, 6.2]), None);
        assert!(
            found
                .far(&[-0.6, 5.0])
                .unwrap()
                .starts_with("summary 1 of the observation is -0.6, far")
        );
        assert_eq!(Summaries::of_round(&[], 1).far(&[1.0]), None);
    }
}
