//! The members of an ensemble, trained side by side: no member waits for another.

use super::state::Training;
use crate::density::{Dataset, Density};
use crate::error::{Error, Result};
use crate::inference::config::{Config, Validation};
use crate::inference::events::{Event, Observer};
use crate::rng::Streams;
use crate::training::estimator::Settings;
use crate::training::{
    Engine, EpochReport, Fit, FitState, Machine, Noise, Reservoir, ScoreEngine, TrainRows,
};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

/// A round's training, the same for all members but for their rows.
pub(super) struct Course<'a> {
    pub round: u32,
    pub config: &'a Config,
    pub density: Density,
    pub data: &'a Dataset,
    /// Rows that each member trains on.
    pub rows: Vec<TrainRows>,
    /// The supply of their inner samples.
    pub reservoir: Reservoir,
    /// The estimator of their losses.
    pub estimator: Settings,
    /// Threads and device of each member.
    pub machine: Machine,
}

/// News of a member for the thread of the run.
enum Message {
    /// An epoch is over. It waits for the answer, to go on or not.
    Epoch(EpochReport, FitState, Sender<ControlFlow<()>>),
    /// It could not be trained.
    Failure(Error),
}

/// Stops all members when it goes out of scope in a panic, or at the end.
struct Halt<'a> {
    halted: &'a AtomicBool,
    always: bool,
}

impl Drop for Halt<'_> {
    fn drop(&mut self) {
        if self.always || thread::panicking() {
            self.halted.store(true, Ordering::Relaxed);
        }
    }
}

impl Course<'_> {
    /// Trains the members that are not done, so many at once, until all are or the observer breaks. `training` then
    /// is what the observer was told last.
    pub(super) fn run(
        &self,
        training: &mut Training,
        at_once: usize,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>> {
        let left = training.members.iter().enumerate().filter(|(_, fit)| fit.stop.is_none());
        let left: Vec<(usize, FitState)> =
            left.map(|(member, fit)| (member, fit.clone())).collect();
        let (next, halted) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = |news: Sender<Message>| {
            let _halt = Halt { halted: &halted, always: false };
            while let Some((member, state)) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                if halted.load(Ordering::Relaxed) {
                    break;
                }
                if let Err(error) = self.fit(*member, state.clone(), &news) {
                    // The thread of the run listens as long as there are members.
                    let _ = news.send(Message::Failure(error));
                }
            }
        };
        thread::scope(|scope| {
            let _halt = Halt { halted: &halted, always: true };
            let (news, messages) = channel();
            for _ in 0..at_once {
                let (news, work) = (news.clone(), &work);
                scope.spawn(move || work(news));
            }
            drop(news);
            listen(messages, &halted, training, observer)
        })
    }

    /// Trains a member from this state on, and tells of every epoch.
    fn fit(&self, member: usize, mut state: FitState, news: &Sender<Message>) -> Result<()> {
        let streams = Streams::new(self.config.seed).of_member(member as u32);
        let mut engine = self.engine(streams, state.engine.params.clone())?;
        let (config, reservoir) = (self.config, self.reservoir.clone());
        let rows = self.rows[member].clone();
        let early = self.round < config.rounds;
        let train = if early { config.train.of_early_round() } else { config.train };
        let mut fit = Fit::new(&train, &self.estimator, streams, self.round, rows, reservoir)?;
        let tell = &mut |report: &EpochReport, state: &FitState| {
            let (answer, heard) = channel();
            // Nobody listens any more if the thread of the run panicked.
            let _ = news.send(Message::Epoch(*report, state.clone(), answer));
            Ok(heard.recv().unwrap_or(ControlFlow::Break(())))
        };
        fit.run(&mut *engine, &mut state, tell).map(drop)
    }

    /// Where a member is trained: a flow on the device, a score on the cores.
    fn engine(&self, streams: Streams, params: Vec<f32>) -> Result<Box<dyn Engine>> {
        let (adam, Machine { threads, device, .. }) = (self.config.train.adam(), &self.machine);
        match &self.density {
            Density::Flow(flow) => device.engine(flow.clone(), params, self.data, adam, *threads),
            Density::Score(score) => {
                let fixed = self.config.train.validation == Validation::Fixed;
                let repeats = self.config.score.repeats;
                let noise = Noise { streams, round: self.round, repeats, fixed };
                let score = score.clone();
                Ok(Box::new(ScoreEngine::new(score, params, self.data, adam, noise, *threads)?))
            }
        }
    }
}

/// Hears the members until all have ended, and tells the observer, unless it failed.
fn listen(
    messages: Receiver<Message>,
    halted: &AtomicBool,
    training: &mut Training,
    observer: &mut dyn Observer,
) -> Result<ControlFlow<()>> {
    let (clock, before) = (Instant::now(), training.seconds);
    let mut outcome = Ok(ControlFlow::Continue(()));
    for message in messages {
        match message {
            Message::Failure(error) => outcome = outcome.and(Err(error)),
            Message::Epoch(report, state, answer) => {
                training.members[report.member as usize] = state;
                training.seconds = before + clock.elapsed().as_secs_f64();
                if outcome.is_ok() {
                    let said = observer.notice(&Event::Epoch { report: &report, training });
                    outcome = match said {
                        Ok(ControlFlow::Continue(())) => outcome,
                        other => other,
                    };
                }
                // A member that does not hear it has ended.
                let _ = answer.send(*outcome.as_ref().unwrap_or(&ControlFlow::Break(())));
            }
        }
        if !matches!(outcome, Ok(ControlFlow::Continue(()))) {
            halted.store(true, Ordering::Relaxed);
        }
    }
    outcome
}
