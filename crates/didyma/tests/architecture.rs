//! The rooms of the library, in the order in which they may import each other: no import points upwards. Nor does a
//! sentence: front ends word what the library knows as values.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the ground up. One imports itself and those before it. A file belongs to the longest name that its
/// path begins with: `training/estimator` is a room inside of `training`, which may import it, and not the other way.
const ROOMS: [&str; 37] = [
    "error",
    "rng",
    "rows",
    "parallel",
    "named",
    "names",
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
    "evaluation/calibration",
    "evaluation",
    "run",
    "run/cluster",
    "problem_file",
    "report/data",
    "report/figures",
    "report/text",
    "report",
    "infer",
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

/// Paths of modules after each `crate::` of a module's text, and after each chain of `super::`; groups in braces are
/// taken apart.
fn targets(module: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("crate::") {
        expand("", &text[start + "crate::".len()..], &mut found);
    }
    for (start, _) in text.match_indices("super::") {
        if text[..start].ends_with("super::") {
            continue;
        }
        let (mut base, mut rest) = (module, &text[start..]);
        while let Some(more) = rest.strip_prefix("super::") {
            (base, rest) = (base.rsplit_once('/').map_or("", |(above, _)| above), more);
        }
        expand(base, rest, &mut found);
    }
    found
}

/// Adds the paths that begin with `prefix` and go on as `rest` does; returns how much of `rest` they take.
fn expand(prefix: &str, rest: &str, found: &mut Vec<String>) -> usize {
    if let Some(inner) = rest.strip_prefix('{') {
        let mut at = 0;
        while at < inner.len() && !inner[at..].starts_with('}') {
            at += if inner[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                expand(prefix, &inner[at..], found)
            } else {
                inner[at..].chars().next().map_or(1, char::len_utf8)
            };
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
    // A name of the front door is in no room: it is to be imported from where it lives.
    let upward = |path: &String| place(path).is_none_or(|target| target > own);
    let paths = targets(module, &code(text)).into_iter().filter(upward);
    paths.map(|path| Import { file: file.to_owned(), path }).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push(path);
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    found
}

/// Names and texts of all files but the front door, which names everything, and tests in files of their own, which may
/// look at anything.
fn files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |path: PathBuf| {
        let file = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
        (file, fs::read_to_string(&path).expect("text"))
    };
    let mut found: Vec<_> = sources(&root).into_iter().map(read).collect();
    found.retain(|(file, _)| file != "lib.rs" && !file.ends_with("tests.rs"));
    found
}

#[test]
fn no_import_points_upwards() {
    let found: BTreeSet<Import> =
        files().iter().flat_map(|(file, text)| upward(file, text)).collect();
    assert!(found.is_empty(), "upward imports, by the order of ROOMS: {found:#?}");
}

#[test]
fn an_upward_import_is_found_wherever_it_hides() {
    let upward = |text: &str| upward("density/flow/pass.rs", text).len();
    assert_eq!(upward("use crate::error::Result;\nuse crate::network::kernel::Real;"), 0);
    assert_eq!(upward("use crate::run::RunDir;"), 1);
    assert_eq!(upward("use crate::{error::Result, run::{Manifest, RunDir}};"), 2);
    assert_eq!(upward("use crate::Posterior;"), 1);
    assert_eq!(upward("use super::{SplineFlow, tape::Tape};\nuse super::super::Dataset;"), 1);
    assert_eq!(upward("fn f() { crate::training::estimator::reduce(); }"), 1);
    assert_eq!(
        upward(
            "/// See [`crate::run::RunDir`].\n#[cfg(test)]\nmod tests { use crate::run::RunDir; }"
        ),
        0
    );
}

/// String literals of a text, joined over their lines.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // A character, of which a quotation mark or a backslash may be one; a lifetime has no end.
            '\'' if letters.next_if_eq(&'\\').is_some() => {
                letters.nth(1);
            }
            '\'' => drop(letters.next_if_eq(&'"')),
            '"' => found.push(literal(&mut letters)),
            _ => {}
        }
    }
    found
}

/// The rest of a literal after its quotation mark.
fn literal(letters: &mut std::iter::Peekable<std::str::Chars>) -> String {
    let mut text = String::new();
    while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
        match letter {
            '\\' if letters.next_if_eq(&'\n').is_some() => {
                while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
            }
            '\\' => text.extend(letters.next()),
            letter => text.push(letter),
        }
    }
    text
}

/// Whether a text names a flag, a command or a front end.
fn is_worded_by_a_front_end(text: &str) -> bool {
    let begins = |part: &str| part.starts_with(|letter: char| letter.is_ascii_lowercase());
    let flag = [" --", "`--", "(--"].iter().any(|mark| text.split(mark).skip(1).any(begins));
    // The heading of a file is no command.
    let command = !text.starts_with("# didyma ") && text.split("didyma ").skip(1).any(begins);
    flag || command || text.contains("Python")
}

/// The commands that a page quotes are in one file.
const QUOTES_COMMANDS: &str = "report/text/commands.rs";

#[test]
fn no_sentence_knows_of_flags_commands_or_python() {
    let mut found = Vec::new();
    for (file, text) in files().iter().filter(|(file, _)| file != QUOTES_COMMANDS) {
        let worded =
            literals(&code(text)).into_iter().filter(|text| is_worded_by_a_front_end(text));
        found.extend(worded.map(|text| format!("{file}: {text}")));
    }
    assert!(found.is_empty(), "a Remedy says it, and front ends word it: {found:#?}");
}

#[test]
fn a_word_of_a_front_end_is_found_wherever_it_hides() {
    let worded = |text: &str| literals(text).iter().any(|text| is_worded_by_a_front_end(text));
    assert!(worded(r#"f("choose another --out")"#) && worded(r#"f('"', "run `didyma resume`")"#));
    assert!(worded("f(\"continue it with `didyma \\\n    resume {dir}`\")"));
    assert!(worded(r#"fn f<'a>(x: &'a str) { g('\'', "in Python") }"#));
    assert!(!worded(r#"f("var(", "--ink", "train.rate=0.1", "python3", "Didyma saved it")"#));
}
