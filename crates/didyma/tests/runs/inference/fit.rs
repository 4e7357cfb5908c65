//! Training of a round, by an engine whose losses are written down beforehand.

use super::{run, tiny};
use didyma::config::{Config, Inner, Profile, Schedule, TrainConfig};
use didyma::estimator::{Estimator, Method, Plan, Pool, Replacement, Settings, Tails};
use didyma::rng::{Purpose, Streams};
use didyma::tasks::Task;
use didyma::training::{Engine, EngineState, Fit, FitState, Reservoir, StopReason, TrainRows};
use didyma::{Error, Named, Result};
use std::ops::ControlFlow;

/// Counts steps in its only parameter, and knows the validation loss of every epoch.
#[derive(Default)]
struct Scripted {
    losses: Vec<f64>,
    state: EngineState,
    rates: Vec<f64>,
    largest_plan: usize,
    /// The step, from 1, that fails.
    fails: Option<u64>,
    /// When it tells.
    tells: Telling,
    failed: bool,
}

/// When an engine tells of a step that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Telling {
    #[default]
    AtOnce,
    WithTheLoss,
    WhenEvaluated,
    WhenRead,
}

impl Scripted {
    fn new(losses: &[f64]) -> Self {
        Self { losses: losses.to_vec(), ..Self::default() }
    }

    /// The failure, if there was one and this is when it is told.
    fn tell(&self, now: Telling) -> Result<()> {
        match self.failed && self.tells == now {
            true => Err(Error::Diverged { what: "loss", value: f64::NAN, step: self.state.steps }),
            false => Ok(()),
        }
    }
}

impl Engine for Scripted {
    fn step(&mut self, plan: &Plan, rate: f64) -> Result<()> {
        self.failed |= self.fails == Some(self.state.steps + 1);
        if self.failed {
            return self.tell(Telling::AtOnce);
        }
        self.rates.push(rate);
        self.largest_plan = self.largest_plan.max(plan.pairs());
        self.state.steps += 1;
        self.state.params[0] += 1.0;
        Ok(())
    }

    fn take_loss(&mut self) -> Result<f64> {
        self.tell(Telling::WithTheLoss)?;
        Ok(-(self.state.steps as f64))
    }

    fn evaluate(&mut self, _: &Plan) -> Result<f64> {
        self.tell(Telling::WhenEvaluated)?;
        let epoch = self.state.steps as usize / BATCHES;
        Ok(self.losses[(epoch - 1).min(self.losses.len() - 1)])
    }

    fn read_params(&self, to: &mut [f32]) -> Result<()> {
        self.tell(Telling::WhenRead)?;
        to.copy_from_slice(&self.state.params);
        Ok(())
    }

    fn read_state(&self, to: &mut EngineState) -> Result<()> {
        self.tell(Telling::WhenRead)?;
        to.clone_from(&self.state);
        Ok(())
    }

    fn restore(&mut self, state: &EngineState) -> Result<()> {
        self.state.clone_from(state);
        Ok(())
    }
}

/// 65 rows to train on in batches of 10.
const BATCHES: usize = 7;

fn config() -> TrainConfig {
    let train = Config::new(Profile::Default, Method::Tgrr).train;
    let train = TrainConfig { batch: 10, steps: None, epochs: 40, cycles: 1, patience: 3, ..train };
    TrainConfig { restore_best: true, ..train }
}

fn trained(config: &TrainConfig, engine: &mut Scripted) -> FitState {
    let rows = TrainRows {
        training: (0..65).collect(),
        held_out: (65..72).collect(),
        inner_only: vec![],
        weights: vec![],
    };
    let settings = Settings::paper(Method::Tgrr);
    let mut fit = Fit::new(config, &settings, Streams::new(1), 2, rows, Reservoir::Pool).unwrap();
    let mut state = FitState::new(EngineState::fresh(vec![0.0]));
    let mut epochs = 0;
    let ended = fit.run(engine, &mut state, &mut |report, state| {
        epochs += 1;
        assert_eq!((report.epoch, state.epoch), (epochs, epochs));
        Ok(ControlFlow::Continue(()))
    });
    assert!(ended.unwrap().is_continue() && state.epoch == epochs);
    state
}

#[test]
fn patience_ends_a_round_with_its_best_weights_or_its_last() {
    // Epoch 3 is best; the same loss again is no better.
    let losses = [5.0, 4.0, 3.0, 3.5, 3.0, 3.1, 2.0];
    for (restore_best, epoch) in [(true, 3), (false, 6)] {
        let mut engine = Scripted::new(&losses);
        let state = trained(&TrainConfig { restore_best, ..config() }, &mut engine);
        assert_eq!((state.stop, state.epoch), (Some(StopReason::Patience), 6));
        assert_eq!(state.steps, 6 * BATCHES as u64);
        assert_eq!(state.engine.params, [(epoch * BATCHES) as f32]);
        let best = state.best.unwrap();
        assert_eq!((best.epoch, best.loss, best.train_loss), (3, 3.0, -21.0));
        assert_eq!((state.validation_loss, state.train_loss), (Some(3.1), Some(-42.0)));
    }
}

/// Of 120 simulations a round 108 are trained on: an epoch has 3, 5 and 7 steps. A quarter of 40 steps is 4 epochs of the first
/// round and 2 of the second; the last has 6.
#[test]
fn rounds_before_the_last_take_a_share_of_its_steps() {
    let task = Task::named("two-moons").unwrap();
    let mut config = tiny(Profile::Default);
    (config.rounds, config.train.early, config.train.cycles) = (3, 0.25, 1);
    let steps: Vec<u64> = run(&task, &config).reports.iter().map(|report| report.steps).collect();
    assert_eq!(steps, [12, 10, 42]);
}

/// Steps grow from 10,000 rows on: 40,000 rows have 4 times the steps of 10,000, or their root times, in epochs of 4000.
#[test]
fn steps_grow_with_many_rows() {
    for (rows, growth, expected) in
        [(65, 1.0, 858), (10_000, 1.0, 6), (40_000, 0.0, 2), (40_000, 0.5, 3), (40_000, 1.0, 6)]
    {
        let config = TrainConfig { steps: Some(6000), epochs: 1000, growth, ..config() };
        let rows = TrainRows {
            training: (0..rows).collect(),
            held_out: vec![rows],
            inner_only: vec![],
            weights: vec![],
        };
        let settings = Settings::paper(Method::Tgrr);
        let fit = Fit::new(&config, &settings, Streams::new(1), 2, rows, Reservoir::Pool).unwrap();
        assert_eq!(fit.cycle(), expected, "{growth}");
    }
}

#[test]
fn steps_and_epochs_are_a_budget_in_whole_epochs() {
    let falling: Vec<f64> = (0..50).map(|epoch| -f64::from(epoch)).collect();
    for (steps, epochs, expected) in
        [(Some(50), 40, 8), (None, 5, 5), (Some(1), 5, 1), (Some(999), 4, 4)]
    {
        let state =
            trained(&TrainConfig { steps, epochs, ..config() }, &mut Scripted::new(&falling));
        assert_eq!((state.stop, state.epoch), (Some(StopReason::Budget), expected));
    }
    // The budget counts even if patience ends at the same epoch.
    let state = trained(&TrainConfig { epochs: 4, ..config() }, &mut Scripted::new(&[1.0]));
    assert_eq!((state.stop, state.epoch), (Some(StopReason::Budget), 4));
}

/// Cycles of two epochs: another begins while the last one held a better loss, at the whole rate again.
#[test]
fn cycles_go_on_while_they_lower_the_validation_loss() {
    let base = TrainConfig { epochs: 2, patience: 9, ..config() };
    for (losses, cycles, expected) in [
        (&[4.0, 3.0, 3.5, 2.0, 2.5, 2.1, 0.0][..], 4, (StopReason::Patience, 6, 4)),
        (&[4.0, 3.0, 2.0, 2.5, 2.5, 1.0, 0.0][..], 3, (StopReason::Budget, 6, 6)),
        (&[4.0, 3.0, 3.0, 3.0, 0.0][..], 2, (StopReason::Budget, 4, 2)),
        (&[4.0, 3.0, 0.0][..], 1, (StopReason::Budget, 2, 2)),
        // Best at the start of a cycle: it counts as that cycle's.
        (&[4.0, 3.0, 2.0, 2.5, 2.5, 2.5, 0.0][..], 9, (StopReason::Patience, 6, 3)),
    ] {
        let mut engine = Scripted::new(losses);
        let state = trained(&TrainConfig { cycles, ..base }, &mut engine);
        let best = state.best.unwrap().epoch;
        assert_eq!((state.stop.unwrap(), state.epoch, best), expected, "{losses:?}");
        assert_eq!(state.engine.params, [(best as usize * BATCHES) as f32]);
        let (first, others) = engine.rates.split_at(2 * BATCHES);
        assert!(others.chunks(2 * BATCHES).all(|cycle| cycle == first));
    }
}

/// Idle epochs of a cycle do not count in the next one, whose rate is high at first.
#[test]
fn patience_begins_anew_with_every_cycle() {
    let config = TrainConfig { epochs: 3, patience: 3, cycles: 2, ..config() };
    let mut engine = Scripted::new(&[4.0, 3.0, 3.5, 3.9, 3.5, 2.0]);
    let state = trained(&config, &mut engine);
    assert_eq!((state.stop, state.epoch), (Some(StopReason::Budget), 6));
}

/// A further cycle that diverges brings nothing, and takes nothing: the best epoch before it stands.
#[test]
fn a_further_cycle_that_diverges_leaves_the_ones_before() {
    let base = TrainConfig { epochs: 2, cycles: 3, patience: 9, ..config() };
    for (fails, expected) in [(2, StopReason::Diverged), (3, StopReason::Patience)] {
        let step = fails * BATCHES as u64 - 1;
        let mut engine = Scripted { fails: Some(step), ..Scripted::new(&[4.0, 3.0, 2.0]) };
        let state = trained(&base, &mut engine);
        assert_eq!((state.stop, state.epoch), (Some(expected), fails as u32));
        assert_eq!(state.engine.params, [((fails - 1) as usize * BATCHES) as f32]);
    }
}

#[test]
fn the_cosine_goes_from_the_whole_rate_to_nothing() {
    let rate = config().rate;
    let falling: Vec<f64> = (0..50).map(|epoch| -f64::from(epoch)).collect();
    let mut engine = Scripted::new(&falling);
    trained(&TrainConfig { steps: Some(50), schedule: Schedule::Cosine, ..config() }, &mut engine);
    let steps = engine.rates.len();
    assert_eq!((steps, engine.rates[0]), (8 * BATCHES, rate));
    assert!(engine.rates.is_sorted_by(|a, b| a > b));
    assert!((engine.rates[steps / 2] / rate - 0.5).abs() < 1e-12, "half way, half of it");
    // The step after the last would be the first of rate 0: 1 + cos(π (1 − 1/n)) ≈ (π/n)²/2.
    let last = 0.25 * (std::f64::consts::PI / steps as f64).powi(2);
    assert!((engine.rates[steps - 1] / rate / last - 1.0).abs() < 1e-3);
    let mut engine = Scripted::new(&falling);
    trained(&TrainConfig { schedule: Schedule::Constant, ..config() }, &mut engine);
    assert!(engine.rates.iter().all(|r| *r == rate));
}

#[test]
fn a_loss_that_is_no_number_ends_the_round_with_the_weights_before() {
    for (restore_best, kept) in [(true, 7.0), (false, 14.0)] {
        let mut engine = Scripted { fails: Some(18), ..Scripted::new(&[1.0, 2.0, 3.0]) };
        let state = trained(&TrainConfig { restore_best, ..config() }, &mut engine);
        assert_eq!((state.stop, state.epoch, state.steps), (Some(StopReason::Diverged), 3, 17));
        assert_eq!(state.engine.params, [kept]);
    }
    let mut engine = Scripted { fails: Some(1), ..Scripted::new(&[1.0]) };
    let state = trained(&config(), &mut engine);
    assert_eq!((state.stop, state.best), (Some(StopReason::Diverged), None));
    assert_eq!(state.engine.params, [0.0]);
    assert_eq!((state.train_loss, state.validation_loss), (None, None));
}

/// An engine whose steps are asynchronous tells of it when it is asked for something, and the round ends the same way;
/// the epoch's other steps were asked for, and count.
#[test]
fn a_failure_that_is_told_late_ends_the_round_as_well() {
    for tells in [Telling::WithTheLoss, Telling::WhenEvaluated, Telling::WhenRead] {
        for (restore_best, kept) in [(true, 7.0), (false, 14.0)] {
            let mut engine = Scripted { fails: Some(18), tells, ..Scripted::new(&[1.0, 2.0]) };
            let state = trained(&TrainConfig { restore_best, ..config() }, &mut engine);
            assert_eq!((state.stop, state.epoch), (Some(StopReason::Diverged), 3), "{tells:?}");
            assert_eq!(state.steps, 3 * BATCHES as u64);
            assert_eq!(state.engine.params, [kept], "{tells:?}");
            assert_eq!(state.best.unwrap().epoch, 1);
        }
    }
}

/// Blocks of 8 · 2^4 = 128 do not fit into a batch of 10: the estimator is made smaller.
#[test]
fn inner_samples_from_the_batch_are_no_more_than_it_has() {
    let mut engine = Scripted::new(&[1.0]);
    trained(&TrainConfig { inner: Inner::Batch, ..config() }, &mut engine);
    assert!(
        engine.largest_plan > 0 && engine.largest_plan <= 10 * 4 * 9,
        "{}",
        engine.largest_plan
    );
}

#[test]
fn estimators_fit_any_pool() {
    let mut rng = Streams::new(1).stream(Purpose::Plan, 0, 0);
    for &(_, method) in Method::ALL {
        for profile in [Profile::Default, Profile::Paper] {
            let settings = Config::new(profile, method).estimator;
            for size in 2..40 {
                let mut pool = Pool::new(0..size, Replacement::Without).unwrap();
                let mut estimator = Estimator::new(settings.clone().fitted_to(&pool)).unwrap();
                let (rows, mut plan) = ((0..size).collect::<Vec<u32>>(), Plan::default());
                estimator.plan(&rows, &mut pool, &mut rng, &mut plan).unwrap();
                assert!(plan.pairs() > 0, "{method:?} {size}");
            }
            // One row has no other one: that is an error where one is needed, and nothing worse.
            let mut pool = Pool::new([3], Replacement::Without).unwrap();
            let planned = Estimator::new(settings.fitted_to(&pool))
                .and_then(|mut e| e.plan(&[3], &mut pool, &mut rng, &mut Plan::default()));
            assert_eq!(planned.is_ok(), method == Method::Likelihood, "{method:?}");
        }
    }
    let free = Settings { tails: Tails::Free(vec![0.5, 0.2]), ..Settings::paper(Method::Tgrr) };
    for (size, top, tails) in [(200, 4, 2), (70, 3, 1), (40, 2, 0), (9, 0, 0)] {
        let pool = Pool::new(0..size, Replacement::Without).unwrap();
        let fitted = free.clone().fitted_to(&pool);
        assert_eq!(fitted.top, Some(top), "{size}");
        assert!(matches!(&fitted.tails, Tails::Free(t) if t.len() == tails), "{:?}", fitted.tails);
        Estimator::new(fitted).unwrap();
    }
}
