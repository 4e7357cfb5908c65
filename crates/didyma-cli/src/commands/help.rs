//! `didyma --help`: the commands under headings, each with the words that its own file has for it.

use super::Command;
use clap::Subcommand;
use clap::builder::{StyledStr, Styles};
use std::fmt::Write;

/// Headings, and the commands under them, in the order of the help.
const HEADINGS: [(&str, &[&str]); 7] = [
    ("Infer", &["infer", "resume"]),
    ("Trust", &["calibrate", "evaluate"]),
    ("Your own simulator", &["init", "check", "simulate"]),
    (
        "Look",
        &[
            "show",
            "watch",
            "report",
            "plot",
            "sample",
            "log-density",
            "settings",
            "tasks",
            "devices",
        ],
    ),
    ("Clusters", &["propose", "merge", "train"]),
    ("Research", &["reference", "abc", "metrics", "alpha", "levels", "bench", "reproduce"]),
    ("Help", &["help"]),
];

/// The help of the whole program, as a template of clap's.
pub fn template() -> StyledStr {
    let styles = Styles::styled();
    let header = styles.get_header();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for line in list().ansi().to_string().lines() {
        if let Some((heading, _)) = HEADINGS.iter().find(|(_, names)| name(line) == Some(names[0]))
        {
            let _ = writeln!(text, "\n{header}{heading}:{header:#}");
        }
        let _ = writeln!(text, "{line}");
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}");
    text.into()
}

/// A line for each command, or more, in the order of the headings.
fn list() -> StyledStr {
    let mut commands = Command::augment_subcommands(clap::Command::new("didyma"));
    let names = HEADINGS.iter().flat_map(|(_, names)| *names).filter(|name| **name != "help");
    for (order, name) in names.enumerate() {
        commands = commands.mut_subcommand(name, |command| command.display_order(order));
    }
    commands.help_template("{subcommands}").render_help()
}

/// The command whose first line this is.
fn name(line: &str) -> Option<&'static str> {
    let plain = console::strip_ansi_codes(line);
    let entry = plain.strip_prefix("  ").filter(|entry| !entry.starts_with(' '))?;
    let word = entry.split(' ').next()?;
    HEADINGS.iter().flat_map(|(_, names)| *names).copied().find(|name| *name == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Args;
    use clap::CommandFactory;

    #[test]
    fn each_command_stands_once_under_a_heading() {
        let mut args = Args::command();
        args.build();
        let mut known: Vec<&str> = args.get_subcommands().map(|c| c.get_name()).collect();
        let mut under: Vec<&str> = HEADINGS.iter().flat_map(|(_, names)| *names).copied().collect();
        let help = args.clone().render_help().to_string();
        let listed: Vec<&str> = help.lines().filter_map(name).collect();
        assert_eq!(listed, under, "{help}");
        known.sort_unstable();
        under.sort_unstable();
        assert_eq!(known, under);
    }

    #[test]
    fn headings_stand_before_their_commands() {
        let help = Args::command().render_help().to_string();
        let lines: Vec<&str> = help.lines().collect();
        for (heading, names) in HEADINGS {
            let title = format!("{heading}:");
            let place = lines.iter().position(|line| *line == title).unwrap();
            assert_eq!((lines[place - 1], name(lines[place + 1])), ("", Some(names[0])));
        }
    }

    #[test]
    fn arguments_are_consistent() {
        Args::command().debug_assert();
    }
}
