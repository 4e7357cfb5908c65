//! Which rows a round trains on, and which it validates on.

use crate::config::{Config, Split};
use crate::error::Result;
use crate::records::Records;
use crate::rng::{Purpose, Streams};
use crate::train::TrainRows;
use rand::seq::SliceRandom;

/// The stream that draws the held-out rows of a round; epochs stay far below.
const SPLIT: u64 = u64::MAX;

/// Rows to train on, and rows held out.
pub(super) fn split(records: &Records, config: &Config, round: u32) -> Result<TrainRows> {
    let share = config.train.validation_share;
    let all = 0..records.successes().count() as u32;
    let drawn = |mut rows: Vec<u32>| {
        rows.shuffle(&mut Streams::new(config.seed).stream(Purpose::Shuffle, round.into(), SPLIT));
        rows.truncate(((config.simulations as f64 * share) as usize).max(1));
        rows.sort_unstable();
        rows
    };
    let mut held_out: Vec<u32> = match config.train.split {
        Split::Fixed => {
            // The same share of every stretch of a round: simulations are in no particular order.
            let place = |index: u32| (f64::from(index) * share).floor();
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
    Ok(TrainRows { training, held_out })
}
