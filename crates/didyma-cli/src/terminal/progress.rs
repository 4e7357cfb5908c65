//! Progress on the terminal; silent where nobody looks.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar of this many steps, on stderr.
pub fn bar(total: u64, template: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(template).expect("the templates here are valid");
    bar.set_style(style.progress_chars("=> "));
    bar
}
