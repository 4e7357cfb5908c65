//! `didyma alpha` and `didyma levels`.

use super::{didyma, json, number, refused, text};

#[test]
fn alpha_gives_the_papers_values_and_the_recipes() {
    // α and expected inner samples at M₀ = 8, as the closed forms give them.
    for (method, alpha, cost) in
        [("ru", 1.4, 20.519), ("grr", 1.209, 70.411), ("tgrr", 1.673, 34.637)]
    {
        let found = json(&["alpha", "--method", method, "--r2", "1.8"]);
        assert_eq!(found["method"], method);
        assert_eq!(number(&found["r2"]), 1.8);
        assert_eq!(number(&found["alpha_paper"]), alpha);
        assert!((number(&found["cost_paper"]) - cost).abs() < 1e-3);
        assert!((number(&found["alpha_recipe"]) - 1.4).abs() < 1e-12);
        let (paper, recipe) =
            (&found["variance_times_cost_paper"], &found["variance_times_cost_recipe"]);
        assert!(number(recipe) <= number(paper));
        assert!(found["cost_recipe"].is_number());
    }
    let found = json(&["alpha", "--method", "tgrr", "--r2", "1.8", "--base", "1", "--top", "3"]);
    assert_eq!((found["base"].as_u64(), found["top"].as_u64()), (Some(1), Some(3)));
    let found = json(&["alpha", "--method", "ru", "--r2", "1.8"]);
    assert_eq!((found["base"].as_u64(), found["top"].as_u64()), (Some(0), None));
    // Base variances of the specification: the best α with tails as in the paper.
    for (variance, alpha) in [("0.5", 0.72), ("1", 0.91), ("2", 1.08), ("3", 1.18)] {
        let args = ["alpha", "--method", "tgrr", "--r2", "1.8", "--base-variance", variance];
        assert!((number(&json(&args)["alpha_one_parameter"]) - alpha).abs() < 0.005);
    }
}

#[test]
fn levels_have_their_keys_rates_and_picture() {
    let folder = std::env::temp_dir().join(format!("didyma-levels-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let plot = folder.join("levels.svg");
    let path = plot.to_str().expect("a plain path");
    let args = ["levels", "--toy", "benign", "--budget", "200000", "--plot", path];
    let found = json(&args);
    let levels = found["levels"].as_array().expect("a list");
    assert_eq!(levels.len(), 7);
    for (i, level) in levels.iter().enumerate() {
        assert_eq!(level["level"].as_u64(), Some(i as u64));
        assert_eq!(number(&level["cost"]), f64::from(8 << i));
        for key in ["mean_loss", "second_moment_loss", "second_moment_gradient", "kurtosis"] {
            assert!(number(&level[key]).is_finite(), "{key}");
        }
    }
    // tgrr goes from level 2 to level 4 unless it is told otherwise.
    assert_eq!(
        (found["tails"].as_array().map(Vec::len), found["top"].as_u64()),
        (Some(2), Some(4))
    );
    for key in ["r1", "r1_se", "r2", "r2_se", "bias_rate"] {
        assert!(number(&found[key]).is_finite(), "{key}");
    }
    // A smoke test with a small budget: the slopes of theory within half a unit.
    assert!(
        (number(&found["r1"]) - 2.0).abs() < 0.5 && (number(&found["bias_rate"]) - 1.0).abs() < 0.5
    );
    let svg = std::fs::read_to_string(&plot).expect("the picture was written");
    assert!(svg.starts_with("<svg") && svg.contains("Δρ") && svg.trim_end().ends_with("</svg>"));
    assert_eq!(json(&args), found, "the same seed gives the same numbers");
    std::fs::remove_dir_all(folder).expect("the temporary folder goes");
}

#[test]
fn bad_arguments_are_refused_with_the_remedy() {
    for (args, parts) in [
        (&["alpha", "--method", "grr", "--r2", "1.05"][..], &["r2 is 1.05", "1.1", "tgrr"][..]),
        (&["alpha", "--method", "tgrr", "--r2", "-1"], &["r2 is -1", "above 0"]),
        (&["alpha", "--method", "tgrr", "--r2", "nan"], &["r2 is NaN"]),
        (&["alpha", "--method", "nested", "--r2", "1.8"], &["--method", "nested", "tgrr"]),
        (&["alpha", "--method", "grrr", "--r2", "1.8"], &["--method", "grr"]),
        (&["alpha", "--method", "tgrr"], &["--r2"]),
        (&["alpha", "--method", "tgrr", "--r2", "1.8", "--top", "1"], &["top is 1", "base (2)"]),
        (&["alpha", "--method", "tgrr", "--r2", "1.8", "--m0", "0"], &["m0 is 0"]),
        (&["alpha", "--method", "tgrr", "--r2", "1.8", "--base", "-1"], &["--base", "-1"]),
        (
            &["alpha", "--method", "tgrr", "--r2", "1.8", "--base-variance", "0"],
            &["base_variance is 0", "above 0"],
        ),
        (&["levels", "--toy", "harsh"], &["--toy", "benign", "four-d"]),
        (&["levels", "--toy", "mild", "--levels", "2"], &["levels is 2", "between 3"]),
        (&["levels", "--toy", "mild", "--method", "atomic"], &["--method", "atomic", "ru"]),
        (&["alpha", "--method", "tgrr", "--r2", "1.8", "--top", "2"], &["top is 2", "above base"]),
        (&["levels", "--toy", "mild", "--levels", "-1"], &["--levels", "whole number"]),
        (&["levels", "--toy", "mild", "--m0", "1000000"], &["levels is 6", "m0"]),
        (&["levels", "--toy", "mild", "--plot", "levels.png"], &["--plot", ".svg"]),
        (&["levels", "--toy", "mild", "--m0", "0"], &["m0 is 0"]),
        (&["levels", "--toy", "mild", "--budget", "many"], &["--budget", "whole number"]),
        (&["levels", "--toy", "mild", "--coupling", "loose"], &["--coupling", "inclusive"]),
        (
            &["levels", "--toy", "mild", "--budget", "1000", "--plot", "no/such/folder/plot.svg"],
            &["no/such/folder/plot.svg", "could not write"],
        ),
    ] {
        refused(args, parts);
    }
}

#[test]
fn options_without_effect_are_mentioned() {
    let output = didyma(&["alpha", "--method", "ru", "--r2", "1.8", "--base", "2", "--top", "4"]);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("no effect on ru: --base, --top"));
}
