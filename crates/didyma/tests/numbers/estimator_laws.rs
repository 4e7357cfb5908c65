//! What holds exactly for every estimator: invariants of the reductions, laws that sum to 1, and sums
//! over levels that telescope, by enumeration of every draw from a small pool.

#![allow(clippy::unwrap_used)]

use didyma::estimator::alpha::{Model, advise, best_tails, variance_cost};
use didyma::estimator::{
    Alpha, Bank, Blocks, Coupling, Difference, Draws, Estimator, Group, LevelLaw, Levels, Method,
    Plan, Pool, Replacement, Settings, Source, Stock, Tails, Target, reduce,
};
use didyma::rng::{Purpose, Stream, Streams};
use proptest::prelude::*;
use rand::RngExt;

const STREAMS: Streams = Streams::new(5);

fn value(plan: &Plan, u: &[f64]) -> (f64, Vec<f64>) {
    let mut d = vec![0.0; u.len()];
    let loss = reduce(plan, &plan.groups()[0], u[0], &mut u.to_vec(), &mut d);
    (loss, d)
}

fn difference(len: usize, shared: bool, difference: Difference) -> Plan {
    let mut plan = Plan::default();
    let group = plan.group(0, 0..(len + usize::from(shared)) as u32);
    let group = if shared { group.share_first() } else { group };
    match difference {
        Difference::Antithetic => group.antithetic_difference(1.0),
        Difference::Naive => group.naive_difference(1.0),
    };
    plan
}

/// An even number of log g, up to ±700.
fn log_g() -> impl Strategy<Value = Vec<f64>> {
    let scale = prop_oneof![Just(1.0), Just(30.0), Just(700.0)];
    (1usize..40, scale).prop_flat_map(|(half, scale)| {
        prop::collection::vec((-1.0..1.0f64).prop_map(move |u| scale * u), 2 * half)
    })
}

proptest! {
    #[test]
    fn differences_ignore_constants_and_their_weights_sum_to_zero(u in log_g(), c in -900.0..900.0) {
        let shared = [&[0.3], &u[..]].concat();
        for (plan, u) in [
            (difference(u.len(), false, Difference::Antithetic), &u),
            (difference(u.len(), false, Difference::Naive), &u),
            (difference(u.len(), true, Difference::Antithetic), &shared),
            (difference(u.len(), true, Difference::Naive), &shared),
        ] {
            let (delta, d) = value(&plan, u);
            prop_assert!(d.iter().sum::<f64>().abs() < 1e-14 * u.len() as f64);
            let moved: Vec<f64> = u.iter().map(|u| u + c).collect();
            // Rounding of u + c: ε · 1600 = 4e-13.
            prop_assert!((value(&plan, &moved).0 - delta).abs() < 1e-12);
        }
    }

    #[test]
    fn an_antithetic_difference_is_never_negative(u in log_g()) {
        let (delta, _) = value(&difference(u.len(), false, Difference::Antithetic), &u);
        // Rounding of three log-mean-exps of size 700.
        prop_assert!(delta > -1e-12, "{delta}");
    }

    #[test]
    fn the_order_within_a_half_does_not_matter(u in log_g(), swap in any::<prop::sample::Index>()) {
        let half = u.len() / 2;
        let plan = difference(u.len(), false, Difference::Antithetic);
        let (i, mut moved) = (swap.index(half), u.clone());
        moved.swap(0, i);
        moved.swap(half, half + i);
        let ((before, d_before), (after, mut d_after)) = (value(&plan, &u), value(&plan, &moved));
        d_after.swap(0, i);
        d_after.swap(half, half + i);
        prop_assert!((before - after).abs() < 1e-12);
        prop_assert!(d_before.iter().zip(&d_after).all(|(a, b)| (a - b).abs() < 1e-14));
    }

    #[test]
    fn masses_sum_to_one_and_levels_follow_them(
        alpha in 0.1..4.0f64, kappa in 0.01..20.0f64, base in 0u32..4, more in 0u32..6, u in 0.0..1.0f64,
    ) {
        let top = base + more;
        let tails: Vec<f64> = (0..more).map(|i| 0.9 / f64::from(i + 1)).collect();
        for law in [
            LevelLaw::point(base),
            LevelLaw::truncated(alpha, base, top),
            LevelLaw::geometric(alpha, base).capped(top),
            LevelLaw::scaled(kappa, alpha, base).capped(top),
            LevelLaw::free(base, &tails).unwrap(),
        ] {
            let top = law.top().unwrap();
            let total: f64 = (0..=top).map(|level| law.mass(level)).sum();
            prop_assert!((total - 1.0).abs() < 1e-14);
            prop_assert!(law.mass(top + 1) == 0.0 && (0..=top).all(|level| law.mass(level) >= 0.0));
            let level = law.level(u);
            prop_assert!(u < law.tail(level) && u >= law.tail(level + 1));
            // E 2^L from the masses is that from the tails.
            let block: f64 = (0..=top).map(|l| law.mass(l) * f64::from(l).exp2()).sum();
            prop_assert!((block / law.mean_block() - 1.0).abs() < 1e-13);
            let steps: f64 = (0..=top).map(|l| law.mass(l) * f64::from(l)).sum();
            prop_assert!((steps - f64::from(law.base()) - law.steps()).abs() < 1e-12);
        }
        for law in [LevelLaw::geometric(alpha, base), LevelLaw::scaled(kappa, alpha, base)] {
            let total: f64 = (0..4000).map(|level| law.mass(level)).sum();
            prop_assert!((total - 1.0).abs() < 1e-12);
            let finite = law.corrections().is_finite();
            prop_assert_eq!(finite, alpha > 1.0);
            if alpha > 1.2 {
                // The rest beyond level 400 is below 2^(−80).
                let sum: f64 = (base + 1..400).map(|l| law.tail(l) * f64::from(l).exp2()).sum();
                prop_assert!((sum / law.corrections() - 1.0).abs() < 1e-12);
            }
        }
    }
}

/// log g of the outer sample and of a pool from which every block is enumerated.
const OUTER: f64 = 0.4;
const POOL: [f64; 6] = [1.3, -2.0, 0.2, 0.9, -0.7, 2.4];

/// Hands out rows 1, 2, … in order: placeholders for the draws that are enumerated.
struct InOrder(u32);

impl Source for InOrder {
    fn largest_block(&self) -> usize {
        usize::MAX
    }
    fn draw(&mut self, _: u32, count: usize, _: &mut Stream, draws: &mut Draws) {
        (0..count).for_each(|_| {
            self.0 += 1;
            draws.push(self.0);
        });
    }
}

/// Mean of a group's loss over all ways of filling its inner atoms from the pool.
fn group_mean(plan: &Plan, group: &Group, replacement: Replacement) -> f64 {
    let atoms = plan.atoms(group);
    let inner: Vec<usize> = (0..atoms.len()).filter(|&i| atoms[i] != 0).collect();
    let (mut sum, mut count) = (0.0, 0.0);
    let mut u = vec![OUTER; atoms.len()];
    let mut chosen = Vec::new();
    fill(&inner, replacement, &mut chosen, &mut |chosen| {
        inner.iter().zip(chosen).for_each(|(&i, &row)| u[i] = POOL[row]);
        sum += reduce(plan, group, OUTER, &mut u.clone(), &mut vec![0.0; atoms.len()]);
        count += 1.0;
    });
    sum / count
}

fn fill(
    places: &[usize],
    replacement: Replacement,
    chosen: &mut Vec<usize>,
    each: &mut impl FnMut(&[usize]),
) {
    if chosen.len() == places.len() {
        return each(chosen);
    }
    for row in 0..POOL.len() {
        if replacement == Replacement::With || !chosen.contains(&row) {
            chosen.push(row);
            fill(places, replacement, chosen, each);
            chosen.pop();
        }
    }
}

/// The exact mean of an estimator over levels and draws.
fn exact_mean(settings: &Settings, replacement: Replacement) -> f64 {
    let mut estimator = Estimator::new(settings.clone()).unwrap();
    let law = estimator.law().clone();
    let levels = law.base()..=law.top().unwrap();
    levels
        .map(|level| {
            // The first stream whose level is this one; a law of one level draws none.
            let stream = |i: u64| STREAMS.stream(Purpose::Plan, 0, i);
            let drawn = |i: &u64| law.level(stream(*i).random()) == level;
            let mut rng = stream((0..100_000).find(drawn).unwrap());
            let mut plan = Plan::default();
            estimator.plan(&[0], &mut InOrder(0), &mut rng, &mut plan).unwrap();
            let mean = |group: &Group| group_mean(&plan, group, replacement);
            law.mass(level) * plan.groups().iter().map(mean).sum::<f64>()
        })
        .sum()
}

/// The mean of the loss with `copies` of the outer sample among `size` atoms, plus `extra` copies on
/// top of them, by enumeration.
fn nested_mean(size: u32, copies: u32, extra: u32, replacement: Replacement) -> f64 {
    let mut plan = Plan::default();
    let atoms = (0..copies + extra).map(|_| 0).chain(1..=size - copies);
    plan.group(0, atoms).log_mean_exp(1.0);
    group_mean(&plan, &plan.groups()[0], replacement) - OUTER
}

/// Every method, coupling, difference and block: the mean is exactly that of its target.
#[test]
fn levels_telescope() {
    let mut cases = 0;
    for method in [Method::Ru, Method::Tru, Method::Rr, Method::Grr, Method::Tgrr] {
        for coupling in [Coupling::Excluded, Coupling::Inclusive] {
            for difference in [Difference::Antithetic, Difference::Naive] {
                for blocks in [Blocks::Fresh, Blocks::Reused] {
                    for tails in
                        [Tails::Paper, Tails::Scaled { kappa: 0.7 }, Tails::Free(vec![0.4, 0.1])]
                    {
                        for replacement in [Replacement::Without, Replacement::With] {
                            let base = u32::from(matches!(method, Method::Grr | Method::Tgrr));
                            let top = Some(2);
                            let tails = match tails {
                                Tails::Free(_) if base == 1 => Tails::Free(vec![0.3]),
                                ref other => other.clone(),
                            };
                            let settings = Settings {
                                m0: 1,
                                base,
                                top,
                                coupling,
                                difference,
                                blocks,
                                tails,
                                ..Settings::paper(method)
                            };
                            let extra = u32::from(coupling == Coupling::Inclusive);
                            let target = Estimator::new(settings.clone()).unwrap().target();
                            let expected = [Target::Nested(4), Target::Atomic(5)][extra as usize];
                            assert_eq!(target, expected);
                            let found = exact_mean(&settings, replacement);
                            let expected = nested_mean(4, 0, extra, replacement);
                            assert!(
                                (found - expected).abs() < 1e-12,
                                "{settings:?} {replacement:?}: {found} instead of {expected}"
                            );
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(cases, 5 * 2 * 2 * 2 * 3 * 2);
}

/// Moments that follow the model's line have the model's variance × cost, and the best tails of the moments are the best.
#[test]
fn measured_moments_and_the_model_agree() {
    for method in [Method::Tgrr, Method::Tru] {
        let model = Model { rate: 1.7, base_variance: 3.0 };
        let levels: Vec<(f64, f64)> =
            [2, 3, 4].map(|l| ((-1.7 * f64::from(l)).exp2(), f64::from(l).exp2())).to_vec();
        let tails = best_tails(method, (3.0, 2.0), &levels);
        let found = variance_cost(method, (3.0, 2.0), &levels, &tails);
        let expected = model.variance_times_cost(method, &LevelLaw::free(1, &tails).unwrap());
        assert!((found / expected - 1.0).abs() < 1e-12, "{method:?}: {found} {expected}");
        for i in 0..tails.len() {
            for factor in [0.9, 1.1] {
                let mut other = tails.clone();
                other[i] *= factor;
                assert!(variance_cost(method, (3.0, 2.0), &levels, &other) > found, "{method:?}");
            }
        }
    }
}

/// Over all orders of a row's weighted samples, levels telescope to the nested loss of all of them with their weights: a
/// bank chooses its blocks without replacement.
#[test]
fn levels_of_a_bank_telescope() {
    const WEIGHTS: [f64; 4] = [0.5, -1.5, 0.1, -0.3];
    let stock = Stock::new(&[0], vec![1, 2, 3, 4], WEIGHTS.map(|w| w as f32).to_vec(), vec![0.25]);
    let u = [OUTER, POOL[0], POOL[1], POOL[2], POOL[3]];
    for coupling in [Coupling::Excluded, Coupling::Inclusive] {
        let (tails, paper) = (Tails::Free(vec![0.6, 0.4]), Settings::paper(Method::Tgrr));
        let settings = Settings { m0: 1, base: 0, top: Some(2), coupling, tails, ..paper };
        let mut estimator = Estimator::new(settings).unwrap();
        let mut bank = Bank::new(stock.clone().into());
        let (mut plan, mut sum, plans) = (Plan::default(), 0.0, 300_000);
        let mut square = 0.0;
        for i in 0..plans {
            let mut rng = STREAMS.stream(Purpose::Plan, 3, i);
            estimator.plan(&[0], &mut bank, &mut rng, &mut plan).unwrap();
            let loss: f64 = plan
                .groups()
                .iter()
                .map(|group| {
                    let log_g: Vec<f64> =
                        plan.atoms(group).iter().map(|&atom| u[atom as usize]).collect();
                    reduce(&plan, group, log_g[0], &mut log_g.clone(), &mut vec![0.0; log_g.len()])
                })
                .sum();
            sum += loss;
            square += loss * loss;
        }
        let shared = (coupling == Coupling::Inclusive).then_some(OUTER + 0.25);
        let weighted = (0..4).map(|i| POOL[i] + f64::from(WEIGHTS[i] as f32));
        let terms: Vec<f64> = weighted.chain(shared).map(f64::exp).collect();
        let expected = (terms.iter().sum::<f64>() / terms.len() as f64).ln() - OUTER;
        let (mean, n) = (sum / plans as f64, plans as f64);
        // 4.5 standard errors.
        let error = 4.5 * ((square / n - mean * mean) / n).sqrt();
        assert!(error < 0.02 && (mean - expected).abs() < error, "{mean}, {expected} ± {error}");
    }
}

/// A plan that is normalised has the value −u₀ + LME(u) − LME(u + ratio), level by level, and weights that sum to −1.
#[test]
fn a_normaliser_takes_its_own_mean_away() {
    let ratios = [0.0, 0.3, -0.8, 1.1, 0.2];
    let u = [OUTER, POOL[0], POOL[1], POOL[2], POOL[3]];
    let mut plan = Plan::default();
    plan.push_own(0, 1.0);
    plan.group(0, [1, 2, 3, 4]).log_mean_exp(1.0);
    plan.group(0, [4, 2]).antithetic_difference(2.5);
    plan.self_normalise(&ratios);
    assert_eq!((plan.groups().len(), plan.pairs()), (5, 13));
    let (mut loss, mut weights) = (0.0, 0.0);
    for group in plan.groups() {
        let log_g: Vec<f64> = plan.atoms(group).iter().map(|&atom| u[atom as usize]).collect();
        let mut d = vec![0.0; log_g.len()];
        loss += reduce(&plan, group, log_g[0], &mut log_g.clone(), &mut d);
        weights += d.iter().sum::<f64>();
    }
    let mean = |atoms: &[usize], ratio: f64| {
        let terms = atoms.iter().map(|&i| (u[i] + ratio * ratios[i]).exp());
        (terms.sum::<f64>() / atoms.len() as f64).ln()
    };
    let difference = |ratio| mean(&[4, 2], ratio) - 0.5 * (mean(&[4], ratio) + mean(&[2], ratio));
    let all = [1, 2, 3, 4];
    let expected =
        -OUTER + mean(&all, 0.0) - mean(&all, 1.0) + 2.5 * (difference(0.0) - difference(1.0));
    assert!((loss - expected).abs() < 1e-12, "{loss} instead of {expected}");
    assert!((weights + 1.0).abs() < 1e-12);
}

/// The authors' coupling misses its target by the sum that section 4.4 of the derivation gives: from
/// the base m to the top J it is ψ² at J plus Σ (ψ² − ψ¹) over the levels between, where ψ^k has k
/// copies of the outer sample among M.
#[test]
fn planted_coupling_does_not_telescope() {
    for method in [Method::Ru, Method::Tru, Method::Rr] {
        let (m0, top, coupling) = (2, Some(2), Coupling::Planted);
        let settings = Settings { m0, top, coupling, ..Settings::paper(method) };
        assert_eq!(Estimator::new(settings.clone()).unwrap().target(), Target::Planted);
        let psi = |size, copies| nested_mean(size, copies, 0, Replacement::Without);
        let expected = psi(8, 2) + psi(4, 2) - psi(4, 1);
        let found = exact_mean(&settings, Replacement::Without);
        assert!((found - expected).abs() < 1e-12, "{method:?}: {found} instead of {expected}");
        assert!((found - psi(8, 2)).abs() > 0.1, "it would telescope");
    }
    // Without corrections: two copies, in nested and atomic alike.
    for method in [Method::Nested, Method::Atomic] {
        let (atoms, coupling) = (6, Coupling::Planted);
        let settings = Settings { atoms, coupling, ..Settings::paper(method) };
        let expected = nested_mean(6, 2, 0, Replacement::Without);
        assert!((exact_mean(&settings, Replacement::Without) - expected).abs() < 1e-12);
    }
}

/// Systematic levels: each query has its law, and every batch has the expected numbers.
#[test]
fn systematic_levels_keep_the_law_of_each_query() {
    let settings = Settings {
        levels: Levels::Systematic,
        alpha: Alpha::Value(1.0),
        ..Settings::paper(Method::Tru)
    };
    let mut estimator = Estimator::new(settings).unwrap();
    let law = estimator.law().clone();
    let (batch, batches) = ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 20_000);
    let mut plan = Plan::default();
    let mut counts = [[0u32; 5]; 10];
    for i in 0..batches {
        let mut rng = STREAMS.stream(Purpose::Plan, 1, i);
        estimator.plan(&batch, &mut InOrder(100), &mut rng, &mut plan).unwrap();
        let mut of_level = [0.0; 5];
        for group in plan.groups().iter().filter(|group| !plan.terms(group).is_empty()) {
            let level = (group.pairs() / 8).ilog2() as usize;
            counts[group.context as usize][level] += 1;
            of_level[level] += 1.0;
        }
        for (level, count) in (0..).zip(of_level) {
            // Points at distance 1/10 fall into an interval of length p within one of 10 p times.
            assert!((count - 10.0 * law.mass(level)).abs() < 1.0 + 1e-9);
        }
    }
    for query in counts {
        for (level, count) in (0..).zip(query) {
            let (n, p) = (batches as f64, law.mass(level));
            // Binomial; 4.5 standard deviations for 50 counts.
            assert!((f64::from(count) - n * p).abs() < 4.5 * (n * p * (1.0 - p)).sqrt());
        }
    }
}

#[test]
fn atoms_come_from_the_pool_and_never_from_the_outer_row() {
    let training: Vec<u32> = (0..400).filter(|row| row % 5 != 0).collect();
    let mut pool = Pool::new(training.iter().copied(), Replacement::Without).unwrap();
    let batch: Vec<u32> = training[..50].to_vec();
    for (method, coupling) in [
        (Method::Nested, Coupling::Excluded),
        (Method::Atomic, Coupling::Inclusive),
        (Method::Tgrr, Coupling::Excluded),
        (Method::Tgrr, Coupling::Inclusive),
    ] {
        let settings = Settings { coupling, alpha: Alpha::Value(0.2), ..Settings::paper(method) };
        let mut plan = Plan::default();
        let mut rng = STREAMS.stream(Purpose::Plan, 2, 0);
        Estimator::new(settings).unwrap().plan(&batch, &mut pool, &mut rng, &mut plan).unwrap();
        for group in plan.groups() {
            let atoms = plan.atoms(group);
            let inner = if group.shared || group.own > 0.0 { &atoms[1..] } else { atoms };
            assert!(inner.iter().all(|row| row % 5 != 0 && *row != group.context));
            let mut sorted = inner.to_vec();
            sorted.sort();
            sorted.dedup();
            assert_eq!(sorted.len(), inner.len(), "a row twice in one block");
            let has_outer = group.shared || group.own > 0.0;
            assert!(!has_outer || atoms[0] == group.context);
        }
    }
}

#[test]
fn bad_settings_name_themselves_and_the_remedy() {
    let paper = Settings::paper;
    for (settings, parts) in [
        (Settings { m0: 0, ..paper(Method::Tgrr) }, &["m0 is 0", "between 1"][..]),
        (Settings { atoms: 1, ..paper(Method::Atomic) }, &["atoms is 1", "between 2"]),
        (Settings { atoms: 0, ..paper(Method::Nested) }, &["atoms is 0", "between 1"]),
        (Settings { top: Some(1), ..paper(Method::Tgrr) }, &["top is 1", "base (2)"]),
        (Settings { top: Some(60), ..paper(Method::Tgrr) }, &["top is 60", "21"]),
        (Settings { top: None, ..paper(Method::Tru) }, &["top is missing", "tru"]),
        (Settings { base: 40, ..paper(Method::Grr) }, &["base is 40", "at most 21"]),
        (
            Settings { alpha: Alpha::Value(1.0), ..paper(Method::Ru) },
            &["alpha is 1", "between 1 and 2", "cost is infinite", "variance", "set top"],
        ),
        (
            Settings { alpha: Alpha::Value(2.0), ..paper(Method::Grr) },
            &["alpha is 2", "between 1 and 2"],
        ),
        (
            Settings { alpha: Alpha::Value(0.0), ..paper(Method::Tgrr) },
            &["alpha is 0", "between 0.01 and 8"],
        ),
        (
            Settings { alpha: Alpha::Value(f64::NAN), ..paper(Method::Tgrr) },
            &["alpha is NaN", "between 0.01"],
        ),
        (
            Settings { tails: Tails::Free(vec![0.2, 0.3]), ..paper(Method::Tgrr) },
            &["tails is [0.2, 0.3]", "none of them larger"],
        ),
        (
            Settings { tails: Tails::Free(vec![0.2]), ..paper(Method::Tgrr) },
            &["tails is 1 numbers", "each level"],
        ),
        (
            Settings { tails: Tails::Scaled { kappa: -1.0 }, ..paper(Method::Tgrr) },
            &["kappa is -1", "above 0"],
        ),
        (
            Settings { tails: Tails::Scaled { kappa: 4.0 }, ..paper(Method::Tru) },
            &["tails is such that level 0 is never drawn", "tru"],
        ),
        (
            Settings { tails: Tails::Free(vec![0.4, 0.4, 0.1, 0.05]), ..paper(Method::Tru) },
            &["tails is such that level 1 is never drawn"],
        ),
        (
            Settings { difference: Difference::Naive, ..paper(Method::Ru) },
            &["difference is naive", "set top"],
        ),
        (
            Settings { coupling: Coupling::Excluded, ..paper(Method::Atomic) },
            &["coupling is excluded", "nested"],
        ),
        (
            Settings { coupling: Coupling::Planted, blocks: Blocks::Reused, ..paper(Method::Tgrr) },
            &["blocks is reused", "fresh"],
        ),
    ] {
        let text = Estimator::new(settings.clone()).unwrap_err().to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{settings:?}: {text}");
    }
}

#[test]
fn a_pool_that_is_too_small_is_refused() {
    let mut rng = STREAMS.stream(Purpose::Plan, 3, 0);
    let mut pool = Pool::new(0..100, Replacement::Without).unwrap();
    let mut plan = Plan::default();
    let mut run = |settings: Settings, pool: &mut Pool| {
        let mut estimator = Estimator::new(settings).unwrap();
        estimator.plan(&[1, 2], pool, &mut rng, &mut plan).map_err(|error| error.to_string())
    };
    let text = run(Settings::paper(Method::Tgrr), &mut pool).unwrap_err();
    assert!(text.contains("level 4") && text.contains("needs 128"), "{text}");
    assert!(text.contains("can give 99"), "{text}");
    let text = run(Settings::paper(Method::Grr), &mut pool).unwrap_err();
    assert!(text.contains("grr has no top level") && text.contains("at most 3"), "{text}");
    let capped = Settings { top: Some(3), ..Settings::paper(Method::Grr) };
    run(capped, &mut pool).unwrap();
    // 99 others are enough for 100 atoms, the true one among them.
    run(Settings::paper(Method::Atomic), &mut pool).unwrap();
    assert!(run(Settings::paper(Method::Nested), &mut pool).is_err());
    pool.refill(0..101).unwrap();
    run(Settings::paper(Method::Nested), &mut pool).unwrap();
    assert!(Pool::new([], Replacement::Without).is_err());
    assert!(Pool::new([3, 5, 3], Replacement::Without).is_err());
}

/// Log-weights travel with their atoms: those of the outer sample where the coupling has it among them, and none to
/// unweighted groups before and after.
#[test]
fn log_weights_reach_the_plan_and_the_loss() {
    struct Weighted;
    impl Source for Weighted {
        fn largest_block(&self) -> usize {
            usize::MAX
        }
        fn draw(&mut self, _: u32, count: usize, _: &mut Stream, draws: &mut Draws) {
            (0..count as u32).for_each(|i| draws.push_weighted(i + 1, f64::from(i) / 8.0));
        }
        fn outer_log_weight(&self, own: u32) -> f64 {
            -1.0 - f64::from(own)
        }
    }
    let mut rng = STREAMS.stream(Purpose::Plan, 4, 0);
    for (coupling, first, last) in [
        (Coupling::Excluded, 0.0, 7.0 / 8.0),
        (Coupling::Inclusive, -1.0, 7.0 / 8.0),
        (Coupling::Planted, -1.0, -1.0),
    ] {
        let settings = Settings { atoms: 8, coupling, ..Settings::paper(Method::Nested) };
        let mut plan = Plan::default();
        Estimator::new(settings).unwrap().plan(&[0], &mut Weighted, &mut rng, &mut plan).unwrap();
        let weights = plan.log_weights(&plan.groups()[0]);
        assert_eq!((weights[0], weights[weights.len() - 1]), (first, last), "{coupling:?}");
    }
    let mut draws = Draws::default();
    draws.push(3);
    draws.push_weighted(4, 0.5);
    draws.push(5);
    assert_eq!((draws.rows(), draws.log_weights()), (&[3, 4, 5][..], &[0.0, 0.5, 0.0][..]));
    let mut plan = Plan::default();
    plan.group(0, [1]).log_mean_exp(1.0);
    plan.group(0, [2, 3]).log_weights(&[0.3, -0.2]).log_mean_exp(1.0);
    plan.group(0, [4]).log_mean_exp(1.0);
    let loss = |i: usize, u: &[f64]| {
        let group = &plan.groups()[i];
        reduce(&plan, group, 0.0, &mut u.to_vec(), &mut vec![0.0; u.len()])
    };
    assert_eq!((loss(0, &[0.7]), loss(2, &[0.9])), (0.7, 0.9));
    let expected = (0.5 * (1.3f64.exp() + 1.8f64.exp())).ln();
    assert!((loss(1, &[1.0, 2.0]) - expected).abs() < 1e-15);
}

/// One reused block with naive differences compares its first sub-blocks only.
#[test]
fn reused_blocks_have_the_terms_of_their_difference() {
    for (difference, counts) in
        [(Difference::Antithetic, [4, 2, 1]), (Difference::Naive, [1, 1, 1])]
    {
        let (m0, top, blocks) = (2, Some(2), Blocks::Reused);
        let tails = Tails::Free(vec![0.5, 0.25]);
        let settings =
            Settings { m0, top, blocks, difference, tails, ..Settings::paper(Method::Rr) };
        let mut estimator = Estimator::new(settings).unwrap();
        let plan = (0..200).find_map(|i| {
            let mut plan = Plan::default();
            let mut rng = STREAMS.stream(Purpose::Plan, 5, i);
            estimator.plan(&[0], &mut InOrder(0), &mut rng, &mut plan).unwrap();
            (plan.groups()[0].pairs() == 8).then_some(plan)
        });
        let plan = plan.unwrap();
        let terms = plan.terms(&plan.groups()[0]);
        // 1 − 1/p₁, 1/p₁ − 1/p₂, 1/p₂.
        let expected = [(-1.0, 2, counts[0]), (-2.0, 4, counts[1]), (4.0, 8, counts[2])];
        let found: Vec<_> = terms.iter().map(|t| (t.weight, t.size, t.blocks)).collect();
        assert_eq!(found, expected);
    }
}

/// Atoms of atomic APT from the batch alone: the other rows of it, each at most once.
#[test]
fn atoms_can_come_from_the_batch() {
    let batch = [3, 14, 15, 92, 65];
    let mut pool = Pool::new(0..100, Replacement::Without).unwrap();
    pool.refill(batch).unwrap();
    let settings = Settings { atoms: 4, ..Settings::paper(Method::Atomic) };
    let mut plan = Plan::default();
    let mut rng = STREAMS.stream(Purpose::Plan, 6, 0);
    Estimator::new(settings).unwrap().plan(&batch, &mut pool, &mut rng, &mut plan).unwrap();
    for (group, row) in plan.groups().iter().zip(batch) {
        let atoms = plan.atoms(group);
        assert_eq!((group.context, atoms[0], atoms.len()), (row, row, 4));
        assert!(atoms[1..].iter().all(|atom| batch.contains(atom) && *atom != row));
    }
}

/// The recipe's law is the best of its family: no other κ or α has a smaller variance × cost, as added up term by
/// term.
#[test]
fn the_recipe_cannot_be_improved() {
    let product = |model: &Model, method: Method, law: &LevelLaw| {
        let last = law.top().unwrap_or(300);
        let v = |l: u32| match l == law.base() {
            true => model.base_variance,
            false => (-model.rate * f64::from(l)).exp2(),
        };
        let (mut variance, mut cost) = (0.0, 0.0);
        for l in law.base()..=last {
            let p = match method {
                Method::Ru | Method::Tru => law.mass(l),
                _ => law.tail(l),
            };
            variance += v(l) / p;
            cost += p * f64::from(l).exp2();
        }
        variance * cost
    };
    for (method, base, top) in [
        (Method::Ru, 0, None),
        (Method::Tru, 0, Some(4)),
        (Method::Rr, 0, None),
        (Method::Grr, 2, None),
        (Method::Tgrr, 2, Some(5)),
    ] {
        for base_variance in [0.6, 1.0, 7.0] {
            let model = Model { rate: 1.7, base_variance };
            let settings = Settings { base, top, ..Settings::paper(method) };
            let advice = advise(&settings, model).unwrap();
            let law = advice.recipe.law();
            let best = product(&model, method, law);
            let found = model.variance_times_cost(method, law);
            assert!((found / best - 1.0).abs() < 1e-9, "{method:?}: {found} {best}");
            let mut others = Vec::new();
            for factor in [0.9, 1.1] {
                if let Tails::Scaled { kappa } = advice.recipe.settings().tails {
                    others.push(LevelLaw::scaled(kappa * factor, model.alpha(), base));
                    others.push(LevelLaw::scaled(
                        kappa,
                        model.alpha() * (0.9 + factor / 10.0),
                        base,
                    ));
                }
                if let Tails::Free(tails) = &advice.recipe.settings().tails {
                    for i in 0..tails.len() {
                        let mut other = tails.clone();
                        other[i] *= 0.98 + 0.02 * factor;
                        others.extend(LevelLaw::free(base, &other));
                    }
                }
            }
            assert!(!others.is_empty());
            for other in others {
                let other = top.map_or(other.clone(), |top| other.capped(top));
                // A tail that is cut at 1 leaves its neighbours best as they are.
                assert!(
                    product(&model, method, &other) >= best * (1.0 - 1e-12),
                    "{method:?} {other:?}"
                );
            }
            // The best α with the paper's tails is better than its neighbours, too.
            let at = |alpha| {
                let settings = Settings { alpha: Alpha::Value(alpha), ..settings.clone() };
                product(&model, method, Estimator::new(settings).unwrap().law())
            };
            let one = advice.one_parameter;
            assert!(at(one) <= at(one * 1.01) && at(one) <= at(one * 0.99), "{method:?} {one}");
        }
    }
}

#[test]
fn alpha_is_a_number_or_the_papers() {
    assert_eq!("paper".parse(), Ok(Alpha::Paper));
    assert_eq!("1.25".parse(), Ok(Alpha::Value(1.25)));
    assert!("best".parse::<Alpha>().is_err());
    let alpha = |method| Settings::paper(method).alpha();
    assert_eq!((alpha(Method::Ru), alpha(Method::Grr), alpha(Method::Tgrr)), (1.4, 1.209, 1.673));
}
