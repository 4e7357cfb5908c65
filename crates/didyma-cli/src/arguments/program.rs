//! How a user's program is run.

use super::threads;
use anyhow::bail;
use clap::Parser;
use didyma::{ProblemRecord, Source};

/// How a user's program is run, which does not change what it gives.
#[derive(Debug, Clone, Parser)]
pub struct ProgramArgs {
    /// Simulations under way at once, of a problem file's program [default: one a thread, or what the file says].
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub workers: Option<usize>,

    /// Words to put before the program of a problem file, as "srun -n1 --mem=2G".
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, value_parser = words)]
    launcher: Option<Words>,
}

#[derive(Debug, Clone)]
struct Words(Vec<String>);

impl ProgramArgs {
    /// Changes the problem's program accordingly.
    pub fn apply(&self, problem: &mut ProblemRecord) {
        if let Source::Program(program) = &mut problem.source {
            program.workers = self.workers.or(program.workers);
            if let Some(Words(launcher)) = &self.launcher {
                program.launcher.clone_from(launcher);
            }
        }
    }

    /// An error if something is asked of a program that is not there.
    pub fn check(&self, problem: Option<&ProblemRecord>) -> anyhow::Result<()> {
        let program = problem.is_some_and(|p| matches!(p.source, Source::Program(_)));
        match (self.workers.is_some(), self.launcher.is_some()) {
            (true, _) if !program => {
                bail!(
                    "--workers is for programs of problem files, and built-in tasks run on --threads"
                )
            }
            (_, true) if !program => {
                bail!("--launcher is for programs of problem files: a built-in task starts none")
            }
            _ => Ok(()),
        }
    }
}

fn words(text: &str) -> Result<Words, String> {
    match shell_words::split(text) {
        Ok(words) if !words.is_empty() => Ok(Words(words)),
        Ok(_) => Err("it is empty: give a command, as \"srun -n1\"".to_owned()),
        Err(_) => Err("a quotation mark is left open".to_owned()),
    }
}
