//! What a rank shows in the page of `torch.distributed.debug`: a file, which the rank reads when it is asked.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::output;

/// The last step of a rank and its forecast.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// `None` for a process without a rank.
    file: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    step: String,
    forecast: String,
    is_new: bool,
}

impl Status {
    pub(super) fn of(file: Option<PathBuf>) -> Self {
        Self { file, ..Self::default() }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        state.is_new = true;
    }

    /// The lines of the last step, or that it failed.
    pub(super) fn set_step(&self, step: String) {
        self.change(|state| state.step = step);
    }

    pub(super) fn set_forecast(&self, forecast: &str) {
        self.change(|state| state.forecast = format!("forecast: {forecast}\n"));
    }

    /// Writes what is new.
    pub(super) fn write(&self) {
        let Some(file) = &self.file else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.is_new) {
            // The page lacks what cannot be written, and nothing else does.
            let _ = output::write_whole(file, format!("{}\n{}", state.step, state.forecast).as_bytes());
        }
    }
}
