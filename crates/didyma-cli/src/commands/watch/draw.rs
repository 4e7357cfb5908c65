//! The picture of a run: what is known of it at one moment as lines of text, as many as there is room for.

use super::look::{Look, Marginal};
use super::words::{longest, short, wrapped};
use crate::terminal::{bars, bin, bounds, curve};
use didyma::EpochRecord;
use didyma::report::round_line;
use didyma::run::Summary;

/// How much is drawn of everything.
#[derive(Clone, Copy)]
struct Plan {
    /// Parameters.
    parameters: usize,
    /// Lines of a histogram, without its axis.
    bars: usize,
    /// Lines of the losses, without their titles.
    chart: usize,
    /// Finished rounds, the last ones.
    rounds: usize,
    /// Empty lines between the parts.
    gap: usize,
}

/// From generous to sparing; the first that fits is drawn, or the last one with fewer parameters.
const PLANS: [Plan; 4] = [
    Plan { parameters: usize::MAX, bars: 3, chart: 8, rounds: 5, gap: 1 },
    Plan { parameters: usize::MAX, bars: 2, chart: 8, rounds: 3, gap: 1 },
    Plan { parameters: usize::MAX, bars: 1, chart: 8, rounds: 2, gap: 0 },
    SPARING,
];
const SPARING: Plan = Plan { parameters: usize::MAX, bars: 1, chart: 4, rounds: 1, gap: 0 };

/// Columns of a chart beyond which it becomes no clearer, and below which it shows nothing.
const COLUMNS: (usize, usize) = (8, 60);

/// The run in lines of about this width, at most `height` of them. A word that is wider alone is not cut.
pub fn picture(look: &Look, width: usize, height: usize) -> Vec<String> {
    let fewer = (1..look.marginals.len()).rev();
    let fewer = fewer.map(|parameters| Plan { parameters, ..SPARING });
    let mut drawn = PLANS.into_iter().chain(fewer).map(|plan| lines(look, width, plan));
    let fitting = drawn.find(|lines| lines.len() <= height);
    fitting.unwrap_or_else(|| {
        let mut lines = lines(look, width, Plan { parameters: 1, ..SPARING });
        lines.truncate(height);
        lines
    })
}

/// Warnings are part of the header, so that they are seen where the room ends.
fn lines(look: &Look, width: usize, plan: Plan) -> Vec<String> {
    let members = look.summary.config.ensemble.members;
    let parts = [
        header(look, width),
        marginals(look, width, plan),
        losses(&look.epochs, members, width, plan.chart),
        rounds(&look.summary, width, plan.rounds),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let lines = parts.join(&vec![String::new(); plan.gap][..]);
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

fn header(look: &Look, width: usize) -> Vec<String> {
    let Look { summary, worked_on, stored, failed, .. } = look;
    let Summary { task, method, seed, config, rounds, .. } = summary;
    let (done, all) = (rounds.len(), config.rounds);
    let state = match (summary.finished, worked_on) {
        (true, false) => format!("finished, {all} rounds in {:.0} s", summary.seconds_total),
        (true, true) => format!("all {all} rounds done, writing the results"),
        (false, true) => format!("round {} of {all}", done + 1),
        (false, false) => format!("round {} of {all}, unfinished and not running", done + 1),
    };
    let total = config.simulations * all as usize;
    let mut lines = wrapped(&format!("{task} by {method}, seed {seed}: {state}"), " ", width);
    lines.push(format!("{stored} of {total} simulations stored, {failed} failed"));
    if !summary.finished && !worked_on {
        let how = format!("no process works on it; to go on: didyma resume {}", look.dir.display());
        lines.extend(wrapped(&how, " ", width));
    }
    let warnings = summary.warnings.iter();
    lines.extend(warnings.flat_map(|text| wrapped(&format!("warning: {text}"), " ", width)));
    lines
}

fn marginals(look: &Look, width: usize, plan: Plan) -> Vec<String> {
    let shown = &look.marginals[..look.marginals.len().min(plan.parameters)];
    if shown.is_empty() {
        return vec!["no posterior yet, since no round is finished".to_owned()];
    }
    let names = longest(shown.iter().map(|marginal| &marginal.name));
    let notes: Vec<[String; 2]> = shown.iter().map(notes).collect();
    let beside = names + 2 + 2 + longest(notes.iter().flatten());
    let columns = width.saturating_sub(beside).clamp(COLUMNS.0, COLUMNS.1);
    let mut lines = vec![format!("posterior after round {}", look.summary.rounds.len())];
    for (marginal, [moments, range]) in shown.iter().zip(&notes) {
        let Marginal { name, low, high, truth, draws, .. } = marginal;
        let mut rows = bars(draws, (*low, *high), columns, plan.bars);
        rows.push(axis(truth.and_then(|truth| bin(truth, (*low, *high), columns)), columns));
        let labels = std::iter::once(name.as_str()).chain(std::iter::repeat(""));
        for (i, (row, label)) in rows.iter().zip(labels).enumerate() {
            let note = match i {
                0 => moments.as_str(),
                _ if i == plan.bars => range,
                _ => "",
            };
            lines.push(format!("{label:<names$}  {row}  {note}"));
        }
    }
    let more = look.marginals.len() - shown.len();
    if more > 0 {
        lines.push(format!("{more} more parameters need a higher window, or didyma show"));
    }
    lines
}

/// The notes beside a histogram, and beside its axis.
fn notes(marginal: &Marginal) -> [String; 2] {
    let Marginal { low, high, mean, sd, truth, .. } = marginal;
    let truth = truth.map_or(String::new(), |truth| format!(", true {}", short(truth)));
    [
        format!("{} ± {}", short(*mean), short(*sd)),
        format!("{} to {}{truth}", short(*low), short(*high)),
    ]
}

/// The axis of a histogram, with the true value.
fn axis(mark: Option<usize>, columns: usize) -> String {
    (0..columns).map(|column| if mark == Some(column) { '▲' } else { '─' }).collect()
}

/// Training and validation loss side by side, on one scale.
fn losses(epochs: &[EpochRecord], members: usize, width: usize, rows: usize) -> Vec<String> {
    let Some(last) = epochs.last() else { return Vec::new() };
    let train: Vec<Option<f64>> = epochs.iter().map(|epoch| epoch.train_loss).collect();
    let validation: Vec<Option<f64>> = epochs.iter().map(|epoch| epoch.validation_loss).collect();
    let member = match members {
        1 => String::new(),
        _ => format!(" of member {} of {members}", last.member + 1),
    };
    let title = format!("losses of round {}{member}, epochs 1 to {}", last.round, last.epoch);
    let range = bounds(train.iter().chain(&validation).copied().flatten());
    if range.0 > range.1 {
        return vec![format!("{title}: none was finite")];
    }
    let (top, bottom) = (short(range.1), short(range.0));
    let names = longest([&top, &bottom]);
    let columns = (width.saturating_sub(names + 4) / 2).clamp(COLUMNS.0, COLUMNS.1);
    let now = |name: &str, loss: Option<f64>| {
        format!("{name} {}", loss.map_or("not finite".to_owned(), short))
    };
    let heads = [now("training", last.train_loss), now("validation", last.validation_loss)];
    let mut lines = vec![title, format!("{:names$}  {:columns$}  {}", "", heads[0], heads[1])];
    let charts = [train, validation].map(|losses| curve(&losses, range, columns, rows));
    for (i, (left, right)) in charts[0].iter().zip(&charts[1]).enumerate() {
        let label = match i {
            0 => top.as_str(),
            _ if i == rows - 1 => &bottom,
            _ => "",
        };
        lines.push(format!("{label:>names$} │{left} │{right}"));
    }
    lines
}

/// The last finished rounds; a line that is too long is broken between its scores.
fn rounds(summary: &Summary, width: usize, count: usize) -> Vec<String> {
    let rounds = &summary.rounds;
    let last = &rounds[rounds.len().saturating_sub(count)..];
    let line = |report| wrapped(&round_line(report, summary.config.rounds), "  ", width);
    last.iter().flat_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::words::letters;
    use super::*;
    use didyma::config::{Config, Profile};
    use didyma::estimator::Method;
    use didyma::run::Manifest;
    use didyma::training::StopReason;
    use didyma::{RoundReport, Scores};
    use std::path::Path;

    fn report(round: u32) -> RoundReport {
        RoundReport {
            round,
            simulations: 1000,
            failures: usize::from(round == 1),
            epochs: 20,
            steps: 200,
            stop_reason: StopReason::Budget,
            seconds_simulate: 1.0,
            seconds_train: 2.0,
            seconds_score: 0.0,
            train_loss: Some(1.0),
            validation_loss: Some(1.5),
            scores: Scores {
                c2st: Some(0.5),
                c2st_error: Some(0.004),
                mmd2: None,
                lmd: Some(-2.25),
                nlog: Some(1.0),
            },
            outside_prior: 0.0,
            members: Vec::new(),
            disagreement: None,
            pairs: 100,
            inner: None,
            levels: None,
            drawn_elsewhere: false,
            recentred: false,
            device: String::new(),
            validity: None,
            oddities: Vec::new(),
        }
    }

    fn summary(rounds: u32) -> Summary {
        let mut config = Config::new(Profile::Default, Method::Tgrr);
        config.ensemble.members = 1;
        Summary::new(&Manifest::of_task("mg1", config), (1..=rounds).map(report).collect())
    }

    /// Half of the draws in the first and half in the last quarter of the range.
    fn parameter(i: usize) -> Marginal {
        let (name, draws) = (format!("theta{i}"), [[0.5; 50], [3.5; 50]].concat());
        let truth = (i == 0).then_some(0.75);
        Marginal { name, low: 0.0, high: 4.0, mean: 2.0, sd: 1.5, truth, draws }
    }

    fn epoch(epoch: u32) -> EpochRecord {
        let loss = Some(1.0 / f64::from(epoch));
        let (round, member, seconds) = (3, 0, None);
        EpochRecord { round, member, epoch, train_loss: loss, validation_loss: loss, seconds }
    }

    fn look<'a>(rounds: u32, marginals: &'a [Marginal], epochs: u32) -> Look<'a> {
        let (dir, epochs) = (Path::new("runs/a"), (1..=epochs).map(epoch).collect());
        let summary = summary(rounds);
        Look { dir, summary, worked_on: true, stored: 2500, failed: 1, marginals, epochs }
    }

    #[test]
    fn everything_that_is_known_is_drawn() {
        let marginals = [parameter(0), parameter(1)];
        let lines = picture(&look(2, &marginals, 8), 80, usize::MAX);
        assert_eq!(lines[0], "mg1 by tgrr, seed 1: round 3 of 10");
        assert_eq!(lines[1], "2500 of 10000 simulations stored, 1 failed");
        let text = lines.join("\n");
        for part in [
            "warning: 1 of 2000 simulations failed",
            "posterior after round 2",
            "theta0        █                                       █        2 ± 1.5",
            "0 to 4, true 0.75",
            "losses of round 3, epochs 1 to 8",
            "training 0.125",
            "round  2/10: 1000 simulations, 20 epochs (budget), loss 1.500, 3.0 s\n",
            "C2ST 0.500 ± 0.004",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert_eq!(text.matches('▲').count(), 1, "one true value is known:\n{text}");
        assert!(lines.iter().all(|line| letters(line) <= 80), "{text}");
    }

    #[test]
    fn the_state_is_told() {
        let told = |finished: bool, worked_on| {
            let look = look(if finished { 10 } else { 2 }, &[], 0);
            header(&Look { worked_on, ..look }, 80).join("\n")
        };
        assert!(told(true, false).contains("finished, 10 rounds in 30 s"));
        assert!(told(true, true).contains("all 10 rounds done, writing the results"));
        assert!(!told(false, true).contains("resume"));
        let left = told(false, false);
        assert!(left.contains("round 3 of 10, unfinished and not running"), "{left}");
        assert!(left.contains("to go on: didyma resume runs/a"), "{left}");
    }

    #[test]
    fn a_run_that_has_just_begun_is_drawn() {
        let lines = picture(&look(0, &[], 0), 80, 24);
        assert!(lines[0].ends_with("round 1 of 10") && lines[3].starts_with("no posterior yet"));
        let none = EpochRecord { train_loss: None, validation_loss: None, ..epoch(1) };
        let lines = losses(&[none], 1, 80, 8);
        assert_eq!(lines, ["losses of round 3, epochs 1 to 1: none was finite"]);
    }

    #[test]
    fn windows_of_any_size_are_enough() {
        let marginals: Vec<Marginal> = (0..12).map(parameter).collect();
        let look = look(7, &marginals, 300);
        for height in 0..60 {
            for width in [0, 1, 20, 79, 400] {
                let lines = picture(&look, width, height);
                assert!(lines.len() <= height, "{width} x {height}:\n{}", lines.join("\n"));
            }
        }
        let small = picture(&look, 100, 24).join("\n");
        assert!(small.contains("theta3 ") && !small.contains("theta11"), "{small}");
        assert!(small.contains("more parameters need a higher window"), "{small}");
        assert!(small.contains("losses") && small.contains("round  7/10"), "{small}");
        let large = picture(&look, 100, 60).join("\n");
        assert!(large.contains("theta11") && !large.contains("more parameters"), "{large}");
    }
}
