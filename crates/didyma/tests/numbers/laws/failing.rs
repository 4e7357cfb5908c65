//! Steps that are not finite.

use super::{Case, plan, state};
use didyma::estimator::Plan;
use didyma::training::{AdamConfig, Device, Engine, EngineState};
use didyma::{Error, Result};
use std::sync::Arc;

/// All that an engine can be asked for.
type Ask = fn(&mut dyn Engine, &Plan, usize) -> Result<()>;

const ASKS: [Ask; 4] = [
    |engine, _, _| engine.take_loss().map(drop),
    |engine, plan, _| engine.evaluate(plan).map(drop),
    |engine, _, len| engine.read_params(&mut vec![0.0; len]),
    |engine, _, _| engine.read_state(&mut EngineState::default()),
];

/// After two steps whose loss was taken and one more, this plan fails as `what`; whoever asks first is told, once, and the
/// engine goes on as if it had never been given the plan.
fn fails_as(device: &Arc<dyn Device>, bad: &Plan, expected: &str) {
    let (case, good) = (Case::small(50), plan(120, 50));
    let begin = || {
        let mut engine = case.engine(device, AdamConfig::default());
        (0..2).for_each(|_| engine.step(&good, 1e-3).unwrap());
        engine.take_loss().unwrap();
        engine.step(&good, 1e-3).unwrap();
        engine
    };
    let mut untouched = begin();
    let before = state(&*untouched);
    untouched.step(&good, 1e-3).unwrap();
    let (after, loss) = (state(&*untouched), untouched.take_loss().unwrap());
    for ask in ASKS {
        let mut engine = begin();
        // If the step says nothing, the next may not either, and must change nothing.
        let told = engine
            .step(bad, 1e-3)
            .and_then(|()| engine.step(&good, 1e-3))
            .and_then(|()| ask(&mut *engine, &good, case.params.len()));
        match told {
            Err(Error::Diverged { what, step: 4, value }) if what == expected => {
                assert!(!value.is_finite(), "{value}");
            }
            other => panic!("{other:?} instead of step 4 and {expected}"),
        }
        assert_eq!(state(&*engine), before);
        engine.step(&good, 1e-3).unwrap();
        assert_eq!(state(&*engine), after);
        assert_eq!(engine.take_loss().unwrap(), loss);
        assert!(engine.take_loss().unwrap().is_nan());
    }
    // What is restored knows nothing of it.
    let mut engine = begin();
    let _ = engine.step(bad, 1e-3);
    engine.restore(&before).unwrap();
    engine.step(&good, 1e-3).unwrap();
    assert_eq!(state(&*engine), after);
}

pub fn a_step_that_is_not_finite_changes_nothing(device: &Arc<dyn Device>) {
    let mut bad = Plan::default();
    bad.push_own(49, f64::NAN);
    fails_as(device, &bad, "loss");
    // A block that has no number at all, smaller than a warp: no lane may wait for another that has given up.
    let mut none = Plan::default();
    none.group(5, 0..6).log_weights(&[f64::NAN; 6]).log_mean_exp(1.0);
    let mut engine = Case::small(50).engine(device, AdamConfig::default());
    assert!(engine.evaluate(&none).is_err());
    let mut engine = Case::small(50).engine(device, AdamConfig::default());
    let error = engine.evaluate(&bad).unwrap_err();
    assert!(matches!(error, Error::Diverged { what: "loss", step: 1, .. }), "{error}");
}

/// A weight that f64 holds and f32 does not: the loss is finite, its gradient is not.
pub fn an_infinite_gradient_is_not_followed(device: &Arc<dyn Device>) {
    let mut bad = Plan::default();
    bad.push_own(49, 1e300);
    fails_as(device, &bad, "gradient norm");
}
