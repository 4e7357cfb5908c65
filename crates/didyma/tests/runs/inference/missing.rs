//! Simulations that fail more often in one place than in another, against posteriors that are known exactly.
//!
//! θ ~ N(0, 1) in two dimensions, x = θ + N(0, 1), and a simulation succeeds with probability s(θ) = 0.1 + 0.9 logistic(4 θ₁ +
//! 1.4), which is two thirds in the mean. With missing simulations the posterior is N(x/2, 1/2); with failures as outcomes it is that
//! times s. At x_o a classifier tells the two apart in two thirds of the cases.

use super::{Keeper, samples, small};
use didyma::config::{Algorithm, Config, Inner, Meaning, Profile};
use didyma::estimator::Method;
use didyma::failures::Correction;
use didyma::metrics::c2st;
use didyma::prior::{Marginal, Prior};
use didyma::rng::{Purpose, SimulationStream, Streams};
use didyma::simulator::{SimulationFailed, Simulator};
use didyma::{
    Inference, Named, Observer, Posterior, Problem, Rows, SampleStreams, State, infer_from,
};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

const OBSERVATION: [f64; 2] = [-0.7, 0.5];
const SAMPLES: usize = 2000;

fn success(theta1: f64) -> f64 {
    0.1 + 0.9 / (1.0 + (-(4.0 * theta1 + 1.4)).exp())
}

/// Succeeds by chance, as above, or wherever θ₁ is above the middle of the posterior, and nowhere else.
#[derive(Clone, Copy)]
enum Selective {
    Smooth,
    Sharp,
}

const BORDER: f64 = 0.5 * OBSERVATION[0];

impl Selective {
    fn succeeds(self, theta1: f64, rng: &mut SimulationStream) -> bool {
        match self {
            Self::Smooth => rng.random::<f64>() < success(theta1),
            Self::Sharp => theta1 > BORDER,
        }
    }
}

impl Simulator for Selective {
    fn theta_dim(&self) -> usize {
        2
    }

    fn x_dim(&self) -> usize {
        2
    }

    fn simulate(
        &self,
        theta: &[f64],
        rng: &mut SimulationStream,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        for (x, theta) in x.iter_mut().zip(theta) {
            let noise: f64 = StandardNormal.sample(rng);
            *x = theta + noise;
        }
        match self.succeeds(theta[0], rng) {
            true => Ok(()),
            false => Err(SimulationFailed("it did not converge".to_owned())),
        }
    }
}

fn prior() -> Prior {
    let normal = Marginal::Normal { mean: 0.0, sd: 1.0 };
    Prior::new([("a", normal), ("b", normal)]).unwrap()
}

/// Draws of p(θ) p(x_o | θ), or of that times s(θ).
fn exact(meaning: Meaning, seed: u64) -> Vec<f64> {
    let mut rng = Streams::new(seed).stream(Purpose::Synthetic, 0, 0);
    let mut draws = Vec::new();
    while draws.len() < 2 * SAMPLES {
        let theta = OBSERVATION.map(|x| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            0.5 * x + 0.5f64.sqrt() * noise
        });
        if meaning == Meaning::Missing || rng.random::<f64>() < success(theta[0]) {
            draws.extend(theta);
        }
    }
    draws
}

fn run(
    simulator: Selective,
    config: &Config,
    progress: State,
    observer: &mut dyn Observer,
) -> Inference {
    let prior = prior();
    let model = Problem::new(prior, simulator, OBSERVATION).unwrap();
    infer_from(&model, None, config, 2, progress, observer).unwrap()
}

/// A small flow, many simulations: what is left of the error is that of the correction.
fn settings(algorithm: Algorithm, meaning: Meaning) -> Config {
    let mut config = Config::new(Profile::Default, algorithm);
    (config.rounds, config.simulations, config.train.batch) = (2, 3000, 100);
    (config.flow.layers, config.flow.units, config.score.units) = (2, 16, 64);
    config.train.steps = Some(if algorithm.method() == Method::Likelihood { 3000 } else { 600 });
    config.failures.meaning = meaning;
    config
}

/// How well a classifier tells the posterior from the exact one of this meaning.
fn told_from(posterior: &Posterior, meaning: Meaning) -> f64 {
    let streams = SampleStreams::new(Streams::new(3), Purpose::Posterior, 0);
    let found = posterior.draw(SAMPLES, streams, 2).unwrap().theta;
    compare(&exact(meaning, 5), &found)
}

fn compare(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (Rows::new("a", a, 2).unwrap(), Rows::new("b", b, 2).unwrap());
    c2st(a, b, 2, &Streams::new(7)).unwrap().mean
}

/// Two sets of 2000 from one law are told apart in 0.50 ± 0.01 of the cases (a binomial's standard error of 4000 answers is
/// 0.008), and a flow trained for seconds is allowed 0.04 more; the two laws are told apart in 0.65.
fn expect(algorithm: Algorithm, meaning: Meaning, correction: Correction) {
    expect_by(settings(algorithm, meaning), correction);
}

fn expect_by(settings: Config, correction: Correction) {
    let config = Config { simulations: 5000, ..settings };
    let (algorithm, meaning) = (config.algorithm(), config.failures.meaning);
    let found = run(Selective::Smooth, &config, State::default(), &mut ());
    let posterior = found.posterior.unwrap();
    let [missing, outcome] = [Meaning::Missing, Meaning::Outcome].map(|m| told_from(&posterior, m));
    let (near, far) =
        if meaning == Meaning::Missing { (missing, outcome) } else { (outcome, missing) };
    eprintln!(
        "{algorithm:?}, {meaning:?}: {near:.3} from its own posterior, {far:.3} from the other"
    );
    assert!(near < 0.55 && far > 0.6, "{algorithm:?}, {meaning:?}: {near} {far}");
    let report = found.reports.last().unwrap().validity.unwrap();
    // The exact s foretells success better than its mean does by 0.31 ± 0.57 nats a simulation: in 10,000 of them a z of
    // 100 · 0.31 / 0.57 = 55. Later rounds see less of the prior, and half is asked for.
    assert!(report.depends && report.z.unwrap() > 27.0, "{report:?}");
    assert_eq!(report.corrected, correction);
    assert_eq!(report.effective.is_some(), correction == Correction::Weights);
    assert!(report.effective.is_none_or(|share| share > 0.2 && share < 0.7), "{report:?}");
}

#[test]
fn weights_make_up_for_missing_simulations() {
    expect(Algorithm::Npe, Meaning::Missing, Correction::Weights);
    expect(Algorithm::Tsnpe, Meaning::Missing, Correction::Weights);
}

#[test]
fn inner_samples_make_up_for_missing_simulations() {
    expect(Algorithm::Corrected(Method::Tgrr), Meaning::Missing, Correction::InnerSamples);
    expect(Algorithm::Corrected(Method::Atomic), Meaning::Missing, Correction::InnerSamples);
}

#[test]
fn failures_that_are_outcomes_stay_in_the_posterior() {
    expect(Algorithm::Tsnpe, Meaning::Outcome, Correction::None);
    expect(Algorithm::Corrected(Method::Tgrr), Meaning::Outcome, Correction::None);
}

/// Samples of the mixture follow neither law of the rows: their weights make up for both.
#[test]
fn inner_samples_of_the_mixture_are_weighted_by_success() {
    for (meaning, correction) in
        [(Meaning::Missing, Correction::InnerSamples), (Meaning::Outcome, Correction::None)]
    {
        let mut config = settings(Algorithm::Corrected(Method::Atomic), meaning);
        config.train.inner = Inner::Mixture;
        expect_by(config, correction);
    }
}

/// Half of the posterior is where nothing ever succeeds. Nothing can be said of it, and that is told; but no more than the
/// blur of a small flow may lie there, which is a few of 100 draws.
#[test]
fn a_posterior_that_is_cut_off_is_told_and_does_not_leak() {
    let tgrr = Algorithm::Corrected(Method::Tgrr);
    for (algorithm, inner) in
        [(Algorithm::Tsnpe, Inner::Pool), (tgrr, Inner::Pool), (tgrr, Inner::Mixture)]
    {
        let mut config = settings(algorithm, Meaning::Missing);
        (config.rounds, config.simulations, config.train.steps) = (3, 1000, Some(600));
        config.train.inner = inner;
        let found = run(Selective::Sharp, &config, State::default(), &mut ());
        let theta = samples(&found.posterior.unwrap(), SAMPLES);
        let leaked = theta.chunks_exact(2).filter(|row| row[0] < BORDER).count();
        let leaked = leaked as f64 / SAMPLES as f64;
        let beyond = found.reports.last().unwrap().validity.unwrap().beyond.unwrap();
        eprintln!("{algorithm:?}, {inner:?}: {leaked:.3} leaked, {beyond:.3} beyond");
        assert!(leaked < 0.06 && beyond > 0.03, "{algorithm:?}, {inner:?}: {leaked} {beyond}");
    }
}

/// What is learnt of failures is learnt again, to the same bytes.
#[test]
fn a_run_with_failures_ends_with_the_same_bytes_from_any_event() {
    let tgrr = Algorithm::Corrected(Method::Tgrr);
    for (algorithm, inner) in
        [(Algorithm::Tsnpe, Inner::Pool), (tgrr, Inner::Pool), (tgrr, Inner::Mixture)]
    {
        let mut config = small(Config::new(Profile::Default, algorithm));
        (config.simulations, config.train.epochs, config.train.inner) = (300, 4, inner);
        let mut keeper = Keeper::default();
        let whole = run(Selective::Smooth, &config, State::default(), &mut keeper);
        let expected = samples(&whole.posterior.unwrap(), 300);
        assert!(whole.reports.iter().all(|report| report.validity.unwrap().depends));
        for (event, mut progress) in keeper.all.into_iter().enumerate() {
            progress.rows.reverse();
            if progress.training.is_none() {
                progress.rows.truncate(170);
            }
            let again = run(Selective::Smooth, &config, progress, &mut ());
            assert!(samples(&again.posterior.unwrap(), 300) == expected, "{algorithm:?}, {event}");
            for (again, whole) in again.reports.iter().zip(&whole.reports) {
                assert_eq!(again.validity, whole.validity, "{algorithm:?}, {event}");
            }
        }
    }
}

/// The table of docs/failures.md.
#[test]
#[ignore = "takes minutes: prints a table of the documentation"]
fn table_of_the_documentation() {
    let apart = compare(&exact(Meaning::Missing, 5), &exact(Meaning::Outcome, 6));
    let same = compare(&exact(Meaning::Missing, 5), &exact(Meaning::Missing, 6));
    println!("the two exact posteriors {apart:.3}, one and itself {same:.3}");
    println!("| method | meaning | from p L | from p s L | z | ESS | beyond |");
    println!("|---|---|---|---|---|---|---|");
    for name in ["npe", "tsnpe", "snse", "tgrr", "atomic"] {
        let named = Algorithm::ALL.iter().find(|(known, _)| *known == name);
        for meaning in [Meaning::Missing, Meaning::Outcome] {
            let mut cells = [const { Vec::new() }; 5];
            for seed in 1..=3 {
                let mut config = settings(named.unwrap().1, meaning);
                config.seed = seed;
                let found = run(Selective::Smooth, &config, State::default(), &mut ());
                let posterior = found.posterior.unwrap();
                let report = found.reports.last().unwrap().validity.unwrap();
                let or_none =
                    |share: Option<f64>| share.map_or("—".to_owned(), |s| format!("{s:.3}"));
                cells[0].push(format!("{:.3}", told_from(&posterior, Meaning::Missing)));
                cells[1].push(format!("{:.3}", told_from(&posterior, Meaning::Outcome)));
                cells[2].push(format!("{:.0}", report.z.unwrap()));
                cells[3].push(or_none(report.effective));
                cells[4].push(or_none(report.beyond));
            }
            let cells = cells.map(|cell| cell.join(", "));
            println!("| {name} | {} | {} |", meaning.name(), cells.join(" | "));
        }
    }
}
