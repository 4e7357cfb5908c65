//! Hodgkin-Huxley: the membrane of a neuron under a current step (Pospischil et al., 2008, kinetics).

use super::{Density, Reference, Task, words};
use crate::error::Result;
use crate::problem::prior::Prior;
use crate::problem::question::Problem;
use crate::problem::simulator::from_fn;
use crate::rng::SimulationStream;
use rand_distr::{Distribution, StandardNormal};

/// Milliseconds of a step, and steps of a run.
const DT: f64 = 0.01;
const STEPS: usize = 12_000;
/// Reversal potentials of sodium and potassium, mV; membrane potential at the start.
const E_NA: f64 = 53.0;
const E_K: f64 = -107.0;
const V_START: f64 = -70.0;
/// 5·10⁻⁴ μA into a soma of 70 μm, in μA/cm²: π (70·10⁻⁴ cm)² of membrane.
const CURRENT: f64 = 5e-4 / (std::f64::consts::PI * 70e-4 * 70e-4);
/// Samples in which a peak does not count after another: 0.5 ms.
const DEAD_TIME: usize = 50;
/// Samples with current: 10 ms to 110 ms.
const ON: std::ops::Range<usize> = 1000..11_000;

pub(super) fn task() -> Result<Task> {
    Ok(Task {
        name: "hodgkin-huxley".into(),
        about: "a neuron's membrane under a current step, eight parameters".into(),
        problem: Problem::new(
            Prior::uniform(
                ["g_na", "g_k", "g_leak", "g_m", "tau_max", "minus_v_t", "noise", "minus_e_leak"],
                [0.5, 1e-4, 1e-4, 1e-4, 50.0, 40.0, 1e-4, 35.0],
                [80.0, 15.0, 0.6, 0.6, 3000.0, 90.0, 0.15, 100.0],
            )?,
            from_fn(8, 7, hodgkin_huxley),
            OBSERVATION.to_vec(),
        )?,
        truth: Some(vec![50.0, 5.0, 0.1, 0.07, 600.0, 60.0, 0.1, 70.0]),
        // Standard deviations under the prior: at the truth the spike count does not vary at all.
        scale: Some(vec![7.656, 14.15, 7.919, 15.52, 358.5, 4.100, 19.10]),
        labels: words(["g_Na", "g_K", "g_l", "g_M", "τ_max", "−V_T", "σ", "−E_l"]),
        summaries: words([
            "spikes",
            "rest_mean",
            "rest_sd",
            "mean",
            "variance",
            "skewness",
            "kurtosis",
        ]),
        support: None,
        reference: Reference::None,
        density: Density::Unknown,
    })
}

/// One run at the truth: `didyma simulate hodgkin-huxley --theta truth -n 1`.
const OBSERVATION: [f64; 7] =
    [5.0, -70.15597, 0.054024562, -56.460377, 375.65787, 3.6968699, 18.287157];

/// The parameters by name, with what depends on them alone.
struct Membrane {
    g_na: f64,
    g_k: f64,
    g_leak: f64,
    g_m: f64,
    e_leak: f64,
    v_t: f64,
    /// 1/τ_max.
    slow: f64,
    /// σ/√dt.
    noise: f64,
    /// exp(0.05 (V_T + 35)).
    shift: f64,
}

/// Opening fractions of the channels: sodium activation m and inactivation h, potassium n, slow potassium p.
struct Gates([f64; 4]);

impl Membrane {
    fn new(theta: &[f64]) -> Self {
        let v_t = -theta[5];
        Self {
            g_na: theta[0],
            g_k: theta[1],
            g_leak: theta[2],
            g_m: theta[3],
            slow: 1.0 / theta[4],
            v_t,
            noise: theta[6] / DT.sqrt(),
            e_leak: -theta[7],
            shift: (0.05 * (v_t + 35.0)).exp(),
        }
    }

    /// Steady state of every gate at V, and the rate 1/τ at which it is approached.
    ///
    /// All exponentials of the kinetics but one are powers of w = exp((V − V_T)/40).
    fn kinetics(&self, v: f64) -> ([f64; 4], [f64; 4]) {
        const E_3_25: f64 = 25.790_339_917_193_062;
        const E_3: f64 = 20.085_536_923_187_668;
        const E_8: f64 = 2_980.957_987_041_728_3;
        const E_0_25: f64 = 1.284_025_416_687_741_5;
        let u = v - self.v_t;
        let (w, inverse) = ((u * (1.0 / 40.0)).exp(), (-u * (1.0 / 40.0)).exp());
        let w2 = w * w;
        let w8 = (w2 * w2) * (w2 * w2);
        let inverse2 = inverse * inverse;
        let inverse8 = (inverse2 * inverse2) * (inverse2 * inverse2);
        let m_open = 1.28 * ratio(-0.25 * (u - 13.0), E_3_25 * inverse8 * inverse2);
        let m_close = 1.4 * ratio(0.2 * (u - 40.0), w8 * (1.0 / E_8));
        let h_open = 0.128 * (-(u - 17.0) * (1.0 / 18.0)).exp();
        let h_close = 4.0 / (1.0 + E_8 * inverse8);
        let n_open = 0.16 * ratio(-0.2 * (u - 15.0), E_3 * inverse8);
        let n_close = 0.5 * E_0_25 * inverse;
        let s = w2 * self.shift;
        let rates =
            [m_open + m_close, h_open + h_close, n_open + n_close, (3.3 * s + 1.0 / s) * self.slow];
        let steady =
            [m_open / rates[0], h_open / rates[1], n_open / rates[2], s * s / (1.0 + s * s)];
        (steady, rates)
    }

    /// Exponential Euler: every variable relaxes to its steady state, the gates at the new potential.
    fn step(&self, v: f64, gates: &mut Gates, current: f64) -> f64 {
        let [m, h, n, p] = gates.0;
        let sodium = self.g_na * m * m * m * h;
        let potassium = self.g_k * (n * n) * (n * n) + self.g_m * p;
        let conductance = sodium + potassium + self.g_leak;
        let drive = sodium * E_NA + potassium * E_K + self.g_leak * self.e_leak + current;
        let steady = drive / conductance;
        let v = steady + (v - steady) * decay(DT * conductance);
        let (steady, rates) = self.kinetics(v);
        for i in 0..4 {
            gates.0[i] = steady[i] + (gates.0[i] - steady[i]) * decay(DT * rates[i]);
        }
        v
    }
}

/// z/(eᶻ − 1), given eᶻ.
fn ratio(z: f64, exp_z: f64) -> f64 {
    if z.abs() < 1e-4 { 1.0 - 0.5 * z } else { z / (exp_z - 1.0) }
}

/// e⁻ᶻ for z ≥ 0: the rates of this model times dt stay below 1, where ten terms of the series of e^(−z/4) are
/// right to 3·10⁻¹³ and cost a fraction of the general function. Pairs of terms are added up independently of
/// each other, since the next step waits for the result.
fn decay(z: f64) -> f64 {
    if z > 1.0 {
        return (-z).exp();
    }
    let t = -0.25 * z;
    let t2 = t * t;
    let low = (1.0 + t) + t2 * (1.0 / 2.0 + t * (1.0 / 6.0));
    let middle = (1.0 / 24.0 + t * (1.0 / 120.0)) + t2 * (1.0 / 720.0 + t * (1.0 / 5040.0));
    let high = 1.0 / 40_320.0 + t * (1.0 / 362_880.0);
    let t4 = t2 * t2;
    let sum = low + t4 * (middle + t4 * high);
    let squared = sum * sum;
    squared * squared
}

/// The potential at every step, 12,001 of them; `noise` gives standard normal numbers.
fn trace(theta: &[f64], mut noise: impl FnMut() -> f64) -> Vec<f64> {
    let membrane = Membrane::new(theta);
    let mut v = V_START;
    let mut gates = Gates(membrane.kinetics(v).0);
    let mut trace = Vec::with_capacity(STEPS + 1);
    trace.push(v);
    for step in 0..STEPS {
        let current = if ON.contains(&step) { CURRENT } else { 0.0 };
        v = membrane.step(v, &mut gates, current + membrane.noise * noise());
        trace.push(v);
    }
    trace
}

/// Eight parameters, a membrane potential over 120 ms, and seven summaries of it.
pub fn hodgkin_huxley(theta: &[f64], rng: &mut SimulationStream, x: &mut [f64]) {
    summarise(&trace(theta, || StandardNormal.sample(rng)), x);
}

/// Spike count under current; mean and standard deviation of the potential at rest; mean, variance, skewness and
/// kurtosis under current.
fn summarise(v: &[f64], x: &mut [f64]) {
    let (rest, before, on) =
        (&v[..ON.start], &v[ON.start - 100..ON.start], &v[ON.start + 1..ON.end]);
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let central = |v: &[f64]| {
        let (mean, mut moments) = (mean(v), [0.0; 3]);
        for value in v {
            let d = value - mean;
            let squared = d * d;
            moments[0] += squared;
            moments[1] += squared * d;
            moments[2] += squared * squared;
        }
        (mean, moments.map(|moment| moment / v.len() as f64))
    };
    let (on_mean, [variance, third, fourth]) = central(on);
    let rest_sd = central(before).1[0].sqrt();
    let (skewness, kurtosis) = (third / variance.powf(1.5), fourth / (variance * variance));
    let spikes = spike_times(v).len() as f64;
    let all = [spikes, mean(rest), rest_sd, on_mean, variance, skewness, kurtosis];
    x.copy_from_slice(&all);
}

/// Times in ms of the spikes under current: the last rising sample of each peak above −10 mV, unless another peak
/// came at most 0.5 ms before.
fn spike_times(v: &[f64]) -> Vec<f64> {
    let above = |i: usize| v[i].max(-10.0);
    let falls = |i: usize| i + 1 < v.len() && above(i + 1) < above(i);
    let value = |i: usize| if falls(i) { -10.0 } else { above(i) };
    let peaks = (ON.start + 1..ON.end).filter(|&i| value(i + 1) < value(i));
    let (mut last, mut times) = (None, Vec::new());
    for peak in peaks {
        if last.is_none_or(|last| peak - last > DEAD_TIME) {
            times.push(peak as f64 * DT);
        }
        last = Some(peak);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUTH: [f64; 8] = [50.0, 5.0, 0.1, 0.07, 600.0, 60.0, 0.1, 70.0];

    /// Numbers of another program, in double precision.
    #[test]
    fn without_noise_the_potential_is_known() {
        let v = trace(&TRUTH, || 0.0);
        assert_eq!(v.len(), 12_001);
        for (time, expected) in [
            (1, -70.072146),
            (5, -70.297122),
            (10, -70.475080),
            (12, -64.648067),
            (15, -57.823238),
            (20, 10.482197),
            (30, -55.957355),
            (50, -50.477643),
            (70, -48.296843),
            (90, -52.687414),
            (110, -55.439634),
            (120, -71.384570),
        ] {
            let found = v[100 * time];
            assert!((found - expected).abs() < 1e-5, "{time} ms: {found} instead of {expected}");
        }
        let times = spike_times(&v);
        let expected = [19.54, 34.26, 51.31, 70.82, 92.68];
        assert_eq!(times.len(), expected.len());
        assert!(times.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{times:?}");
        let mut x = [0.0; 7];
        summarise(&v, &mut x);
        let expected = [5.0, -70.277192, 0.008278, -56.453449, 375.185373, 3.703806, 18.324726];
        // Printed with six decimals.
        assert!(x.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{x:?}");
    }

    #[test]
    fn the_short_exponential_is_the_long_one() {
        for i in 0..=400 {
            let z = f64::from(i) / 200.0;
            assert!((decay(z) / (-z).exp() - 1.0).abs() < 2e-12, "{z}");
        }
    }

    /// Peaks: the sample before the fall, above −10 mV, at least 0.5 ms after the last one, and under current only.
    #[test]
    fn spikes_are_counted_by_their_rule() {
        let mut v = vec![-60.0; 12_001];
        for (peak, height) in
            [(500, 20.0), (2000, 20.0), (2030, 5.0), (4000, -12.0), (11_500, 30.0)]
        {
            v[peak] = height - 1.0;
            v[peak + 1] = height;
        }
        assert_eq!(spike_times(&v), [20.0]);
        v[2100] = 3.0;
        v[2101] = 4.0;
        assert_eq!(spike_times(&v), [20.0, 21.0]);
    }
}
