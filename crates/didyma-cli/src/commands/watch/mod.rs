//! `didyma watch`: the picture of a run in the terminal while it goes on, for one who only looks.

mod charts;
pub use charts::{bars, bin};
mod draw;
mod look;
mod screen;
mod words;

use crate::args::WatchArgs;
use crate::{DONE, ExitCode, STOPPED, print};
use draw::picture;
use look::Watcher;
use screen::Screen;
use std::sync::mpsc::{Receiver, channel};

/// Columns of a picture that goes elsewhere than to a terminal.
const PLAIN_WIDTH: usize = 80;

pub fn watch(args: &WatchArgs) -> anyhow::Result<ExitCode> {
    let mut watcher = Watcher::new(&args.dir);
    match args.once || !screen::is_there() {
        true => {
            let lines = picture(&watcher.look()?, PLAIN_WIDTH, usize::MAX);
            print(&lines.join("\n")).map(|()| DONE)
        }
        false => follow(args, &mut watcher),
    }
}

/// Draws until the run is finished or the user has seen enough; the last picture stays on the terminal.
fn follow(args: &WatchArgs, watcher: &mut Watcher) -> anyhow::Result<ExitCode> {
    let interrupts = interrupts()?;
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

/// Hears of Ctrl-C, SIGTERM and a terminal that goes away, so that the screen can be left in order.
fn interrupts() -> anyhow::Result<Receiver<()>> {
    let (heard, interrupts) = channel();
    ctrlc::set_handler(move || {
        // Nobody listens once the watching has ended.
        let _ = heard.send(());
    })?;
    Ok(interrupts)
}
