//! The engine: same bytes for any number of threads, gradients by all kernels, clear refusals; and the laws of all devices.

#![allow(clippy::unwrap_used)]

use crate::laws::{self, Case};
use didyma::estimator::{Estimator, Method, Plan, Pool, Replacement, Settings, Thinning};
use didyma::flow::Gradient;
use didyma::kernel::Kernels;
use didyma::rng::{Purpose, Streams};
use didyma::training::{AdamConfig, Cpu, CpuEngine, Engine};
use didyma::{Dataset, Error, FlowConfig, Rows, SplineFlow, Tape};
use rand::RngExt;
use std::sync::{Arc, LazyLock};

const STREAMS: Streams = Streams::new(3);
/// Rows of the dataset.
const ROWS: u32 = 10_000;

mod cpu {
    crate::laws::test!(crate::engine::found);
}

/// This machine's cores, which are always here.
fn found() -> &'static laws::Found {
    static CPU: LazyLock<laws::Found> = LazyLock::new(|| Ok(Arc::new(Cpu)));
    &CPU
}

/// A step of TGRR, with an inclusive group and one too large for a tile added.
fn plans(count: usize) -> Vec<Plan> {
    let mut estimator = Estimator::new(Settings::paper(Method::Tgrr)).unwrap();
    let mut pool = Pool::new(0..ROWS, Replacement::Without).unwrap();
    let mut plans = vec![Plan::default(); count];
    for (step, plan) in (0..).zip(&mut plans) {
        let mut rng = STREAMS.stream(Purpose::Plan, 0, step);
        let batch: Vec<u32> = (0..100).map(|_| rng.random_range(0..ROWS)).collect();
        estimator.plan(&batch, &mut pool, &mut rng, plan).unwrap();
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

/// A small flow, so that hundreds of steps take a second, with data of Two Moons' size.
fn case() -> Case {
    Case::new(FlowConfig { layers: 3, units: 20, ..FlowConfig::new(2, 2) }, ROWS as usize)
}

fn engine(case: &Case, threads: usize) -> CpuEngine {
    let params = case.flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
    CpuEngine::new(case.flow.clone(), params, &case.data, AdamConfig::default(), threads).unwrap()
}

fn params(engine: &CpuEngine, len: usize) -> Vec<f32> {
    let mut params = vec![0.0; len];
    engine.read_params(&mut params).unwrap();
    params
}

#[test]
fn same_bytes_for_any_number_of_threads() {
    let (case, mut plans) = (case(), plans(20));
    // Half of them thinned, the parts of large groups too, below a tenth of a query's weight.
    for (seed, plan) in (0..).zip(&mut plans).step_by(2) {
        plan.thin(Thinning { below: 1e-3, seed });
    }
    let mut first: Option<(Vec<u32>, u64)> = None;
    for threads in [1, 2, 3, 8] {
        let mut engine = engine(&case, threads);
        for step in 0..200 {
            engine.step(&plans[step % plans.len()], 1e-3).unwrap();
        }
        let bits = params(&engine, case.flow.params_len()).iter().map(|p| p.to_bits()).collect();
        let found = (bits, engine.take_loss().unwrap().to_bits());
        match &first {
            None => first = Some(found),
            Some(first) => assert!(*first == found, "{threads} threads gave other bytes than one"),
        }
    }
}

/// f32 against f64 on the paper's flow. Every tensor's gradient passes some 60 products of length 50
/// on its way, with a relative error of about √50 ε each that adds up like a random walk: 5e-6 of the
/// gradient for a typical tensor. The bound allows ten times that.
#[test]
fn gradient_in_f32_is_close_to_that_in_f64() {
    let Case { flow, data, .. } = &Case::new(FlowConfig::new(4, 9), 96);
    for kernels in Kernels::<f32>::available() {
        let params: Vec<f32> = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
        let wide: Vec<f64> = params.iter().map(|&p| f64::from(p)).collect();
        let (mut tape, mut exact_tape) = (
            Tape::with_kernels(flow, 96, kernels),
            Tape::with_kernels(flow, 96, Kernels::<f64>::scalar()),
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
    let mut rng = STREAMS.stream(Purpose::Posterior, 0, 0);
    let mut sample = |x: &[f32], count| flow.sample(&params, x, count, &mut rng).unwrap_err();
    says(sample(&[f32::INFINITY, 0.0], 1), &["x holds inf"]);
    says(sample(&[0.0], 1), &["x has 1 columns, but 2 are needed"]);
    says(sample(&[0.0; 2], usize::MAX), &["count is", "memory"]);
    says(Rows::new("x", &good, 0).unwrap_err(), &["x has 0 columns"]);
}
