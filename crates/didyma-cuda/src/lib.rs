//! Didyma's engine on NVIDIA GPUs: training, densities and draws of spline flows by kernels that are compiled for the
//! flow at hand.
//!
//! The crate builds without CUDA. The driver and its run-time compiler (NVRTC) are looked for when a GPU is asked for,
//! so that one binary serves machines with and without one.
//!
//! A step is a graph of six kernels: what depends on x alone, once a group; the rows forward, a tile a block, through
//! all layers with the weights streaming through shared memory; the groups' reduction; the tiles backward; the sum of
//! the blocks' gradients, in a fixed order; clipping and Adam. The host sends a plan (row numbers and weights) and asks
//! for nothing.
//!
//! A front end lets its user name a [`DeviceChoice`], the CPU or a GPU, and takes the machine for a run from it;
//! [`devices`] lists what there is.

#![deny(missing_docs)]

mod buffers;
mod choice;
mod device;
mod engine;
mod evaluator;
mod kernel;
mod packing;
mod programs;
mod resident;
mod shape;

pub use choice::{DeviceChoice, Devices, OpenDevice, devices};
pub use device::{Cuda, Profile, Unavailable};
