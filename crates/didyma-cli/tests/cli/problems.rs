//! `didyma tasks`, `simulate`, `reference`, `abc` and `metrics`.

use super::{Folder, didyma, done, json, number, refused, text};
use serde_json::Value;
use std::path::Path;

#[test]
fn tasks_are_listed() {
    let output = text(&didyma(&["tasks"]).stdout);
    for name in ["two-moons", "lotka-volterra", "mg1", "hodgkin-huxley", "slcp", "sir"] {
        assert!(output.contains(name), "{output}");
    }
    let list = json(&["tasks"]);
    let moons = &list["tasks"][0];
    assert_eq!(moons["parameters"][0]["prior"], "uniform -1 to 1");
    assert_eq!(
        (moons["reference"].as_str(), moons["truth"][0].as_f64()),
        (Some("exact"), Some(0.2475))
    );
}

#[test]
fn simulate_writes_parameters_and_summaries() {
    let folder = Folder::new("simulate");
    let out = folder.file("x.csv");
    let found =
        json(&["simulate", "mg1", "-n", "50", "--seed", "3", "--threads", "2", "--out", &out]);
    assert_eq!((found["simulations"].as_u64(), found["failures"].as_u64()), (Some(50), Some(0)));
    let csv = std::fs::read_to_string(&out).expect("it was written");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 51);
    assert!(lines[0].starts_with("service_min,service_range,arrival_rate,log_min"));
    assert_eq!(lines[1].split(',').count(), 8);
    // The same rows with another number of threads, and on the terminal.
    let again =
        text(&didyma(&["simulate", "mg1", "-n", "50", "--seed", "3", "--threads", "1"]).stdout);
    assert_eq!(again, csv);
    let fixed = text(&didyma(&["simulate", "two-moons", "--theta", "-0.5,0.25", "-n", "2"]).stdout);
    assert!(fixed.lines().skip(1).all(|line| line.starts_with("-0.5,0.25,")), "{fixed}");
    assert!(!Path::new(&(out + ".part")).exists());
}

#[test]
fn samples_are_compared() {
    let folder = Folder::new("metrics");
    let (a, b) = (folder.file("a.csv"), folder.file("b.csv"));
    for (file, seed) in [(&a, "1"), (&b, "2")] {
        let args = ["reference", "two-moons", "-n", "1000", "--seed", seed, "--out", file];
        assert!(didyma(&args).status.success());
    }
    let same = json(&["metrics", &a, &b, "--task", "two-moons"]);
    // 1,000 against 1,000 exact draws: a standard error of about 0.5/√2000 = 0.011 for C2ST.
    assert!((number(&same["c2st"]) - 0.5).abs() < 0.05, "{same}");
    assert_eq!(same["c2st_seeds"].as_u64(), Some(4));
    let told = done(&["metrics", &a, &b]);
    let c2st = ["c2st", "c2st_error"].map(|key| format!("{:.4}", number(&same[key])));
    assert!(told.contains(&c2st.join(" ± ")), "{told}");
    assert!(told.contains("(over 4 classifier seeds)"), "{told}");
    assert!(
        number(&same["mmd2"]).abs() < 0.005 && number(&same["sliced_wasserstein"]) < 0.03,
        "{same}"
    );
    assert!((number(&same["lmd"]) + 2.4146).abs() < 0.15, "{same}");
    // Without a header, with an index column, and without a task.
    let content = std::fs::read_to_string(&a).expect("it was written");
    let indexed: String =
        content.lines().skip(1).enumerate().map(|(i, line)| format!("{i},{line}\n")).collect();
    let (c, d) = (folder.write("c.csv", &indexed), folder.write("d.csv", &indexed));
    let equal = json(&["metrics", &c, &d, "--index"]);
    assert_eq!((number(&equal["sliced_wasserstein"]), &equal["lmd"]), (0.0, &Value::Null));
    let simulated = folder.file("prior.csv");
    didyma(&["simulate", "two-moons", "-n", "1000", "--out", &simulated]);
    // Unequal numbers of rows, and columns in another order, make no difference to what is compared.
    let swapped: String = content
        .lines()
        .take(301)
        .map(|line| line.split_once(',').map_or(String::new(), |(a, b)| format!("{b},{a}\n")))
        .collect();
    let few = json(&["metrics", &b, &folder.write("few.csv", &swapped)]);
    assert!(
        (number(&few["c2st"]) - 0.5).abs() < 0.1 && few["c2st_rows"].as_u64() == Some(300),
        "{few}"
    );
    // Summary columns are left aside if a task is named.
    let far = json(&["metrics", &a, &simulated, "--task", "two-moons"]);
    assert!(number(&far["c2st"]) > 0.9, "{far}");
}

#[test]
fn abc_writes_samples() {
    let folder = Folder::new("abc");
    let out = folder.file("samples.csv");
    let args = [
        "abc",
        "two-moons",
        "--simulations",
        "60000",
        "--particles",
        "500",
        "-n",
        "300",
        "--out",
        &out,
    ];
    let found = json(&args);
    assert_eq!((found["samples"].as_u64(), found["adjusted"].as_bool()), (Some(300), Some(true)));
    assert!(number(&found["tolerance"]) < 0.5 && number(&found["effective_sample_size"]) > 100.0);
    let csv = std::fs::read_to_string(&out).expect("it was written");
    assert_eq!(csv.lines().count(), 301);
    let raw = json(&[&args[..], &["--no-adjust"]].concat());
    assert_eq!(raw["adjusted"].as_bool(), Some(false));
    let plain = text(&didyma(&args).stdout);
    assert!(plain.contains("regression-adjusted") && plain.contains("theta1"), "{plain}");
}

#[test]
fn references_can_be_had_for_every_task_but_one() {
    for task in
        ["two-moons", "lotka-volterra", "mg1", "gaussian-linear", "gaussian-mixture", "slcp", "sir"]
    {
        let output = didyma(&["reference", task, "-n", "50"]);
        assert!(output.status.success(), "{task}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout).lines().count(), 51, "{task}");
    }
}

#[test]
fn bad_input_is_refused_with_file_line_and_remedy() {
    let folder = Folder::new("bad");
    let good = folder.write("good.csv", &"1,2\n3,4\n5,7\n".repeat(5));
    let empty = folder.write("empty.csv", "");
    let ragged = folder.write("ragged.csv", "a,b\n1,2\n1,2,3\n");
    let nan = folder.write("nan.csv", "a,b\n1,2\n1,NaN\n");
    let words = folder.write("words.csv", "a,b\n1,2\n1,two\n");
    let wide = folder.write("wide.csv", &"1,2,3\n".repeat(12));
    let named = folder.write("named.csv", &format!("a,b\n{}", "1,2\n".repeat(12)));
    let missing = folder.file("missing.csv");
    let nowhere = folder.file("no/such/folder/x.csv");
    for (args, parts) in [
        (&["metrics", &empty, &good][..], &["empty.csv", "line 1", "no rows"][..]),
        (&["metrics", &good, &ragged], &["ragged.csv", "line 3", "3 columns"]),
        (&["metrics", &good, &nan], &["nan.csv", "line 3", "NaN is not finite", "remove"]),
        (&["metrics", &good, &words], &["words.csv", "line 3", "two"]),
        (&["metrics", &good, &wide], &["good.csv", "2 columns", "wide.csv", "3"]),
        (&["metrics", &good, &missing], &["missing.csv", "could not read"]),
        (&["metrics", &named, &named, "--task", "mg1"], &["named.csv", "service_min"]),
        (&["metrics", &good, &good, "--task", "two-moons"], &["row", "outside of its prior"]),
        (
            &["simulate", "two-moons", "-n", "3", "--theta", "2,0"],
            &["theta1 is 2", "uniform -1 to 1"],
        ),
        (
            &["simulate", "two-moons", "-n", "3", "--theta", "0.1"],
            &["theta has 1 numbers", "2 are needed"],
        ),
        (&["simulate", "two-moons", "-n", "3", "--theta", "a,b"], &["--theta", "2 numbers"]),
        (&["simulate", "two-moons", "-n", "0"], &["between 1 and"]),
        (&["simulate", "three-moons", "-n", "3"], &["three-moons", "two-moons"]),
        (&["simulate", "two-moons", "-n", "3", "--out", &nowhere], &["could not write", "x.csv"]),
        (&["simulate", "two-moons", "-n", "3", "--json"], &["--out"]),
        (&["reference", "hodgkin-huxley"], &["hodgkin-huxley", "no reference"]),
        (&["reference", "mg1", "-n", "20000"], &["count is 20000", "at most 10000"]),
        (&["abc", "mg1", "--simulations", "100"], &["simulations is 100", "at least"]),
        (&["abc", "mg1", "--simulations", "100000", "--particles", "3"], &["particles is 3"]),
        (&["abc", "mg1", "--simulations", "100000", "--tolerance", "-1"], &["tolerance is -1"]),
    ] {
        refused(args, parts);
    }
    assert!(!Path::new(&nowhere).exists());
}
