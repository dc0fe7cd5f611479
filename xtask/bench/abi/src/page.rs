//! The functions for a page: it writes a trace as bytes, replays the trace, and reads numbers.

use std::cell::RefCell;

use blockyard_measure::{OperationList, Replay};
use blockyard_record::Bytes;
use blockyard_rules::AllocatorConfig;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static STATE: RefCell<Option<(OperationList, Replay)>> = const { RefCell::new(None) };
}

/// Makes room for a trace of `length` bytes, and returns the address to which the page writes the trace.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; length];
        input.as_mut_ptr()
    })
}

/// Reads the trace and makes an allocator on a device of `capacity_gib`; returns how many allocations the
/// trace makes, or -1 where the bytes are not a trace.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_prepare(capacity_gib: u32) -> f64 {
    let trace = INPUT.with_borrow(|input| OperationList::from_bytes("page", input));
    let Ok(trace) = trace else { return -1.0 };
    let pairs = f64::from(u32::try_from(trace.pairs()).unwrap_or(u32::MAX));
    let replay = Replay::new(&trace, AllocatorConfig::default(), Bytes::gib(u64::from(capacity_gib)));
    STATE.with_borrow_mut(|state| *state = Some((trace, replay)));
    pairs
}

/// Replays the trace `times` times; returns the hash of the addresses of the last replay, or all ones if the
/// allocator failed.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_replay(times: u32) -> u64 {
    STATE.with_borrow_mut(|state| {
        let Some((trace, replay)) = state else { return u64::MAX };
        let mut hash = 0;
        for _ in 0..times {
            match replay.run(trace) {
                Ok(folded) => hash = folded,
                Err(_) => return u64::MAX,
            }
        }
        hash
    })
}
