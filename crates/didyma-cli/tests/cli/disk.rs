//! Where a run cannot be written: full disks, directories that are protected, taken or files.

use super::{Folder, TINY, didyma, done, expect_same, finished, refused, text};
use std::path::Path;
use std::process::Command;

#[test]
fn a_run_needs_a_directory_of_its_own() {
    let folder = Folder::new("taken");
    let infer =
        |out: &str| [&["infer", "two-moons", "--out"], &[out][..], &TINY].concat().join(" ");
    let file = folder.write("file", "mine");
    let other = folder.file("other");
    std::fs::create_dir(&other).expect("it can be made");
    std::fs::write(Path::new(&other).join("notes.txt"), "mine").expect("it can be written");
    let run = finished().to_str().expect("a plain path");
    for (out, parts) in [
        (file.as_str(), &["is a file", "--out"][..]),
        (&other, &["files of something else", "--out"]),
        (run, &["already holds a run", "didyma resume"]),
        (&folder.file("file/below"), &["could not create"]),
    ] {
        let args = infer(out);
        refused(&args.split(' ').collect::<Vec<_>>(), &[parts, &[out]].concat());
    }
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "mine");
    assert_eq!(std::fs::read_dir(&other).expect("it is there").count(), 1);
}

/// Runs a script with mounts of its own: its answers, or none where that is not permitted.
#[cfg(target_os = "linux")]
fn with_mounts(script: &str, args: &[&str]) -> Option<String> {
    let allowed = Command::new("unshare").args(["-rm", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this system permits no mounts of one's own");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-uc", script, env!("CARGO_BIN_EXE_didyma")]).args(args);
    let output = command.env_remove("DIDYMA_KERNELS").output().expect("unshare was there");
    let told = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() && !told.contains("panicked"), "{told}");
    Some(told)
}

/// Sizes at which different files no longer fit: the first entries, simulations, checkpoints, models, results.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_room_lets_the_run_go_on() {
    let folder = Folder::new("full");
    let script = "disk=$1; out=$2; size=$3; shift 3
        mount -t tmpfs -o size=$size none \"$disk\" || exit 1
        \"$0\" infer two-moons --out \"$disk/run\" \"$@\" >/dev/null; echo code $?
        mount -o remount,size=50m \"$disk\" || exit 1
        \"$0\" resume \"$disk/run\" || \"$0\" infer two-moons --out \"$disk/run\" \"$@\" || exit 1
        cp -r \"$disk/run\" \"$out\"";
    let disk = folder.file("disk");
    std::fs::create_dir(&disk).expect("it can be made");
    let mut full = 0;
    for size in ["40k", "132k", "180k", "240k", "300k"] {
        let out = folder.file(size);
        let args = [&[disk.as_str(), &out, size], &TINY[..]].concat();
        let Some(told) = with_mounts(script, &args) else { return };
        eprintln!("{size}: {told}");
        if told.contains("code 2") {
            full += 1;
            assert!(told.contains("error: ") && told.contains(&disk), "{size}: {told}");
            assert!(told.contains("full") || told.contains("No space left"), "{size}: {told}");
            assert!(
                told.contains("didyma resume") || told.contains("start it again"),
                "{size}: {told}"
            );
        }
        expect_same(&out, finished().to_str().expect("a plain path"), size);
    }
    assert!(full >= 3, "a disk of 132 kB has no room for the run");
}

#[cfg(target_os = "linux")]
#[test]
fn a_protected_directory_can_be_read_but_not_continued() {
    let folder = Folder::new("protected");
    let dir = folder.run("run");
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" || exit 1
        \"$0\" show \"$1\" || exit 1
        \"$0\" sample \"$1\" -n 5 || exit 1
        \"$0\" resume \"$1\"; echo code $?
        \"$0\" infer two-moons --out \"$1/new\"; echo code $?";
    let Some(told) = with_mounts(script, &[&dir]) else { return };
    assert!(told.contains("3 of 3 rounds") && told.matches("code 2").count() == 2, "{told}");
    assert!(told.contains("permit writing") && told.contains("could not create"), "{told}");
    expect_same(&dir, finished().to_str().expect("a plain path"), "protected");
    done(&["resume", &dir]);
    assert!(didyma(&["show", &dir]).status.success());
}
