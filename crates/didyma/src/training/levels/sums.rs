//! What is summed up over the queries of a level.

use super::{Evaluated, LevelMoments};
use crate::error::{Error, Result};
use crate::math::moments::Moments;

/// Sums over the queries of a level.
#[derive(Default)]
pub(super) struct LevelSums {
    pub(super) queries: usize,
    loss: Moments,
    loss_square: Moments,
    gradient_square: Moments,
    /// Of the gradient's components, where they are asked for: a flow has as many as parameters.
    pub(super) components: Vec<Moments>,
}

impl LevelSums {
    /// Sums for the first so many components of the gradient.
    pub(super) fn new(components: usize) -> Self {
        Self { components: vec![Moments::default(); components], ..Self::default() }
    }

    pub(super) fn add(&mut self, level: u32, query: &Evaluated) -> Result<()> {
        let Evaluated { loss: value, gradient } = query;
        let square: f64 = gradient.iter().map(|g| g * g).sum();
        if !(value + square).is_finite() {
            return Err(Error::InfiniteQuery { level, value: *value });
        }
        self.queries += 1;
        self.loss.add(*value);
        self.loss_square.add(value * value);
        self.gradient_square.add(square);
        self.components.iter_mut().zip(gradient).for_each(|(moments, &g)| moments.add(g));
        Ok(())
    }

    pub(super) fn moments(&self, level: u32, block: usize) -> LevelMoments {
        LevelMoments {
            level,
            mean_loss: self.loss.mean(),
            mean_loss_se: self.loss.estimate().error,
            second_moment_loss: self.loss_square.mean(),
            second_moment_loss_se: self.loss_square.estimate().error,
            second_moment_gradient: self.gradient_square.mean(),
            second_moment_gradient_se: self.gradient_square.estimate().error,
            kurtosis: self.loss.kurtosis(),
            cost: block as f64,
            queries: self.queries,
        }
    }
}
