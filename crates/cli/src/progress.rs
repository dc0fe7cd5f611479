use std::ops::ControlFlow;

use blockyard_replay::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error, for people only: it draws nothing where standard error is not a terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(name: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "{msg} {bar:30} {percent:>3} % {human_pos} of {human_len}, {eta} left",
        );
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message(name.to_owned());
        Self(bar)
    }

    pub(crate) fn report(&self, progress: &Progress) -> ControlFlow<()> {
        self.0.set_length(progress.total);
        self.0.set_position(progress.done);
        ControlFlow::Continue(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
