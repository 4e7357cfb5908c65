//! Threads that read what a process writes, and write what it reads: none of it can block a simulation.

use super::json;
use super::words::LastWords;
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Lines that wait to be heard, at most; then the process waits.
const WAITING: usize = 16;

/// What comes out of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A line that begins like JSON.
    Line(Vec<u8>),
    /// One that does not end in time.
    TooLong,
}

/// The lines that begin like JSON; all others are last words. The channel closes with the pipe.
pub(super) fn lines(
    mut from: impl Read + Send + 'static,
    limit: usize,
    words: LastWords,
) -> io::Result<Receiver<Said>> {
    let (sender, receiver) = sync_channel(WAITING);
    thread(move || {
        let mut splitter = Splitter { limit, words, sender, line: Vec::new(), kind: Kind::Unknown };
        let mut buffer = vec![0; 1 << 16];
        loop {
            match from.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return splitter.finish(),
                Ok(count) if splitter.take(&buffer[..count]).is_none() => return,
                Ok(_) => {}
            }
        }
    })?;
    Ok(receiver)
}

/// A thread of its own, if the system has one left.
fn thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(work).map(drop)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing but blanks so far.
    Unknown,
    Json,
    Chatter,
}

struct Splitter {
    limit: usize,
    words: LastWords,
    sender: SyncSender<Said>,
    line: Vec<u8>,
    kind: Kind,
}

impl Splitter {
    /// None when nobody listens any more.
    fn take(&mut self, bytes: &[u8]) -> Option<()> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.part(part)?;
            if part.ends_with(b"\n") {
                if self.kind == Kind::Json {
                    self.sender.send(Said::Line(std::mem::take(&mut self.line))).ok()?;
                }
                self.kind = Kind::Unknown;
            }
        }
        Some(())
    }

    fn part(&mut self, mut part: &[u8]) -> Option<()> {
        if self.kind == Kind::Unknown {
            part = part.trim_ascii_start();
            self.kind = match part.first() {
                None => Kind::Unknown,
                Some(b'{') => Kind::Json,
                // An array holds objects: `[1] 2.5` of R and `[INFO]` are chatter.
                Some(b'[')
                    if matches!(part[1..].trim_ascii_start().first(), None | Some(b'{' | b']')) =>
                {
                    Kind::Json
                }
                Some(_) => Kind::Chatter,
            };
        }
        match self.kind {
            Kind::Unknown => {}
            Kind::Chatter => self.words.push(part),
            Kind::Json if self.line.len() + part.len() > self.limit => {
                self.words.push(&self.line[..self.line.len().min(200)]);
                let _ = self.sender.send(Said::TooLong);
                return None;
            }
            Kind::Json => self.line.extend_from_slice(part),
        }
        Some(())
    }

    /// An answer may lack its line feed; half an answer is none.
    fn finish(self) {
        match json::read(&self.line) {
            Ok(_) => {
                let _ = self.sender.send(Said::Line(self.line));
            }
            Err(_) => self.words.push(&self.line),
        }
    }
}

/// Puts all that comes among the last words. The channel closes with the pipe.
pub(super) fn drain(
    from: impl Read + Send + 'static,
    words: LastWords,
) -> io::Result<Receiver<()>> {
    read_all(from, move |bytes| words.push(bytes))
}

/// What a process has written so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected(Arc<Mutex<Vec<u8>>>);

impl Collected {
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Collects up to `limit` bytes and one more; the rest is lost. The channel closes with the pipe.
pub(super) fn collect(
    from: impl Read + Send + 'static,
    limit: usize,
) -> io::Result<(Collected, Receiver<()>)> {
    let collected = Collected::default();
    let into = collected.clone();
    let closed = read_all(from, move |bytes| {
        let mut into = into.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = (limit + 1).saturating_sub(into.len());
        into.extend_from_slice(&bytes[..bytes.len().min(room)]);
    })?;
    Ok((collected, closed))
}

fn read_all(
    mut from: impl Read + Send + 'static,
    mut take: impl FnMut(&[u8]) + Send + 'static,
) -> io::Result<Receiver<()>> {
    let (sender, receiver) = channel();
    thread(move || {
        let _open = sender;
        let mut buffer = vec![0; 1 << 14];
        loop {
            match from.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(count) => take(&buffer[..count]),
            }
        }
    })?;
    Ok(receiver)
}

/// Writes what it is sent, and closes the pipe when the sender is gone.
pub(super) fn writer(mut to: impl Write + Send + 'static) -> io::Result<Sender<Vec<u8>>> {
    let (sender, receiver) = channel::<Vec<u8>>();
    thread(move || {
        for bytes in receiver {
            // Whoever does not read any more is about to end, which is noticed elsewhere.
            if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    })?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_and_chatter_is_set_aside() {
        let words = LastWords::default();
        let text = b"hello\n {\"a\": 1}\r\n\n[ {}]\n[1] 2.5\nworld [2]\n{\"half\": ";
        let heard: Vec<Said> = lines(&text[..], 100, words.clone()).unwrap().iter().collect();
        assert_eq!(
            heard,
            [Said::Line(b"{\"a\": 1}\r\n".to_vec()), Said::Line(b"[ {}]\n".to_vec())]
        );
        assert_eq!(words.after("w"), "w\nits last words:\nhello\n[1] 2.5\nworld [2]\n{\"half\": ");
        let heard: Vec<Said> = lines(&b"{\"a\": 1}"[..], 100, words).unwrap().iter().collect();
        assert_eq!(heard, [Said::Line(b"{\"a\": 1}".to_vec())]);
    }

    #[test]
    fn long_lines_are_refused_and_long_chatter_is_not() {
        let words = LastWords::default();
        let mut text = vec![b'x'; 1 << 20];
        text.extend_from_slice(b"\n{");
        text.extend(vec![b' '; 100]);
        let heard: Vec<Said> = lines(io::Cursor::new(text), 100, words).unwrap().iter().collect();
        assert_eq!(heard, [Said::TooLong]);
    }
}
