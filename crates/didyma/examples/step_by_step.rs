//! Inference step by step, for those who simulate themselves: propose, simulate, append, train, and again.
//!
//! `cargo run --release -p didyma --example step_by_step`

use didyma::parallel::cores;
use didyma::steps::{Drawn, Steps};
use didyma::{Config, Prior, Result, Rows};

fn main() -> Result<()> {
    let mut config = Config::default();
    config.train.steps = Some(200);
    let prior = Prior::uniform(["angle", "speed"], [0.2, 5.0], [1.4, 15.0])?;
    let mut steps = Steps::new(prior, vec![8.0, 2.4], config)?;

    for round in 1..=3 {
        let theta = steps.propose(300, cores())?.to_vec();
        // Anything may happen here: a laboratory, a cluster, another program. This is the flight of a stone.
        let x = theta.chunks_exact(2).map(|row| {
            let (angle, speed) = (row[0], row[1]);
            let seconds = 2.0 * speed * angle.sin() / 9.81;
            Ok(vec![speed * angle.cos() * seconds, speed * angle.sin() * seconds / 4.0])
        });
        steps.append(Rows::new("theta", &theta, 2)?, x.collect(), Drawn::Unsaid)?;
        let _ = steps.train(cores(), &mut ())?;
        let posterior = steps.posterior().expect("a round is trained");
        let speeds: Vec<f64> = posterior.sample(1000, 1)?.rows().map(|row| row[1]).collect();
        let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
        println!("round {round}: the speed is about {mean:.2} m/s");
    }
    Ok(())
}
