//! The commands of a cluster, run twice or killed and run again: the same bytes, and no directory that is stuck.

use super::crashes::{Numbers, kill_after};
use super::own::SETTINGS;
use super::{Folder, didyma, done, expect_same, refused, results, text};
use std::path::Path;
use std::time::Duration;

fn task(folder: &Folder) -> String {
    folder.write("q.toml", &format!("[simulator]\ntask = \"mg1\"\n{SETTINGS}"))
}

fn proposal(run: &str) -> Vec<u8> {
    std::fs::read(format!("{run}/proposal-1.csv")).expect("it was written")
}

/// What a kill may leave of `didyma propose`, as files and their content.
const LEFT: [(&str, &[(&str, &str)]); 3] = [
    ("directory", &[]),
    ("lock", &[("lock", "1")]),
    ("database", &[("lock", "1"), ("run.db", "")]),
];

#[test]
fn a_proposal_that_was_killed_as_it_began_goes_on() {
    let folder = Folder::new("repeated-propose");
    let (task, expected) = (task(&folder), folder.file("expected"));
    done(&["propose", &expected, &task]);
    for (what, files) in LEFT {
        let run = folder.file(what);
        std::fs::create_dir(&run).expect("it can be made");
        for (name, content) in files {
            std::fs::write(Path::new(&run).join(name), content).expect("it can be written");
        }
        refused(&["propose", &run], &["holds no run yet: give the task or the problem file"]);
        done(&["propose", &run, &task]);
        assert!(proposal(&run) == proposal(&expected), "{what}");
    }
}

#[test]
fn the_same_proposal_is_written_again_and_another_one_is_refused() {
    let folder = Folder::new("repeated-proposal");
    let (task, run) = (task(&folder), folder.file("run"));
    let told = done(&["propose", &run, &task]);
    let expected = proposal(&run);
    assert_eq!(done(&["propose", &run, &task]), told);
    // Killed before the file was there, or while it was written.
    std::fs::remove_file(format!("{run}/proposal-1.csv")).expect("it was written");
    std::fs::write(format!("{run}/proposal-1.csv.part"), "# didyma pro").expect("a file");
    for again in [&["propose", &run, &task][..], &["propose", &run]] {
        assert_eq!(done(again), told);
        assert!(proposal(&run) == expected);
        assert!(!Path::new(&format!("{run}/proposal-1.csv.part")).exists());
    }
    let other = ["propose", &run, &task, "--rounds", "3", "-n", "70"];
    refused(&other, &["holds a run with other settings (rounds, simulations", "leave the task"]);
    refused(&["propose", &run, "two-moons"], &["holds a run with other settings", "leave the"]);
    assert!(proposal(&run) == expected);
}

/// The commands of a round in one shard.
fn round(run: &str, task: &str, number: u32) -> Vec<Vec<String>> {
    let shard = format!("{run}.shard-{number}.db");
    let file = format!("{run}/proposal-{number}.csv");
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    vec![
        words(&["propose", run, task]),
        words(&["simulate", task, "--proposal", &file, "--shard", "1/1", "--out", &shard]),
        words(&["merge", run, &shard]),
        words(&["train", run]),
    ]
}

fn borrowed(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn a_round_is_trained_once() {
    let folder = Folder::new("repeated-train");
    let (task, run, whole) = (task(&folder), folder.file("run"), folder.file("whole"));
    done(&["infer", &task, "--out", &whole]);
    for number in [1, 2] {
        round(&run, &task, number).iter().for_each(|args| drop(done(&borrowed(args))));
        let trained = results(&run);
        // Killed after the round was stored, and before the results in short were.
        std::fs::write(format!("{run}/summary.json"), "{}").expect("it can be written");
        let again = didyma(&["train", &run]);
        let told = text(&again.stderr);
        assert!(again.status.success() && told.contains("trained already"), "{told}");
        assert!(results(&run) == trained);
        let summary = std::fs::read_to_string(format!("{run}/summary.json")).expect("a file");
        assert!(summary.contains(&format!("\"round\": {number}")), "{summary}");
        if number == 1 {
            // Its model is damaged: what is stored of its training makes it again.
            std::fs::write(format!("{run}/round-1.safetensors"), "1").expect("a file");
            refused(&["show", &run], &["round-1.safetensors", "which writes it again"]);
            done(&["train", &run]);
            assert!(results(&run) == trained);
            // The next round is asked for, and nothing of it is there.
            done(&["propose", &run]);
            refused(&["train", &run], &["round 2 of", "lacks 60 of 60 simulations"]);
        }
    }
    expect_same(&run, &whole, "by shards");
}

/// DIDYMA_KILLS is how many times a whole run is made, with a kill of each of its eight commands.
#[test]
fn killed_anywhere_each_command_of_a_cluster_is_run_again() {
    let runs = std::env::var("DIDYMA_KILLS").map_or(2, |n| n.parse().expect("a number"));
    let folder = Folder::new("repeated-kills");
    let (task, whole) = (task(&folder), folder.file("whole"));
    done(&["infer", &task, "--out", &whole]);
    let mut numbers = Numbers(2);
    for number in 0..runs {
        let run = folder.file(&format!("run-{number}"));
        for args in [round(&run, &task, 1), round(&run, &task, 2)].concat() {
            let args = borrowed(&args);
            let longest = if args[0] == "train" { 0.3 } else { 0.06 };
            let delay = Duration::from_secs_f64(longest * numbers.next());
            kill_after(&args, delay);
            eprintln!("{} killed after {delay:?}", args[0]);
            // A whole training may have come before the kill: then the round is trained, and nothing is left to do.
            done(&args);
            done(&args);
        }
        expect_same(&run, &whole, &format!("run {number}"));
    }
}
