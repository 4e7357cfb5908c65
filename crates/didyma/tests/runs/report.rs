//! Pages and figures of whole runs.

#![allow(clippy::unwrap_used)]

use didyma::calibration::LocalMap;
use didyma::config::{Config, Profile};
use didyma::estimator::Method;
use didyma::prior::{Marginal, Prior};
use didyma::report::{Comparison, Kind, Place, RunData, page, png, verdict};
use didyma::rng::{Purpose, Streams};
use didyma::run::{Check, Manifest, Outcome, Recorder, RunDir, Verdict, Word};
use didyma::simulator::from_fn;
use didyma::tasks::Task;
use didyma::{Event, Observer, Problem, State, infer_from};
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;
use std::path::Path;

fn tiny(method: Method, seed: u64) -> Config {
    let mut config = Config::new(Profile::Default, method);
    (config.rounds, config.simulations, config.seed) = (2, 200, seed);
    (config.flow.layers, config.flow.units) = (2, 8);
    config.train.steps = Some(40);
    config
}

/// Stops a run after its first round, or before.
struct StopAfter(u32);

impl Observer for StopAfter {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        Ok(match event {
            Event::RoundFinished { report, .. } if report.round >= self.0 => ControlFlow::Break(()),
            Event::Simulated { .. } if self.0 == 0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    }
}

fn run(dir: &Path, model: &Problem, task: &str, config: &Config, rounds: u32) -> RunData {
    let manifest = Manifest::of_task(task, config.clone());
    let run = RunDir::create(dir, &manifest).unwrap();
    let mut observer = (Recorder::new(run, Vec::new()), StopAfter(rounds));
    infer_from(model, None, config, 2, State::default(), &mut observer).unwrap();
    drop(observer);
    RunData::read(dir, true, 2).unwrap()
}

fn of_task(dir: &Path, name: &str, config: &Config, rounds: u32) -> RunData {
    let task = Task::named(name).unwrap();
    run(dir, &task.problem, name, config, rounds)
}

fn figures(runs: &Comparison) -> Vec<&'static str> {
    let drawn = Kind::ALL.iter().filter_map(|(_, kind)| kind.draw(runs, Place::Alone));
    drawn
        .map(|figure| {
            // A bitmap is made of what is well formed only.
            assert!(png(&figure.svg).unwrap().len() > 1000, "{}", figure.kind.name());
            figure.kind.name()
        })
        .collect()
}

/// No other file or address is asked for: the name of SVG's language is the only one there.
fn stands_alone(html: &str) {
    let rest = html.replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!rest.contains(word), "{word}");
    }
}

#[test]
fn a_page_shows_everything_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let config = tiny(Method::Tgrr, 3);
    let data = of_task(&folder.path().join("one"), "two-moons", &config, 9);
    let again = RunData::read(&folder.path().join("one"), true, 1).unwrap();
    let runs = Comparison::new(vec![data]).unwrap();
    let html = page(&runs);
    assert_eq!(html, page(&Comparison::new(vec![again]).unwrap()), "for any number of threads");
    for part in [
        "fig-pairs",
        "fig-training",
        "fig-ranks",
        "fig-coverage",
        "fig-simulations",
        "fig-predictive",
        "fig-levels",
        "fig-time",
        "<th scope=\"row\">theta2 <span class=\"muted\">θ₂</span></th>",
        "didyma infer two-moons --method tgrr --rounds 2 --simulations 200 --seed 3",
        "--set flow.units=8",
        "estimator.coupling",
        "</span> Verdict: ",
        "<b>calibration</b>: ",
        "<b>simulations at the posterior</b>: ",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    stands_alone(&html);
    assert!(!html.contains('`') && !html.contains("fig-local"));
    let expected =
        ["pairs", "training", "ranks", "coverage", "simulations", "predictive", "levels", "time"];
    assert_eq!(figures(&runs), expected);
}

/// A page of four parameters is below 1 MB; how long it takes is told, not tested: machines here are shared.
#[test]
fn four_parameters_make_a_small_page() {
    let folder = tempfile::tempdir().unwrap();
    let config = tiny(Method::Tgrr, 1);
    let dir = folder.path().join("four");
    drop(of_task(&dir, "lotka-volterra", &config, 9));
    let clock = std::time::Instant::now();
    let html = page(&Comparison::new(vec![RunData::read(&dir, true, 2).unwrap()]).unwrap());
    eprintln!("{} bytes in {:.2} s", html.len(), clock.elapsed().as_secs_f64());
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
}

#[test]
fn unfinished_runs_are_drawn_and_marked() {
    let folder = tempfile::tempdir().unwrap();
    let config = tiny(Method::Atomic, 1);
    for (rounds, expected) in [
        (0, &["simulations"][..]),
        (1, &["pairs", "training", "simulations", "predictive", "time"]),
    ] {
        let dir = folder.path().join(rounds.to_string());
        let runs = Comparison::new(vec![of_task(&dir, "two-moons", &config, rounds)]).unwrap();
        let html = page(&runs);
        let run = format!("<b>run</b>: {rounds} of 2 rounds are done");
        assert_eq!(html.matches(&run).count(), 1, "{html}");
        assert!(html.contains("Verdict: check") || html.contains("Verdict: do not trust"));
        assert_eq!(figures(&runs), expected);
    }
}

#[test]
fn runs_are_compared_by_cohort() {
    let folder = tempfile::tempdir().unwrap();
    let one = |name: &str, config: &Config| of_task(&folder.path().join(name), "mg1", config, 9);
    let mut wide = tiny(Method::Atomic, 1);
    wide.estimator.atoms = 10;
    let runs = Comparison::new(vec![
        one("a", &tiny(Method::Tgrr, 1)),
        one("b", &tiny(Method::Atomic, 1)),
        one("c", &tiny(Method::Tgrr, 2)),
        one("d", &wide),
    ]);
    let runs = runs.unwrap();
    let names: Vec<&str> = runs.cohorts.iter().map(|cohort| &*cohort.name).collect();
    assert_eq!(names, ["tgrr", "atomic, estimator.atoms 20", "atomic, estimator.atoms 10"]);
    assert_eq!(runs.cohorts[0].runs.len(), 2);
    let html = page(&runs);
    assert!(html.contains("mg1: 3 methods, 4 runs") && html.contains("tgrr (2 seeds)"));
    assert!(html.contains("<h2>Verdicts</h2>") && html.contains("fig-ranks"));
    assert!(html.contains("for the first seed of each"));
    for name in ["a", "b", "c", "d"] {
        let row = format!("<tr><th scope=\"row\">{name}</th><td><span class=\"mark is-");
        assert_eq!(html.matches(&row).count(), 1, "{name}");
    }
    stands_alone(&html);
    let other = of_task(&folder.path().join("e"), "two-moons", &tiny(Method::Tgrr, 1), 9);
    let first = RunData::read(&folder.path().join("a"), false, 1).unwrap();
    let told = Comparison::new(vec![first, other]).unwrap_err().to_string();
    assert!(told.contains("a run of two-moons") && told.contains("of mg1"), "{told}");
    assert!(Comparison::new(Vec::new()).is_err());
}

/// A problem of one's own with one parameter, and one with thirty.
#[test]
fn one_to_thirty_parameters_fit_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for dim in [1, 30] {
        let simulator = from_fn(dim, dim, |theta, _, x| {
            x.iter_mut().zip(theta).for_each(|(x, theta)| *x = theta + 0.1 * theta.sin());
        });
        let names =
            (0..dim).map(|i| (format!("angle{i}"), Marginal::Normal { mean: 0.0, sd: 1.0 }));
        let prior = Prior::new(names).unwrap();
        let observation = vec![0.5; dim];
        let model = Problem::new(prior, simulator, observation).unwrap();
        let dir = folder.path().join(dim.to_string());
        let runs = vec![run(&dir, &model, "mine", &tiny(Method::Tgrr, 1), 9)];
        let runs = Comparison::new(runs).unwrap();
        let html = page(&runs);
        assert_eq!(html.matches("<th scope=\"row\">angle").count(), dim);
        assert!(html.len() < 5_000_000, "{} bytes", html.len());
        assert!(figures(&runs).contains(&"pairs"));
        let told = html.contains("24 others are in the table");
        assert_eq!(told, dim == 30);
        let told = html.contains("Of 30 parameters the 3 least even are named");
        assert_eq!(told, dim == 30);
        // Nothing was simulated at the posterior: grey, with the way to do it.
        let open =
            "<span class=\"mark is-open\"><span aria-hidden=\"true\">–</span> not checked</span>";
        assert!(
            html.contains(open)
                && html.contains("<code>didyma report DIR --predictive COUNT</code>")
        );
        assert!(!html.contains('`'));
        all.push(RunData::read(&dir, false, 1).unwrap());
    }
    let told = Comparison::new(all).unwrap_err().to_string();
    assert!(told.contains("a run of mine with another prior or observation"), "{told}");
}

/// Two summaries of a correlation of 0.99, and simulations of them.
fn predicted(data: &mut RunData, seed: u64, observed: impl FnOnce([f64; 2]) -> [f64; 2]) -> String {
    let mut rng = Streams::new(seed).stream(Purpose::Synthetic, 0, 0);
    let mut draw = || {
        let [a, b]: [f64; 2] = std::array::from_fn(|_| StandardNormal.sample(&mut rng));
        [a, 0.99 * a + 0.141 * b]
    };
    let x_o = observed(draw());
    let rows: Vec<[f64; 2]> = (0..200).map(|_| draw()).collect();
    data.observation = [("first", x_o[0]), ("second", x_o[1])].map(|(n, x)| (n.into(), x)).into();
    data.predictive = Some([0, 1].map(|i| rows.iter().map(|row| row[i]).collect()).into());
    let check = verdict(data).checks.pop().unwrap();
    assert_eq!(check.name, "simulations at the posterior");
    assert_eq!(check.outcome == Outcome::Doubtful, check.words.contains("do not reproduce"));
    if check.outcome == Outcome::Doubtful { check.words } else { String::new() }
}

/// Of right posteriors at most one in ten has a warning of its simulations: of 400, by a standard error of 1.5 %, four of
/// which are 6 %. The joint check warns of two summaries that are fine by themselves, where they do not belong together.
#[test]
fn simulations_at_the_posterior_are_checked_one_by_one_and_together() {
    let folder = tempfile::tempdir().unwrap();
    let mut data = of_task(folder.path(), "two-moons", &tiny(Method::Tgrr, 4), 9);
    let warned = (0..400).filter(|&seed| !predicted(&mut data, seed, |x| x).is_empty()).count();
    assert!((8..=64).contains(&warned), "{warned}");
    let together = predicted(&mut data, 1, |_| [1.0, -1.0]);
    for part in ["observed summaries together (p = 0.0", "above all", "first", "second"] {
        assert!(together.contains(part), "{together}");
    }
    let one = predicted(&mut data, 1, |x| [9.0, x[1]]);
    assert!(one.contains("do not reproduce the observed first:"), "{one}");
}

/// Simulations at the posterior may turn trust into check, and those that were not made leave the word as it is.
#[test]
fn the_word_of_a_page_counts_simulations_at_the_posterior() {
    let folder = tempfile::tempdir().unwrap();
    let mut data = of_task(folder.path(), "two-moons", &tiny(Method::Tgrr, 4), 9);
    let (name, words, next) = ("calibration".to_owned(), "fine".to_owned(), String::new());
    let check = Check { name, outcome: Outcome::Good, words: words.clone(), next };
    let (reasons, next) = (vec![words], Vec::new());
    data.verdict = Verdict { word: Word::Trust, reasons, checks: vec![check], next };
    // A loss that still fell would be one more.
    data.training.clear();
    predicted(&mut data, 1, |_| [1.0, -1.0]);
    let found = verdict(&data);
    assert_eq!((found.word, found.reasons.len(), found.next.len()), (Word::Check, 1, 1));
    data.predictive = None;
    let found = verdict(&data);
    assert_eq!((found.word, found.checks[1].outcome), (Word::Trust, Outcome::NotChecked));
    let html = page(&Comparison::new(vec![data]).unwrap());
    assert!(html.contains("<section class=\"verdict is-good\"") && html.contains("Verdict: trust"));
    assert_eq!(html.matches("mark is-good").count(), 2, "the heading and the calibration");
}

/// A map that a classifier made is drawn, and without one the figure says what to do.
#[test]
fn a_local_map_is_drawn_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut data = of_task(folder.path(), "two-moons", &tiny(Method::Tgrr, 5), 9);
    let samples = data.samples.clone().unwrap();
    let row = |i: usize| [samples[0][i], samples[1][i]];
    let theta: Vec<f64> = (0..300).flat_map(row).collect();
    let probability = (0..300).map(|i| if samples[0][i] > 0.0 { 0.8 } else { 0.3 }).collect();
    let map = LocalMap { p_value: 0.01, statistic: 0.05, theta, probability };
    data.calibration.as_mut().unwrap().local = Some(map);
    let runs = Comparison::new(vec![data]).unwrap();
    let figure = Kind::Local.draw(&runs, Place::Page).unwrap();
    for part in ["var(--diverging-6)", "var(--diverging-1)", "3 times too high or more"] {
        assert!(figure.svg.contains(part), "{part}");
    }
    assert!(figure.caption.contains("in 1 of 100 cases, so that the colours mean something"));
    assert!(figures(&runs).contains(&"local") && page(&runs).contains("fig-local"));
    let needs = Kind::Local.needs().to_string();
    assert!(needs.ends_with("at the observation: calibrate the run"), "{needs}");
}
