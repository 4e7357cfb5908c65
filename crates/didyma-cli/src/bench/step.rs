//! `didyma bench step`: how long a training step takes, and what fraction of the machine that is.

use super::report::{Profile, Sizes, StepReport, Timing};
use crate::args::StepArgs;
use crate::device::Opened;
use didyma::device::Machine;
use didyma::estimator::{Named, Plan, reduce};
use didyma::kernel::gemm_peak;
use didyma::rng::{Purpose, Streams};
use didyma::train::Engine;
use didyma::workload::{Shape, Steps};
use didyma_cuda::Cuda;
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

/// One training under way.
struct Trainer {
    engine: Box<dyn Engine>,
    steps: Steps,
    plan: Plan,
    stretch: usize,
}

impl Trainer {
    fn new(args: &StepArgs, machine: Machine, seed: u64, stretch: usize) -> anyhow::Result<Self> {
        let streams = Streams::new(seed);
        let engine = args.task().engine(&streams, machine)?;
        let steps = Steps::new(streams, args.settings(), args.pool)?.of_batch(args.batch);
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

/// Times steps and matrix products by turns, so that both see the same machine.
pub fn step(args: &StepArgs) -> anyhow::Result<StepReport> {
    let opened = args.device.open()?;
    let (shape, threads) = (args.task(), args.threads());
    let flow = shape.flow()?;
    let stretch = match opened {
        Opened::Cpu => STRETCH_CPU,
        Opened::Cuda(_) => STRETCH_GPU,
    };
    let each = (threads / args.seeds).max(1);
    let mut trainers = (0..args.seeds as u64)
        .map(|seed| Trainer::new(args, opened.machine(each), 1 + seed, stretch))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let warm =
        |trainer: &mut Trainer| (0..WARM_UP).try_for_each(|_| trainer.stretch(&flow).map(drop));
    trainers.iter_mut().try_for_each(warm)?;
    let profile = match &opened {
        Opened::Cpu => None,
        Opened::Cuda(cuda) => Some(profile(cuda, args, shape)?),
    };
    let part = args.seconds / f64::from(PARTS);
    let (mut times, mut peak) = (Vec::new(), profile.as_ref().map_or(0.0, |p| p.peak_gflops));
    let mut wall = 0.0;
    for _ in 0..PARTS {
        if profile.is_none() {
            peak = f64::max(peak, gemm_peak(threads, PEAK_SHARE * part));
        }
        let (part_times, elapsed) = together(&mut trainers, &flow, part)?;
        times.extend(part_times);
        wall += elapsed;
    }
    let target = trainers[0].steps.estimator().target();
    let sizes = Sizes {
        task: shape.name,
        method: args.settings().method.name(),
        device: opened.machine(threads).device.describe(),
        threads,
        batch: args.batch,
        seeds: args.seeds,
        parameters: flow.params_len(),
    };
    Ok(StepReport::new(sizes, &times, wall, peak, target, profile))
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

/// Kernel by kernel, on plans like those that are timed.
fn profile(cuda: &Cuda, args: &StepArgs, shape: Shape) -> anyhow::Result<Profile> {
    let streams = Streams::new(1);
    let (flow, data) = (shape.flow()?, shape.data(&streams)?);
    let params = flow.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
    let mut steps = Steps::new(streams, args.settings(), args.pool)?.of_batch(args.batch);
    let mut plans = vec![Plan::default(); PROFILED];
    plans.iter_mut().try_for_each(|plan| steps.plan_next(plan))?;
    let found = cuda.profile(flow, params, &data, &plans)?;
    Ok(Profile {
        kernels: found.kernels.into_iter().map(|(name, s)| (name, 1e6 * s)).collect(),
        device_mb: found.bytes as f64 / 1e6,
        peak_gflops: found.peak_flops / 1e9,
    })
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
