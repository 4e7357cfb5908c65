//! The simulator of a problem file.

use super::file::folder;
use super::reader::{Fields, Node};
use crate::error::Result;
use crate::problem::record::Source;
use crate::problem::simulator::program::{Call, LARGEST_BATCH, Program, RETRIES};
use crate::problem::tasks::Task;
use serde_json::{Map, Value};
use std::path::Path;

/// Seconds that a simulation may take, and the first answer of a worker more.
const TIME_LIMIT: f64 = 600.0;
const START_LIMIT: f64 = 60.0;
/// Simulations under way at once, at most.
const MOST_WORKERS: usize = 1024;
/// Longest time limit, in seconds: a month.
const LONGEST: f64 = 31.0 * 86_400.0;

/// The ways to simulate, of which a file has one.
pub(super) const KINDS: [&str; 4] = ["command", "run", "umbridge", "task"];

pub(super) fn source(table: &Fields, path: &Path) -> Result<Source> {
    let mut given = KINDS.iter().filter_map(|kind| table.get(kind).map(|node| (*kind, node)));
    let Some((kind, node)) = given.next() else {
        let remedy = "says not how to simulate: give command, run, umbridge or task";
        return Err(table.error("simulator", remedy));
    };
    if let Some((other, node)) = given.next() {
        let problem = format!("is a second simulator beside {kind}: leave {other} or {kind} out");
        return Err(node.error(problem));
    }
    refuse_idle(table, kind)?;
    let call = match kind {
        "task" => return built_in_name(&node).map(Source::Task),
        "command" => {
            let batch = table.get("batch").map_or(Ok(1), |node| node.whole_to(LARGEST_BATCH))?;
            let stream = table.get("stream").map_or(Ok(false), |node| node.flag())?;
            Call::Worker { command: node.words()?, batch, stream }
        }
        "run" => Call::Once { command: node.words()? },
        _ => umbridge(&node.table()?)?,
    };
    Ok(Source::Program(Program {
        call,
        folder: std::path::absolute(folder(path)).unwrap_or_else(|_| folder(path).to_owned()),
        workers: table.get("workers").map(|node| node.whole_to(MOST_WORKERS)).transpose()?,
        time_limit: limit(table, "time_limit", TIME_LIMIT)?,
        start_limit: limit(table, "start_limit", START_LIMIT)?,
        launcher: table.get("launcher").map_or(Ok(Vec::new()), |node| node.words())?,
    }))
}

/// Refuses fields that this kind of simulator has no use for.
fn refuse_idle(table: &Fields, kind: &str) -> Result<()> {
    let idle: &[&str] = match kind {
        "command" => &[],
        "run" => &["batch", "stream", "start_limit"],
        "umbridge" => &["batch", "stream", "start_limit", "launcher"],
        _ => &["batch", "stream", "start_limit", "launcher", "workers", "time_limit"],
    };
    match idle.iter().find_map(|name| table.get(name)) {
        Some(node) => Err(node.error(format!("is of no use beside {kind}: leave it out"))),
        None => Ok(()),
    }
}

fn built_in_name(node: &Node) -> Result<String> {
    let name = node.text()?;
    match Task::NAMES.contains(&&*name) {
        true => Ok(name),
        false => {
            Err(node.error(format!("is {name}, no task: there are {}", Task::NAMES.join(", "))))
        }
    }
}

fn limit(table: &Fields, name: &str, default: f64) -> Result<f64> {
    let Some(node) = table.get(name) else { return Ok(default) };
    match node.number()? {
        seconds if seconds > 0.0 && seconds <= LONGEST => Ok(seconds),
        other => Err(node.error(format!("is {other}: give seconds, above 0 and up to {LONGEST}"))),
    }
}

fn umbridge(table: &Fields) -> Result<Call> {
    table.only_known()?;
    let text = |name: &str, default: &str| {
        table.get(name).map_or(Ok(default.to_owned()), |node| node.text())
    };
    let url = table.need("url", "give the address of the server, as \"http://localhost:4242\"")?;
    let address = url.text()?;
    if !address.starts_with("http://") {
        return Err(url.error(format!("is {address}: give an address that begins with http://")));
    }
    let config = match table.get("config").map(|node| node.table().and(node.json())).transpose()? {
        Some(Value::Object(config)) => config,
        _ => Map::new(),
    };
    let seed = text("seed", "seed")?;
    if config.contains_key(&seed) {
        let problem =
            format!("has {seed}, which is where the seed goes: name another key with seed = \"…\"");
        return Err(table.error("simulator.umbridge.config", problem));
    }
    Ok(Call::UmBridge {
        url: address.trim_end_matches('/').to_owned(),
        model: text("model", "forward")?,
        config,
        seed,
        retries: table.get("retries").map_or(Ok(RETRIES), |node| node.whole_up_to(0, 100))? as u32,
    })
}
