//! One animation frame at a time: what the pointer did since the last one is applied once, at its start.
//!
//! Every frame leaves a `frame` entry on the performance timeline: the work of this thread from the frame's start until
//! all effects of what it applied have run, drawing included.

use std::cell::RefCell;

use crate::browser;

/// The kind of a planned action; a later action of the same kind replaces an earlier one that has not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Seek,
    Hover,
    Scroll,
    Follow,
    Text,
    Play,
    Stage,
    Grid,
    Cross,
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

/// Drops the actions that were planned for a part of the page that is gone; the player goes on.
pub(crate) fn forget() {
    PLAN.with_borrow_mut(|plan| plan.actions.retain(|(slot, _)| *slot == Slot::Play));
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
    // Effects run as microtasks that were queued by now; this one runs behind them.
    if let Some(window) = browser::window() {
        window.queue_microtask(&browser::once(Box::new(measure)));
    }
}

/// Where a frame starts on the performance timeline.
const START: &str = "frame-start";

/// How many entries the timeline keeps.
const KEPT: u32 = 1000;

/// A worker has drawn a frame: a `painted` entry of the timeline.
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

/// The share of the work that is done, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a part that is drawn")]
pub(crate) fn fraction(done: u64, total: u64) -> f64 {
    done as f64 / total.max(1) as f64
}

/// A count as a float; exact far beyond what is counted here.
#[expect(clippy::cast_precision_loss, reason = "nothing is counted up to 2^53")]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}
