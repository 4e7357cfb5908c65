//! `didyma reproduce`: a small version of everything, and what happens when it is asked again.

use super::{Folder, didyma, done, refused, text};

const RESULTS: [&str; 13] = [
    "table-1",
    "table-2",
    "table-3",
    "figure-1",
    "figure-2",
    "figure-3",
    "figure-4",
    "figure-5",
    "figure-6",
    "complexity",
    "convergence",
    "ablation",
    "snse",
];

#[test]
fn everything_is_reproduced_in_small() {
    let folder = Folder::new("reproduce");
    let out = folder.file("all");
    let told = done(&["reproduce", "all", "--quick", "--seeds", "1", "--jobs", "2", "--out", &out]);
    let read = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).expect(name);
    let page = read("reproduction.md");
    for name in RESULTS {
        assert!(told.contains(&format!("{name}: ")), "{told}");
        let part = read(&format!("{name}.md"));
        assert!(page.contains(part.trim_end()), "{name}");
        assert!(part.contains("| --- |") && !part.contains("NaN"), "{part}");
        assert!(read(&format!("{name}.csv")).lines().count() > 1, "{name}");
    }
    // What the paper prints stands beside what was found.
    for printed in ["0.541 ± 0.032", "0.560 ± 0.067", "299 ± 29 min", "60 GB", "1.209", "1.84"] {
        assert!(page.contains(printed), "{printed}");
    }
    // A figure each, but for two tables and two lists of scores; one is of Table 3.
    let figures: Vec<&str> = page.lines().filter(|line| line.starts_with("![")).collect();
    assert_eq!(figures.len(), 9, "{figures:?}");
    for line in figures {
        let file = line.rsplit_once('(').expect("a link").1.trim_end_matches(')');
        let svg = read(file);
        assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{file}");
    }
    a_second_time_nothing_is_run(&out, &read);
    other_settings_are_refused(&out);
}

fn a_second_time_nothing_is_run(out: &str, read: &dyn Fn(&str) -> String) {
    let before = read("table-2.csv");
    let again = didyma(&["reproduce", "table-2", "--quick", "--seeds", "1", "--out", out]);
    assert!(again.status.success() && !text(&again.stderr).contains("runs to do"));
    assert_eq!(read("table-2.csv"), before);
    std::fs::remove_dir_all(format!("{out}/runs/npe/two-moons-1")).expect("the run is there");
    let again = didyma(&["reproduce", "table-2", "--quick", "--seeds", "1", "--out", out]);
    assert!(text(&again.stderr).contains("1 of 9 runs to do"), "{}", text(&again.stderr));
    let scores = |csv: &str| -> Vec<String> {
        csv.lines().map(|line| line.split(',').take(8).collect::<Vec<_>>().join(",")).collect()
    };
    assert_eq!(scores(&read("table-2.csv")), scores(&before));
}

fn other_settings_are_refused(out: &str) {
    refused(&["reproduce", "figure-2", "--seeds", "1", "--out", out], &["other settings", "--out"]);
}

#[test]
fn bad_arguments_are_named() {
    for (args, word) in [
        (vec!["table-9"], "table-9"),
        (vec!["table-1", "--seeds", "0"], "--seeds"),
        (vec!["table-1", "--rounds", "1"], "--rounds"),
        (vec!["table-1", "--jobs", "-1"], "--jobs"),
    ] {
        refused(&[&["reproduce"], &args[..], &["--out", "nowhere"]].concat(), &[word]);
    }
    let run = super::finished().to_str().expect("a plain path");
    refused(&["reproduce", "table-1", "--quick", "--out", run], &["--out", "directory of a run"]);
    let folder = Folder::new("reproduce-file");
    let busy = folder.file("busy");
    std::fs::create_dir(&busy).expect("it can be made");
    let lock = std::fs::File::create(folder.file("busy/lock")).expect("it can be written");
    lock.lock().expect("nobody else has it");
    refused(&["reproduce", "table-1", "--quick", "--out", &busy], &["another", "--out"]);
    let file = folder.write("taken", "");
    refused(&["reproduce", "table-1", "--quick", "--out", &file], &["--out"]);
}
