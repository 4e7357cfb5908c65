//! The training of a network that tells two classes of rows apart, as scikit-learn's `MLPClassifier` does it.

use super::mlp::{Mlp, log_loss};
use crate::network::kernel::{AdamJob, AdamStep, Aligned, Real};
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::SliceRandom;

/// Hidden units per column of the data.
const UNITS: usize = 10;
/// Rows of one step.
const BATCH: usize = 200;
/// Adam's learning rate, β₁, β₂ and ε.
const RATE: f64 = 1e-3;
const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;
/// L2 penalty: α/2 · Σ weight² is added to the loss of every batch.
const ALPHA: f64 = 1e-4;
/// Least fall of the loss that counts.
const TOLERANCE: f64 = 1e-4;
/// Epochs in a row without such a fall that are put up with; one more ends the training.
const PATIENCE: usize = 10;
const MOST_EPOCHS: usize = 10_000;

/// Rows of two classes: those before `second` are of the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labelled<'a> {
    data: &'a [f32],
    columns: usize,
    second: usize,
}

impl<'a> Labelled<'a> {
    pub(crate) fn new(data: &'a [f32], columns: usize, second: usize) -> Self {
        Self { data, columns, second }
    }

    pub(crate) fn len(&self) -> usize {
        self.data.len() / self.columns
    }

    pub(crate) fn row(&self, i: usize) -> &'a [f32] {
        &self.data[i * self.columns..][..self.columns]
    }

    /// Whether a row is of the second class.
    pub(crate) fn label(&self, i: usize) -> bool {
        i >= self.second
    }
}

/// A network, its optimiser, and the data that it is trained on and asked about.
pub(crate) struct Classifier<'a, F: Real> {
    data: Labelled<'a>,
    batch: usize,
    rate: f64,
    pub mlp: Mlp<F>,
    m: Aligned<F>,
    v: Aligned<F>,
    /// Steps done.
    pub t: u64,
}

impl<'a, F: Real> Classifier<'a, F> {
    /// All the memory needed for training on `rows` rows of `data`.
    pub(crate) fn new(data: Labelled<'a>, rows: usize) -> Self {
        Self::shaped(data, rows, UNITS * data.columns, RATE)
    }

    /// The same for a network of so many units, at this learning rate.
    pub(crate) fn shaped(data: Labelled<'a>, rows: usize, units: usize, rate: f64) -> Self {
        let batch = rows.min(BATCH);
        let mlp = Mlp::new(data.columns, units, batch);
        let zeros = || Aligned::zeros(mlp.params.len());
        let (m, v) = (zeros(), zeros());
        Self { data, batch, rate, mlp, m, v, t: 0 }
    }

    /// Trains until the loss no longer falls; `rows` are left in the order of the last epoch.
    /// Returns the mean loss of each epoch.
    pub(crate) fn fit(&mut self, rows: &mut [usize], rng: &mut Stream) -> Vec<f64> {
        self.draw_weights(rng);
        let (mut losses, mut best, mut idle) = (Vec::new(), f64::INFINITY, 0);
        // Comparisons with NaN are false, so that a loss that is none counts as idle.
        while losses.len() < MOST_EPOCHS && idle <= PATIENCE {
            let loss = self.epoch(rows, rng) / rows.len() as f64;
            idle = if loss <= best - TOLERANCE { 0 } else { idle + 1 };
            best = best.min(loss);
            losses.push(loss);
        }
        losses
    }

    /// One pass over these rows, left in its random order; returns the loss, summed.
    pub(crate) fn epoch(&mut self, rows: &mut [usize], rng: &mut Stream) -> f64 {
        rows.shuffle(rng);
        rows.chunks(self.batch).map(|batch| self.step(batch)).sum()
    }

    /// −log of the probability that each of these rows' labels is given.
    pub(crate) fn log_losses(&mut self, rows: &[usize]) -> Vec<f64> {
        let (data, mut losses) = (self.data, Vec::with_capacity(rows.len()));
        for batch in rows.chunks(self.batch) {
            self.mlp.load(batch.iter().map(|&i| data.row(i)));
            self.mlp.forward();
            let logits = self.mlp.logits().zip(batch);
            losses.extend(logits.map(|(logit, &i)| log_loss(logit.f64(), data.label(i)).0));
        }
        losses
    }

    /// The probability of the second class for each of these rows, which need not be of the data.
    pub(crate) fn probabilities(&mut self, rows: &[f32]) -> Vec<f64> {
        let columns = self.data.columns;
        let mut probabilities = Vec::with_capacity(rows.len() / columns);
        for batch in rows.chunks(self.batch * columns) {
            self.mlp.load(batch.chunks_exact(columns));
            self.mlp.forward();
            let logits = self.mlp.logits();
            probabilities.extend(logits.map(|logit| 1.0 / (1.0 + (-logit.f64()).exp())));
        }
        probabilities
    }

    /// Share of these rows that are told rightly.
    pub(crate) fn accuracy(&mut self, rows: &[usize]) -> f64 {
        let data = self.data;
        let mut right = 0;
        for batch in rows.chunks(self.batch) {
            self.mlp.load(batch.iter().map(|&i| data.row(i)));
            self.mlp.forward();
            let logits = self.mlp.logits();
            right += logits.zip(batch).filter(|&(l, &i)| (l > F::zero()) == data.label(i)).count();
        }
        right as f64 / rows.len() as f64
    }

    /// Glorot's uniform law, for weights and biases alike.
    pub(crate) fn draw_weights(&mut self, rng: &mut Stream) {
        for layer in self.mlp.layers {
            let bound = (6.0 / (layer.inputs + layer.outputs) as f64).sqrt();
            for range in [layer.weights(), layer.bias()] {
                self.mlp.params[range].fill_with(|| F::of(rng.random_range(-bound..bound)));
            }
        }
    }

    /// One step of Adam; returns the loss before it, summed over the batch.
    fn step(&mut self, batch: &[usize]) -> f64 {
        let data = self.data;
        self.mlp.load(batch.iter().map(|&i| data.row(i)));
        self.mlp.forward();
        let loss = self.mlp.backward(batch.iter().map(|&i| data.label(i)));
        let squares: f64 = self.mlp.weights().iter().map(|w| w.f64() * w.f64()).sum();
        self.t += 1;
        let weights = self.mlp.weights().len();
        let step = adam_step(self.rate, self.t, batch.len());
        let exempt = AdamStep { coupled_decay: 0.0, ..step };
        for (range, step) in [(0..weights, step), (weights..self.m.len(), exempt)] {
            (self.mlp.kernels.adam)(AdamJob {
                weights: &mut self.mlp.params[range.clone()],
                gradient: &self.mlp.gradient[range.clone()],
                m: &mut self.m[range.clone()],
                v: &mut self.v[range],
                step,
            });
        }
        loss + 0.5 * ALPHA * squares
    }
}

/// Step `t` on a gradient summed over `batch` rows. Where the correction of the second moment stands
/// decides what ε is compared with; in scikit-learn it is part of the rate.
fn adam_step(rate: f64, t: u64, batch: usize) -> AdamStep {
    AdamStep {
        gradient_scale: 1.0 / batch as f64,
        coupled_decay: ALPHA / batch as f64,
        shrink: 1.0,
        beta1: [BETA1, 1.0 - BETA1],
        beta2: [BETA2, 1.0 - BETA2],
        rate: rate * (1.0 - BETA2.powf(t as f64)).sqrt() / (1.0 - BETA1.powf(t as f64)),
        v_scale: 1.0,
        epsilon: EPSILON,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    /// Two clusters in one dimension that overlap a little, in no order.
    const DATA: [f32; 12] = [-2.0, 0.3, -1.1, -0.7, -0.2, -1.6, 0.9, 2.1, -0.4, 1.2, 0.1, 1.7];

    fn rng() -> Stream {
        Streams::new(5).stream(Purpose::Metric, 0, 1)
    }

    /// The loss of a step, weight decay included, and the parameters after it, in plain loops.
    fn textbook(classifier: &Classifier<f64>, rows: &[usize]) -> (f64, Vec<f64>) {
        let (mlp, n) = (&classifier.mlp, rows.len() as f64);
        let weights = mlp.weights().len();
        let mut copy = Classifier::<f64>::new(classifier.data, rows.len());
        copy.mlp.params.copy_from_slice(&mlp.params);
        copy.mlp.load(rows.iter().map(|&i| classifier.data.row(i)));
        copy.mlp.forward();
        let loss = copy.mlp.backward(rows.iter().map(|&i| classifier.data.label(i)));
        let squares: f64 = mlp.weights().iter().map(|w| w * w).sum();
        let moved = mlp.params.iter().zip(&*copy.mlp.gradient).enumerate().map(|(i, (w, g))| {
            let g = g / n + if i < weights { ALPHA * w / n } else { 0.0 };
            // The first step of Adam: both moments are the gradient's own.
            let rate = RATE * (1.0 - BETA2).sqrt() / (1.0 - BETA1);
            w - rate * (1.0 - BETA1) * g / (((1.0 - BETA2) * g * g).sqrt() + EPSILON)
        });
        (n * (loss / n + 0.5 * ALPHA * squares / n), moved.collect())
    }

    #[test]
    fn a_step_is_that_of_scikit_learn() {
        let data = Labelled::new(&DATA, 1, 6);
        let mut classifier = Classifier::<f64>::new(data, 12);
        classifier.draw_weights(&mut rng());
        let rows: Vec<usize> = (0..12).collect();
        let (loss, params) = textbook(&classifier, &rows);
        assert!((classifier.step(&rows) - loss).abs() < 1e-13);
        for (found, expected) in classifier.mlp.params.iter().zip(params) {
            // Where the gradient is nearly ε, its rounding is divided by ε: 1e-16 · 1e-3 / 1e-8.
            assert!((found - expected).abs() < 1e-11, "{found} {expected}");
        }
    }

    #[test]
    fn weights_fill_the_interval_of_glorot() {
        let data = [0.0; 40];
        let mut classifier = Classifier::<f32>::new(Labelled::new(&data, 4, 5), 10);
        classifier.draw_weights(&mut rng());
        for layer in classifier.mlp.layers {
            let bound = (6.0 / (layer.inputs + layer.outputs) as f32).sqrt();
            let weights = &classifier.mlp.params[layer.weights()];
            let most = weights.iter().fold(0.0f32, |most, w| most.max(w.abs()));
            // 40 numbers at least: all within 80 % of the bound has probability 0.8⁴⁰ = 1e-4.
            assert!(most <= bound && most > 0.8 * bound, "{most} of {bound}");
        }
    }

    #[test]
    fn probabilities_are_those_of_the_losses() {
        let mut classifier = Classifier::<f64>::new(Labelled::new(&DATA, 1, 6), 5);
        classifier.draw_weights(&mut rng());
        let losses = classifier.log_losses(&(0..12).collect::<Vec<_>>());
        for (i, (p, loss)) in classifier.probabilities(&DATA).iter().zip(losses).enumerate() {
            let right = if i < 6 { 1.0 - p } else { *p };
            assert!((right.ln() + loss).abs() < 1e-14);
        }
    }

    #[test]
    fn training_stops_after_eleven_idle_epochs() {
        let mut classifier = Classifier::<f32>::new(Labelled::new(&DATA, 1, 6), 12);
        let losses = classifier.fit(&mut (0..12).collect::<Vec<_>>(), &mut rng());
        let best_before = |i: usize| losses[..i].iter().fold(f64::INFINITY, |a, &b| a.min(b));
        let falls = |i: usize| losses[i] <= best_before(i) - TOLERANCE;
        let last = (0..losses.len()).rev().find(|&i| falls(i));
        assert_eq!(last, Some(losses.len() - 1 - PATIENCE - 1));
        let runs = losses.len() - PATIENCE - 1;
        assert!((0..runs).all(|i| (i..i + PATIENCE + 1).any(falls)), "it went on too long");
        assert!(losses.len() > 100 && losses[losses.len() - 1] < 0.8 * losses[0]);
    }

    #[test]
    fn numbers_that_are_none_end_the_training() {
        let data = [f32::NAN; 10];
        let mut classifier = Classifier::<f32>::new(Labelled::new(&data, 1, 5), 10);
        let losses = classifier.fit(&mut (0..10).collect::<Vec<_>>(), &mut rng());
        // Rectified, NaN is zero: the first step may have a loss, but none after it.
        assert!(losses.len() <= PATIENCE + 2, "{losses:?}");
    }
}
