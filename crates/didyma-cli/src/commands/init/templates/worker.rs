//! A worker for Didyma: reads requests, simulates, answers. Both are JSON, one object a line:
//!
//! ```text
//! {"id":7,"seed":1234567890123,"theta":[2.0,0.7]}      a request on standard input
//! {"id":7,"x":[2.07,1.39,0.99,0.48,0.14]}              its answer on standard output
//! {"id":7,"error":"the solver did not converge"}       or why there is none
//! ```
//!
//! theta has the parameters in the order of problem.toml, x the summaries. Put your simulator into `simulate`; what
//! follows can stay as it is. Compile with: rustc -O worker.rs

use std::io::{BufRead, Write};
use std::panic::catch_unwind;

const TIMES: [f64; 5] = [0.0, 0.5, 1.0, 2.0, 4.0];
const NOISE: f64 = 0.1;

// ==== Your simulator =================================================================================================
/// The summaries at these parameters. All randomness has to come from the seed: the same seed, the same summaries.
fn simulate(theta: &[f64], seed: u64) -> Result<Vec<f64>, String> {
    let &[amplitude, rate] = theta else {
        return Err(format!("theta has {} numbers, not 2", theta.len()));
    };
    let mut state = seed;
    Ok(TIMES.iter().map(|t| amplitude * (-rate * t).exp() + NOISE * normal(&mut state)).collect())
}
// =====================================================================================================================

/// SplitMix64: a number above 0 and below 1.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (((z ^ (z >> 31)) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

/// A standard normal number, by Box and Muller.
fn normal(state: &mut u64) -> f64 {
    let radius = (-2.0 * uniform(state).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(state)).cos()
}

/// What a field of a request holds. Requests always have the same form, so that nothing more is needed.
fn field<'a>(request: &'a str, key: &str, end: &[char]) -> Result<&'a str, String> {
    let found =
        request.split_once(&format!("\"{key}\":")).and_then(|(_, rest)| rest.split(end).next());
    found.map(str::trim).ok_or_else(|| format!("the request has no {key}"))
}

fn answer(request: &str) -> Result<Vec<f64>, String> {
    let seed = field(request, "seed", &[',', '}'])?;
    let seed = seed.parse().map_err(|_| format!("the seed is {seed}"))?;
    let list = field(request, "theta", &[']'])?.trim_start_matches('[');
    let number = |text: &str| text.trim().parse().map_err(|_| format!("a parameter is {text}"));
    let theta: Vec<f64> = list.split(',').map(number).collect::<Result<_, _>>()?;
    catch_unwind(|| simulate(&theta, seed)).unwrap_or_else(|_| Err("the simulator panicked".into()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        // One request, or a list of them with `batch` in problem.toml.
        for request in line?.split('{').skip(1) {
            let id = field(request, "id", &[',', '}'])?;
            match answer(request) {
                Ok(x) => {
                    let x: Vec<String> = x.iter().map(|value| format!("{value:?}")).collect();
                    writeln!(answers, "{{\"id\":{id},\"x\":[{}]}}", x.join(","))?;
                }
                Err(reason) => {
                    let reason = reason.replace(['"', '\\', '\n', '\t'], " ");
                    writeln!(answers, "{{\"id\":{id},\"error\":\"{reason}\"}}")?;
                }
            }
            answers.flush()?;
        }
    }
    Ok(())
}
