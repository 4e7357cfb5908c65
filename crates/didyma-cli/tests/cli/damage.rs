//! Files of a run that are damaged, foreign, newer or missing: a sentence that names them, never a panic.

use super::{Folder, didyma, done, expect_same, finished, refused, text, tiny};
use std::path::{Path, PathBuf};

/// A way to spoil a file: what it is called, the new content, and what is told.
type Damage = (&'static str, fn(Vec<u8>) -> Vec<u8>, &'static str);

/// Changes the file, and sees to it that every command that reads it says so.
fn spoil(folder: &Folder, dir: &str, name: &str, damages: &[Damage], readers: &[&[&str]]) {
    let path = Path::new(dir).join(name);
    let whole = std::fs::read(&path).expect("it is there");
    for (what, change, told) in damages {
        std::fs::write(&path, change(whole.clone())).expect("it can be written");
        for reader in readers {
            eprintln!("{name} {what}: {reader:?}");
            refused(reader, &[name, told]);
        }
    }
    std::fs::remove_file(&path).expect("it is there");
    std::fs::write(&path, &whole).expect("it can be written");
    assert!(folder.0.exists());
}

/// The same number in big-endian bytes at a place, as SQLite has them in its first page.
fn put(mut bytes: Vec<u8>, at: usize, number: u32) -> Vec<u8> {
    bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn half(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() / 2);
    bytes
}

fn empty(_: Vec<u8>) -> Vec<u8> {
    Vec::new()
}

fn words(_: Vec<u8>) -> Vec<u8> {
    b"theta1,theta2\n0.1,0.2\n".repeat(50)
}

/// Zeros where numbers are: near the end of the file.
fn holes(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = bytes.len() - bytes.len() / 8;
    bytes[at..at + 64].iter_mut().for_each(|byte| *byte = !*byte);
    bytes
}

/// The format's version in the header of a safetensors file becomes 9.
fn newer(mut bytes: Vec<u8>) -> Vec<u8> {
    let (from, to) = (b"\"didyma.format\":\"2\"", b"\"didyma.format\":\"9\"");
    let at = bytes.windows(from.len()).position(|window| window == from).expect("a version");
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}

#[test]
fn damaged_databases_are_told() {
    let folder = Folder::new("damaged-db");
    let (dir, theta) = (folder.run("run"), folder.write("theta.csv", "0.1,0.2\n"));
    let readers: [&[&str]; 6] = [
        &["resume", &dir],
        &["show", &dir],
        &["watch", &dir],
        &["sample", &dir],
        &["evaluate", &dir],
        &["log-density", &dir, "--theta", &theta],
    ];
    let damages: [Damage; 5] = [
        ("truncated", half, "cannot be loaded"),
        ("replaced", words, "it is no SQLite database"),
        ("newer", |bytes| put(bytes, 60, 7), "its format is version 7"),
        ("foreign", |bytes| put(bytes, 68, 5), "a database of another program"),
        (
            "corrupted",
            |mut bytes| {
                bytes[100..4000].iter_mut().for_each(|byte| *byte = !*byte);
                bytes
            },
            "corrupted",
        ),
    ];
    spoil(&folder, &dir, "run.db", &damages, &readers);
    std::fs::write(Path::new(&dir).join("run.db"), "").expect("it can be written");
    for reader in readers {
        refused(reader, &["run.db", "it is empty, beside files of a run"]);
    }
    std::fs::remove_file(Path::new(&dir).join("run.db")).expect("it is there");
    for reader in readers {
        refused(reader, &["holds no run", "run.db"]);
    }
}

/// A row that changed on the disk is noticed where rows enter a result.
#[test]
fn damaged_simulations_are_not_trained_on() {
    let folder = Folder::new("damaged-rows");
    let dir = folder.run("run");
    let path = Path::new(&dir).join("run.db");
    let whole = std::fs::read(&path).expect("it is there");
    let run = didyma::run::RunDir::read(Path::new(&dir)).expect("it is whole");
    let theta: Vec<u8> =
        run.rows().expect("rows")[200].theta.iter().flat_map(|t| t.to_le_bytes()).collect();
    drop(run);
    let at =
        whole.windows(theta.len()).position(|window| window == theta).expect("stored as it is");
    let mut damaged = whole;
    damaged[at] ^= 1;
    std::fs::write(&path, damaged).expect("it can be written");
    refused(&["resume", &dir], &["run.db", "simulation 80 of round 2", "checksum"]);
}

#[test]
fn damaged_checkpoints_are_told_and_missing_ones_made_up_for() {
    let folder = Folder::new("damaged-checkpoint");
    let dir = folder.run("run");
    let name = "checkpoint.safetensors";
    let damages: [Damage; 5] = [
        ("truncated", half, "truncated"),
        ("empty", empty, "truncated"),
        ("replaced", words, "not a Didyma checkpoint"),
        ("newer", newer, "its format is version 9"),
        ("corrupted", holes, "corrupted"),
    ];
    spoil(&folder, &dir, name, &damages, &[&["resume", &dir]]);
    let checkpoint = Path::new(&dir).join(name);
    std::fs::copy(Path::new(&dir).join("round-3.safetensors"), &checkpoint).expect("a copy");
    refused(&["resume", &dir], &[name, "not a Didyma checkpoint"]);
    // Nothing else reads it.
    assert!(done(&["show", &dir]).contains("3 of 3 rounds"));
    std::fs::remove_file(&checkpoint).expect("it is there");
    done(&["resume", &dir]);
    expect_same(&dir, finished().to_str().expect("a plain path"), "without a checkpoint");
}

/// A file of the same kind, whole, but of a run with other settings.
#[test]
fn files_of_another_run_are_refused() {
    let folder = Folder::new("other-run");
    let (dir, other) = (folder.run("run"), folder.file("other"));
    done(&tiny("two-moons", &other, &["--seed", "2"]));
    let swap = |name: &str| {
        std::fs::copy(Path::new(&other).join(name), Path::new(&dir).join(name)).expect("a copy");
    };
    swap("checkpoint.safetensors");
    refused(&["resume", &dir], &["checkpoint.safetensors", "another run"]);
    swap("round-3.safetensors");
    for command in ["show", "watch", "sample", "evaluate"] {
        refused(&[command, &dir], &["round-3.safetensors", "another run"]);
    }
}

#[test]
fn damaged_models_are_told_and_made_again() {
    let folder = Folder::new("damaged-model");
    let (dir, theta) = (folder.run("run"), folder.write("theta.csv", "0.1,0.2\n"));
    let readers: [&[&str]; 5] = [
        &["show", &dir],
        &["watch", &dir],
        &["sample", &dir],
        &["evaluate", &dir],
        &["log-density", &dir, "--theta", &theta],
    ];
    let damages: [Damage; 5] = [
        ("truncated", half, "truncated"),
        ("empty", empty, "truncated"),
        ("replaced", words, "not a Didyma posterior"),
        ("newer", newer, "its format is version 9"),
        ("corrupted", holes, "corrupted"),
    ];
    spoil(&folder, &dir, "round-3.safetensors", &damages, &readers);
    let model: PathBuf = Path::new(&dir).join("round-3.safetensors");
    std::fs::remove_file(&model).expect("it is there");
    for reader in readers {
        refused(reader, &["round-3.safetensors", "it is missing", "didyma resume"]);
    }
    // The checkpoint has all that it was made of.
    done(&["resume", &dir]);
    expect_same(&dir, finished().to_str().expect("a plain path"), "without a model");
    // Without both there is nothing to go on from.
    std::fs::remove_file(&model).expect("it is there");
    std::fs::remove_file(Path::new(&dir).join("checkpoint.safetensors")).expect("it is there");
    refused(&["resume", &dir], &["round-3.safetensors", "backup, or start the run anew"]);
    let output = didyma(&["show", &finished().display().to_string()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Nothing is made of the model of an earlier round any more, so that it is only told.
#[test]
fn damaged_models_of_earlier_rounds_are_told() {
    let folder = Folder::new("damaged-earlier");
    let dir = folder.run("run");
    let model = Path::new(&dir).join("round-1.safetensors");
    let whole = std::fs::read(&model).expect("it is there");
    assert!(!done(&["show", &dir]).contains("round-1.safetensors"));
    for (what, change) in [("corrupted", holes as fn(_) -> _), ("truncated", half)] {
        std::fs::write(&model, change(whole.clone())).expect("it can be written");
        for command in ["show", "resume"] {
            let told = done(&[command, &dir]);
            let warning = format!("warning: round-1.safetensors cannot be used, it is {what}");
            assert!(told.contains(&warning) && told.contains(": copy it back"), "{told}");
        }
    }
    std::fs::remove_file(&model).expect("it is there");
    let told = done(&["show", &dir]);
    assert!(told.contains("warning: round-1.safetensors cannot be used, it is missing"), "{told}");
}

/// A model of another round is whole, and gives other numbers.
#[test]
fn a_model_in_the_place_of_another_is_refused() {
    let folder = Folder::new("swapped");
    let dir = folder.run("run");
    let model = |round: u32| Path::new(&dir).join(format!("round-{round}.safetensors"));
    std::fs::copy(model(1), model(3)).expect("it can be written");
    refused(&["sample", &dir, "-n", "5"], &["round-3.safetensors", "(it is of round 1)"]);
}
