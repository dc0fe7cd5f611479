//! Ctrl-C during long work without Python's lock.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How often Python is asked; each time costs its lock.
const PERIOD: Duration = Duration::from_millis(100);

/// Asks Python from time to time whether a signal handler raised.
#[derive(Default)]
pub(crate) struct Signals {
    asked: Option<Instant>,
    error: Option<PyErr>,
}

impl Signals {
    /// Whether the work goes on. To be called without Python's lock.
    pub(crate) fn check(&mut self) -> ControlFlow<()> {
        if self.error.is_some() {
            return ControlFlow::Break(());
        }
        let now = Instant::now();
        if self.asked.is_some_and(|asked| now.duration_since(asked) < PERIOD) {
            return ControlFlow::Continue(());
        }
        self.asked = Some(now);
        #[expect(
            clippy::redundant_closure_for_method_calls,
            reason = "the method alone is for one lifetime, not for any"
        )]
        let checked = Python::attach(|py| py.check_signals());
        self.error = checked.err();
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What the handler raised, if it did.
    pub(crate) fn raised(self) -> PyResult<()> {
        self.error.map_or(Ok(()), Err)
    }
}
