//! An event as a sentence.

use blockyard_record::{BlockId, Bytes, Event, FailureCause, MemoryState, Recording};

use crate::words::names::{block_name, name_of, numbered, stream_phrase, streams_phrase};

/// An event in one line; `before` is the memory that it applies to.
pub fn describe_event(event: &Event, before: &MemoryState, recording: &Recording) -> String {
    match *event {
        Event::SegmentAllocated { size, stream, pool, addr, .. } => format!(
            "the device gives a segment of {size} at {addr}, for the {pool} pool and {}",
            stream_phrase(recording, stream)
        ),
        Event::SegmentReleased { segment, .. } => match before.segment(segment) {
            Some(info) => format!("the segment of {} at {} is released to the device", info.size, info.addr),
            None => format!("segment #{segment} is released to the device"),
        },
        Event::RangeReserved { size, stream, pool, .. } => format!(
            "{size} of addresses are reserved for an expandable segment of the {pool} pool and {}, without memory",
            stream_phrase(recording, stream)
        ),
        Event::RangeReleased { .. } => {
            "the addresses of an expandable segment without memory are given up".to_owned()
        }
        Event::Mapped { block, size, .. } => match before.block(block) {
            Some(found) => format!("the device gives {size} of memory, mapped at {}", found.addr),
            None => format!("the device gives {size} of memory"),
        },
        Event::Unmapped { block, before: below, after } => {
            let leftover = |part: Option<(BlockId, Bytes)>| part.map_or(Bytes::ZERO, |(_, size)| size);
            let whole = before.block(block).map_or(Bytes::ZERO, |found| found.size);
            let size = whole.saturating_sub(leftover(below)).saturating_sub(leftover(after));
            format!(
                "{size} of memory, the whole pages of a cached block of {whole}, are released to the device"
            )
        }
        Event::SegmentFailed { size, cause: FailureCause::Device } => {
            format!("the device refuses a segment of {size}: it has {} free", before.breakdown().free)
        }
        Event::SegmentFailed { size, cause: FailureCause::Fraction } => refused_by_fraction(before, size),
        Event::Split { block, front, size } => split(before, block, front, size),
        Event::Allocated { block, requested, allocation, .. } => {
            let size = before.block(block).map_or(requested, |block| block.size);
            let name = recording.name(allocation).map(|name| format!(" as {name}")).unwrap_or_default();
            let rounding = size.saturating_sub(requested);
            let beyond =
                if rounding.is_zero() { String::new() } else { format!(", {rounding} beyond the request") };
            format!("{} of {size} is allocated{name}{beyond}", numbered(block))
        }
        Event::StreamRecorded { block, stream } => format!(
            "{} is used on {} too: once freed, it waits for that stream",
            name_of(recording, before, block),
            stream_phrase(recording, stream)
        ),
        Event::FreeRequested { block, .. } => free_requested(before, recording, block),
        Event::FreeCompleted { block } => match before.block(block) {
            Some(found) => format!("{}: its {} can be used again", block_name(recording, &found), found.size),
            None => format!("{} can be used again", numbered(block)),
        },
        Event::Merged { block, absorbed } => merged(before, block, absorbed),
        Event::RetryStarted => "the second attempt begins".to_owned(),
        Event::StreamsSynchronized => "the allocator waits until all streams are done".to_owned(),
        Event::OutOfMemory { requested, segment_size, device_free, .. } => format!(
            "out of memory: {requested} asked for, a segment of {segment_size} needed, {device_free} free on the device"
        ),
        Event::SnapshotTaken { .. } => "a snapshot of all segments is taken".to_owned(),
        Event::PeakReset => "every peak is set to its present value".to_owned(),
        Event::AccumulatedReset => "every accumulated count is set to zero".to_owned(),
        Event::FractionSet { limit: Some(limit) } => format!("at most {limit} may be reserved from now on"),
        Event::FractionSet { limit: None } => "the limit on reserved memory is lifted".to_owned(),
    }
}

fn refused_by_fraction(before: &MemoryState, size: Bytes) -> String {
    let room = before.limit().map(|limit| limit.saturating_sub(before.breakdown().reserved()));
    let room = room.map(|room| format!(" leaves only {room}")).unwrap_or_default();
    format!("the memory fraction{room}: a segment of {size} is refused without asking the device")
}

fn split(before: &MemoryState, block: BlockId, front: BlockId, size: Bytes) -> String {
    match before.block(block) {
        Some(whole) => format!(
            "{} of {} is split: {size} become {}, {} stay",
            numbered(block),
            whole.size,
            numbered(front),
            whole.size.saturating_sub(size)
        ),
        None => format!("{size} are split off {}", numbered(block)),
    }
}

fn free_requested(before: &MemoryState, recording: &Recording, block: BlockId) -> String {
    let Some(found) = before.block(block) else { return format!("{} is freed", numbered(block)) };
    let name = block_name(recording, &found);
    if found.streams.is_empty() {
        format!("{name} ({}) is freed", found.size)
    } else {
        let streams = streams_phrase(recording, &found.streams);
        format!("{name} ({}) is freed and waits for {streams}", found.size)
    }
}

fn merged(before: &MemoryState, block: BlockId, absorbed: BlockId) -> String {
    let (Some(block), Some(gone)) = (before.block(block), before.block(absorbed)) else {
        return format!("{} takes in {}", numbered(block), numbered(absorbed));
    };
    let side = if gone.addr < block.addr { "before" } else { "after" };
    format!(
        "it merges with the cached {} {side} it: one cached block of {}",
        gone.size,
        block.size.saturating_add(gone.size)
    )
}
