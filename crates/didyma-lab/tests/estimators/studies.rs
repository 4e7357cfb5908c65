//! What the studies of cost and of convergence find on the exact toys, at their quick sizes.
//!
//! Seeds are fixed. Numbers are compared within Z of their own standard errors: with some 30 comparisons and
//! errors from 40 replicates or more, |z| > 4 would occur by chance once in hundreds of seeds.

#![allow(clippy::unwrap_used)]

use didyma::estimator::{Method, Settings};
use didyma::levels::Estimate;
use didyma::rng::Streams;
use didyma_lab::{
    ComplexityReport, ComplexityStudy, ConvergenceStudy, Descent, MethodConvergence, Scheme, Sizes,
    Toy, Verdict,
};
use std::sync::LazyLock;

const Z: f64 = 4.0;
const STREAMS: Streams = Streams::new(3);

static COST: LazyLock<ComplexityReport> =
    LazyLock::new(|| ComplexityStudy::quick(toy("benign")).run(STREAMS, 2).unwrap());

fn toy(name: &str) -> Toy {
    Toy::named(name).unwrap()
}

/// Slopes are those of the pilot's moments on the same ladder, which for nested sampling is some 0.15 above −3: the
/// outer pair, N (M + 1) with M from 8 on, and Var ψ_M = v₀ + v₁/M. All others are −2; nested sampling is told
/// apart from them.
#[test]
fn costs_grow_with_the_exponents_of_theory() {
    for found in &COST.schemes {
        let Estimate { mean, error } = found.exponent;
        let scheme = found.scheme;
        assert!(error < 0.25, "{scheme:?}: an error of {error} says nothing");
        assert!((mean - found.predicted).abs() < Z * error, "{scheme:?}: {mean} ± {error}");
        assert!((found.predicted - scheme.exponent()).abs() < 0.2, "{scheme:?}");
        match scheme {
            Scheme::Nested => assert!(mean + 2.5 * error < -2.0, "nested: {mean} ± {error}"),
            _ => assert!((mean + 2.0).abs() < Z * error, "{scheme:?}: {mean} ± {error}"),
        }
    }
}

/// The error asked for is the one realised. The pilot's variances are good to a few per cent: 500,000 pairs are
/// 62,500 queries of level 0 and 7,800 of ψ_64 and the random levels, whose variance has a relative error of
/// √((kurtosis − 1)/n), 4 % for a kurtosis of 12: 2 % in the root, three times that is allowed.
#[test]
fn errors_are_those_asked_for() {
    for found in &COST.schemes {
        for point in &found.points {
            let Estimate { mean, error } = point.rmse;
            let allowed = Z * error + 0.06 * point.epsilon;
            assert!((mean - point.epsilon).abs() < allowed, "{:?} {point:?}", found.scheme);
            let cost = point.cost.mean / point.predicted_cost - 1.0;
            let allowed = Z * point.cost.error / point.cost.mean + 1e-9;
            assert!(cost.abs() < allowed, "{:?} {point:?}", found.scheme);
        }
    }
}

/// Random levels have no bias, and nested sampling one near ε/√3. It is not that exactly: the outer pair and v₁/M make a
/// larger M cheaper, so that at M = 8 it may be 0.45 ε (b = 0.064, M = 8 or 9 at ε = 0.016); 0.13 ε is allowed for it.
#[test]
fn bias_is_where_theory_puts_it() {
    for found in &COST.schemes {
        for point in &found.points {
            let Estimate { mean, error } = point.bias;
            match &point.sizes {
                Sizes::Queries(_) => assert!(mean.abs() < Z * error, "{point:?}"),
                Sizes::Nested { .. } => {
                    let expected = -point.epsilon / 3f64.sqrt();
                    let allowed = Z * error + 0.13 * point.epsilon;
                    assert!((mean - expected).abs() < allowed, "{point:?}");
                }
                Sizes::Levels(queries) => assert!(queries.windows(2).all(|n| n[0] > n[1])),
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let study = ComplexityStudy {
        epsilons: vec![0.04, 0.03, 0.02],
        pairs: 100_000,
        pilot: 100_000,
        ..ComplexityStudy::quick(toy("benign"))
    };
    assert_eq!(study.run(STREAMS, 1).unwrap(), study.run(STREAMS, 3).unwrap());
    let methods = vec![Descent::exact(), Descent::with("ru", Settings::paper(Method::Ru))];
    let (gammas, pairs) = (vec![0.02], 10_000);
    let study =
        ConvergenceStudy { methods, gammas, pairs, ..ConvergenceStudy::quick(toy("sharp")) };
    assert_eq!(study.run(STREAMS, 1).unwrap(), study.run(STREAMS, 3).unwrap());
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let quick = ComplexityStudy::quick(toy("sharp"));
    let run = |study: ComplexityStudy| study.run(STREAMS, 2).unwrap_err().to_string();
    assert!(run(ComplexityStudy { epsilons: vec![0.1, 0.05], ..quick.clone() }).contains("three"));
    assert!(run(ComplexityStudy { least: 3, ..quick.clone() }).contains("at least 8"));
    // On the sharp toy b is some 2.2, and the bias of 4,096 inner samples 5e-4.
    let small = ComplexityStudy { epsilons: vec![4e-4; 3], pairs: 1, pilot: 100_000, ..quick };
    let sizes = small.run(Streams::new(1), 2);
    assert!(sizes.is_err_and(|error| error.to_string().contains("epsilon")));
    let quick = ConvergenceStudy::quick(toy("sharp"));
    let run = |study: ConvergenceStudy| study.run(STREAMS, 2).is_err();
    assert!(run(ConvergenceStudy { gammas: vec![-0.1], ..quick.clone() }));
    assert!(run(ConvergenceStudy { replicates: 1, ..quick }));
}

fn descents(methods: Vec<Descent>) -> Vec<MethodConvergence> {
    let study =
        ConvergenceStudy { methods, replicates: 8, ..ConvergenceStudy::quick(toy("sharp")) };
    study.run(STREAMS, 2).unwrap().methods
}

/// A quarter of the step leaves a quarter of the gap. The ratio is a little larger, by (2 − γ'λ)/(2 − γλ), at most
/// 1.17 for γλ up to 0.02 · 15.9. Plateaus are means of 8 descents.
#[test]
fn unbiased_plateaus_fall_in_proportion_to_the_step() {
    let paper = Settings::paper(Method::Ru);
    for found in descents(vec![Descent::exact(), Descent::with("ru", paper)]) {
        let [large, small] = [0, 1].map(|i| found.curves[i].plateau.unwrap());
        let error = (large.error / large.mean).hypot(small.error / small.mean);
        assert!(error < 0.3, "{}: an error of {error} says nothing", found.name);
        let excess = (large.mean / small.mean / 4.0).ln();
        let largest = 1.17f64.ln() + Z * error;
        assert!((-Z * error..largest).contains(&excess), "{}: {excess} ± {error}", found.name);
        assert_eq!(found.verdict, Verdict::FallsWithStep, "{}", found.name);
        assert_eq!(found.floor.unwrap().mean, 0.0);
        // The exact gradient has moments of all orders, so that theory's noise is known well.
        if found.name == "exact" {
            for curve in &found.curves {
                let (plateau, noise) = (curve.plateau.unwrap(), curve.noise.unwrap());
                let allowed = Z * plateau.error.hypot(noise.error);
                assert!((plateau.mean - noise.mean).abs() < allowed, "{curve:?}");
                assert!(plateau.mean < curve.noise_bound);
            }
        }
    }
}

/// Nested 32 levels off above the exact gradient, at the gap of its own minimiser and below the theorem's bound; nested 8
/// has no minimiser, and says so.
#[test]
fn biased_methods_level_off_where_theory_puts_them() {
    let nested = |atoms| {
        Descent::with(
            format!("nested {atoms}"),
            Settings { atoms, ..Settings::paper(Method::Nested) },
        )
    };
    let found = descents(vec![Descent::exact(), nested(32), nested(8)]);
    let [exact, biased] = [0, 1].map(|i| found[i].extrapolated.unwrap());
    assert!(biased.mean - exact.mean > Z * biased.error.hypot(exact.error), "{biased:?}");
    let floor = found[1].floor.unwrap();
    assert!((biased.mean - floor.mean).abs() < Z * biased.error.hypot(floor.error), "{floor:?}");
    assert!(biased.mean < found[1].floor_bound + Z * biased.error);
    assert_eq!(found[1].verdict, Verdict::LevelsOff);
    let lost = &found[2];
    assert_eq!((lost.verdict, lost.floor, lost.extrapolated), (Verdict::Diverges, None, None));
    assert!(lost.curves.iter().all(|curve| curve.diverged > 0));
}
