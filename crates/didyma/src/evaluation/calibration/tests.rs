//! Size and power of every check on posteriors that are known exactly, and wrong in a known way.

use super::*;
use crate::error::Result;
use crate::math::Moments;
use crate::parallel;
use crate::rng::{Purpose, Stream, Streams};
use crate::rows::Rows;
use rand::RngExt;
use rand_distr::StandardNormal;

/// Pairs and draws of one repetition, and repetitions.
const ROWS: usize = 200;
const DRAWS: usize = 63;
const REPETITIONS: usize = 200;

/// θ ~ N(0, I) in two dimensions and x ~ N(θ, I): the posterior is N(x/2, I/2). These are away from it.
#[derive(Clone, Copy, Debug)]
struct Law {
    width: f64,
    shift: f64,
    correlation: f64,
}

const RIGHT: Law = Law { width: 1.0, shift: 0.0, correlation: 0.0 };

impl Law {
    /// θ − x/2 in units of the posterior's deviation, from normal numbers.
    fn place(self, [a, b]: [f64; 2]) -> [f64; 2] {
        let (c, s) = (self.correlation, (1.0 - self.correlation.powi(2)).sqrt());
        [self.shift + self.width * a, self.width * (c * a + s * b)]
    }

    /// log q but for its constant.
    fn log_density(self, [u, v]: [f64; 2]) -> f64 {
        let (a, b) = ((u - self.shift) / self.width, v / self.width);
        let c = self.correlation;
        -0.5 * (a * a - 2.0 * c * a * b + b * b) / (1.0 - c * c)
    }
}

/// A repetition: everything in units of the posterior's deviation from its centre is `u`.
struct Data {
    theta: Vec<f64>,
    x: Vec<f64>,
    draws: Vec<f64>,
    scores: Vec<f64>,
    draw_scores: Vec<f64>,
}

fn normals(rng: &mut Stream) -> [f64; 2] {
    [rng.sample(StandardNormal), rng.sample(StandardNormal)]
}

fn data(law: Law, rows: usize, draws: usize, repetition: usize) -> Data {
    let mut rng = Streams::new(8).stream(Purpose::Synthetic, 1, repetition as u64);
    let mut data =
        Data { theta: vec![], x: vec![], draws: vec![], scores: vec![], draw_scores: vec![] };
    let deviation = 0.5f64.sqrt();
    for _ in 0..rows {
        let (theta, noise) = (normals(&mut rng), normals(&mut rng));
        let x = [theta[0] + noise[0], theta[1] + noise[1]];
        let unit = |c: usize, value: f64| (value - x[c] / 2.0) / deviation;
        data.scores.push(law.log_density([unit(0, theta[0]), unit(1, theta[1])]));
        for _ in 0..draws {
            let u = law.place(normals(&mut rng));
            data.draw_scores.push(law.log_density(u));
            data.draws.extend([0, 1].map(|c| x[c] / 2.0 + deviation * u[c]));
        }
        data.theta.extend(theta);
        data.x.extend(x);
    }
    data
}

/// P-values of one repetition: of the ranks of both parameters, of coverage and of TARP.
fn p_values(law: Law, repetition: usize) -> Result<[f64; 4]> {
    let data = data(law, ROWS, DRAWS, repetition);
    let (theta, draws) = (Rows::new("theta", &data.theta, 2)?, Rows::new("draws", &data.draws, 2)?);
    let streams = Streams::new(repetition as u64);
    let ranks = Ranks::of(theta, draws, &streams)?;
    let draw_scores = Rows::new("scores of draws", &data.draw_scores, DRAWS)?;
    let density = Ranks::of_scores(&data.scores, draw_scores, &streams)?;
    let coverage = Coverage::of(&region_levels(&density), &[0.5])?;
    let tarp = Tarp::of(theta, draws, None, None, 1, &streams)?;
    let of = |column| Ok::<_, crate::Error>(Uniformity::of(&ranks.values(column))?.p_value);
    Ok([of(0)?, of(1)?, coverage.uniformity.p_value, tarp.uniformity.p_value])
}

/// Share of the repetitions in which each check rejects at 5 %.
fn power(law: Law) -> Result<[f64; 4]> {
    let all = parallel::map(REPETITIONS, parallel::cores(), |i| p_values(law, i));
    let mut rejected = [0.0; 4];
    for p_values in all {
        let counts = rejected.iter_mut().zip(p_values?);
        counts.for_each(|(n, p)| *n += f64::from(u8::from(p <= 0.05)) / REPETITIONS as f64);
    }
    println!(
        "{law:?}: marginal ranks {:.3} {:.3}, coverage {:.3}, TARP {:.3}",
        rejected[0], rejected[1], rejected[2], rejected[3]
    );
    Ok(rejected)
}

#[test]
fn right_posteriors_are_rejected_no_more_often_than_stated() -> Result<()> {
    // 200 repetitions at 5 %: four standard errors are 4 √(.05 · .95 / 200) = .062.
    let size = power(RIGHT)?;
    assert!(size.iter().all(|share| *share < 0.112), "{size:?}");
    Ok(())
}

#[test]
fn wrong_posteriors_are_found_by_the_checks_that_see_them() -> Result<()> {
    let law = |width, shift, correlation| power(Law { width, shift, correlation });
    // Ranks of 200 rows have a spread with an error of about 1/√(2 · 200) · .9 = .045, and a mean with one of .02. Half
    // and double width change the spread by .4 and .35, a shift of .5 the mean by .13: beyond six errors.
    for found in [law(0.5, 0.0, 0.0)?, law(2.0, 0.0, 0.0)?] {
        assert!(found[..3].iter().all(|share| *share > 0.95), "{found:?}");
    }
    let narrow = law(0.8, 0.0, 0.0)?;
    assert!(narrow[2] > 0.7 && narrow[2] > narrow[0], "regions see both dimensions: {narrow:?}");
    assert!(law(1.3, 0.0, 0.0)?[2] > 0.7);
    let shifted = law(1.0, 0.5, 0.0)?;
    assert!(shifted[0] > 0.95, "{shifted:?}");
    // A parameter without fault, and the four standard errors of its size.
    assert!(shifted[1] < 0.112, "{shifted:?}");
    let rotated = law(1.0, 0.0, 0.8)?;
    assert!(rotated[..2].iter().all(|share| *share < 0.112), "marginals are right: {rotated:?}");
    assert!(rotated[2] > 0.95, "regions are not: {rotated:?}");
    Ok(())
}

#[test]
fn curves_lie_on_the_side_of_the_fault() -> Result<()> {
    let coverage = |width| -> Result<Coverage> {
        let data = data(Law { width, ..RIGHT }, 400, DRAWS, 0);
        let draw_scores = Rows::new("scores of draws", &data.draw_scores, DRAWS)?;
        let ranks = Ranks::of_scores(&data.scores, draw_scores, &Streams::new(1))?;
        Coverage::of(&region_levels(&ranks), &usual_levels())
    };
    let (narrow, wide, right) = (coverage(0.5)?, coverage(2.0)?, coverage(1.0)?);
    assert_eq!(narrow.size(), RegionSize::TooNarrow);
    assert_eq!(wide.size(), RegionSize::TooWide);
    assert_eq!(right.size(), RegionSize::Unremarkable);
    // A region of level c of q is the disc of radius² −2 w² ln(1 − c), with 1 − (1 − c)^(w²) of the posterior inside:
    // the area is ½ − 1/(w² + 1), its error that of a mean of 400 numbers of deviation .29, and of 63 draws: four of .015.
    for (found, width) in [(&narrow, 0.5), (&wide, 2.0), (&right, 1.0)] {
        let expected = 0.5 - 1.0 / (width * width + 1.0);
        assert!((found.signed_area - expected).abs() < 0.06, "{width}: {}", found.signed_area);
    }
    assert!(narrow.covered[9] < narrow.bands.low[9] && wide.covered[9] > wide.bands.high[9]);
    assert!(narrow.covered[9] < narrow.pointwise[9].0 && wide.covered[9] > wide.pointwise[9].1);
    Ok(())
}

#[test]
fn ties_do_not_look_like_a_fault() -> Result<()> {
    // Counts: Poisson-like whole numbers below 4, of which most draws equal the truth.
    let mut rng = Streams::new(3).stream(Purpose::Synthetic, 2, 0);
    let mut count = || f64::from(rng.random_range(0..4u8));
    let theta: Vec<f64> = (0..1000).map(|_| count()).collect();
    let draws: Vec<f64> = (0..9000).map(|_| count()).collect();
    let (theta, draws) = (Rows::new("theta", &theta, 1)?, Rows::new("draws", &draws, 1)?);
    let ranks = Ranks::of(theta, draws, &Streams::new(1))?;
    let found = Uniformity::of(&ranks.values(0))?;
    assert!(found.p_value > 0.05 && ranks.ks_p_values()[0] < 1e-10, "{found:?}");
    let accuracy = data_averaged(theta, draws, 2, &Streams::new(1))?[0];
    // 2,000 rows, held out once each: four errors of √(.25 / 2000) are .045.
    assert!((accuracy - 0.5).abs() < 0.045, "{accuracy}");
    Ok(())
}

#[test]
fn shapes_that_do_not_fit_are_refused() -> Result<()> {
    let (theta, streams) = (vec![0.0; 40], Streams::new(1));
    let theta = Rows::new("theta", &theta, 2)?;
    let message = |draws: &[f64], columns: usize| -> Result<String> {
        let draws = Rows::new("draws", draws, columns)?;
        Ok(Ranks::of(theta, draws, &streams).err().map_or(String::new(), |e| e.to_string()))
    };
    assert!(message(&[0.0; 60], 3)?.contains("draws has 3 columns, but 2 are needed"));
    assert!(message(&[0.0; 42], 2)?.contains("draws has 21 rows, but 20 are needed"));
    assert!(message(&[f64::NAN; 40], 2)?.contains("draws holds NaN"));
    let few = Rows::new("theta", &[0.0; 4], 2)?;
    assert!(Tarp::of(few, few, None, None, 1, &streams).is_err());
    let scores = [f64::NEG_INFINITY; 20];
    assert!(Ranks::of_scores(&scores, Rows::new("draws", &scores, 1)?, &streams).is_ok());
    assert!(Ranks::of_scores(&[f64::NAN; 20], Rows::new("draws", &scores, 1)?, &streams).is_err());
    Ok(())
}

/// Local tests at x_o = (0.5, −0.5): p-values, and probabilities with their evaluation rows.
fn local(law: Law, base: bool, repetition: usize, trials: usize) -> Result<LocalFinding> {
    const PAIRS: usize = 500;
    let (data, streams) = (data(law, PAIRS, 1, repetition), Streams::new(repetition as u64));
    let (x, theta) = (Rows::new("x", &data.x, 2)?, Rows::new("theta", &data.theta, 2)?);
    let settings = LocalSettings { trials, ..LocalSettings::default() };
    let mut rng = streams.stream(Purpose::Synthetic, 3, 0);
    let draws: Vec<[f64; 2]> = (0..300).map(|_| normals(&mut rng)).collect();
    let x_o = [0.5, -0.5];
    if base {
        let unit = |row: usize, c: usize| {
            let u = (theta.row(row)[c] - x.row(row)[c] / 2.0) / 0.5f64.sqrt();
            (u - if c == 0 { law.shift } else { 0.0 }) / law.width
        };
        let z: Vec<f64> = (0..PAIRS).flat_map(|row| [unit(row, 0), unit(row, 1)]).collect();
        let test = LocalTest::of_base(Rows::new("z", &z, 2)?, x, settings, 2, &streams)?;
        return test.at(&x_o, Rows::new("z", draws.as_flattened(), 2)?);
    }
    let of_q = |z: &[f64; 2]| {
        let u = law.place(*z);
        [0.25 + u[0] * 0.5f64.sqrt(), -0.25 + u[1] * 0.5f64.sqrt()]
    };
    let evaluation: Vec<f64> = draws.iter().flat_map(of_q).collect();
    let drawn = Rows::new("draws", &data.draws, 2)?;
    let test = LocalTest::of_pairs(theta, x, drawn, settings, 2, &streams)?;
    test.at(&x_o, Rows::new("evaluation", &evaluation, 2)?)
}

#[test]
fn local_tests_keep_their_size() -> Result<()> {
    for base in [false, true] {
        let found: Result<Vec<f64>> =
            (0..20).map(|i| Ok(local(RIGHT, base, i, 9)?.p_value)).collect();
        let rejected = found?.iter().filter(|p| **p <= 0.1 + 1e-9).count();
        println!("local test, base {base}: {rejected} of 20 at 10 %");
        // Bin(20, 0.1) is 7 or more with probability .0024.
        assert!(rejected < 7, "{rejected}");
    }
    Ok(())
}

#[test]
fn local_tests_find_faults_and_where_they_are() -> Result<()> {
    for (width, shift, correlation) in [(0.5, 0.0, 0.0), (2.0, 0.0, 0.0), (1.0, 1.0, 0.0)] {
        for base in [false, true] {
            let found = local(Law { width, shift, correlation }, base, 1, 19)?;
            let mean = found.null.iter().sum::<f64>() / 19.0;
            println!(
                "width {width} shift {shift} base {base}: p {} T {:.4}, null {mean:.4}",
                found.p_value, found.statistic
            );
            assert_eq!(found.p_value, 0.05);
        }
    }
    let rotated = local(Law { correlation: 0.9, ..RIGHT }, false, 1, 19)?;
    assert_eq!(rotated.p_value, 0.05);
    // A posterior half as wide is too high in its middle (½ of the odds is 1/4 there) and too low outside.
    let narrow = local(Law { width: 0.5, ..RIGHT }, true, 1, 1)?;
    let mut rng = Streams::new(1).stream(Purpose::Synthetic, 3, 0);
    let (mut inner, mut outer) = (Moments::default(), Moments::default());
    for d in &narrow.probabilities {
        let [a, b] = normals(&mut rng);
        if a * a + b * b < 0.5 {
            inner.add(*d)
        } else if a * a + b * b > 4.0 {
            outer.add(*d)
        }
    }
    assert!(inner.mean() < 0.4 && outer.mean() > 0.5, "{} {}", inner.mean(), outer.mean());
    Ok(())
}

#[test]
fn threads_change_nothing() -> Result<()> {
    let data = data(RIGHT, 60, 9, 0);
    let (theta, x) = (Rows::new("theta", &data.theta, 2)?, Rows::new("x", &data.x, 2)?);
    let draws = Rows::new("draws", &data.draws, 2)?;
    let streams = Streams::new(5);
    let tarp = |threads| Tarp::of(theta, draws, None, None, threads, &streams);
    assert_eq!(tarp(1)?, tarp(3)?);
    let first: Vec<f64> = draws.iter().step_by(9).flatten().copied().collect();
    let settings = LocalSettings { folds: 2, ensemble: 2, trials: 2 };
    let local = |threads| {
        let first = Rows::new("draws", &first, 2)?;
        LocalTest::of_pairs(theta, x, first, settings, threads, &streams)?.at(x.row(0), draws)
    };
    assert_eq!(local(1)?, local(4)?);
    Ok(())
}
