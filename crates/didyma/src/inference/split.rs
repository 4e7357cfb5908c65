//! Which rows a round trains on, and which it validates on.

use crate::error::Result;
use crate::inference::config::{Config, Split};
use crate::inference::simulations::Records;
use crate::rng::{Purpose, Streams};
use crate::training::TrainRows;
use rand::seq::SliceRandom;

/// Rows that a member trains on, and rows held out; [`Failing`](super::failures::Failing) adds what failed ones count for.
pub(crate) fn split(
    records: &Records,
    config: &Config,
    round: u32,
    streams: Streams,
) -> Result<TrainRows> {
    let share = config.train.validation_share;
    let all = 0..records.successes().count() as u32;
    let drawn = |mut rows: Vec<u32>| {
        rows.shuffle(&mut streams.stream(Purpose::Split, round.into(), 0));
        rows.truncate(((config.simulations as f64 * share) as usize).max(1));
        rows.sort_unstable();
        rows
    };
    let mut held_out: Vec<u32> = match config.train.split {
        Split::Fixed => {
            // The same share of every stretch of a round: simulations are in no particular order. Members hold out
            // neighbours of each other's rows.
            let place = |index: u32| (f64::from(index + streams.member()) * share).floor();
            let indices = records.successes().map(|(index, ..)| index);
            let held_out = |index| place(index + 1) > place(index);
            all.clone().zip(indices).filter(|(_, i)| held_out(*i)).map(|(row, _)| row).collect()
        }
        Split::Newest => drawn(records.of_round(round)?.places.collect()),
        Split::Pooled => drawn(all.clone().collect()),
    };
    // Where most simulations failed, all that are left may be on one side: each gets one row at least.
    if held_out.is_empty() {
        held_out.push(all.start);
    } else if held_out.len() == all.len() {
        held_out.pop();
    }
    let training = all.filter(|row| held_out.binary_search(row).is_err()).collect();
    Ok(TrainRows { training, held_out, inner_only: Vec::new(), weights: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::SimulatedRow;
    use crate::inference::config::{Meaning, Profile};
    use crate::inference::failures::Failing;
    use crate::problem::prior::Prior;
    use crate::training::estimator::Method;

    /// Rounds of 20 simulations, in each of which number 3 failed.
    fn records(rounds: u32) -> Records {
        let row = |round, index| SimulatedRow {
            round,
            index,
            theta: vec![0.5],
            x: if index == 3 { Err("it broke".to_owned()) } else { Ok(vec![0.0]) },
        };
        let rows = (1..=rounds).flat_map(|round| (0..20).map(move |index| row(round, index)));
        Records::new((1, 1), 20, rows.collect())
    }

    fn config(kind: Split) -> Config {
        let mut config = Config::new(Profile::Default, Method::Tgrr);
        config.simulations = 20;
        (config.train.split, config.train.validation_share) = (kind, 0.2);
        config
    }

    fn split_of(kind: Split, round: u32) -> TrainRows {
        split(&records(round), &config(kind), round, Streams::new(1)).unwrap()
    }

    #[test]
    fn every_row_is_on_one_side_and_failed_outcomes_are_inner_samples() {
        let prior = Prior::uniform(["a"], [0.0], [1.0]).unwrap();
        for kind in [Split::Fixed, Split::Newest, Split::Pooled] {
            for round in 1..=3 {
                let mut config = config(kind);
                config.failures.meaning = Meaning::Outcome;
                let failing = Failing::new(&prior, &records(round), &config, round, 1).unwrap();
                let rows = failing.unwrap().applied(split_of(kind, round));
                let TrainRows { training, held_out, inner_only, .. } = rows;
                let mut all = [training, held_out].concat();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..19 * round));
                assert!(inner_only.into_iter().eq(19 * round..20 * round));
            }
        }
    }

    #[test]
    fn fixed_rows_stay_newest_ones_are_new_and_pooled_ones_come_from_all() {
        let held_out = |kind, round| split_of(kind, round).held_out;
        let (before, after) = (held_out(Split::Fixed, 2), held_out(Split::Fixed, 3));
        assert!(after.starts_with(&before) && after.len() == 3 * 4);
        let newest = held_out(Split::Newest, 3);
        assert!(newest.len() == 4 && newest.iter().all(|row| (38..57).contains(row)));
        let pooled = held_out(Split::Pooled, 3);
        assert!(pooled.len() == 4 && pooled.iter().any(|row| *row < 38), "{pooled:?}");
        assert_ne!(held_out(Split::Pooled, 2), held_out(Split::Pooled, 3));
    }
}
