//! The engine: same bytes for any number of threads and after a pause, and a posterior that is known.

use super::model;
use didyma::estimator::Plan;
use didyma::rng::{Purpose, Streams};
use didyma::score::{Output, ScoreConfig, ScoreModel};
use didyma::training::{AdamConfig, Decay, Engine, EngineState, Noise, ScoreEngine};
use didyma::{Dataset, Error, Rows};
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};

const STREAMS: Streams = Streams::new(3);
const NOISE: Noise = Noise { streams: STREAMS, round: 2, repeats: 3, fixed: true };

/// θ ~ N(0, I), x = θ + N(0, ½² I).
fn data(rows: usize, dim: usize) -> Dataset {
    let mut rng = STREAMS.stream(Purpose::Synthetic, 0, 0);
    let theta: Vec<f32> = StandardNormal.sample_iter(&mut rng).take(rows * dim).collect();
    let noise = StandardNormal.sample_iter(&mut rng);
    let x: Vec<f32> = theta.iter().zip(noise).map(|(t, n): (&f32, f32)| t + 0.5 * n).collect();
    let view = |name, data| Rows::new(name, data, dim).unwrap();
    Dataset::new(view("theta", &theta), view("x", &x), &vec![0.0; rows]).unwrap()
}

fn plan(rows: impl ExactSizeIterator<Item = u32>) -> Plan {
    let (mut plan, weight) = (Plan::default(), 1.0 / rows.len() as f64);
    rows.for_each(|row| plan.push_own(row, weight));
    plan
}

fn engine(model: &ScoreModel, noise: Noise, threads: usize) -> ScoreEngine {
    let params = model.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
    let data = data(1000, model.config().theta_dim);
    ScoreEngine::new(model.clone(), params, &data, AdamConfig::default(), noise, threads).unwrap()
}

fn state(engine: &ScoreEngine) -> EngineState {
    let mut state = EngineState::default();
    engine.read_state(&mut state).unwrap();
    state
}

#[test]
fn same_bytes_for_any_number_of_threads() {
    for output in [Output::Energy, Output::Direct] {
        let model = model(2, 2, output, true);
        // Full tiles, partly filled ones, and more tiles than chunks.
        let plans = [plan(0..300), plan(5..42), plan(0..1000)];
        let runs = [1, 2, 3].map(|threads| {
            let mut engine = engine(&model, NOISE, threads);
            for step in 0..30 {
                engine.step(&plans[step % 3], 1e-3).unwrap();
            }
            (state(&engine), engine.take_loss().unwrap(), engine.evaluate(&plans[2]).unwrap())
        });
        assert!(runs[0] == runs[1] && runs[0] == runs[2], "threads changed the result");
    }
}

/// A second engine that is given the state goes on with the same noise; with other steps, rounds or seeds it is another.
#[test]
fn a_restored_engine_goes_on_with_the_same_bytes() {
    let model = model(2, 2, Output::Energy, false);
    let plan = plan(0..100);
    let noise = Noise { fixed: false, ..NOISE };
    let mut first = engine(&model, noise, 2);
    (0..7).for_each(|_| first.step(&plan, 1e-3).unwrap());
    let pause = state(&first);
    let after = |engine: &mut ScoreEngine, pause: &EngineState| {
        engine.restore(pause).unwrap();
        (0..5).for_each(|_| engine.step(&plan, 1e-3).unwrap());
        (state(engine), engine.take_loss().unwrap(), engine.evaluate(&plan).unwrap())
    };
    let expected = after(&mut first, &pause);
    assert_eq!(after(&mut engine(&model, noise, 1), &pause), expected);
    let shifted = EngineState { steps: 8, ..pause.clone() };
    assert_ne!(after(&mut engine(&model, noise, 1), &shifted), expected);
    for other in [Noise { round: 3, ..noise }, Noise { streams: Streams::new(4), ..noise }] {
        assert_ne!(after(&mut engine(&model, other, 1), &pause), expected);
    }
}

/// Fixed noise stays over steps of rate 0, fresh noise does not; neither is that of the next training step; and more
/// repeats come nearer to the mean.
#[test]
fn evaluations_have_noise_of_their_own() {
    let model = model(1, 1, Output::Direct, true);
    let plan = plan(0..64);
    // With rate 0 the parameters stay.
    let losses = |noise: Noise| {
        let mut engine = engine(&model, noise, 1);
        [(); 4].map(|()| {
            let evaluated = engine.evaluate(&plan).unwrap();
            engine.step(&plan, 0.0).unwrap();
            (evaluated, engine.take_loss().unwrap())
        })
    };
    let fixed = losses(Noise { repeats: 1, ..NOISE });
    let fresh = losses(Noise { repeats: 1, fixed: false, ..NOISE });
    assert!(fixed.iter().all(|l| l.0 == fixed[0].0 && l.0 != l.1));
    for (i, a) in fresh.iter().enumerate() {
        assert!(a.0 != a.1 && fresh[i + 1..].iter().all(|b| a.0 != b.0 && a.1 != b.1));
    }
    // The loss of a row has a standard deviation near 1.5, so a mean over 64 · 400 differs by 1.5/160 · √2 from another.
    let many = Noise { repeats: 400, fixed: false, ..NOISE };
    let found = losses(many);
    for pair in found.windows(2) {
        assert!((pair[0].0 - pair[1].0).abs() < 4.0 * 1.5 / 160.0 * 2f64.sqrt());
    }
}

/// The weights of a plan are those of its rows' losses.
#[test]
fn own_weights_multiply_the_loss() {
    let model = model(1, 1, Output::Direct, true);
    let mut engine = engine(&model, NOISE, 1);
    let mut weighted = Plan::default();
    (0..64).for_each(|row| weighted.push_own(row, 0.5 / 64.0));
    let (half, whole) =
        (engine.evaluate(&weighted).unwrap(), engine.evaluate(&plan(0..64)).unwrap());
    // The same noise, summed in f64.
    assert!((2.0 * half - whole).abs() < 1e-12 * whole);
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let model = model(2, 2, Output::Direct, true);
    let mut engine = engine(&model, NOISE, 1);
    let good = plan(0..10);
    assert!(matches!(engine.step(&Plan::default(), 1e-3), Err(Error::EmptyPlan)));
    assert!(matches!(engine.step(&plan(0..1001), 1e-3), Err(Error::NoSuchRow { row: 1000, .. })));
    assert!(matches!(engine.step(&good, 2.0), Err(Error::Setting { .. })));
    let mut atoms = Plan::default();
    atoms.group(1, [1, 2, 3]).own(1.0).log_mean_exp(1.0);
    let message = engine.step(&atoms, 1e-3).unwrap_err().to_string();
    assert!(message.contains("3 atoms with 1 terms"), "{message}");
    let before = state(&engine);
    let huge = EngineState::fresh(before.params.iter().map(|p| p * 1e30).collect());
    engine.restore(&huge).unwrap();
    let diverged = engine.step(&good, 1e-3);
    assert!(matches!(diverged, Err(Error::Diverged { .. })), "{diverged:?}");
    assert_eq!(state(&engine), huge, "parameters stay as they were");
    let (params, adam) = (vec![0.0; model.params_len()], AdamConfig::default());
    let of_another = ScoreEngine::new(model.clone(), params.clone(), &data(10, 1), adam, NOISE, 1);
    assert!(matches!(of_another, Err(Error::Shape { .. })));
    let bad = Noise { repeats: 0, ..NOISE };
    assert!(ScoreEngine::new(model.clone(), params.clone(), &data(9, 2), adam, bad, 1).is_err());
    assert!(ScoreEngine::new(model, params, &data(9, 2), adam, NOISE, 0).is_err());
}

/// θ ~ N(0, 1), x = θ + N(0, ½²): the posterior at x is N(0.8 x, 0.2).
///
/// 4000 samples have standard errors of sd/√4000 = 0.007 for the mean and half of that, relative, for the sd; the rest of the
/// tolerance, 0.06 and 15 %, is for a network that was trained briefly: 2000 pairs themselves fix the posterior's mean
/// to about 0.45/√(2000/5) = 0.02 and its sd to 4 %; 1,000 steps on them find it to 0.02 and 5 %.
#[test]
fn a_conjugate_posterior_is_found() {
    for output in [Output::Energy, Output::Direct] {
        let config = ScoreConfig { units: 64, output, ..ScoreConfig::new(1, 1) };
        let model = ScoreModel::new(config).unwrap();
        let params = model.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
        let adam = AdamConfig { decay: Decay::Coupled(0.0), ..AdamConfig::default() };
        let noise = Noise { repeats: 20, ..NOISE };
        let data = data(2000, 1);
        let mut engine = ScoreEngine::new(model.clone(), params, &data, adam, noise, 2).unwrap();
        let all = plan(0..2000);
        let before = engine.evaluate(&all).unwrap();
        let mut order: Vec<u32> = (0..2000).collect();
        let mut rng = STREAMS.stream(Purpose::Shuffle, 0, 0);
        for epoch in 0..100 {
            order.shuffle(&mut rng);
            let rate = 3e-3 * (1.0 - f64::from(epoch) / 100.0);
            for batch in order.chunks(200) {
                engine.step(&plan(batch.iter().copied()), rate).unwrap();
            }
        }
        let after = engine.evaluate(&all).unwrap();
        // The smallest possible mean is that of m² 0.2 / (m² 0.2 + std²) over times, 0.2305; 40,000 terms are 0.002 off.
        assert!(before > 0.8 && (0.22..0.27).contains(&after), "{output:?}: {before} to {after}");
        let params = state(&engine).params;
        let base: Vec<f32> = StandardNormal.sample_iter(&mut rng).take(4000).collect();
        for x in [-1.0f32, 0.5] {
            let z = model.sample(&params, &[x], &base).unwrap();
            let mean = z.iter().map(|&z| f64::from(z)).sum::<f64>() / 4000.0;
            let variance = z.iter().map(|&z| (f64::from(z) - mean).powi(2)).sum::<f64>() / 4000.0;
            let (expected, sd) = (0.8 * f64::from(x), 0.2f64.sqrt());
            assert!((mean - expected).abs() < 0.06, "{output:?} at {x}: {mean}");
            assert!((variance.sqrt() / sd - 1.0).abs() < 0.15, "{output:?} at {x}: {variance}");
        }
    }
}
