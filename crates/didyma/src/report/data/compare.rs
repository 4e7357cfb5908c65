//! Runs side by side: those that differ only in their seed are one cohort.

use super::columns::Columns;
use super::run::RunData;
use crate::error::{Error, Result};
use crate::inference::RoundReport;
use crate::inference::config::Config;

/// Runs of the same settings, whatever their seeds.
#[derive(Debug)]
pub struct Cohort {
    /// What sets it apart.
    pub name: String,
    /// Its runs; they differ in their seeds.
    pub runs: Vec<RunData>,
}

/// Runs of one problem, by cohort.
#[derive(Debug)]
pub struct Comparison {
    /// In the order in which they were given; at least one.
    pub cohorts: Vec<Cohort>,
}

impl Comparison {
    /// Sorts runs of one task into cohorts.
    pub fn new(runs: Vec<RunData>) -> Result<Self> {
        let Some(first) = runs.first() else {
            return Err(Error::setting("runs", "none", "at least one directory of a run"));
        };
        let task = first.manifest.task.clone();
        let same = |run: &RunData| {
            run.manifest.task == task
                && run.prior == first.prior
                && run.observation == first.observation
        };
        if let Some(other) = runs.iter().find(|run| !same(run)) {
            let found = if other.manifest.task == task {
                format!("a run of {task} with another prior or observation")
            } else {
                format!("a run of {}", other.manifest.task)
            };
            let why =
                format!("of {task} like the first run: make a report of its own for each problem");
            return Err(Error::Setting {
                name: other.name.clone().into(),
                value: found,
                expected: why.into(),
            });
        }
        let mut cohorts: Vec<Cohort> = Vec::new();
        for run in runs {
            match cohorts.iter_mut().find(|cohort| alike(&cohort.runs[0], &run)) {
                Some(cohort)
                    if cohort.runs.iter().any(|known| known.summary.seed == run.summary.seed) =>
                {
                    let found = format!("a run of the same settings and seed {}", run.summary.seed);
                    let why = "another one than those before: leave it out".into();
                    return Err(Error::Setting {
                        name: run.name.into(),
                        value: found,
                        expected: why,
                    });
                }
                Some(cohort) => cohort.runs.push(run),
                None => cohorts.push(Cohort { name: run.method(), runs: vec![run] }),
            }
        }
        tell_apart(&mut cohorts);
        Ok(Self { cohorts })
    }

    /// The first run, whose problem is that of all.
    pub fn first(&self) -> &RunData {
        &self.cohorts[0].runs[0]
    }

    /// All runs.
    pub fn runs(&self) -> impl Iterator<Item = &RunData> {
        self.cohorts.iter().flat_map(|cohort| &cohort.runs)
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.runs().count()
    }

    /// Never: there is at least one run.
    pub fn is_empty(&self) -> bool {
        self.cohorts.is_empty()
    }
}

impl Cohort {
    /// Samples of all its runs, by parameter; none before a first round is done.
    pub fn samples(&self) -> Option<Columns> {
        let found: Vec<&Columns> =
            self.runs.iter().filter_map(|run| run.samples.as_ref()).collect();
        let dim = found.first()?.len();
        Some((0..dim).map(|i| found.iter().flat_map(|run| &run[i]).copied().collect()).collect())
    }

    /// The values of every round that any of its runs has: the round, and a value for each run.
    pub fn by_round(&self, of: impl Fn(&RoundReport) -> Option<f64>) -> Vec<(u32, Vec<f64>)> {
        let rounds = self.runs.iter().map(|run| run.summary.rounds.len()).max().unwrap_or(0);
        (0..rounds)
            .map(|i| {
                let reports = self.runs.iter().filter_map(|run| run.summary.rounds.get(i));
                (i as u32 + 1, reports.filter_map(&of).filter(|v| v.is_finite()).collect())
            })
            .filter(|(_, values): &(u32, Vec<f64>)| !values.is_empty())
            .collect()
    }
}

fn alike(a: &RunData, b: &RunData) -> bool {
    let plain = |run: &RunData| Config { seed: 0, ..run.manifest.config.clone() };
    plain(a) == plain(b)
}

/// Cohorts get the settings in which they differ; between methods those of estimators do not count, nor what is usual for each.
fn tell_apart(cohorts: &mut [Cohort]) {
    let names: Vec<String> = cohorts.iter().map(|cohort| cohort.name.clone()).collect();
    let configs: Vec<&Config> =
        cohorts.iter().map(|cohort| &cohort.runs[0].manifest.config).collect();
    let settings: Vec<_> = configs.iter().map(|config| config.list()).collect();
    let usual = |config: &&Config| Config::new(config.profile, config.algorithm()).list();
    let usual: Vec<_> = configs.iter().map(usual).collect();
    for (i, cohort) in cohorts.iter_mut().enumerate() {
        let differs = |j: usize, place: usize| {
            let (key, value, _) = &settings[i][place];
            let unusual = |k: usize| settings[k][place].1 != usual[k][place].1;
            let own = key.starts_with("estimator.");
            let counts = names[i] == names[j] || !own && (unusual(i) || unusual(j));
            counts && !["seed", "profile"].contains(key) && settings[j][place].1 != *value
        };
        let own = settings[i].iter().enumerate();
        let own = own.filter(|(place, _)| (0..names.len()).any(|j| differs(j, *place)));
        let own: Vec<String> = own.map(|(_, (key, value, _))| format!("{key} {value}")).collect();
        if !own.is_empty() {
            cohort.name = format!("{}, {}", names[i], own.join(", "));
        }
    }
}
