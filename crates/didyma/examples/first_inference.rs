//! The first program: a prior, a simulator, an observation, and the posterior.
//!
//! `cargo run --release -p didyma --example first_inference`

use didyma::{Prior, Problem, Result, from_fn, infer};
use rand::RngExt;

fn main() -> Result<()> {
    // θ ~ U(-1, 1), x = θ² + a little noise: the posterior at x = 0.25 has two modes, ±0.5.
    let prior = Prior::uniform(["theta"], [-1.0], [1.0])?;
    let simulator = from_fn(1, 1, |theta, rng, x| {
        x[0] = theta[0] * theta[0] + rng.random_range(-0.05..0.05);
    });

    let problem = Problem::new(prior, simulator, [0.25])?;
    // Few simulations and steps, so that it takes a second or two.
    let found = infer(&problem).rounds(3).simulations(300).set("train.steps", 300).run()?;
    println!("{}", found.summary());
    let theta = found.posterior().sample(1000, 2)?; // rows, a seed

    let near = |mode: f64| theta.rows().filter(|row| (row[0] - mode).abs() < 0.15).count();
    println!("{} samples are near -0.5, {} near 0.5", near(-0.5), near(0.5));
    assert!(near(-0.5) > 300 && near(0.5) > 300, "the posterior has two modes of equal weight");
    Ok(())
}
