//! Counts the memory of the process, so that a program that takes too much ends with a sentence.
#![expect(unsafe_code, reason = "an allocator that counts stands in for the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use blockyard_record::Bytes;

use crate::exit_status::ExitStatus;

static USED: AtomicUsize = AtomicUsize::new(0);
/// A request beyond these bytes ends the process.
static MAX_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The system's allocator with a count of its bytes; the command's binary has it.
#[derive(Clone, Copy, Debug)]
pub struct CountedHeap;

/// The bytes in use; 0 in a process with another allocator.
pub(crate) fn used() -> u64 {
    USED.load(Ordering::Relaxed) as u64
}

/// Ends the process when it asks for more than one and a half times `most`. The interpreter stops a program
/// at `most`, but only between two operations: a single call may take everything at once.
pub(crate) fn limit(most: Bytes) {
    let beyond = most.get().saturating_add(most.get() / 2);
    MAX_BYTES.store(usize::try_from(beyond).unwrap_or(usize::MAX), Ordering::Relaxed);
}

fn grow(bytes: usize) {
    let before = USED.fetch_add(bytes, Ordering::Relaxed);
    if before.saturating_add(bytes) > MAX_BYTES.load(Ordering::Relaxed) {
        end();
    }
}

#[cold]
fn end() -> ! {
    // The requests of this function must not call it again.
    MAX_BYTES.store(usize::MAX, Ordering::Relaxed);
    let text = b"blockyard: the program was stopped because one of its calls needs more of the computer's \
memory than a run may take (see --max-host-memory)\n";
    let _nobody_reads = std::io::stderr().write_all(text);
    std::process::exit(ExitStatus::Negative.code().into())
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for CountedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size.saturating_sub(layout.size()));
        USED.fetch_sub(layout.size().saturating_sub(size), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}
