//! The kernels, emulated on the CPU: the same losses, gradients, densities and draws as the library's own.

#![cfg(feature = "emulator")]
#![allow(clippy::unwrap_used)]

use didyma::device::{Cpu, Device};
use didyma::estimator::Plan;
use didyma::rng::{Purpose, Streams};
use didyma::train::{AdamConfig, Decay, EngineState};
use didyma::{Dataset, FlowConfig, Rows, SplineFlow};
use didyma_cuda::Cuda;
use rand_distr::{Distribution, StandardNormal};

const STREAMS: Streams = Streams::new(5);

fn normal(index: u64, count: usize) -> Vec<f32> {
    let mut rng = STREAMS.stream(Purpose::Synthetic, 0, index);
    (0..count).map(|_| StandardNormal.sample(&mut rng)).collect()
}

fn case(config: FlowConfig, rows: usize) -> (SplineFlow, Vec<f32>, Dataset) {
    let (theta, x) = (normal(0, rows * config.theta_dim), normal(1, rows * config.x_dim));
    let log_prior: Vec<f64> = (0..rows).map(|i| (i as f64).sin()).collect();
    let data = Dataset::new(
        Rows::new("theta", &theta, config.theta_dim).unwrap(),
        Rows::new("x", &x, config.x_dim).unwrap(),
        &log_prior,
    );
    let flow = SplineFlow::new(config).unwrap();
    // Away from the start, where blocks are nearly the identity.
    let noise = normal(2, flow.params_len());
    let params: Vec<f32> = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
    let params = params.iter().zip(noise).map(|(p, n)| p + 0.05 * n).collect();
    (flow, params, data.unwrap())
}

/// Groups of all sizes and kinds.
fn plan(rows: u32) -> Plan {
    let mut plan = Plan::default();
    plan.push_own(3, 1.0);
    plan.group(5, (0..45).map(|i| 7 * i % rows)).own(0.3).log_mean_exp(0.2);
    plan.group(9, (0..41).map(|i| (4 + 11 * i) % rows))
        .share_first()
        .own(0.1)
        .antithetic_difference(0.4);
    let log_weights: Vec<f64> = (0..6).map(|i| (0.1 * f64::from(i)).cos()).collect();
    plan.group(11, (0..6).map(|i| 13 * i % rows)).log_weights(&log_weights).log_mean_exp(0.4);
    (0..20).for_each(|row| plan.push_own(row, 0.05));
    plan
}

fn state_after(device: &dyn Device, config: &FlowConfig, steps: usize) -> (EngineState, f64, f64) {
    let (flow, params, data) = case(config.clone(), 50);
    let adam =
        AdamConfig { clip: f64::INFINITY, decay: Decay::Coupled(0.0), ..AdamConfig::default() };
    let mut engine = device.engine(flow, params, &data, adam, 1).unwrap();
    let plan = plan(50);
    let before = engine.evaluate(&plan).unwrap();
    for _ in 0..steps {
        engine.step(&plan, 1e-3).unwrap();
    }
    let loss = engine.take_loss().unwrap();
    let mut state = EngineState::default();
    engine.read_state(&mut state).unwrap();
    (state, before, loss)
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
    let difference = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(a - b)));
    difference / norm(&mut b.iter().map(|&b| f64::from(b))).max(1e-12)
}

#[test]
fn agree() {
    let gpu = Cuda::emulated().unwrap();
    for config in [
        FlowConfig { layers: 1, blocks: 1, units: 8, bins: 4, ..FlowConfig::new(2, 2) },
        FlowConfig { layers: 3, units: 20, ..FlowConfig::new(2, 2) },
        FlowConfig { layers: 3, ..FlowConfig::new(4, 9) },
        FlowConfig { layers: 3, units: 21, bound: 3.0, ..FlowConfig::new(3, 5) },
        FlowConfig { layers: 2, units: 9, blocks: 0, bins: 3, ..FlowConfig::new(1, 1) },
        FlowConfig { layers: 2, units: 70, blocks: 3, bins: 12, ..FlowConfig::new(9, 3) },
    ] {
        println!("{config:?}");
        let (ours, theirs) = (state_after(&gpu, &config, 1), state_after(&Cpu, &config, 1));
        println!("{} {} {} {}", ours.1, theirs.1, ours.2, theirs.2);
        println!(
            "gradient {:e} params {:e}",
            distance(&ours.0.m, &theirs.0.m),
            distance(&ours.0.params, &theirs.0.params)
        );
        let (flow, params, data) = case(config.clone(), 50);
        for tensor in flow.tensors() {
            let r = tensor.range.clone();
            let d = distance(&ours.0.m[r.clone()], &theirs.0.m[r]);
            if d > 1e-4 {
                println!("   {} {d:e}", tensor.name);
            }
        }
        let one = Rows::new("x", data.x().row(0), config.x_dim).unwrap();
        for x in [data.x(), one] {
            let a = gpu.log_density(&flow, &params, data.theta(), x).unwrap();
            let b = Cpu.log_density(&flow, &params, data.theta(), x).unwrap();
            let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            println!("density {worst:e} {} {}", a[0], b[0]);
        }
        let base = normal(7, 40 * config.theta_dim);
        let a = gpu.transport(&flow, &params, data.x().row(0), &base).unwrap();
        let b = Cpu.transport(&flow, &params, data.x().row(0), &base).unwrap();
        println!("transport {:e}", distance(&a.0, &b.0));
        let worst = a.1.iter().zip(&b.1).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!("log q {worst:e}");
    }
}
