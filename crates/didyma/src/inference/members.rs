//! The members of an ensemble, trained side by side: no member waits for another.

use super::state::Training;
use crate::density::{Dataset, Density};
use crate::error::Result;
use crate::inference::config::{Config, Validation};
use crate::inference::events::{Event, Observer};
use crate::rng::Streams;
use crate::training::{Engine, EpochReport, Fit, FitState, Machine, Noise, ScoreEngine, TrainRows};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// What a round's training is made of.
pub(super) struct Course<'a> {
    pub round: u32,
    pub config: &'a Config,
    pub density: Density,
    pub data: &'a Dataset,
    /// What each member trains on.
    pub rows: Vec<TrainRows>,
    /// What each member trains with.
    pub machine: Machine,
}

/// What a member tells the thread of the run.
enum Told {
    /// An epoch is over. It waits for whether to go on.
    Epoch(EpochReport, FitState, Sender<ControlFlow<()>>),
    /// It could not be trained.
    Failed(crate::Error),
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
        let work = |told: Sender<Told>| {
            while let Some((member, state)) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                if halted.load(Ordering::Relaxed) {
                    break;
                }
                if let Err(error) = self.fit(*member, state.clone(), &told) {
                    // The thread of the run listens as long as there are members.
                    let _ = told.send(Told::Failed(error));
                }
            }
        };
        thread::scope(|scope| {
            let (told, said) = channel();
            for _ in 0..at_once {
                let (told, work) = (told.clone(), &work);
                scope.spawn(move || work(told));
            }
            drop(told);
            let mut outcome = Ok(ControlFlow::Continue(()));
            for said in said {
                let heard = match said {
                    Told::Failed(error) => Err(error),
                    Told::Epoch(report, state, go_on) => {
                        training.members[report.member as usize] = state;
                        let heard = observer.notice(&Event::Epoch { report: &report, training });
                        let stop = halted.load(Ordering::Relaxed)
                            || !matches!(heard, Ok(ControlFlow::Continue(())));
                        let answer =
                            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                        let _ = go_on.send(answer);
                        heard
                    }
                };
                if !matches!(heard, Ok(ControlFlow::Continue(()))) {
                    halted.store(true, Ordering::Relaxed);
                    outcome = outcome.and(heard);
                }
            }
            outcome
        })
    }

    /// Trains a member from this state on, and tells of every epoch.
    fn fit(&self, member: usize, mut state: FitState, told: &Sender<Told>) -> Result<()> {
        let streams = Streams::new(self.config.seed).of_member(member as u32);
        let mut engine = self.engine(streams, state.engine.params.clone())?;
        let (config, rows) = (self.config, self.rows[member].clone());
        let mut fit = Fit::new(&config.train, &config.estimator, streams, self.round, rows)?;
        let tell = &mut |report: &EpochReport, state: &FitState| {
            let (answer, heard) = channel();
            // Nobody listens any more if the thread of the run panicked.
            let _ = told.send(Told::Epoch(*report, state.clone(), answer));
            Ok(heard.recv().unwrap_or(ControlFlow::Break(())))
        };
        fit.run(&mut *engine, &mut state, tell).map(drop)
    }

    /// Where a member is trained: a flow on the device, a score on the cores.
    fn engine(&self, streams: Streams, params: Vec<f32>) -> Result<Box<dyn Engine>> {
        let (adam, Machine { threads, device }) = (self.config.train.adam(), &self.machine);
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
