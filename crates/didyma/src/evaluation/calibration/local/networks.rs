//! The networks of one trial of a local test: their training, and the statistic that they give.

use super::LocalSettings;
use super::pairs::{Classes, Scales};
use crate::network::classifier::{Classifier, Labelled};
use crate::rng::{Purpose, Stream, Streams};
use crate::rows::Rows;
use rand::seq::SliceRandom;

/// Hidden units of a layer for each parameter.
const UNITS: usize = 10;
/// Adam's learning rate.
const RATE: f64 = 1e-3;
/// Epochs without a lower loss of the watched pairs after which training ends, and at most.
const PATIENCE: usize = 20;
const MOST_EPOCHS: usize = 1000;
/// One of so many pairs is watched, and not trained on.
const WATCHED: usize = 10;
/// Rows that are evaluated at a time.
const BATCH: usize = 1000;

/// Parameters of the networks of one trial, an ensemble for every fold.
#[derive(Clone, Debug)]
pub(super) struct Networks {
    folds: Vec<Vec<Vec<f32>>>,
    scales: Scales,
}

impl Networks {
    pub(super) fn dim(&self) -> usize {
        self.scales.dim
    }

    pub(super) fn x_dim(&self) -> usize {
        self.scales.width() - self.scales.dim
    }

    /// The statistic at x_o, a mean over folds, and the mean probability of every evaluation row.
    pub(super) fn statistic(&self, x_o: &[f64], evaluation: Rows) -> (f64, Vec<f64>) {
        let (rows, folds) = (evaluation.len(), self.folds.len() as f64);
        let mut input = Vec::with_capacity(rows * self.scales.width());
        evaluation.iter().for_each(|theta| self.scales.push(theta, x_o, &mut input));
        let data = Labelled::new(&input, self.scales.width(), 0);
        let mut network = Classifier::<f32>::shaped(data, BATCH, units(&self.scales), RATE);
        let (mut statistic, mut means) = (0.0, vec![0.0; rows]);
        for ensemble in &self.folds {
            let mut probabilities = vec![0.0; rows];
            for params in ensemble {
                network.mlp.params.copy_from_slice(params);
                let found = network.probabilities(&input);
                let share = 1.0 / ensemble.len() as f64;
                probabilities.iter_mut().zip(found).for_each(|(sum, p)| *sum += share * p);
            }
            let squares: f64 = probabilities.iter().map(|p| (p - 0.5) * (p - 0.5)).sum();
            statistic += squares / rows as f64 / folds;
            means.iter_mut().zip(probabilities).for_each(|(mean, p)| *mean += p / folds);
        }
        (statistic, means)
    }
}

fn units(scales: &Scales) -> usize {
    UNITS * scales.dim
}

/// Networks of all folds. The order of the pairs, and so folds and watched pairs, is that of the trial.
pub(super) fn train(
    classes: &Classes,
    scales: &Scales,
    settings: LocalSettings,
    trial: usize,
    streams: &Streams,
) -> Networks {
    let stream = |index: usize| streams.stream(Purpose::LocalTest, trial as u64, index as u64);
    let mut order: Vec<usize> = (0..classes.pairs).collect();
    order.shuffle(&mut stream(0));
    let member = |fold: usize, member: usize| {
        let index = 1 + fold * settings.ensemble + member;
        network(classes, scales, &kept(&order, settings.folds, fold), &mut stream(index))
    };
    let fold = |fold: usize| (0..settings.ensemble).map(|index| member(fold, index)).collect();
    Networks { folds: (0..settings.folds).map(fold).collect(), scales: scales.clone() }
}

/// Pairs without those of a fold; all of them, if there is one fold.
fn kept(order: &[usize], folds: usize, fold: usize) -> Vec<usize> {
    let kept = order.iter().enumerate().filter(|(place, _)| folds == 1 || place % folds != fold);
    kept.map(|(_, &pair)| pair).collect()
}

/// The parameters of a network that was trained on these pairs but for the watched ones, at the lowest loss of those.
fn network(classes: &Classes, scales: &Scales, pairs: &[usize], rng: &mut Stream) -> Vec<f32> {
    let data = Labelled::new(&classes.data, scales.width(), classes.pairs);
    let (watched, training) = pairs.split_at((pairs.len() / WATCHED).max(1));
    let rows = |pairs: &[usize]| -> Vec<usize> {
        pairs.iter().flat_map(|&pair| [pair, classes.pairs + pair]).collect()
    };
    let (watched, mut training) = (rows(watched), rows(training));
    let mut network = Classifier::<f32>::shaped(data, training.len(), units(scales), RATE);
    network.draw_weights(rng);
    let (mut best, mut params, mut idle) = (f64::INFINITY, network.mlp.params.to_vec(), 0);
    for _ in 0..MOST_EPOCHS {
        network.epoch(&mut training, rng);
        let loss: f64 = network.log_losses(&watched).iter().sum();
        idle += 1;
        if loss < best {
            (best, idle) = (loss, 0);
            params.copy_from_slice(&network.mlp.params);
        }
        if idle > PATIENCE {
            break;
        }
    }
    params
}
