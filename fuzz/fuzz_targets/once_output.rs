#![no_main]
//! Any output of a program that is run once: as many numbers as there are summaries, or an error.

use didyma::simulator::program::parse::once_output;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|output: &[u8]| {
    let names = ["a", "b", "c"].map(str::to_owned);
    assert!(once_output(output, &names).map_or(true, |x| x.len() == 3));
});
