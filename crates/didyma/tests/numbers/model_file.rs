//! Saved models come back as they were, and bad files are told apart.

#![allow(clippy::unwrap_used)]

use didyma::config::{Config, Profile};
use didyma::estimator::Method;
use didyma::tasks::Task;
use didyma::{Error, FileFault, Posterior, State, infer_from};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The file of a posterior that is hardly trained.
fn saved(dir: &Path) -> (Posterior, PathBuf) {
    let mut config = Config::new(Profile::Default, Method::Tgrr);
    (config.rounds, config.simulations, config.train.epochs) = (1, 20, 1);
    (config.flow.layers, config.flow.units) = (2, 6);
    let task = Task::named("two-moons").unwrap();
    let found = infer_from(&task.problem, None, &config, 1, State::default(), &mut ()).unwrap();
    let (posterior, path) = (found.posterior.unwrap(), dir.join("model.safetensors"));
    posterior.save(&path, &Value::Null).unwrap();
    (posterior, path)
}

fn problem(path: &Path) -> FileFault {
    match Posterior::load(path) {
        Err(Error::ModelFile { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_model_comes_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (posterior, path) = saved(dir.path());
    let again = Posterior::load(&path).unwrap();
    assert_eq!(again.to_bytes(&Value::Null), posterior.to_bytes(&Value::Null));
    assert_eq!(std::fs::read(&path).unwrap(), posterior.to_bytes(&Value::Null));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left behind");
}

#[test]
fn every_truncation_is_called_one() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = saved(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    for len in [0, 7, 8, 9, 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..len]).unwrap();
        assert!(
            matches!(problem(&path), FileFault::Truncated { found, .. } if found == len),
            "{len}"
        );
    }
}

#[test]
fn a_changed_byte_is_noticed_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = saved(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    for (i, at) in (0..bytes.len()).step_by(7).enumerate() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (i % 7);
        std::fs::write(&path, &damaged).unwrap();
        // A byte of the header may make another valid header; then something else must not fit.
        let loaded = Posterior::load(&path);
        assert!(matches!(loaded, Err(Error::ModelFile { .. })), "byte {at} of {}", bytes.len());
    }
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    assert!(matches!(problem(&path), FileFault::Corrupted(_)));
}

#[test]
fn other_files_are_called_foreign_and_newer_ones_newer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other");
    for content in
        [&b"theta,x\n1.0,2.0\n3.0,4.0\n"[..], b"PK\x03\x04 a zip archive, say", &[0xff; 64]]
    {
        std::fs::write(&path, content).unwrap();
        assert!(matches!(problem(&path), FileFault::Foreign(_)), "{content:?}");
    }
    let none: [(&str, safetensors::tensor::TensorView); 0] = [];
    let empty = safetensors::serialize(none, None).unwrap();
    std::fs::write(&path, empty).unwrap();
    assert!(matches!(problem(&path), FileFault::Foreign(_)));

    let (_, model) = saved(dir.path());
    let text = std::fs::read(&model).unwrap();
    let at = text.windows(19).position(|w| w == b"\"didyma.format\":\"2\"").unwrap();
    let mut newer = text;
    newer[at + 17] = b'7';
    std::fs::write(&model, newer).unwrap();
    assert_eq!(problem(&model), FileFault::Newer { found: 7, known: 2 });
}

#[test]
fn a_file_that_is_not_there_is_an_error_with_its_name() {
    let error = Posterior::load(Path::new("no/such/model.safetensors")).unwrap_err();
    assert!(error.to_string().starts_with("could not read no/such/model.safetensors"), "{error}");
}
