//! `didyma bench step`: how long a training step takes, and what fraction of the machine that is.

use crate::args::StepArgs;
use didyma::estimator::{Named, Plan, Target, reduce};
use didyma::kernel::{Real, gemm_peak};
use didyma::rng::Streams;
use didyma::workload::Steps;
use serde::Serialize;
use std::fmt;
use std::time::Instant;

/// Steps before the clock starts.
const WARM_UP: usize = 3;
/// Each part of the measurement: a stretch of matrix products, then a stretch of steps.
const PARTS: u32 = 3;
/// Seconds of matrix products for each second of steps.
const PEAK_SHARE: f64 = 0.15;

/// What was measured; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct StepReport {
    task: &'static str,
    method: &'static str,
    threads: usize,
    ms_per_step: f64,
    pairs_per_step: f64,
    pairs_per_second: f64,
    parameters: usize,
    flops_per_step: f64,
    gemm_gflops: f64,
    fraction_of_gemm_peak: f64,
    target: String,
    planning_ms: f64,
    reduction_ms: f64,
    estimator_share: f64,
    /// Absent where the system does not tell.
    peak_rss_mb: Option<f64>,
    kernels: &'static str,
    steps: usize,
    fastest_ms: f64,
}

/// Times steps and matrix products by turns, so that both see the same machine.
pub fn step(args: &StepArgs) -> anyhow::Result<StepReport> {
    let (shape, settings, threads) = (args.task(), args.settings(), args.threads());
    let method = settings.method;
    let streams = Streams::new(1);
    let flow = shape.flow()?;
    let mut engine = shape.engine(&streams, threads)?;
    let mut steps = Steps::new(streams, settings, args.pool)?;
    let mut plan = Plan::default();
    let mut step = || -> anyhow::Result<Timing> {
        let start = Instant::now();
        steps.plan_next(&mut plan)?;
        let planned = start.elapsed().as_secs_f64();
        engine.step(&plan, 1e-4)?;
        let total = start.elapsed().as_secs_f64();
        let (pairs, flops) = (plan.pairs(), flow.flops(plan.pairs(), plan.groups().len()));
        Ok(Timing { total, planned, reduced: reduction_seconds(&plan), pairs, flops })
    };
    (0..WARM_UP).try_for_each(|_| step().map(drop))?;
    let part = args.seconds / f64::from(PARTS);
    let (mut times, mut gemm_gflops) = (Vec::new(), 0.0f64);
    for _ in 0..PARTS {
        gemm_gflops = gemm_gflops.max(gemm_peak(threads, PEAK_SHARE * part));
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < part || times.is_empty() {
            times.push(step()?);
        }
    }
    let sizes =
        Sizes { task: shape.name, method: method.name(), threads, parameters: flow.params_len() };
    Ok(StepReport::new(sizes, &times, gemm_gflops, steps.estimator().target()))
}

/// What was timed.
struct Sizes {
    task: &'static str,
    method: &'static str,
    threads: usize,
    parameters: usize,
}

impl StepReport {
    fn new(sizes: Sizes, times: &[Timing], gemm_gflops: f64, target: Target) -> Self {
        let Sizes { task, method, threads, parameters } = sizes;
        let mean = |of: fn(&Timing) -> f64| times.iter().map(of).sum::<f64>() / times.len() as f64;
        let (pairs_per_step, flops_per_step) = (mean(|t| t.pairs as f64), mean(|t| t.flops as f64));
        // Steps of random levels differ in size: a typical time per pair, times the mean number of pairs.
        let typical = |of: fn(&Timing) -> f64| {
            median(times.iter().map(|t| of(t) / t.pairs as f64)) * pairs_per_step
        };
        let seconds = typical(|t| t.total);
        let (planning, reduction) = (typical(|t| t.planned), typical(|t| t.reduced));
        Self {
            task,
            method,
            threads,
            ms_per_step: 1e3 * seconds,
            pairs_per_step,
            pairs_per_second: pairs_per_step / seconds,
            parameters,
            flops_per_step,
            gemm_gflops,
            fraction_of_gemm_peak: flops_per_step / seconds / 1e9 / gemm_gflops,
            target: target.to_string(),
            planning_ms: 1e3 * planning,
            reduction_ms: 1e3 * reduction,
            estimator_share: (planning + reduction / threads as f64) / seconds,
            peak_rss_mb: peak_rss_mb(),
            kernels: f32::kernels().name,
            steps: times.len(),
            fastest_ms: 1e3 * times.iter().map(|t| t.total).fold(f64::INFINITY, f64::min),
        }
    }
}

/// One step, in seconds.
struct Timing {
    total: f64,
    planned: f64,
    reduced: f64,
    pairs: usize,
    flops: u64,
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

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl fmt::Display for StepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 {
            "1 thread".to_owned()
        } else {
            format!("{} threads", self.threads)
        };
        writeln!(f, "{}, {}, {threads}, {} kernels", self.task, self.method, self.kernels)?;
        let Self { ms_per_step, steps, fastest_ms, .. } = self;
        writeln!(
            f,
            "  a step       {ms_per_step:.2} ms (median of {steps}, fastest {fastest_ms:.2})"
        )?;
        let (pairs, rate) = (self.pairs_per_step, self.pairs_per_second);
        writeln!(f, "  pairs        {pairs:.0} a step, {rate:.0} a second")?;
        writeln!(f, "  parameters   {}", self.parameters)?;
        let (work, rate) =
            (self.flops_per_step / 1e9, self.flops_per_step / self.ms_per_step / 1e6);
        writeln!(f, "  arithmetic   {work:.3} GFLOP a step, {rate:.1} GFLOP/s")?;
        let (peak, share) = (self.gemm_gflops, 100.0 * self.fraction_of_gemm_peak);
        write!(
            f,
            "  of the peak  {share:.0} % of the {peak:.1} GFLOP/s of a large matrix product here"
        )?;
        let (planning, reduction) = (self.planning_ms, self.reduction_ms);
        let share = 100.0 * self.estimator_share;
        write!(
            f,
            "\n  estimator    {share:.2} % (planning {planning:.3} ms, reductions {reduction:.3} ms of one thread)"
        )?;
        write!(f, "\n  its mean     {}", self.target)?;
        if let Some(memory) = self.peak_rss_mb {
            write!(f, "\n  memory       {memory:.0} MB at most")?;
        }
        Ok(())
    }
}

/// Peak resident memory of this process, where the system tells (Linux).
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
