//! Calibration checks against numbers of sbi (`data/calibration_vectors.json`, made by the script beside it).

use didyma::calibration::{Ranks, Tarp};
use didyma::rng::Streams;
use didyma::{Result, Rows};
use serde_json::Value;

fn numbers(case: &Value, name: &str) -> Vec<f64> {
    case[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// sbi's numbers are of single precision, and the curve is a sum of ten of them: 10 · 6e-8.
fn close(name: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 6e-7, "{name}: {found} instead of {expected}");
    }
}

#[test]
fn ranks_and_curves_are_those_of_sbi() -> Result<()> {
    let data: Value =
        serde_json::from_str(include_str!("../data/calibration_vectors.json")).unwrap();
    let whole = |name: &str| data[name].as_u64().unwrap() as usize;
    let (count, dim, streams) = (whole("draws"), whole("dim"), Streams::new(1));
    for case in data["cases"].as_array().unwrap() {
        let [theta, draws, references, x] =
            ["theta", "draws", "references", "x"].map(|name| numbers(case, name));
        let log_prob = |theta: &[f64], x: &[f64]| {
            -theta.iter().zip(x).map(|(t, x)| (t - x).powi(2)).sum::<f64>()
        };
        let scores: Vec<f64> =
            theta.chunks(dim).zip(x.chunks(dim)).map(|(theta, x)| log_prob(theta, x)).collect();
        let draw_scores: Vec<f64> = draws
            .chunks(dim)
            .enumerate()
            .map(|(i, draw)| log_prob(draw, &x[i / count * dim..][..dim]))
            .collect();
        let (theta, draws) = (Rows::new("theta", &theta, dim)?, Rows::new("draws", &draws, dim)?);
        let ranks = Ranks::of(theta, draws, &streams)?;
        let expected: Vec<usize> =
            numbers(case, "ranks").iter().map(|&rank| rank as usize).collect();
        assert_eq!(ranks.below, expected);
        // Of a p-value in single precision.
        close("ks_p_values", &ranks.ks_p_values(), &numbers(case, "ks_p_values"));
        let density =
            Ranks::of_scores(&scores, Rows::new("scores", &draw_scores, count)?, &streams)?;
        let expected = numbers(case, "log_density_ranks");
        assert!(density.below.iter().zip(expected).all(|(&found, rank)| found == rank as usize));
        let references = Rows::new("references", &references, dim)?;
        let tarp = Tarp::of(theta, draws, Some(references), None, 2, &streams)?;
        close("alpha", &tarp.alpha, &numbers(case, "alpha"));
        close("ecp", &tarp.ecp, &numbers(case, "ecp"));
        close("area", &[tarp.area], &[case["area"].as_f64().unwrap()]);
        close("ks_p_value", &[tarp.ks_p_value], &[case["ks_p_value"].as_f64().unwrap()]);
    }
    Ok(())
}
