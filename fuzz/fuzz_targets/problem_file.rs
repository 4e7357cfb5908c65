#![no_main]
//! Any text as a problem file: read, or refused with a sentence that has the file and the line.

use didyma::problem_file::ProblemFile;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    if let Err(error) = ProblemFile::parse(text, Path::new("nowhere/problem.toml")) {
        assert!(error.to_string().starts_with("nowhere/problem.toml, line "), "{error}");
    }
});
