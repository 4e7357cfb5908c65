//! Gradients against those in f64, over shapes and tiles of all kinds.

use super::{Case, plain_adam, plan, state};
use didyma::FlowConfig;
use didyma::training::{Cpu, Device};
use std::sync::Arc;

/// Of every tensor's norm. In f32 alone a gradient passes some 60 products of length 50 on its way, with a relative error of
/// about √50 ε each that adds up like a random walk: 5e-6 for a typical tensor. Two more things are allowed for. A device
/// may multiply on tensor cores, with numbers as sums of two of 11 bits (TF32): what is cut off the second, and the product of
/// the two second parts, are each below 2⁻²⁰ of a product, 2e-6 together. And the weights of a log-mean-exp are
/// exponentials of log q, which is right to about 2e-5, by turns too large and too small from row to row: over 40 rows
/// 2e-5 / √40 = 3e-6. Together less than 1e-5, of which the bound allows five times.
const TOLERANCE: f64 = 5e-5;

fn norm(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| x * x).sum::<f64>().sqrt()
}

/// After the first step, moments are a tenth of the gradient: f32(1 − 0.9) is 0.1 to 1e-8.
fn gradient(device: &Arc<dyn Device>, case: &Case, pairs: u32) -> Vec<f64> {
    let mut engine = case.engine(device, plain_adam());
    engine.step(&plan(pairs, case.data.len() as u32), 1e-3).unwrap();
    state(&*engine).m.iter().map(|&m| 10.0 * f64::from(m)).collect()
}

fn is_that_of_f64(device: &Arc<dyn Device>, config: FlowConfig, pairs: u32) {
    let case = Case::new(config.clone(), 150);
    let (_, exact) = case.exact(&plan(pairs, 150));
    let found = gradient(device, &case, pairs);
    let mut worst = (0.0, "");
    for tensor in case.flow.tensors() {
        let part = tensor.range.clone();
        let size = norm(exact[part.clone()].iter().copied());
        let error = norm(exact[part.clone()].iter().zip(&found[part]).map(|(e, f)| e - f));
        assert!(error <= TOLERANCE * size, "{config:?} {}: {:.1e}", tensor.name, error / size);
        if error > worst.0 * size {
            worst = (error / size, &tensor.name);
        }
    }
    // Two devices, each of which obeys the bound, differ by at most twice as much.
    let cpu = gradient(&(Arc::new(Cpu) as Arc<dyn Device>), &case, pairs);
    let apart = norm(cpu.iter().zip(&found).map(|(c, f)| c - f)) / norm(cpu.iter().copied());
    assert!(apart <= 1e-4, "{config:?}: {apart:.1e} from the CPU's");
    println!("{pairs} pairs: {:.1e} of {}, {apart:.1e} from the CPU's", worst.0, worst.1);
}

pub fn gradient_of_the_papers_flow(device: &Arc<dyn Device>) {
    is_that_of_f64(device, FlowConfig::new(4, 9), 150);
}

pub fn gradient_in_one_dimension(device: &Arc<dyn Device>) {
    let config = FlowConfig { layers: 2, blocks: 1, units: 9, bins: 3, ..FlowConfig::new(1, 2) };
    is_that_of_f64(device, config, 150);
}

pub fn gradient_without_blocks(device: &Arc<dyn Device>) {
    let config = FlowConfig { layers: 2, blocks: 0, units: 7, bins: 4, ..FlowConfig::new(3, 1) };
    is_that_of_f64(device, config, 150);
}

/// 72 columns of 70 rows are more than one slab of a GPU holds, 176 of 70 more than two.
pub fn gradient_of_matrices_in_slabs(device: &Arc<dyn Device>) {
    let config = FlowConfig { layers: 2, blocks: 3, units: 70, bins: 12, ..FlowConfig::new(9, 3) };
    is_that_of_f64(device, config, 120);
}

// A GPU's tiles have 8 rows for up to 132 · 8 = 1,056 pairs, 16 for up to 2,112, and 32 for more; over 132 · 32 = 4,224
// pairs, each of 132 blocks has several.

pub fn gradient_over_middle_tiles(device: &Arc<dyn Device>) {
    let config = FlowConfig { layers: 2, units: 13, ..FlowConfig::new(2, 2) };
    is_that_of_f64(device, config, 1300);
}

pub fn gradient_over_large_tiles(device: &Arc<dyn Device>) {
    let config = FlowConfig { layers: 2, units: 21, bound: 3.0, ..FlowConfig::new(3, 5) };
    is_that_of_f64(device, config, 2500);
}

pub fn gradient_over_more_tiles_than_blocks(device: &Arc<dyn Device>) {
    let config = FlowConfig { layers: 2, blocks: 1, units: 5, bins: 2, ..FlowConfig::new(5, 1) };
    is_that_of_f64(device, config, 4600);
}
