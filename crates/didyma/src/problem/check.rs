//! A first look at a simulator: does it run, how fast, is it determined by its seed, and can it give the observation?

use crate::error::Result;
use crate::problem::oddity::Oddity;
use crate::problem::simulator::{self, Simulations};
use crate::problem::tasks::Task;
use crate::rng::{Purpose, SimulationStreams, Streams};
use crate::rows::Rows;
use serde::Serialize;
use std::ops::ControlFlow;

/// Simulations that are made twice.
const REPEATED: usize = 5;
/// A summary is called far out if fewer than this share of simulations lie beyond the observation, on both sides together.
const FAR: f64 = 0.02;

/// What a few simulations at draws of the prior say.
#[derive(Clone, Debug, Serialize)]
pub struct SimulatorCheck {
    /// The problem.
    pub name: String,
    /// Names of the parameters.
    pub parameters: Vec<String>,
    /// Simulations made.
    pub simulations: usize,
    /// Why some failed, the first line of each reason, and how often; the commonest first.
    pub failures: Vec<(String, usize)>,
    /// The whole reason of the first failure.
    pub first_failure: Option<String>,
    /// Wall-clock time.
    pub seconds: f64,
    /// How many were under way at once.
    pub workers: usize,
    /// Whether the same seed and parameters gave the same summaries; not known if none succeeded.
    pub repeatable: Option<bool>,
    /// Whether another seed gave other summaries.
    pub random: Option<bool>,
    /// Each summary.
    pub summaries: Vec<SummaryCheck>,
}

/// What simulations say of one summary.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryCheck {
    /// Its name.
    pub name: String,
    /// The observation.
    pub observed: f64,
    /// The least and the greatest simulated value.
    pub range: (f64, f64),
    /// Share of simulations below the observation; those that equal it count half.
    pub below: f64,
    /// The two-sided p-value of the observation: small if it is far out.
    pub tail: f64,
    /// The simulated values.
    #[serde(skip)]
    pub values: Vec<f64>,
}

impl SimulatorCheck {
    /// Simulates at draws of the prior, and some of that again. `observe` is told of progress, and stops the check if it
    /// breaks.
    pub fn run(
        task: &Task,
        simulations: usize,
        seed: u64,
        threads: usize,
        observe: &mut dyn FnMut(simulator::Progress) -> ControlFlow<()>,
    ) -> Result<Self> {
        let streams = Streams::new(seed);
        let draws = streams.simulations(Purpose::Parameters, 0);
        let theta = task.problem.prior().sample_rows(simulations, &draws, threads);
        let first = streams.simulations(Purpose::Simulation, 0);
        let found = simulate(task, &theta, &first, threads, observe)?;
        // Where all fail, each may take its whole time, and would tell nothing.
        let again = match found.done < simulations || found.failures.len() == simulations {
            true => None,
            false => repeated(task, &theta, &found, streams, threads, observe)?,
        };
        let (repeatable, random) = again.unzip();
        let Simulations { x, failures, seconds, .. } = found;
        Ok(Self {
            name: task.name.clone(),
            parameters: task.problem.prior().names().map(str::to_owned).collect(),
            simulations,
            first_failure: failures.first().map(|failure| failure.reason.clone()),
            failures: counted(failures.iter().map(|failure| failure.reason.as_str())),
            seconds,
            workers: task.problem.simulator().workers().unwrap_or(threads).min(simulations),
            repeatable,
            random,
            summaries: summaries(task, &x),
        })
    }

    /// Simulations that failed.
    pub fn failed(&self) -> usize {
        self.failures.iter().map(|(_, count)| count).sum()
    }

    /// Whether a run makes sense: something succeeded, and the same seed gave the same.
    pub fn passed(&self) -> bool {
        self.failed() < self.simulations && self.repeatable != Some(false)
    }

    /// What a user should know, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match (self.failed(), self.simulations) {
            (0, _) => {}
            (failed, all) if failed == all => {
                notes.push("every simulation failed: repair the simulator, or the problem file".to_owned());
            }
            (failed, all) => notes.push(format!(
                "{failed} of {all} simulations failed: a run goes on without them, and corrects for failures that depend on \
                 the parameters (docs/failures.md)"
            )),
        }
        if self.failures.iter().any(|(reason, _)| reason.starts_with("no answer within")) {
            notes.push(
                "there was no answer in time: does the worker flush its output after each line, and answer every request?"
                    .to_owned(),
            );
        }
        if self.repeatable == Some(false) {
            notes.push(
                "the same seed and parameters gave different summaries: seed every random generator of the simulator with \
                 the seed that it is given, or a run cannot be repeated"
                    .to_owned(),
            );
        }
        if self.random == Some(false) {
            notes.push(
                "another seed gave the same summaries: that is right only if the simulator has no noise. A generator that takes \
                 32 bits may not see the rest of the seed: give it the seed modulo 2147483647"
                    .to_owned(),
            );
        }
        for summary in &self.summaries {
            notes.extend(summary.note());
        }
        notes
    }
}

/// The two-sided p-value of an observation among simulations: twice the share of those at least as far out on its side,
/// itself among them. Those that equal it, as counts may, are on both sides.
pub(crate) fn two_sided(simulated: &[f64], observed: f64) -> f64 {
    let at_least = simulated.iter().filter(|x| **x >= observed).count();
    let at_most = simulated.iter().filter(|x| **x <= observed).count();
    let least = at_least.min(at_most) + 1;
    (2.0 * least as f64 / (simulated.len() + 1) as f64).min(1.0)
}

impl SummaryCheck {
    fn new(name: &str, observed: f64, values: Vec<f64>) -> Self {
        let n = values.len() as f64;
        let below = values.iter().filter(|v| **v < observed).count() as f64;
        let equal = values.iter().filter(|v| **v == observed).count() as f64;
        let range = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)));
        let (share, tail) = ((below + 0.5 * equal) / n, two_sided(&values, observed));
        Self { name: name.to_owned(), observed, range, below: share, tail, values }
    }

    /// Whether all simulations gave the same.
    pub fn is_constant(&self) -> bool {
        self.range.0 == self.range.1
    }

    /// Whether the observation is beyond all simulations.
    pub fn is_outside(&self) -> bool {
        self.observed < self.range.0 || self.observed > self.range.1
    }

    fn note(&self) -> Option<String> {
        let Self { name, observed, range: (low, high), tail, .. } = self;
        let odd = Oddity::of(0, *observed, self.values.clone());
        match () {
            () if self.values.is_empty() => None,
            () if self.is_constant() => Some(format!(
                "{name} is {low} in every simulation: it tells nothing of the parameters"
            )),
            () if self.is_outside() => Some(format!(
                "the observed {name} is {observed}, beyond all simulations ({low} to {high}): look at units, the order of \
                 summaries, or the prior"
            )),
            () if odd.is_some() => odd.map(|odd| odd.sentence(name)),
            () if *tail < FAR => Some(format!(
                "the observed {name} is {observed}, which the prior hardly ever gives: a first round may need many simulations"
            )),
            () => None,
        }
    }
}

fn simulate(
    task: &Task,
    theta: &[f64],
    streams: &SimulationStreams,
    threads: usize,
    observe: &mut dyn FnMut(simulator::Progress) -> ControlFlow<()>,
) -> Result<Simulations> {
    let rows = Rows::new("theta", theta, task.problem.prior().dim())?;
    simulator::simulate(task.problem.simulator(), rows, streams, 0, threads, observe)
}

/// Whether simulations give the same again, and whether they give something else with another seed. Failed ones tell
/// nothing.
fn repeated(
    task: &Task,
    theta: &[f64],
    found: &Simulations,
    streams: Streams,
    threads: usize,
    observe: &mut dyn FnMut(simulator::Progress) -> ControlFlow<()>,
) -> Result<Option<(bool, bool)>> {
    let (dim, columns) = (task.problem.prior().dim(), task.problem.simulator().x_dim());
    let rows = REPEATED.min(theta.len() / dim);
    let theta = &theta[..rows * dim];
    // Its progress is not that of the whole.
    let mut asked =
        |now: simulator::Progress| observe(simulator::Progress { done: now.total, ..now });
    let streams = [0, 1].map(|round| streams.simulations(Purpose::Simulation, round));
    let again = simulate(task, theta, &streams[0], threads, &mut asked)?.x;
    let other = simulate(task, theta, &streams[1], threads, &mut asked)?.x;
    let finite = |row: &[f64]| row.iter().all(|x| x.is_finite());
    let pair = |i: usize, with: &[f64]| {
        let (a, b) = (&found.x[i * columns..][..columns], &with[i * columns..][..columns]);
        // A success that fails the next time is not the same; two failures tell nothing.
        (finite(a) || finite(b)).then_some(a == b)
    };
    let same = |with: &[f64]| (0..rows).filter_map(|i| pair(i, with)).collect::<Vec<bool>>();
    let (again, other) = (same(&again), same(&other));
    if again.is_empty() || other.is_empty() {
        return Ok(None);
    }
    Ok(Some((again.iter().all(|same| *same), !other.iter().all(|same| *same))))
}

/// The first lines of reasons and how often each occurs, the commonest first.
fn counted<'a>(reasons: impl Iterator<Item = &'a str>) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for reason in reasons {
        let line = reason.lines().next().unwrap_or_default();
        match counts.iter_mut().find(|(known, _)| known == line) {
            Some((_, count)) => *count += 1,
            None => counts.push((line.to_owned(), 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

fn summaries(task: &Task, x: &[f64]) -> Vec<SummaryCheck> {
    let columns = task.problem.simulator().x_dim();
    let column = |i: usize| {
        let values = x.iter().skip(i).step_by(columns).filter(|x| x.is_finite());
        values.copied().collect()
    };
    let of = |(i, name): (usize, &String)| {
        SummaryCheck::new(name, task.problem.observation()[i], column(i))
    };
    task.summaries.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::simulator::from_fn;

    use crate::problem::Problem;

    fn checked(
        change: impl FnOnce(Problem<'static>) -> Result<Problem<'static>>,
    ) -> SimulatorCheck {
        let task = Task::named("gaussian-mixture").unwrap();
        let task = Task { problem: change(task.problem).unwrap(), ..task };
        let go_on = &mut |_: simulator::Progress| ControlFlow::Continue(());
        SimulatorCheck::run(&task, 100, 1, 2, go_on).unwrap()
    }

    #[test]
    fn a_good_simulator_passes_without_a_word() {
        let check = checked(Ok);
        assert!(check.passed() && check.notes().is_empty(), "{:?}", check.notes());
        assert_eq!((check.repeatable, check.random), (Some(true), Some(true)));
    }

    #[test]
    fn faults_are_told() {
        let far = checked(|problem| problem.with_observation([1e6, 0.0]));
        assert!(far.passed() && far.notes()[0].contains("beyond all simulations"));
        let constant = checked(|problem| {
            problem.with_simulator(from_fn(2, 2, |theta, _, x| (x[0], x[1]) = (theta[0], 3.0)))
        });
        let notes = constant.notes().join("\n");
        assert!(notes.contains("another seed gave the same") && notes.contains("is 3 in every"));
        let count = std::sync::atomic::AtomicU32::new(0);
        let unseeded = checked(|problem| {
            problem.with_simulator(from_fn(2, 2, move |_, _, x| {
                x.fill(f64::from(count.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
            }))
        });
        assert!(!unseeded.passed() && unseeded.notes()[0].contains("seed every random generator"));
        let broken =
            checked(|problem| problem.with_simulator(from_fn(2, 2, |_, _, x| x[0] = f64::NAN)));
        assert!(!broken.passed() && broken.failures == [("summary 1 is NaN".to_owned(), 100)]);
        assert!(broken.notes()[0].contains("every simulation failed"));
    }
}
