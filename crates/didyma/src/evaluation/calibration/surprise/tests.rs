//! Size and power of the test.

use super::*;
use crate::rng::{Purpose, Stream, Streams};
use rand::RngExt;
use rand_distr::{Cauchy, Distribution, StandardNormal};

type Law = fn(&mut Stream, usize) -> Vec<f64>;

fn normal(rng: &mut Stream) -> f64 {
    StandardNormal.sample(rng)
}

/// Neighbouring numbers with a correlation of 0.98.
fn walk(rng: &mut Stream, columns: usize) -> Vec<f64> {
    let mut v = normal(rng);
    let step = |_| {
        v = 0.98 * v + (1.0f64 - 0.98 * 0.98).sqrt() * normal(rng);
        v
    };
    (0..columns).map(step).collect()
}

/// Two modes; each number of another size.
fn modes(rng: &mut Stream, columns: usize) -> Vec<f64> {
    let mode = if rng.random::<bool>() { 4.0 } else { -4.0 };
    (0..columns).map(|i| 10f64.powi(i as i32 % 7) * (mode + normal(rng))).collect()
}

fn heavy(rng: &mut Stream, columns: usize) -> Vec<f64> {
    let cauchy = Cauchy::new(0.0, 1.0).unwrap();
    (0..columns).map(|_| cauchy.sample(rng)).collect()
}

fn independent(rng: &mut Stream, columns: usize) -> Vec<f64> {
    (0..columns).map(|_| normal(rng)).collect()
}

fn counts(rng: &mut Stream, columns: usize) -> Vec<f64> {
    (0..columns).map(|_| f64::from(rng.random_range(0..4u8))).collect()
}

/// An observation of a law, changed, among `n` rows of it.
fn surprise(law: Law, (n, columns): (usize, usize), seed: u64, change: fn(&mut [f64])) -> Surprise {
    let mut rng = Streams::new(seed).stream(Purpose::Synthetic, 0, 0);
    let rows: Vec<f64> = (0..n).flat_map(|_| law(&mut rng, columns)).collect();
    let mut x_o = law(&mut rng, columns);
    change(&mut x_o);
    Surprise::of(&x_o, Rows::new("x", &rows, columns).unwrap(), 1).unwrap()
}

/// Share of 100 seeds with a p-value of at most 5 %.
fn power(law: Law, shape: (usize, usize), change: fn(&mut [f64])) -> f64 {
    let found = (0..100).map(|seed| surprise(law, shape, seed, change));
    found.filter(|found| found.p_value <= 0.05).count() as f64 / 100.0
}

/// With 39 rows, p is one of 40 values with a fortieth each; of 400 seeds, the share below u has a standard error of at
/// most 0.025, and four of them are 0.1. Ties of counts make p larger, never smaller.
#[test]
fn p_values_are_uniform_whatever_the_law() {
    let laws: [(Law, usize); 6] =
        [(independent, 1), (independent, 60), (walk, 20), (modes, 3), (heavy, 5), (counts, 2)];
    for (which, (law, columns)) in laws.into_iter().enumerate() {
        let p: Vec<f64> =
            (0..400).map(|seed| surprise(law, (39, columns), seed, |_| {}).p_value).collect();
        for u in [0.05, 0.1, 0.25, 0.5, 0.75] {
            let share = p.iter().filter(|p| **p <= u).count() as f64 / 400.0;
            let error = 4.0 * (u * (1.0 - u) / 400.0).sqrt();
            assert!(share <= u + error, "law {which}: {share} of {u}");
            assert!(share >= u - error || which == 5, "law {which}: {share} of {u}");
        }
    }
}

/// One wrong summary of many; two right ones that do not belong together; a hole between modes; a point off the hull of
/// heavy tails.
#[test]
fn what_no_simulation_resembles_is_found() {
    for columns in [1, 10, 100] {
        let found = power(independent, (400, columns), |x| x[0] += 6.0);
        assert!(found > 0.9, "one of {columns}: {found}");
    }
    // Of a standard deviation each, where their difference has one of 0.2.
    let found = power(walk, (400, 20), |x| (x[10], x[11]) = (-0.7, 0.7));
    assert!(found > 0.9, "correlation: {found}");
    let found = power(modes, (400, 3), |x| x.fill(0.0));
    assert!(found > 0.9, "hole: {found}");
    let found = power(heavy, (400, 5), |x| x[2] = 1e5);
    assert!(found > 0.9, "tail: {found}");
    let found = power(independent, (400, 100), |x| x.iter_mut().for_each(|x| *x *= 1.4));
    assert!(found > 0.9, "all a little: {found}");
}

#[test]
fn the_summaries_that_are_wrong_are_named() {
    let one = surprise(independent, (300, 40), 2, |x| x[17] = 9.0);
    assert_eq!(one.foremost, [17]);
    let names: Vec<String> = (0..40).map(|i| format!("s{i}")).collect();
    assert_eq!(one.names(&names), ["s17"]);
    let mut pair = surprise(walk, (300, 20), 2, |x| x[5] = -x[5] + 2.0).foremost;
    pair.retain(|i| (4..=6).contains(i));
    assert!(pair.contains(&5), "{pair:?}");
}

#[test]
fn threads_and_units_do_not_matter_and_many_rows_are_thinned() {
    let mut rng = Streams::new(1).stream(Purpose::Synthetic, 0, 0);
    let rows: Vec<f64> = (0..3 * 2500).map(|_| normal(&mut rng)).collect();
    let of = |x: &[f64], x_o: &[f64], threads| {
        Surprise::of(x_o, Rows::new("x", x, 3).unwrap(), threads).unwrap()
    };
    let found = of(&rows, &[0.5, 2.5, -1.0], 1);
    assert_eq!((found.rows, &found), (1000, &of(&rows, &[0.5, 2.5, -1.0], 3)));
    // Units of powers of two change no digit.
    let other: Vec<f64> = rows.iter().map(|x| x * 1024.0).collect();
    assert_eq!(of(&other, &[512.0, 2560.0, -1024.0], 1), found);
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let rows = Rows::new("x", &[1.0, 2.0, 3.0, f64::NAN], 1).unwrap();
    let error = |x_o: &[f64], rows| Surprise::of(x_o, rows, 1).unwrap_err().to_string();
    assert!(error(&[1.0], rows).contains("NaN"));
    let rows = Rows::new("x", &[1.0, 2.0, 3.0, 4.0], 1).unwrap();
    assert!(error(&[f64::INFINITY], rows).contains("x_o"));
    assert!(error(&[1.0, 2.0], rows).contains("column"));
    assert!(error(&[1.0], Rows::new("x", &[1.0], 1).unwrap()).contains("rows"));
    // Nothing varies, and nothing is surprising.
    let same = Rows::new("x", &[5.0; 30], 1).unwrap();
    assert_eq!(Surprise::of(&[5.0], same, 1).unwrap().p_value, 1.0);
    let other = Surprise::of(&[6.0], same, 1).unwrap();
    assert_eq!((other.p_value, other.foremost), (1.0 / 31.0, vec![0]));
}

/// Power at 5 %, and seconds of the widest rows: the table of docs/trust.md.
#[test]
#[ignore = "prints the table of docs/trust.md"]
fn table() {
    type Change = fn(&mut [f64]);
    let cases: [(&str, Law, [usize; 3], Change); 6] = [
        ("right", independent, [1, 10, 100], |_| {}),
        ("one summary by 5 sd", independent, [1, 10, 100], |x| x[0] += 5.0),
        ("all by 1 sd", independent, [1, 10, 100], |x| x.iter_mut().for_each(|x| *x += 1.0)),
        ("neighbours of correlation 0.98, 1.4 sd apart", walk, [2, 10, 100], |x| {
            (x[0], x[1]) = (-0.7, 0.7);
        }),
        ("between two modes", modes, [1, 3, 10], |x| x.fill(0.0)),
        ("one of Cauchy's summaries at 1e4", heavy, [1, 5, 20], |x| x[0] = 1e4),
    ];
    for (name, law, widths, change) in cases {
        let found = [100, 1000].map(|n| widths.map(|columns| power(law, (n, columns), change)));
        println!("| {name} | {widths:?} | {:?} | {:?} |", found[0], found[1]);
    }
    for columns in [1, 10, 100, 1000] {
        let clock = std::time::Instant::now();
        let rows = surprise(walk, (1000, columns), 1, |_| {}).rows;
        println!("{columns} summaries, {rows} rows: {:.2} s", clock.elapsed().as_secs_f64());
    }
}
