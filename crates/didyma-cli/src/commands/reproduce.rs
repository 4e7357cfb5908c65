//! Arguments of `didyma reproduce`.

use super::{seeds, threads, whole};
use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use didyma::estimator::Named;
use std::path::PathBuf;

/// What can be reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Table1,
    Table2,
    Table3,
    Figure1,
    Figure2,
    Figure3,
    Figure4,
    Figure5,
    Figure6,
    Complexity,
    Convergence,
    Ablation,
    Snse,
}

impl Named for Target {
    const ALL: &'static [(&'static str, Self)] = &[
        ("table-1", Self::Table1),
        ("table-2", Self::Table2),
        ("table-3", Self::Table3),
        ("figure-1", Self::Figure1),
        ("figure-2", Self::Figure2),
        ("figure-3", Self::Figure3),
        ("figure-4", Self::Figure4),
        ("figure-5", Self::Figure5),
        ("figure-6", Self::Figure6),
        ("complexity", Self::Complexity),
        ("convergence", Self::Convergence),
        ("ablation", Self::Ablation),
        ("snse", Self::Snse),
    ];
}

#[derive(Debug, Parser)]
pub struct ReproduceArgs {
    /// Tables and figures of the paper by number; complexity, convergence and ablation, which it lacks; snse, score
    /// estimation with its published settings, which takes hours; or all of these.
    #[arg(value_name = "WHAT", required = true, num_args = 1.., value_parser = target())]
    targets: Vec<Option<Target>>,

    /// Runs of each kind, with the seeds 1 to K.
    #[arg(long, default_value = "3", value_name = "K", value_parser = seeds, allow_negative_numbers = true)]
    pub seeds: u64,

    /// Rounds of the runs, where the figure does not ask for its own number.
    #[arg(long, default_value = "10", value_name = "R", value_parser = rounds, allow_negative_numbers = true)]
    pub rounds: u32,

    /// A small version of everything, to see that it works: one task, two rounds at most. Its numbers mean nothing.
    #[arg(long)]
    pub quick: bool,

    /// Runs side by side, each on one thread; one run at a time takes all cores.
    #[arg(long, default_value = "1", value_name = "J", value_parser = threads, allow_negative_numbers = true)]
    pub jobs: usize,

    /// Folder for runs and results. What is finished there is not run again, and what was interrupted goes on.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

impl ReproduceArgs {
    /// Each target once, in the order of the paper.
    pub fn targets(&self) -> Vec<Target> {
        let wanted = |target: Target| self.targets.iter().any(|t| t.is_none_or(|t| t == target));
        Target::ALL.iter().map(|(_, target)| *target).filter(|t| wanted(*t)).collect()
    }
}

/// A target by its name; none for all.
fn target() -> impl TypedValueParser<Value = Option<Target>> {
    let names = Target::ALL.iter().map(|(name, _)| *name).chain(["all"]);
    PossibleValuesParser::new(names)
        .map(|name| Target::ALL.iter().find(|(known, _)| *known == name).map(|(_, target)| *target))
}

fn rounds(text: &str) -> Result<u32, String> {
    whole::<u32>(text)
        .ok()
        .filter(|rounds| (2..=1000).contains(rounds))
        .ok_or_else(|| "give a whole number between 2 and 1000".to_owned())
}
