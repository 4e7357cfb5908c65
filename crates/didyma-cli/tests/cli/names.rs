//! Names that look like numbers, comments or several columns: every command reads what another has written.

use super::{Folder, didyma, done, text, tiny};

const PROBLEM: &str = r##"
[parameters]
nan = { uniform = [-1, 1] }
"#1, \"x\"" = { uniform = [-1, 1] }

[observation]
x = [0, 0]
names = ["inf", "x(0, 1)"]

[simulator]
task = "two-moons"
"##;

#[test]
fn a_run_reads_its_own_tables() {
    let folder = Folder::new("names");
    let (problem, run) = (folder.write("odd.toml", PROBLEM), folder.file("run"));
    done(&tiny(&problem, &run, &[]));
    let samples = format!("{run}/posterior.csv");
    let content = std::fs::read_to_string(&samples).expect("it was written");
    let header = content.lines().find(|line| !line.starts_with('#')).expect("a header");
    assert_eq!(header, r##""nan","#1, ""x""""##);
    let densities = done(&["log-density", &run, "--theta", &samples]);
    assert_eq!(densities.lines().count(), 301, "{densities}");
    assert!(densities.starts_with(&format!("{header},log_density\n")), "{densities}");
    // Columns are found by their names, in any order.
    let swapped = folder.write("swapped.csv", "\"#1, \"\"x\"\"\",\"nan\"\n0.5,-0.25\n");
    let found = done(&["log-density", &run, "--theta", &swapped]);
    assert!(found.lines().nth(1).is_some_and(|row| row.starts_with("-0.25,0.5,")), "{found}");
    let rows = folder.file("rows.csv");
    done(&["simulate", &problem, "-n", "1", "--out", &rows]);
    let content = std::fs::read_to_string(&rows).expect("it was written");
    assert!(content.starts_with(&format!("{header},\"inf\",\"x(0, 1)\"\n")), "{content}");
    let drawn = done(&["sample", &run, "-n", "3", "--observation", &rows]);
    assert_eq!(drawn.lines().count(), 4, "{drawn}");
}

#[test]
fn a_terminal_is_given_no_orders() {
    let folder = Folder::new("orders");
    let problem = PROBLEM.replace("nan =", "\"\\u001b[2J\" =");
    let problem = folder.write("hostile.toml", &problem);
    let output = didyma(&["check", &problem]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("[2J has a control character") && !told.contains('\u{1b}'), "{told:?}");
}
