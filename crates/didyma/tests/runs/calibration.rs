//! The calibration of a run by new simulations: the same rows however it is interrupted, and what is asked of them.

#![allow(clippy::unwrap_used)]

use didyma::calibration::{Calibration, Evidence, Population};
use didyma::run::{
    CALIBRATION, CALIBRATION_DATABASE, CalibrationRequest, Calibrator, Findings, Manifest, Origin,
    ProposalFile, RunDir, SUMMARY, Shard, execute,
};
use didyma::tasks::Task;
use didyma::{Algorithm, Assignment, Config, Event, Method, Observer, Profile, Rows, State};
use std::ops::ControlFlow;
use std::path::Path;
use tempfile::TempDir;

const PLAIN: CalibrationRequest =
    CalibrationRequest { local: false, conformal: false, held_out: false };

/// A tiny finished run of a task whose simulator is cheap.
fn run(algorithm: impl Into<Algorithm>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(Profile::Default, algorithm);
    (config.rounds, config.simulations, config.train.steps) = (2, 200, Some(30));
    (config.ensemble.members, config.samples) = (2, 100);
    (config.flow.layers, config.flow.units, config.truncation.draws) = (2, 8, 4000);
    let task = Task::named("two-moons").unwrap();
    let manifest = Manifest::of_task("two-moons", config);
    let run = RunDir::create(folder.path(), &manifest).unwrap();
    // Without a judge, who would take longer than all else.
    execute(run, State::default(), &task.problem, None, 2, &mut ()).unwrap();
    folder
}

/// Breaks after so many reports of simulations.
struct Impatient(usize);

impl Observer for Impatient {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        if matches!(event, Event::Simulated { rows, .. } if !rows.is_empty()) {
            self.0 -= 1;
        }
        Ok(if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// New simulations, each of these numbers in turn, and what they say.
fn calibrated(
    run: &Path,
    request: CalibrationRequest,
    counts: &[usize],
    threads: usize,
) -> Calibration {
    let task = Task::named("two-moons").unwrap();
    let mut calibrator = Calibrator::open(run, request, threads).unwrap();
    for &count in counts {
        let made = calibrator.simulate(task.problem.simulator(), count, &mut ()).unwrap();
        assert!(made.is_continue());
    }
    calibrator.finish().unwrap().calibration().clone().unwrap()
}

fn copy(run: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(run).unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, to.path().join(from.file_name().unwrap())).unwrap();
    }
    to
}

/// Rows of numbers 0 to 99 and then the others, by two threads, or all at once by one, after all was stored by a call that broke:
/// the same to the last digit. What is stored is read back, by the page's reader too.
#[test]
fn new_simulations_are_the_same_however_they_are_made() {
    for algorithm in [Algorithm::Corrected(Method::Tgrr), Algorithm::Tsnpe, Algorithm::Npe] {
        let first = run(algorithm);
        let (second, third) = (copy(first.path()), copy(first.path()));
        let found = calibrated(first.path(), PLAIN, &[150], 1);
        assert_eq!((found.evidence, found.rows), (Evidence::New, 150));
        assert_eq!(calibrated(second.path(), PLAIN, &[40, 150], 2), found, "{algorithm:?}");
        let task = Task::named("two-moons").unwrap();
        let mut broken = Calibrator::open(third.path(), PLAIN, 2).unwrap();
        let made = broken.simulate(task.problem.simulator(), 70, &mut Impatient(1)).unwrap();
        let stored = broken.stored().unwrap().0;
        assert!(made.is_break() || stored == 70, "{stored}");
        drop(broken);
        assert_eq!(calibrated(third.path(), PLAIN, &[150], 2), found, "{algorithm:?}");
        let read = Findings::read(first.path(), 1).unwrap();
        assert_eq!(read.calibration().as_ref(), Ok(&found));
        let summary: serde_json::Value =
            serde_json::from_slice(&std::fs::read(first.path().join(SUMMARY)).unwrap()).unwrap();
        assert_eq!(summary["verdict"], serde_json::to_value(read.verdict().unwrap()).unwrap());
    }
}

/// The run's own simulations are asked where there are no others, a file that is lost is made again with the same bytes, and
/// fewer new simulations than are stored leave none out.
#[test]
fn a_calibration_is_kept_and_made_again_where_it_is_lost() {
    let folder = run(Algorithm::Npe);
    let bytes = || std::fs::read(folder.path().join(CALIBRATION)).unwrap();
    let held_out = calibrated(folder.path(), PLAIN, &[], 1);
    assert!(matches!(held_out.evidence, Evidence::HeldOut(1, 2)), "{:?}", held_out.evidence);
    let before = bytes();
    std::fs::remove_file(folder.path().join(CALIBRATION)).unwrap();
    assert_eq!(calibrated(folder.path(), PLAIN, &[], 2), held_out);
    assert_eq!(bytes(), before);
    let local = calibrated(folder.path(), CalibrationRequest::default(), &[120], 2);
    assert!((0.0..=1.0).contains(&local.local.as_ref().unwrap().p_value));
    assert_eq!(local.local.as_ref().unwrap().probability.len(), 500);
    // It is there, and nothing new is asked for.
    assert_eq!(calibrated(folder.path(), CalibrationRequest::default(), &[], 1), local);
    assert_eq!(calibrated(folder.path(), PLAIN, &[30], 1).rows, 120);
    let again = CalibrationRequest { held_out: true, ..PLAIN };
    assert_eq!(calibrated(folder.path(), again, &[], 1), held_out);
}

/// Rows that spread evenly lie beside the others, and levels rise with the coverage. 99 % needs 99 rows.
#[test]
fn conformal_levels_ask_simulations_that_spread_evenly() {
    let folder = run(Algorithm::Corrected(Method::Tgrr));
    calibrated(folder.path(), PLAIN, &[60], 2);
    let request = CalibrationRequest { conformal: true, ..PLAIN };
    let refused = Calibrator::open(folder.path(), request, 2).unwrap().finish().unwrap_err();
    assert!(refused.to_string().contains("0 new simulations of the 20"), "{refused}");
    let found = calibrated(folder.path(), request, &[80], 2);
    let levels = found.conformal.unwrap();
    assert_eq!((levels.over, levels.rows, found.rows), (Population::Region, 80, 80));
    let given: Vec<f64> = levels.levels.iter().filter_map(|level| level.level).collect();
    assert!(given.len() == 4 && given.is_sorted(), "{given:?}");
    assert_eq!((levels.levels[4].level, levels.levels[4].needed), (None, 99));
    let prior = run(Algorithm::Npe);
    let found = calibrated(prior.path(), request, &[80], 2);
    assert_eq!(found.conformal.unwrap().over, Population::Prior);
    assert_eq!(calibrated(folder.path(), PLAIN, &[60], 2).rows, 60);
}

/// One shard of the proposed parameters.
fn shard(proposal: &Path, to: &Path, range: std::ops::Range<usize>) {
    let task = Task::named("two-moons").unwrap();
    let proposal = ProposalFile::read(proposal).unwrap();
    let mut shard = Shard::open(to, &proposal.origin).unwrap();
    let (missing, done) = shard.missing(range).unwrap();
    let Origin { seed, round, in_a_row, .. } = proposal.origin;
    let theta = Rows::new("theta", &proposal.theta, proposal.names.len()).unwrap();
    let simulator = task.problem.simulator();
    let assignment = Assignment { simulator, seed, round, theta, missing, done, in_a_row };
    _ = assignment.run(2, &mut shard).unwrap();
    shard.close().unwrap();
}

#[test]
fn shards_end_with_the_same_calibration() {
    let first = run(Algorithm::Corrected(Method::Tgrr));
    let second = copy(first.path());
    let expected = calibrated(first.path(), PLAIN, &[100], 2);
    let calibrator = Calibrator::open(second.path(), PLAIN, 1).unwrap();
    let proposal = calibrator.propose(100).unwrap();
    assert_eq!(calibrator.propose(100).unwrap(), proposal);
    drop(calibrator);
    let (one, two) = (second.path().join("one.db"), second.path().join("two.db"));
    shard(&proposal, &one, 0..55);
    shard(&proposal, &two, 55..100);
    let mut calibrator = Calibrator::open(second.path(), PLAIN, 1).unwrap();
    assert_eq!(calibrator.merge(&[&two]).unwrap().new, 45);
    let merged = calibrator.merge(&[&one, &two]).unwrap();
    assert_eq!((merged.new, merged.known, merged.different), (55, 45, 0));
    let found = calibrator.finish().unwrap().calibration().clone().unwrap();
    assert_eq!(found, expected);
    // More of them are the same first ones; shards of another run, or of another kind, are none.
    let calibrator = Calibrator::open(second.path(), PLAIN, 1).unwrap();
    calibrator.propose(140).unwrap();
    let before = ProposalFile::read(&proposal).unwrap();
    assert_eq!(before.origin.simulations, 140);
    drop(calibrator);
    let mut calibrator = Calibrator::open(second.path(), PLAIN, 1).unwrap();
    assert_eq!(calibrator.merge(&[&one]).unwrap().known, 55);
    drop(calibrator);
    let even = CalibrationRequest { conformal: true, ..PLAIN };
    let told = Calibrator::open(second.path(), even, 1).unwrap().merge(&[&one]).unwrap_err();
    assert!(told.to_string().contains("is of round 3, but"), "{told}");
    let other = run(Algorithm::Tsnpe);
    let told = Calibrator::open(other.path(), PLAIN, 1).unwrap().merge(&[&one]).unwrap_err();
    assert!(told.to_string().contains("is a shard of another run"), "{told}");
}

#[test]
fn what_cannot_be_calibrated_is_told_in_a_sentence() {
    let folder = run(Algorithm::Npe);
    let told = |path: &Path| Calibrator::open(path, PLAIN, 1).unwrap_err().to_string();
    assert!(told(&folder.path().join("nothing")).contains("holds no run"));
    let held = RunDir::hold(folder.path()).unwrap();
    assert!(told(folder.path()).contains("works on"), "{}", told(folder.path()));
    drop(held);
    let unfinished = tempfile::tempdir().unwrap();
    let manifest = Manifest::of_task("two-moons", Config::default());
    drop(RunDir::create(unfinished.path(), &manifest).unwrap());
    let found = told(unfinished.path());
    assert!(
        found.ends_with("is not finished (0 of 10 rounds are): resume the run first"),
        "{found}"
    );
    // A database of another posterior, or of another program, is left alone.
    let other = run(Algorithm::Tsnpe);
    calibrated(other.path(), PLAIN, &[20], 1);
    let database = folder.path().join(CALIBRATION_DATABASE);
    std::fs::copy(other.path().join(CALIBRATION_DATABASE), &database).unwrap();
    assert!(told(folder.path()).contains("holds simulations for another posterior"));
    std::fs::write(&database, "no database").unwrap();
    assert!(told(folder.path()).contains("it is no SQLite database"), "{}", told(folder.path()));
}
