//! A run asks its device for all that flows compute, and nothing of it is kept in files.

use super::{run, samples, small, tiny};
use didyma::config::{Algorithm, Config, Profile};
use didyma::tasks::Task;
use didyma::training::{AdamConfig, Cpu, Device, Engine, Evaluator, Machine};
use didyma::{Dataset, Error, Inference, Posterior, Result, Rows, SplineFlow, State, infer_from};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The CPU, which counts what it is asked for: engines, densities, samples.
#[derive(Debug, Default)]
struct Counting {
    asked: [AtomicUsize; 3],
}

impl Counting {
    fn count(&self, what: usize) {
        self.asked[what].fetch_add(1, Ordering::Relaxed);
    }

    fn asked(&self) -> [usize; 3] {
        [0, 1, 2].map(|what| self.asked[what].load(Ordering::Relaxed))
    }
}

impl Device for Counting {
    fn describe(&self) -> String {
        format!("counting {}", Cpu.describe())
    }

    fn engine(
        &self,
        flow: SplineFlow,
        params: Vec<f32>,
        data: &Dataset,
        adam: AdamConfig,
        threads: usize,
    ) -> Result<Box<dyn Engine>> {
        self.count(0);
        Cpu.engine(flow, params, data, adam, threads)
    }
}

impl Evaluator for Counting {
    fn log_density(
        &self,
        flow: &SplineFlow,
        p: &[f32],
        theta: Rows<f32>,
        x: Rows<f32>,
    ) -> Result<Vec<f64>> {
        self.count(1);
        Cpu.log_density(flow, p, theta, x)
    }

    fn transport(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        x: &[f32],
        base: &[f32],
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        self.count(2);
        Cpu.transport(flow, params, x, base)
    }
}

fn run_on(device: &Arc<Counting>, task: &Task, config: &Config) -> Inference {
    let machine = Machine::new(2, device.clone());
    infer_from(&task.problem, None, config, machine, State::default(), &mut ()).unwrap()
}

#[test]
fn the_device_of_a_run_computes_its_flow_to_the_same_bytes() {
    let task = Task::named("two-moons").unwrap();
    for config in [tiny(Profile::Default), small(Config::new(Profile::Default, Algorithm::Tsnpe))] {
        let device = Arc::new(Counting::default());
        let found = run_on(&device, &task, &config).posterior.unwrap();
        let expected = run(&task, &config).posterior.unwrap();
        assert!(found.is_same(&expected));
        let [engines, _, transports] = device.asked();
        assert!(engines == 2 && transports > 0, "{:?}", device.asked());

        // Its samples and densities are computed there, too.
        let (before, theta) = (device.asked(), samples(&found, 100));
        assert_eq!(theta, samples(&expected, 100));
        let rows = Rows::new("theta", &theta, 2).unwrap();
        assert_eq!(found.log_density(rows, 1).unwrap(), expected.log_density(rows, 1).unwrap());
        let after = device.asked();
        assert!(after[1] > before[1] && after[2] > before[2], "{after:?}");

        // One that was read is not, until it is told where.
        let read = Posterior::from_bytes(&found.to_bytes(&json!({}))).unwrap();
        assert_eq!(found.to_bytes(&json!({})), expected.to_bytes(&json!({})));
        assert!(read.is_same(&found) && samples(&read, 100) == theta);
        assert_eq!(device.asked(), after);
        assert_eq!(samples(&read.on(device.clone()), 100), theta);
        assert!(device.asked()[2] > after[2]);
    }
}

#[test]
fn scores_stay_on_the_cores() {
    let task = Task::named("two-moons").unwrap();
    let config = small(Config::new(Profile::Default, Algorithm::Snse));
    let device = Arc::new(Counting::default());
    let found = run_on(&device, &task, &config).posterior.unwrap();
    samples(&found, 10);
    assert_eq!(device.asked(), [0; 3]);
}

#[test]
fn a_fault_of_a_device_is_told_with_its_name() {
    let (device, fault) = (Cpu.describe(), "is gone: begin again".into());
    assert!(device.starts_with("CPU (") && device.ends_with(" kernels)"), "{device}");
    let told = Error::Device { device: device.clone(), fault }.to_string();
    assert_eq!(told, format!("{device}: is gone: begin again"));
}
