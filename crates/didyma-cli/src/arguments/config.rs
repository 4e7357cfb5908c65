//! Settings of a run: where they start from, and single changes.

use super::{members, named, whole};
use clap::Parser;
use didyma::config::{Algorithm, Config, Layer, Profile};
use didyma::problem_file::FileSettings;

/// Where settings start from, and single changes.
#[derive(Debug, Default, Parser)]
pub struct ConfigArgs {
    /// How to learn. Parameters of later rounds come from the posterior so far, and the loss corrects for it: multilevel
    /// (tgrr, tru, grr, ru, rr), nested or atomic APT. Or from a part of the prior, which needs no correction: tsnpe, or
    /// snse, which learns a score instead of a flow. Or all from the prior: npe.
    /// [default: tgrr, or what the problem file says]
    #[arg(long, value_name = "NAME", value_parser = named::<Algorithm>())]
    method: Option<Algorithm>,

    /// All settings at once: what works best, or the paper's protocol.
    /// [default: default, or what the problem file says]
    #[arg(long, value_name = "NAME", value_parser = named::<Profile>())]
    profile: Option<Profile>,

    /// Rounds [default: 10, with the paper's profile 20].
    #[arg(long, value_name = "COUNT", value_parser = whole::<u32>, allow_negative_numbers = true)]
    rounds: Option<u32>,

    /// Simulations of a round [default: 1000].
    #[arg(long, value_name = "COUNT", value_parser = whole::<usize>, allow_negative_numbers = true)]
    simulations: Option<usize>,

    /// Members of the ensemble: flows that are trained side by side on the same simulations, whose mixture is the
    /// posterior, 1 to 64 [default: 4, with the paper's profile or snse 1].
    #[arg(long, value_name = "COUNT", value_parser = members, allow_negative_numbers = true)]
    members: Option<usize>,

    /// Change a setting that `didyma settings` lists; may be given many times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

impl ConfigArgs {
    /// The settings, all checked: those of the problem file, if there is one, then those of the command line.
    pub fn config(&self, seed: Option<u64>, file: Option<&FileSettings>) -> didyma::Result<Config> {
        let Self { method, profile, .. } = *self;
        let mut layer = Layer { method, profile, ..Layer::default() };
        layer.set_some("rounds", self.rounds).set_some("simulations", self.simulations);
        layer.set_some("ensemble.members", self.members);
        layer.set_some("seed", seed).settings.extend(self.set.iter().cloned());
        file.unwrap_or(&FileSettings::default()).config(&layer)
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        None => Err("give a setting and its value, as train.batch=200".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use didyma::Named;

    /// The default method is chosen in one place, and the help says the same.
    #[test]
    fn the_help_names_the_default_method() {
        let help = ConfigArgs::command().render_long_help().to_string();
        let default = format!("[default: {}, or what", Algorithm::default().name());
        assert!(help.contains(&default), "{help}");
    }
}
