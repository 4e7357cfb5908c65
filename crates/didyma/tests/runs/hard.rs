//! Ordinary inputs that are hard on the numbers: sentinels, heavy tails, many orders of magnitude, large offsets. Each has
//! an exact posterior that is normal, with standard deviation `SD` in units of its parameter.

#![allow(clippy::unwrap_used)]

use didyma::math::mean_and_deviation;
use didyma::prior::Marginal;
use didyma::rng::SimulationStream;
use didyma::{Found, Prior, Problem, Profile, Result, from_fn, infer};
use rand::RngExt;
use rand_distr::{Cauchy, Distribution, StandardNormal};

/// Deviation of the noise, and of the exact posterior where the prior is wide.
const SD: f64 = 0.1;
/// The value of x, before anything is done to it, that is observed.
const X_O: f64 = 0.2;

/// What becomes of a summary: its value, unless something else happens.
type Summary = Box<dyn Fn(f64, &mut SimulationStream) -> f64 + Send + Sync>;

/// A parameter, its summary and what is observed of it, and the exact mean and deviation of the posterior.
struct Case {
    name: String,
    prior: Marginal,
    summary: Summary,
    observed: f64,
    exact: (f64, f64),
}

fn normal(rng: &mut SimulationStream) -> f64 {
    StandardNormal.sample(rng)
}

/// θ is uniform, and its summary θ + noise is changed by `change`.
fn changed(
    name: String,
    change: impl Fn(f64, &mut SimulationStream) -> f64 + Send + Sync + 'static,
) -> Case {
    let summary = move |theta: f64, rng: &mut SimulationStream| {
        let x = theta + SD * normal(rng);
        change(x, rng)
    };
    let prior = Marginal::Uniform { low: -1.0, high: 1.0 };
    Case { name, prior, summary: Box::new(summary), observed: X_O, exact: (X_O, SD) }
}

/// A share of the simulations gives `value` instead.
fn sentinel(value: f64, share: f64) -> Case {
    changed(format!("{value:e} in {:.0} %", 100.0 * share), move |x, rng| {
        if rng.random::<f64>() < share { value } else { x }
    })
}

/// x = 10^(6 x): twelve orders of magnitude.
fn orders() -> Case {
    let case = changed("12 orders of magnitude".to_owned(), |x, _| 10f64.powf(6.0 * x));
    Case { observed: 10f64.powf(6.0 * X_O), ..case }
}

/// A far and rare exception in a summary that otherwise has its value, at any place.
fn exceptions(share: f64) -> Case {
    changed(format!("1e6 N(0, 1) in {:.0} %", 100.0 * share), move |x, rng| {
        if rng.random::<f64>() < share { 1e6 * normal(rng) } else { x }
    })
}

/// Cauchy's noise; the exact deviation by a sum over the prior.
fn cauchy() -> Case {
    let scale = SD / 2.0;
    let noise = Cauchy::new(0.0, scale).unwrap();
    let summary = move |theta: f64, rng: &mut SimulationStream| theta + noise.sample(rng);
    let grid = (0..20_000).map(|i| -1.0 + (f64::from(i) + 0.5) / 1e4);
    let density = |theta: f64| 1.0 / (1.0 + ((X_O - theta) / scale).powi(2));
    let (mut sums, mut total) = ([0.0; 2], 0.0);
    for theta in grid {
        total += density(theta);
        sums[0] += theta * density(theta);
        sums[1] += theta * theta * density(theta);
    }
    let [mean, square] = sums.map(|sum| sum / total);
    let exact = (mean, (square - mean * mean).sqrt());
    let (name, prior) = ("Cauchy noise".to_owned(), Marginal::Uniform { low: -1.0, high: 1.0 });
    Case { name, prior, summary: Box::new(summary), observed: X_O, exact }
}

/// A normal prior around an offset; its summary has the same offset, and noise of a tenth of the prior's deviation.
fn offset(mean: f64, sd: f64) -> Case {
    let summary = move |theta: f64, rng: &mut SimulationStream| theta + SD * sd * normal(rng);
    // Precisions add: the prior's is a hundredth of the noise's.
    let precision = 1.0 + 1.0 / (SD * SD);
    let exact = (mean + X_O * sd / (SD * SD) / precision, sd / precision.sqrt());
    let (name, prior) = (format!("normal {mean} ± {sd:e}"), Marginal::Normal { mean, sd });
    Case { name, prior, summary: Box::new(summary), observed: mean + X_O * sd, exact }
}

impl Case {
    fn infer_by(
        &self,
        profile: Profile,
        seed: u64,
        rounds: u32,
        simulations: usize,
    ) -> Result<Found> {
        let prior = Prior::new([("theta", self.prior)]).unwrap();
        let simulator = from_fn(1, 1, |theta, rng, x| x[0] = (self.summary)(theta[0], rng));
        let problem = Problem::new(prior, simulator, [self.observed]).unwrap();
        let inference = infer(&problem).profile(profile).rounds(rounds).simulations(simulations);
        inference.seed(seed).threads(1).run()
    }

    fn infer(&self, seed: u64, rounds: u32, simulations: usize) -> Found {
        self.infer_by(Profile::Default, seed, rounds, simulations).unwrap()
    }

    /// The posterior's mean, in exact deviations from the exact one, and its deviation over the exact one.
    fn errors(&self, found: &Found) -> (f64, f64) {
        let theta = found.posterior().sample(4000, 1).unwrap().theta;
        let (mean, sd) = mean_and_deviation(&theta);
        ((mean - self.exact.0) / self.exact.1, sd / self.exact.1)
    }
}

/// A deviation between the exact one and that of a wrong scale, which is 1.9 to 5.8 times as large, or of f32 parameters, 2.3
/// times: how near it comes over seeds is in docs/failures.md.
#[test]
fn posteriors_of_hard_inputs_are_the_exact_ones() {
    let cases = [
        sentinel(-999.0, 0.2),
        sentinel(1e30, 0.4),
        orders(),
        offset(2459000.5, 0.1),
        offset(0.0, 1e-300),
    ];
    for case in cases {
        let (mean, sd) = case.errors(&case.infer(1, 2, 500));
        assert!(mean.abs() < 0.5 && (0.75..1.35).contains(&sd), "{}: {mean} {sd}", case.name);
    }
}

/// Where parameters are not scaled, the flow cannot learn such a prior, and says so.
#[test]
fn a_flow_of_bare_parameters_refuses_an_offset() {
    for case in [offset(2459000.5, 0.1), offset(1000.0, 1.0), offset(0.0, 1e-300)] {
        let told = case.infer_by(Profile::Paper, 1, 1, 100).unwrap_err().to_string();
        assert!(
            told.contains("coordinates.theta is none, but it must be pool or first, for theta"),
            "{told}"
        );
    }
    assert!(offset(1.0, 1.0).infer_by(Profile::Paper, 1, 1, 100).is_ok());
}

/// As many different values as there are draws: none is rounded to its neighbours.
#[test]
fn an_offset_takes_no_digits_from_a_posterior() {
    let found = offset(2459000.5, 0.1).infer(1, 1, 200);
    let mut theta = found.posterior().sample(1000, 1).unwrap().theta;
    theta.sort_unstable_by(f64::total_cmp);
    theta.dedup();
    assert!(theta.len() > 990, "{} of 1000 are different", theta.len());
}

#[test]
fn a_sentinel_is_told_by_the_name_of_its_summary() {
    let found = sentinel(-999.0, 0.2).infer(1, 1, 300);
    let warnings = found.summary().summary.warnings.join("\n");
    assert!(warnings.contains("x1 is exactly -999 in "), "{warnings}");
    let plain = changed("plain".to_owned(), |x, _| x).infer(1, 1, 300);
    assert!(plain.summary().summary.warnings.is_empty(), "{:?}", plain.summary().summary.warnings);
}

/// The table of docs/failures.md: `cargo test -p didyma --test runs table_of_hard_inputs -- --ignored --nocapture`.
#[test]
#[ignore = "minutes: it makes a table"]
fn table_of_hard_inputs() {
    let mut cases = vec![changed("nothing".to_owned(), |x, _| x)];
    for value in [-999.0, 1e30] {
        cases.extend([0.05, 0.1, 0.2, 0.4].map(|share| sentinel(value, share)));
    }
    cases.extend([exceptions(0.05), exceptions(0.4), cauchy(), orders()]);
    let offsets = [(2459000.5, 0.1), (1e6, 1e-3), (1.7e9, 0.1), (0.0, 1e-300)];
    cases.extend(offsets.map(|(mean, sd)| offset(mean, sd)));
    for case in cases {
        let of = |seed: usize| case.errors(&case.infer(1 + seed as u64, 3, 1000));
        let found = didyma::parallel::map(8, didyma::parallel::cores(), of);
        let (means, sds): (Vec<f64>, Vec<f64>) = found.into_iter().unzip();
        let ((mean, _), (sd, spread)) = (mean_and_deviation(&means), mean_and_deviation(&sds));
        println!("| {} | {mean:+.2} | {sd:.2} ± {spread:.2} |", case.name);
    }
}
