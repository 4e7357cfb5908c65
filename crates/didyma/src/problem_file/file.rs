//! A problem file: what it says, checked.

use super::FileSettings;
use super::priors::parameters;
use super::reader::{Document, Fields, Node};
use super::simulator::{KINDS, source};
use crate::error::{Error, Result};
use crate::names::{self, Use, readable};
use crate::problem::question::check_observation;
use crate::problem::record::{ProblemRecord, Source, built_in};
use crate::problem::tasks::Task;
use crate::storage::table::Table;
use std::path::Path;
use toml::de::DeTable;

/// What a problem file says.
///
/// ```
/// use didyma::problem_file::ProblemFile;
/// use std::path::Path;
/// let text = r#"
///     [parameters]
///     rate = { log_normal = [0, 1] }
///     size = { normal = [2, 1], low = 0 }
///     [observation]
///     x = [1.5, 2.5, 0.3]
///     [simulator]
///     command = ["python3", "worker.py"]
///     [inference]
///     rounds = 5
/// "#;
/// let file = ProblemFile::parse(text, Path::new("folder/queue.toml"))?;
/// assert_eq!((file.problem.name.as_str(), file.problem.prior.dim()), ("queue", 2));
///
/// let told = ProblemFile::parse(&text.replace("low", "lwo"), Path::new("queue.toml"));
/// assert_eq!(
///     told.unwrap_err().to_string(),
///     "queue.toml, line 4: parameters.size.lwo is no field of a problem: did you mean low?"
/// );
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ProblemFile {
    /// The problem.
    pub problem: ProblemRecord,
    /// How to infer.
    pub settings: FileSettings,
}

impl ProblemFile {
    /// Reads a file; relative paths in it are relative to it.
    pub fn read(path: &Path) -> Result<Self> {
        let refused = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let bytes = std::fs::read(path).map_err(refused)?;
        let text = String::from_utf8(bytes).map_err(|error| Error::ProblemFile {
            path: path.to_owned(),
            line: 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
                .iter()
                .filter(|&&letter| letter == b'\n')
                .count(),
            field: "the text".to_owned(),
            fault: "is not UTF-8: save the file in that encoding".to_owned(),
        })?;
        Self::parse(&text, path)
    }

    /// Reads a text as the content of the file at `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let ends: Vec<usize> = text.match_indices('\n').map(|(end, _)| end).collect();
        let document = Document { path, text, ends: &ends };
        let parsed = DeTable::parse(text).map_err(|error| {
            let problem = format!("is no TOML: {}", error.message().trim_end().replace('\n', ", "));
            document.error(&error.span().unwrap_or_default(), "this line", problem)
        })?;
        let root = document.fields(parsed.get_ref());
        root.only_known()?;
        let problem = problem(&root, path)?;
        Ok(Self { problem, settings: FileSettings::of(&root, path)? })
    }
}

fn problem(root: &Fields, path: &Path) -> Result<ProblemRecord> {
    let name = match root.get("name") {
        Some(node) => node.name(Use::Folder)?,
        None => usual_name(root, path)?,
    };
    let about = root.get("about").map_or(Ok(String::new()), |node| node.text())?;
    let about = readable(&about).into_owned();
    let remedy = "say how to simulate, as [simulator] command = [\"python3\", \"worker.py\"]";
    let simulator = root.need("simulator", remedy)?.table()?;
    simulator.only_known()?;
    let source = source(&simulator, path)?;
    let task = match &source {
        Source::Task(task) => Some(built_in(task)?),
        Source::Program(_) | Source::Function { .. } => None,
    };
    let (prior, labels, truth) = match (root.table("parameters")?, &task) {
        (Some(table), _) => parameters(&table)?,
        (None, Some(task)) => {
            (task.problem.prior().clone(), task.labels.clone(), task.truth.clone())
        }
        (None, None) => return Err(root.error("parameters", NO_PARAMETERS)),
    };
    let (observation, summaries) = match (root.table("observation")?, &task) {
        (Some(table), task) => observation(&table, path, task.as_ref())?,
        (None, Some(task)) => (task.problem.observation().to_vec(), task.summaries.clone()),
        (None, None) => return Err(root.error("observation", NO_OBSERVATION)),
    };
    task.map_or(Ok(()), |task| check_sizes(root, &task, prior.dim(), observation.len()))?;
    let problem =
        ProblemRecord { name, about, prior, labels, summaries, observation, truth, source };
    // What is wrong with a program, such as an unknown {word} in it, is told now and with its line.
    problem.task().map_err(|error| {
        let named = KINDS.iter().find_map(|kind| simulator.get(kind));
        let told = format!("cannot be used: {error}");
        named.map_or_else(|| simulator.error("simulator", &*told), |node| node.error(&*told))
    })?;
    Ok(problem)
}

const NO_PARAMETERS: &str =
    "is missing: name the parameters and their priors, as [parameters] rate = { uniform = [0, 1] }";
const NO_OBSERVATION: &str =
    "is missing: give the observed summaries, as [observation] x = [1.5, 0.2]";

/// A built-in task's simulator has its own numbers of parameters and summaries.
fn check_sizes(root: &Fields, task: &Task, parameters: usize, summaries: usize) -> Result<()> {
    let sizes = [
        ("parameters", parameters, task.problem.prior().dim()),
        ("observation", summaries, task.problem.observation().len()),
    ];
    for (field, found, needed) in sizes {
        if found != needed {
            let problem = format!("has {found} numbers, but {} has {needed}", task.name);
            let node = root.get(field);
            return Err(node.map_or(root.error(field, &*problem), |node| node.error(&*problem)));
        }
    }
    Ok(())
}

/// The file's name, or that of its folder if the file has no name of its own. A hidden file's loses its dot.
fn usual_name(root: &Fields, path: &Path) -> Result<String> {
    let stem = path.file_stem().unwrap_or_default();
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = whole.parent().and_then(Path::file_name);
    let name = folder.filter(|_| stem == "problem").unwrap_or(stem).to_string_lossy();
    let name = name.trim_matches(|c: char| c == '.' || c.is_whitespace());
    let name = if name.is_empty() { "problem" } else { name };
    match names::fault(name, Use::Folder) {
        Some(fault) => Err(root.error("name", format!("is that of the file, which {fault}"))),
        None => Ok(name.to_owned()),
    }
}

fn observation(
    table: &Fields,
    path: &Path,
    task: Option<&Task>,
) -> Result<(Vec<f64>, Vec<String>)> {
    table.only_known()?;
    let names = table.get("names").map(|node| Ok((node.heads()?, node))).transpose()?;
    let (x, header, at) = match (table.get("x"), table.get("csv")) {
        (Some(x), None) => (x.numbers()?, Vec::new(), x),
        (None, Some(file)) => {
            let (x, header) = from_csv(&file, path, names.as_ref().map(|(names, _)| &names[..]))?;
            (x, header, file)
        }
        (Some(_), Some(file)) => {
            return Err(file.error("is a second observation beside x: leave one out"));
        }
        (None, None) => {
            return Err(
                table.error("observation", "is empty: give x = [numbers] or csv = \"file.csv\"")
            );
        }
    };
    check_observation(&x).map_err(|error| at.error(format!("cannot be used: {error}")))?;
    let summaries = match names {
        Some((names, node)) => {
            if names.len() != x.len() {
                return Err(node.error(format!(
                    "has {} names for {} numbers",
                    names.len(),
                    x.len()
                )));
            }
            differing(names, &node)?
        }
        None if !header.is_empty() => differing(header, &at)?,
        None => match task.filter(|task| task.summaries.len() == x.len()) {
            Some(task) => task.summaries.clone(),
            None => (1..=x.len()).map(|i| format!("x{i}")).collect(),
        },
    };
    Ok((x, summaries))
}

/// The names, if each is a good head of a column and no two are the same.
fn differing(names: Vec<String>, node: &Node) -> Result<Vec<String>> {
    let fault = |(i, name): (usize, &String)| Some((i + 1, names::fault(name, Use::Column)?));
    if let Some((number, fault)) = names.iter().enumerate().find_map(fault) {
        return Err(node.error(format!("has a column {number}, whose name {fault}")));
    }
    match names::repeated(names.iter().map(String::as_str)) {
        Some(twice) => Err(node.error(format!("has {twice} twice: names must differ"))),
        None => Ok(names),
    }
}

fn from_csv(file: &Node, path: &Path, names: Option<&[String]>) -> Result<(Vec<f64>, Vec<String>)> {
    let at = folder(path).join(file.text()?);
    let table =
        Table::read(&at, false).map_err(|error| file.error(format!("cannot be used: {error}")))?;
    if table.rows() != 1 {
        let problem =
            format!("{} has {} rows, but an observation is one", at.display(), table.rows());
        return Err(file.error(format!("cannot be used: {problem}")));
    }
    let picked = match names.filter(|_| !table.names.is_empty()) {
        Some(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            table.select(&names).ok_or_else(|| {
                file.error(format!(
                    "{} lacks one of the columns {}",
                    at.display(),
                    names.join(", ")
                ))
            })?
        }
        None => table.data,
    };
    Ok((picked, table.names))
}

/// The folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
