//! How often the check of held-out simulations doubts exact posteriors, and how often it finds broken ones: the table of
//! `docs/trust.md`.
//!
//! ```console
//! $ cargo run --release -p didyma-lab --example calibration            # 200 repetitions of each
//! $ cargo run --release -p didyma-lab --example calibration -- 20      # fewer
//! $ cargo run --release -p didyma-lab --example calibration -- 200 exact    # those alone whose name begins so
//! ```
//!
//! A repetition is what the last of ten rounds of 1000 has: 400 simulations at parameters of a proposal p̃ around the exact
//! posterior at x_o, with 100 draws of q for each. q is exact, or exact but for one fault.

mod exact;
mod faults;

use didyma::calibration::{Calibration, Candidates, Evidence, Uniformity, share_outside};
use didyma::parallel;
use didyma::rng::{Purpose, SimulationStream, Streams};
use didyma::run::{Verdict, Word};
use didyma::{Result, Rows};
use exact::Exact;
use faults::{FAULTS, Fault};

const ROWS: usize = 400;
const DRAWS: usize = 100;
/// Draws that tell how much of q lies where nothing was simulated.
const OUTSIDE: usize = 1000;

/// One repetition.
fn calibration(exact: &Exact, fault: Fault, repetition: u64) -> Result<Calibration> {
    let streams = Streams::new(1000 + repetition);
    let mut rng = streams.simulations(Purpose::Synthetic, 1).stream(repetition);
    let (dim, each) = (exact.dim(), DRAWS + 1);
    let (mut theta, mut log_q, mut log_weights, mut all_x) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in 0..ROWS {
        let (own, x) = exact.simulation(&mut rng);
        let law = exact.law(fault.of_row(row), &x, DRAWS, &mut rng);
        for candidate in [own].iter().chain(&law.draws) {
            log_weights.push(exact.log_weight(candidate));
            log_q.push((law.log_density)(candidate));
            theta.extend_from_slice(candidate);
        }
        all_x.extend(x);
    }
    let rows = Rows::new("theta", &theta, dim)?;
    let (candidates, _) = Candidates::new(each, &log_weights);
    let candidates =
        candidates.with_parameters(rows)?.with(log_q).with_distances(rows, &streams)?;
    let x = (Rows::new("x", &all_x, exact.x_o.len())?, &*exact.x_o);
    let evidence = Evidence::HeldOut(10, 10);
    let found = Calibration::of_candidates(&candidates, &exact.names(), x, evidence, &streams, 1)?;
    Ok(Calibration { outside: Some(outside(exact, fault, &mut rng)), ..found })
}

/// Share of q at x_o where the proposal has next to nothing.
fn outside(exact: &Exact, fault: Fault, rng: &mut SimulationStream) -> f64 {
    let proposed = (0..OUTSIDE).map(|_| exact.log_proposal(&exact.propose(rng))).collect();
    let drawn = (0..OUTSIDE / DRAWS).flat_map(|row| {
        let law = exact.law(fault.of_row(row), &exact.x_o, DRAWS, rng);
        let of = |theta: &Vec<f64>| exact.log_proposal(theta);
        law.draws.iter().map(of).collect::<Vec<_>>()
    });
    share_outside(proposed, &drawn.collect::<Vec<_>>())
}

/// A line of the table.
fn line(name: &str, exact: &Exact, found: &[Calibration]) -> Result<String> {
    let share = |is: &dyn Fn(&Calibration) -> bool| {
        let count = found.iter().filter(|c| is(c)).count();
        format!("{:.1} %", 100.0 * count as f64 / found.len() as f64)
    };
    let word = |c: &Calibration| Verdict::of_calibration(&Ok(c.clone())).word;
    // Of one parameter: p-values of several are dependent.
    let p_values: Vec<f64> = found.iter().map(|c| c.parameters[0].p_value).collect();
    let uniform = match found.len() >= 20 {
        true => format!("{:.2}", Uniformity::of(&p_values)?.ks_p_value),
        false => String::new(),
    };
    let effective = found.iter().map(|c| c.effective).sum::<f64>() / found.len() as f64;
    Ok(format!(
        "| {name} | {} | {effective:.0} | {} | {} | {} | {} | {uniform} | {} | {} |",
        exact.name,
        share(&|c| c.ranks_p_value() < 0.05),
        share(&|c| c.ranks_p_value() < 0.01),
        share(&|c| c.moments_p_value < 0.05),
        share(&|c| c.moments_p_value < 0.01),
        share(&|c| word(c) != Word::Trust),
        share(&|c| word(c) == Word::DoNotTrust),
    ))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let repetitions = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(200);
    let asked = arguments.next().unwrap_or_default();
    println!("{ROWS} simulations, {DRAWS} draws each, {repetitions} repetitions\n");
    println!(
        "| q | task | effective | ranks p < .05 | p < .01 | moments p < .05 | p < .01 | uniform, p | not trusted | *do not trust* |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for exact in [Exact::new("gaussian-linear", 1, 1.25), Exact::new("two-moons", 200, 0.1)] {
        for (name, fault) in FAULTS.into_iter().filter(|(name, _)| name.starts_with(&asked)) {
            let one = |i| calibration(&exact, fault, i as u64);
            let found = parallel::map(repetitions, parallel::cores(), one);
            println!("{}", line(name, &exact, &found.into_iter().collect::<Result<Vec<_>>>()?)?);
        }
    }
    Ok(())
}
