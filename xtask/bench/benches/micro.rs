//! Small parts of the allocator by themselves: `cargo bench --package blockyard-bench`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark is no interface, and ends where the allocator fails"
)]

use blockyard_allocator::{Allocation, AllocatorConfig, CachingAllocator};
use blockyard_device::VirtualDevice;
use blockyard_record::{Bytes, StreamId};
use divan::{Bencher, black_box};

type Allocator = CachingAllocator<VirtualDevice>;

const STREAM: StreamId = StreamId::DEFAULT;

fn main() {
    divan::main();
}

fn allocator() -> Allocator {
    let device = VirtualDevice::new(Bytes::gib(512));
    CachingAllocator::new(device, AllocatorConfig::default(), blockyard_record::NullSink)
}

fn take(allocator: &mut Allocator, size: u64) -> Allocation {
    allocator.allocate(Bytes::new(size), STREAM).expect("there is room")
}

/// A block of the cache that fits as it is, taken and given back.
#[divan::bench(args = [512, 1 << 20, 64 << 20])]
fn hit(bencher: Bencher, size: u64) {
    let mut allocator = allocator();
    // Takes what is left of the segment, so that nothing is split.
    let block = take(&mut allocator, size);
    let rest: Vec<_> =
        (0..4095).map_while(|_| (size < 1 << 21).then(|| take(&mut allocator, size))).collect();
    allocator.free(block).expect("it was taken");
    bencher.bench_local(|| {
        let block = take(&mut allocator, black_box(size));
        allocator.free(block).expect("it was taken");
    });
    drop(rest);
}

/// A block cut from a larger one, taken and merged with it again.
#[divan::bench(args = [512, 1 << 19, 3 << 20])]
fn split_and_merge(bencher: Bencher, size: u64) {
    let mut allocator = allocator();
    let first = take(&mut allocator, size);
    allocator.free(first).expect("it was taken");
    bencher.bench_local(|| {
        let block = take(&mut allocator, black_box(size));
        allocator.free(block).expect("it was taken");
    });
}

/// A segment from the device, given back to it.
#[divan::bench(args = [512, 64 << 20])]
fn miss_and_release(bencher: Bencher, size: u64) {
    let mut allocator = allocator();
    bencher.bench_local(|| {
        let block = take(&mut allocator, black_box(size));
        allocator.free(block).expect("it was taken");
        allocator.empty_cache().expect("the device takes segments back");
    });
}

/// The best fit among many free blocks of one size, between blocks that are in use.
#[divan::bench(args = [10, 100, 1000, 10_000])]
fn find_in_a_crowded_bin(bencher: Bencher, count: usize) {
    let mut allocator = allocator();
    let blocks: Vec<_> = (0..2 * count).map(|_| take(&mut allocator, 4096)).collect();
    let mut held = Vec::new();
    for (index, block) in blocks.into_iter().enumerate() {
        if index % 2 == 0 {
            allocator.free(block).expect("it was taken");
        } else {
            held.push(block);
        }
    }
    // Two are taken, and the one taken first goes back first: the free list changes at its front and behind it.
    bencher.bench_local(|| {
        let first = take(&mut allocator, black_box(4096));
        let second = take(&mut allocator, black_box(4096));
        allocator.free(first).expect("it was taken");
        allocator.free(second).expect("it was taken");
    });
    drop(held);
}

/// All segments and blocks copied out.
#[divan::bench(args = [100, 10_000])]
fn snapshot(bencher: Bencher, count: usize) {
    let mut allocator = allocator();
    let held: Vec<_> = (0..count).map(|_| take(&mut allocator, 4096)).collect();
    bencher.bench_local(|| allocator.snapshot());
    drop(held);
}

/// `PYTORCH_CUDA_ALLOC_CONF`, read.
#[divan::bench(args = [
    "",
    "max_split_size_mb:128",
    "garbage_collection_threshold:0.6,max_split_size_mb:128,expandable_segments:False",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
])]
fn settings(text: &str) -> AllocatorConfig {
    black_box(text).parse().expect("the settings are right")
}
