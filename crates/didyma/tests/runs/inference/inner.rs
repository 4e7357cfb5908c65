//! Inner samples of other laws than the pool's: runs that are resumed, refused, or find a posterior that is known.

use super::{Keeper, gaussian_errors, samples, small};
use didyma::config::{Config, Inner, Profile, Proposal};
use didyma::estimator::{Coupling, Method, Settings};
use didyma::run::{CHECKPOINT, Manifest, RunDir, execute};
use didyma::tasks::Task;
use didyma::{Named, State, infer_from};

/// A run of a fraction of a second by this law, with a coupling that it allows.
fn tiny(law: Inner) -> Config {
    let mut config = small(Config::new(Profile::Default, Method::Tgrr));
    (config.rounds, config.train.epochs, config.train.inner) = (3, 4, law);
    if matches!(law, Inner::Near | Inner::Normalised) {
        config.estimator.coupling = Coupling::Excluded;
    }
    config
}

/// The bound of `a_gaussian_posterior_is_found_by_every_algorithm`, whose derivation holds here.
#[test]
fn a_gaussian_posterior_is_found_by_every_law() {
    for law in [Inner::Near, Inner::Mixture, Inner::Normalised] {
        let mut config = tiny(law);
        config.simulations = 500;
        config.flow.units = 24;
        (config.train.epochs, config.train.steps) = (1000, Some(400));
        let (means, widths) = gaussian_errors(&config);
        eprintln!("{law:?}: {means:.3} of the means, {widths:.3} of the widths");
        assert!(means < 0.3 && widths < 0.2, "{law:?}: {means} {widths}");
    }
}

/// With ensembles of two, whose mixture is what samples are drawn from, and for any number of threads.
#[test]
fn from_any_event_a_run_ends_with_the_same_bytes() {
    let task = Task::named("two-moons").unwrap();
    for law in [Inner::Near, Inner::Mixture, Inner::Normalised] {
        let mut config = tiny(law);
        (config.ensemble.members, config.prior_share) = (2, 0.2);
        let mut keeper = Keeper::default();
        let model = &task.problem;
        let whole = infer_from(model, None, &config, 2, State::default(), &mut keeper).unwrap();
        assert!(whole.reports[0].inner.is_none());
        assert!(whole.reports[1..].iter().all(|report| report.inner == Some(law)));
        let expected = samples(&whole.posterior.unwrap(), 300);
        for (event, progress) in keeper.all.into_iter().enumerate() {
            let again = infer_from(model, None, &config, 3, progress, &mut ()).unwrap();
            assert!(samples(&again.posterior.unwrap(), 300) == expected, "{law:?}, event {event}");
        }
    }
}

/// Its rounds' models are read back, and a run of which one is missing says so.
#[test]
fn a_run_on_the_disk_goes_on_from_its_models() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, task) = (folder.path().join("run"), Task::named("two-moons").unwrap());
    let config = tiny(Inner::Mixture);
    let run = RunDir::create(&dir, &Manifest::of_task(&task.name, config.clone())).unwrap();
    let whole = execute(run, State::default(), &task.problem, None, 2, &mut ()).unwrap();
    let expected = samples(whole.posterior().unwrap(), 200);
    let sql = "DELETE FROM rounds WHERE round = 3";
    rusqlite::Connection::open(dir.join("run.db")).unwrap().execute_batch(sql).unwrap();
    std::fs::remove_file(dir.join(CHECKPOINT)).unwrap();
    let run = RunDir::open(&dir).unwrap();
    let state = run.progress().unwrap();
    assert_eq!((state.reports.len(), state.posteriors.len()), (2, 2));
    let again = execute(run, state, &task.problem, None, 1, &mut ()).unwrap();
    assert!(samples(again.posterior().unwrap(), 200) == expected);
}

/// A law whose needs a run's other settings cannot meet is refused with its name.
#[test]
fn laws_that_cannot_be_right_are_refused() {
    let refused = |law: Inner, change: fn(&mut Config), expected: &str| {
        let mut config = tiny(law);
        change(&mut config);
        let told = config.check().unwrap_err().to_string();
        assert!(told.contains(law.name()) && told.contains(expected), "{told}");
    };
    let include: fn(&mut Config) = |config| config.estimator.coupling = Coupling::Inclusive;
    refused(Inner::Near, include, "coupling=excluded");
    refused(Inner::Normalised, include, "coupling=excluded");
    refused(Inner::Mixture, |config| config.estimator.coupling = Coupling::Planted, "pool");
    refused(Inner::Mixture, |config| config.proposal = Proposal::Mixed, "density");
    refused(
        Inner::Mixture,
        |config| config.coordinates = Config::new(Profile::Paper, Method::Tgrr).coordinates,
        "rejected outside the prior",
    );
    let atomic: fn(&mut Config) = |config| {
        config.estimator =
            Settings { coupling: Coupling::Excluded, ..Settings::paper(Method::Atomic) };
    };
    refused(Inner::Normalised, atomic, "atomic");
}
