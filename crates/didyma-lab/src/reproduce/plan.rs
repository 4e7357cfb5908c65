//! Which runs a result needs.

use super::{Reproduction, Target};
use didyma::Named;
use didyma::config::{Algorithm, Config, Profile};
use std::collections::BTreeSet;

/// The paper's tasks with a known posterior, and their names.
pub const TASKS: [(&str, &str); 3] =
    [("two-moons", "Two Moons"), ("lotka-volterra", "Lotka-Volterra"), ("mg1", "M/G/1")];
/// Names and titles of tasks.
pub type Tasks = &'static [(&'static str, &'static str)];
/// Its task without one.
pub const NEURON: &str = "hodgkin-huxley";

/// What the authors' code does otherwise than the paper says, for the multilevel methods.
const AUTHORS: &[(&str, &str)] = &[
    ("estimator.coupling", "planted"),
    ("flow.bound", "3"),
    ("estimator.replacement", "with"),
    ("train.split", "pooled"),
    ("train.clip", "5"),
    ("train.patience", "21"),
];
/// The length of the ablation's runs.
const SHORT: &[(&str, &str)] =
    &[("train.steps", "1500"), ("train.cycles", "1"), ("scores", "last")];
/// A run that takes no time.
const QUICK: &[(&str, &str)] = &[
    ("train.epochs", "2"),
    ("train.steps", "4"),
    ("train.cycles", "1"),
    ("train.sweeps", "1"),
    ("samples", "200"),
    ("score.units", "16"),
    ("score.ode_steps", "8"),
    ("truncation.draws", "1000"),
];

/// A way to run a task: how it is called in tables, and its settings.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its folder.
    pub name: &'static str,
    /// What tables call it.
    pub title: &'static str,
    pub method: &'static str,
    pub profile: Profile,
    /// Rounds, if the result asks for its own number.
    rounds: Option<u32>,
    /// Simulations of a round.
    simulations: usize,
    set: &'static [&'static [(&'static str, &'static str)]],
}

/// A run that is needed.
#[derive(Clone, Debug)]
pub struct Planned {
    pub variant: Variant,
    pub task: &'static str,
    pub config: Config,
}

const fn best(name: &'static str, title: &'static str) -> Variant {
    let (method, profile, set) = (name, Profile::Default, &[] as &[_]);
    Variant { name, title, method, profile, rounds: None, simulations: 1000, set }
}

const fn ablation(
    name: &'static str,
    title: &'static str,
    set: &'static [&'static [(&'static str, &'static str)]],
) -> Variant {
    Variant { method: "tgrr", rounds: Some(5), set, ..best(name, title) }
}

/// Everything that Table 2 compares; the first two are the paper's.
pub const METHODS: [Variant; 9] = [
    best("tgrr", "TGRR"),
    best("snse", "SNSE"),
    best("tsnpe", "TSNPE"),
    best("tru", "TRU"),
    best("grr", "GRR"),
    best("ru", "RU"),
    best("atomic", "atomic APT"),
    best("nested", "nested APT"),
    best("npe", "NPE"),
];
/// SNSE as its authors publish it, with the iterations that the paper allows and with those that its authors do.
pub const PUBLISHED: [Variant; 2] = [
    Variant {
        method: "snse",
        profile: Profile::Paper,
        ..best("snse-1000", "SNSE, published settings, 1000 iterations")
    },
    Variant {
        method: "snse",
        profile: Profile::Paper,
        set: &[&[("train.epochs", "10000"), ("train.patience", "2000")]],
        ..best("snse-10000", "SNSE, published settings, 10,000 iterations")
    },
];
/// 20 rounds.
pub const LONG: Variant =
    Variant { method: "tgrr", rounds: Some(20), ..best("tgrr-20-rounds", "TGRR, 20 rounds") };
/// TGRR with more and more simulations.
pub const GROWTH: [Variant; 4] = [
    Variant { method: "tgrr", simulations: 100, ..best("growth-1k", "1000") },
    Variant { method: "tgrr", simulations: 300, ..best("growth-3k", "3000") },
    best("tgrr", "10000"),
    Variant { method: "tgrr", simulations: 3000, ..best("growth-30k", "30000") },
];
/// Figure 1: with the authors' settings, since the figure is theirs.
pub const LOSSES: [Variant; 2] = [
    Variant {
        method: "ru",
        profile: Profile::Paper,
        rounds: Some(3),
        set: &[AUTHORS],
        ..best("loss-ru", "RU")
    },
    Variant {
        method: "tru",
        profile: Profile::Paper,
        rounds: Some(3),
        set: &[AUTHORS, &[("estimator.top", "4")]],
        ..best("loss-tru", "RU, truncated at level 4")
    },
];
/// Figure 5: the paper's law of the level with two α.
pub const ALPHAS: [Variant; 2] = [
    Variant {
        method: "tgrr",
        set: &[&[("estimator.tails", "paper"), ("estimator.alpha", "1.673")]],
        ..best("alpha-1.673", "α = 1.673")
    },
    Variant {
        method: "tgrr",
        set: &[&[("estimator.tails", "paper"), ("estimator.alpha", "1.8")]],
        ..best("alpha-1.8", "α = 1.8")
    },
];
/// Figure 6: the neuron.
pub const NEURONS: [Variant; 2] = [
    Variant { method: "atomic", simulations: 10_000, ..best("neuron-atomic", "atomic APT") },
    Variant { method: "tgrr", simulations: 10_000, ..best("neuron-tgrr", "TGRR") },
];
/// The ablation: one thing changed at a time.
pub const ABLATION: [Variant; 8] = [
    ablation("short", "**the default** (inclusive coupling)", &[SHORT]),
    ablation("excluded", "excluded coupling", &[SHORT, &[("estimator.coupling", "excluded")]]),
    ablation(
        "planted",
        "planted coupling (needs fresh blocks)",
        &[SHORT, &[("estimator.coupling", "planted"), ("estimator.blocks", "fresh")]],
    ),
    ablation("law", "the paper's law of the level", &[SHORT, &[("estimator.tails", "paper")]]),
    ablation("fresh", "fresh blocks, no reuse", &[SHORT, &[("estimator.blocks", "fresh")]]),
    ablation(
        "unscaled",
        "x as it is: no scale, no bend",
        &[SHORT, &[("coordinates.x", "none"), ("coordinates.bend", "none")]],
    ),
    ablation("bounded", "θ bounded, with rejection", &[SHORT, &[("coordinates.space", "bounded")]]),
    ablation("new-weights", "new weights every round", &[SHORT, &[("train.start", "fresh")]]),
];

/// The variants of [`METHODS`] with these names.
pub fn methods(names: &[&str]) -> Vec<Variant> {
    names.iter().filter_map(|name| METHODS.into_iter().find(|v| v.name == *name)).collect()
}

/// Tasks that a target is about; the small version has one.
pub fn tasks(args: &Reproduction) -> Tasks {
    if args.quick { &TASKS[..1] } else { &TASKS }
}

/// The runs that a target needs, each once.
pub fn runs(target: Target, args: &Reproduction) -> didyma::Result<Vec<Planned>> {
    let names = |tasks: &[(&'static str, &str)]| tasks.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    let (all, moons, seeds) = (names(tasks(args)), vec!["two-moons"], args.seeds);
    let volterra = names(if args.quick { &TASKS[..1] } else { &TASKS[1..2] });
    let parts: Vec<(Vec<Variant>, Vec<&'static str>, u64)> = match target {
        Target::Table1 => vec![(methods(&["tgrr"]), all, 1)],
        Target::Table2 => vec![(METHODS.to_vec(), all, seeds)],
        Target::Table3 => vec![
            (methods(&["tgrr", "snse"]), all, seeds),
            (NEURONS.to_vec(), vec![NEURON], seeds),
            (vec![LONG], moons, 1),
            (GROWTH.to_vec(), volterra, 1),
        ],
        Target::Figure1 => vec![(LOSSES.to_vec(), moons, 1)],
        Target::Figure2 => vec![(methods(&["ru", "grr", "tgrr"]), all, 1)],
        Target::Figure3 => vec![(methods(&["ru", "grr", "tgrr"]), all, seeds)],
        Target::Figure4 => vec![(methods(&["atomic", "nested"]), all, 1)],
        Target::Figure5 => vec![(ALPHAS.to_vec(), volterra, seeds)],
        Target::Figure6 => vec![(NEURONS.to_vec(), vec![NEURON], seeds)],
        Target::Ablation => vec![(ABLATION.to_vec(), all, seeds)],
        Target::Snse => vec![(PUBLISHED.to_vec(), all, seeds)],
        Target::Complexity | Target::Convergence => Vec::new(),
    };
    let (mut planned, mut known) = (Vec::new(), BTreeSet::new());
    for (variants, tasks, seeds) in parts {
        for variant in variants {
            for task in &tasks {
                for seed in 1..=seeds {
                    let config = variant.config(args, seed)?;
                    let run = Planned { variant, task, config };
                    if known.insert(run.folder()) {
                        planned.push(run);
                    }
                }
            }
        }
    }
    Ok(planned)
}

impl Variant {
    fn algorithm(&self) -> Algorithm {
        Algorithm::named(self.method).expect("a method that exists")
    }

    fn config(&self, args: &Reproduction, seed: u64) -> didyma::Result<Config> {
        let mut config = Config::new(self.profile, self.algorithm());
        config.rounds = self.rounds.unwrap_or(args.rounds);
        config.simulations = self.simulations;
        config.seed = seed;
        // The paper's methods train one flow.
        config.ensemble.members = 1;
        let quick: &[_] = if args.quick { &[QUICK] } else { &[] };
        for (key, value) in self.set.iter().chain(quick).copied().flatten() {
            config.set(key, value)?;
        }
        if args.quick {
            config.rounds = config.rounds.min(2);
            config.simulations = (config.simulations / 10).clamp(60, 100);
        }
        config.check()?;
        Ok(config)
    }
}

impl Planned {
    /// Where it lies, below the folder of all runs.
    pub fn folder(&self) -> String {
        format!("{}/{}-{}", self.variant.name, self.task, self.config.seed)
    }

    /// The arguments of `didyma infer` that make it.
    pub fn arguments(&self) -> Vec<String> {
        let Config { seed, .. } = self.config;
        let usual = Config::new(self.variant.profile, self.variant.algorithm());
        let mut words: Vec<String> =
            ["infer", self.task, "--method", self.variant.method].map(str::to_owned).to_vec();
        if self.variant.profile != Profile::Default {
            words.extend(["--profile".to_owned(), self.variant.profile.name().to_owned()]);
        }
        words.extend(["--seed".to_owned(), seed.to_string()]);
        for ((key, value, _), (_, default, _)) in self.config.list().iter().zip(usual.list()) {
            if *value != default && *key != "seed" {
                words.extend(["--set".to_owned(), format!("{key}={value}")]);
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that two parts of a result ask for counts once.
    #[test]
    fn no_run_is_planned_twice() {
        for quick in [false, true] {
            let (targets, out) = (Vec::new(), "nowhere".into());
            let args = Reproduction { targets, seeds: 2, rounds: 10, quick, jobs: 1, out };
            for (name, target) in Target::ALL {
                let planned = runs(*target, &args).unwrap();
                let folders: BTreeSet<_> = planned.iter().map(Planned::folder).collect();
                assert_eq!(folders.len(), planned.len(), "{name}");
            }
        }
    }
}
