//! Plans actions for the next animation frame. Many events of the pointer in one frame lead to one action at
//! the start of the next.
//!
//! Every frame leaves a `frame` entry on the browser's performance timeline. The entry measures this thread
//! from the start of the frame until all effects of its actions have run, drawing included.

use std::cell::RefCell;

use crate::browser;

/// The kind of a planned action. A later action of the same kind replaces an earlier one that has not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Seek,
    Hover,
    Scroll,
    Follow,
    Text,
    Play,
    Stage,
    Map,
    Grid,
    Cross,
    Tip,
    GridTip,
}

type FrameAction = Box<dyn FnOnce()>;

#[derive(Default)]
struct FrameActions {
    actions: Vec<(Slot, FrameAction)>,
    is_requested: bool,
}

thread_local! {
    static PLAN: RefCell<FrameActions> = RefCell::default();
}

/// Runs `action` at the start of the next frame.
pub(crate) fn plan(slot: Slot, action: impl FnOnce() + 'static) {
    let is_requested = PLAN.with_borrow_mut(|plan| {
        plan.actions.retain(|(planned, _)| *planned != slot);
        plan.actions.push((slot, Box::new(action)));
        std::mem::replace(&mut plan.is_requested, true)
    });
    if !is_requested && let Some(window) = browser::window() {
        let _ = window.request_animation_frame(&browser::once(Box::new(run)));
    }
}

/// Drops the planned actions, because their part of the page was removed. Only the player continues.
pub(crate) fn forget() {
    PLAN.with_borrow_mut(|plan| plan.actions.retain(|(slot, _)| *slot == Slot::Play));
}

/// Drops the planned actions of a figure once the figure is removed, since they would read values that were
/// removed. Called while the figure is made.
pub(crate) fn forget_with_view(slots: &'static [Slot]) {
    leptos::prelude::on_cleanup(move || {
        PLAN.with_borrow_mut(|plan| plan.actions.retain(|(slot, _)| !slots.contains(slot)));
    });
}

fn performance() -> Option<web_sys::Performance> {
    browser::window()?.performance()
}

fn run() {
    if let Some(performance) = performance() {
        let _ = performance.mark(START);
    }
    let actions = PLAN.with_borrow_mut(|plan| {
        plan.is_requested = false;
        std::mem::take(&mut plan.actions)
    });
    for (_, action) in actions {
        action();
    }
    // Effects run as microtasks, which the actions have queued by now. This microtask runs after them.
    if let Some(window) = browser::window() {
        window.queue_microtask(&browser::once(Box::new(measure)));
    }
}

/// The name of the mark at the start of a frame.
const START: &str = "frame-start";

/// How many entries of a name the performance timeline keeps.
const KEPT: u32 = 1000;

/// Adds a `painted` entry to the performance timeline, when a worker has drawn a frame.
pub(crate) fn painted() {
    let Some(performance) = performance() else { return };
    if performance.get_entries_by_name("painted").length() >= KEPT {
        performance.clear_marks_with_mark_name("painted");
    }
    let _ = performance.mark("painted");
}

fn measure() {
    let Some(performance) = performance() else { return };
    if performance.get_entries_by_name("frame").length() >= KEPT {
        performance.clear_measures_with_measure_name("frame");
    }
    let _ = performance.measure_with_start_mark("frame", START);
    performance.clear_marks_with_mark_name(START);
}

/// The share of a job that is done, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "the share is only drawn")]
pub(crate) fn fraction(done: u64, total: u64) -> f64 {
    done as f64 / total.max(1) as f64
}

/// A count as a float; exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "no count here reaches 2^53")]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}
