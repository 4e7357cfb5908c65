//! Ensembles: a mixture of members that are trained apart, and members that diverge.

use super::device::Counting;
use super::keeper::Keeper;
use super::{run, samples, small, tiny};
use didyma::config::{Algorithm, Config, Profile};
use didyma::run::{Manifest, Recorder, RunDir, Summary};
use didyma::storage::TensorFile;
use didyma::tasks::Task;
use didyma::training::{Machine, StopReason};
use didyma::{Error, Event, FileFault, Observer, Posterior, Result, Rows, State, infer_from};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

fn ensemble(members: usize) -> Config {
    let mut config = tiny(Profile::Default);
    config.ensemble.members = members;
    config
}

fn densities(posterior: &Posterior, theta: &[f64]) -> Vec<f64> {
    posterior.log_density(Rows::new("theta", theta, 2).unwrap(), 2).unwrap()
}

/// A run of one round whose members are those of the ensemble differs from it by nothing but the mixing.
#[test]
fn the_first_member_is_the_run_alone_and_the_others_differ() {
    let task = Task::named("two-moons").unwrap();
    let alone = run(&task, &Config { rounds: 1, ..ensemble(1) });
    let mixed = run(&task, &Config { rounds: 1, ..ensemble(3) });
    let (report, single) = (&mixed.reports[0], &alone.reports[0]);
    assert_eq!(single.members, []);
    assert_eq!(single.disagreement, None);
    assert_eq!(report.members.len(), 3);
    assert_eq!(report.members[0].validation_loss, single.validation_loss);
    assert_ne!(report.members[0].validation_loss, report.members[1].validation_loss);
    assert_ne!(report.members[1].validation_loss, report.members[2].validation_loss);
    let losses = report.members.iter().map(|member| member.validation_loss.unwrap());
    assert_eq!(report.validation_loss.unwrap(), losses.sum::<f64>() / 3.0);
    assert_eq!(report.steps, 3 * single.steps);
    let apart = report.disagreement.unwrap();
    assert!(apart > 0.0 && apart < 1.0, "{apart}");
    let (alone, mixed) = (alone.posterior.unwrap(), mixed.posterior.unwrap());
    assert_eq!((alone.members(), mixed.members()), (1, 3));
    let theta = samples(&alone, 200);
    assert_ne!(densities(&alone, &theta), densities(&mixed, &theta));
}

#[test]
fn files_hold_every_member() {
    let mixed = run(&Task::named("two-moons").unwrap(), &ensemble(3)).posterior.unwrap();
    let bytes = mixed.to_bytes(&json!({}));
    let again = Posterior::from_bytes(&bytes).unwrap();
    assert_eq!(again.members(), 3);
    assert!(again.is_same(&mixed));
    assert_eq!(again.to_bytes(&json!({})), bytes);
    let theta = samples(&mixed, 500);
    assert_eq!(samples(&again, 500), theta);
    assert_eq!(densities(&again, &theta), densities(&mixed, &theta));
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let task = Task::named("two-moons").unwrap();
    for config in [
        ensemble(3),
        Config {
            ensemble: ensemble(3).ensemble,
            ..small(Config::new(Profile::Default, Algorithm::Snse))
        },
    ] {
        let of = |threads: usize| {
            let found =
                infer_from(&task.problem, None, &config, threads, State::default(), &mut ());
            found.unwrap().posterior.unwrap().to_bytes(&json!({}))
        };
        let expected = of(1);
        assert!([2, 3, 5].into_iter().all(|threads| of(threads) == expected));
    }
}

#[test]
fn a_number_of_members_is_between_1_and_64() {
    for members in [0, 65] {
        let told = ensemble(members).check().unwrap_err().to_string();
        assert!(told.contains("ensemble.members") && told.contains("between 1 and 64"), "{told}");
    }
}

fn members_and_stops(diverge: fn(usize) -> bool) -> (Vec<StopReason>, Vec<usize>) {
    let task = Task::named("two-moons").unwrap();
    let device = Arc::new(Counting { diverge, ..Counting::default() });
    // On one thread engines are made in the order of rounds and members.
    let machine = Machine::new(1, device);
    let found = infer_from(&task.problem, None, &ensemble(3), machine, State::default(), &mut ());
    let found = found.unwrap();
    let kept = |members: &[didyma::MemberReport]| {
        members.iter().filter(|member| member.stop_reason != StopReason::Diverged).count()
    };
    let posterior = found.posterior.unwrap();
    let (last, reports) = (posterior.members(), found.reports);
    let mut sound: Vec<usize> = reports.iter().map(|report| kept(&report.members)).collect();
    sound.push(last);
    assert!(samples(&posterior, 100).iter().all(|theta| theta.is_finite()));
    (reports.iter().map(|report| report.stop_reason).collect(), sound)
}

#[test]
fn a_member_that_diverges_is_left_out_and_may_come_back() {
    use StopReason::{Budget, Diverged};
    assert_eq!(members_and_stops(|engine| engine == 1), (vec![Budget, Budget], vec![2, 3, 3]));
    assert_eq!(members_and_stops(|engine| engine >= 4), (vec![Budget, Budget], vec![3, 1, 1]));
    // Where all diverge there is nothing better than what they were.
    assert_eq!(members_and_stops(|engine| engine < 3), (vec![Diverged, Budget], vec![0, 3, 3]));
    assert_eq!(members_and_stops(|_| true), (vec![Diverged, Diverged], vec![0, 0, 3]));
}

#[test]
fn a_summary_tells_of_members_that_are_left_out_or_apart() {
    let task = Task::named("two-moons").unwrap();
    let mut reports = run(&task, &ensemble(3)).reports;
    let manifest = Manifest::of_task("two-moons", ensemble(3));
    let told = |reports: &[didyma::RoundReport]| {
        Summary::new(&manifest, reports.to_vec()).warnings.join("\n")
    };
    reports[1].disagreement = Some(0.05);
    assert!(!told(&reports).contains("members"), "{}", told(&reports));
    reports[1].disagreement = Some(0.456);
    assert!(told(&reports).contains("members are 0.46 apart at the observation"));
    reports[0].members[2].stop_reason = StopReason::Diverged;
    assert!(told(&reports).contains("1 of 3 members diverged in round 1, and its posterior"));
    // Where all diverged, the round did, and says so.
    reports[0].members.iter_mut().for_each(|member| member.stop_reason = StopReason::Diverged);
    assert!(!told(&reports).contains("members diverged"));
}

/// An error of the observer, at its n-th event, ends a run: it hears of nothing more.
struct Failing {
    left: usize,
    after: usize,
}

impl Observer for Failing {
    fn notice(&mut self, _: &Event) -> Result<ControlFlow<()>> {
        match self.left {
            0 => {
                self.after += 1;
                Err(Error::Leakage { drawn: 1, accepted: 0 })
            }
            _ => {
                self.left -= 1;
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

#[test]
fn an_error_of_the_observer_ends_all_members() {
    let task = Task::named("two-moons").unwrap();
    for events in [3, 6, 9] {
        let mut observer = Failing { left: events, after: 0 };
        let found =
            infer_from(&task.problem, None, &ensemble(3), 3, State::default(), &mut observer);
        assert!(matches!(found, Err(Error::Leakage { .. })), "{events}");
        assert_eq!(observer.after, 1, "{events}");
    }
}

#[test]
fn a_state_of_another_number_of_members_is_refused() {
    let task = Task::named("two-moons").unwrap();
    let mut keeper = Keeper::default();
    infer_from(&task.problem, None, &ensemble(3), 1, State::default(), &mut keeper).unwrap();
    for state in [keeper.all[6].clone(), keeper.now] {
        let mut state = state;
        let training = state.training.as_mut().unwrap();
        training.members.pop();
        let found = infer_from(&task.problem, None, &ensemble(3), 1, state, &mut ());
        let told = found.unwrap_err().to_string();
        assert!(told.contains("members") && told.contains('2'), "{told}");
    }
}

/// Files that say to have another number of members than their parameters are.
#[test]
fn models_with_other_members_than_they_say_are_damaged() {
    let mixed = run(&Task::named("two-moons").unwrap(), &ensemble(2)).posterior.unwrap();
    let file = TensorFile::decode(&mixed.to_bytes(&json!({})), "posterior", &["params"]).unwrap();
    for members in [0, 1, 3, u64::MAX] {
        let mut told: serde_json::Value = serde_json::from_str(&file.json).unwrap();
        assert_eq!(told["members"], 2);
        told["members"] = members.into();
        let changed = TensorFile { json: told.to_string(), ..file.clone() };
        let found = Posterior::from_bytes(&changed.encode());
        assert!(matches!(found, Err(FileFault::Corrupted(_))), "{members}: {found:?}");
    }
}

/// Where the checkpoint is lost, the models of finished rounds are enough, also of rounds that left members out.
#[test]
fn a_round_goes_on_from_the_models_of_the_one_before() {
    let task = Task::named("two-moons").unwrap();
    let run = |folder: &Path, lose: bool| {
        let device = Arc::new(Counting { diverge: |engine| engine == 1, ..Counting::default() });
        let machine = || Machine::new(1, Arc::<Counting>::clone(&device));
        let manifest = Manifest::of_task("two-moons", ensemble(3));
        let mut stop = Keeper { stop_after: lose.then_some(40), ..Keeper::default() };
        let dir = RunDir::create(folder, &manifest).unwrap();
        let mut recorder = Recorder::new(dir, Vec::new());
        let mut both = (&mut recorder, &mut stop);
        infer_from(&task.problem, None, &manifest.config, machine(), State::default(), &mut both)
            .unwrap();
        let (dir, reports) = recorder.finish();
        if lose {
            assert_eq!(reports.len(), 1, "it stopped in round 2");
            std::fs::remove_file(dir.file(didyma::run::CHECKPOINT)).unwrap();
        }
        let state = dir.progress().unwrap();
        // The engines of round 2 are other ones by number.
        let left = Arc::new(Counting {
            asked: [3.into(), 0.into(), 0.into()],
            diverge: |engine| engine == 1,
        });
        let machine = Machine::new(1, left);
        let found = infer_from(&task.problem, None, &manifest.config, machine, state, &mut ());
        found.unwrap().posterior.unwrap().to_bytes(&json!({}))
    };
    let (whole, lost) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert!(run(&whole.path().join("run"), false) == run(&lost.path().join("run"), true));
}
