//! A run asks its device for all that flows compute, and nothing of it is kept in files.

use super::{run, samples, small, tiny};
use didyma::config::{Algorithm, Config, Profile};
use didyma::estimator::Plan;
use didyma::tasks::Task;
use didyma::training::{AdamConfig, Cpu, Device, Engine, EngineState, Evaluator, Machine};
use didyma::{Dataset, Error, Inference, Posterior, Result, Rows, SplineFlow, State, infer_from};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The CPU, which counts what it is asked for: engines, densities, samples. Engines may diverge, by their number.
#[derive(Debug)]
pub(super) struct Counting {
    pub(super) asked: [AtomicUsize; 3],
    pub(super) diverge: fn(usize) -> bool,
}

impl Default for Counting {
    fn default() -> Self {
        Self { asked: Default::default(), diverge: |_| false }
    }
}

impl Counting {
    fn count(&self, what: usize) -> usize {
        self.asked[what].fetch_add(1, Ordering::Relaxed)
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
        let diverges = (self.diverge)(self.count(0));
        let inner = Cpu.engine(flow, params, data, adam, threads)?;
        Ok(Box::new(CountedEngine { inner, steps: 0, diverges }))
    }
}

/// An engine of the CPU that may diverge in its second step.
struct CountedEngine {
    inner: Box<dyn Engine>,
    steps: u32,
    diverges: bool,
}

impl Engine for CountedEngine {
    fn step(&mut self, plan: &Plan, learning_rate: f64) -> Result<()> {
        self.steps += 1;
        match self.diverges && self.steps == 2 {
            true => Err(Error::Diverged { what: "loss", step: 2, value: f64::NAN }),
            false => self.inner.step(plan, learning_rate),
        }
    }
    fn take_loss(&mut self) -> Result<f64> {
        self.inner.take_loss()
    }
    fn evaluate(&mut self, plan: &Plan) -> Result<f64> {
        self.inner.evaluate(plan)
    }
    fn read_params(&self, to: &mut [f32]) -> Result<()> {
        self.inner.read_params(to)
    }
    fn read_state(&self, to: &mut EngineState) -> Result<()> {
        self.inner.read_state(to)
    }
    fn restore(&mut self, state: &EngineState) -> Result<()> {
        self.inner.restore(state)
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
