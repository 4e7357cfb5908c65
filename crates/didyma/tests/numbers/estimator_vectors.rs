//! Estimators, level laws and α against numbers of 50-digit arithmetic (`data/estimator_vectors.json`).

#![allow(clippy::unwrap_used)]

use crate::laws::vectors::estimator::{
    Case, ROULETTES, TOLERANCE, cases, data, number, numbers, reused_settings, roulette_settings,
    ru_settings, stability, tru_settings, vector,
};
use didyma::estimator::alpha::{GrrObjective, Model, grr_alpha};
use didyma::estimator::{Alpha, Blocks, Estimator, LevelLaw, Method, Settings, reduce};

fn close(what: &str, found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(error <= TOLERANCE * expected.abs().max(1e-3), "{what}: {found} instead of {expected}");
}

fn all_close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    found.iter().zip(expected).for_each(|(&f, &e)| close(what, f, e));
}

/// Loss and derivatives of a plan.
fn evaluate(case: &Case) -> (f64, f64, Vec<f64>) {
    let (plan, mut d_inner) = (&case.plan, vec![0.0; case.inner.len()]);
    let (mut loss, mut d_outer) = (0.0, 0.0);
    for group in plan.groups() {
        let mut u: Vec<f64> = plan.atoms(group).iter().map(|&row| case.log_g(row)).collect();
        let mut d = vec![0.0; u.len()];
        loss += reduce(plan, group, case.log_g(plan.atoms(group)[0]), &mut u, &mut d);
        for (&row, d) in plan.atoms(group).iter().zip(d) {
            match row {
                0 => d_outer += d,
                row => d_inner[row as usize - 1] += d,
            }
        }
    }
    (loss, d_outer, d_inner)
}

/// Nested, atomic, differences, roulettes, reused and planted blocks, and log g over any range.
#[test]
fn losses_and_derivatives() {
    for case in cases() {
        let (loss, d_outer, d_inner) = evaluate(&case);
        close(&case.name, loss, case.loss);
        if let Some((outer, inner)) = &case.derivatives {
            close(&case.name, d_outer, *outer);
            all_close(&case.name, &d_inner, inner);
        }
    }
}

#[test]
fn the_atomic_loss_is_that_of_sbi_but_for_a_constant() {
    let v = vector("atomic_8atoms");
    let case = cases().into_iter().find(|case| case.name == "atomic_8atoms").unwrap();
    close("loss_sbi", evaluate(&case).0 + 8f64.ln(), number(&v["loss_sbi"]));
}

/// Derivatives of 1e-22 and 1e-44 are right in all their digits, too.
#[test]
fn tiny_derivatives_keep_their_digits() {
    let [_, difference] = stability();
    let expected = difference.derivatives.as_ref().unwrap().1.clone();
    for (found, expected) in evaluate(&difference).2.into_iter().zip(expected) {
        assert!((found - expected).abs() <= TOLERANCE * expected.abs(), "{found} {expected}");
    }
}

#[test]
fn laws_of_the_vectors_levels() {
    let law = |settings: Settings| Estimator::new(settings).unwrap().law().clone();
    for level in 0..3 {
        let v = vector(&format!("RU_l{level}"));
        close("w_l", law(ru_settings(&v)).mass(level), number(&v["w_l"]));
        let truncated = law(tru_settings(&v)).mass(level);
        close("w_l truncated", truncated, number(&v["trunc_mbar4_w_l"]));
    }
    for (name, method) in ROULETTES {
        let v = vector(name);
        let law = law(roulette_settings(&v, method));
        for block in v["blocks"].as_array().unwrap() {
            if let Some(p) = block["p_j"].as_f64() {
                close("p_j", law.tail(block["level"].as_u64().unwrap() as u32), p);
            }
        }
    }
    for (level, p) in (0..).zip(numbers(&vector("GRR_reuse_m1_L3")["p"])) {
        close("p", law(reused_settings()).tail(level), p);
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

/// Every vector of the file is used.
#[test]
fn no_vector_is_left_out() {
    let (all, used) = (data()["vectors"].as_array().unwrap().clone(), cases());
    assert_eq!(all.len(), 17);
    for name in all.iter().map(|v| v["name"].as_str().unwrap()) {
        assert!(used.iter().any(|case| case.name == name), "{name}");
    }
}
