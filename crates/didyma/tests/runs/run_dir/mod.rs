//! The directory of a run: what is stored stays, whatever ends the process, and everything else is told in a sentence.

#![allow(clippy::unwrap_used)]

mod damage;
mod process;

use didyma::run::{DATABASE, Manifest, RunDir};
use didyma::training::StopReason;
use didyma::{Config, RoundReport, Scores, SimulatedRow};
use std::path::Path;

fn manifest() -> Manifest {
    Manifest::of_task("two-moons", Config { rounds: 10_000, ..Config::default() })
}

fn report(round: u32) -> RoundReport {
    RoundReport {
        round,
        simulations: 100,
        failures: 20,
        epochs: 1,
        steps: 1,
        stop_reason: StopReason::Budget,
        seconds_simulate: 0.0,
        seconds_train: 0.0,
        seconds_score: 0.0,
        train_loss: Some(f64::from(round)),
        validation_loss: None,
        scores: Scores::default(),
        outside_prior: 0.0,
        members: Vec::new(),
        disagreement: None,
        pairs: 1,
        inner: None,
        levels: None,
        drawn_elsewhere: false,
        recentred: false,
        device: String::new(),
        validity: None,
        oddities: Vec::new(),
    }
}

/// Simulations that are stored at once.
const BATCH: u32 = 7;

/// Simulation number `index`: every fifth fails.
fn row(index: u32) -> SimulatedRow {
    let number = index as f64;
    let x = match index % 5 {
        4 => Err(format!("no solution for {index}")),
        _ => Ok(vec![number, -number, 0.1 * number]),
    };
    SimulatedRow { round: 1 + index / 100, index: index % 100, theta: vec![number, f64::MIN], x }
}

fn rows(count: u32) -> Vec<SimulatedRow> {
    (0..count).map(row).collect()
}

/// A run with 120 simulations, two rounds and an event, in `dir`.
fn stored(dir: &Path) -> RunDir {
    let mut run = RunDir::create(dir, &manifest()).unwrap();
    run.store(&rows(120)).unwrap();
    run.finish_round(&report(1)).unwrap();
    run.finish_round(&report(2)).unwrap();
    run.log("begin", "{}").unwrap();
    run
}

fn told<T: std::fmt::Debug>(result: didyma::Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_run_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("deep/out 1?#%");
    let mut run = stored(&dir);
    let mut changed = row(3);
    changed.theta[0] += 1.0;
    run.store(&[changed, row(120)]).unwrap();
    drop(run);
    for run in [RunDir::open(&dir).unwrap(), RunDir::read(&dir).unwrap()] {
        assert_eq!((run.manifest(), run.version()), (&manifest(), env!("CARGO_PKG_VERSION")));
        assert_eq!(run.rows().unwrap(), rows(121), "what is there already is kept");
        assert_eq!(run.reports().unwrap(), [report(1), report(2)]);
        assert_eq!(run.rounds().unwrap(), 2);
        let events = run.events().unwrap();
        assert!(events.len() == 1 && events[0].0 > 1.7e9 && events[0].1 == "begin");
    }
    let mut reader = RunDir::read(&dir).unwrap();
    assert!(told(reader.store(&[row(0)])).contains("readonly"));
}

#[test]
fn readers_count_simulations_and_see_whether_a_process_works_on_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = stored(folder.path());
    let reader = RunDir::read(folder.path()).unwrap();
    assert_eq!(reader.counts().unwrap(), (120, 24), "every fifth fails");
    assert!(reader.is_worked_on().unwrap());
    drop(run);
    assert!(!reader.is_worked_on().unwrap());
    // A look, here a slow one, does not keep a process from the run: 10 ms of the 180 that it tries for.
    let look = std::fs::File::open(folder.path().join("lock")).unwrap();
    look.lock_shared().unwrap();
    let looking = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        look.unlock().unwrap();
    });
    drop(RunDir::open(folder.path()).unwrap());
    looking.join().unwrap();
    std::fs::remove_file(folder.path().join("lock")).unwrap();
    assert!(!reader.is_worked_on().unwrap(), "a copy may lack the file");
    assert!(!folder.path().join("lock").exists(), "looking makes none");
}

#[test]
fn failures_are_forgotten_unless_a_model_rests_on_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDir::create(folder.path(), &manifest()).unwrap();
    run.store(&rows(120)).unwrap();
    run.finish_round(&report(1)).unwrap();
    assert!(told(run.forget_failures(1)).contains("training has not begun"));
    assert_eq!(run.forget_failures(2).unwrap(), 4);
    assert_eq!(run.counts().unwrap(), (116, 20), "every fifth of round 1 failed, and still has");
    assert!(run.rows().unwrap().iter().all(|row| row.round == 1 || row.x.is_ok()));
    run.store(&rows(120)).unwrap();
    assert_eq!(run.counts().unwrap(), (120, 24), "and are stored anew");
}

#[test]
fn a_run_begins_only_in_a_directory_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let create = |name: &str| RunDir::create(&dir.join(name), &manifest());
    std::fs::write(dir.join("file"), "").unwrap();
    assert!(told(create("file")).contains("is a file, but a run needs a directory"));
    assert!(told(RunDir::create(dir, &manifest())).contains("holds files of something else"));
    assert!(!dir.join("lock").exists(), "nothing is left where no run can begin");
    drop(create("run").unwrap());
    let exists = "already holds a run: continue it, or choose another directory";
    assert!(told(create("run")).contains(exists));
    std::fs::write(dir.join("run/summary.json"), "{}").unwrap();
    assert!(told(create("run")).contains(exists));
    assert!(told(RunDir::open(&dir.join("none"))).contains("holds no run"));
    assert!(told(RunDir::read(dir)).contains("holds no run"));
    assert!(!dir.join("none").exists());

    // What an ended beginning leaves is begun again.
    std::fs::create_dir(dir.join("begun")).unwrap();
    std::fs::write(dir.join("begun/lock"), "1").unwrap();
    std::fs::write(dir.join("begun").join(DATABASE), "").unwrap();
    assert!(told(RunDir::open(&dir.join("begun"))).contains("ended before it began"));
    assert!(told(RunDir::read(&dir.join("begun"))).contains("ended before it began"));
    create("begun").unwrap();
}

#[test]
fn readers_see_whole_batches_while_another_writes() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDir::create(folder.path(), &manifest()).unwrap();
    let reader = RunDir::read(folder.path()).unwrap();
    for count in 1..=50 {
        run.store(&rows(BATCH * count)[(BATCH * (count - 1)) as usize..]).unwrap();
        assert_eq!(reader.rows().unwrap().len() as u32, BATCH * count);
    }
    let writer = std::thread::spawn(move || {
        (51..=150).for_each(|count| {
            run.store(&rows(BATCH * count)[(BATCH * (count - 1)) as usize..]).unwrap();
        });
    });
    while !writer.is_finished() {
        let found = reader.rows().unwrap();
        assert_eq!(found.len() as u32 % BATCH, 0);
        assert_eq!(found, rows(found.len() as u32));
    }
    writer.join().unwrap();
    assert_eq!(reader.rows().unwrap().len() as u32, 150 * BATCH);
}
