//! Tables 1 and 2, SNSE with its published settings, and the ablation.

use super::paper::{self, Printed};
use super::plan::{ABLATION, METHODS, PUBLISHED, Tasks};
use super::results::{Mean, Results, cell, table};
use super::{Reproduction, Section, Target};
use didyma::estimator::alpha::{GrrObjective, Model, advise, grr_alpha};
use didyma::estimator::{Coupling, Method, Settings, Source};
use didyma::levels::{LevelStudy, TrainedFlow, level_settings};
use didyma::metrics::CLASSIFIER_SEEDS;
use didyma::rng::Streams;
use didyma::run::{RunDir, Summary};
use didyma::{Named, RoundReport, parallel};

pub fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn c2st(round: &RoundReport) -> Option<f64> {
    round.scores.c2st
}

/// Table 1: the α that the formulas give, and the rates that trained flows have.
pub fn table_1(results: &Results, tasks: Tasks, args: &Reproduction) -> anyhow::Result<Section> {
    let mut rows = Vec::new();
    for (name, printed) in paper::ALPHA {
        let method = Method::named(name).expect("a method");
        let settings = Settings::paper(method);
        let advice = advise(&settings, Model { rate: paper::RATE, base_variance: 1.0 })?;
        let formula = match method {
            Method::Ru => format!("{:.3} = (r₂ + 1)/2", 0.5 * (paper::RATE + 1.0)),
            Method::Grr => {
                let alpha = |objective| grr_alpha(objective, paper::RATE, settings.base);
                let (printed, sharp) =
                    (alpha(GrrObjective::PrintedBound), alpha(GrrObjective::WithoutSubtraction));
                format!(
                    "{printed:.3}; {sharp:.3} by a sharper sum and a cost without its subtraction"
                )
            }
            _ => "none printed".to_owned(),
        };
        let recipe = format!("{:.3}", advice.recipe.settings().alpha());
        rows.push(vec![method.name().to_owned(), printed.to_string(), formula, recipe]);
    }
    let head = strings(&[
        "method",
        "printed α",
        "by the printed formulas, r₂ = 1.8",
        "our recipe, r₂ = 1.8",
    ]);
    let mut text = table(&head, &rows);
    text.push_str("\nRates measured on the flow of a finished run (excluded coupling, antithetic differences):\n\n");
    let mut rates = Vec::new();
    for (task, title) in tasks {
        rates.push(match measured_rate(results, task, args) {
            Ok((rate, error)) => {
                let alpha = match rate > 1.0 {
                    true => format!("{:.2}", 0.5 * (rate + 1.0)),
                    false => "none: r₂ ≤ 1".to_owned(),
                };
                vec![(*title).to_owned(), format!("{rate:.2} ± {error:.2}"), alpha]
            }
            Err(error) => {
                vec![
                    (*title).to_owned(),
                    format!("not measured: {}", results.console.sentence(&error)),
                    "–".to_owned(),
                ]
            }
        });
    }
    text.push_str(&table(&strings(&["task", "r₂ (paper: 1.8)", "(r₂ + 1)/2"]), &rates));
    text.push_str(
        "\nVerdict: the printed α of RU is what its formula gives; that of GRR is not, by the printed bound and cost; that of \
         TGRR follows from no printed formula. Untruncated methods need an α between 1 and r₂.\n",
    );
    Ok(Section::new(Target::Table1, "Table 1: the law of the level", text, results.csv()))
}

fn measured_rate(results: &Results, task: &str, args: &Reproduction) -> anyhow::Result<(f64, f64)> {
    let run = results.runs.iter().find(|(run, _)| run.task == task);
    let (run, _) = run.ok_or_else(|| anyhow::anyhow!("the run is not finished"))?;
    let dir = RunDir::read(&results.folder.join(run.folder()))?;
    let config = dir.manifest().config.clone();
    let (posterior, meaning) = (dir.posterior()?, config.failures.meaning);
    let mut flow = TrainedFlow::of_posterior(&posterior, dir.rows()?, meaning, parallel::cores())?;
    let settings = level_settings(&config, Some(Method::Tgrr), &flow);
    let settings = Settings { coupling: Coupling::Excluded, ..settings };
    let (highest, budget) = if args.quick { (3, 2_000) } else { (6, 200_000) };
    let filled = (flow.largest_block() / settings.m0.max(1)).checked_ilog2().unwrap_or(1);
    let study = LevelStudy { settings, highest: filled.min(highest), budget };
    let report = study.run(&mut flow, Streams::new(config.seed))?;
    Ok((report.r2, report.r2_se))
}

/// Table 2: C2ST.
pub fn table_2(results: &Results, tasks: Tasks) -> Section {
    let mut rows = Vec::new();
    for variant in METHODS {
        let mut row = vec![variant.title.to_owned()];
        for (i, (task, _)) in tasks.iter().enumerate() {
            let printed = paper::of(&paper::C2ST, variant.name, i);
            let ours = cell(results.last(variant.name, task, c2st), 3);
            row.push(match printed {
                Some(Printed { mean, spread }) => {
                    format!("{ours} (paper: {mean:.3} ± {spread:.3})")
                }
                None => ours,
            });
        }
        let of_task = |(task, _): &(&str, &str)| {
            results.mean(variant.name, task, |s| Some(s.seconds_total)).map(|mean| mean.mean)
        };
        let seconds = Mean::of(&tasks.iter().filter_map(of_task).collect::<Vec<_>>());
        row.push(cell(seconds.map(|mean| Mean { error: None, ..mean }), 0));
        rows.push(row);
    }
    let mut head = strings(&["method"]);
    head.extend(tasks.iter().map(|(_, title)| (*title).to_owned()));
    head.push("seconds a run".to_owned());
    let mut text = format!(
        "C2ST after the last round, mean ± standard error over the runs' seeds (0.5 is perfect). That of each run is the mean \
         over {CLASSIFIER_SEEDS} classifier seeds.\n\n{}\n",
        table(&head, &rows)
    );
    for (i, (task, title)) in tasks.iter().enumerate() {
        let of = |name| results.last(name, task, c2st);
        if let (Some(tgrr), Some(snse)) = (of("tgrr"), of("snse")) {
            text.push_str(&format!("- {title}, TGRR better than SNSE: {}\n", tgrr.below(&snse)));
        }
        if let (Some(ours), Some(printed)) = (of("tgrr"), paper::of(&paper::C2ST, "tgrr", i)) {
            let word = if ours.mean <= printed.mean { "**lower**" } else { "**higher**" };
            text.push_str(&format!(
                "- {title}, our TGRR against the paper's: {word}, {ours} against {:.3}\n",
                printed.mean
            ));
        }
    }
    Section::new(Target::Table2, "Table 2: accuracy after all rounds", text, results.csv())
}

/// SNSE with its published settings.
pub fn published(results: &Results, tasks: Tasks) -> Section {
    let mut rows = Vec::new();
    for variant in PUBLISHED {
        for (i, (task, title)) in tasks.iter().enumerate() {
            let printed = paper::of(&paper::C2ST, "snse", i);
            let mean = |of: fn(&Summary) -> Option<f64>| results.mean(variant.name, task, of);
            rows.push(vec![
                variant.title.to_owned(),
                (*title).to_owned(),
                cell(results.last(variant.name, task, c2st), 3),
                printed.map_or("–".to_owned(), |p| format!("{:.3} ± {:.3}", p.mean, p.spread)),
                cell(mean(|s| Some(s.seconds_total)), 0),
                cell(mean(|s| s.peak_rss_mb), 0),
            ]);
        }
    }
    let head = ["method", "task", "C2ST", "paper", "seconds", "memory, MB"];
    let text = format!(
        "The energy network, standardised by all rounds, new weights every round, 10 sweeps an iteration, batch 512. The \
         region of the proposals is found by 20,000 draws instead of 100,000.\n\n{}",
        table(&strings(&head), &rows)
    );
    Section::new(Target::Snse, "SNSE with its published settings", text, results.csv())
}

/// How long the runs are, in words.
fn length(results: &Results) -> String {
    let Some((run, _)) = results.runs.first() else { return "no run".to_owned() };
    let config = &run.config;
    let steps = config.train.steps.map_or(String::new(), |steps| match config.train.cycles {
        1 => format!(" with {steps} steps in the last"),
        cycles => format!(" with up to {cycles} times {steps} steps in the last"),
    });
    format!("{} rounds of {} simulations{steps}", config.rounds, config.simulations)
}

/// The ablation that the paper lacks.
pub fn ablation(results: &Results, tasks: Tasks) -> Section {
    let mut rows = Vec::new();
    for variant in ABLATION {
        let mut row = vec![variant.title.to_owned()];
        row.extend(tasks.iter().map(|(task, _)| cell(results.last(variant.name, task, c2st), 3)));
        rows.push(row);
    }
    let mut head = strings(&["changed"]);
    head.extend(tasks.iter().map(|(_, title)| (*title).to_owned()));
    let mut text = format!(
        "C2ST of TGRR after {}, one thing changed at a time.\n\n{}\n",
        length(results),
        table(&head, &rows)
    );
    for variant in &ABLATION[1..] {
        for (task, title) in tasks {
            let of = |name| results.last(name, task, c2st);
            if let (Some(base), Some(changed)) = (of("short"), of(variant.name)) {
                text.push_str(&format!(
                    "- {title}, the default better than {}: {}\n",
                    variant.title,
                    base.below(&changed)
                ));
            }
        }
    }
    Section::new(Target::Ablation, "Ablation", text, results.csv())
}
