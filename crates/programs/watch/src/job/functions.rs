//! The functions that Python calls.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{JOB, MarkKind, begin, locked, start};
use crate::frames::{DeviceMemory, MAX_DEVICES, StackFrame};
use crate::python_frames;

/// How long the end of the program waits for a reader that does not read.
const MAX_WAIT_AT_END: Duration = Duration::from_secs(2);

/// A text of C.
///
/// # Safety
///
/// The pointer is null, or that of a text that ends with 0.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// A sentence for Python, which lives until the process ends; null for none.
fn sentence(result: Result<(), String>) -> *const c_char {
    match result.map_err(CString::new) {
        Err(Ok(text)) => text.into_raw(),
        Err(Err(_)) | Ok(()) => std::ptr::null(),
    }
}

/// Connects to the socket and attaches to the allocator. `hello` is [`Hello`](crate::Hello) as JSON. Returns null,
/// or a sentence that says why this process is not watched. [`blockyard_watch_begin`] follows.
///
/// # Safety
///
/// Both are texts that end with 0. PyTorch has initialized CUDA, and uses its native allocator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_start(socket: *const c_char, hello: *const c_char) -> *const c_char {
    // SAFETY: by the caller.
    let (socket, hello) = unsafe { (text(socket), text(hello)) };
    let hello = serde_json::from_str(&hello).unwrap_or_default();
    sentence(start(&socket, &hello).map_err(|error| error.to_string()))
}

/// Begins to send, once the thread is not held any more. An allocation of 1,536 bytes at this address was made and
/// freed since the start, which shows that events are understood; 0 if it failed. Returns null, or a sentence that
/// says why this process is not watched.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_watch_begin(addr: u64) -> *const c_char {
    sentence(begin(addr).map_err(|error| error.to_string()))
}

/// Takes Python stacks from now on, if the innermost frame of the calling thread is this one. Returns null, or
/// a sentence that says why no stack is taken.
///
/// # Safety
///
/// Both are texts that end with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_stacks(
    minor: u32,
    file: *const c_char,
    name: *const c_char,
    line: u32,
) -> *const c_char {
    // SAFETY: by the caller.
    let known = unsafe { StackFrame { file: text(file), name: text(name), line } };
    sentence(python_frames::set_on(minor, &known))
}

/// Takes the stacks of requests of so many bytes and more from now on, whatever it costs. Without this call all have
/// one, until that takes too much time.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_watch_stacks_from(size: u64) {
    if let Some(job) = JOB.get() {
        job.stacks.fix(size);
    }
}

/// Whether events are taken from now on, to measure what that costs. Those of between count as lost.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_watch_set_on(is_on: c_int) {
    if let Some(job) = JOB.get() {
        job.is_on.store(is_on != 0, Ordering::Relaxed);
        job.devices.iter().for_each(|device| device.counter.lose());
    }
}

/// Ends a step. `memory` has three numbers for each device: the bytes that can be reserved, all bytes, and
/// the limit or 0. Returns whether a snapshot is wanted, because events were lost.
///
/// # Safety
///
/// `memory` has three numbers for each of so many `devices`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_step(number: u64, memory: *const u64, devices: usize) -> c_int {
    let Some(job) = JOB.get() else { return 0 };
    let numbers = if memory.is_null() {
        &[]
    } else {
        // SAFETY: by the caller.
        unsafe { std::slice::from_raw_parts(memory, devices.min(MAX_DEVICES) * 3) }
    };
    let of = |three: &[u64]| match *three {
        [available, total, limit] => DeviceMemory { available, total, limit },
        _ => DeviceMemory::default(),
    };
    job.mark(MarkKind::Step { number, memory: numbers.chunks_exact(3).map(of).collect() });
    if let Some(note) = job.stacks.limit() {
        job.mark(MarkKind::Note(note));
    }
    c_int::from(job.is_on.load(Ordering::Relaxed) && job.wants_snapshot.load(Ordering::Relaxed))
}

/// Holds the thread while a snapshot is taken, so that no event after it is sent before it.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_watch_hold() {
    if let Some(job) = JOB.get() {
        job.wants_snapshot.store(false, Ordering::Relaxed);
        job.is_held.store(true, Ordering::Release);
    }
}

/// Sends the snapshot that was just taken, as a pickle, and lets the thread go on. Without bytes the thread
/// goes on alone.
///
/// # Safety
///
/// `pickle` has so many bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_snapshot(pickle: *const u8, length: usize) {
    let Some(job) = JOB.get() else { return };
    if !pickle.is_null() {
        // SAFETY: by the caller.
        let bytes = unsafe { std::slice::from_raw_parts(pickle, length) };
        job.mark(MarkKind::Snapshot { pickle: bytes.to_vec(), lost: job.at_snapshot(1) });
    }
    job.is_held.store(false, Ordering::Release);
}

/// Says that a request found no memory.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_watch_out_of_memory(device: usize, size: u64) {
    if let Some(job) = JOB.get() {
        job.mark(MarkKind::OutOfMemory { device: device.min(MAX_DEVICES - 1), size });
    }
}

/// Sends a sentence.
///
/// # Safety
///
/// It is a text that ends with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_watch_note(note: *const c_char) {
    if let Some(job) = JOB.get() {
        // SAFETY: by the caller.
        job.mark(MarkKind::Note(unsafe { text(note) }));
    }
}

/// Sends what is left before the program ends. Waits a little for a reader that does not read, and not longer.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_watch_finish() {
    // A copy of the process has no thread that could send.
    let Some(job) = JOB.get().filter(|job| job.pid == std::process::id()) else { return };
    job.is_ending.store(true, Ordering::Release);
    let ended = locked(&job.has_ended);
    let _ = job.ended.wait_timeout_while(ended, MAX_WAIT_AT_END, |ended| !*ended);
    job.is_on.store(false, Ordering::Relaxed);
}
