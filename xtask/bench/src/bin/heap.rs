//! The heap memory of an allocator, counted in a process that does nothing else: `cargo xtask bench heap`
//! starts it.
#![expect(unsafe_code, reason = "an allocator that counts stands in for the system's")]
#![allow(clippy::print_stdout, reason = "the answer goes to the program that started this one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use blockyard_bench::sections::HeapUse;
use blockyard_measure::OperationList;

struct CountingAllocator;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

fn main() -> Result<()> {
    let file = std::env::args_os().nth(1).context("the file of a trace is missing")?;
    let trace = OperationList::from_bytes("counted", &std::fs::read(file)?)?;
    let counted = HeapUse::of(&trace, || HELD.load(Ordering::Relaxed))?;
    println!("{}", serde_json::to_string(&counted)?);
    Ok(())
}
