//! How a program is started.

use super::gate::Gate;
use super::group::ProcessGroup;
use super::pipes;
use super::tap::Interest;
use super::words::LastWords;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// What a process is given to tidy up before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// The same, where somebody waits for the whole run to end.
pub(super) const SHORT_GRACE: Duration = Duration::from_millis(200);
/// How long a process may live on without output, and output without its process.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);
/// Bytes that are allowed for each number of an answer.
pub(super) const NUMBER: usize = 64;
/// What is done here.
const START: &str = "start a program";
/// What a pipe is given to close, once the process behind it is dead.
const CLOSING: Duration = Duration::from_millis(300);

/// Where, and by which words before its own.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub folder: PathBuf,
    pub launcher: Vec<String>,
}

/// A process that was started, and what it says apart from its answers.
#[derive(Debug)]
pub(super) struct Started {
    pub group: ProcessGroup,
    pub words: LastWords,
    errors: Receiver<()>,
    /// In what is read from it and written to it: until it is dropped.
    pub interest: Interest,
}

impl Launch {
    /// Starts a process whose errors are listened to; its output is the caller's.
    pub(super) fn start(
        &self,
        words: &[String],
        stdin: Stdio,
        scratch: Option<&Path>,
        gate: &Gate,
    ) -> Result<Started, String> {
        let all: Vec<&String> = self.launcher.iter().chain(words).collect();
        // Relative to the folder, as in a shell; what the system does with such a name is not the same everywhere.
        let folder = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let program = match Path::new(all[0]) {
            path if path.components().count() > 1 => folder.join(path),
            path => path.to_owned(),
        };
        let mut command = Command::new(program);
        command.args(&all[1..]).current_dir(&folder);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(scratch) = scratch {
            command.env("DIDYMA_SCRATCH", scratch);
        }
        // A Python worker that prints without flushing would wait for us, and we for it.
        if std::env::var_os("PYTHONUNBUFFERED").is_none() {
            command.env("PYTHONUNBUFFERED", "1");
        }
        let mut group = ProcessGroup::start(&mut command).map_err(|error| {
            gate.note(START, &error);
            let words: Vec<&str> = all.iter().map(|word| word.as_str()).collect();
            let (program, all) = (words[0], words.join(" "));
            // Arguments differ from simulation to simulation; the first line does not.
            format!(
                "could not start `{program}` in {}: {error}\nthe whole command: {all}",
                folder.display()
            )
        })?;
        let (words, interest) = (LastWords::default(), Interest::default());
        let stderr = interest.tap(group.child.stderr.take().expect("it is piped"));
        let errors = pipes::drain(stderr, words.clone());
        let errors = errors.map_err(|error| no_thread(&error, gate))?;
        Ok(Started { group, words, errors, interest })
    }
}

/// The reason where there is no thread for a pipe.
pub(super) fn no_thread(error: &io::Error, gate: &Gate) -> String {
    gate.note("start a thread", error);
    format!("could not start a thread: {error}")
}

impl Started {
    /// The reason with the last words of a process that is dead.
    pub(super) fn reason(&self, reason: &str) -> String {
        until_closed(&self.errors, CLOSING);
        self.words.after(reason)
    }
}

/// Waits until a pipe is closed, for so long at most; what comes meanwhile is lost.
pub(super) fn until_closed<T>(pipe: &Receiver<T>, at_most: Duration) {
    let until = std::time::Instant::now() + at_most;
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        match pipe.recv_timeout(left) {
            Ok(_) if !left.is_zero() => {}
            Ok(_) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}
