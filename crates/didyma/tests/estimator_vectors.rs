//! Estimators, level laws and α against numbers of 50-digit arithmetic (`data/estimator_vectors.json`).

#![allow(clippy::unwrap_used)]

use didyma::estimator::alpha::{GrrObjective, Model, grr_alpha};
use didyma::estimator::{
    Alpha, Blocks, Coupling, Draws, Estimator, LevelLaw, Method, Plan, Settings, Source, reduce,
};
use didyma::rng::{Purpose, Stream, Streams};
use serde_json::Value;

/// Relative, down to a thousandth: smaller derivatives are differences of numbers near 1.
const TOLERANCE: f64 = 1e-12;

fn data() -> Value {
    serde_json::from_str(include_str!("data/estimator_vectors.json")).unwrap()
}

fn vector(name: &str) -> Value {
    let all = data()["vectors"].as_array().unwrap().clone();
    all.into_iter().find(|v| v["name"] == name).unwrap_or_else(|| panic!("no vector {name}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn close(what: &str, found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(error <= TOLERANCE * expected.abs().max(1e-3), "{what}: {found} instead of {expected}");
}

fn all_close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    found.iter().zip(expected).for_each(|(&f, &e)| close(what, f, e));
}

/// Loss and derivatives of a plan whose row 0 is the outer sample and rows 1, 2, … the inner ones.
fn evaluate(plan: &Plan, outer: f64, inner: &[f64]) -> (f64, f64, Vec<f64>) {
    let log_g = |row: u32| if row == 0 { outer } else { inner[row as usize - 1] };
    let (mut loss, mut d_outer, mut d_inner) = (0.0, 0.0, vec![0.0; inner.len()]);
    for group in plan.groups() {
        let mut u: Vec<f64> = plan.atoms(group).iter().map(|&row| log_g(row)).collect();
        let mut d = vec![0.0; u.len()];
        loss += reduce(plan, group, log_g(plan.atoms(group)[0]), &mut u, &mut d);
        for (&row, d) in plan.atoms(group).iter().zip(d) {
            match row {
                0 => d_outer += d,
                row => d_inner[row as usize - 1] += d,
            }
        }
    }
    (loss, d_outer, d_inner)
}

fn plan(make: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = Plan::default();
    make(&mut plan);
    plan
}

/// Hands out rows 1, 2, … in order.
struct InOrder(u32);

impl Source for InOrder {
    fn largest_block(&self) -> usize {
        usize::MAX
    }
    fn draw(&mut self, _: u32, count: usize, _: &mut Stream, draws: &mut Draws) {
        for _ in 0..count {
            self.0 += 1;
            draws.push(self.0);
        }
    }
}

/// The plan that an estimator makes for one query whose level comes out as `level`. It is the first of
/// the streams whose draw gives that level; blocks are filled from the highest level down.
fn plan_at(estimator: &mut Estimator, level: u32) -> Plan {
    use rand::RngExt;
    let at = |i: &u64| Streams::new(1).stream(Purpose::Plan, 0, *i);
    let drawn = |i: &u64| estimator.law().level(at(i).random()) == level;
    let mut rng = at(&(0..100_000).find(drawn).unwrap());
    plan(|plan| estimator.plan(&[0], &mut InOrder(0), &mut rng, plan).unwrap())
}

#[test]
fn nested_and_atomic() {
    let v = vector("nested_M8");
    let inner = numbers(&v["inner"]);
    let settings = Settings { atoms: 8, ..Settings::paper(Method::Nested) };
    let plan = plan_at(&mut Estimator::new(settings).unwrap(), 0);
    let (psi, d_outer, d_inner) = evaluate(&plan, number(&v["l0"]), &inner);
    close("psi", psi, number(&v["psi"]));
    close("d_l0", d_outer, number(&v["d_l0"]));
    all_close("d_inner", &d_inner, &numbers(&v["d_inner"]));

    let v = vector("atomic_8atoms");
    let settings = Settings { atoms: 8, ..Settings::paper(Method::Atomic) };
    let plan = plan_at(&mut Estimator::new(settings).unwrap(), 0);
    let (psi, d_outer, d_inner) = evaluate(&plan, number(&v["l0"]), &numbers(&v["contrast"]));
    close("psi_atomic", psi, number(&v["psi_atomic"]));
    close("loss_sbi", psi + 8f64.ln(), number(&v["loss_sbi"]));
    close("d_l0", d_outer, number(&v["d_l0"]));
    all_close("d_contrast", &d_inner, &numbers(&v["d_contrast"]));
}

#[test]
fn differences() {
    for name in ["delta_block4", "delta_block8", "delta_block16"] {
        let v = vector(name);
        let (outer, inner) = (number(&v["l0"]), numbers(&v["inner"]));
        let rows = 1..=inner.len() as u32;
        let anti = plan(|p| {
            p.group(0, rows.clone()).antithetic_difference(1.0);
        });
        let naive = plan(|p| {
            p.group(0, rows.clone()).naive_difference(1.0);
        });
        let shared = std::iter::once(0).chain(rows);
        let inclusive = plan(|p| {
            p.group(0, shared).share_first().antithetic_difference(1.0);
        });
        for (kind, plan) in [("anti", anti), ("naive", naive), ("inclusive", inclusive)] {
            let (delta, d_outer, d_inner) = evaluate(&plan, outer, &inner);
            close(name, delta, number(&v[format!("delta_{kind}")]));
            all_close(name, &d_inner, &numbers(&v[format!("d_inner_{kind}")]));
            let expected = if kind == "inclusive" { number(&v["d_l0_inclusive"]) } else { 0.0 };
            close(name, d_outer, expected);
        }
    }
}

#[test]
fn ru() {
    for level in 0..3 {
        let v = vector(&format!("RU_l{level}"));
        let (outer, inner) = (number(&v["l0"]), numbers(&v["inner"]));
        let settings = Settings {
            m0: 2,
            alpha: Alpha::Value(number(&v["alpha"])),
            top: Some(12),
            ..Settings::paper(Method::Ru)
        };
        let mut ru = Estimator::new(settings.clone()).unwrap();
        close("w_l", ru.law().mass(level), number(&v["w_l"]));
        let (u, d_outer, d_inner) = evaluate(&plan_at(&mut ru, level), outer, &inner);
        close("U", u, number(&v["U"]));
        close("d_l0", d_outer, number(&v["d_l0"]));
        all_close("d_inner", &d_inner, &numbers(&v["d_inner"]));

        let settings = Settings { method: Method::Tru, top: Some(4), ..settings };
        let mut tru = Estimator::new(settings).unwrap();
        close("w_l truncated", tru.law().mass(level), number(&v["trunc_mbar4_w_l"]));
        let (u, ..) = evaluate(&plan_at(&mut tru, level), outer, &inner);
        close("U truncated", u, number(&v["U_trunc_mbar4"]));
    }
}

#[test]
fn roulettes() {
    let cases = [
        ("RR_L2", Method::Rr),
        ("GRR_m1_L3", Method::Grr),
        ("GRR_m1_L1", Method::Grr),
        ("TGRR_m1_mbar3_L3", Method::Tgrr),
        ("TGRR_paper_M0_8_m2_mbar4_L4", Method::Tgrr),
        ("TGRR_paper_L2", Method::Tgrr),
    ];
    for (name, method) in cases {
        let v = vector(name);
        let level = v["L"].as_u64().unwrap() as u32;
        let settings = Settings {
            m0: v["M0"].as_u64().unwrap() as usize,
            alpha: Alpha::Value(number(&v["alpha"])),
            base: v["m"].as_u64().unwrap() as u32,
            top: Some(v["mbar"].as_u64().unwrap_or(12) as u32),
            ..Settings::paper(method)
        };
        let mut estimator = Estimator::new(settings).unwrap();
        // The plan takes its blocks from the highest level down.
        let blocks: Vec<&Value> = v["blocks"].as_array().unwrap().iter().rev().collect();
        let inner: Vec<f64> = blocks.iter().flat_map(|b| numbers(&b["inner"])).collect();
        let d_expected: Vec<f64> = blocks.iter().flat_map(|b| numbers(&b["d_inner"])).collect();
        for block in &blocks {
            if let Some(p) = block["p_j"].as_f64() {
                close("p_j", estimator.law().tail(block["level"].as_u64().unwrap() as u32), p);
            }
        }
        let (u, d_outer, d_inner) =
            evaluate(&plan_at(&mut estimator, level), number(&v["l0"]), &inner);
        close(name, u, number(&v["U"]));
        close(name, d_outer, number(&v["d_l0"]));
        all_close(name, &d_inner, &d_expected);
    }
}

#[test]
fn one_reused_block() {
    let v = vector("GRR_reuse_m1_L3");
    let (base, top, blocks) = (1, Some(12), Blocks::Reused);
    let settings =
        Settings { m0: 2, alpha: Alpha::Paper, base, top, blocks, ..Settings::paper(Method::Grr) };
    let mut estimator = Estimator::new(settings).unwrap();
    for (level, p) in numbers(&v["p"]).into_iter().enumerate() {
        close("p", estimator.law().tail(level as u32), p);
    }
    let plan = plan_at(&mut estimator, 3);
    let (u, d_outer, d_inner) = evaluate(&plan, number(&v["l0"]), &numbers(&v["inner"]));
    close("U", u, number(&v["U"]));
    close("d_l0", d_outer, number(&v["d_l0"]));
    all_close("d_inner", &d_inner, &numbers(&v["d_inner"]));
}

/// A planted difference of M₀ = 4 at level 1: the outer sample first and last of eight.
#[test]
fn the_authors_two_copies() {
    let v = vector("authors_delta_block8_two_copies");
    let block = numbers(&v["block"]);
    let (m0, top, coupling) = (4, Some(4), Coupling::Planted);
    let settings = Settings { m0, top, coupling, ..Settings::paper(Method::Ru) };
    let mut estimator = Estimator::new(settings).unwrap();
    let mut rng = Streams::new(1).stream(Purpose::Plan, 0, 0);
    let plan = plan(|plan| estimator.plan_level(0, 1, &mut InOrder(0), &mut rng, plan).unwrap());
    assert_eq!(plan.atoms(&plan.groups()[0]), [0, 1, 2, 3, 4, 5, 6, 0]);
    let (delta, d_outer, d_inner) = evaluate(&plan, number(&v["l0"]), &block[1..7]);
    close("delta", delta, number(&v["delta"]));
    close("d_l0", d_outer, number(&v["d_l0"]));
    all_close("d_block", &d_inner, &numbers(&v["d_block"])[1..7]);
}

#[test]
fn log_g_may_span_any_range() {
    let v = vector("stability_large");
    let (outer, inner) = (number(&v["l0"]), numbers(&v["inner"]));
    let nested = plan(|p| {
        p.group(0, 1..=8).log_mean_exp(1.0);
        p.push_own(0, 1.0);
    });
    let (psi, _, d) = evaluate(&nested, outer, &inner);
    close("psi", psi, number(&v["psi"]));
    all_close("d", &d, &numbers(&v["d_inner"]));
    let difference = plan(|p| {
        p.group(0, 1..=8).antithetic_difference(1.0);
    });
    let (delta, _, d) = evaluate(&difference, outer, &inner);
    close("delta", delta, number(&v["delta_anti"]));
    all_close("d", &d, &numbers(&v["d_inner_delta"]));
    // Weights of 1e-22 and 1e-44 are right in all their digits, too.
    for (&found, expected) in d.iter().zip(numbers(&v["d_inner_delta"])) {
        assert!((found - expected).abs() <= TOLERANCE * expected.abs(), "{found} {expected}");
    }
}

#[test]
fn level_laws_and_costs() {
    let levels = data()["levels"].as_array().unwrap().clone();
    assert_eq!(levels.len(), 9);
    for row in levels {
        let value = number(&row["alpha"]);
        let alpha = Alpha::Value(value);
        let base = row["m"].as_u64().unwrap() as u32;
        let top = row["mbar"].as_u64().map(|top| top as u32);
        let method = if top.is_some() { Method::Tgrr } else { Method::Grr };
        let settings = Settings { alpha, base, top, ..Settings::paper(method) };
        let expected_inner = |method, blocks| {
            Estimator::new(Settings { method, blocks, ..settings.clone() })
                .unwrap()
                .expected_inner()
        };
        let law = match top {
            Some(top) => LevelLaw::truncated(value, base, top),
            None => LevelLaw::geometric(value, base),
        };
        for (level, p) in (0..).zip(numbers(&row["tail_p"])) {
            close("tail", law.tail(level), p);
        }
        for (level, p) in (0..).zip(numbers(&row["pmf"])) {
            close("mass", law.mass(level), p);
        }
        let fresh = number(&row["E_inner_evals_roulette_fresh"]);
        close("fresh", expected_inner(method, Blocks::Fresh), fresh);
        let reused = number(&row["E_inner_evals_roulette_reuse"]);
        close("reused", expected_inner(method, Blocks::Reused), reused);
        if let Some(ru) = row["E_inner_evals_RU"].as_f64() {
            let method = if top.is_some() { Method::Tru } else { Method::Ru };
            close("ru", expected_inner(method, Blocks::Fresh), ru);
            for (level, p) in (0..).zip(numbers(&row["RU_pmf"])) {
                close("ru mass", law.mass(level), p);
            }
        }
    }
}

#[test]
fn optimal_alpha() {
    let rows = data()["alpha"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let rate = number(&row["r"]);
        let model = Model { rate, base_variance: 1.0 };
        close("RU", model.alpha(), number(&row["RU"]));
        let scaled = number(&row["RR_sharp_or_kappa_geometric"]);
        close("RR and GRR", model.alpha(), scaled);
        for (objective, key) in [
            (GrrObjective::Sharp, "GRR_m2_sharp_geometric"),
            (GrrObjective::PrintedBound, "GRR_m2_printed_bound"),
            (GrrObjective::WithoutSubtraction, "GRR_m2_sharp_cost_without_subtraction"),
        ] {
            close(key, grr_alpha(objective, rate, 2), number(&row[key]));
        }
    }
}

/// Every vector of the file is used by a test above.
#[test]
fn no_vector_is_left_out() {
    let source = include_str!("estimator_vectors.rs");
    let all = data()["vectors"].as_array().unwrap().clone();
    assert_eq!(all.len(), 17);
    for name in all.iter().map(|v| v["name"].as_str().unwrap()) {
        assert!(source.contains(name) || name.starts_with("RU_l"), "{name}");
    }
}
