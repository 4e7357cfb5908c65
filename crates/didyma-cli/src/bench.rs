//! `didyma bench step`: how long a training step takes, and what fraction of the machine that is.

use crate::args::StepArgs;
use didyma::kernel::{Real, gemm_peak};
use didyma::rng::Streams;
use didyma::train::Engine;
use serde::Serialize;
use std::fmt;
use std::time::Instant;

/// Plans that are gone through in turn, so that no step has the data of the last in its cache.
const PLANS: u64 = 64;
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
    /// Absent where the system does not tell.
    peak_rss_mb: Option<f64>,
    #[serde(skip)]
    steps: usize,
    #[serde(skip)]
    fastest_ms: f64,
}

/// Times steps and matrix products by turns, so that both see the same machine.
pub fn step(args: &StepArgs) -> anyhow::Result<StepReport> {
    let (shape, (method_name, method)) = (args.task(), args.method());
    let threads = args.threads();
    let streams = Streams::new(1);
    let flow = shape.flow()?;
    let plans = shape.plans(&streams, method, PLANS);
    let mut engine = shape.engine(&streams, threads)?;
    let mut next_plan = plans.iter().cycle();
    let mut step = || -> anyhow::Result<f64> {
        let plan = next_plan.next().expect("a cycle does not end");
        let start = Instant::now();
        engine.step(plan, 1e-4)?;
        Ok(start.elapsed().as_secs_f64())
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
    times.sort_by(f64::total_cmp);
    let seconds = times[times.len() / 2];
    let mean = |total: usize| total as f64 / plans.len() as f64;
    let pairs_per_step = mean(plans.iter().map(|plan| plan.pairs()).sum());
    let flops = plans.iter().map(|plan| flow.flops(plan.pairs(), plan.groups().len()));
    let flops_per_step = flops.sum::<u64>() as f64 / plans.len() as f64;
    Ok(StepReport {
        task: shape.name,
        method: method_name,
        threads,
        ms_per_step: 1e3 * seconds,
        pairs_per_step,
        pairs_per_second: pairs_per_step / seconds,
        parameters: flow.params_len(),
        flops_per_step,
        gemm_gflops,
        fraction_of_gemm_peak: flops_per_step / seconds / 1e9 / gemm_gflops,
        peak_rss_mb: peak_rss_mb(),
        steps: times.len(),
        fastest_ms: 1e3 * times[0],
    })
}

impl fmt::Display for StepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 {
            "1 thread".to_owned()
        } else {
            format!("{} threads", self.threads)
        };
        let kernels = f32::kernels().name;
        writeln!(f, "{}, {}, {threads}, {kernels} kernels", self.task, self.method)?;
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
