//! Tables, figures and studies that can be reproduced.

use didyma::Named;

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
