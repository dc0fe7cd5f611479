//! Small parts of the allocator, each measured alone: a change of one part shows here first.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use blockyard_allocator::{AllocError, Allocation, CachingAllocator};
use blockyard_device::VirtualDevice;
use blockyard_measure::Section;
use blockyard_record::{Bytes, NullSink, StreamId};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::Workload;

use super::BenchContext;

type Allocator = CachingAllocator<VirtualDevice>;

/// Nanoseconds of single calls.
///
/// # Errors
///
/// When the allocator fails.
pub(super) fn parts(context: &BenchContext) -> Result<Section> {
    let mut section = Section::new("parts", "Small parts of the allocator", "ns", ["Blockyard"]);
    let mut time = |name: &str, turn: &mut dyn FnMut(u32) -> Result<Duration>| {
        section.time(name, context.rounds, &mut [turn])
    };
    for size in [Bytes::new(512), Bytes::mib(1), Bytes::mib(64)] {
        time(&format!("pair, {size} that fits as cached"), &mut hit(size)?)?;
    }
    for size in [Bytes::new(512), Bytes::kib(512), Bytes::mib(3)] {
        time(&format!("pair, {size} split and merged"), &mut split_and_merge(size)?)?;
    }
    for size in [Bytes::new(512), Bytes::mib(64)] {
        time(&format!("pair, {size} with its segment and empty_cache"), &mut miss_and_release(size))?;
    }
    for count in [10, 100, 1000, 10_000] {
        time(&format!("two pairs, best fit among {count} of one size"), &mut crowded_bin(count)?)?;
    }
    for count in [100, 10_000] {
        time(&format!("snapshot of {count} blocks"), &mut snapshot(count)?)?;
    }
    for text in [
        "",
        "max_split_size_mb:128",
        "garbage_collection_threshold:0.6,max_split_size_mb:128,expandable_segments:False",
        "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    ] {
        time(&format!("settings of {} letters", text.len()), &mut settings(text))?;
    }
    for rounds in [100, 100_000] {
        time(&format!("workload of a loop of {rounds} rounds"), &mut workload(rounds))?;
    }
    section
        .notes
        .push("fake device; each call alone, in a loop, on an allocator that does nothing else".to_owned());
    Ok(section)
}

fn allocator() -> Allocator {
    let device = VirtualDevice::new(Bytes::gib(512));
    CachingAllocator::new(device, AllocatorConfig::default(), NullSink)
}

fn take(allocator: &mut Allocator, size: Bytes) -> Result<Allocation, AllocError> {
    allocator.allocate(black_box(size), StreamId::DEFAULT)
}

/// Allocates blocks that stay in use: an allocation that is dropped is not freed.
fn use_blocks(allocator: &mut Allocator, size: Bytes, count: usize) -> Result<(), AllocError> {
    (0..count).try_for_each(|_| take(allocator, size).map(drop))
}

/// How long `times` calls take.
fn timed(times: u32, mut call: impl FnMut() -> Result<(), AllocError>) -> Result<Duration> {
    let begun = Instant::now();
    for _ in 0..times {
        call()?;
    }
    Ok(begun.elapsed())
}

/// A cached block that fits without a split, allocated and freed.
fn hit(size: Bytes) -> Result<impl FnMut(u32) -> Result<Duration>> {
    let mut allocator = allocator();
    let block = take(&mut allocator, size)?;
    // The other blocks take the rest of the segment, so that nothing is split.
    let fillers = if size < Bytes::mib(2) { 4095 } else { 0 };
    use_blocks(&mut allocator, size, fillers)?;
    allocator.free(block)?;
    Ok(move |times| {
        timed(times, || {
            let block = take(&mut allocator, size)?;
            allocator.free(block)
        })
    })
}

/// A block cut from a larger one, allocated and merged with it again.
fn split_and_merge(size: Bytes) -> Result<impl FnMut(u32) -> Result<Duration>> {
    let mut allocator = allocator();
    let first = take(&mut allocator, size)?;
    allocator.free(first)?;
    Ok(move |times| {
        timed(times, || {
            let block = take(&mut allocator, size)?;
            allocator.free(block)
        })
    })
}

/// A segment from the device, released to it.
fn miss_and_release(size: Bytes) -> impl FnMut(u32) -> Result<Duration> {
    let mut allocator = allocator();
    move |times| {
        timed(times, || {
            let block = take(&mut allocator, size)?;
            allocator.free(block)?;
            allocator.empty_cache()
        })
    }
}

/// The best fit among many free blocks of one size, between blocks that are in use.
fn crowded_bin(count: usize) -> Result<impl FnMut(u32) -> Result<Duration>> {
    const SIZE: Bytes = Bytes::kib(4);
    let mut allocator = allocator();
    let blocks = (0..2 * count).map(|_| take(&mut allocator, SIZE)).collect::<Result<Vec<_>, _>>()?;
    for block in blocks.into_iter().step_by(2) {
        allocator.free(block)?;
    }
    Ok(move |times| {
        // The block that is allocated first is freed first: the free list changes at its front and after it.
        timed(times, || {
            let first = take(&mut allocator, SIZE)?;
            let second = take(&mut allocator, SIZE)?;
            allocator.free(first)?;
            allocator.free(second)
        })
    })
}

/// A snapshot of all segments and blocks.
fn snapshot(count: usize) -> Result<impl FnMut(u32) -> Result<Duration>> {
    let mut allocator = allocator();
    use_blocks(&mut allocator, Bytes::kib(4), count)?;
    Ok(move |times| {
        timed(times, || {
            black_box(allocator.snapshot());
            Ok(())
        })
    })
}

/// The text of a workload, parsed. A time that grows faster than the number of rounds is a defect.
fn workload(rounds: u32) -> impl FnMut(u32) -> Result<Duration> {
    let text = format!("repeat {rounds} as i {{ t[i] = alloc 1 MiB }}\nfree t[*]");
    move |times| {
        let begun = Instant::now();
        for _ in 0..times {
            black_box(Workload::parse(black_box(&text))?);
        }
        Ok(begun.elapsed())
    }
}

/// A text of `PYTORCH_CUDA_ALLOC_CONF`, parsed.
fn settings(text: &str) -> impl FnMut(u32) -> Result<Duration> {
    move |times| {
        let begun = Instant::now();
        for _ in 0..times {
            black_box(AllocatorConfig::parse(black_box(text), Release::default())?);
        }
        Ok(begun.elapsed())
    }
}
