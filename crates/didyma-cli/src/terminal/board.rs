//! Many runs as seen while they go on: a few lines on a terminal, a line for each round elsewhere.

use super::live::{BETWEEN_LINES, spinner};
use super::{Stop, unless};
use crate::output::tell;
use didyma::report::{Line, Narrator};
use didyma::run::SeedSweep;
use didyma::training::Machine;
use didyma::{Event, Observer};
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many runs under way have a line each; of more, the last that moved has.
const LINES: usize = 8;
/// Nobody reads faster, and every epoch of every run asks for it.
const BETWEEN_PICTURES: Duration = Duration::from_millis(100);

/// Shows all runs; their threads share it.
pub struct Board {
    bar: Option<ProgressBar>,
    stop: Stop,
    runs: usize,
    rounds: u32,
    start: Instant,
    state: Mutex<State>,
}

struct State {
    under_way: BTreeMap<u64, Active>,
    done: usize,
    failed: usize,
    /// The first that failed, and why: others often fail in the same way.
    first_failed: Option<(u64, String)>,
    /// Rounds that this process finished.
    rounds: u32,
    shown: Instant,
}

impl State {
    /// A reason that was told before is not told again.
    fn failed_because(&mut self, seed: u64, error: &str) -> String {
        match self.first_failed.get_or_insert_with(|| (seed, error.to_owned())) {
            (first, why) if *first != seed && why == error => format!("as seed {first} did"),
            _ => error.to_owned(),
        }
    }
}

/// A run under way.
struct Active {
    /// Rounds that are done.
    rounds: u32,
    /// Its latest words.
    words: String,
}

impl Board {
    pub fn new(
        group: &SeedSweep,
        runs: usize,
        at_once: usize,
        machine: &Machine,
        stop: Stop,
    ) -> Self {
        let (seeds, manifest) = (group.seeds(), group.manifest(group.seeds().start));
        let config = &manifest.config;
        let all = seeds.end - seeds.start;
        let to_do = match runs as u64 {
            runs if runs < all => format!(", {} of {all} done before", all - runs),
            _ => String::new(),
        };
        tell(&format!(
            "{} by {}: {} rounds of {} simulations, seeds {} to {}, {at_once} at once{to_do}, in {}, on {}",
            manifest.task,
            config.method_name(),
            config.rounds,
            config.simulations,
            seeds.start,
            seeds.end - 1,
            group.path().display(),
            machine.device.describe()
        ));
        let (start, under_way) = (Instant::now(), BTreeMap::new());
        let (done, failed, first_failed) = (0, 0, None);
        let state =
            Mutex::new(State { under_way, done, failed, first_failed, rounds: 0, shown: start });
        Self { bar: spinner(), stop, runs, rounds: config.rounds, start, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Looks on while a run goes on of which so many rounds are done.
    pub fn watch(&self, seed: u64, rounds: usize) -> Watcher<'_> {
        let words = "begins".to_owned();
        let mut state = self.state();
        state.under_way.insert(seed, Active { rounds: rounds as u32, words });
        self.draw(&mut state, seed);
        Watcher { board: self, seed, narrator: Narrator::new(self.rounds) }
    }

    /// Something of a run that is to stay.
    pub fn say(&self, seed: u64, words: &str) {
        let text = format!("seed {seed}: {words}");
        match &self.bar {
            Some(bar) => bar.println(text),
            None => tell(&text),
        }
    }

    /// A run has ended, or was stopped, or never began since all were.
    pub fn ended(&self, seed: u64, how: Result<&(), &String>) {
        let mut state = self.state();
        let active = state.under_way.remove(&seed);
        let finished = active.as_ref().is_some_and(|active| active.rounds == self.rounds);
        state.done += usize::from(how.is_ok() && finished);
        state.failed += usize::from(how.is_err());
        let why = how.err().map(|error| state.failed_because(seed, error));
        let next = state.under_way.keys().next().copied();
        self.draw(&mut state, next.unwrap_or(seed));
        drop(state);
        match (why, active) {
            (Some(why), _) => self.say(seed, &format!("failed, and the others go on: {why}")),
            // Elsewhere every round has a line that stays.
            (None, Some(active)) if finished && self.bar.is_some() => {
                self.say(seed, &active.words);
            }
            _ => {}
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn notice(&self, seed: u64, line: Option<Line>) {
        let mut state = self.state();
        let lasting = matches!(line, Some(Line::Lasting(_)));
        let (Some(Line::Passing(words) | Line::Lasting(words)), Some(active)) =
            (line, state.under_way.get_mut(&seed))
        else {
            return;
        };
        active.words.clone_from(&words);
        if lasting {
            active.rounds += 1;
            state.rounds += 1;
        }
        let since = state.shown.elapsed();
        match self.bar {
            Some(_) if lasting || since >= BETWEEN_PICTURES => self.draw(&mut state, seed),
            Some(_) => {}
            None if lasting => tell(&format!("seed {seed}: {words}")),
            None if since >= BETWEEN_LINES => {
                tell(&format!("{}; seed {seed}: {words}", self.heading(&state)));
                state.shown = Instant::now();
            }
            None => {}
        }
    }

    /// Draws the runs anew where there is a terminal.
    fn draw(&self, state: &mut State, latest: u64) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.picture(state, latest));
            state.shown = Instant::now();
        }
    }

    /// How far all of them are.
    fn heading(&self, state: &State) -> String {
        let failed = match state.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let (all, active) = (self.rounds, state.under_way.values());
        let rounds = active.map(|active| (active.rounds + 1).min(all));
        let within = match (rounds.clone().min(), rounds.max()) {
            (Some(first), Some(last)) if first < last => {
                format!(" in rounds {first} to {last} of {all}")
            }
            (Some(only), _) => format!(" in round {only} of {all}"),
            _ => String::new(),
        };
        let (done, runs, under_way) = (state.done, self.runs, state.under_way.len());
        let left = self.left(state);
        format!("{done} of {runs} runs done{failed}, {under_way} under way{within}{left}")
    }

    /// Seconds that the rest will take if every round takes as long as those before.
    fn left(&self, state: &State) -> String {
        if state.rounds == 0 {
            return String::new();
        }
        let waiting = self.runs - state.done - state.failed - state.under_way.len();
        let under_way: u32 =
            state.under_way.values().map(|active| self.rounds - active.rounds).sum();
        let rounds = under_way + waiting as u32 * self.rounds;
        let each = self.start.elapsed().as_secs_f64() / f64::from(state.rounds);
        format!(", about {:.0} s left", each * f64::from(rounds))
    }

    /// All that a terminal shows, no line of it too long.
    fn picture(&self, state: &State, latest: u64) -> String {
        let few = state.under_way.len() <= LINES;
        let runs = state.under_way.iter().filter(|(seed, _)| few || **seed == latest);
        let runs = runs.map(|(seed, active)| format!("  seed {seed}: {}", active.words));
        let width = usize::from(console::Term::stderr().size().1).saturating_sub(3);
        let lines = [self.heading(state)].into_iter().chain(runs);
        let lines = lines.map(|line| console::truncate_str(&line, width, "…").into_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// One of the runs, seen from its thread.
pub struct Watcher<'a> {
    board: &'a Board,
    seed: u64,
    narrator: Narrator,
}

impl Observer for Watcher<'_> {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        self.board.notice(self.seed, self.narrator.line(event));
        Ok(unless(&self.board.stop))
    }
}
