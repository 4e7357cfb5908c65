//! `didyma infer --seeds`, and what `resume` and `show` make of its directory: runs that differ in their seed, side by side.

mod spread;
mod table;

use super::infer::{InferArgs, asked, free_directory, with_page, with_remedy};
use super::resume::ResumeArgs;
use super::show::ShowArgs;
use crate::output::{self, sentence, tell};
use crate::terminal::{Board, stop_on_interrupt};
use crate::{DONE, ExitCode, STOPPED};
use didyma::run::{
    Manifest, POSTERIOR_CSV, POSTERIOR_NPZ, REPORT, RunDir, SUMMARY, SeedSweep, execute_task,
};
use didyma::tasks::Task;
use didyma::training::Machine;
use didyma::{Error, ProblemRecord, Source, parallel};
use table::{Failed, Table};

/// Begins runs of several seeds and carries them through.
pub fn infer(args: &InferArgs) -> anyhow::Result<ExitCode> {
    let (task, manifest) = asked(args)?;
    let out = args.out.clone().unwrap_or_else(|| free_directory(&manifest, "seeds"));
    let machine = args.device.machine(&manifest.config, &task, args.threads.count())?;
    let sweep = SeedSweep::create(&out, &manifest, args.seeds)?;
    Work { sweep, problem: manifest.problem, machine, retry_failed: false }.work_on(args.json)
}

/// Carries on those runs that are not finished.
pub fn resume(args: &ResumeArgs) -> anyhow::Result<ExitCode> {
    let sweep = SeedSweep::open(&args.dir)?;
    let manifest = sweep.manifest(sweep.seeds().start);
    let problem = args.problem_of(&manifest)?;
    let task = manifest.task()?;
    let machine = args.device.machine(&manifest.config, &task, args.threads.count())?;
    Work { sweep, problem, machine, retry_failed: args.retry_failed }.work_on(args.json)
}

/// Shows runs of several seeds, how far each has come and how much they differ.
pub fn show(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let sweep = SeedSweep::read(&args.dir)?;
    let mut table = Table::read(&sweep, Vec::new(), parallel::cores());
    table.running = sweep.is_worked_on()?;
    output::show(&table, args.json)?;
    Ok(tell_failed(&table))
}

/// Why runs could not be made or read. Those that failed in the same way share a sentence.
fn tell_failed(table: &Table) -> ExitCode {
    let mut told: Vec<(&str, Vec<String>)> = Vec::new();
    for Failed { seed, error } in &table.failed {
        match told.iter_mut().find(|(known, _)| known == error) {
            Some((_, seeds)) => seeds.push(seed.to_string()),
            None => told.push((error, vec![seed.to_string()])),
        }
    }
    for (error, seeds) in told {
        let word = if seeds.len() == 1 { "seed" } else { "seeds" };
        tell(&format!("error: {word} {}: {error}", seeds.join(", ")));
    }
    if table.failed.is_empty() { DONE } else { 2 }
}

/// Runs, and what they are worked on with.
struct Work {
    sweep: SeedSweep,
    /// The problem as it is simulated here, where it is a user's own.
    problem: Option<ProblemRecord>,
    machine: Machine,
    retry_failed: bool,
}

impl Work {
    /// Works on all that is left to do, and shows what came of it.
    fn work_on(&self, json: bool) -> anyhow::Result<ExitCode> {
        let all = self.sweep.seeds();
        let left: Vec<u64> = all.clone().filter(|&seed| !self.is_complete(seed)).collect();
        let (at_once, machine) = self.shares(left.len());
        let stop = stop_on_interrupt();
        let board = Board::new(&self.sweep, left.len(), at_once, &machine, stop);
        let failed = parallel::map(left.len(), at_once, |i| {
            let ended = self.one(left[i], at_once, &machine, &board);
            let ended = ended.map_err(|error| sentence(&error));
            board.ended(left[i], ended.as_ref());
            ended.err().map(|error| Failed { seed: left[i], error })
        });
        board.finish();
        let failed = failed.into_iter().flatten().collect();
        let table = Table::read(&self.sweep, failed, self.machine.threads);
        output::show(&table, json)?;
        match tell_failed(&table) {
            DONE if table.is_finished() => Ok(DONE),
            code => {
                let (dir, so_far) = (self.sweep.path().display(), "everything so far is saved");
                let what = if code == DONE { "stopped" } else { "not all runs are finished" };
                tell(&format!("{what}; {so_far}. To go on: didyma resume \"{dir}\""));
                Ok(if code == DONE { STOPPED } else { code })
            }
        }
    }

    /// Tells if a run has all its files; one that was ended while it wrote them has not.
    fn is_complete(&self, seed: u64) -> bool {
        let Ok(Some(run)) = self.sweep.look(seed) else { return false };
        let rounds = self.sweep.manifest(seed).config.rounds as usize;
        let files = [SUMMARY, POSTERIOR_NPZ, POSTERIOR_CSV, REPORT];
        files.iter().all(|name| run.file(name).is_file())
            && run.rounds().is_ok_and(|done| done == rounds)
    }

    /// How many runs go on at once, and what each has. A program's processes are limited for all runs together.
    fn shares(&self, runs: usize) -> (usize, Machine) {
        let most = match self.problem.as_ref().map(|problem| &problem.source) {
            Some(Source::Program(program)) => program.workers.unwrap_or(self.machine.threads),
            _ => usize::MAX,
        };
        let at_once = self.machine.at_once(runs).min(most).max(1);
        (at_once, self.machine.part(at_once))
    }

    /// The problem for one of the runs. Each has a simulator of its own: when a run stops, it interrupts its simulator,
    /// and others must not take that for failures.
    fn task(&self, manifest: &Manifest, at_once: usize) -> didyma::Result<Task> {
        let Some(mut problem) = self.problem.clone() else { return manifest.task() };
        if let Source::Program(program) = &mut problem.source {
            program.workers = program.workers.map(|workers| (workers / at_once).max(1));
        }
        problem.task()
    }

    /// One run, from where it stands to its end.
    fn one(
        &self,
        seed: u64,
        at_once: usize,
        machine: &Machine,
        board: &Board,
    ) -> anyhow::Result<()> {
        if board.is_stopped() {
            return Ok(());
        }
        let mut run = self.sweep.run(seed)?;
        let dir = run.path().to_owned();
        let task = self.task(&self.sweep.manifest(seed), at_once)?;
        if self.retry_failed {
            board.say(seed, &forget_failures(&mut run)?);
        }
        let state = run.progress()?;
        let mut watcher = board.watch(seed, state.reports.len());
        let findings = execute_task(run, state, &task, machine.clone(), &mut watcher);
        let findings = findings.map_err(|error| with_remedy(error, &dir))?;
        with_page(&findings, |note| board.say(seed, note));
        Ok(())
    }
}

/// Failed simulations are made again where nothing rests on them yet, which may not be so of every run.
fn forget_failures(run: &mut RunDir) -> didyma::Result<String> {
    let round = run.rounds()? as u32 + 1;
    match run.forget_failures(round) {
        Ok(count) => Ok(format!("{count} failed simulations of round {round} are made again")),
        Err(Error::Setting { .. }) => {
            Ok(format!("round {round} is in training, and its failed simulations stay"))
        }
        Err(error) => Err(error),
    }
}
