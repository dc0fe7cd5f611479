//! The allocator of the interpreter's own data: if the data no longer fits, the worker ends with a sentence,
//! where the browser's message would be `unreachable`.
#![expect(unsafe_code, reason = "an allocator stands in for the system's")]

use std::alloc::{GlobalAlloc, Layout, System};

const FULL: &str = "the program's own data needs more than the 2 GiB that the interpreter may have in a page";

/// The system's allocator; a request that it cannot serve ends the worker with a sentence.
struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

fn checked(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        wasm_bindgen::throw_str(FULL);
    }
    block
}

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}
