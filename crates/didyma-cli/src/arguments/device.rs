//! `--device`: where flows are trained.

use super::named;
use crate::output::tell;
use crate::wording::word;
use clap::Parser;
use didyma::config::Config;
use didyma::tasks::Task;
use didyma::training::Machine;
use didyma_cuda::{DeviceChoice, OpenDevice};

/// Where flows are trained and evaluated.
#[derive(Debug, Parser)]
pub struct DeviceArgs {
    /// Where flows are trained and evaluated: auto takes a GPU that `didyma devices` finds usable, else the CPU. The result
    /// is the same bytes on the same kind of device, and the same within noise on another.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = named::<DeviceChoice>())]
    pub device: DeviceChoice,
}

impl DeviceArgs {
    /// Opens the device that was chosen.
    pub fn open(&self) -> anyhow::Result<OpenDevice> {
        Ok(self.device.open(&word, tell_note)?)
    }

    /// The machine for a run of this task with these settings.
    pub fn machine(&self, config: &Config, task: &Task, threads: usize) -> anyhow::Result<Machine> {
        Ok(self.device.machine(config, task.problem.dims(), threads, &word, tell_note)?)
    }
}

fn tell_note(text: &str) {
    tell(&format!("note: {text}"));
}
