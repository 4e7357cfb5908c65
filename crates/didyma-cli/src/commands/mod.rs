//! The commands: each in a file of its own, with its arguments, its work and what it prints.

mod abc;
mod alpha;
mod bench;
mod calibrate;
mod check;
mod devices;
mod evaluate;
mod help;
mod infer;
mod init;
mod levels;
mod log_density;
mod merge;
mod metrics;
mod plot;
mod propose;
mod reference;
mod report;
mod reproduce;
mod resume;
mod sample;
mod seeds;
mod settings;
mod show;
mod simulate;
mod tasks;
mod train;
mod watch;

use crate::ExitCode;
use clap::{Parser, Subcommand};

/// Simulation-based Bayesian inference: from a simulator, a prior and an observation to a posterior.
#[derive(Debug, Parser)]
#[command(name = "didyma", version, arg_required_else_help = true, subcommand_required = true)]
#[command(help_template = help::template())]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Infer(infer::InferArgs),
    Init(init::InitArgs),
    Check(check::CheckArgs),
    Resume(resume::ResumeArgs),
    Propose(propose::ProposeArgs),
    Merge(merge::MergeArgs),
    Train(train::TrainArgs),
    Show(show::ShowArgs),
    Watch(watch::WatchArgs),
    Sample(sample::SampleArgs),
    Evaluate(evaluate::EvaluateArgs),
    Calibrate(calibrate::CalibrateArgs),
    LogDensity(log_density::LogDensityArgs),
    Report(report::ReportArgs),
    Plot(plot::PlotArgs),
    Settings(settings::SettingsArgs),
    Tasks(tasks::TasksArgs),
    Simulate(simulate::SimulateArgs),
    Reference(reference::ReferenceArgs),
    Abc(abc::AbcArgs),
    Metrics(metrics::MetricsArgs),
    Alpha(alpha::AlphaArgs),
    Levels(levels::LevelsArgs),
    Reproduce(reproduce::ReproduceArgs),
    Devices(devices::DevicesArgs),
    Bench(bench::BenchArgs),
}

impl Command {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Infer(args) => infer::run(args),
            Self::Init(args) => init::run(args),
            Self::Check(args) => check::run(args),
            Self::Resume(args) => resume::run(args),
            Self::Propose(args) => propose::run(args),
            Self::Merge(args) => merge::run(args),
            Self::Train(args) => train::run(args),
            Self::Show(args) => show::run(args),
            Self::Watch(args) => watch::run(args),
            Self::Sample(args) => sample::run(args),
            Self::Evaluate(args) => evaluate::run(args),
            Self::Calibrate(args) => calibrate::run(args),
            Self::LogDensity(args) => log_density::run(args),
            Self::Report(args) => report::run(args),
            Self::Plot(args) => plot::run(args),
            Self::Settings(args) => settings::run(args),
            Self::Tasks(args) => tasks::run(args),
            Self::Simulate(args) => simulate::run(args),
            Self::Reference(args) => reference::run(args),
            Self::Abc(args) => abc::run(args),
            Self::Metrics(args) => metrics::run(args),
            Self::Alpha(args) => alpha::run(args),
            Self::Levels(args) => levels::run(args),
            Self::Reproduce(args) => reproduce::run(args),
            Self::Devices(args) => devices::run(args),
            Self::Bench(args) => bench::run(args),
        }
    }
}
