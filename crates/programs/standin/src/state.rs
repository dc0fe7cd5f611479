//! The state of CUDA in the process: one state for all entry points, behind one lock.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::handles::Handles;
use crate::memory::Devices;

/// A queue of work. All work is done at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) device: i32,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    /// The capture that the stream takes part in; 0 for none.
    pub(crate) capture: u64,
}

/// A mark in a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event {
    /// The capture that the event was recorded in; 0 for none.
    pub(crate) capture: u64,
    /// When the event was recorded; `None` before.
    pub(crate) at: Option<std::time::Instant>,
    /// The device and the stream in which it was recorded.
    pub(crate) device: i32,
    pub(crate) stream: usize,
    /// Whether the host has waited for the event since it was recorded.
    pub(crate) is_awaited: bool,
}

/// Memory of `cuMemCreate`, which `cuMemMap` maps to addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhysicalMemory {
    pub(crate) device: i32,
    pub(crate) size: u64,
}

/// The state of the process.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) devices: Devices,
    /// Pinned and registered memory of the host: first address and bytes.
    pub(crate) host: BTreeMap<u64, u64>,
    pub(crate) streams: Handles<Stream>,
    pub(crate) events: Handles<Event>,
    pub(crate) physical: Handles<PhysicalMemory>,
    /// Captured graphs and instances of them.
    pub(crate) graphs: Handles<()>,
    /// The latest capture; captures are numbered from 1.
    pub(crate) captures: u64,
    /// The objects of other libraries' entry points: the kind of each.
    pub(crate) objects: Handles<&'static str>,
}

static STATE: Mutex<State> = Mutex::new(State {
    devices: Devices::none(),
    host: BTreeMap::new(),
    streams: Handles::above(0x10_0000),
    events: Handles::above(0x1000_0000),
    physical: Handles::above(0x8000_0000),
    graphs: Handles::above(0x6000_0000),
    captures: 0,
    objects: Handles::above(0x4000_0000),
});

thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
    static ERROR: Cell<i32> = const { Cell::new(0) };
}

/// The process's state. The caller must not hold the lock while it calls Python or the program.
pub(crate) fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread's device.
pub(crate) fn current_device() -> i32 {
    DEVICE.get()
}

/// Sets the calling thread's device.
pub(crate) fn set_current_device(device: i32) {
    DEVICE.set(device);
}

/// Remembers the calling thread's error for `cudaGetLastError`.
pub(crate) fn set_error(error: i32) -> i32 {
    ERROR.set(error);
    error
}

/// The calling thread's error, which is cleared.
pub(crate) fn take_error() -> i32 {
    ERROR.replace(0)
}

/// The calling thread's error, which is kept.
pub(crate) fn last_error() -> i32 {
    ERROR.get()
}
