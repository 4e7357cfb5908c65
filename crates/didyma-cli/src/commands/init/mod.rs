//! `didyma init`: a folder with a problem file and a worker that runs, to be changed into the user's own.

mod language;

use crate::ExitCode;
use crate::output::{pasted, print, tell};
use anyhow::{Context, bail};
use clap::Parser;
use didyma::tasks::Task;
use language::Language;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Make a folder with a problem file and a simulator that works, to change into your own.
///
/// The simulator is exponential decay with noise, as a worker that Didyma starts once and asks for simulations. The
/// problem file explains its fields.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma init decay
  didyma init decay --language julia
  didyma infer decay/problem.toml")]
pub struct InitArgs {
    /// Folder to make, which also names the problem.
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,

    /// Language of the worker.
    #[arg(long, short, default_value = "python", value_name = "NAME")]
    pub language: Language,
}

const PROBLEM: &str = include_str!("templates/problem.toml");

/// Longest name of a problem: it is part of the names of folders.
const LONGEST: usize = 64;

pub fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let (folder, language) = (&args.folder, args.language);
    let name = name(folder)?;
    make(folder)?;
    let problem = PROBLEM
        .replace("@NAME@", name)
        .replace("@WORKER@", language.file())
        .replace("@COMMAND@", language.command());
    write(folder, "problem.toml", &problem)?;
    write(folder, language.file(), language.worker())?;
    let missing: Vec<&str> = language.needs().iter().copied().filter(|n| !on_path(n)).collect();
    if !missing.is_empty() {
        tell(&format!(
            "note: {} is not on the PATH: install it, or change the command in problem.toml",
            missing.join(", ")
        ));
    }
    print(&told(folder, language))
}

/// The files that were made, and the next commands.
fn told(folder: &Path, language: Language) -> String {
    let problem = folder.join("problem.toml");
    let worker = folder.join(language.file());
    let mut text = format!(
        "{} asks the question, {} answers requests: both are examples that work, and yours to change.\nnext:",
        problem.display(),
        worker.display(),
    );
    if let Some(compile) = language.compile() {
        text += &format!("\n  (cd {} && {compile})", pasted(folder));
    }
    text += &format!("\n  didyma check {}", pasted(folder));
    text += &format!("\n  didyma infer {}", pasted(&problem));
    text
}

/// The problem's name: that of its folder.
fn name(folder: &Path) -> anyhow::Result<&str> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins_well = name.starts_with(char::is_alphanumeric);
    if !begins_well || !name.chars().all(plain) || name.chars().count() > LONGEST {
        bail!(
            "{:?} cannot be the name of a problem: give letters, digits, - and _, at most {LONGEST} of them, a letter or \
             digit first",
            folder.display().to_string()
        );
    }
    if Task::NAMES.contains(&name) {
        bail!("{name} is the name of a built-in task: give your problem another one");
    }
    Ok(name)
}

/// Makes the folder; one that is there has to be empty.
fn make(folder: &Path) -> anyhow::Result<()> {
    let shown = folder.display();
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => bail!(
            "{shown} is there already and not empty: give another name, or delete it; nothing was changed"
        ),
        Ok(false) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(folder).with_context(|| format!("could not make the folder {shown}"))
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            bail!("{shown} is a file, and a folder is to be made there: give another name")
        }
        Err(error) => Err(error).with_context(|| format!("could not read the folder {shown}")),
    }
}

/// Writes a file that is not there yet.
fn write(folder: &Path, name: &str, content: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    let file = fs::OpenOptions::new().write(true).create_new(true).open(&path);
    file.and_then(|mut file| file.write_all(content.as_bytes()))
        .with_context(|| format!("could not write {}", path.display()))
}

fn on_path(program: &str) -> bool {
    let program = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(&program).is_file())
}
