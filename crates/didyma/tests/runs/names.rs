//! Names in files: read as they were written, refused where they were made to deceive, and many of them in no time.

#![allow(clippy::unwrap_used)]

use didyma::problem_file::ProblemFile;
use didyma::run::{DATABASE, Manifest, Origin, ProposalFile, RunDir, SEEDS, SeedSweep};
use didyma::simulator::program::parse::once_output;
use didyma::{Config, Prior, ProblemRecord, Source};
use std::path::Path;
use std::time::{Duration, Instant};

/// Good names that a careless reader takes for something else.
const ODD: [&str; 9] =
    ["nan", "inf", "1", "#a", "a,b", "say \"x\"", "m/s", "$\\alpha_{1}$", "index,seed"];
/// Order to clear a terminal.
const CLEAR: &str = "\u{1b}[2J";

fn record(name: &str) -> ProblemRecord {
    let prior = Prior::uniform(["a"], [0.0], [1.0]).unwrap();
    ProblemRecord::plain(name.to_owned(), prior, vec![0.5], Source::Function { batch: 0 })
}

#[test]
fn proposals_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("proposal-1.csv");
    let simulations = 2;
    let origin = Origin { run: None, round: 1, seed: 3, simulations, summaries: 1, in_a_row: 0 };
    let names = ODD.map(str::to_owned).to_vec();
    let theta = (0..simulations * names.len()).map(|i| i as _).collect();
    let proposal = ProposalFile { origin, names, theta };
    proposal.write(&path).unwrap();
    assert_eq!(ProposalFile::read(&path).unwrap(), proposal);
    // A digit that changed on the way would be simulated, and merged.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(",2,3,", ",2,4,")).unwrap();
    let told = ProposalFile::read(&path).unwrap_err().to_string();
    assert!(told.contains("its numbers are not those that were written"), "{told}");
    std::fs::write(&path, text.replace('\n', "\r\n")).unwrap();
    assert_eq!(ProposalFile::read(&path).unwrap(), proposal);
}

#[test]
fn hostile_names_of_received_runs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let told = |error: didyma::Error| {
        let told = error.to_string();
        assert!(told.contains("\\u{1b}[2J\" has a control") && !told.contains(CLEAR), "{told:?}");
    };
    // A database as a stranger would have made it, with a checksum that is right.
    let dir = folder.path().join("run");
    drop(RunDir::create(&dir, &Manifest::of_problem(record("plain"), Config::default())).unwrap());
    let database = rusqlite::Connection::open(dir.join(DATABASE)).unwrap();
    let (version, config): (String, String) =
        database.query_row("SELECT version, config FROM run", [], |row| row.try_into()).unwrap();
    for field in ["\"plain\"", "\"x1\"", "\"a\""] {
        let config = config.replace(field, "\"\\u001b[2J\"");
        let mut crc = crc32fast::Hasher::new();
        for part in [&version, &config] {
            crc.update(&(part.len() as u64).to_le_bytes());
            crc.update(part.as_bytes());
        }
        database
            .execute("UPDATE run SET config = ?1, crc = ?2", (&config, crc.finalize()))
            .unwrap();
        told(RunDir::read(&dir).unwrap_err());
        told(RunDir::open(&dir).unwrap_err());
    }
    let sweep = folder.path().join("sweep");
    let manifest = Manifest::of_problem(record("plain"), Config::default());
    drop(SeedSweep::create(&sweep, &manifest, 2).unwrap());
    let text = std::fs::read_to_string(sweep.join(SEEDS)).unwrap();
    std::fs::write(sweep.join(SEEDS), text.replace("plain", "\\u001b[2J")).unwrap();
    told(SeedSweep::read(&sweep).unwrap_err());
}

#[test]
fn no_run_begins_with_a_bad_name() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let mut bad = record("good");
    bad.summaries = vec!["=1+1".to_owned()];
    for problem in [record(CLEAR), record("../up"), bad] {
        let manifest = Manifest::of_problem(problem, Config::default());
        assert!(RunDir::create(&dir, &manifest).is_err());
        assert!(SeedSweep::create(&dir, &manifest, 2).is_err());
        assert!(!dir.exists(), "nothing was made");
    }
    let prior = Prior::uniform(ODD, [0.0; ODD.len()], [1.0; ODD.len()]).unwrap();
    assert_eq!(prior.names().collect::<Vec<_>>(), ODD);
    for name in ["", " a", "-log_k", CLEAR, "a\0", "a\u{2028}"] {
        let told = Prior::uniform([name], [0.0], [1.0]).unwrap_err().to_string();
        assert!(told.starts_with("the parameter \"") && told.contains(": "), "{told}");
    }
}

/// Each of these took from ten seconds to minutes when names were compared with all names before them.
#[test]
fn many_names_are_read_at_once() {
    const MANY: usize = 100_000;
    let all = |line: &dyn Fn(usize) -> String| (0..MANY).map(line).collect::<String>();
    let quick = |what: &str, work: &dyn Fn()| {
        let start = Instant::now();
        work();
        let time = start.elapsed();
        eprintln!("{what}: {time:?}");
        // A second or so in a test's build; the rest is for machines that are busy.
        assert!(time < Duration::from_secs(9), "{what}: {time:?}");
    };
    let parse = |text: &str| ProblemFile::parse(text, Path::new("problem.toml"));
    let head = "[simulator]\ncommand = [\"w\"]\n";
    let one = "[parameters]\na = { uniform = [0, 1] }\n[observation]\nx = [1]\n";
    let laws = all(&|i| format!("p{i} = {{ uniform = [0, 1] }}\n"));
    let text = format!("{head}[parameters]\n{laws}[observation]\nx = [1]\n");
    quick("parameters", &|| assert_eq!(parse(&text).unwrap().problem.prior.dim(), MANY));
    let (x, names) = (all(&|_| "0,".to_owned()), all(&|i| format!("\"x{i}\",")));
    let text = format!(
        "{head}[parameters]\na = {{ uniform = [0, 1] }}\n[observation]\nx = [{x}]\nnames = [{names}]\n"
    );
    quick("summaries", &|| assert_eq!(parse(&text).unwrap().problem.summaries.len(), MANY));
    let settings = all(&|i| format!("s{i} = 1\n"));
    let text = format!("{head}{one}[inference]\n{settings}");
    quick("settings", &|| assert!(parse(&text).unwrap_err().to_string().contains("no setting s0")));
    let config = all(&|i| format!("s{i} = 1\n"));
    let text = format!(
        "{one}[simulator.umbridge]\nurl = \"http://a\"\n[simulator.umbridge.config]\n{config}"
    );
    quick("config", &|| assert!(parse(&text).is_ok()));
    let (names, values) = (all(&|i| format!("x{i},")), all(&|i| format!("{i},")));
    let output = format!("{}\n{}", names.trim_end_matches(','), values.trim_end_matches(','));
    let summaries: Vec<String> = (0..MANY).rev().map(|i| format!("x{i}")).collect();
    quick("output", &|| {
        let found = once_output(output.as_bytes(), &summaries).unwrap();
        assert_eq!((found[0], found[MANY - 1]), ((MANY - 1) as f64, 0.0));
    });
}
