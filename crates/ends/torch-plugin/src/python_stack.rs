//! The Python stack of the calling thread, taken from the interpreter of this process, if there is one.
//!
//! A stack is taken before the allocator's lock, so that no thread waits for Python's lock while it holds the
//! allocator's lock. Frames and stacks are stored once.
#![expect(unsafe_code, reason = "Python's C API is called")]

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use blockyard_hooks::python_api::{Api, Object, api};
use blockyard_record::{StackId, Stacks};

use crate::error::PluginError;

/// The most frames of a stack, from the innermost on; further frames are left out.
const MAX_FRAMES: usize = 64;

static IS_ON: AtomicBool = AtomicBool::new(false);
static KNOWN: Mutex<Option<StackTable>> = Mutex::new(None);

thread_local! {
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// Sets whether stacks are taken from now on.
///
/// # Errors
///
/// [`PluginError::NoPython`] where this process has no interpreter.
pub(crate) fn set_on(is_on: bool) -> Result<(), PluginError> {
    if is_on && api().is_none() {
        return Err(PluginError::NoPython);
    }
    IS_ON.store(is_on, Ordering::Relaxed);
    Ok(())
}

/// Runs `act` with the stack of this thread known to [`current`].
#[inline]
pub(crate) fn with_stack<R>(act: impl FnOnce() -> R) -> R {
    if !IS_ON.load(Ordering::Relaxed) {
        return act();
    }
    let before = CURRENT.replace(take_stack());
    let done = act();
    CURRENT.set(before);
    done
}

/// The number of the stack within [`with_stack`]; 0 for none.
pub(crate) fn current() -> u32 {
    CURRENT.get()
}

/// All frames and stacks so far.
pub(crate) fn stacks() -> Stacks {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.as_ref().map(|known| known.stacks.clone()).unwrap_or_default()
}

/// Frames and stacks, each once.
#[derive(Debug, Default)]
struct StackTable {
    stacks: Stacks,
    /// The numbers of frames by code object and line. The code objects are kept alive, so that no other
    /// object gets an address of theirs.
    frame_numbers: HashMap<(usize, c_int), u32>,
}

/// Takes the stack of this thread and returns its number; 0 where the thread runs no Python.
#[cold]
fn take_stack() -> u32 {
    let Some(api) = api() else { return 0 };
    // SAFETY: both may be called at any time.
    let is_usable = unsafe {
        (api.is_initialized)() != 0 && api.is_finalizing.is_none_or(|is_finalizing| is_finalizing() == 0)
    };
    if !is_usable {
        return 0;
    }
    // SAFETY: the interpreter exists and does not end, and this thread holds no lock of ours.
    let state = unsafe { (api.ensure)() };
    let number = take_with_lock(api);
    // SAFETY: the state comes from `ensure`.
    unsafe { (api.release)(state) };
    number
}

fn take_with_lock(api: &Api) -> u32 {
    let mut calls = Vec::with_capacity(MAX_FRAMES);
    // SAFETY: Python's lock is held. The first frame is borrowed and outlives this call; each other one is
    // given back after its own `back` was taken.
    unsafe {
        let mut frame = (api.frame)();
        let mut is_owned = false;
        while !frame.is_null() && calls.len() < MAX_FRAMES {
            calls.push(((api.code)(frame), (api.line)(frame)));
            let back = (api.back)(frame);
            if is_owned {
                (api.drop_reference)(frame);
            }
            (frame, is_owned) = (back, true);
        }
        if is_owned && !frame.is_null() {
            (api.drop_reference)(frame);
        }
    }
    let number = {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().number_of(api, &calls).unwrap_or(StackId::EMPTY).get()
    };
    for (code, _) in calls {
        // Outside of this module's lock: dropping the code object may free memory, which calls this module
        // again. SAFETY: `PyFrame_GetCode` gave a reference.
        unsafe { (api.drop_reference)(code) };
    }
    number
}

impl StackTable {
    /// The number of the stack with these code objects and lines; `None` once no more stacks can be numbered.
    /// Python's lock is held.
    fn number_of(&mut self, api: &Api, calls: &[(Object, c_int)]) -> Option<StackId> {
        let frames: Option<Vec<u32>> =
            calls.iter().map(|(code, line)| self.frame_of(api, *code, *line)).collect();
        self.stacks.intern_stack(&frames?)
    }

    fn frame_of(&mut self, api: &Api, code: Object, line: c_int) -> Option<u32> {
        if let Some(number) = self.frame_numbers.get(&(code.addr(), line)) {
            return Some(*number);
        }
        // SAFETY: Python's lock is held, and the caller has a reference to the code object.
        let texts = unsafe { [api.text_of(code, c"co_name"), api.text_of(code, c"co_filename")] };
        let [name, filename] = texts.map(|text| self.stacks.intern_text(&text));
        let (name, filename) = (name?, filename?);
        let frame = self.stacks.intern_frame(name, filename, u32::try_from(line).unwrap_or(0))?;
        // SAFETY: Python's lock is held. The reference is never given back, see `frame_numbers`.
        unsafe { (api.add_reference)(code) };
        self.frame_numbers.insert((code.addr(), line), frame.get());
        Some(frame.get())
    }
}
