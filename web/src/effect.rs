//! Effects: actions that run again when a signal that they read changes.

use leptos::prelude::Effect;

/// Runs `action` now, and again when a signal that it reads changes. `action` changes only the world outside
/// of the signals (a canvas, the address, storage) and writes no signal.
pub(crate) fn effect(action: impl FnMut() + 'static) {
    boxed_effect(Box::new(action));
}

fn boxed_effect(mut action: Box<dyn FnMut()>) {
    Effect::new(move |_: Option<()>| action());
}
