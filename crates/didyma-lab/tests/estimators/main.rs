//! Estimators on the exact toys, and the studies of cost and convergence.

mod studies;
mod toys;
