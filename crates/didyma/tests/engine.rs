//! The engine: same bytes for any number of threads, right losses and gradients, clear refusals.

#![allow(clippy::unwrap_used)]

use didyma::estimator::{Group, Method, Plan, reduce};
use didyma::flow::Gradient;
use didyma::kernel::Kernels;
use didyma::rng::{Purpose, Streams};
use didyma::train::{AdamConfig, CpuEngine, Decay, Engine};
use didyma::workload::{self, POOL, SHAPES, Shape};
use didyma::{Dataset, Error, FlowConfig, Rows, Scaling, SplineFlow, Tape};

const STREAMS: Streams = Streams::new(3);

/// A step of TGRR, with an inclusive group and one too large for a tile added.
fn plans(count: usize) -> Vec<Plan> {
    let mut plans = workload::plans(STREAMS, Method::Tgrr, count).unwrap();
    for plan in &mut plans {
        plan.group(5, (0..45).map(|i| 7 * i)).own(0.3).log_mean_exp(0.2);
        plan.group(9, (0..701).map(|i| 4 + 11 * i))
            .share_first()
            .own(0.1)
            .antithetic_difference(0.4);
        let log_weights: Vec<f64> = (0..300).map(|i| (0.1 * f64::from(i)).cos()).collect();
        plan.group(11, (0..300).map(|i| 13 * i)).log_weights(&log_weights).log_mean_exp(0.4);
    }
    plans
}

/// Two Moons' size, with a log prior that differs from row to row.
fn data() -> Dataset {
    let data = SHAPES[0].data(&STREAMS).unwrap();
    let log_prior: Vec<f64> = (0..data.len()).map(|i| (i as f64).sin()).collect();
    Dataset::new(data.theta(), data.x(), &log_prior).unwrap()
}

/// A small flow, so that hundreds of steps take a second.
fn engine(threads: usize, config: AdamConfig) -> CpuEngine {
    let flow =
        SplineFlow::new(FlowConfig { layers: 3, units: 20, ..FlowConfig::new(2, 2) }).unwrap();
    let params = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
    CpuEngine::new(flow, params, &data(), config, threads).unwrap()
}

fn params(engine: &CpuEngine, len: usize) -> Vec<f32> {
    let mut params = vec![0.0; len];
    engine.read_params(&mut params).unwrap();
    params
}

#[test]
fn same_bytes_for_any_number_of_threads() {
    let flow =
        SplineFlow::new(FlowConfig { layers: 3, units: 20, ..FlowConfig::new(2, 2) }).unwrap();
    let plans = plans(20);
    let mut first: Option<(Vec<u32>, u64)> = None;
    for threads in [1, 2, 3, 8] {
        let mut engine = engine(threads, AdamConfig::default());
        for step in 0..200 {
            engine.step(&plans[step % plans.len()], 1e-3).unwrap();
        }
        let bits = params(&engine, flow.params_len()).iter().map(|p| p.to_bits()).collect();
        let found = (bits, engine.take_loss().unwrap().to_bits());
        match &first {
            None => first = Some(found),
            Some(first) => assert!(*first == found, "{threads} threads gave other bytes than one"),
        }
    }
}

/// The engine's loss is that of the formula on densities computed row by row, and its first step that
/// of Adam on the gradient in f64.
#[test]
fn loss_and_step_are_those_of_the_formula() {
    let data = data();
    let config = FlowConfig { layers: 3, units: 20, ..FlowConfig::new(2, 2) };
    let flow = SplineFlow::new(config).unwrap();
    let params32: Vec<f32> = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
    let params64: Vec<f64> = params32.iter().map(|&p| f64::from(p)).collect();
    let plan = &plans(1)[0];
    let mut tape = Tape::with_kernels(&flow, 701, Kernels::<f64>::scalar());
    let mut gradient = vec![0.0; flow.params_len()];
    let mut loss = 0.0;
    for group in plan.groups() {
        loss += group_gradient(&flow, &params64, &data, plan, group, &mut tape, &mut gradient);
    }

    let adam =
        AdamConfig { clip: f64::INFINITY, decay: Decay::Coupled(0.0), ..AdamConfig::default() };
    let mut engine = engine(2, adam);
    let found = engine.evaluate(plan).unwrap();
    // Σ |weight| of all log q, each of them right to about 1e-5.
    assert!((found - loss).abs() < 5e-5 * loss.abs().max(1.0), "{found} instead of {loss}");
    let rate = 1e-3;
    engine.step(plan, rate).unwrap();
    assert_eq!(engine.take_loss().unwrap(), found);
    let after = params(&engine, flow.params_len());
    for (i, (&after, before)) in after.iter().zip(params64).enumerate() {
        // The first step of Adam is rate · g / (|g| + ε): ± rate, unless g is all rounding error.
        if gradient[i].abs() > 1e-4 {
            let moved = f64::from(after) - before;
            assert!(
                (moved + rate * gradient[i].signum()).abs() < 1e-3 * rate + 1e-7,
                "{i}: {moved}"
            );
        }
    }
}

fn group_gradient(
    flow: &SplineFlow,
    params: &[f64],
    data: &Dataset,
    plan: &Plan,
    group: &Group,
    tape: &mut Tape<f64>,
    sum: &mut [f64],
) -> f64 {
    let widen = |row: &[f32]| row.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    tape.clear();
    tape.context(widen(data.x().row(group.context as usize)));
    for &atom in plan.atoms(group) {
        tape.pair(widen(data.theta().row(atom as usize)));
    }
    flow.forward(params, tape);
    let log_q = tape.log_q().to_vec();
    let mut weights = vec![0.0; log_q.len()];
    let log_prior = |atom: &u32| data.log_prior()[*atom as usize];
    let atoms = plan.atoms(group).iter().map(log_prior);
    let mut log_g: Vec<f64> = log_q.iter().zip(atoms).map(|(q, p)| q - p).collect();
    let loss = reduce(plan, group, log_q[0], &mut log_g, &mut weights);
    flow.backward(params, tape, &weights, Gradient { sum, accumulate: true });
    loss
}

/// f32 against f64 on the paper's flow. Every tensor's gradient passes some 60 products of length 50
/// on its way, with a relative error of about √50 ε each that adds up like a random walk: 5e-6 of the
/// gradient for a typical tensor. The bound allows ten times that.
#[test]
fn gradient_in_f32_is_close_to_that_in_f64() {
    for kernels in Kernels::<f32>::available() {
        let shape = Shape::named("lotka-volterra").unwrap();
        let (flow, data) = (shape.flow().unwrap(), shape.data(&STREAMS).unwrap());
        let params: Vec<f32> = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
        let wide: Vec<f64> = params.iter().map(|&p| f64::from(p)).collect();
        let (mut tape, mut exact_tape) = (
            Tape::with_kernels(&flow, 96, kernels),
            Tape::with_kernels(&flow, 96, Kernels::<f64>::scalar()),
        );
        for i in 0..96 {
            if i % 32 == 0 {
                tape.context(data.x().row(i).iter().copied());
                exact_tape.context(data.x().row(i).iter().map(|&v| f64::from(v)));
            }
            tape.pair(data.theta().row(i).iter().copied());
            exact_tape.pair(data.theta().row(i).iter().map(|&v| f64::from(v)));
        }
        let (mut found, mut exact) = (vec![0.0f32; params.len()], vec![0.0f64; params.len()]);
        flow.forward(&params, &mut tape);
        flow.forward(&wide, &mut exact_tape);
        let accumulate = false;
        flow.backward(&params, &mut tape, &[0.01; 96], Gradient { sum: &mut found, accumulate });
        flow.backward(
            &wide,
            &mut exact_tape,
            &[0.01; 96],
            Gradient { sum: &mut exact, accumulate },
        );
        for tensor in flow.tensors() {
            let part = tensor.range.clone();
            let size = exact[part.clone()].iter().map(|e| e * e).sum::<f64>().sqrt();
            let error = found[part.clone()].iter().zip(&exact[part]);
            let error = error.map(|(&f, e)| (f64::from(f) - e).powi(2)).sum::<f64>().sqrt();
            assert!(error <= 5e-5 * size, "{} {}: {:.1e}", kernels.name, tensor.name, error / size);
        }
    }
}

#[test]
fn training_finds_a_known_conditional_density() {
    // x = θ + noise of sd ½, θ ~ N(0, 1): θ | x ~ N(0.8 x, 0.2), entropy ½ log(2 π e 0.2) = 0.6142.
    use rand_distr::{Distribution, StandardNormal};
    let n = 4000;
    let mut rng = STREAMS.stream(Purpose::Synthetic, 1, 0);
    let mut normal = || -> f32 { StandardNormal.sample(&mut rng) };
    let theta: Vec<f32> = (0..n).map(|_| normal()).collect();
    let x: Vec<f32> = theta.iter().map(|t| t + 0.5 * normal()).collect();
    let rows = |name, data| Rows::new(name, data, 1).unwrap();
    let data = Dataset::new(rows("theta", &theta), rows("x", &x), &vec![0.0; n]).unwrap();
    let flow =
        SplineFlow::new(FlowConfig { layers: 2, units: 16, bound: 5.0, ..FlowConfig::new(1, 1) });
    let flow = flow.unwrap();
    let start = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 1, 0));
    let mut engine = CpuEngine::new(flow.clone(), start, &data, AdamConfig::default(), 2).unwrap();
    let mut plan = Plan::default();
    let train = |rows: std::ops::Range<u32>, plan: &mut Plan| {
        plan.clear();
        let each = 1.0 / rows.len() as f64;
        rows.for_each(|row| plan.push_own(row, each));
    };
    for step in 0..900u32 {
        let first = step % 15 * 200;
        train(first..first + 200, &mut plan);
        engine.step(&plan, 2e-3).unwrap();
    }
    train(3000..4000, &mut plan);
    let held_out = engine.evaluate(&plan).unwrap();
    // −log q of 1,000 fresh rows has mean 0.6142 (if q is right) and a standard deviation of √½: a
    // standard error of 0.022. A fitted q can only be worse; 0.03 is what 3,000 rows may cost.
    assert!(
        (held_out - 0.6142) > -3.0 * 0.022 && held_out - 0.6142 < 3.0 * 0.022 + 0.03,
        "{held_out}"
    );
}

#[test]
fn bad_input_is_refused_with_the_argument_and_the_remedy() {
    let rows = |name, data, columns| Rows::new(name, data, columns).unwrap();
    let says = |error: Error, parts: &[&str]| {
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    for (config, name) in [
        (FlowConfig::new(0, 2), "theta_dim is 0"),
        (FlowConfig::new(2, 0), "x_dim is 0"),
        (FlowConfig { bins: 1, ..FlowConfig::new(2, 2) }, "bins is 1"),
        (FlowConfig { bound: f64::NAN, ..FlowConfig::new(2, 2) }, "bound is NaN"),
    ] {
        says(SplineFlow::new(config).unwrap_err(), &[name, "must be"]);
    }
    let (good, bad) = ([0.0f32, 1.0, 2.0, 3.0], [0.0f32, 1.0, f32::NAN, 3.0]);
    let found = Dataset::new(rows("theta", &good, 2), rows("x", &bad, 2), &[0.0; 2]).unwrap_err();
    says(found, &["x holds NaN in row 1, column 0"]);
    let found = Dataset::new(rows("theta", &good, 2), rows("x", &good, 1), &[0.0; 2]).unwrap_err();
    says(found, &["x has 4 rows, but 2 are needed"]);
    let found = Dataset::new(rows("theta", &good, 2), rows("x", &good, 2), &[0.0]).unwrap_err();
    says(found, &["log_prior has 1 numbers, but 2 are needed"]);

    let data = Dataset::new(rows("theta", &good, 2), rows("x", &good, 2), &[0.0; 2]).unwrap();
    let flow = SplineFlow::new(FlowConfig::new(2, 2)).unwrap();
    let params = vec![0.0; flow.params_len()];
    let make = |params: Vec<f32>, threads| {
        CpuEngine::new(flow.clone(), params, &data, AdamConfig::default(), threads)
    };
    says(make(params.clone(), 0).unwrap_err(), &["threads is 0"]);
    says(make(vec![0.0; 3], 1).unwrap_err(), &["params has 3 numbers, but 97480 are needed"]);
    let mut plan = Plan::default();
    plan.push_own(2, 1.0);
    let found = make(params.clone(), 1).unwrap().step(&plan, 1e-3).unwrap_err();
    says(found, &["row 2 of a dataset of 2 rows"]);
    let found = make(params.clone(), 1).unwrap().step(&plan, f64::NAN).unwrap_err();
    says(found, &["learning_rate is NaN", "between 0 and 1"]);
    let found = make(params.clone(), 1).unwrap().step(&Plan::default(), 1e-3).unwrap_err();
    says(found, &["plan has no group"]);
    let mut broken = params.clone();
    broken[7] = f32::NAN;
    says(make(broken, 1).unwrap_err(), &["params holds NaN at place 7"]);
    let theta = rows("theta", &bad, 2);
    says(flow.log_density(&params, theta, rows("x", &good, 2)).unwrap_err(), &["theta holds NaN"]);
    let mut rng = STREAMS.stream(Purpose::Posterior, 0, 0);
    let mut sample = |x: &[f32], count| flow.sample(&params, x, count, &mut rng).unwrap_err();
    says(sample(&[f32::INFINITY, 0.0], 1), &["x holds inf"]);
    says(sample(&[0.0], 1), &["x has 1 columns, but 2 are needed"]);
    says(sample(&[0.0; 2], usize::MAX), &["count is", "memory"]);
    says(Scaling::of(rows("x", &[], 2)).unwrap_err(), &["rows", "at least 1"]);
    says(Rows::new("x", &good, 0).unwrap_err(), &["x has 0 columns"]);
    let huge = Rows::new("theta", &[3e38, -3e38], 2).unwrap();
    let start: Vec<f32> = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
    match flow.log_density(&start, huge, rows("x", &good[..2], 2)) {
        Ok(log_q) => assert_eq!(log_q, [f64::NEG_INFINITY]),
        Err(error) => says(error, &["log q of row 0 is NaN", "unit scale"]),
    }
}

/// A longer dataset with the same first rows changes nothing for plans on these, moments included.
#[test]
fn loading_more_data_keeps_parameters_and_moments() {
    let (full, plan) = (data(), &plans(1)[0]);
    let (theta, x) = (full.theta().data(), full.x().data());
    let mut once = engine(2, AdamConfig::default());
    let mut again = engine(2, AdamConfig::default());
    for step in 0..6 {
        once.step(plan, 1e-3).unwrap();
        if step == 3 {
            let longer = |data: &[f32]| [data, &data[..20]].concat();
            let log_prior = [full.log_prior(), &[0.0; 10]].concat();
            let (theta, x) = (longer(theta), longer(x));
            let rows = |name, data| Rows::new(name, data, 2).unwrap();
            let data = Dataset::new(rows("theta", &theta), rows("x", &x), &log_prior).unwrap();
            again.load(&data).unwrap();
        }
        again.step(plan, 1e-3).unwrap();
    }
    assert_eq!(once.evaluate(plan).unwrap(), again.evaluate(plan).unwrap());
    let mut beyond = Plan::default();
    beyond.push_own(POOL + 9, 1.0);
    assert!(again.evaluate(&beyond).is_ok() && once.evaluate(&beyond).is_err());
}

#[test]
fn a_step_that_is_not_finite_leaves_the_parameters_alone() {
    let mut engine = engine(2, AdamConfig::default());
    let len = SplineFlow::new(FlowConfig { layers: 3, units: 20, ..FlowConfig::new(2, 2) })
        .unwrap()
        .params_len();
    let before = params(&engine, len);
    let mut plan = Plan::default();
    plan.push_own(POOL - 1, f64::NAN);
    let error = engine.step(&plan, 1e-3).unwrap_err();
    assert!(matches!(error, Error::Diverged { what: "loss", step: 1, .. }), "{error}");
    assert_eq!(params(&engine, len), before);
    assert!(engine.take_loss().unwrap().is_nan());
}
