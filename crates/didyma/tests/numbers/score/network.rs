//! Shape, diffusion, loss and gradient.

use super::model;
use didyma::Error;
use didyma::flow::Gradient;
use didyma::rng::{Purpose, Streams};
use didyma::score::{Moment, Output, ScoreConfig, ScoreModel, Tape};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

#[test]
fn parameters_are_as_many_as_published() {
    for (theta_dim, x_dim, energy, direct) in [
        (2, 2, 246_589, 246_846),
        (4, 9, 251_971, 252_742),
        (3, 5, 247_613, 248_127),
        (8, 7, 250_431, 252_230),
    ] {
        for (output, expected) in [(Output::Energy, energy), (Output::Direct, direct)] {
            let config = ScoreConfig { output, ..ScoreConfig::new(theta_dim, x_dim) };
            let model = ScoreModel::new(config).unwrap();
            assert_eq!(model.params_len(), expected);
            assert_eq!(model.tensors().last().unwrap().range.end, expected);
        }
    }
}

/// Six digits of a closed form.
#[test]
fn the_diffusion_preserves_variance() {
    for (t, mean, std) in
        [(0.1, 0.974847, 0.222876), (0.5, 0.534259, 0.845321), (1.0, 0.081880, 0.996642)]
    {
        let found = Moment::at(t);
        assert!(
            (found.mean - mean).abs() < 5.1e-7 && (found.std - std).abs() < 5.1e-7,
            "{found:?}"
        );
    }
    // Near 0 the variance is ½ t² (β₁ − β₀) + t β₀ up to a relative 1e-10, where 1 − m² has lost all digits.
    let t = 1e-8;
    let variance = 0.5 * t * t * 9.99 + 0.01 * t;
    assert!((Moment::at(t).std.powi(2) / variance - 1.0).abs() < 1e-9);
}

#[test]
fn weights_start_within_their_bound() {
    let model = ScoreModel::new(ScoreConfig::new(3, 5)).unwrap();
    let params = model.initial_params(&mut Streams::new(1).stream(Purpose::Weights, 0, 0));
    for pair in model.tensors().chunks(2) {
        let bound = 1.0 / (pair[0].shape[1] as f32).sqrt();
        let values = &params[pair[0].range.start..pair[1].range.end];
        let largest = values.iter().fold(0.0f32, |a, v| a.max(v.abs()));
        // At least 260 uniform numbers: the largest is below 0.9 of the bound with probability 0.9²⁶⁰ = 1e-12.
        assert!((0.9 * bound..=bound).contains(&largest), "{}: {largest}", pair[0].name);
    }
}

#[test]
fn bad_settings_and_parameters_are_refused() {
    for config in [
        ScoreConfig { units: 0, ..ScoreConfig::new(1, 1) },
        ScoreConfig { ode_steps: 0, ..ScoreConfig::new(1, 1) },
        ScoreConfig::new(0, 1),
        ScoreConfig::new(1, 0),
    ] {
        assert!(matches!(ScoreModel::new(config), Err(Error::Setting { .. })));
    }
    let model = model(1, 1, Output::Direct, true);
    let mut params = vec![0.0f32; model.params_len()];
    assert!(model.check_params(&params).is_ok());
    params[7] = f32::NAN;
    assert!(matches!(model.check_params(&params), Err(Error::BadParams { index: 7, .. })));
    assert!(matches!(model.check_params(&params[1..]), Err(Error::Shape { .. })));
    let json = serde_json::to_string(model.config()).unwrap();
    assert!(json.contains(r#""output":"direct""#));
    assert_eq!(serde_json::from_str::<ScoreConfig>(&json).unwrap(), *model.config());
    let unknown = json.replace("units", "widgets");
    assert!(serde_json::from_str::<ScoreConfig>(&unknown).is_err());
}

/// Rows of a loss, always the same.
fn fill(model: &ScoreModel, rows: usize, tape: &mut Tape<f64>) {
    let mut rng = Streams::new(2).stream(Purpose::Synthetic, 0, 0);
    let mut numbers =
        |dim: usize| -> Vec<f64> { StandardNormal.sample_iter(&mut rng).take(dim).collect() };
    tape.clear();
    for row in 0..rows {
        let (theta, x) = (numbers(model.config().theta_dim), numbers(model.config().x_dim));
        let mut noise = numbers(model.config().theta_dim).into_iter();
        let t = (row as f64 + 0.5) / rows as f64;
        tape.row(theta, x, (t, || noise.next().unwrap()), 0.1 + 0.05 * row as f64);
    }
}

/// The loss is smooth, so central differences with steps h and 2h, extrapolated, are off by O(h⁴) = 1e-16 and by the
/// rounding ε |f| / h of sums of a hundred terms: 1e-6 of the gradient of a tensor as in `laws`, and that rounding.
#[test]
fn backward_is_the_derivative_of_the_loss() {
    for (theta_dim, rows) in [(1, 5), (3, 21)] {
        for output in [Output::Energy, Output::Direct] {
            for scaled in [true, false] {
                check_gradient(&model(theta_dim, 2, output, scaled), rows);
            }
        }
    }
}

fn check_gradient(model: &ScoreModel, rows: usize) {
    let mut rng = Streams::new(3).stream(Purpose::Weights, 0, 0);
    let mut params: Vec<f64> =
        (0..model.params_len()).map(|_| rng.random_range(-0.7..0.7)).collect();
    let mut tape = Tape::new(model);
    let mut gradient = vec![f64::NAN; params.len()];
    fill(model, rows, &mut tape);
    let sum = Gradient { sum: &mut gradient, accumulate: false };
    let value = model.backward(&params, &mut tape, sum);
    assert_eq!(value, model.loss(&params, &mut tape));
    let mut loss = |params: &[f64]| {
        fill(model, rows, &mut tape);
        model.loss(params, &mut tape)
    };
    let h = 1e-4;
    for tensor in model.tensors() {
        let (mut size, mut error) = (0.0, 0.0);
        let entries = tensor.range.clone().step_by(1 + tensor.range.len() / 40);
        for i in entries {
            let start = params[i];
            let mut slope = |h: f64| {
                params[i] = start + h;
                let above = loss(&params);
                params[i] = start - h;
                let below = loss(&params);
                params[i] = start;
                (above - below) / (2.0 * h)
            };
            let numerical = (4.0 * slope(h) - slope(2.0 * h)) / 3.0;
            size += gradient[i] * gradient[i];
            error += (numerical - gradient[i]).powi(2);
        }
        let rounding = 100.0 * f64::EPSILON * value / h;
        let (size, error) = (f64::sqrt(size), f64::sqrt(error));
        let config = model.config();
        assert!(
            error <= 1e-6 * size + rounding,
            "{}: {error:e} of {size:e}, {config:?}",
            tensor.name
        );
        // The bias of an energy changes nothing; all else does.
        let constant = config.output == Output::Energy && tensor.name == "main.last.bias";
        assert_eq!(size == 0.0, constant, "{}", tensor.name);
    }
}

/// Gradients are added to what is there, and rows that fill up a lane count nothing.
#[test]
fn gradients_add_up_over_tapes() {
    let model = model(2, 2, Output::Energy, true);
    let params: Vec<f64> = {
        let mut rng = Streams::new(4).stream(Purpose::Weights, 0, 0);
        model.initial_params(&mut rng).iter().map(|&p| f64::from(p)).collect()
    };
    let mut tape = Tape::new(&model);
    let mut sums = [vec![0.0; params.len()], vec![0.0; params.len()]];
    // A full panel first, so that a later one finds its memory in use.
    for (to, rows, accumulate) in [(0, 64, false), (0, 3, false), (0, 3, true), (1, 3, false)] {
        fill(&model, rows, &mut tape);
        let sum = &mut sums[to];
        model.backward(&params, &mut tape, Gradient { sum, accumulate });
    }
    let [twice, once] = sums;
    for (twice, once) in twice.iter().zip(once) {
        // Sums of up to 32 products in two orders.
        assert!((twice - 2.0 * once).abs() <= 1e-13 * (1.0 + once.abs()));
    }
}

/// The loss in f32 on SIMD kernels against f64 in plain loops: sums of up to 256 products in six layers, whose rounding
/// errors are of random sign, so about √256 · 6 ε ≈ 1e-5 of the loss.
#[test]
fn single_precision_is_close_to_double() {
    for output in [Output::Energy, Output::Direct] {
        let config = ScoreConfig { output, ..ScoreConfig::new(4, 9) };
        let model = ScoreModel::new(config).unwrap();
        let single = model.initial_params(&mut Streams::new(5).stream(Purpose::Weights, 0, 0));
        let double: Vec<f64> = single.iter().map(|&p| f64::from(p)).collect();
        let mut tapes = (Tape::<f32>::new(&model), Tape::<f64>::new(&model));
        for row in 0..50 {
            let number = |k: usize| ((row * 37 + k * 11) as f64 * 0.7).sin() as f32;
            let (theta, x): (Vec<f32>, Vec<f32>) =
                ((0..4).map(number).collect(), (4..13).map(number).collect());
            let t = (row as f64 + 0.5) / 50.0;
            let noise = || {
                let mut k = 13;
                move || {
                    k += 1;
                    f64::from(number(k))
                }
            };
            tapes.0.row(theta.iter().copied(), x.iter().copied(), (t, noise()), 0.02);
            let widen = |row: Vec<f32>| row.into_iter().map(f64::from);
            tapes.1.row(widen(theta), widen(x), (t, noise()), 0.02);
        }
        let (single, double) =
            (model.loss(&single, &mut tapes.0), model.loss(&double, &mut tapes.1));
        assert!((single - double).abs() < 1e-5 * double, "{output:?}: {single} {double}");
    }
}
