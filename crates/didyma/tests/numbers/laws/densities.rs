//! Densities and draws against those in f64.

use super::{Case, coordinate_error, density_error, normal};
use didyma::flow::Groups;
use didyma::training::{Cpu, Device, Evaluator};
use didyma::{FlowConfig, Rows};
use std::sync::Arc;

/// Of even, odd and one dimension, with and without blocks.
fn cases() -> Vec<Case> {
    [
        FlowConfig { layers: 2, units: 12, ..FlowConfig::new(2, 2) },
        FlowConfig { layers: 2, units: 21, bound: 3.0, ..FlowConfig::new(3, 5) },
        FlowConfig { layers: 2, blocks: 1, units: 9, bins: 3, ..FlowConfig::new(1, 2) },
        FlowConfig { layers: 2, blocks: 0, units: 7, bins: 4, ..FlowConfig::new(3, 1) },
    ]
    .map(|config| Case::new(config, 60))
    .into()
}

fn compare(config: &FlowConfig, found: &[f64], expected: &[f64], times: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let tolerance = times * density_error(config, *expected);
        let error = (found - expected).abs();
        assert!(error <= tolerance, "{config:?}: {found} instead of {expected} ± {tolerance}");
    }
}

/// With an x for each row, and with one for all.
pub fn densities_are_those_of_f64(device: &Arc<dyn Device>) {
    for case in cases() {
        let (flow, theta) = (&case.flow, case.data.theta());
        let config = flow.config();
        let one = Rows::new("x", case.data.x().row(4), config.x_dim).unwrap();
        for x in [case.data.x(), one] {
            let found = device.log_density(flow, &case.params, theta, x).unwrap();
            compare(config, &found, &flow.log_density(&case.wide(), theta, x).unwrap(), 1.0);
            // Each of them may be wrong by that much.
            let cpu = Cpu.log_density(flow, &case.params, theta, x).unwrap();
            compare(config, &found, &cpu, 2.0);
        }
    }
}

/// A row's density is the same bytes alone, among few and among many, whether it shares its x or not; other parameters in
/// between leave no trace.
pub fn a_row_does_not_depend_on_the_others(device: &Arc<dyn Device>) {
    let Case { flow, params, data } = Case::small(2300);
    let one = Rows::new("x", data.x().row(0), 2).unwrap();
    let theta = |count: usize| Rows::new("theta", &data.theta().data()[..2 * count], 2).unwrap();
    let all = device.log_density(&flow, &params, data.theta(), one).unwrap();
    let zeros = vec![0.0; params.len()];
    for count in [1, 7, 40, 1200] {
        device.log_density(&flow, &zeros, theta(3), one).unwrap();
        let few = device.log_density(&flow, &params, theta(count), one).unwrap();
        assert_eq!(few, all[..count], "{count} rows");
        let x = data.x().row(0).repeat(count);
        let x = Rows::new("x", &x, 2).unwrap();
        assert_eq!(device.log_density(&flow, &params, theta(count), x).unwrap(), few);
    }
    let (x, base) = (data.x().row(0), normal(7, 2 * 1200));
    let all = device.transport(&flow, &params, x, &base).unwrap();
    for count in [1, 7, 40] {
        let few = device.transport(&flow, &params, x, &base[..2 * count]).unwrap();
        assert!(few.0 == all.0[..2 * count] && few.1 == all.1[..count], "{count} draws");
    }
}

/// θ of a draw is that of f64 up to the error of a coordinate, which linear maps and splines on its way stretch by some
/// small factor, taken as 5; and its log q is what the density has there: both are wrong by what f32 is, and θ, rounded
/// to f32, has moved by less than that.
pub fn draws_are_those_of_f64_and_have_their_density(device: &Arc<dyn Device>) {
    for case in cases() {
        let (flow, x) = (&case.flow, case.data.x().row(3));
        let config = flow.config();
        let base = normal(7, 40 * config.theta_dim);
        let (theta, log_q) = device.transport(flow, &case.params, x, &base).unwrap();
        let (exact, exact_log_q) = flow.transport(&case.wide(), x, &base).unwrap();
        for (found, exact) in theta.iter().zip(exact) {
            let error = f64::from((found - exact).abs());
            assert!(error <= 5.0 * coordinate_error(config), "{found} instead of {exact}");
        }
        compare(config, &log_q, &exact_log_q, 1.0);
        let rows = Rows::new("theta", &theta, config.theta_dim).unwrap();
        let x = Rows::new("x", x, config.x_dim).unwrap();
        let there = device.log_density(flow, &case.params, rows, x).unwrap();
        compare(config, &log_q, &there, 2.0);
    }
}

/// Groups that share x, empty ones and one of more rows than a tile among them, have the bytes that they have one by one.
pub fn groups_are_their_rows(device: &Arc<dyn Device>) {
    let Case { flow, params, data } = Case::small(2300);
    let sizes = [vec![0, 1, 300], vec![2; 70], vec![0]].concat();
    let count: usize = sizes.iter().sum();
    let x = Rows::new("x", &data.x().data()[..2 * sizes.len()], 2).unwrap();
    let groups = Groups { x, sizes: &sizes };
    let base = normal(8, 2 * count);
    let base = Rows::new("base", &base, 2).unwrap();
    let (theta, log_q) = device.transport_groups(&flow, &params, base, groups).unwrap();
    let rows = Rows::new("theta", &theta, 2).unwrap();
    let densities = device.log_density_of_groups(&flow, &params, rows, groups).unwrap();
    let mut first = 0;
    for (x, &size) in x.iter().zip(&sizes) {
        let last = first + size;
        let alone = device.transport(&flow, &params, x, &base.data()[2 * first..2 * last]).unwrap();
        assert!(alone.0 == theta[2 * first..2 * last] && alone.1 == log_q[first..last], "{first}");
        let own = Rows::new("theta", &theta[2 * first..2 * last], 2).unwrap();
        let x = Rows::new("x", x, 2).unwrap();
        let alone = device.log_density(&flow, &params, own, x).unwrap();
        assert_eq!(alone, densities[first..last], "{first}");
        first = last;
    }
    assert!(
        device.transport_groups(&flow, &params, rows, Groups { x, sizes: &sizes[1..] }).is_err()
    );
}
