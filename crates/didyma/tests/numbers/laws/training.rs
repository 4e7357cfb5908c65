//! Training: losses, steps, states.

use super::{Case, STREAMS, normal, params, plain_adam, plan, state};
use didyma::estimator::Plan;
use didyma::rng::Purpose;
use didyma::training::{AdamConfig, Cpu, Device, Engine};
use didyma::{Dataset, FlowConfig, Rows, SplineFlow};
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;
use std::sync::Arc;

pub fn loss_and_first_step_are_those_of_the_formula(device: &Arc<dyn Device>) {
    steps_by_the_formula(device, &Case::small(100), &plan(500, 100));
}

/// Inner samples that were made for a round have parameters, and no x.
pub fn parameters_without_x_are_atoms_like_others(device: &Arc<dyn Device>) {
    let mut case = Case::small(100);
    let (theta, log_prior) = (normal(3, 120), normal(4, 60).into_iter().map(f64::from));
    let log_prior: Vec<f64> = log_prior.collect();
    let theta = Rows::new("theta", &theta, 2).unwrap();
    case.data = case.data.with_parameters(theta, &log_prior).unwrap();
    // Contexts of the plan are its first rows; its atoms are rows of both kinds.
    let plan = plan(500, 160);
    assert!(plan.groups().iter().any(|group| plan.atoms(group).iter().any(|&row| row >= 100)));
    steps_by_the_formula(device, &case, &plan);
}

/// The engine's loss is that of the formula on densities computed row by row, and its first step that
/// of Adam on the gradient in f64.
fn steps_by_the_formula(device: &Arc<dyn Device>, case: &Case, plan: &Plan) {
    let (loss, gradient) = case.exact(plan);
    let mut engine = case.engine(device, plain_adam());
    let found = engine.evaluate(plan).unwrap();
    // Σ |weight| of all log q, each of them right to about 1e-5.
    assert!((found - loss).abs() < 5e-5 * loss.abs().max(1.0), "{found} instead of {loss}");
    let rate = 1e-3;
    engine.step(plan, rate).unwrap();
    assert_eq!(engine.take_loss().unwrap(), found);
    let after = params(&*engine, case.params.len());
    for (i, (&after, before)) in after.iter().zip(case.wide()).enumerate() {
        // The first step of Adam is rate · g / (|g| + ε): ± rate, unless g is all rounding error.
        if gradient[i].abs() > 1e-4 {
            let moved = f64::from(after) - before;
            let error = (moved + rate * gradient[i].signum()).abs();
            assert!(error < 1e-3 * rate + 1e-7, "{i}: {moved}");
        }
    }
}

/// Plans of several sizes by turns, so that tiles of all sizes are used and memory moves.
pub fn same_bytes_from_run_to_run(device: &Arc<dyn Device>) {
    let (case, plans) = (Case::small(200), [200, 1300, 113, 2400].map(|pairs| plan(pairs, 200)));
    let run = || {
        let mut engine = case.engine(device, AdamConfig::default());
        plans.iter().for_each(|plan| engine.step(plan, 1e-3).unwrap());
        (engine.take_loss().unwrap().to_bits(), state(&*engine))
    };
    let (first, again) = (run(), run());
    assert_ne!(first.1.params, case.params);
    assert!(first == again, "{} gave other bytes", device.describe());
}

/// −log q of each of these rows, the mean of all.
fn fill(plan: &mut Plan, rows: Range<u32>) {
    plan.clear();
    let each = 1.0 / rows.len() as f64;
    rows.for_each(|row| plan.push_own(row, each));
}

pub fn training_finds_a_known_conditional_density(device: &Arc<dyn Device>) {
    // x = θ + noise of sd ½, θ ~ N(0, 1): θ | x ~ N(0.8 x, 0.2), entropy ½ log(2 π e 0.2) = 0.6142.
    let n = 3000;
    let mut rng = STREAMS.stream(Purpose::Synthetic, 1, 0);
    let mut normal = || -> f32 { StandardNormal.sample(&mut rng) };
    let theta: Vec<f32> = (0..n).map(|_| normal()).collect();
    let x: Vec<f32> = theta.iter().map(|t| t + 0.5 * normal()).collect();
    let rows = |name, data| Rows::new(name, data, 1).unwrap();
    let data = Dataset::new(rows("theta", &theta), rows("x", &x), &vec![0.0; n]).unwrap();
    let config = FlowConfig { layers: 1, units: 10, bound: 5.0, ..FlowConfig::new(1, 1) };
    let flow = SplineFlow::new(config).unwrap();
    let start = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 1, 0));
    let mut engine = device.engine(flow, start, &data, AdamConfig::default(), 2).unwrap();
    let mut plan = Plan::default();
    for step in 0..180u32 {
        let first = step % 20 * 100;
        fill(&mut plan, first..first + 100);
        engine.step(&plan, if step < 130 { 1e-2 } else { 2e-3 }).unwrap();
    }
    fill(&mut plan, 2000..3000);
    let held_out = engine.evaluate(&plan).unwrap();
    // −log q of 1,000 fresh rows has mean 0.6142 (if q is right) and a standard deviation of √½: a
    // standard error of 0.022. A fitted q can only be worse; 0.03 is what 2,000 rows and a short training may cost.
    assert!(
        (held_out - 0.6142) > -3.0 * 0.022 && held_out - 0.6142 < 3.0 * 0.022 + 0.03,
        "{held_out}"
    );
}

/// An engine on a longer dataset with the same first rows goes on with the same bytes for plans on these, as from one
/// round to the next.
pub fn a_longer_dataset_changes_nothing_for_its_first_rows(device: &Arc<dyn Device>) {
    let (mut case, plan) = (Case::small(100), plan(150, 100));
    let [mut once, mut again] = [0; 2].map(|_| case.engine(device, AdamConfig::default()));
    let mut beyond = Plan::default();
    beyond.push_own(109, 1.0);
    for step in 0..6 {
        once.step(&plan, 1e-3).unwrap();
        if step == 3 {
            assert!(again.evaluate(&beyond).is_err());
            let kept = state(&*again);
            case.data = longer(&case.data);
            again = case.engine(device, AdamConfig::default());
            again.restore(&kept).unwrap();
        }
        again.step(&plan, 1e-3).unwrap();
    }
    assert_eq!(once.evaluate(&plan).unwrap(), again.evaluate(&plan).unwrap());
    assert_eq!(state(&*once), state(&*again));
    assert!(again.evaluate(&beyond).is_ok() && once.evaluate(&beyond).is_err());
}

/// With the first ten rows once more at the end.
fn longer(data: &Dataset) -> Dataset {
    let more = |rows: Rows<f32>| [rows.data(), &rows.data()[..20]].concat();
    let (theta, x) = (more(data.theta()), more(data.x()));
    let log_prior = [data.log_prior(), &[0.0; 10]].concat();
    let rows = |name, data| Rows::new(name, data, 2).unwrap();
    Dataset::new(rows("theta", &theta), rows("x", &x), &log_prior).unwrap()
}

fn steps(engine: &mut dyn Engine, plan: &Plan, count: usize) {
    (0..count).for_each(|_| engine.step(plan, 1e-3).unwrap());
}

pub fn a_state_goes_on_with_the_same_bytes(device: &Arc<dyn Device>) {
    let (case, plan) = (Case::small(100), plan(150, 100));
    let [mut once, mut again] = [0; 2].map(|_| case.engine(device, AdamConfig::default()));
    steps(&mut *once, &plan, 3);
    let kept = state(&*once);
    assert_eq!(kept.steps, 3);
    // What the other did before does not matter, nor its losses.
    steps(&mut *again, &plan, 1);
    again.restore(&kept).unwrap();
    assert!(again.take_loss().unwrap().is_nan() && state(&*again) == kept);
    for engine in [&mut once, &mut again] {
        steps(&mut **engine, &plan, 3);
    }
    assert_eq!(state(&*once), state(&*again));
    assert_eq!(state(&*once).steps, 6);
}

/// From here to the CPU and back, and the other way round: every number arrives as it was, and the CPU goes on to nearly
/// the same loss. Two steps of 1e-3 change it by about 1e-2, and Adam moves every weight by the rate in a direction that
/// the two agree upon but where a gradient is all rounding error, and so does not matter: a hundredth of the change.
pub fn a_state_goes_from_device_to_device(device: &Arc<dyn Device>) {
    let (case, plan) = (Case::small(100), plan(150, 100));
    let cpu: Arc<dyn Device> = Arc::new(Cpu);
    for [from, to] in [[device, &cpu], [&cpu, device]] {
        let [mut one, mut other] =
            [from, to].map(|device| case.engine(device, AdamConfig::default()));
        steps(&mut *one, &plan, 3);
        let kept = state(&*one);
        other.restore(&kept).unwrap();
        assert_eq!(state(&*other), kept);
        let mut back = case.engine(from, AdamConfig::default());
        back.restore(&state(&*other)).unwrap();
        let before = one.evaluate(&plan).unwrap();
        for engine in [&mut one, &mut other, &mut back] {
            steps(&mut **engine, &plan, 2);
        }
        assert_eq!(state(&*one), state(&*back));
        assert_eq!(state(&*other).steps, 5);
        let [here, there] = [&mut one, &mut other].map(|engine| engine.evaluate(&plan).unwrap());
        assert!(before - here > 1e-3, "{before} {here}");
        assert!((here - there).abs() < 1e-2 * (before - here), "{before} {here} {there}");
    }
}
