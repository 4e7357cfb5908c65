//! `didyma report` and `didyma plot`.

use super::{Folder, done, finished, json, number, refused, tiny};
use std::path::Path;

fn run() -> &'static str {
    finished().to_str().expect("a plain path")
}

#[test]
fn a_run_ends_with_its_report() {
    let shown = done(&["show", run()]);
    assert!(shown.contains("finished-run/report.html"), "{shown}");
    let page = std::fs::read_to_string(finished().join("report.html")).expect("it was written");
    let last = &json(&["show", run()])["rounds"][2];
    let c2st = ["c2st", "c2st_error"].map(|key| format!("{:.3}", number(&last[key]))).join(" ± ");
    let fact = format!("<b>{c2st}</b><span class=\"muted\">C2ST, 0.5 is perfect");
    let point = format!("round 3: C2ST {c2st}");
    for part in ["two-moons by tgrr", "fig-pairs", "fig-metrics", "fig-levels", &fact, &point] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("Verdict: ") && page.contains("<b>simulations at the posterior</b>"));
    assert!(!page.contains('`'), "commands are code");
}

#[test]
fn pages_and_figures_are_written() {
    let folder = Folder::new("report");
    let (page, figures) = (folder.file("page.html"), folder.file("figures"));
    let told = done(&["report", run(), "--out", &page, "--figures", &figures]);
    assert!(told.contains(&page) && told.contains("9 figures"), "{told}");
    let first = std::fs::read(&page).expect("it was written");
    done(&["report", run(), "--out", &page, "--threads", "1"]);
    assert_eq!(first, std::fs::read(&page).expect("it was written"));
    let calibrated = ["ranks", "coverage"];
    let others = ["pairs", "metrics", "training", "simulations", "predictive", "levels", "time"];
    for name in others.into_iter().chain(calibrated) {
        let bitmap = std::fs::read(Path::new(&figures).join(format!("{name}.png")));
        assert!(bitmap.expect("it was written").starts_with(b"\x89PNG"), "{name}");
        let (svg, out) = (Path::new(&figures).join(format!("{name}.svg")), folder.file("one.svg"));
        done(&["plot", name, run(), "--out", &out]);
        let [one, other] =
            [Path::new(&out), &svg].map(|path| std::fs::read(path).expect("a figure"));
        assert!(one == other && one.starts_with(b"<svg"), "{name}");
    }
}

#[test]
fn bad_input_is_told_and_nothing_is_written() {
    let folder = Folder::new("bad-report");
    let out = folder.file("page.html");
    let other = folder.file("other");
    done(&tiny("mg1", &other, &[]));
    let nothing = folder.file("nothing");
    refused(&["report", &nothing, "--out", &out], &["nothing", "holds no run"]);
    refused(&["report", run(), &other, "--out", &out], &["a run of mg1", "two-moons"]);
    refused(&["plot", "pairs", run(), "--out", &folder.file("a.pdf")], &[".svg or .png"]);
    refused(&["report", run(), "--out", &folder.file("no/page.html")], &["does not exist"]);
    refused(&["report", &nothing], &["nothing", "holds no run"]);
    refused(&["report", run(), run(), "--out", &out], &["given twice"]);
    let (levels, twin) = (folder.file("levels.png"), folder.run("twin"));
    refused(
        &["plot", "levels", run(), &twin, "--out", &levels],
        &["twin", "same settings and seed"],
    );
    let atomic = folder.file("atomic");
    done(&tiny("two-moons", &atomic, &["--method", "atomic"]));
    let map = folder.file("map.png");
    refused(&["plot", "local", run(), "--out", &map], &["local needs", "`didyma calibrate RUN`"]);
    refused(&["plot", "levels", &atomic, "--out", &levels], &["levels needs", "has levels"]);
    let taken = folder.write("taken", "a file");
    refused(&["report", run(), "--out", &out, "--figures", &taken], &["--figures", "taken"]);
    refused(&["report"], &["<DIR>"]);
    let kept = folder.write("kept.html", "mine");
    let mut rights = std::fs::metadata(&kept).expect("it is there").permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(&kept, rights).expect("it is mine");
    refused(&["report", run(), "--out", &kept], &["kept.html", "ermission denied"]);
    assert_eq!(std::fs::read_to_string(&kept).expect("it is there"), "mine");
    assert!(!Path::new(&out).exists() && !Path::new(&levels).exists());
}

/// The database and the models are all that a page is made of.
#[test]
fn results_that_were_lost_are_not_missed() {
    let folder = Folder::new("lost-results");
    let (dir, out) = (folder.run("run"), folder.file("page.html"));
    for file in ["posterior.csv", "posterior.npz", "summary.json", "report.html"] {
        std::fs::remove_file(Path::new(&dir).join(file)).expect("it is there");
    }
    done(&["report", &dir, "--out", &out]);
    let page = std::fs::read_to_string(&out).expect("it was written");
    assert!(page.contains("fig-pairs") && page.contains("3 / 3"));
}
