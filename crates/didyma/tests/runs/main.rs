//! Runs: problems, simulators, rounds, the directory of a run, reports, and studies of whole runs.

mod abc;
mod columns;
mod inference;
mod problem;
mod report;
mod run_dir;
mod simulator;
mod studies;
mod tasks;
mod toys;
mod trained;
