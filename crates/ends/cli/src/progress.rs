//! Progress of long work: a bar in a terminal, or a caller's function.

use std::cell::RefCell;
use std::ops::ControlFlow;

use blockyard_replay::{OnProgress, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The receiver of the progress of long work.
pub(crate) enum Bar<'a> {
    /// A bar on standard error, for people only: it draws nothing if standard error is not a terminal.
    Drawn(ProgressBar),
    /// A caller of this library, who can also cancel.
    Reported(RefCell<OnProgress<'a>>),
}

/// A line on standard error about what runs now, for people only, with the time that it runs. A quiet line
/// draws nothing.
pub(crate) fn line(is_quiet: bool) -> ProgressBar {
    let target = if is_quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let line = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
        line.set_style(style);
    }
    line.enable_steady_tick(std::time::Duration::from_millis(200));
    line
}

impl<'a> Bar<'a> {
    pub(crate) fn to(on_progress: OnProgress<'a>) -> Self {
        Self::Reported(RefCell::new(on_progress))
    }

    pub(crate) fn new(name: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "{msg} {bar:30} {percent:>3}% {human_pos} of {human_len}, {eta} left",
        );
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message(name.to_owned());
        Self::Drawn(bar)
    }

    /// A bar that draws nothing.
    pub(crate) fn hidden() -> Self {
        Self::Drawn(ProgressBar::hidden())
    }

    pub(crate) fn report(&self, progress: &Progress) -> ControlFlow<()> {
        match self {
            Self::Drawn(bar) => {
                bar.set_length(progress.total);
                bar.set_position(progress.done);
                ControlFlow::Continue(())
            }
            Self::Reported(on_progress) => match on_progress.try_borrow_mut() {
                Ok(mut on_progress) => on_progress(progress.clone()),
                // The caller's function reports progress itself, while it is being called.
                Err(_) => ControlFlow::Continue(()),
            },
        }
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        if let Self::Drawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}
