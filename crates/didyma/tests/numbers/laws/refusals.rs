//! Clear refusals.

use super::Case;
use didyma::estimator::Plan;
use didyma::training::{AdamConfig, Device, EngineState};
use didyma::{Error, FlowConfig, Rows};
use std::sync::Arc;

fn says<T>(result: Result<T, Error>, parts: &[&str]) {
    let text = result.map(drop).unwrap_err().to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

pub fn engines_refuse_with_the_argument_and_the_remedy(device: &Arc<dyn Device>) {
    let case = Case::small(2);
    let make = |params: &[f32], adam| {
        device.engine(case.flow.clone(), params.to_vec(), &case.data, adam, 1)
    };
    let adam = AdamConfig::default();
    says(make(&[0.0; 3], adam), &["params has 3 numbers, but", "are needed"]);
    let mut broken = case.params.clone();
    broken[7] = f32::NAN;
    says(make(&broken, adam), &["params holds NaN at place 7"]);
    says(make(&case.params, AdamConfig { clip: 0.0, ..adam }), &["clip is 0", "positive"]);
    for (config, why) in
        [(FlowConfig::new(3, 2), "theta has 3"), (FlowConfig::new(2, 3), "x has 3")]
    {
        let other = Case::new(config, 2);
        let refused = device.engine(case.flow.clone(), case.params.clone(), &other.data, adam, 1);
        says(refused, &[why, "columns, but 2 are needed"]);
    }

    let mut engine = make(&case.params, adam).unwrap();
    let (mut plan, empty) = (Plan::default(), Plan::default());
    plan.push_own(2, 1.0);
    says(engine.step(&plan, 1e-3), &["row 2 of a dataset of 2 rows"]);
    says(engine.evaluate(&plan), &["row 2 of a dataset of 2 rows"]);
    says(engine.step(&plan, f64::NAN), &["learning_rate is NaN", "between 0 and 1"]);
    says(engine.step(&empty, 1e-3), &["plan has no group"]);
    says(engine.evaluate(&empty), &["plan has no group"]);
    says(engine.restore(&EngineState::fresh(vec![0.0; 3])), &["params has 3 numbers"]);
    says(engine.restore(&EngineState::fresh(broken)), &["params holds NaN at place 7"]);

    // None of it did any harm.
    plan.clear();
    plan.push_own(1, 1.0);
    engine.step(&plan, 1e-3).unwrap();
    let fresh = make(&case.params, adam).unwrap().evaluate(&plan).unwrap();
    assert_eq!(engine.take_loss().unwrap(), fresh);
}

pub fn densities_and_samples_refuse_what_the_flow_refuses(device: &Arc<dyn Device>) {
    let Case { flow, params, .. } = &Case::small(2);
    let (good, bad) = ([0.0f32, 1.0, 2.0, 3.0], [0.0f32, 1.0, f32::NAN, 3.0]);
    let theta = |data, columns| Rows::new("theta", data, columns).unwrap();
    let x = |data, columns| Rows::new("x", data, columns).unwrap();
    let density = |theta, x| device.log_density(flow, params, theta, x);
    says(density(theta(&bad, 2), x(&good, 2)), &["theta holds NaN in row 1, column 0"]);
    says(density(theta(&good, 2), x(&bad, 2)), &["x holds NaN in row 1, column 0"]);
    says(density(theta(&good, 1), x(&good, 2)), &["theta has 1 columns, but 2 are needed"]);
    says(density(theta(&good, 2), x(&good[..3], 1)), &["x has 1 columns, but 2 are needed"]);
    let three = [0.0; 6];
    says(density(theta(&good, 2), x(&three, 2)), &["x has 3 rows, but 2 are needed"]);
    let transport = |x: &[f32], base: &[f32]| device.transport(flow, params, x, base);
    says(transport(&[f32::INFINITY, 0.0], &good), &["x holds inf"]);
    says(transport(&[0.0], &good), &["x has 1 columns, but 2 are needed"]);
    says(device.transport(flow, &[0.0; 3], &[0.0; 2], &good), &["params has 3 numbers"]);
    let mut broken = params.clone();
    broken[7] = f32::NAN;
    let found = device.log_density(flow, &broken, theta(&good, 2), x(&good, 2));
    says(found, &["params holds NaN at place 7"]);
    match density(theta(&[3e38, -3e38], 2), x(&good[..2], 2)) {
        Ok(log_q) => assert_eq!(log_q, [f64::NEG_INFINITY]),
        Err(error) => says::<()>(Err(error), &["log q of row 0 is NaN", "unit scale"]),
    }
    assert!(density(theta(&[], 2), x(&good[..2], 2)).unwrap().is_empty());
    assert_eq!(transport(&good[..2], &[]).unwrap(), (vec![], vec![]));
}
