//! Python's words for remedies, which need no interpreter.

#[path = "../src/wording.rs"]
mod wording;

use didyma::{Error, Remedy};

#[test]
fn every_remedy_has_words_of_python() {
    for remedy in Remedy::examples() {
        let words = wording::word(&remedy);
        assert!(!words.is_empty() && words != remedy.to_string(), "{remedy:?}: {words}");
        assert!(!words.contains("--"), "a flag of the command line: {words}");
    }
}

#[test]
fn a_device_is_an_argument() {
    let fault = didyma::Advice::new("there is none:", Remedy::Cpu);
    let told = wording::sentence(&Error::NoDevice { device: "cuda", fault });
    assert_eq!(told, "device is \"cuda\", but there is none: choose device=\"cpu\"");
}
