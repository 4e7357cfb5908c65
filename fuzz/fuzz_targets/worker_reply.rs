#![no_main]
//! Any line of a worker: an answer has as many finite or missing numbers as were asked for, or is an error.

use didyma::simulator::program::parse::worker_line;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    for (_, answer) in worker_line(line, 3).unwrap_or_default() {
        assert!(answer.map_or(true, |x| x.len() == 3));
    }
});
