//! How long a training step takes, and what fraction of the machine that is.

use super::peak::product_peak;
use super::report::{Profile, Sizes, StepReport, Timing};
use crate::workload::{Shape, Steps};
use didyma::Named;
use didyma::estimator::{Plan, Settings, reduce};
use didyma::rng::{Purpose, Streams};
use didyma::training::{Engine, Machine};
use didyma_cuda::{Cuda, OpenDevice};
use std::sync::Barrier;
use std::time::Instant;

/// Stretches before the clock starts: compilers, caches, buffers that grow.
const WARM_UP: usize = 3;
/// Each part of the measurement: a stretch of matrix products, then a stretch of steps.
const PARTS: u32 = 3;
/// Seconds of matrix products for each second of steps.
const PEAK_SHARE: f64 = 0.15;
/// Steps between two looks at the clock: a CPU's step is done when it returns, a GPU's when its loss is asked for.
const STRETCH_CPU: usize = 1;
const STRETCH_GPU: usize = 200;
/// Steps that are timed kernel by kernel.
const PROFILED: usize = 100;

/// Steps to time.
#[derive(Debug)]
pub struct StepBench {
    /// Sizes of the task.
    pub shape: Shape,
    /// The estimator's.
    pub settings: Settings,
    /// Rows that inner samples are drawn from.
    pub pool: u32,
    /// Outer samples of a step.
    pub batch: usize,
    /// The device.
    pub opened: OpenDevice,
    /// Threads of all trainings together.
    pub threads: usize,
    /// Trainings at once.
    pub seeds: usize,
    /// Seconds to measure for.
    pub seconds: f64,
}

/// One training under way.
struct Trainer {
    engine: Box<dyn Engine>,
    steps: Steps,
    plan: Plan,
    stretch: usize,
}

impl Trainer {
    fn new(bench: &StepBench, machine: Machine, seed: u64, stretch: usize) -> anyhow::Result<Self> {
        let streams = Streams::new(seed);
        let engine = bench.shape.engine(&streams, machine)?;
        let steps = bench.steps(streams)?;
        Ok(Self { engine, steps, plan: Plan::default(), stretch })
    }

    /// Steps, and the wait for the last.
    fn stretch(&mut self, flow: &didyma::SplineFlow) -> anyhow::Result<Timing> {
        let mut timing = Timing { steps: self.stretch, ..Timing::default() };
        let start = Instant::now();
        for _ in 0..self.stretch {
            let clock = Instant::now();
            self.steps.plan_next(&mut self.plan)?;
            timing.planned += clock.elapsed().as_secs_f64();
            self.engine.step(&self.plan, 1e-4)?;
            timing.pairs += self.plan.pairs();
            timing.flops += flow.flops(self.plan.pairs(), self.plan.groups().len());
        }
        self.engine.take_loss()?;
        timing.total = start.elapsed().as_secs_f64();
        timing.reduced = timing.steps as f64 * reduction_seconds(&self.plan);
        Ok(timing)
    }
}

impl StepBench {
    /// Times steps and matrix products by turns, so that both see the same machine.
    pub fn run(&self) -> anyhow::Result<StepReport> {
        let (flow, threads) = (self.shape.flow()?, self.threads);
        let mut trainers = self.trainers(&flow)?;
        let profile = match &self.opened {
            OpenDevice::Cpu => None,
            OpenDevice::Cuda(cuda) => Some(self.profile(cuda)?),
        };
        let part = self.seconds / f64::from(PARTS);
        let (mut times, mut peak) = (Vec::new(), profile.as_ref().map_or(0.0, |p| p.peak_gflops));
        let mut wall = 0.0;
        for _ in 0..PARTS {
            if profile.is_none() {
                peak = f64::max(peak, product_peak(threads, PEAK_SHARE * part));
            }
            let (part_times, elapsed) = together(&mut trainers, &flow, part)?;
            times.extend(part_times);
            wall += elapsed;
        }
        let target = trainers[0].steps.estimator().target();
        let sizes = self.sizes(&flow);
        Ok(StepReport::new(sizes, &times, wall, peak, target, profile))
    }

    /// All trainings, each past its first steps.
    fn trainers(&self, flow: &didyma::SplineFlow) -> anyhow::Result<Vec<Trainer>> {
        let stretch = match self.opened {
            OpenDevice::Cpu => STRETCH_CPU,
            OpenDevice::Cuda(_) => STRETCH_GPU,
        };
        let each = (self.threads / self.seeds).max(1);
        let mut trainers = (0..self.seeds as u64)
            .map(|seed| Trainer::new(self, self.opened.machine(each), 1 + seed, stretch))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let warm =
            |trainer: &mut Trainer| (0..WARM_UP).try_for_each(|_| trainer.stretch(flow).map(drop));
        trainers.iter_mut().try_for_each(warm)?;
        Ok(trainers)
    }

    fn sizes(&self, flow: &didyma::SplineFlow) -> Sizes {
        Sizes {
            task: self.shape.name,
            method: self.settings.method.name(),
            device: self.opened.machine(self.threads).device.describe(),
            threads: self.threads,
            batch: self.batch,
            seeds: self.seeds,
            parameters: flow.params_len(),
        }
    }

    /// Kernel by kernel, on plans like those that are timed.
    fn profile(&self, cuda: &Cuda) -> anyhow::Result<Profile> {
        let streams = Streams::new(1);
        let (flow, data) = (self.shape.flow()?, self.shape.data(&streams)?);
        let params = flow.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
        let mut steps = self.steps(streams)?;
        let mut plans = vec![Plan::default(); PROFILED];
        plans.iter_mut().try_for_each(|plan| steps.plan_next(plan))?;
        let found = cuda.profile(flow, params, &data, &plans)?;
        Ok(Profile {
            kernels: found.kernels.into_iter().map(|(name, s)| (name, 1e6 * s)).collect(),
            device_mb: found.bytes as f64 / 1e6,
            peak_gflops: found.peak_flops / 1e9,
        })
    }

    fn steps(&self, streams: Streams) -> didyma::Result<Steps> {
        Ok(Steps::new(streams, self.settings.clone(), self.pool)?.of_batch(self.batch))
    }
}

/// All trainings at once, each on its own thread, for some seconds; and how long they took, all together.
fn together(
    trainers: &mut [Trainer],
    flow: &didyma::SplineFlow,
    seconds: f64,
) -> anyhow::Result<(Vec<Timing>, f64)> {
    let ready = Barrier::new(trainers.len());
    let work = |trainer: &mut Trainer| -> anyhow::Result<Vec<Timing>> {
        ready.wait();
        let (start, mut times) = (Instant::now(), Vec::new());
        while start.elapsed().as_secs_f64() < seconds || times.is_empty() {
            times.push(trainer.stretch(flow)?);
        }
        Ok(times)
    };
    let clock = Instant::now();
    if let [only] = trainers {
        let times = work(only)?;
        return Ok((times, clock.elapsed().as_secs_f64()));
    }
    let found = std::thread::scope(|scope| {
        let started: Vec<_> = trainers.iter_mut().map(|t| scope.spawn(|| work(t))).collect();
        started.into_iter().map(|t| t.join().expect("no trainer panics")).collect::<Vec<_>>()
    });
    let wall = clock.elapsed().as_secs_f64();
    let found = found.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    Ok((found.into_iter().flatten().collect(), wall))
}

/// Time of the reductions of a plan, done once more on numbers like those of a flow.
fn reduction_seconds(plan: &Plan) -> f64 {
    let largest = plan.groups().iter().map(|group| group.pairs()).max().unwrap_or(0);
    let numbers: Vec<f64> = (0..largest).map(|i| (0.7 * i as f64).sin()).collect();
    let (mut log_g, mut d) = (numbers.clone(), vec![0.0; largest]);
    let start = Instant::now();
    for group in plan.groups() {
        let len = group.pairs();
        log_g[..len].copy_from_slice(&numbers[..len]);
        std::hint::black_box(reduce(plan, group, 0.0, &mut log_g[..len], &mut d[..len]));
    }
    start.elapsed().as_secs_f64()
}
