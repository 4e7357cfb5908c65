//! Runs: problems, simulators, rounds, the directory of a run, reports, and the levels of a trained flow.

mod abc;
mod calibration;
mod columns;
mod front_door;
mod hard;
mod inference;
mod names;
mod problem;
mod report;
mod run_dir;
mod simulator;
mod tasks;
mod trained;
mod trust;
