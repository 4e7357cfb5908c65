//! Pipes to and from a process that are let go of when nobody waits for it any more, whoever else holds their other ends.

use std::io::{self, Read, Write};
use std::sync::{Arc, Weak};

/// How often who waits at a pipe looks whether anybody waits for them.
#[cfg(unix)]
const LOOK: u8 = 100;

/// While it lives, the pipes of a process are of interest.
///
/// A child of the process that has left its group may keep them open for as long as it likes: a thread that read them to
/// the end would never end, nor give back its descriptor.
#[derive(Debug, Default)]
pub(super) struct Interest(Arc<()>);

impl Interest {
    /// The pipe, as long as it is of interest.
    pub(super) fn tap<P>(&self, pipe: P) -> Tap<P> {
        Tap { pipe, interest: Arc::downgrade(&self.0) }
    }
}

/// A pipe that ends with the interest in it.
#[derive(Debug)]
pub(super) struct Tap<P> {
    pipe: P,
    interest: Weak<()>,
}

impl<P> Tap<P> {
    fn is_of_interest(&self) -> bool {
        self.interest.strong_count() > 0
    }
}

#[cfg(unix)]
pub(super) use std::os::fd::AsFd as Pipe;

#[cfg(unix)]
impl<P: Pipe> Tap<P> {
    /// Waits until reading or writing would not block. False if the interest is gone.
    fn wait(&self, what: nix::poll::PollFlags) -> io::Result<bool> {
        use nix::errno::Errno;
        use nix::poll::{PollFd, poll};
        while self.is_of_interest() {
            match poll(&mut [PollFd::new(self.pipe.as_fd(), what)], LOOK) {
                Ok(0) | Err(Errno::EINTR) => {}
                // A pipe that is closed is ready too: the call says so.
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn readable(&self) -> io::Result<bool> {
        self.wait(nix::poll::PollFlags::POLLIN)
    }

    /// How many bytes can be written without blocking.
    fn writable(&self) -> io::Result<usize> {
        let ready = self.wait(nix::poll::PollFlags::POLLOUT)?;
        // A pipe is writable if it has room for that many.
        Ok(if ready { nix::libc::PIPE_BUF } else { 0 })
    }
}

/// Elsewhere nothing is known but whether it can be read or written.
#[cfg(not(unix))]
pub(super) trait Pipe {}

#[cfg(not(unix))]
impl<P> Pipe for P {}

#[cfg(not(unix))]
impl<P: Pipe> Tap<P> {
    fn readable(&self) -> io::Result<bool> {
        Ok(self.is_of_interest())
    }

    fn writable(&self) -> io::Result<usize> {
        Ok(if self.is_of_interest() { usize::MAX } else { 0 })
    }
}

impl<P: Read + Pipe> Read for Tap<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.readable()? { self.pipe.read(buffer) } else { Ok(0) }
    }
}

impl<P: Write + Pipe> Write for Tap<P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.writable()? {
            0 => Err(io::ErrorKind::BrokenPipe.into()),
            room => self.pipe.write(&bytes[..bytes.len().min(room)]),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_ends_with_the_interest_in_it() {
        let (from, mut to) = io::pipe().unwrap();
        let interest = Interest::default();
        let mut tap = interest.tap(from);
        to.write_all(b"all of it").unwrap();
        let mut read = [0; 100];
        assert_eq!(tap.read(&mut read).unwrap(), 9);
        let reader = std::thread::spawn(move || tap.read(&mut [0; 100]).unwrap());
        drop(interest);
        // Its other end is still open.
        assert_eq!(reader.join().unwrap(), 0);
        drop(to);
    }

    #[test]
    fn who_writes_to_a_full_pipe_is_let_go() {
        let (from, to) = io::pipe().unwrap();
        let interest = Interest::default();
        let mut tap = interest.tap(to);
        let writer = std::thread::spawn(move || tap.write_all(&vec![0; 1 << 22]));
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(interest);
        assert_eq!(writer.join().unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        drop(from);
    }
}
