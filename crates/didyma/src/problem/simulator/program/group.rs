//! Processes, each with a process group of its own, so that what it starts ends with it.

use super::lack;
use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it is asked whether a process that must end has ended.
const STEP: Duration = Duration::from_millis(2);

/// All groups that are alive.
static ALIVE: Mutex<Registry> = Mutex::new(Registry { groups: BTreeSet::new(), closed: false });

struct Registry {
    groups: BTreeSet<u32>,
    /// Nothing may start any more.
    closed: bool,
}

fn alive() -> MutexGuard<'static, Registry> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every process that a simulator of this library has started, and what these have started. For a program that must
/// exit at once: no simulator can start another one after this.
pub fn end_all() {
    let mut alive = alive();
    alive.closed = true;
    alive.groups.iter().for_each(|&group| signal(group, Signal::Kill));
}

/// A process that leads a group.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    pub child: Child,
    end: Option<End>,
}

/// How a process ended.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub success: bool,
    /// For example "ended with exit code 3".
    pub how: String,
}

impl ProcessGroup {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        // A system that is short of something for a moment is asked again.
        for pause in [10, 100, 1000] {
            match Self::spawn(command) {
                Err(error) if is_passing(&error) => {
                    std::thread::sleep(Duration::from_millis(pause))
                }
                other => return other,
            }
        }
        Self::spawn(command)
    }

    fn spawn(command: &mut Command) -> io::Result<Self> {
        // Under the lock, so that `end_all` misses none.
        let mut alive = alive();
        if alive.closed {
            return Err(io::Error::other("this program is about to exit"));
        }
        let child = command.spawn()?;
        alive.groups.insert(child.id());
        Ok(Self { child, end: None })
    }

    /// How it ended, if it has; then what it has left behind is killed.
    pub(super) fn poll(&mut self) -> Option<&End> {
        if self.end.is_none() && exited(&mut self.child) {
            self.reap();
        }
        self.end.as_ref()
    }

    /// Waits for its end, for so long at most.
    pub(super) fn wait(&mut self, at_most: Duration) -> Option<&End> {
        let until = Instant::now() + at_most;
        while self.poll().is_none() && Instant::now() < until {
            std::thread::sleep(STEP);
        }
        self.end.as_ref()
    }

    /// Ends it: by a request that it may use to tidy up, if there is time for that, or by force.
    pub(super) fn end(&mut self, grace: Duration) {
        if self.poll().is_none() && !grace.is_zero() {
            signal(self.child.id(), Signal::Terminate);
            self.wait(grace);
        }
        if self.end.is_none() {
            self.reap();
        }
    }

    /// Kills all that is left of the group. Its leader is there until it is waited for, if only as a zombie, so that its
    /// number cannot be that of another group yet.
    fn reap(&mut self) {
        signal(self.child.id(), Signal::Kill);
        // Its leader too, if it has moved to another group.
        let _ = self.child.kill();
        alive().groups.remove(&self.child.id());
        self.end = Some(match self.child.wait() {
            Ok(status) => End { success: status.success(), how: how(status) },
            Err(error) => End { success: false, how: format!("ended, nobody knows how ({error})") },
        });
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

fn is_passing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ExecutableFileBusy || lack::remedy(error).is_some()
}

/// Whether it has ended, without waiting for it where that is possible: until then its number stays its own.
#[cfg(target_os = "linux")]
fn exited(child: &mut Child) -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(pid(child.id())), flags), Ok(WaitStatus::StillAlive))
}

#[cfg(not(target_os = "linux"))]
fn exited(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

#[derive(Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

#[cfg(unix)]
fn pid(id: u32) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(id.cast_signed())
}

#[cfg(unix)]
fn signal(group: u32, signal: Signal) {
    use nix::sys::signal::{Signal as Unix, killpg};
    let signal = match signal {
        Signal::Terminate => Unix::SIGTERM,
        Signal::Kill => Unix::SIGKILL,
    };
    // A group without members is what is wanted.
    let _ = killpg(pid(group), signal);
}

/// Elsewhere only the process itself can be killed.
#[cfg(not(unix))]
fn signal(_: u32, _: Signal) {}

fn how(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(number) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = nix::sys::signal::Signal::try_from(number).map(|signal| signal.as_str());
        return format!(
            "was ended by signal {number} ({})",
            name.unwrap_or("a name nobody gave it")
        );
    }
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => status.to_string(),
    }
}
