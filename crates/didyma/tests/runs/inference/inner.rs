//! Inner samples of other laws than the pool's: runs that are resumed, refused, or find a posterior that is known.

use super::{Keeper, gaussian_errors, samples, small};
use didyma::config::{Config, Inner, LevelSource, Profile, Proposal, Start};
use didyma::estimator::{Coupling, Method, Replacement, Settings};
use didyma::run::{CHECKPOINT, Fault, Manifest, RunDir, execute};
use didyma::steps::{Drawn, Steps};
use didyma::tasks::Task;
use didyma::{Error, Event, Named, Observer, Rows, State, infer_from};
use std::ops::ControlFlow;

/// A run of a fraction of a second by this law, with a coupling that it allows.
fn tiny(law: Inner) -> Config {
    let mut config = small(Config::new(Profile::Default, Method::Tgrr));
    (config.rounds, config.train.epochs, config.train.inner) = (3, 4, law);
    if !law.allows_outer() {
        config.estimator.coupling = Coupling::Excluded;
    }
    config
}

/// The bound of `a_gaussian_posterior_is_found_by_every_algorithm`, whose derivation holds here.
#[test]
fn a_gaussian_posterior_is_found_by_every_law() {
    for law in [Inner::Near, Inner::Mixture, Inner::Sobol, Inner::Normalised] {
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
    for law in [Inner::Near, Inner::Mixture, Inner::Sobol, Inner::Normalised] {
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

/// Levels that are measured are chosen before the first epoch of each round but the first, and kept with its training.
#[test]
fn chosen_levels_outlive_an_interruption() {
    let task = Task::named("two-moons").unwrap();
    let mut config = tiny(Inner::Pool);
    (config.train.levels, config.ensemble.members) = (LevelSource::Auto, 2);
    let (model, mut keeper) = (&task.problem, Keeper::default());
    let whole = infer_from(model, None, &config, 2, State::default(), &mut keeper).unwrap();
    let levels: Vec<_> = whole.reports.iter().map(|report| report.levels.clone()).collect();
    assert!(levels[0].is_none() && levels[1..].iter().all(Option::is_some));
    let largest = config.estimator.m0 << config.estimator.top.unwrap();
    assert!(levels.iter().flatten().all(|chosen| chosen.m0 << chosen.top == largest));
    let expected = samples(&whole.posterior.unwrap(), 300);
    for (event, progress) in keeper.all.into_iter().enumerate().step_by(3) {
        let again = infer_from(model, None, &config, 3, progress, &mut ()).unwrap();
        assert!(again.reports.iter().map(|report| &report.levels).eq(&levels), "event {event}");
        assert!(samples(&again.posterior.unwrap(), 300) == expected, "event {event}");
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let manifest = Manifest::of_task(&task.name, config.clone());
    let run = RunDir::create(&dir, &manifest).unwrap();
    let mut epochs = 0;
    let stop = |event: &Event| {
        epochs += u32::from(matches!(event, Event::Epoch { report, .. } if report.round == 3));
        if epochs == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    execute(run, State::default(), model, None, 2, &mut Until(stop)).unwrap();
    let run = RunDir::open(&dir).unwrap();
    let state = run.progress().unwrap();
    let found = execute(run, state, model, None, 1, &mut ()).unwrap();
    assert!(found.results().rounds.iter().map(|report| &report.levels).eq(&levels));
    assert!(samples(found.posterior().unwrap(), 300) == expected);
    for (change, told) in [
        ((|config| config.train.start = Start::Fresh) as fn(&mut Config), "train.start"),
        (|config| config.train.inner = Inner::Batch, "train.inner"),
        (|config| config.estimator.coupling = Coupling::Planted, "planted"),
        (|config| (config.estimator.base, config.estimator.top) = (0, Some(1)), "estimator.top"),
        (|config| config.estimator = Settings::paper(Method::Atomic), "draws no level"),
    ] {
        let mut config = config.clone();
        change(&mut config);
        let sentence = config.check().unwrap_err().to_string();
        assert!(sentence.contains("train.levels") && sentence.contains(told), "{sentence}");
    }
}

/// Levels are chosen by every law, for methods with a top level and without. Where that is missing, they end where the samples
/// do: at the 64 that are made for each row, or at the rows of the smallest member.
#[test]
fn levels_are_chosen_by_every_law() {
    let task = Task::named("two-moons").unwrap();
    for law in [Inner::Pool, Inner::Near, Inner::Mixture, Inner::Sobol, Inner::Normalised] {
        for method in [Method::Tgrr, Method::Rr] {
            let mut config = tiny(law);
            config.estimator = Config::new(Profile::Default, method).estimator;
            config.estimator.coupling = Coupling::Excluded;
            (config.rounds, config.train.levels) = (2, LevelSource::Auto);
            let found = infer_from(&task.problem, None, &config, 2, State::default(), &mut ());
            let levels = found.unwrap().reports[1].levels.clone().expect("levels");
            let (largest, rows) = (levels.m0 << levels.top, 2 * config.simulations);
            match config.estimator.top {
                Some(top) => assert_eq!(largest, config.estimator.m0 << top, "{law:?}"),
                None if law.is_made() => assert_eq!(largest, 64, "{law:?}"),
                None => assert!(rows / 4 < largest && largest < rows, "{law:?}: {largest} {rows}"),
            }
        }
    }
}

/// A stopped run reads the models of its rounds, writes the last one again if that is lost, and says so if an earlier one is.
#[test]
fn a_run_on_the_disk_goes_on_from_its_models() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, task) = (folder.path().join("run"), Task::named("two-moons").unwrap());
    let config = tiny(Inner::Mixture);
    let run = RunDir::create(&dir, &Manifest::of_task(&task.name, config.clone())).unwrap();
    let whole = execute(run, State::default(), &task.problem, None, 2, &mut ()).unwrap();
    let expected = samples(whole.posterior().unwrap(), 200);
    let resume = || {
        let run = RunDir::open(&dir)?;
        let state = run.progress()?;
        assert_eq!(state.reports.len(), 2);
        execute(run, state, &task.problem, None, 1, &mut ())
    };
    let two_rounds = || {
        let sql = "DELETE FROM rounds WHERE round = 3";
        rusqlite::Connection::open(dir.join("run.db")).unwrap().execute_batch(sql).unwrap();
    };
    two_rounds();
    std::fs::remove_file(dir.join(CHECKPOINT)).unwrap();
    assert!(samples(resume().unwrap().posterior().unwrap(), 200) == expected);

    two_rounds();
    std::fs::remove_file(dir.join(CHECKPOINT)).unwrap();
    std::fs::write(dir.join("round-1.safetensors"), b"damaged").unwrap();
    let told = resume().unwrap_err().to_string();
    assert!(told.contains("round-1.safetensors"), "{told}");
}

/// The model of the last finished round is made again from the checkpoint as long as that holds all of it, and no longer.
#[test]
fn a_lost_model_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let task = Task::named("two-moons").unwrap();
    let stopped = |name: &str, in_round_3: bool| {
        let dir = folder.path().join(name);
        let manifest = Manifest::of_task(&task.name, tiny(Inner::Mixture));
        let run = RunDir::create(&dir, &manifest).unwrap();
        let mut rounds = 0;
        let stop = |event: &Event| {
            rounds += u32::from(matches!(event, Event::RoundFinished { .. }));
            let is_epoch = matches!(event, Event::Epoch { .. });
            if rounds == 2 && is_epoch == in_round_3 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        execute(run, State::default(), &task.problem, None, 2, &mut Until(stop)).unwrap();
        let model = dir.join("round-2.safetensors");
        let before = std::fs::read(&model).unwrap();
        std::fs::remove_file(&model).unwrap();
        let run = RunDir::open(&dir).unwrap();
        let state = run.progress().unwrap();
        // Not every epoch is saved: the checkpoint may still be that of round 2.
        let kept = run.training().unwrap().is_some_and(|training| training.round == 2);
        let found = execute(run, state, &task.problem, None, 2, &mut ()).map(|_| ());
        (found, std::fs::read(&model).ok(), before, kept)
    };
    let (found, after, before, kept) = stopped("between", false);
    assert!(kept && found.is_ok() && after == Some(before));
    let (found, after, before, kept) = stopped("within", true);
    if kept {
        assert!(found.is_ok() && after == Some(before));
        return;
    }
    let told = found.unwrap_err();
    let Error::Run { fault: Fault::Model { replaceable, .. }, .. } = &told else {
        panic!("{told}");
    };
    assert!(!replaceable && after.is_none(), "{told}");
}

/// An observer that is asked after every event.
struct Until<F>(F);

impl<F: FnMut(&Event) -> ControlFlow<()>> Observer for Until<F> {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        Ok((self.0)(event))
    }
}

/// Parameters of somebody else have no density that is known: rounds take the pool, and say so. So do studies of levels.
#[test]
fn parameters_drawn_elsewhere_leave_the_pool() {
    let task = Task::named("two-moons").unwrap();
    let problem = &task.problem;
    let laws = |appended: usize, prior_share: f64, elsewhere: bool| {
        let mut config = tiny(Inner::Mixture);
        config.prior_share = prior_share;
        let prior = problem.prior().clone();
        let mut steps = Steps::new(prior, problem.observation().to_vec(), config).unwrap();
        for round in 1..=2 {
            let mut theta = steps.propose(120, 1).unwrap()[..2 * appended].to_vec();
            let drawn = steps.posterior().filter(|_| elsewhere && round == 2).cloned();
            if let Some(posterior) = &drawn {
                theta = samples(posterior, appended);
            }
            let x = theta.chunks_exact(2).map(|row| Ok(row.to_vec())).collect();
            let drawn = drawn.as_ref().map_or(Drawn::Unsaid, Drawn::Posterior);
            steps.append(Rows::new("theta", &theta, 2).unwrap(), x, drawn).unwrap();
            assert!(steps.train(1, &mut ()).unwrap().is_continue());
        }
        let last = steps.reports().last().unwrap().clone();
        (last.inner.unwrap(), last.drawn_elsewhere)
    };
    assert_eq!(laws(120, 0.2, false), (Inner::Mixture, false));
    assert_eq!(laws(60, 0.0, false), (Inner::Mixture, false));
    // The first half has all draws of the prior.
    assert_eq!(laws(60, 0.2, false), (Inner::Pool, true));
    assert_eq!(laws(120, 0.0, true), (Inner::Pool, true));
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
    let mut config = tiny(Inner::Mixture);
    config.train.stock = 63;
    let told = config.check().unwrap_err().to_string();
    assert!(told.contains("train.stock is 63") && told.contains("at least 64"), "{told}");
    let atomic: fn(&mut Config) = |config| {
        config.estimator =
            Settings { coupling: Coupling::Excluded, ..Settings::paper(Method::Atomic) };
    };
    refused(Inner::Normalised, atomic, "atomic");
    refused(Inner::Sobol, include, "coupling=excluded");
    for (setting, change) in [
        ("train.stock is 96", (|config| config.train.stock = 96) as fn(&mut Config)),
        ("estimator.m0 is 3", |config| config.estimator.m0 = 3),
    ] {
        let mut config = tiny(Inner::Sobol);
        change(&mut config);
        let told = config.check().unwrap_err().to_string();
        assert!(told.contains(setting) && told.contains("power of two"), "{told}");
    }
    let mut config = tiny(Inner::Mixture);
    config.estimator.replacement = Replacement::With;
    let told = config.check().unwrap_err().to_string();
    assert!(told.contains("estimator.replacement is with"), "{told}");
}
