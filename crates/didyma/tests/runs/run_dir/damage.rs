//! Damaged, foreign and newer databases are told apart, and nothing in them is taken for data.

use super::{manifest, row, rows, stored, told};
use didyma::SimulatedRow;
use didyma::run::{DATABASE, RunDir};

#[test]
fn other_and_newer_databases_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, database) = (folder.path().join("run"), folder.path().join("run").join(DATABASE));
    drop(stored(&dir));
    let change = |sql: &str| {
        rusqlite::Connection::open(&database).unwrap().execute_batch(sql).unwrap();
        (told(RunDir::open(&dir)), told(RunDir::read(&dir)))
    };
    let (open, read) = change("PRAGMA user_version = 7");
    assert!(
        open.contains("its format is version 7, and this program reads up to 1; update Didyma")
    );
    assert!(open == read && open.contains(DATABASE), "{read}");
    let (open, read) = change("PRAGMA user_version = 1; UPDATE run SET config = '{}'");
    assert!(open == read && open.contains("its configuration does not match"), "{open}");
    let (open, read) = change("PRAGMA application_id = 5");
    assert!(open == read && open.contains("a database of another program"), "{open}");
    assert!(told(RunDir::create(&dir, &manifest())).contains("holds files of something else"));
    std::fs::write(&database, "theta,x\n1,2\n").unwrap();
    let (open, read) = (told(RunDir::open(&dir)), told(RunDir::read(&dir)));
    assert!(open == read && open.contains("it is no SQLite database"), "{open}");
    assert!(told(RunDir::create(&dir, &manifest())).contains("holds files of something else"));
    assert_eq!(std::fs::read(&database).unwrap(), b"theta,x\n1,2\n");
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let short = SimulatedRow { theta: vec![1.0], ..row(121) };
    let long = SimulatedRow { x: Ok(vec![1.0; 4]), ..row(122) };
    for (i, odd) in [short, long].into_iter().enumerate() {
        let mut run = stored(&folder.path().join(i.to_string()));
        run.store(&[odd]).unwrap();
        let told = told(run.rows());
        assert!(told.contains(DATABASE) && told.contains("another size than others"), "{told}");
    }
    let dir = folder.path().join("0");
    let connection = rusqlite::Connection::open(dir.join(DATABASE)).unwrap();
    let sql = "UPDATE simulations SET theta = x'010203' WHERE round = 1 AND \"index\" = 5";
    connection.execute_batch(sql).unwrap();
    drop(connection);
    assert!(told(RunDir::open(&dir).unwrap().rows()).contains("simulation 5 of round 1"));
}

/// Everything that can be asked of a run, as a process that resumes it would.
fn everything(run: didyma::Result<RunDir>) -> didyma::Result<Vec<SimulatedRow>> {
    let run = run?;
    run.events()?;
    run.rounds()?;
    run.rows()
}

#[test]
fn damage_is_told_and_never_taken_for_data() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, database) = (folder.path().join("run"), folder.path().join("run").join(DATABASE));
    drop(stored(&dir));
    let bytes = std::fs::read(&database).unwrap();
    for length in [0, 1, 50, 100, 511, 512, 4095, 4096, 5000, bytes.len() - 4096, bytes.len() - 1] {
        std::fs::write(&database, &bytes[..length]).unwrap();
        assert!(everything(RunDir::read(&dir)).is_err(), "{length} of {} bytes", bytes.len());
        assert!(everything(RunDir::open(&dir)).is_err(), "{length} of {} bytes", bytes.len());
    }
    let mut refused = 0;
    for (i, at) in (0..bytes.len()).step_by(31).enumerate() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (i % 8);
        std::fs::write(&database, &damaged).unwrap();
        let _ = everything(RunDir::read(&dir));
        match everything(RunDir::open(&dir)) {
            Ok(found) => assert_eq!(found, rows(120), "byte {at}"),
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains(DATABASE), "byte {at}: {error}");
            }
        }
    }
    assert!(refused > 50, "most bytes matter: {refused}");
}

/// The database and the log ahead of it as they lie on the disk before the process ends: what a loss of power leaves.
#[test]
fn a_damaged_log_costs_the_last_transactions_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let run = stored(&folder.path().join("run"));
    let file = |name: &str| std::fs::read(run.file(name)).unwrap();
    let (database, log) = (file(DATABASE), file("run.db-wal"));
    drop(run);
    let restored = |log: &[u8]| {
        let _ = std::fs::remove_dir_all(&copy);
        std::fs::create_dir(&copy).unwrap();
        std::fs::write(copy.join(DATABASE), &database).unwrap();
        std::fs::write(copy.join("run.db-wal"), log).unwrap();
        everything(RunDir::open(&copy))
    };
    assert_eq!(restored(&log).unwrap(), rows(120));
    for (i, at) in (0..log.len()).step_by(499).enumerate() {
        let mut damaged = log.clone();
        damaged[at] ^= 1 << (i % 8);
        for log in [&damaged[..], &log[..at]] {
            match restored(log) {
                Ok(found) => assert!([0, 120].contains(&found.len()), "byte {at}"),
                // The beginning itself is the first transaction of the log.
                Err(error) => assert!(error.to_string().contains("before it began"), "{error}"),
            }
        }
    }
}
