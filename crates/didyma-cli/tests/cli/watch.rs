//! `didyma watch`: pictures of runs that are finished, that go on, and that were left; on a terminal and elsewhere.

use super::crashes::{long, start, wait_for};
use super::{Folder, didyma, done, finished, refused, text};
use didyma::run::CHECKPOINT;
use std::process::{Command, Stdio};

/// A picture as it is printed where there is no terminal.
fn picture(dir: &str, more: &[&str]) -> String {
    let text = done(&[&["watch", dir], more].concat());
    assert!(!text.contains('\x1b'), "{text:?}");
    let wide = text.lines().find(|line| line.chars().count() > 80 && !line.contains(dir));
    assert_eq!(wide, None, "{text}");
    text
}

#[test]
fn a_finished_run_is_drawn_once_and_left_as_it_was() {
    let folder = Folder::new("watch-finished");
    let dir = folder.run("run");
    let files = || {
        let entries = std::fs::read_dir(&dir).expect("it is there");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        // SQLite meets writers in a file of its own, which holds nothing of the run.
        let paths = paths.filter(|path| path.extension().is_none_or(|end| end != "db-shm"));
        let files = paths.map(|path| (path.clone(), std::fs::read(path).expect("a file")));
        let mut files: Vec<_> = files.filter(|(_, bytes)| !bytes.is_empty()).collect();
        files.sort();
        files
    };
    let before = files();
    let shown = picture(&dir, &["--once"]);
    assert!(files() == before, "something was written");
    assert_eq!(shown, picture(&dir, &["--interval", "5"]), "no terminal: the same");
    for part in [
        "two-moons by tgrr, seed 1: finished, 3 rounds in",
        "360 of 360 simulations stored, 0 failed",
        "posterior after round 3",
        "theta2  ",
        "-1 to 1, true 0.2475",
        "losses of round 3, epochs 1 to ",
        "training ",
        "validation ",
        "round  1/3: 120 simulations",
        "round  3/3: 120 simulations",
        "C2ST",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let lines = |characters: &str| {
        shown.lines().filter(|line| line.contains(|c| characters.contains(c))).count()
    };
    assert_eq!((lines("▲"), lines("│")), (2, 8), "{shown}");
    assert!(lines("▁▂▃▄▅▆▇█") >= 2, "{shown}");
    assert!(!shown.contains("resume") && shown.contains("warning: a classifier"), "{shown}");
}

#[test]
fn a_run_that_goes_on_is_told_from_one_that_was_left() {
    let folder = Folder::new("watch-unfinished");
    let dir = folder.file("run");
    let mut child = start(&long(&dir));
    wait_for(&dir, CHECKPOINT, &mut child);
    // The checkpoint is there a moment before the event that tells the losses.
    let mut shown = picture(&dir, &[]);
    while !shown.contains("losses") {
        shown = picture(&dir, &[]);
    }
    for part in ["seed 1: round 1 of 3\n", "120 of 360 simulations stored", "no posterior yet"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("losses of round 1, epochs 1 to "), "{shown}");
    assert!(!shown.contains("resume"), "{shown}");
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    let shown = picture(&dir, &[]);
    for part in ["round 1 of 3, unfinished and not running", "didyma resume", &dir] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn bad_arguments_are_refused_and_a_reader_may_go_away() {
    let dir = finished().to_str().expect("a plain path");
    for interval in ["0", "-1", "0.01", "NaN", "inf", "soon"] {
        refused(&["watch", dir, "--interval", interval], &["--interval", "between 0.1 and 3600"]);
    }
    assert_eq!(didyma(&["watch"]).status.code(), Some(2));
    let mut command = Command::new(env!("CARGO_BIN_EXE_didyma"));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let command = command.args(["watch", dir]).stdout(writer).stderr(Stdio::piped());
    let output = command.output().expect("the binary was built");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[cfg(unix)]
mod terminal {
    use super::super::tiny;
    use super::*;
    use nix::pty::{Winsize, openpty};
    use std::fs::File;
    use std::io::Read;
    use std::process::Child;

    const ENTER: &str = "\x1b[?1049h\x1b[?25l";
    const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
    const HOME: &str = "\x1b[H";

    /// Watches on a terminal of 24 lines and 90 columns, whose other end is returned.
    fn watch(dir: &str) -> (Child, File) {
        let size = Winsize { ws_row: 24, ws_col: 90, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).expect("a terminal");
        let mut command = Command::new(env!("CARGO_BIN_EXE_didyma"));
        command.args(["watch", dir, "--interval", "0.1"]).env("TERM", "xterm");
        command.stdin(Stdio::null()).stdout(Stdio::from(pair.slave)).stderr(Stdio::null());
        (command.spawn().expect("the binary was built"), pair.master.into())
    }

    /// Reads until there is enough; the other end of a terminal ends with an error.
    fn read(terminal: &mut File, seen: &mut Vec<u8>, enough: impl Fn(&str) -> bool) {
        let mut bytes = [0; 4096];
        while !enough(&String::from_utf8_lossy(seen)) {
            match terminal.read(&mut bytes) {
                Ok(count) if count > 0 => seen.extend(&bytes[..count]),
                _ => break,
            }
        }
    }

    /// What is on the terminal in the end, and that it fits.
    fn last(seen: &[u8]) -> String {
        let text = text(seen);
        let (drawn, left) = text.rsplit_once(LEAVE).unwrap_or(("", &text));
        assert!(drawn.is_empty() || drawn.starts_with(ENTER), "{text:?}");
        assert!(!left.contains('\x1b') && left.lines().count() <= 24, "{text:?}");
        for line in drawn.replace(HOME, "\n").replace("\x1b[K", "").replace("\x1b[J", "").lines() {
            let line = line.replace(ENTER, "");
            assert!(line.trim_end().chars().count() < 90, "{line:?}");
        }
        left.to_owned()
    }

    #[test]
    fn pictures_are_drawn_until_the_run_is_finished() {
        let folder = Folder::new("watch-live");
        let dir = folder.file("run");
        let mut run = start(&tiny("two-moons", &dir, &["--set", "train.steps=200"]));
        wait_for(&dir, CHECKPOINT, &mut run);
        let (mut child, mut terminal) = watch(&dir);
        let mut seen = Vec::new();
        read(&mut terminal, &mut seen, |_| false);
        assert!(child.wait().expect("it is ours").success());
        assert!(run.wait().expect("it is ours").success());
        let left = last(&seen);
        assert!(left.contains("finished, 3 rounds") && left.contains("theta2"), "{left}");
        assert!(text(&seen).contains("round 1 of 3"), "it was seen at work");
    }

    #[test]
    fn ctrl_c_ends_the_watching_and_not_the_run() {
        let folder = Folder::new("watch-interrupted");
        let dir = folder.file("run");
        let mut run = start(&long(&dir));
        wait_for(&dir, CHECKPOINT, &mut run);
        let (mut child, mut terminal) = watch(&dir);
        let mut seen = Vec::new();
        read(&mut terminal, &mut seen, |text| text.matches(HOME).count() >= 3);
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        read(&mut terminal, &mut seen, |_| false);
        assert_eq!(child.wait().expect("it is ours").code(), Some(130));
        let left = last(&seen);
        assert!(text(&seen).contains(ENTER) && left.contains("round 1 of 3"), "{left}");
        assert_eq!(run.try_wait().expect("it is ours"), None, "the run goes on");
        run.kill().expect("it is ours");
        run.wait().expect("it is ours");
    }
}
