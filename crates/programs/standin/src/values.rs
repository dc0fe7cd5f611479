//! Values that a program computes on the device, where the values are known.
//!
//! Bytes that the host wrote are known. An operator whose inputs are known and small is computed, by
//! PyTorch's own kernels for processors, and its result becomes the bytes of the device. PyTorch reports
//! every operator to its observers (`at::RecordFunction`, which its profiler uses), so the allocator gets no
//! additional request. [`layout`] finds by trials where PyTorch keeps the arguments, so that no release's
//! layout is written down here. Where the search fails, every kernel makes all bytes unknown, as without
//! observers.
//!
//! The order of a call: [`observers`]' `start_operator` looks at the arguments and has the helper in Python
//! compute the results; the bytes that the operator's kernels write become unknown; `end_operator` writes the
//! computed results.
#![expect(unsafe_code, reason = "PyTorch calls back, and its objects are read")]

pub(crate) mod assumptions;
mod call;
mod fill;
pub(crate) mod frames;
mod growth;
mod layout;
mod observers;
mod python;
mod random;
mod searches;
mod tensors;

use std::ffi::{c_char, c_int, c_void};

use crate::abi::{In, Out, Text};
use crate::state::state;
use crate::values::layout::Probe;
use crate::values::python::Helper;

/// The helper that computes, in Python, and the search for checks that it uses.
const HELPER: &str =
    concat!(include_str!("values/checks.py"), "\n\n", include_str!("values/helper.py"), "\0");

/// The text of the helper, which the process's Python runs after PyTorch was imported.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_helper() -> *const c_char {
    HELPER.as_ptr().cast()
}

/// Starts to observe operators, in order to find PyTorch's layout. `path` is that of `libtorch_cpu.so`.
/// Returns 0 where PyTorch cannot be observed.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_begin(path: Text) -> c_int {
    c_int::from(path.get().is_some_and(observers::begin))
}

/// Says the arguments of the next operator: the `TensorImpl` of its first two tensors. `probe` is the number
/// of a `layout::Probe`.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_expect(probe: c_int, first: u64, second: u64) {
    layout::expect(Probe::of(probe), [first, second]);
}

/// Says the result of the operator: its `TensorImpl`. Returns 1 where everything that the operator should
/// show was found.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_found(result: u64) -> c_int {
    c_int::from(layout::found(result))
}

/// Says where a tensor has its bytes: its `TensorImpl`, its `StorageImpl`, the address and the count of its
/// bytes. Returns 1 where the offsets of all three were found.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_storage(tensor: u64, storage: u64, data: u64, bytes: u64) -> c_int {
    c_int::from(layout::find_storage(tensor, storage, data, bytes))
}

/// Ends the search for the layout: the helper's functions `classify`, `begin`, `end` and `check` are called
/// from now on. Returns 0 where the layout is not complete.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_ready(
    classify: *mut c_void,
    begin: *mut c_void,
    end: *mut c_void,
    check: *mut c_void,
) -> c_int {
    c_int::from(Helper::set(classify, begin, end, check) && observers::start_following())
}

/// How sure the least sure of these bytes is, as the helper numbers it.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_certainty(address: u64, bytes: u64) -> c_int {
    c_int::try_from(state().devices.certainty(address, address.saturating_add(bytes)).number()).unwrap_or(3)
}

/// How many blocks the allocator handed out and took back.
#[unsafe(no_mangle)]
extern "C" fn blockyard_block_events() -> u64 {
    observers::block_events()
}

/// Stops observing operators.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_stop() {
    observers::stop();
}

/// Observes operators again, after [`blockyard_values_stop`]: a measurement compares both in turns. Returns 0
/// where operators are observed already, or cannot be. All bytes are unknown at first.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_resume() -> c_int {
    c_int::from(observers::resume())
}

/// Writes random numbers of the device: see [`random::fill`]. Returns 1 where the numbers were written.
#[unsafe(no_mangle)]
extern "C" fn blockyard_values_random(
    kind: c_int,
    to: Out<u8>,
    count: u64,
    seed: u64,
    offset: u64,
    numbers: In<u64>,
) -> c_int {
    c_int::from(random::fill(kind, to, count, seed, offset, numbers))
}

/// The allocator hands out a block, or takes it back (`bytes` is negative): the bytes of the block are
/// unknown from now on.
///
/// PyTorch calls this function of `libc10` for its profiler. The stand-in's function is called first, and
/// calls PyTorch's.
#[unsafe(no_mangle)]
extern "C" fn _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
    address: u64,
    bytes: i64,
    allocated: usize,
    reserved: usize,
    device: u16,
) {
    observers::note_block(address, bytes.unsigned_abs(), bytes > 0);
    observers::forward_block(address, bytes, allocated, reserved, device);
}

/// Notes that a kernel or a library's function ran: the bytes that it writes are unknown from now on.
pub(crate) fn note_computation() {
    // After observation stops, operators that started before are not observed either. A kernel that no
    // observed operator ran may have written anywhere.
    if !(observers::is_on() && frames::note_launch()) {
        state().devices.forget();
    }
}
