//! `didyma watch`: the picture of a run in the terminal while it goes on, for one who only looks.

mod draw;
mod look;
mod words;

use crate::output::print;
use crate::terminal::{Screen, interrupts, screen};
use crate::{DONE, ExitCode, STOPPED};
use clap::Parser;
use draw::picture;
use look::Watcher;
use std::path::PathBuf;
use std::time::Duration;

/// Watch a run while it goes on: marginals, losses and rounds, drawn in the terminal.
///
/// The run is only read, from another terminal than its own, and does not notice. The picture is drawn anew until
/// the run is finished, and then stays; Ctrl-C ends the watching, not the run.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma watch runs/two-moons-tgrr-1
  didyma watch runs/two-moons-tgrr-1 --interval 5
  didyma watch runs/two-moons-tgrr-1 --once > now.txt")]
pub struct WatchArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// How often to look again.
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = interval)]
    #[arg(allow_negative_numbers = true)]
    interval: f64,

    /// Print one picture as plain text, 80 columns wide, and end; so it is where the output is no terminal.
    #[arg(long)]
    pub once: bool,
}

impl WatchArgs {
    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval)
    }
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.1..=3600.0).contains(&value) => Ok(value),
        _ => Err("give a number of seconds between 0.1 and 3600".to_owned()),
    }
}

/// Columns of a picture that goes elsewhere than to a terminal.
const PLAIN_WIDTH: usize = 80;

pub fn run(args: &WatchArgs) -> anyhow::Result<ExitCode> {
    let mut watcher = Watcher::new(&args.dir);
    if args.once || !screen::is_there() {
        let lines = picture(&watcher.look()?, PLAIN_WIDTH, usize::MAX);
        return print(&lines.join("\n"));
    }
    follow(args, &mut watcher)
}

/// Draws until the run is finished or the user has seen enough; the last picture stays on the terminal.
fn follow(args: &WatchArgs, watcher: &mut Watcher) -> anyhow::Result<ExitCode> {
    let interrupts = interrupts();
    let (mut screen, mut enough) = (None, false);
    loop {
        let look = watcher.look()?;
        let (width, height) = screen::size();
        let lines = picture(&look, width, height);
        if look.is_finished() || enough {
            drop(screen);
            print(&lines.join("\n"))?;
            let code = if look.is_finished() { DONE } else { STOPPED };
            return Ok(code);
        }
        // Not before it is known that there is a run to draw.
        screen.get_or_insert_with(Screen::enter).show(&lines, width)?;
        enough = interrupts.recv_timeout(args.interval()).is_ok();
    }
}
