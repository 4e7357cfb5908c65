//! The levels of a trained flow: loss and gradient of its queries, threads, and what cannot be measured.

#![allow(clippy::unwrap_used)]

use didyma::config::{Config, Meaning, Profile};
use didyma::estimator::{Coupling, Estimator, Method, Plan, Settings, reduce};
use didyma::levels::{Evaluated, LevelReport, LevelStudy, Objective, TrainedFlow};
use didyma::rng::{Purpose, Streams};
use didyma::tasks::Task;
use didyma::training::{AdamConfig, CpuEngine, Engine};
use didyma::{
    Dataset, Error, Event, FlowConfig, Observer, Posterior, Rows, SimulatedRow, SplineFlow, State,
    infer_from,
};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

const STREAMS: Streams = Streams::new(5);
/// Rows of the dataset.
const ROWS: usize = 1500;

/// Rows of Two Moons' size, with a log prior that differs from row to row.
fn data() -> Dataset {
    let normal = |index: u64| -> Vec<f32> {
        let mut rng = STREAMS.stream(Purpose::Synthetic, 0, index);
        (0..2 * ROWS).map(|_| StandardNormal.sample(&mut rng)).collect()
    };
    let (theta, x) = (normal(0), normal(1));
    let log_prior: Vec<f64> = (0..ROWS).map(|i| (i as f64).sin()).collect();
    let rows = |name, data| Rows::new(name, data, 2).unwrap();
    Dataset::new(rows("theta", &theta), rows("x", &x), &log_prior).unwrap()
}

/// A small flow.
fn flow() -> (SplineFlow, Vec<f32>) {
    let config = FlowConfig { layers: 3, units: 20, ..FlowConfig::new(2, 2) };
    let flow = SplineFlow::new(config).unwrap();
    let params = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
    (flow, params)
}

fn problem(threads: usize) -> TrainedFlow {
    let data = data();
    let (flow, params) = flow();
    TrainedFlow::new(flow, params, data, threads).unwrap()
}

/// A base term, differences whose groups fit a tile and one that does not, and a whole batch of groups.
fn plans(problem: &mut TrainedFlow) -> Vec<Plan> {
    let mut plans = Vec::new();
    for coupling in [Coupling::Excluded, Coupling::Inclusive] {
        let settings =
            Settings { coupling, base: 0, top: Some(7), ..Settings::paper(Method::Tgrr) };
        let mut estimator = Estimator::new(settings).unwrap();
        let mut rng = STREAMS.stream(Purpose::Plan, 0, 0);
        let mut rows = Vec::new();
        problem.outer(100, &mut rng, &mut rows);
        for level in [0, 1, 5, 7] {
            plans.push(Plan::default());
            let plan = plans.last_mut().unwrap();
            estimator.plan_level(rows[0], level, problem, &mut rng, plan).unwrap();
        }
        plans.push(Plan::default());
        estimator.plan(&rows, problem, &mut rng, plans.last_mut().unwrap()).unwrap();
    }
    plans
}

/// The loss of a plan by its formula, with all arithmetic in f64.
fn loss_in_f64(flow: &SplineFlow, params: &[f64], data: &Dataset, plan: &Plan) -> f64 {
    let row = |rows: Rows<'_, f32>, row: u32| rows.row(row as usize).to_vec();
    let loss = |group: &didyma::estimator::Group| {
        let atoms = plan.atoms(group);
        let theta: Vec<f32> = atoms.iter().flat_map(|&atom| row(data.theta(), atom)).collect();
        let x = row(data.x(), group.context);
        let (theta, x) = (Rows::new("theta", &theta, 2).unwrap(), Rows::new("x", &x, 2).unwrap());
        let log_q = flow.log_density(params, theta, x).unwrap();
        let log_prior = atoms.iter().map(|&atom| data.log_prior()[atom as usize]);
        let mut log_g: Vec<f64> = log_q.iter().zip(log_prior).map(|(q, p)| q - p).collect();
        reduce(plan, group, log_q[0], &mut log_g, &mut vec![0.0; log_q.len()])
    };
    plan.groups().iter().map(loss).sum()
}

#[test]
fn losses_are_those_of_the_engine() {
    let mut problem = problem(1);
    let (data, mut gradient) = (data(), vec![0.0; problem.gradient_len()]);
    let (flow, params) = flow();
    let mut engine = CpuEngine::new(flow, params, &data, AdamConfig::default(), 1).unwrap();
    for plan in plans(&mut problem) {
        let expected = engine.evaluate(&plan).unwrap();
        let found = problem.evaluate(&plan, &mut gradient).unwrap();
        // Both take the same log-densities, to the last bits of f32 (2⁻²⁴ of numbers below 16) if sums are in another
        // order, and add up in f64; the weights of a plan add up to a few units.
        assert!((found - expected).abs() < 1e-5, "{found} instead of {expected}");
    }
}

#[test]
fn gradients_are_those_of_the_loss_in_f64() {
    let mut problem = problem(1);
    let (data, mut gradient) = (data(), vec![0.0; problem.gradient_len()]);
    let (flow, params) = flow();
    let mut rng = STREAMS.stream(Purpose::Weights, 1, 0);
    for plan in plans(&mut problem) {
        problem.evaluate(&plan, &mut gradient).unwrap();
        for _ in 0..3 {
            let direction: Vec<f64> =
                params.iter().map(|_| 2.0 * rng.random::<f64>() - 1.0).collect();
            // Third derivatives along a direction of length √(n/3) ~ 60 are below 60³ of moderate ones: h² of them is
            // 1e-8 with this h, and rounding ε/h is 1e-9.
            let h = 2e-7;
            let moved = |h: f64| {
                let moved: Vec<f64> =
                    params.iter().zip(&direction).map(|(&p, d)| f64::from(p) + h * d).collect();
                loss_in_f64(&flow, &moved, &data, &plan)
            };
            let expected = (moved(h) - moved(-h)) / (2.0 * h);
            let found: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
            // f32 is right to 5e-6 of a typical gradient (tests/numbers/engine.rs). Those of a difference's atoms cancel: what
            // is left is smaller by about √M ≤ 32, of which the bound allows all.
            let size: f64 = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            let tolerance = 32.0 * 5e-6 * size.max(expected.abs()) + 1e-7;
            assert!((found - expected).abs() < tolerance, "{found} instead of {expected} ({size})");
        }
    }
}

#[test]
fn same_bytes_for_any_number_of_threads_and_in_any_company() {
    let mut alone = problem(1);
    let plans = plans(&mut alone);
    let nothing = Evaluated { loss: 0.0, gradient: vec![0.0; alone.gradient_len()] };
    let mut expected = vec![nothing.clone(); plans.len()];
    for (plan, to) in plans.iter().zip(&mut expected) {
        to.loss = alone.evaluate(plan, &mut to.gradient).unwrap();
    }
    for threads in [1, 2, 3, 8] {
        let mut found = vec![nothing.clone(); plans.len()];
        problem(threads).evaluate_all(&plans, &mut found).unwrap();
        assert!(found == expected, "{threads} threads");
    }
    let settings = Settings { coupling: Coupling::Inclusive, ..Settings::paper(Method::Tgrr) };
    let study = LevelStudy { settings, highest: 3, budget: 100 };
    let report = |threads| study.run(&mut problem(threads), STREAMS).unwrap();
    assert!(report(1) == report(3));
}

#[test]
fn what_cannot_be_evaluated_is_refused() {
    let mut problem = problem(2);
    let mut gradient = vec![0.0; problem.gradient_len()];
    let mut plan = Plan::default();
    assert!(matches!(problem.evaluate(&plan, &mut gradient), Err(Error::EmptyPlan)));
    plan.push_own(ROWS as u32, 1.0);
    let found = problem.evaluate(&plan, &mut gradient);
    assert!(matches!(found, Err(Error::NoSuchRow { row: ROWS, rows: ROWS })), "{found:?}");
    // 8 · 2^8 samples of a block, from 1,500 rows.
    let study = LevelStudy { highest: 8, ..LevelStudy::new(Settings::paper(Method::Tgrr)) };
    let told = study.run(&mut problem, STREAMS).unwrap_err().to_string();
    assert!(told.contains("level 8") && told.contains("2048") && told.contains("1499"), "{told}");
    let data = data();
    let (flow, params) = flow();
    let told = TrainedFlow::new(flow.clone(), params, data.clone(), 0).unwrap_err().to_string();
    assert!(told.contains("threads is 0"), "{told}");
    assert!(TrainedFlow::new(flow, vec![0.0; 3], data, 1).is_err());
}

/// Keeps what a run tells of.
#[derive(Default)]
struct Kept {
    rows: Vec<SimulatedRow>,
    losses: Vec<f64>,
}

impl Observer for Kept {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        match event {
            Event::Simulated { rows, .. } => self.rows.extend_from_slice(rows),
            Event::RoundFinished { report, .. } => self.losses.extend(report.train_loss),
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn small_run() -> (Posterior, Kept) {
    let task = Task::named("gaussian-linear").unwrap();
    let mut config = Config::new(Profile::Default, Method::Tgrr);
    (config.rounds, config.simulations) = (2, 300);
    (config.train.steps, config.train.cycles) = (Some(200), 1);
    (config.flow.layers, config.flow.units) = (2, 16);
    let mut kept = Kept::default();
    let found = infer_from(&task.problem, None, &config, 2, State::default(), &mut kept).unwrap();
    (found.posterior.unwrap(), kept)
}

#[test]
fn the_flow_of_a_run_has_the_loss_of_its_training_and_levels_that_fall() {
    let (posterior, kept) = small_run();
    let mut rows = kept.rows;
    rows[7].x = Err("it broke".to_owned());
    let missing = TrainedFlow::of_posterior(&posterior, rows.clone(), Meaning::Missing, 2).unwrap();
    assert_eq!(missing.rows(), 599, "a missing one is none");
    let mut problem = TrainedFlow::of_posterior(&posterior, rows, Meaning::Outcome, 2).unwrap();
    assert_eq!(problem.rows(), 600, "the parameters of the failed one are an inner sample");
    let (coupling, m0) = (Coupling::Inclusive, 4);
    let settings = Settings { coupling, m0, ..Settings::paper(Method::Tgrr) };
    let study = LevelStudy { settings, highest: 5, budget: 10_000 };
    let report: LevelReport = study.run(&mut problem, STREAMS).unwrap();
    // The levels telescope to the atomic loss of training.
    let loss: f64 = report.levels[..=4].iter().map(|l| l.mean_loss).sum();
    let error = report.levels[..=4].iter().map(|l| l.mean_loss_se.powi(2)).sum::<f64>().sqrt();
    let trained = kept.losses[1];
    assert!((loss - trained).abs() < 4.0 * error + 0.1, "{loss} ± {error}, trained to {trained}");
    // With the outer θ in every block, differences begin to fall only where blocks hold several samples of the posterior's
    // size: from level 1 to 5, with 16 times the samples, the loss must have done so; standard errors are 2 to 5 %.
    let second_moment = |level: usize| report.levels[level].second_moment_loss;
    assert!(second_moment(5) < 0.5 * second_moment(1), "{report:?}");
    assert!(report.r1 > 0.0 && report.base.variance_gradient > 0.0);
}
