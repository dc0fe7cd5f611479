//! The operators that the calling thread is in, innermost last.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::memory::Certainty;
use crate::state::state;
use crate::values::fill::Fill;
use crate::values::python::{Object, Operator};
use crate::values::tensors::Tensor;

/// An operator that has started and not ended.
#[derive(Debug, Default)]
pub(crate) struct RunningOperator {
    pub(super) operator: Option<&'static Operator>,
    /// Whether the operator itself launched a kernel.
    pub(super) has_launched: bool,
    /// Blocks that the allocator handed out since the operator started: first address and the address after
    /// the last.
    pub(super) blocks: Vec<(u64, u64)>,
    /// The tensors that the operator writes, of those that it was given.
    pub(super) written: Vec<Tensor>,
    /// The results that the helper computed.
    pub(super) computed: Option<Arc<Object>>,
    /// The fill that the operator does, if it does nothing else.
    pub(super) fill: Option<Fill>,
    /// How many results the operator will find, where it asks the device for the number, and whether the
    /// number is only assumed.
    pub(super) count: Option<(i64, bool)>,
    /// The type of the only value that the host reads, as PyTorch numbers types.
    pub(super) value: Option<i32>,
    /// Whether the operator copies a tensor that is trained. A program reads no sizes of one, and a model's
    /// are most of what is copied.
    pub(super) is_of_parameter: bool,
}

thread_local! {
    static FRAMES: RefCell<Vec<RunningOperator>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread runs the helper, whose own operators are not observed.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs the helper.
pub(super) fn is_busy() -> bool {
    BUSY.get()
}

/// Calls a function whose operators are not observed.
pub(super) fn unobserved<T>(act: impl FnOnce() -> T) -> T {
    let before = BUSY.replace(true);
    let result = act();
    BUSY.set(before);
    result
}

/// Notes that an operator started.
pub(super) fn push(frame: RunningOperator) {
    FRAMES.with_borrow_mut(|frames| frames.push(frame));
}

/// Ends the innermost operator. Its blocks become blocks of the operator that called it, too.
pub(super) fn pop() -> Option<RunningOperator> {
    FRAMES.with_borrow_mut(|frames| {
        let frame = frames.pop()?;
        if let Some(outer) = frames.last_mut()
            && !frame.blocks.is_empty()
        {
            outer.blocks.extend_from_slice(&frame.blocks);
        }
        Some(frame)
    })
}

/// Whether the thread is in no operator.
pub(super) fn is_outside() -> bool {
    FRAMES.with_borrow(Vec::is_empty)
}

/// Notes that the allocator handed out a block to each operator that this thread is in.
pub(super) fn add_block(start: u64, end: u64) {
    FRAMES.with_borrow_mut(|frames| {
        if let Some(frame) = frames.last_mut() {
            frame.blocks.push((start, end));
        }
    });
}

/// Notes the launch of a kernel: the blocks that its operator may have written are unknown from now on.
/// Returns false outside of any operator.
pub(super) fn note_launch() -> bool {
    FRAMES.with_borrow_mut(|frames| {
        let Some(frame) = frames.last_mut() else { return false };
        frame.has_launched = true;
        if !frame.blocks.is_empty() {
            let mut state = state();
            for (start, end) in &frame.blocks {
                state.devices.mark(*start, *end, Certainty::Unknown);
            }
        }
        true
    })
}

/// Whether the innermost operator copies a tensor that is trained.
pub(crate) fn is_of_parameter() -> bool {
    FRAMES.with_borrow(|frames| frames.last().is_some_and(|frame| frame.is_of_parameter))
}

/// How many results the operator around this read will find, and whether the number is assumed.
pub(crate) fn count() -> Option<(i64, bool)> {
    FRAMES.with_borrow(|frames| {
        let counts = || frames.iter().rev().filter_map(|frame| frame.count);
        counts().find(|(_, is_assumed)| !is_assumed).or_else(|| counts().next())
    })
}

/// The type of the value that the host reads, as PyTorch numbers types.
pub(crate) fn value() -> Option<i32> {
    FRAMES.with_borrow(|frames| frames.iter().rev().find_map(|frame| frame.value))
}
