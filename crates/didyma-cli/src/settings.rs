//! `didyma settings`: every setting by name.

use crate::args::SettingsArgs;
use serde::Serialize;
use std::fmt;

/// All settings of a profile and method.
#[derive(Debug, Serialize)]
pub struct SettingsList {
    settings: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    key: &'static str,
    value: String,
    about: &'static str,
}

pub fn settings(args: &SettingsArgs) -> anyhow::Result<SettingsList> {
    let line = |(key, value, about)| Line { key, value, about };
    Ok(SettingsList { settings: args.config.config(1)?.list().into_iter().map(line).collect() })
}

impl fmt::Display for SettingsList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<24}  {:<12}  what it is (change it with --set KEY=VALUE)",
            "setting", "value"
        )?;
        for Line { key, value, about } in &self.settings {
            write!(f, "\n{key:<24}  {value:<12}  {about}")?;
        }
        Ok(())
    }
}
