//! Damaged, foreign and newer databases are told apart, and nothing in them is taken for data.

use super::{manifest, report, row, rows, stored, told};
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
        open.contains("its format is version 7, and this program reads up to 2; update Didyma")
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

/// Whoever makes room for every round up to the last would need more memory than there is.
#[test]
fn rows_and_rounds_that_a_run_cannot_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (i, (round, index)) in
        [(u32::MAX, 0), (10_001, 0), (0, 5), (1, 1000), (2, u32::MAX)].into_iter().enumerate()
    {
        let mut run = stored(&folder.path().join(i.to_string()));
        run.store(&[SimulatedRow { round, index, ..row(0) }]).unwrap();
        let told = told(run.rows());
        let expected = format!("simulation {index} of round {round} is none of the run");
        assert!(told.contains(DATABASE) && told.contains(&expected), "{told}");
    }
    for round in [0, 4, 10_001, u32::MAX] {
        let mut run = stored(&folder.path().join(format!("round {round}")));
        run.finish_round(&report(round)).unwrap();
        let told = told(run.reports());
        assert!(told == self::told(run.rounds().map(drop)) && told.contains("of round"), "{told}");
    }
    // Epochs enter no result: what cannot be is left out.
    let mut run = stored(&folder.path().join("epochs"));
    run.log("epochs", r#"[{"round":0,"epoch":1,"train_loss":1.0,"validation_loss":1.0}]"#).unwrap();
    run.log("epochs", r#"[{"round":4294967295,"epoch":1,"train_loss":1.0,"validation_loss":1.0}]"#)
        .unwrap();
    assert!(run.epochs().unwrap().is_empty());
}

/// A view may have rows without end, and a trigger may do anything.
#[test]
fn tables_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let endless = |table: &str, columns: &str| {
        format!(
            "DROP TABLE {table}; CREATE VIEW {table} AS WITH RECURSIVE n(i) AS \
             (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT {columns} FROM n"
        )
    };
    let changes = [
        endless("simulations", "1 AS round, i AS \"index\", x'' AS theta, x'' AS x, NULL AS failure, 0 AS crc"),
        endless("run", "'1' AS version, '{}' AS config, 0 AS crc"),
        endless("rounds", "i AS round, '{}' AS json, 0 AS crc"),
        endless("events", "i AS id, 0.0 AS time, 'epochs' AS kind, '[]' AS json"),
        "ALTER TABLE rounds RENAME TO others; CREATE TABLE rounds (round, json, crc)".to_owned(),
        "CREATE TRIGGER more AFTER INSERT ON events BEGIN INSERT INTO events SELECT NULL, 0, '', '' \
         FROM events, events, events; END"
            .to_owned(),
    ];
    for (i, sql) in changes.iter().enumerate() {
        let dir = folder.path().join(i.to_string());
        drop(stored(&dir));
        rusqlite::Connection::open(dir.join(DATABASE)).unwrap().execute_batch(sql).unwrap();
        let (open, read) = (told(RunDir::open(&dir)), told(RunDir::read(&dir)));
        assert!(
            open == read && open.contains("its tables are not those of a run"),
            "{sql}: {open}"
        );
    }
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
