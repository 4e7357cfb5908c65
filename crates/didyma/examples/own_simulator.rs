//! A simulator of one's own, which may fail; a run on the disk that can be stopped and continued, seen event by event.
//!
//! `cargo run --release -p didyma --example own_simulator -- DIRECTORY`; the same command again continues the run.

use didyma::rng::SimulationStream;
use didyma::simulator::SimulationFailed;
use didyma::{Event, Marginal, Method, Observer, Prior, Problem, Result, Simulator, infer};
use rand::RngExt;
use std::ops::ControlFlow;

/// The number of machines that still run after a day, and the mean time to failure of the others.
struct Machines;

impl Simulator for Machines {
    fn theta_dim(&self) -> usize {
        1
    }

    fn x_dim(&self) -> usize {
        2
    }

    fn simulate(
        &self,
        theta: &[f64],
        rng: &mut SimulationStream,
        x: &mut [f64],
    ) -> std::result::Result<(), SimulationFailed> {
        let lives: Vec<f64> = (0..50).map(|_| -rng.random::<f64>().ln() / theta[0]).collect();
        let failed: Vec<f64> = lives.into_iter().filter(|life| *life < 1.0).collect();
        if failed.is_empty() {
            return Err(SimulationFailed("no machine failed: there is no mean".to_owned()));
        }
        x[0] = (50 - failed.len()) as f64;
        x[1] = failed.iter().sum::<f64>() / failed.len() as f64;
        Ok(())
    }
}

/// Prints a line for each round.
struct Rounds;

impl Observer for Rounds {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        if let Event::RoundFinished { report, .. } = event {
            println!("round {}: {} simulations", report.round, report.simulations);
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn main() -> Result<()> {
    let prior = Prior::new([("rate", Marginal::LogNormal { mean: 0.0, sd: 1.0 })])?;
    let problem = Problem::new(prior, Machines, [18.0, 0.43])?;
    let mut rounds = Rounds;
    let inference = infer(&problem).name("machines").method(Method::Tgrr).rounds(3);
    let inference = inference.simulations(300).set("train.steps", 200).observer(&mut rounds);
    let found = match std::env::args().nth(1) {
        Some(directory) => inference.resume(directory).run()?,
        None => inference.run()?,
    };
    println!("{}", found.summary());
    Ok(())
}
