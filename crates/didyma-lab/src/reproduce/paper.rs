//! What the paper prints.

/// A printed number with its printed spread; how many repetitions are behind it is not said.
#[derive(Clone, Copy, Debug)]
pub struct Printed {
    pub mean: f64,
    pub spread: f64,
}

const fn printed(mean: f64, spread: f64) -> Printed {
    Printed { mean, spread }
}

/// Table 1: α of RU, GRR with base 2, TGRR with base 2 and top 4, at r₂ = 1.8.
pub const ALPHA: [(&str, f64); 3] = [("ru", 1.4), ("grr", 1.209), ("tgrr", 1.673)];
/// The rate that the paper measured, in 50 regressions.
pub const RATE: f64 = 1.8;

/// Table 2: C2ST after 10,000 simulations, by task.
pub const C2ST: [(&str, [Printed; 3]); 2] = [
    ("tgrr", [printed(0.5407, 0.0315), printed(0.7472, 0.0599), printed(0.6402, 0.0210)]),
    ("snse", [printed(0.5598, 0.0673), printed(0.9153, 0.0280), printed(0.8394, 0.0116)]),
];

/// Table 3: minutes, by task.
pub const MINUTES: [(&str, [Printed; 3]); 2] = [
    ("tgrr", [printed(299.35, 28.96), printed(300.10, 26.88), printed(294.65, 18.67)]),
    ("snse", [printed(194.76, 12.76), printed(217.64, 18.20), printed(243.80, 17.28)]),
];

/// Minutes of the neuron: atomic APT and TGRR.
pub const NEURON_MINUTES: [(&str, Printed); 2] =
    [("neuron-atomic", printed(205.77, 18.38)), ("neuron-tgrr", printed(379.10, 48.71))];

/// Memory in GB: SNSE at batch 128, TGRR at batch 500.
pub const MEMORY_GB: [(&str, f64); 2] = [("snse", 60.0), ("tgrr", 5.0)];

/// The printed value of a method for a task.
pub fn of(table: &[(&str, [Printed; 3])], method: &str, task: usize) -> Option<Printed> {
    table.iter().find(|(name, _)| *name == method).and_then(|(_, values)| values.get(task).copied())
}
