//! What `didyma bench step` says.

use didyma::estimator::Target;
use didyma::kernel::Real;
use serde::Serialize;
use std::fmt;

/// What was measured; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct StepReport {
    #[serde(flatten)]
    sizes: Sizes,
    /// Of one training.
    ms_per_step: f64,
    pairs_per_step: f64,
    /// Of all trainings together, as all rates.
    pairs_per_second: f64,
    steps_per_second: f64,
    flops_per_step: f64,
    peak_gflops: f64,
    fraction_of_peak: f64,
    floor_ms: f64,
    target: String,
    planning_ms: f64,
    reduction_ms: f64,
    /// Of a step, where the host does it all.
    estimator_share: Option<f64>,
    /// Absent where the system does not tell.
    peak_rss_mb: Option<f64>,
    kernels: &'static str,
    steps: usize,
    fastest_ms: f64,
    #[serde(flatten)]
    profile: Option<Profile>,
}

/// What was timed.
#[derive(Debug, Serialize)]
pub struct Sizes {
    pub task: &'static str,
    pub method: &'static str,
    pub device: String,
    pub threads: usize,
    pub batch: usize,
    pub seeds: usize,
    pub parameters: usize,
}

/// What only a GPU tells.
#[derive(Debug, Serialize)]
pub struct Profile {
    /// Microseconds of each kernel, one after the other.
    #[serde(rename = "kernels_us")]
    pub kernels: Vec<(&'static str, f64)>,
    /// Memory that the engine holds there.
    pub device_mb: f64,
    #[serde(skip)]
    pub peak_gflops: f64,
}

/// A stretch of steps, in seconds.
#[derive(Debug, Default)]
pub struct Timing {
    pub steps: usize,
    pub total: f64,
    pub planned: f64,
    pub reduced: f64,
    pub pairs: usize,
    pub flops: u64,
}

impl StepReport {
    pub(super) fn new(
        sizes: Sizes,
        times: &[Timing],
        wall: f64,
        peak_gflops: f64,
        target: Target,
        profile: Option<Profile>,
    ) -> Self {
        let steps = times.iter().map(|t| t.steps).sum::<usize>();
        let mean = |of: fn(&Timing) -> f64| times.iter().map(of).sum::<f64>() / steps as f64;
        let (pairs_per_step, flops_per_step) = (mean(|t| t.pairs as f64), mean(|t| t.flops as f64));
        // Steps of random levels differ in size: a typical time per pair, times the mean number of pairs.
        let typical = |of: fn(&Timing) -> f64| {
            median(times.iter().map(|t| of(t) / t.pairs as f64)) * pairs_per_step
        };
        let (planning, reduction) = (typical(|t| t.planned), typical(|t| t.reduced));
        let seconds = typical(|t| t.total);
        // One training's steps follow each other; of several, what the clock on the wall says.
        let steps_per_second = if sizes.seeds > 1 { steps as f64 / wall } else { 1.0 / seconds };
        let threads = sizes.threads as f64;
        let on_host = profile.is_none();
        let fastest = times.iter().map(|t| t.total / t.steps as f64).fold(f64::INFINITY, f64::min);
        Self {
            ms_per_step: 1e3 * seconds,
            pairs_per_step,
            pairs_per_second: pairs_per_step * steps_per_second,
            steps_per_second,
            flops_per_step,
            peak_gflops,
            fraction_of_peak: flops_per_step * steps_per_second / 1e9 / peak_gflops,
            floor_ms: flops_per_step / peak_gflops / 1e6,
            target: target.to_string(),
            planning_ms: 1e3 * planning,
            reduction_ms: 1e3 * reduction,
            estimator_share: on_host.then(|| (planning + reduction / threads) / seconds),
            peak_rss_mb: peak_rss_mb(),
            kernels: if on_host { f32::kernels().name } else { "cuda" },
            steps,
            fastest_ms: 1e3 * fastest,
            sizes,
            profile,
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl fmt::Display for StepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sizes { task, method, device, threads, batch, seeds, parameters } = &self.sizes;
        let threads = match threads {
            1 => "1 thread".to_owned(),
            many => format!("{many} threads"),
        };
        writeln!(f, "{task}, {method}, batch {batch}, {device}, {threads}")?;
        let Self { ms_per_step, steps, fastest_ms, .. } = self;
        writeln!(
            f,
            "  a step       {ms_per_step:.3} ms (median of {steps}, fastest {fastest_ms:.3})"
        )?;
        if *seeds > 1 {
            let rate = self.steps_per_second;
            writeln!(
                f,
                "  together     {rate:.0} steps a second of {seeds} trainings at once, each on a thread of its own"
            )?;
        }
        let (pairs, rate) = (self.pairs_per_step, self.pairs_per_second);
        writeln!(f, "  pairs        {pairs:.0} a step, {rate:.0} a second")?;
        writeln!(f, "  parameters   {parameters}")?;
        let (work, rate) =
            (self.flops_per_step / 1e9, self.flops_per_step * self.steps_per_second / 1e9);
        writeln!(f, "  arithmetic   {work:.3} GFLOP a step, {rate:.1} GFLOP/s")?;
        self.fmt_peak(f)?;
        write!(f, "\n  its mean     {}", self.target)?;
        if let Some(memory) = self.peak_rss_mb {
            write!(f, "\n  memory       {memory:.0} MB at most")?;
        }
        Ok(())
    }
}

impl StepReport {
    fn fmt_peak(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peak, share) = (self.peak_gflops, 100.0 * self.fraction_of_peak);
        let (planning, reduction) = (self.planning_ms, self.reduction_ms);
        let Some(Profile { kernels, device_mb, .. }) = &self.profile else {
            let estimator = 100.0 * self.estimator_share.unwrap_or(0.0);
            writeln!(
                f,
                "  of the peak  {share:.0} % of the {peak:.1} GFLOP/s of matrix products in the first-level cache here"
            )?;
            return write!(
                f,
                "  estimator    {estimator:.2} % (planning {planning:.3} ms, reductions {reduction:.3} ms of one thread)"
            );
        };
        let floor = self.floor_ms;
        writeln!(
            f,
            "  of the peak  {share:.1} % of the {peak:.0} GFLOP/s of multiply-adds here: no step is below {floor:.3} ms"
        )?;
        let parts: Vec<String> = kernels
            .iter()
            .map(|(name, us)| format!("{} {us:.1}", name.replace('_', " ")))
            .collect();
        writeln!(f, "  kernels      {} (us)", parts.join(", "))?;
        writeln!(f, "  planning     {planning:.3} ms of a host's thread, while the device works")?;
        write!(f, "  on the GPU   {device_mb:.0} MB")
    }
}

/// Peak resident memory of this process, where the system tells (Linux).
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
