//! Questions whether the GPU has done some work. In a dry run all work is done at once, so an answer is exact
//! only if the program waited before.
//!
//! PyTorch's allocator asks before it uses a freed block again that another stream uses: a tensor of
//! `record_stream`, of a message between ranks (`isend`, `irecv`), or of autograd over several streams. On a
//! GPU the block may still be in use, and another one is taken.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::report;
use crate::state::Event;

/// What the report says about blocks that another stream uses.
pub(crate) const OTHER_STREAM: &str = "another stream uses a tensor (by record_stream, a message between ranks or autograd): its block is \
     free once the GPU has done that work, which takes no time here";
const QUESTION: &str = "the program asks whether the GPU has done its work: here the answer is always yes";

/// When the host last waited, by device and stream; `None` for a wait for all streams of the device.
static WAITED: Mutex<BTreeMap<(c_int, Option<usize>), Instant>> = Mutex::new(BTreeMap::new());
/// Whether the report has yet to say that a block was taken which another stream uses.
static IS_UNSAID: AtomicBool = AtomicBool::new(false);

/// Notes that the host waits for all work of a device, or of one stream.
pub(crate) fn wait(device: c_int, stream: Option<usize>) {
    let mut waited = WAITED.lock().unwrap_or_else(PoisonError::into_inner);
    waited.insert((device, stream), Instant::now());
}

/// Whether the work before this event would also be done on a GPU, because the host waited for it.
fn is_done(event: &Event) -> bool {
    let Some(at) = event.at else { return true };
    let waited = WAITED.lock().unwrap_or_else(PoisonError::into_inner);
    let after = |stream| waited.get(&(event.device, stream)).is_some_and(|waited| *waited >= at);
    event.is_awaited || after(None) || after(Some(event.stream))
}

/// Notes that a library asks whether the work of an event is done. `caller` is an address in the library's
/// code.
pub(crate) fn note_event_query(event: &Event, caller: usize) {
    if is_done(event) {
        return;
    }
    match library_of(caller).as_deref() {
        // The allocator has its lock, for which another thread may wait with Python's lock: Python is not
        // asked for the line now.
        Some(b"libc10_cuda.so") => IS_UNSAID.store(true, Ordering::Relaxed),
        Some(b"libtorch_python.so") => report::report_estimate(QUESTION),
        _ => {}
    }
}

/// Notes that the program asks whether a stream's work is done.
pub(crate) fn note_stream_query() {
    report::report_estimate(QUESTION);
}

/// Reports what could not be reported while a lock was held. No lock may be held now.
pub(crate) fn report_unsaid() {
    if IS_UNSAID.load(Ordering::Relaxed) && IS_UNSAID.swap(false, Ordering::Relaxed) {
        report::report_estimate(OTHER_STREAM);
    }
}

/// The file name of the library that has this address.
#[expect(unsafe_code, reason = "the system is asked")]
fn library_of(address: usize) -> Option<Vec<u8>> {
    // SAFETY: zeros are a value of this type, whose fields are addresses.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the name is a text that lives as long as the library.
    let name = unsafe {
        if libc::dladdr(address as *const _, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(info.dli_fname)
    };
    name.to_bytes().rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{is_done, library_of, wait};
    use crate::state::Event;

    #[test]
    fn work_is_done_for_certain_once_the_host_has_waited() {
        // Devices of this test alone.
        let event = Event { at: Some(Instant::now()), device: 71, stream: 5, ..Event::default() };
        assert!(!is_done(&event));
        wait(71, Some(6));
        wait(72, None);
        assert!(!is_done(&event), "another stream, another device");
        wait(71, Some(5));
        assert!(is_done(&event));
        let later = Event { at: Some(Instant::now()), ..event };
        assert!(!is_done(&later));
        assert!(is_done(&Event { is_awaited: true, ..later }));
        wait(71, None);
        assert!(is_done(&later));
        assert!(is_done(&Event::default()), "nothing was recorded");
    }

    #[test]
    fn a_caller_is_known_by_its_library() {
        let own = library_of(a_caller_is_known_by_its_library as *const () as usize);
        assert!(own.is_some_and(|name| name.starts_with(b"blockyard_standin")));
        assert_eq!(library_of(1), None);
    }
}
