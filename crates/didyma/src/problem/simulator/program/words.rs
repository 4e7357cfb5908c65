//! What a process said last, for the reason of a failure.

use crate::names;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are kept, and bytes of an error text that are shown.
pub(super) const KEPT: usize = 4096;

/// The last 4 KB that a process wrote and that were no answer.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords(Arc<Mutex<Vec<u8>>>);

impl LastWords {
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT)..]);
        // Not at every byte too many: a process may write millions of small lines.
        if kept.len() > 2 * KEPT {
            let surplus = kept.len() - KEPT;
            kept.drain(..surplus);
        }
    }

    /// The reason, and on the lines after it the last words, if there are any.
    pub(super) fn after(&self, reason: &str) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = readable(&kept[kept.len().saturating_sub(KEPT)..]);
        match text.trim_matches('\n') {
            "" => reason.to_owned(),
            text => format!("{reason}\nits last words:\n{text}"),
        }
    }
}

/// Text without anything that a terminal would obey.
pub(super) fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    names::readable(&text).into_owned()
}

/// A text that is not longer than last words may be.
pub(super) fn capped(text: &str) -> String {
    let text = readable(text.trim().as_bytes());
    if text.len() <= KEPT {
        return text;
    }
    format!("{} …", &text[..text.floor_char_boundary(KEPT)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let words = LastWords::default();
        assert_eq!(words.after("why"), "why");
        for i in 0..10_000 {
            words.push(format!("line {i}\n").as_bytes());
            assert!(words.0.lock().unwrap().len() <= 2 * KEPT);
        }
        words.push(b"\xff \x1b[1m\r\n");
        let text = words.after("why");
        assert!(text.starts_with("why\nits last words:\n") && text.len() < KEPT + 40);
        assert!(text.ends_with("line 9999\n\u{fffd} \u{fffd}[1m"), "{text}");
        words.push(&vec![b'x'; 1 << 20]);
        assert_eq!(words.after("").matches('x').count(), KEPT);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(capped(" it failed\n"), "it failed");
        assert!(capped(&"ä".repeat(KEPT)).len() < KEPT + 8);
    }
}
