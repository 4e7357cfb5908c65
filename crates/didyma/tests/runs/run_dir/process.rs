//! What other processes find: locks, kills at any moment, full disks and directories that cannot be written.

use super::{BATCH, manifest, rows, stored, told};
use didyma::run::RunDir;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const JOB: &str = "DIDYMA_TEST_JOB";
const DIR: &str = "DIDYMA_TEST_DIR";

/// What another process does when the test binary is run again with a job.
#[test]
fn child() {
    let (Ok(job), Some(dir)) = (std::env::var(JOB), std::env::var_os(DIR)) else { return };
    let dir = PathBuf::from(dir);
    match job.as_str() {
        "open" => println!("\nsays {}", told(RunDir::open(&dir))),
        "create" => {
            println!("\nsays ready");
            drop(RunDir::create(&dir, &manifest()).unwrap());
        }
        "read" => println!("\nsays {}", RunDir::read(&dir).unwrap().rows().unwrap().len()),
        "store" => {
            let mut run =
                RunDir::open(&dir).or_else(|_| RunDir::create(&dir, &manifest())).unwrap();
            let mut count = run.rows().unwrap().len() as u32;
            println!("\nsays {count}");
            loop {
                if let Err(error) = run.store(&rows(count + BATCH)[count as usize..]) {
                    println!("says {error}");
                    break;
                }
                count += BATCH;
                println!("says {count}");
            }
        }
        other => panic!("{other}"),
    }
}

fn again(job: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["run_dir::process::child", "--exact", "--nocapture"]).env(JOB, job).env(DIR, dir);
    command
}

fn answers(output: &str) -> Vec<String> {
    output.lines().filter_map(|line| line.strip_prefix("says ")).map(str::to_owned).collect()
}

/// What a process says that is run to its end.
fn answers_of(command: &mut Command) -> Vec<String> {
    answers(&String::from_utf8(command.output().unwrap().stdout).unwrap())
}

#[test]
fn one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let run = stored(folder.path());
    let number = format!("another process (number {}) works on", std::process::id());
    assert!(told(RunDir::open(folder.path())).contains(&number));
    let answers = answers_of(&mut again("open", folder.path()));
    assert!(answers[0].contains(&number), "{answers:?}");
    assert_eq!(answers_of(&mut again("read", folder.path())), ["120"]);
    drop(run);
    RunDir::open(folder.path()).unwrap();
}

/// A process that stores, and what it has said so far.
struct Storing {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Storing {
    fn start(job: &str, dir: &Path) -> Self {
        let mut child =
            again(job, dir).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    /// Waits for so many answers and a little longer, ends the process and returns its last answer.
    fn killed(mut self, answers_before: usize, pause: Duration) -> String {
        let mut said = String::new();
        while answers(&said).len() < answers_before {
            assert_ne!(self.answers.read_line(&mut said).unwrap(), 0, "it ended by itself: {said}");
        }
        std::thread::sleep(pause);
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.answers.read_to_string(&mut said).unwrap();
        // A line that was cut is no acknowledgement.
        let whole = said.rfind('\n').map_or("", |end| &said[..end]);
        answers(whole).pop().unwrap()
    }
}

#[test]
fn no_acknowledged_simulation_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    for kill in 0..6 {
        let pause = Duration::from_micros(0x9e37 * kill % 5000);
        let last = Storing::start("store", &dir).killed(2 + 9 * kill as usize, pause);
        let acknowledged: usize = last.parse().unwrap();
        let found = RunDir::open(&dir).unwrap().rows().unwrap();
        assert!(found.len() >= acknowledged, "{} of {acknowledged}", found.len());
        assert_eq!(found, rows(found.len() as u32));
        assert_eq!(found.len() as u32 % BATCH, 0);
    }
}

#[test]
fn a_killed_beginning_is_a_run_or_can_begin_again() {
    let folder = tempfile::tempdir().unwrap();
    for kill in 0..20 {
        let dir = folder.path().join(kill.to_string());
        Storing::start("create", &dir).killed(1, Duration::from_micros(150 * kill * kill));
        let run = match RunDir::open(&dir) {
            Ok(run) => run,
            Err(_) => RunDir::create(&dir, &manifest()).unwrap(),
        };
        assert_eq!(*run.manifest(), manifest());
    }
}

/// Runs a script with its own mounts; `None` where that is not permitted.
#[cfg(target_os = "linux")]
fn with_mounts(script: &str, job: &str, dir: &Path) -> Option<Vec<String>> {
    let allowed = Command::new("unshare").args(["-rm", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this system permits no mounts of one's own");
        return None;
    }
    let again = again(job, dir);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-ec", script, "sh"]).arg(again.get_program());
    command.args(again.get_args()).env(JOB, job).env(DIR, dir);
    Some(answers_of(&mut command))
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_room_lets_the_run_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "mount -t tmpfs -o size=400k none \"$DIDYMA_TEST_DIR\"; mkdir \"$DIDYMA_TEST_DIR/run\"
        export DIDYMA_TEST_DIR=\"$DIDYMA_TEST_DIR/run\"
        \"$@\"; DIDYMA_TEST_JOB=read \"$@\"
        mount -o remount,size=600k \"$DIDYMA_TEST_DIR/..\"; \"$@\"";
    let Some(answers) = with_mounts(script, "store", folder.path()) else { return };
    let problem = |answer: &&String| answer.parse::<u32>().is_err();
    let at = answers.iter().position(|answer| problem(&answer)).unwrap();
    assert!(answers[at].contains("nothing stored so far is lost; make room"), "{}", answers[at]);
    assert_eq!(answers[at + 1], answers[at - 1], "a reader finds what was acknowledged");
    assert_eq!(answers[at + 2], answers[at - 1], "and so does the process that goes on");
    let last: u32 = answers.iter().rev().find(|answer| !problem(answer)).unwrap().parse().unwrap();
    assert!(last > answers[at - 1].parse().unwrap(), "{answers:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_written_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("out 1?#%");
    drop(stored(&dir));
    let script = "mount --bind \"$DIDYMA_TEST_DIR\" \"$DIDYMA_TEST_DIR\"
        mount -o remount,ro,bind \"$DIDYMA_TEST_DIR\"
        \"$@\"; DIDYMA_TEST_JOB=open \"$@\"";
    let Some(answers) = with_mounts(script, "read", &dir) else { return };
    assert_eq!(answers[0], "120");
    assert!(answers[1].contains("nothing stored so far is lost; permit writing"), "{answers:?}");
}
