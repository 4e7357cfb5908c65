//! Arguments of `didyma init`.

use crate::init::Language;
use clap::Parser;
use std::path::PathBuf;

#[derive(Debug, Parser)]
pub struct InitArgs {
    /// Folder to make, which also names the problem.
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,

    /// Language of the worker.
    #[arg(long, short, default_value = "python", value_name = "NAME")]
    pub language: Language,
}
