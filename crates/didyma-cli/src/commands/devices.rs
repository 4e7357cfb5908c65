//! `didyma devices`: what flows can be trained on here.

use crate::ExitCode;
use crate::output::show;
use crate::wording::word;
use clap::Parser;
use didyma_cuda::devices;

/// List what flows can be trained on here: the CPU, and GPUs, or why none can be used.
#[derive(Debug, Parser)]
pub struct DevicesArgs {
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &DevicesArgs) -> anyhow::Result<ExitCode> {
    show(&devices(&word), args.json)
}
