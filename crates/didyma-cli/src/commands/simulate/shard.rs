//! `didyma propose`, `simulate --shard`, `merge` and `train`: a run whose simulations are made elsewhere.

use crate::args::{ConfigArgs, Loaded, MergeArgs, ProposeArgs, SimulateArgs, TrainArgs};
use crate::infer::{Until, carry_on, manifest};
use crate::live::{Stop, stop_on_interrupt};
use crate::results::Shown;
use crate::{DONE, ExitCode, STOPPED, print, progress, tell};
use anyhow::{Context, anyhow, bail};
use didyma::observe::{Event, Observer};
use didyma::rounds::{self, Model, Simulating};
use didyma::run::{self, Manifest, Merged, Origin, ProposalFile, RunDir, Shard};
use didyma::tasks::Task;
use didyma::{Error, Rows};
use indicatif::ProgressBar;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Writes the parameters of a run's next round; begins the run if there is none.
pub fn propose(args: &ProposeArgs) -> anyhow::Result<()> {
    let run = open_or_begin(args)?;
    let manifest = Manifest::of(&run)?;
    let config = &manifest.config;
    if let Some(count) = args.count.filter(|count| *count != config.simulations) {
        bail!(
            "-n is {count}, but the rounds of {} have {} simulations: leave it out",
            args.dir.display(),
            config.simulations
        );
    }
    let task = manifest.problem()?;
    let model: Model = (&task).into();
    let found = rounds::propose(&model, config, args.threads.count(), run::progress(&run)?)?;
    let Some((round, theta)) = found else {
        bail!("{} is finished: all its rounds are trained", args.dir.display());
    };
    let origin = Origin::new(Some(run.identity()), round, &task, config);
    let path = ProposalFile::path(&args.dir, round);
    // A file that is there stays: another kind of CPU could round its numbers differently.
    if !ProposalFile::read(&path).is_ok_and(|there| there.origin == origin) {
        let names = task.prior.names().map(str::to_owned).collect();
        ProposalFile { origin, names, theta }.write(&path)?;
    }
    let simulations = config.simulations;
    let (path, dir) = (path.display(), args.dir.display());
    print(&format!(
        "round {round} of {}: {simulations} parameters in {path}\n\
         next: didyma simulate {} --proposal {path} --shard 1/N --out shard-1.db   (and so on to N/N, anywhere)\n\
         then: didyma merge {dir} shard-*.db && didyma train {dir}",
        config.rounds,
        if manifest.problem.is_some() { "PROBLEM.toml" } else { &manifest.task },
    ))
}

fn open_or_begin(args: &ProposeArgs) -> anyhow::Result<RunDir> {
    let exists = args.dir.join(run::DATABASE).is_file();
    match (exists, args.problem()) {
        (true, None) => Ok(RunDir::open(&args.dir)?),
        (true, Some(_)) => bail!(
            "{} already holds a run, which knows its problem: leave the task or file out, or give another directory",
            args.dir.display()
        ),
        (false, Some(problem)) => {
            let Loaded { task, file } = problem.load()?;
            let mut config = args.config.config(args.seed, file.as_ref().map(|(_, s)| s))?;
            config.simulations = args.count.unwrap_or(config.simulations);
            config.check()?;
            let manifest = manifest(&task, file, config);
            Ok(RunDir::create(&args.dir, &manifest.to_json().to_string())?)
        }
        (false, None) => bail!(
            "{0} holds no run yet: give the task or the problem file to begin one, as `didyma propose {0} problem.toml`",
            args.dir.display()
        ),
    }
}

/// Simulates one part of a round into a file of its own; goes on with it if it was interrupted.
pub fn simulate_shard(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    let loaded = args.problem.load_with(|problem| args.program.apply(problem))?;
    args.program.check(loaded.file.as_ref().map(|(problem, _)| problem))?;
    let (part, out) = (args.shard.context("--shard is needed")?, args.out.as_ref());
    let out = out.context("--out is needed with --shard: a file for this part, as shard-1.db")?;
    let proposal = proposal(args, &loaded)?;
    check_problem(&proposal, &loaded.task)?;
    let mut shard = Shard::open(out, &proposal.origin)?;
    if args.retry_failed {
        tell(&format!("{} failed simulations are made again", shard.forget_failures()?));
    }
    let range = part.range(proposal.origin.simulations);
    let (missing, done) = shard.missing(range.clone())?;
    let Origin { seed, round, in_a_row, .. } = proposal.origin;
    let theta = Rows::new("theta", &proposal.theta, proposal.names.len())?;
    let simulator = &*loaded.task.simulator;
    let simulating = Simulating { simulator, seed, round, theta, missing, done, in_a_row };
    let mut observer = (shard, ShardBar::new(range.len(), done));
    let made = simulating.run(args.threads.count(), &mut observer);
    let (shard, bar) = observer;
    bar.bar.finish_and_clear();
    shard.close()?;
    // Whether it was stopped is told by what is done.
    let _ = made.map_err(|error| match error {
        Error::FailuresInARow { failures, reason, .. } => anyhow!(
            "{failures} simulations failed one after another, the last of them: {reason}\nrepair the simulator, then \
             run the same command with --retry-failed"
        ),
        other => other.into(),
    })?;
    let text =
        format!("shard {}/{} of round {round}: {bar} in {}", part.part, part.of, out.display());
    match bar.done == range.len() {
        true => print(&text).map(|()| DONE),
        false => {
            tell(&format!("{text}: stopped; the same command goes on"));
            Ok(STOPPED)
        }
    }
}

/// The parameters of the whole round.
fn proposal(args: &SimulateArgs, loaded: &Loaded) -> anyhow::Result<ProposalFile> {
    if let Some(path) = &args.proposal {
        return Ok(ProposalFile::read(path)?);
    }
    // Without a run these are the parameters of its first round, for its seed.
    let settings = loaded.file.as_ref().map(|(_, settings)| settings);
    let mut config = ConfigArgs::default().config(args.seed, settings)?;
    config.simulations = args.count.unwrap_or(config.simulations);
    config.check()?;
    Ok(ProposalFile::first(&loaded.task, &config, args.threads.count()))
}

/// What is seen of a shard, and stops it when the user wants it.
struct ShardBar {
    bar: ProgressBar,
    stop: Stop,
    begun: Instant,
    total: usize,
    done: usize,
    failed: usize,
}

impl ShardBar {
    fn new(total: usize, (done, failed): (usize, usize)) -> Self {
        let bar = progress::bar(total as u64, "{bar:40} {pos}/{len} simulations, {per_sec}{msg}");
        Self { bar, stop: stop_on_interrupt(), begun: Instant::now(), total, done, failed }
    }
}

impl Observer for ShardBar {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        if let Event::Simulated { done, failed, .. } = event {
            (self.done, self.failed) = (*done, *failed);
            self.bar.set_position(*done as u64);
            if *failed > 0 {
                self.bar.set_message(format!(", {failed} failed"));
            }
        }
        match self.stop.load(Ordering::Relaxed) {
            true => Ok(ControlFlow::Break(())),
            false => Ok(ControlFlow::Continue(())),
        }
    }
}

impl fmt::Display for ShardBar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, total, failed, begun, .. } = self;
        let failed = if *failed > 0 { format!(", {failed} of them failed") } else { String::new() };
        write!(f, "{done} of {total} simulations in {:.1} s{failed}", begun.elapsed().as_secs_f64())
    }
}

fn check_problem(proposal: &ProposalFile, task: &Task) -> anyhow::Result<()> {
    let names: Vec<&str> = task.prior.names().collect();
    let (found, expected) = (task.observation.len(), proposal.origin.summaries);
    let what = match () {
        () if proposal.names != names => {
            format!(
                "has the parameters {}, but the problem has {}",
                proposal.names.join(", "),
                names.join(", ")
            )
        }
        () if found != expected => {
            format!("is for {expected} summaries, but the problem has {found}")
        }
        () => return Ok(()),
    };
    bail!("--proposal {what}: give the problem that the run was begun with")
}

/// Takes simulations that were made elsewhere into a run.
pub fn merge(args: &MergeArgs) -> anyhow::Result<()> {
    let mut run = RunDir::open(&args.dir)?;
    let Merged { new, known, repaired, different } = run.merge(&args.shards)?;
    let (round, missing, total) = state(&run)?;
    let mut text = format!("{new} new simulations, {known} known ones");
    if repaired > 0 {
        text += &format!(", {repaired} successes in place of failures");
    }
    if different > 0 {
        tell(&format!(
            "warning: {different} simulations were there already with another outcome, which was kept: the simulator does \
             not give the same for the same seed"
        ));
    }
    let dir = args.dir.display();
    let finished = round > Manifest::of(&run)?.config.rounds;
    text += &match missing {
        _ if finished => "; all rounds are trained".to_owned(),
        0 => format!("; round {round} is complete. next: didyma train {dir}"),
        missing => format!("; round {round} lacks {missing} of {total}"),
    };
    print(&text)
}

/// The unfinished round, the simulations that it lacks, and those that it needs.
fn state(run: &RunDir) -> anyhow::Result<(u32, usize, usize)> {
    let config = Manifest::of(run)?.config;
    let round = run.rounds()?.len() as u32 + 1;
    let done = run.count(round)?;
    Ok((round, config.simulations - done.min(config.simulations), config.simulations))
}

/// Trains a round whose simulations are all there.
pub fn train(args: &TrainArgs) -> anyhow::Result<(Shown, ExitCode)> {
    let run = RunDir::open(&args.dir)?;
    let manifest = Manifest::of(&run)?;
    let (round, missing, total) = state(&run)?;
    let (dir, rounds) = (args.dir.display(), manifest.config.rounds);
    if round <= rounds && missing > 0 {
        bail!(
            "round {round} of {dir} lacks {missing} of {total} simulations: merge more shards (`didyma propose {dir}` writes its \
             parameters), or let `didyma resume {dir}` simulate them here"
        );
    }
    let task = manifest.problem()?;
    let progress = run::progress(&run)?;
    let machine = args.device.machine(&manifest.config, &task, args.threads.count())?;
    let shown = carry_on(run, &task, &manifest, progress, machine, Until::Round)?;
    match shown.rounds() >= round as usize {
        true if shown.is_finished() => {}
        true => tell(&format!("round {round} is trained. next: didyma propose {dir}")),
        false => {
            tell(&format!("stopped; everything so far is saved. To go on: didyma train {dir}"))
        }
    }
    let code = if shown.rounds() >= round.min(rounds) as usize { 0 } else { STOPPED };
    Ok((shown, code))
}
