#![no_main]
//! Any answer of a server, the first two bytes its status: as many numbers as there are summaries, or an error.

use didyma::simulator::program::parse::{umbridge_reply, umbridge_sizes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|answer: &[u8]| {
    let Some((status, body)) = answer.split_first_chunk() else { return };
    // Most are worth reading.
    let status = match u16::from_le_bytes(*status) {
        even if even % 2 == 0 => 200,
        odd => odd % 600,
    };
    assert!(umbridge_reply(status, body, &[1, 2]).map_or(true, |x| x.len() == 3));
    let _ = umbridge_sizes(status, body, "inputSizes");
});
