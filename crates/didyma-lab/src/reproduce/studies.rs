//! Complexity and convergence on the toys, whose loss is known exactly.

use super::results::table;
use super::{Section, Target};
use crate::{
    ComplexityStudy, ConvergenceStudy, CostPoint, GapPoint, MethodConvergence, SchemeCost, Toy,
    Verdict,
};
use didyma::levels::Estimate;
use didyma::rng::Streams;
use didyma::{Named, parallel};
use didyma_plot::{Curve, CurvePoint, Panel, Place, curves};

/// The seed of the studies.
const SEED: u64 = 1;

/// What an error of the loss costs, for four schemes.
pub fn complexity(quick: bool) -> anyhow::Result<Section> {
    let toy = Toy::named("benign").expect("a toy");
    let study = if quick { ComplexityStudy::quick(toy) } else { ComplexityStudy::full(toy) };
    let report = study.run(Streams::new(SEED), parallel::cores())?;
    let mut csv =
        "scheme,epsilon,cost,cost_error,rmse,rmse_error,predicted_cost,replicates\n".to_owned();
    let mut rows = Vec::new();
    for SchemeCost { scheme, points, exponent, predicted, .. } in &report.schemes {
        let theory = scheme.exponent();
        let away = (exponent.mean - theory).abs() / exponent.error;
        let verdict = match away {
            a if a <= 1.0 => "within one standard error",
            a if a <= 2.0 => "within two standard errors",
            _ => "**off by more than two standard errors**",
        };
        rows.push(vec![
            scheme.name().to_owned(),
            format!("{theory:.0}"),
            format!("{exponent:.3}"),
            format!("{predicted:.3}"),
            verdict.to_owned(),
        ]);
        for CostPoint { epsilon, cost, rmse, predicted_cost, replicates, .. } in points {
            csv.push_str(&format!(
                "{},{epsilon},{},{},{},{},{predicted_cost},{replicates}\n",
                scheme.name(),
                cost.mean,
                cost.error,
                rmse.mean,
                rmse.error
            ));
        }
    }
    let head = ["scheme", "theory", "exponent of the cost", "by the pilot's moments", "verdict"];
    let text = format!(
        "Pairs (θ, x) that were evaluated for a root mean squared error ε of the loss, on the toy `{}` (exact loss {:.6}); cost \
         ∝ ε^exponent, fitted to realised errors and costs of independent replicates.\n\n{}",
        report.toy,
        report.loss,
        table(&head.map(str::to_owned), &rows)
    );
    let title = "Complexity: ε⁻³ and ε⁻²";
    let mut section = Section::new(Target::Complexity, title, text, csv);
    section.figures.push(("complexity".to_owned(), cost_figure(&report.schemes)));
    Ok(section)
}

fn cost_figure(schemes: &[SchemeCost]) -> String {
    let measured = |scheme: &SchemeCost| {
        let point =
            |p: &CostPoint| CurvePoint { x: p.rmse.mean, y: p.cost.mean, error: p.cost.error };
        let points = scheme.points.iter().map(point).collect();
        Curve { name: scheme.scheme.name().to_owned(), points, dashed: false }
    };
    let theory = |exponent: f64, scheme: &SchemeCost| {
        let start = &scheme.points[0];
        let point = |p: &CostPoint| {
            let y = start.cost.mean * (p.epsilon / start.epsilon).powf(exponent);
            CurvePoint { x: p.epsilon, y, error: 0.0 }
        };
        let points = scheme.points.iter().map(point).collect();
        Curve { name: format!("ε^{exponent:.0}"), points, dashed: true }
    };
    let mut all: Vec<Curve> = schemes.iter().map(measured).collect();
    // One line of each slope, through the first scheme that should have it.
    for exponent in [-3.0, -2.0] {
        let of = schemes.iter().find(|s| s.scheme.exponent() == exponent && !s.points.is_empty());
        all.extend(of.map(|scheme| theory(exponent, scheme)));
    }
    let panel = Panel {
        title: String::new(),
        x_label: "root mean squared error".to_owned(),
        y_label: "pairs evaluated".to_owned(),
        log_x: true,
        log_y: true,
        curves: all,
    };
    curves("Cost of an error ε", &[panel], Place::Alone)
}

/// Constant-step descent with every estimator.
pub fn convergence(quick: bool) -> anyhow::Result<Section> {
    let toy = Toy::named("sharp").expect("a toy");
    let study = if quick { ConvergenceStudy::quick(toy) } else { ConvergenceStudy::full(toy) };
    let report = study.run(Streams::new(SEED), parallel::cores())?;
    let mut csv = "method,gamma,step,gap,gap_error\n".to_owned();
    let mut rows = Vec::new();
    for method in &report.methods {
        rows.push(convergence_row(method));
        for curve in &method.curves {
            for point in &curve.points {
                csv.push_str(&format!(
                    "{},{},{},{},{}\n",
                    method.name, curve.gamma, point.step, point.gap.mean, point.gap.error
                ));
            }
        }
    }
    let mut head = ["method", "floor by theory", "plateau, extrapolated to step 0"]
        .map(str::to_owned)
        .to_vec();
    let gammas =
        report.methods.first().map(|m| m.curves.iter().map(|c| c.gamma).collect::<Vec<_>>());
    head.extend(gammas.iter().flatten().map(|gamma| format!("plateau at γ = {gamma}")));
    head.push("verdict".to_owned());
    let text = format!(
        "Optimality gap L(φ) − L(φ*) of descent with a constant step γ and batches of {} on the toy `{}`, from {:.3}. With the \
         theorem corrected the gap is at most a part that shrinks with every step, a noise part ∝ γ, and a bias part that no \
         step size removes.\n\n{}",
        report.batch,
        report.toy,
        report.initial_gap,
        table(&head, &rows)
    );
    let mut section = Section::new(Target::Convergence, "Convergence of descent", text, csv);
    section.figures.push(("convergence".to_owned(), gap_figure(&report.methods)));
    Ok(section)
}

fn convergence_row(method: &MethodConvergence) -> Vec<String> {
    let scientific = |e: &Estimate| format!("{:.1e} ± {:.0e}", e.mean, e.error);
    let told = |e: &Option<Estimate>| e.as_ref().map_or("–".to_owned(), scientific);
    let mut row = vec![method.name.clone(), told(&method.floor), told(&method.extrapolated)];
    row.extend(method.curves.iter().map(|curve| match curve.diverged {
        0 => told(&curve.plateau),
        n => format!("{n} of {} diverged", curve.replicates),
    }));
    let verdict = match method.verdict {
        Verdict::FallsWithStep => "falls with the step: no bias seen",
        Verdict::LevelsOff => "levels off: biased",
        Verdict::Unresolved if method.floor.is_none() => "its mean has no minimum here",
        Verdict::Unresolved => "noise hides the floor",
        Verdict::Diverges => "diverges",
    };
    row.push(verdict.to_owned());
    row
}

/// A panel for each step size.
fn gap_figure(methods: &[MethodConvergence]) -> String {
    let count = methods.iter().map(|method| method.curves.len()).max().unwrap_or(0);
    let panels: Vec<Panel> = (0..count)
        .map(|i| {
            let drawn = methods.iter().filter(|m| m.curves.get(i).is_some_and(|c| c.diverged == 0));
            let curve = |method: &MethodConvergence| {
                let points = method.curves[i].points.iter().filter(|p| p.step > 0);
                let point =
                    |p: &GapPoint| CurvePoint { x: p.step as f64, y: p.gap.mean, error: 0.0 };
                Curve {
                    name: method.name.clone(),
                    points: points.map(point).collect(),
                    dashed: false,
                }
            };
            let gamma = methods.iter().find_map(|m| m.curves.get(i)).map_or(0.0, |c| c.gamma);
            Panel {
                title: format!("γ = {gamma}"),
                x_label: "steps".to_owned(),
                y_label: "gap".to_owned(),
                log_x: true,
                log_y: true,
                curves: drawn.map(curve).collect(),
            }
        })
        .collect();
    curves("Optimality gap by steps", &panels, Place::Alone)
}
