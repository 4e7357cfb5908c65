//! The places of true parameters in the posterior, as the figures of calibration draw them.

use crate::evaluation::calibration::{Bands, Calibration, Evidence, MOST_POINTS, RankCheck};
use crate::report::data::{Cohort, Comparison, RunData};
use didyma_plot::{Canvas, Frame, Ink, Stroke};

/// Probability with which an exact posterior is inside of a band.
pub(super) const LEVEL: f64 = 0.95;

/// The calibration of a cohort: that of its first run that has one.
pub(super) struct Calibrated<'a> {
    /// The cohort's number, which is its colour.
    pub(super) number: usize,
    /// The cohort's name.
    pub(super) name: &'a str,
    /// What was found.
    pub(super) found: &'a Calibration,
    /// True if members of an ensemble were asked, each of what it never saw.
    members: bool,
}

/// All calibrations that there are; none is no figure.
pub(super) fn calibrated<'a>(runs: &'a Comparison) -> Option<Vec<Calibrated<'a>>> {
    let of_cohort = |(number, cohort): (usize, &'a Cohort)| {
        let with = |run: &'a RunData| Some((run, run.calibration.as_ref().ok()?));
        let (run, found) = cohort.runs.iter().find_map(with)?;
        let ensemble = run.summary.rounds.last().is_some_and(|last| last.members.len() > 1);
        let members = ensemble && found.evidence != Evidence::New;
        Some(Calibrated { number, name: &cohort.name, found, members })
    };
    let all: Vec<_> = runs.cohorts.iter().enumerate().filter_map(of_cohort).collect();
    (!all.is_empty()).then_some(all)
}

/// The simulations that were asked, in words.
pub(super) fn asked(all: &[Calibrated], runs: &Comparison) -> String {
    let words = match all {
        [Calibrated { found: Calibration { evidence, rows, .. }, .. }] => match evidence {
            Evidence::New => format!("{rows} new simulations"),
            Evidence::HeldOut(first, last) if first == last => {
                format!("{rows} simulations of round {first} that training never saw")
            }
            Evidence::HeldOut(first, last) => {
                format!("{rows} simulations of rounds {first} to {last} that training never saw")
            }
        },
        _ => "simulations that training never saw".to_owned(),
    };
    let seeds = runs.cohorts.iter().any(|cohort| cohort.runs.len() > 1);
    if seeds { format!("{words}, for the first seed of each") } else { words }
}

/// A sentence on who was asked, where that is not the posterior as a whole.
pub(super) fn by_members(all: &[Calibrated]) -> &'static str {
    match all.iter().any(|one| one.members) {
        true => {
            " Each simulation is asked of the ensemble's member that never saw it, not of all members together."
        }
        false => "",
    }
}

/// The band of an exact posterior's distribution function, of as many rows as the smallest calibration has: the widest.
pub(super) fn band(all: &[Calibrated]) -> Option<Bands> {
    let rows = all.iter().map(|one| one.found.density.places.len()).min()?;
    Bands::simultaneous(rows, rows.min(MOST_POINTS), LEVEL).ok()
}

/// Draws a band, with `up` from a place and a share to a height of the frame.
pub(super) fn draw_band(
    canvas: &mut Canvas,
    frame: &Frame,
    band: &Bands,
    up: impl Fn(f64, f64) -> f64,
) {
    let edge = |shares: &[f64]| -> Vec<(f64, f64)> {
        let points = [(0.0, 0.0)].into_iter().chain(band.points.iter().zip(shares).map(both));
        points.map(|(at, share)| frame.place(at, up(at, share))).collect()
    };
    let (low, mut around) = (edge(&band.low), edge(&band.high));
    around.extend(low.iter().rev());
    canvas.areas([around.as_slice()], Ink::Reference, 0.2);
    for edge in [&around[..low.len()], &low] {
        canvas.lines([edge], Stroke::new(Ink::Reference, 0.8));
    }
}

/// The share of numbers at or below each of the band's places, from 0 on.
pub(super) fn distribution(numbers: &[f64], band: &Bands) -> Vec<(f64, f64)> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let share = |at: f64| sorted.partition_point(|&number| number <= at) as f64;
    let all = sorted.len().max(1) as f64;
    [0.0].iter().chain(&band.points).map(|&at| (at, share(at) / all)).collect()
}

/// A p-value in words.
pub(super) fn p_words(rank: &RankCheck) -> String {
    match rank.p_value {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p => format!("p = {p:.3}"),
    }
}

fn both((a, b): (&f64, &f64)) -> (f64, f64) {
    (*a, *b)
}
