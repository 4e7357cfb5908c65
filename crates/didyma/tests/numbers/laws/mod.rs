//! Laws that every device obeys, and a test of each of them for each device. Other crates' tests include this file.

pub mod densities;
pub mod failing;
pub mod gradients;
pub mod inference;
pub mod refusals;
pub mod samples;
pub mod training;
pub mod vectors;

use didyma::estimator::{Group, Plan, reduce};
use didyma::flow::Gradient;
use didyma::kernel::Kernels;
use didyma::rng::{Purpose, Streams};
use didyma::training::{AdamConfig, Decay, Device, Engine, EngineState};
use didyma::{Dataset, FlowConfig, Rows, SplineFlow, Tape};
use rand_distr::{Distribution, StandardNormal};
use std::io::Write;
use std::sync::Arc;

/// The tests of a device, which a function finds.
macro_rules! test {
    ($device:path) => {
        $crate::laws::test! { $device;
            training: loss_and_first_step_are_those_of_the_formula, parameters_without_x_are_atoms_like_others,
                same_bytes_from_run_to_run,
                training_finds_a_known_conditional_density, a_longer_dataset_changes_nothing_for_its_first_rows,
                a_state_goes_on_with_the_same_bytes, a_state_goes_from_device_to_device;
            failing: a_step_that_is_not_finite_changes_nothing, an_infinite_gradient_is_not_followed;
            refusals: engines_refuse_with_the_argument_and_the_remedy,
                densities_and_samples_refuse_what_the_flow_refuses;
            gradients: gradient_of_the_papers_flow, gradient_in_one_dimension, gradient_without_blocks,
                gradient_of_matrices_in_slabs, gradient_over_middle_tiles, gradient_over_large_tiles,
                gradient_over_more_tiles_than_blocks;
            vectors: golden_flows, golden_estimators;
            densities: densities_are_those_of_f64, a_row_does_not_depend_on_the_others,
                draws_are_those_of_f64_and_have_their_density, groups_are_their_rows;
            samples: samples_agree_with_the_density;
            inference: a_run_by_tgrr_ends_with_the_same_bytes_here_and_goes_on_elsewhere,
                a_run_by_the_mixture_ends_with_the_same_bytes_here_and_goes_on_elsewhere,
                a_run_by_tsnpe_ends_with_the_same_bytes_here_and_goes_on_elsewhere;
        }
    };
    ($device:path; $($part:ident: $($law:ident),+;)+) => {
        $($(
            #[test]
            fn $law() {
                let name = concat!(module_path!(), "::", stringify!($law));
                $crate::laws::on(name, $device(), $crate::laws::$part::$law);
            }
        )+)+
    };
}
pub(crate) use test;

/// A device, or why there is none.
pub type Found = Result<Arc<dyn Device>, String>;

/// Tests a law, or says that it is skipped and why: past the capture of the test's output, to be seen when it passes.
pub fn on(name: &str, device: &Found, law: fn(&Arc<dyn Device>)) {
    let (_, name) = name.split_once("::").unwrap_or(("", name));
    match device {
        Ok(device) => law(device),
        Err(why) => {
            let mut out = std::io::stderr().lock();
            writeln!(out, "skipped: {name}: {why}").unwrap();
        }
    }
}

const STREAMS: Streams = Streams::new(5);

fn normal(index: u64, count: usize) -> Vec<f32> {
    let mut rng = STREAMS.stream(Purpose::Synthetic, 0, index);
    (0..count).map(|_| StandardNormal.sample(&mut rng)).collect()
}

/// A flow with its parameters, and data for it.
pub struct Case {
    pub flow: SplineFlow,
    params: Vec<f32>,
    pub data: Dataset,
}

impl Case {
    pub fn new(config: FlowConfig, rows: usize) -> Self {
        let (theta, x) = (normal(0, rows * config.theta_dim), normal(1, rows * config.x_dim));
        let log_prior: Vec<f64> = (0..rows).map(|i| (i as f64).sin()).collect();
        let theta = Rows::new("theta", &theta, config.theta_dim).unwrap();
        let data = Dataset::new(theta, Rows::new("x", &x, config.x_dim).unwrap(), &log_prior);
        let flow = SplineFlow::new(config).unwrap();
        // Away from the start, where blocks are nearly the identity.
        let noise = normal(2, flow.params_len());
        let params: Vec<f32> = flow.initial_params(&mut STREAMS.stream(Purpose::Weights, 0, 0));
        let params = params.iter().zip(noise).map(|(p, n)| p + 0.05 * n).collect();
        Self { flow, params, data: data.unwrap() }
    }

    /// A flow that every device trains in no time.
    fn small(rows: usize) -> Self {
        Self::new(FlowConfig { layers: 2, units: 12, ..FlowConfig::new(2, 2) }, rows)
    }

    fn engine(&self, device: &Arc<dyn Device>, adam: AdamConfig) -> Box<dyn Engine> {
        device.engine(self.flow.clone(), self.params.clone(), &self.data, adam, 2).unwrap()
    }

    fn wide(&self) -> Vec<f64> {
        self.params.iter().map(|&p| f64::from(p)).collect()
    }

    /// Loss and gradient of a plan, in f64.
    fn exact(&self, plan: &Plan) -> (f64, Vec<f64>) {
        let (params, mut gradient) = (self.wide(), vec![0.0; self.params.len()]);
        let largest = plan.groups().iter().map(Group::pairs).max().unwrap();
        let mut tape = Tape::with_kernels(&self.flow, largest, Kernels::<f64>::scalar());
        let mut add = |group| self.add_exact(&params, plan, group, &mut tape, &mut gradient);
        let loss = plan.groups().iter().map(&mut add).sum();
        (loss, gradient)
    }

    fn add_exact(
        &self,
        params: &[f64],
        plan: &Plan,
        group: &Group,
        tape: &mut Tape<f64>,
        sum: &mut [f64],
    ) -> f64 {
        let Self { flow, data, .. } = self;
        let widen = |row: &[f32]| row.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
        tape.clear();
        tape.context(widen(data.x().row(group.context as usize)));
        for &atom in plan.atoms(group) {
            tape.pair(widen(data.theta().row(atom as usize)));
        }
        flow.forward(params, tape);
        let log_q = tape.log_q().to_vec();
        let mut weights = vec![0.0; log_q.len()];
        let log_prior = plan.atoms(group).iter().map(|&atom| data.log_prior()[atom as usize]);
        let mut log_g: Vec<f64> = log_q.iter().zip(log_prior).map(|(q, p)| q - p).collect();
        let loss = reduce(plan, group, log_q[0], &mut log_g, &mut weights);
        flow.backward(params, tape, &weights, Gradient { sum, accumulate: true });
        loss
    }
}

/// Adam whose first moments, after one step, are a tenth of the gradient.
fn plain_adam() -> AdamConfig {
    AdamConfig { clip: f64::INFINITY, decay: Decay::Coupled(0.0), ..AdamConfig::default() }
}

/// A plan of so many pairs, at least 113, on a dataset of so many rows: groups of all sizes and kinds.
fn plan(pairs: u32, rows: u32) -> Plan {
    let mut plan = Plan::default();
    let row = move |i: u32| i % rows;
    plan.push_own(row(3), 1.0);
    plan.group(row(5), (0..45).map(|i| row(7 * i))).own(0.3).log_mean_exp(0.2);
    plan.group(row(9), (0..41).map(|i| row(4 + 11 * i)))
        .share_first()
        .own(0.1)
        .antithetic_difference(0.4);
    let log_weights: Vec<f64> = (0..6).map(|i| (0.1 * f64::from(i)).cos()).collect();
    plan.group(row(11), (0..6).map(|i| row(13 * i))).log_weights(&log_weights).log_mean_exp(0.4);
    (0..20).for_each(|i| plan.push_own(row(i), 0.05));
    let left = pairs - plan.pairs() as u32;
    if left > 0 {
        plan.group(row(17), (0..left).map(|i| row(2 + 5 * i))).log_mean_exp(0.5);
    }
    plan
}

fn params(engine: &dyn Engine, len: usize) -> Vec<f32> {
    let mut params = vec![0.0; len];
    engine.read_params(&mut params).unwrap();
    params
}

fn state(engine: &dyn Engine) -> EngineState {
    let mut state = EngineState::default();
    engine.read_state(&mut state).unwrap();
    state
}

/// Rounding error of a number in f32, relative.
const EPSILON: f64 = f32::EPSILON as f64 / 2.0;

/// How far f32 may move a coordinate on its way through a flow. In every layer it is placed among knots of the size of the
/// bound, each the sum of some ten numbers that are rounded: √10 roundings of up to ε · bound, taken as 4.
fn coordinate_error(config: &FlowConfig) -> f64 {
    config.layers as f64 * 4.0 * EPSILON * config.bound
}

/// What that does to log q: its derivative in a coordinate of the base is that coordinate, of which log q tells the largest
/// possible value, and slopes of the splines change by about as much as their argument.
fn density_error(config: &FlowConfig, log_q: f64) -> f64 {
    coordinate_error(config) * (1.0 + (2.0 * log_q.abs()).sqrt())
}
