//! The rooms of the library, in the order in which they may import each other: no import points upwards.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the ground up. One imports itself and those before it. A file belongs to the longest name that its
/// path begins with: `training/estimator` is a room inside of `training`, which may import it, and not the other way.
const ROOMS: [&str; 32] = [
    "error",
    "rng",
    "rows",
    "parallel",
    "named",
    "math",
    "storage",
    "problem/prior",
    "problem/simulator",
    "problem/question",
    "problem/tasks",
    "problem",
    "network/kernel",
    "network",
    "density/dataset",
    "density/flow",
    "density/score",
    "density",
    "training/estimator",
    "training",
    "inference/config",
    "inference",
    "inference/steps",
    "evaluation/metrics",
    "evaluation/abc",
    "evaluation/levels",
    "evaluation",
    "run",
    "run/cluster",
    "problem_file",
    "report",
    "lab",
];

/// An import of a file, by the place of its target among the rooms.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    file: String,
    path: String,
}

fn place(path: &str) -> Option<usize> {
    let inside = |room: &str| path == room || path.starts_with(&format!("{room}/"));
    let rooms = ROOMS.iter().enumerate().filter(|(_, room)| inside(room));
    rooms.max_by_key(|(_, room)| room.len()).map(|(place, _)| place)
}

/// Paths of modules after each `crate::` of a text, groups in braces taken apart.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("crate::") {
        expand("", &text[start + "crate::".len()..], &mut found);
    }
    found
}

/// Adds the paths that begin with `prefix` and go on as `rest` does; returns how much of `rest` they take.
fn expand(prefix: &str, rest: &str, found: &mut Vec<String>) -> usize {
    if let Some(inner) = rest.strip_prefix('{') {
        let mut at = 0;
        while at < inner.len() && !inner[at..].starts_with('}') {
            match inner[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                true => at += expand(prefix, &inner[at..], found),
                false => at += inner[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        return at + 2;
    }
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let path = if prefix.is_empty() {
        rest[..end].to_owned()
    } else {
        format!("{prefix}/{}", &rest[..end])
    };
    match rest[end..].strip_prefix("::") {
        Some(more) if more.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '{') => {
            end + 2 + expand(&path, more, found)
        }
        _ => {
            found.push(path);
            end
        }
    }
}

/// A file without its comments, and without its unit tests, which may look at anything.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn upward(file: &str, text: &str) -> BTreeSet<Import> {
    let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
    let own = place(module).unwrap_or_else(|| panic!("{file} is in no room: add it to ROOMS"));
    let upward = |path: &String| place(path).is_some_and(|target| target > own);
    let paths = targets(&code(text)).into_iter().filter(upward);
    paths.map(|path| Import { file: file.to_owned(), path }).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("a readable folder").path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false => found.push(path),
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    found
}

#[test]
fn no_import_points_upwards() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeSet::new();
    for path in sources(&root) {
        let file = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
        // The front door names everything; tests in files of their own look at anything.
        if file == "lib.rs" || file.ends_with("tests.rs") {
            continue;
        }
        found.extend(upward(&file, &fs::read_to_string(&path).expect("text")));
    }
    assert!(found.is_empty(), "upward imports, by the order of ROOMS: {found:#?}");
}

#[test]
fn an_upward_import_is_found_wherever_it_hides() {
    let upward = |text: &str| upward("density/flow/pass.rs", text).len();
    assert_eq!(upward("use crate::error::Result;\nuse crate::network::kernel::Real;"), 0);
    assert_eq!(upward("use crate::run::RunDir;"), 1);
    assert_eq!(upward("use crate::{error::Result, run::{Manifest, RunDir}};"), 2);
    assert_eq!(upward("fn f() { crate::training::estimator::reduce(); }"), 1);
    assert_eq!(
        upward(
            "/// See [`crate::run::RunDir`].\n#[cfg(test)]\nmod tests { use crate::run::RunDir; }"
        ),
        0
    );
}
