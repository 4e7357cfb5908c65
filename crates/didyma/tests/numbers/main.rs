//! Numbers: kernels, flows, estimators, engines and metrics by their laws, definitions and golden vectors.

#![allow(clippy::unwrap_used)]

mod calibration;
mod engine;
mod estimator_laws;
mod estimator_vectors;
mod flow_laws;
mod golden;
mod kernels;
mod laws;
mod metrics;
mod model_file;
mod score;
