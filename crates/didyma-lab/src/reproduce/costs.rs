//! Table 3: time and memory, a long run, and how the cost grows.

use super::paper::{self, Printed};
use super::plan::{GROWTH, LONG, NEURON, NEURONS, Tasks};
use super::results::{Results, cell, table};
use super::tables::strings;
use super::{Section, Target};
use didyma::RoundReport;
use didyma::run::Summary;
use didyma_plot::{Curve, CurvePoint, Panel, Place, curves};

/// Table 3: time and memory, 20 rounds, and growth.
pub fn table_3(results: &Results, tasks: Tasks) -> Section {
    let mut rows = Vec::new();
    for (name, title) in [("tgrr", "TGRR"), ("snse", "SNSE")] {
        let mut row = vec![title.to_owned()];
        for (i, (task, _)) in tasks.iter().enumerate() {
            let seconds = cell(results.mean(name, task, |s| Some(s.seconds_total)), 0);
            let printed = paper::of(&paper::MINUTES, name, i);
            row.push(match printed {
                Some(Printed { mean, spread }) => {
                    format!("{seconds} s (paper: {mean:.0} ± {spread:.0} min)")
                }
                None => format!("{seconds} s"),
            });
        }
        let memory = tasks.iter().flat_map(|(task, _)| results.of(name, task));
        let memory = memory.filter_map(|s| s.peak_rss_mb).reduce(f64::max);
        let memory = memory.map_or("–".to_owned(), |mb| format!("{mb:.0} MB"));
        let known = paper::MEMORY_GB.iter().find(|(method, _)| *method == name);
        let printed = known.map_or(String::new(), |(_, gb)| format!(" (paper: {gb:.0} GB)"));
        row.push(format!("{memory}{printed}"));
        rows.push(row);
    }
    let mut head = strings(&["method"]);
    head.extend(tasks.iter().map(|(_, title)| (*title).to_owned()));
    head.push("peak memory".to_owned());
    let mut text = table(&head, &rows);
    text.push_str(&neurons(results));
    text.push_str(&long_run(results));
    let (words, svg) = growth(results, *tasks.get(1).unwrap_or(&tasks[0]));
    text.push_str(&words);
    let mut section = Section::new(Target::Table3, "Table 3: time and memory", text, results.csv());
    section.figures.extend(svg.map(|svg| ("growth".to_owned(), svg)));
    section
}

fn neurons(results: &Results) -> String {
    let mut rows = Vec::new();
    for (variant, (_, printed)) in NEURONS.iter().zip(paper::NEURON_MINUTES) {
        let ours = cell(results.mean(variant.name, NEURON, |s| Some(s.seconds_total)), 0);
        let printed = format!("{:.0} ± {:.0}", printed.mean, printed.spread);
        rows.push(vec![variant.title.to_owned(), ours, printed]);
    }
    let head = strings(&["Hodgkin-Huxley", "seconds", "paper, minutes"]);
    let mut text = format!("\n{}", table(&head, &rows));
    let of = |i: usize| results.mean(NEURONS[i].name, NEURON, |s| Some(s.seconds_total));
    if let (Some(atomic), Some(tgrr)) = (of(0), of(1)) {
        let ratio = tgrr.mean / atomic.mean;
        text.push_str(&format!(
            "\nTGRR takes {ratio:.2} times as long as atomic APT (paper: 1.84).\n"
        ));
    }
    text
}

fn long_run(results: &Results) -> String {
    let Some(run) = results.of(LONG.name, "two-moons").next() else { return String::new() };
    let seconds = |r: &RoundReport| r.seconds_simulate + r.seconds_train + r.seconds_score;
    let each: Vec<String> = run.rounds.iter().map(|r| format!("{:.1}", seconds(r))).collect();
    let last = last_c2st(run);
    format!(
        "\nTwo Moons, {} rounds of TGRR: {:.0} s, C2ST {last}. Seconds of each round: {}.\n",
        run.rounds.len(),
        run.seconds_total,
        each.join(", ")
    )
}

/// The C2ST of a run's last round with its standard error over classifier seeds, or a dash.
fn last_c2st(run: &Summary) -> String {
    let words = run.rounds.last().and_then(|round| round.scores.c2st_words(3));
    words.unwrap_or("–".to_owned())
}

/// Seconds and accuracy by the number of simulations.
fn growth(results: &Results, (task, title): (&str, &str)) -> (String, Option<String>) {
    let points: Vec<(f64, &Summary)> = GROWTH
        .iter()
        .filter_map(|variant| results.of(variant.name, task).find(|s| s.seed == 1))
        .map(|s| (f64::from(s.config.rounds) * s.config.simulations as f64, s))
        .collect();
    if points.is_empty() {
        return (String::new(), None);
    }
    let rows: Vec<Vec<String>> = points
        .iter()
        .map(|(n, s)| vec![n.to_string(), format!("{:.0}", s.seconds_total), last_c2st(s)])
        .collect();
    let head = strings(&["simulations", "seconds", "C2ST"]);
    let text = format!(
        "\nTGRR on {title} by the number of simulations, seed 1 (± over classifier seeds):\n\n{}",
        table(&head, &rows)
    );
    let curve = |name: &str, of: &dyn Fn(&Summary) -> Option<(f64, f64)>| {
        let point =
            |(x, s): &(f64, &Summary)| of(s).map(|(y, error)| CurvePoint { x: *x, y, error });
        Curve {
            name: name.to_owned(),
            points: points.iter().filter_map(point).collect(),
            dashed: false,
        }
    };
    let panel = |y_label: &str, curve: Curve| Panel {
        title: String::new(),
        x_label: "simulations in all rounds".to_owned(),
        y_label: y_label.to_owned(),
        log_x: true,
        log_y: false,
        curves: vec![curve],
    };
    let scored = |s: &Summary| {
        let scores = s.rounds.last()?.scores;
        Some((scores.c2st?, scores.c2st_error.unwrap_or(0.0)))
    };
    let panels = [
        panel("seconds", curve("TGRR", &|s| Some((s.seconds_total, 0.0)))),
        panel("C2ST", curve("TGRR", &scored)),
    ];
    (text, Some(curves("Cost by the number of simulations", &panels, Place::Alone)))
}
