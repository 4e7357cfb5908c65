//! Tables, figures and studies that can be reproduced.

use didyma::Named;

/// A result that can be reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The law of the level.
    Table1,
    /// Accuracy of all methods.
    Table2,
    /// Time and memory.
    Table3,
    /// The training loss of RU, plain and truncated.
    Figure1,
    /// Posteriors of the multilevel methods.
    Figure2,
    /// Scores by round.
    Figure3,
    /// Posteriors of atomic and nested APT.
    Figure4,
    /// Two laws of the level.
    Figure5,
    /// The Hodgkin-Huxley neuron.
    Figure6,
    /// The cost of an error, which the paper lacks.
    Complexity,
    /// The gap that a descent ends with, which the paper lacks.
    Convergence,
    /// One choice changed at a time, which the paper lacks.
    Ablation,
    /// Score estimation with its published settings.
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
