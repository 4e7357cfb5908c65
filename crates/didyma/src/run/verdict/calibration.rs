//! The checks that a calibration answers: places, moments, the region that was simulated, a classifier.

use super::{Check, Outcome};
use crate::evaluation::calibration::{Calibration, Evidence, MomentCheck, RankCheck};
use crate::run::Checked;

/// The check without which nothing is trusted.
pub(super) const CALIBRATION: &str = "calibration";

/// p-values below which a check is doubtful, and below which it may be bad: with three of them an exact posterior is doubted in
/// 3 of 100 runs.
pub(super) const RARE: f64 = 0.01;
const VERY_RARE: f64 = 0.002;
/// Deviations of a distribution function that are not worth a word, and those that are bad. A shift by δ standard deviations
/// deviates by 2 Φ(δ/2) − 1 = 0.08 (δ = 0.2) and 0.2 (δ = 0.5), where classifiers reach a C2ST of .54 and .60.
const SMALL: f64 = 0.08;
const LARGE: f64 = 0.2;
/// Mean score of the places by density from which a posterior is too wide or too narrow on the whole.
const SIDE: f64 = 0.1;
/// The same for tilts: of a location they are standard deviations.
const SMALL_TILT: f64 = 0.2;
const LARGE_TILT: f64 = 0.6;
/// The shift, in standard deviations, that has to be visible before a calibration says anything.
const BLIND: f64 = 0.6;
/// Distance of a classifier's probabilities from ½, as a root mean square, that is not worth a word: under a shift by δ standard
/// deviations the log-odds are δ z, and d − ½ is about δ z / 4, so that it is δ / 4 = 0.05 (δ = 0.2).
const SMALL_GUESS: f64 = 0.05;
/// Shares of q where the last round simulated nothing. A proposal is wider than the posterior that it is made of, of which it
/// leaves out less than 0.5 %; one round moves a posterior by more only while it is still far from its end.
const OUTSIDE: f64 = 0.05;
const MOSTLY_OUTSIDE: f64 = 0.4;
/// The remedy where nothing could be asked.
const ASK: &str = "make new simulations for calibration";

/// All that a calibration says.
pub(super) fn checks(checked: &Checked) -> Vec<Check> {
    match checked {
        Err(why) => vec![Check::new(CALIBRATION, Outcome::NotChecked, why, ASK)],
        Ok(found) if found.visible > BLIND => {
            let words = format!(
                "{} say too little: only a shift by {:.1} sd would be seen",
                asked(found),
                found.visible
            );
            let blind = Check::new(CALIBRATION, Outcome::NotChecked, words, ASK);
            // What is plain all the same is said.
            let plain = [places(found), moments(found)];
            let plain = plain.into_iter().filter(|check| check.outcome > Outcome::NotChecked);
            plain.chain([blind]).chain(outside(found)).chain(local(found)).collect()
        }
        Ok(found) => {
            let more = outside(found).into_iter().chain(local(found));
            [places(found), moments(found)].into_iter().chain(more).collect()
        }
    }
}

fn asked(found: &Calibration) -> String {
    match found.evidence {
        Evidence::HeldOut(..) => format!("{} held-out simulations", found.rows),
        Evidence::New => format!("{} new simulations", found.rows),
    }
}

/// Places of θ, each statistic by its own p-value, times their number, and its own deviation.
fn places(found: &Calibration) -> Check {
    let count = found.ranks().count() as f64;
    let p = |rank: &RankCheck| (rank.p_value * count).min(1.0);
    let outcome = |rank: &RankCheck| match p(rank) {
        p if p < VERY_RARE && rank.deviation > LARGE => Outcome::Bad,
        p if p < RARE && rank.deviation > SMALL => Outcome::Doubtful,
        _ => Outcome::Good,
    };
    let worst = found.ranks().min_by(|a, b| {
        let of = |rank: &RankCheck| std::cmp::Reverse(outcome(rank));
        of(a).cmp(&of(b)).then(a.p_value.total_cmp(&b.p_value))
    });
    let Some(worst) = worst else {
        return Check::new(CALIBRATION, Outcome::NotChecked, "nothing was asked", ASK);
    };
    let (asked, p_value, deviation) = (asked(found), p(worst), worst.deviation);
    match outcome(worst) {
        Outcome::Good if p_value < RARE => Check::good(
            CALIBRATION,
            format!(
                "{asked} fall into the posterior nearly as often as it says, off by less than matters (deviation {deviation:.2}, \
                 p = {})",
                p_words(p_value)
            ),
        ),
        Outcome::Good => {
            let seen = found.visible.max(SMALL_TILT);
            let words = format!(
                "{asked} fall into the posterior as often as it says (p = {}; a shift by {seen:.2} sd would be seen)",
                p_words(p_value)
            );
            Check::good(CALIBRATION, words)
        }
        outcome => {
            let words = format!(
                "{asked} do not fall into the posterior as often as it says: {} (p = {}, deviation {deviation:.2})",
                fault(worst),
                p_words(p_value)
            );
            Check::new(CALIBRATION, outcome, words, "simulate more")
        }
    }
}

/// The fault that uneven places show.
fn fault(rank: &RankCheck) -> String {
    let way = match (rank.shift.abs() > 0.2, rank.width) {
        (true, _) if rank.shift > 0.0 => "too low",
        (true, _) => "too high",
        (_, width) if width > 1.0 => "too narrow",
        _ => "too wide",
    };
    match &*rank.name {
        "density" if rank.shift < -SIDE => "it is too narrow".to_owned(),
        "density" if rank.shift > SIDE => "it is too wide".to_owned(),
        "density" => "its middle and its edges do not fit together".to_owned(),
        "distance" => "it is too high in some places and too low in others".to_owned(),
        name => format!("it is {way} in {name}"),
    }
}

fn moments(found: &Calibration) -> Check {
    let (name, p) = ("near the observation", found.moments_p_value);
    let Some(first) = found.moments.first() else {
        return Check::new(name, Outcome::NotChecked, "too few simulations are near it", ASK);
    };
    let tilt = first.tilt.abs();
    let outcome = match p {
        p if p < VERY_RARE && tilt > LARGE_TILT => Outcome::Bad,
        p if p < RARE && tilt > SMALL_TILT => Outcome::Doubtful,
        _ => Outcome::Good,
    };
    let (near, p_value) = (found.near, p_words(p));
    match outcome {
        Outcome::Good if p < RARE => {
            let words = format!("{}, by less than matters (p = {p_value})", told(first));
            Check::good(name, words)
        }
        Outcome::Good => Check::good(
            name,
            format!(
                "no shift, width or correlation stands out, over all and among the {near:.0} nearest to it (p = {p_value})"
            ),
        ),
        _ => {
            let words = format!("{} (p = {p_value})", told(first));
            Check::new(name, outcome, words, "simulate more")
        }
    }
}

/// A moment in words, with its size where that has a unit.
fn told(moment: &MomentCheck) -> String {
    match moment.shift {
        true => format!("{}, by {:.1} sd", moment.words, moment.tilt.abs()),
        false => moment.words.clone(),
    }
}

/// Mass of q where nothing was simulated.
fn outside(found: &Calibration) -> Option<Check> {
    let (name, share) = ("region", found.outside?);
    let outcome = match share {
        share if share > MOSTLY_OUTSIDE => Outcome::Bad,
        share if share > OUTSIDE => Outcome::Doubtful,
        _ => {
            let words = "the last round simulated everywhere that the posterior is";
            return Some(Check::good(name, words));
        }
    };
    let share = 100.0 * share;
    let words =
        format!("{share:.0} % of the posterior lies where the last round simulated nothing");
    Some(Check::new(name, outcome, words, "simulate another round"))
}

/// The classifier's view, where there is one. It has too few trials to be more than doubtful.
fn local(found: &Calibration) -> Option<Check> {
    let (name, map) = ("at the observation", found.local.as_ref()?);
    let (p, away) = (p_words(map.p_value), map.statistic.sqrt());
    if map.p_value >= RARE {
        return Some(Check::good(name, format!("a classifier finds no error there (p = {p})")));
    }
    let words =
        format!("a classifier tells it from the truth there (p = {p}, {away:.2} from a guess)");
    Some(match away > SMALL_GUESS {
        true => Check::new(name, Outcome::Doubtful, words, "simulate more"),
        false => Check::good(name, format!("{words}, by less than matters")),
    })
}

/// A p-value in words: small ones by their power of ten.
pub(crate) fn p_words(p: f64) -> String {
    match p {
        p if p < 0.001 => format!("{p:.0e}"),
        p if p < 0.01 => format!("{p:.4}"),
        p => format!("{p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Verdict, Word};
    use super::*;
    use crate::evaluation::calibration::Candidates;
    use crate::rng::{Purpose, Streams};
    use crate::rows::Rows;
    use rand::RngExt;

    /// Sets of uniform numbers, the first of them moved, whose first candidate has all of the weight or as much as the others.
    fn calibration(moved: f64, alone: bool) -> Calibration {
        let (streams, sets, each) = (Streams::new(3), 200, 21);
        let mut rng = streams.stream(Purpose::Synthetic, 0, 0);
        let mut theta: Vec<f64> = (0..sets * each).map(|_| rng.random()).collect();
        theta.iter_mut().step_by(each).for_each(|theta| *theta += moved);
        let weight = |i: usize| if alone && !i.is_multiple_of(each) { -800.0 } else { 0.0 };
        let log_weights: Vec<f64> = (0..sets * each).map(weight).collect();
        let rows = Rows::new("theta", &theta, 1).unwrap();
        let candidates = Candidates::new(each, &log_weights).0.with_parameters(rows).unwrap();
        let candidates = candidates.with(theta.clone()).with_distances(rows, &streams).unwrap();
        let x: Vec<f64> = (0..sets).map(|_| rng.random()).collect();
        let x = (Rows::new("x", &x, 1).unwrap(), &[0.5][..]);
        let (names, evidence) = (["a".to_owned()], Evidence::HeldOut(1, 1));
        Calibration::of_candidates(&candidates, &names, x, evidence, &streams, 1).unwrap()
    }

    #[test]
    fn a_calibration_that_can_see_nothing_is_not_trusted() {
        let word = |moved, alone| Verdict::of_calibration(&Ok(calibration(moved, alone))).word;
        assert_eq!(word(0.0, false), Word::Trust);
        assert_eq!(word(0.5, false), Word::DoNotTrust);
        // All weight lies on the first candidate, moved or not.
        for moved in [0.0, 0.5] {
            let blind = calibration(moved, true);
            assert!(blind.visible > BLIND, "{}", blind.visible);
            assert_eq!(checks(&Ok(blind))[0].outcome, Outcome::NotChecked);
            assert_eq!(word(moved, true), Word::Check);
        }
    }
}
