//! Figures 1 to 6.

use super::plan::{ALPHAS, LOSSES, NEURON, NEURONS, TASKS, Tasks};
use super::results::{Results, cell, table};
use super::{Section, Target};
use didyma::report::{Comparison, Kind};
use didyma::run::RunDir;
use didyma::{Named, RoundReport};
use didyma_plot::{Curve, CurvePoint, Panel, Place, curves};

/// A score of a round, where it has one.
type Score = fn(&RoundReport) -> Option<f64>;

/// Figure 1: the training loss of the last round, the third, epoch by epoch.
pub fn figure_1(results: &Results) -> Section {
    let (mut panels, mut rows, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for variant in LOSSES {
        let Some((run, _)) = results.runs.iter().find(|(run, _)| run.variant.name == variant.name)
        else {
            continue;
        };
        let dir = RunDir::read(&results.folder.join(run.folder()));
        let epochs = dir.and_then(|dir| dir.epochs()).unwrap_or_default();
        let last = epochs.iter().map(|epoch| epoch.round).max().unwrap_or(1);
        let third = epochs.iter().filter(|epoch| epoch.round == last);
        let losses: Vec<(f64, f64)> =
            third.filter_map(|e| Some((f64::from(e.epoch), e.train_loss?))).collect();
        let spiky = spikes(&losses);
        let told = spiky.map_or("–".to_owned(), |spiky| format!("{spiky:.1}"));
        rows.push(vec![variant.title.to_owned(), losses.len().to_string(), told]);
        found.push(spiky);
        let points = losses.iter().map(|&(x, y)| CurvePoint { x, y, error: 0.0 }).collect();
        panels.push(Panel {
            title: variant.title.to_owned(),
            x_label: "epoch".to_owned(),
            y_label: "training loss".to_owned(),
            log_x: false,
            log_y: false,
            curves: vec![Curve { name: "training loss".to_owned(), points, dashed: false }],
        });
    }
    let head =
        ["method", "epochs", "largest step from epoch to epoch, in units of the median step"];
    let text = format!(
        "Training loss of the last round on Two Moons, with the settings of the authors' code. The claim is that RU is spiky and \
         its truncation at level 4 is not.\n\n{}",
        table(&head.map(str::to_owned), &rows)
    );
    let verdict = match found[..] {
        [Some(plain), Some(truncated)] if plain > 2.0 * truncated => "\nVerdict: **holds**.\n",
        [Some(_), Some(_)] => "\nVerdict: **not seen** here.\n",
        _ => "",
    };
    let text = text + verdict;
    let title = "Figure 1: the loss of RU, plain and truncated";
    let mut section = Section::new(Target::Figure1, title, text, results.csv());
    if !panels.is_empty() {
        let svg = curves("Training loss of the last round", &panels, Place::Alone);
        section.figures.push(("figure-1".to_owned(), svg));
    }
    section
}

/// How spiky a curve is: its largest step over its median step.
fn spikes(losses: &[(f64, f64)]) -> Option<f64> {
    let mut steps: Vec<f64> = losses.windows(2).map(|w| (w[1].1 - w[0].1).abs()).collect();
    steps.sort_unstable_by(f64::total_cmp);
    let (median, largest) = (steps.get(steps.len() / 2)?, steps.last()?);
    (*median > 0.0).then(|| largest / median)
}

/// Figures 2 and 4: posteriors beside the reference.
pub fn posteriors(results: &Results, tasks: Tasks, target: Target) -> Section {
    let (names, title): (&[&str], _) = match target {
        Target::Figure2 => {
            (&["ru", "grr", "tgrr"], "Figure 2: posteriors of the multilevel methods")
        }
        _ => (&["atomic", "nested"], "Figure 4: posteriors of atomic and nested APT"),
    };
    let mut rows = Vec::new();
    let mut figures = Vec::new();
    for (task, task_title) in tasks {
        let mut row = vec![(*task_title).to_owned()];
        row.extend(names.iter().map(|n| cell(results.last(n, task, |r| r.scores.c2st), 3)));
        rows.push(row);
        let drawn = results.compared(names, task, true);
        figures.extend(drawn.and_then(|runs| figure(&runs, Kind::Pairs, target, task)));
    }
    let head = std::iter::once("").chain(names.iter().copied()).map(str::to_owned);
    let text = format!(
        "Seed 1 beside the reference (dashed) and the true parameters (red){}. How close they are, in C2ST:\n\n{}",
        if target == Target::Figure4 {
            "; 20 atoms and 32 inner samples, where the paper has 100"
        } else {
            ""
        },
        table(&head.collect::<Vec<_>>(), &rows)
    );
    Section { figures, ..Section::new(target, title, text, results.csv()) }
}

fn figure(runs: &Comparison, kind: Kind, target: Target, task: &str) -> Option<(String, String)> {
    let drawn = kind.draw(runs, Place::Alone)?;
    Some((format!("{}-{task}", target.name()), drawn.svg))
}

/// Figure 3: scores by round.
pub fn figure_3(results: &Results, tasks: Tasks) -> Section {
    let names = ["ru", "grr", "tgrr"];
    let (mut figures, mut text) = (Vec::new(), String::new());
    text.push_str("Scores by round (figures: mean and range over the seeds), and the paper's claims after the last round:\n\n");
    let scores: [(&str, Score); 4] = [
        ("C2ST", |r| r.scores.c2st),
        ("MMD²", |r| r.scores.mmd2),
        ("LMD", |r| r.scores.lmd),
        ("NLOG", |r| r.scores.nlog),
    ];
    let claims: [(&str, &str, usize); 3] = [("grr", "ru", 1), ("grr", "ru", 2), ("tgrr", "grr", 1)];
    for (better, worse, task) in claims {
        let (task, title) = TASKS[task];
        for (score, of) in &scores {
            let of = |name| results.last(name, task, of);
            if let (Some(better_mean), Some(worse_mean)) = (of(better), of(worse)) {
                text.push_str(&format!(
                    "- {title}, {} better than {} in {score}: {}\n",
                    better.to_uppercase(),
                    worse.to_uppercase(),
                    better_mean.below(&worse_mean)
                ));
            }
        }
    }
    let mut rows = Vec::new();
    for (task, title) in tasks {
        for name in names {
            let mut row = vec![(*title).to_owned(), name.to_uppercase()];
            row.extend(scores.iter().map(|(_, of)| cell(results.last(name, task, of), 3)));
            rows.push(row);
        }
        let drawn = results.compared(&names, task, false);
        figures.extend(drawn.and_then(|r| figure(&r, Kind::Metrics, Target::Figure3, task)));
    }
    let head = ["task", "method", "C2ST", "MMD²", "LMD", "NLOG"].map(str::to_owned);
    text.push_str(&format!("\n{}", table(&head, &rows)));
    let title = "Figure 3: scores of the multilevel methods by round";
    Section { figures, ..Section::new(Target::Figure3, title, text, results.csv()) }
}

/// Figure 5: two α.
pub fn figure_5(results: &Results, task: (&str, &str)) -> Section {
    let names = ALPHAS.map(|variant| variant.name);
    let of = |name| results.last(name, task.0, |r| r.scores.c2st);
    let mut text = format!("TGRR with the paper's law of the level on {}.\n\n", task.1);
    let rows = ALPHAS.map(|variant| vec![variant.title.to_owned(), cell(of(variant.name), 3)]);
    text.push_str(&table(&["", "C2ST"].map(str::to_owned), &rows));
    if let (Some(paper), Some(cheapest)) = (of(names[0]), of(names[1])) {
        text.push_str(&format!(
            "\nThe claim, 1.673 slightly better than 1.8 in C2ST: {}\n",
            paper.below(&cheapest)
        ));
    }
    let drawn = results.compared(&names, task.0, false);
    let figures = drawn.and_then(|r| figure(&r, Kind::Metrics, Target::Figure5, task.0));
    let title = "Figure 5: α = 1.673 against 1.8";
    let figures = figures.into_iter().collect();
    Section { figures, ..Section::new(Target::Figure5, title, text, results.csv()) }
}

/// Figure 6: the neuron.
pub fn figure_6(results: &Results) -> Section {
    let names = NEURONS.map(|variant| variant.name);
    let rows = NEURONS.map(|variant| {
        let of = |of: Score| cell(results.last(variant.name, NEURON, of), 3);
        let simulations = results.of(variant.name, NEURON).next().map_or("–".to_owned(), |s| {
            format!("{} × {}", s.config.rounds, s.config.simulations)
        });
        vec![variant.title.to_owned(), simulations, of(|r| r.scores.lmd), of(|r| r.scores.nlog)]
    });
    let head = ["method", "simulations", "LMD", "NLOG"].map(str::to_owned);
    let mut text = format!(
        "LMD is scaled by the prior predictive's standard deviations; lower is better for both scores.\n\n{}",
        table(&head, &rows)
    );
    for (score, of) in [("LMD", (|r| r.scores.lmd) as Score), ("NLOG", |r| r.scores.nlog)] {
        let mean = |name| results.last(name, NEURON, of);
        if let (Some(atomic), Some(tgrr)) = (mean(names[0]), mean(names[1])) {
            text.push_str(&format!(
                "\n- TGRR better than atomic APT in {score}: {}",
                tgrr.below(&atomic)
            ));
        }
    }
    text.push('\n');
    let drawn = results.compared(&names, NEURON, false);
    let figures = drawn.and_then(|r| figure(&r, Kind::Metrics, Target::Figure6, NEURON));
    let title = "Figure 6: the Hodgkin-Huxley neuron";
    let figures = figures.into_iter().collect();
    Section { figures, ..Section::new(Target::Figure6, title, text, results.csv()) }
}
