//! A callback before one step of a device.

use std::cell::{Cell, RefCell};
use std::fmt;

type Callback = Box<dyn FnOnce(bool)>;

/// Calls back once, when a device has done this many steps and the next one is about to begin.
#[derive(Default)]
pub(super) struct StepCallback {
    steps: Cell<Option<usize>>,
    callback: RefCell<Option<Callback>>,
}

impl fmt::Debug for StepCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl StepCallback {
    /// Sets the callback, in the place of an earlier one.
    pub(super) fn set(&self, steps: usize, callback: Callback) {
        self.steps.set(Some(steps));
        self.callback.replace(Some(callback));
    }

    /// To be called before each step, when nothing of the device is borrowed.
    pub(super) fn check(&self, steps: impl FnOnce() -> usize, is_free: bool) {
        if self.steps.get().is_some_and(|wanted| steps() >= wanted) {
            self.steps.set(None);
            // Taken out before it is called: it may look at the device.
            let callback = self.callback.take();
            if let Some(callback) = callback {
                callback(is_free);
            }
        }
    }
}
