//! `didyma levels DIR`: the levels of a run's flow.

use super::{Folder, didyma, done, json, number, refused, text};
use didyma::config::{Config, Profile};
use didyma::estimator::Method;
use didyma::run::{Manifest, RunDir, execute_task};
use didyma::{Event, Observer, SimulatedRow, State};
use serde_json::Value;
use std::ops::ControlFlow;

/// A tiny run of Two Moons, with this many simulations in each of two rounds.
fn run(folder: &Folder, name: &str, simulations: &str, options: &[&str]) -> String {
    let dir = folder.file(name);
    let size = ["infer", "two-moons", "--rounds", "2", "--simulations", simulations];
    let set = ["train.steps=40", "flow.layers=2", "flow.units=8"];
    let method: &[&str] = if options.contains(&"--method") { &[] } else { &["--method", "tgrr"] };
    let set: Vec<&str> = set.into_iter().flat_map(|set| ["--set", set]).collect();
    done(&[&size, &*set, method, options, &["--out", &dir]].concat());
    dir
}

fn levels(args: &[&str]) -> Value {
    json(&[&["levels", "--budget", "2000"], args].concat())
}

fn costs(found: &Value) -> Vec<f64> {
    let levels = found["levels"].as_array().expect("a list");
    levels.iter().map(|level| number(&level["cost"])).collect()
}

/// Stops a run after its second round.
struct TwoRounds;

impl Observer for TwoRounds {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        let over = matches!(event, Event::RoundFinished { report, .. } if report.round == 2);
        Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

#[test]
fn a_run_is_measured_with_its_own_settings() {
    let folder = Folder::new("run-levels");
    let (dir, plot) =
        (run(&folder, "tiny", "200", &["--set", "estimator.m0=8"]), folder.file("levels.svg"));
    let found = levels(&[&dir, "--plot", &plot]);
    let settings = ["method", "coupling", "difference", "task", "run_method"];
    let settings = settings.map(|key| found[key].as_str().expect("a name"));
    assert_eq!(settings, ["tgrr", "inclusive", "antithetic", "two-moons", "tgrr"]);
    assert_eq!(found["run"], dir);
    let whole = ["rounds", "simulations", "m0", "top"].map(|key| found[key].as_u64());
    assert_eq!(whole, [Some(2), Some(400), Some(8), Some(4)]);
    assert!(found["note"].is_null() && found["toy"].is_null());
    // 8 · 2^5 inner samples, and not 2^6, without the outer one of 400 simulations.
    assert_eq!(costs(&found), [8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
    for key in ["r1", "r2", "r2_se", "bias_rate"] {
        assert!(number(&found[key]).is_finite(), "{key}");
    }
    assert_eq!(found["tails"].as_array().map(Vec::len), Some(2));
    let svg = std::fs::read_to_string(&plot).expect("the picture was written");
    assert!(svg.starts_with("<svg") && svg.contains("levels of the run tiny"));
    assert_eq!(levels(&[&dir, "--threads", "1"]), levels(&[&dir, "--threads", "3"]));

    let other = ["--coupling", "excluded", "--m0", "4", "--method", "grr", "--levels", "3"];
    let found = levels(&[&[&*dir], &other[..]].concat());
    assert_eq!((&found["method"], &found["coupling"]), (&"grr".into(), &"excluded".into()));
    assert_eq!(costs(&found), [4.0, 8.0, 16.0, 32.0]);

    // Simulations of a round under way are no part of what the flow was trained on.
    let mut manifest = RunDir::read(dir.as_ref()).expect("the run").manifest().clone();
    manifest.config.rounds = 3;
    let (open, task) = (folder.file("open"), manifest.task().expect("two moons"));
    let run = RunDir::create(open.as_ref(), &manifest).expect("a new run");
    execute_task(run, State::default(), &task, 1, &mut TwoRounds).expect("two rounds");
    let row = SimulatedRow { round: 3, index: 0, theta: vec![0.5; 2], x: Ok(vec![0.0; 2]) };
    RunDir::open(open.as_ref()).expect("the run").store(&[row]).expect("room on the disk");
    let output = didyma(&["levels", &open, "--budget", "1000"]);
    let told = text(&output.stdout);
    assert!(told.starts_with("levels of the run open, inclusive coupling"), "{told}");
    assert!(told.contains("two-moons by tgrr, 2 rounds, 400 simulations"), "{told}");
}

#[test]
fn a_method_without_levels_is_measured_as_tgrr() {
    let folder = Folder::new("plain-levels");
    let planted = ["--method", "atomic", "--set", "estimator.coupling=planted"];
    for (name, options, coupling) in
        [("npe", &["--method", "npe"][..], "excluded"), ("atomic", &planted, "planted")]
    {
        let dir = run(&folder, name, "200", options);
        let found = levels(&[&dir]);
        assert_eq!((&found["method"], &found["run_method"]), (&"tgrr".into(), &name.into()));
        assert_eq!(found["coupling"], coupling);
        let note = found["note"].as_str().expect("a remark");
        let parts = [&format!("{name}, the run's method, has no levels"), "of tgrr with", coupling];
        assert!(parts.iter().all(|part| note.contains(part)), "{note}");
        let told = text(&didyma(&["levels", &dir, "--budget", "1000"]).stdout);
        assert!(told.contains(&format!("note: {note}")), "{told}");
    }
}

#[test]
fn laws_of_inner_samples_are_compared() {
    let folder = Folder::new("laws");
    let dir = run(&folder, "tiny", "200", &[]);
    let excluded = ["levels", &dir, "--coupling", "excluded", "--budget", "2000"];
    let all = [&excluded[..], &["--inner", "pool,near,batch,mixture,sobol,normalised"]].concat();
    let found = json(&all);
    let laws = found.as_array().expect("one for each law");
    let names: Vec<_> = laws.iter().map(|law| law["inner"].as_str().expect("a name")).collect();
    assert_eq!(names, ["pool", "near", "mixture", "sobol", "normalised"]);
    for key in ["r2", "r2_se", "r2_safe", "variance_cost"] {
        assert!(laws.iter().all(|law| number(&law[key]).is_finite()), "{key}");
    }
    // The pool has blocks of 4 · 2^6 = 256 rows, and the mixture is made to have them.
    assert!(laws.iter().all(|law| costs(law).len() == 7));
    assert_eq!(laws[2], json(&[&excluded[..], &["--inner", "mixture", "--threads", "3"]].concat()));
    let told = text(&didyma(&all).stdout);
    assert!(told.starts_with("levels of the run tiny, excluded coupling"), "{told}");
    assert!(told.lines().filter(|line| line.contains(" ± ")).count() == 5, "{told}");

    // Samples by the flow itself are others.
    let fresh = json(&[&excluded[..], &["--inner", "mixture", "--fresh"]].concat());
    assert_ne!(fresh["r2"], laws[2]["r2"]);
    refused(&["levels", &dir, "--fresh"], &["--inner"]);
    refused(&["levels", &dir, "--inner", "near"], &["near", "--coupling excluded"]);
    refused(&["levels", &dir, "--inner", "sobol"], &["sobol", "--coupling excluded"]);
    let odd = ["--inner", "sobol", "--m0", "3"];
    refused(&[&excluded[..], &odd].concat(), &["samples of a block is", "power of two"]);
    refused(&["levels", &dir, "--inner", "far"], &["--inner", "mixture", "normalised"]);
    refused(&["levels", "--toy", "mild", "--inner", "near"], &["--inner", "cannot be used with"]);
    let plot = folder.file("laws.svg");
    refused(&[&all[..], &["--plot", &plot]].concat(), &["one law", "--plot"]);
    let once = folder.file("once");
    let one_round = ["infer", "two-moons", "--rounds", "1", "--simulations", "200", "--out", &once];
    done(&[&one_round[..], &["--set", "train.steps=40", "--members", "1"]].concat());
    refused(&["levels", &once, "--inner", "mixture"], &["inner is mixture", "one round"]);
    // Two names of one law are one row of a table, and still a list.
    let twice = json(&[&excluded[..], &["--inner", "batch,pool"]].concat());
    assert_eq!(twice.as_array().map(Vec::len), Some(1));
    // 4 · 2^18 samples for each of 400 rows.
    refused(&["levels", &dir, "--inner", "mixture", "--levels", "18"], &["levels is 18", "16"]);
}

#[test]
fn what_is_no_run_with_levels_is_refused() {
    let folder = Folder::new("no-levels");
    let (nothing, empty) = (folder.file("nothing"), folder.file("empty"));
    refused(&["levels", &nothing], &["holds no run", "run.db"]);
    let config = Config::new(Profile::Default, Method::Tgrr);
    let manifest = Manifest::of_task("two-moons", config);
    RunDir::create(empty.as_ref(), &manifest).expect("a new run");
    refused(&["levels", &empty], &["no round is finished", "didyma resume"]);
    refused(&["levels"], &["required", "--toy", "DIR"]);
    refused(&["levels", &empty, "--toy", "mild"], &["cannot be used with", "--toy"]);

    let small = run(&folder, "small", "16", &["--set", "estimator.m0=8"]);
    refused(&["levels", &small], &["32 successful simulations", "= 65", "--m0"]);
    assert_eq!(costs(&levels(&[&small, "--m0", "2"])).len(), 4);
    let dir = run(&folder, "tiny", "200", &["--set", "estimator.m0=8"]);
    for (args, parts) in [
        (&["--levels", "6"][..], &["level 6", "512", "399", "lower m0"][..]),
        (&["--levels", "2"], &["levels is 2", "between 3"]),
        (&["--m0", "0"], &["m0 is 0"]),
        (&["--m0", "100"], &["400 successful simulations", "= 801", "--m0"]),
        (&["--base", "6"], &["level 6", "512", "399"]),
        (&["--threads", "0"], &["--threads", "between 1"]),
        (&["--method", "atomic"], &["--method", "atomic", "tgrr"]),
    ] {
        refused(&[&["levels", &*dir], args].concat(), parts);
    }
}
