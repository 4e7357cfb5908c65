//! The terminal while a run is watched: another screen without a cursor, left in order however the watching ends.

use anyhow::Context;
use console::Term;
use std::io::Write;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
/// Ends a line: what an earlier picture had to the right of it goes, and what it had below.
const CLEAR_LINE: &str = "\x1b[K\r\n";
const CLEAR_BELOW: &str = "\x1b[K\x1b[J";

/// Tells if the output is a terminal that can be drawn on.
pub fn is_there() -> bool {
    Term::stdout().is_term() && !console::is_dumb()
}

/// Columns and rows for a picture. The last column stays free: clearing the rest of a full line would take its end.
pub fn size() -> (usize, usize) {
    let (rows, columns) = Term::stdout().size();
    (usize::from(columns).saturating_sub(1), rows.into())
}

/// The lines, none wider than the terminal, where it would go on in the next one.
fn fitted(lines: &[String], width: usize, end: &str) -> String {
    let cut = |line: &String| line.chars().take(width).collect::<String>();
    lines.iter().map(cut).collect::<Vec<_>>().join(end)
}

/// The other screen; what was on the terminal comes back when it is dropped.
pub struct Screen(());

impl Screen {
    pub fn enter() -> Self {
        // A terminal that does not take it does not take the picture either, which is told.
        let _ = write(ENTER);
        Self(())
    }

    /// Draws over the picture before, all at once, so that nothing flickers.
    pub fn show(&self, lines: &[String], width: usize) -> anyhow::Result<()> {
        let text = format!("{HOME}{}{CLEAR_BELOW}", fitted(lines, width, CLEAR_LINE));
        write(&text).context("the terminal could not be drawn on")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write(LEAVE);
    }
}

fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_between_letters() {
        let lines = ["θ ± 1".to_owned(), "θ".to_owned()];
        assert_eq!(fitted(&lines, 3, "|"), "θ ±|θ");
        assert_eq!(fitted(&lines, 0, "|"), "|");
    }
}
