//! One pass over a trace: releases in a row, and the memory that is reserved, cached and pending around them.

use std::collections::{BTreeMap, HashMap};

use blockyard_record::{BlockState, Bytes, PoolId, SegmentSnapshot, Snapshot, TraceAction, TraceEntry};

use super::{Burst, DeviceFailure};
use blockyard_rules::size::{self, SMALL_SEGMENT_SIZE, SMALL_SIZE};

/// Bursts up to this length are looked at in detail.
const MAX_BURST: usize = 4096;

/// One pass over a trace, with the facts that decide what a burst of releases means.
pub(super) struct Scan<'a> {
    pub(super) trace: &'a [TraceEntry],
    /// The entries that made segments of private pools.
    private: &'a HashMap<usize, PoolId>,
    /// Active blocks of each segment that the driver gave whole.
    segments: BTreeMap<u64, (Bytes, usize)>,
    /// The requested size of each block in use.
    active: BTreeMap<u64, Bytes>,
    /// The size from which on space is not divided (`max_split_size_mb`).
    pub(super) max_split_size: Option<Bytes>,
    idle_segments: usize,
    pending: usize,
    reserved: Bytes,
    segments_given: usize,
    pub(super) failed: usize,
    segments_released: usize,
    pub(super) bursts: Vec<Burst>,
    pub(super) failures: Vec<DeviceFailure>,
    /// The least number of reserved bytes at which the driver refused more.
    pub(super) ceiling: Option<Bytes>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        trace: &'a [TraceEntry],
        start: &Snapshot,
        private: &'a HashMap<usize, PoolId>,
    ) -> Self {
        let mut segments = BTreeMap::new();
        let mut waiting = 0;
        for segment in start.segments.iter().filter(|segment| !segment.is_expandable) {
            let private = usize::from(segment.pool_id != PoolId::DEFAULT);
            let active = segment.blocks.iter().filter(|block| block.state.is_active()).count();
            segments.insert(segment.addr.get(), (segment.size, active + private));
        }
        let mut active = BTreeMap::new();
        for block in start.segments.iter().flat_map(|segment| &segment.blocks) {
            if block.state.is_active() {
                active.insert(block.addr.get(), block.requested);
            }
            waiting += usize::from(block.state == BlockState::PendingFree);
        }
        let idle = segments.values().filter(|(_, active)| *active == 0).count();
        let held = start.segments.iter().map(SegmentSnapshot::mapped).sum();
        Self {
            trace,
            private,
            segments,
            active,
            max_split_size: None,
            idle_segments: idle,
            pending: waiting,
            reserved: held,
            segments_given: 0,
            failed: 0,
            segments_released: 0,
            bursts: Vec::new(),
            failures: Vec::new(),
            ceiling: None,
        }
    }

    /// Takes the entry, or the burst that begins with it; returns the index after.
    pub(super) fn take(&mut self, index: usize) -> usize {
        let entry = &self.trace[index];
        match entry.action {
            TraceAction::FreeCompleted | TraceAction::SegmentFree | TraceAction::SegmentUnmap => {
                return self.take_burst(index);
            }
            TraceAction::FreeRequested => self.pending += 1,
            TraceAction::Alloc => {
                self.active.insert(entry.addr, entry.size);
                self.count_active(entry.addr, 1);
            }
            TraceAction::SegmentAlloc => {
                // Segments of private pools are not released by requests of other pools.
                let private = usize::from(self.private.contains_key(&index));
                self.segments.insert(entry.addr, (entry.size, private));
                self.idle_segments += 1 - private;
                self.give(entry.size);
            }
            TraceAction::SegmentMap => self.give(entry.size),
            TraceAction::OutOfMemory => {
                self.failures.push(DeviceFailure {
                    given: self.segments_given,
                    failed: self.failed,
                    until_released: None,
                });
                self.failed += 1;
                let free = Bytes::new(entry.addr).min(entry.size);
                let ceiling = self.reserved.saturating_add(free);
                self.ceiling = Some(self.ceiling.map_or(ceiling, |least| least.min(ceiling)));
            }
            TraceAction::Snapshot => {}
        }
        index + 1
    }

    fn take_burst(&mut self, start: usize) -> usize {
        let held = self.reserved;
        // A free that completes right after its request did not wait, unless the next allocation could not
        // use the block.
        let is_plain =
            start.checked_sub(1).is_some_and(|before| {
                let before = &self.trace[before];
                before.action == TraceAction::FreeRequested && before.addr == self.trace[start].addr
            }) && !self.failed_request(start + 1).is_some_and(|request| self.came_too_late(start, request));
        let (mut end, mut releases, mut is_mixed) = (start, None, false);
        while let Some(entry) = self.trace.get(end) {
            match entry.action {
                TraceAction::FreeCompleted => {
                    self.pending = self.pending.saturating_sub(1);
                    self.active.remove(&entry.addr);
                    self.count_active(entry.addr, -1);
                    is_mixed |= releases.is_some();
                }
                TraceAction::SegmentFree | TraceAction::SegmentUnmap => {
                    self.reserved = self.reserved.saturating_sub(entry.size);
                    self.segments_released += 1;
                    if let Some((_, active)) = self.segments.remove(&entry.addr) {
                        self.idle_segments = self.idle_segments.saturating_sub(usize::from(active == 0));
                    }
                    releases.get_or_insert(end);
                }
                _ => break,
            }
            end += 1;
            if is_plain {
                return end;
            }
        }
        let next = self.trace.get(end).map(|entry| entry.action);
        let fails = next == Some(TraceAction::OutOfMemory);
        let gives = matches!(next, Some(TraceAction::SegmentAlloc | TraceAction::SegmentMap));
        if fails || (gives && releases.is_some()) {
            let releases = releases.unwrap_or(end);
            let request = self.trace[end..]
                .iter()
                .find(|entry| matches!(entry.action, TraceAction::Alloc | TraceAction::OutOfMemory));
            // Each entry is compared with all releases of the burst. A very long burst is damage and not the
            // end of a wait.
            let is_late = end - start <= MAX_BURST
                && request
                    .is_some_and(|request| (start..end).any(|entry| self.came_too_late(entry, request)));
            let leaves_some = self.idle_segments > 0 || self.pending > 0;
            self.bursts.push(Burst {
                start,
                releases,
                end,
                given: self.segments_given,
                failed: self.failed,
                released: self.segments_released,
                held,
                is_mixed,
                has_late_wait: is_late,
                is_partial: leaves_some || !is_in_order(&self.trace[releases..end]),
            });
        }
        end
    }

    /// Whether the block that the entry frees would serve the request after it, which still fails or takes
    /// new memory: so the block was freed too late for the request, while the allocator waited for all
    /// streams.
    fn came_too_late(&self, entry: usize, request: &TraceEntry) -> bool {
        let freed = &self.trace[entry];
        freed.action == TraceAction::FreeCompleted
            && freed.stream == request.stream
            && (freed.size <= SMALL_SIZE) == (request.size <= SMALL_SIZE)
            && !self.is_released_next(entry)
            && self.would_serve(self.space_at(freed), request.size)
    }

    /// Whether best fit would take this much space for the request; large space is not divided for requests
    /// under the limit.
    fn would_serve(&self, space: Bytes, request: Bytes) -> bool {
        let is_refused = self.max_split_size.is_some_and(|limit| request < limit && space >= limit);
        space >= request && !is_refused
    }

    /// Whether the completions and releases after the entry release the memory of the entry, which then was
    /// cached before.
    fn is_released_next(&self, entry: usize) -> bool {
        let addr = self.trace[entry].addr;
        let burst = self.trace[entry..].iter().take_while(|entry| is_of_burst(entry));
        let mut releases = burst.filter(|entry| entry.action != TraceAction::FreeCompleted);
        releases.any(|release| addr >= release.addr && addr.saturating_sub(release.addr) < release.size.get())
    }

    /// The request that failed after completions and releases.
    fn failed_request(&self, from: usize) -> Option<&'a TraceEntry> {
        let tail = self.trace.get(from..)?;
        let burst = tail.iter().take_while(|entry| is_of_burst(entry)).count();
        tail.get(burst).filter(|entry| entry.action == TraceAction::OutOfMemory)
    }

    /// At most this much space is free once the entry's block is: what lies between its neighbors in use.
    /// Where an expandable segment ends is not known here, so any space after its last block is.
    fn space_at(&self, freed: &TraceEntry) -> Bytes {
        let whole = self.segments.range(..=freed.addr).next_back();
        let whole = whole.filter(|(base, (size, _))| freed.addr.saturating_sub(**base) < size.get());
        let (base, end) = whole
            .map_or((freed.addr, u64::MAX), |(base, (size, _))| (*base, base.saturating_add(size.get())));
        let lowest = if whole.is_some() { base } else { 0 };
        let below = self.active.range(lowest..freed.addr).next_back();
        let start = below.map_or(base, |(addr, size)| {
            addr.saturating_add(size.get()).next_multiple_of(size::MIN_BLOCK_SIZE.get())
        });
        let above = self.active.range(freed.addr.saturating_add(1)..end).next();
        Bytes::new(above.map_or(end, |(addr, _)| *addr).saturating_sub(start))
    }

    fn give(&mut self, size: Bytes) {
        self.reserved = self.reserved.saturating_add(size);
        self.segments_given += 1;
    }

    fn count_active(&mut self, addr: u64, change: isize) {
        let below = self.segments.range_mut(..=addr).next_back();
        let Some((_, (_, active))) =
            below.filter(|(base, (size, _))| addr.saturating_sub(**base) < size.get())
        else {
            return;
        };
        let was_idle = *active == 0;
        *active = active.saturating_add_signed(change);
        match (was_idle, *active == 0) {
            (true, false) => self.idle_segments = self.idle_segments.saturating_sub(1),
            (false, true) => self.idle_segments += 1,
            _ => {}
        }
    }

    /// Whether a segment of the burst would have served the request after it.
    pub(super) fn would_have_served(&self, burst: &Burst) -> bool {
        let request = self.trace[burst.end..]
            .iter()
            .find(|entry| matches!(entry.action, TraceAction::Alloc | TraceAction::OutOfMemory));
        let Some(request) = request else { return false };
        self.trace[burst.start..burst.end].iter().any(|entry| {
            let serves = entry.stream == request.stream && self.would_serve(entry.size, request.size);
            serves
                && match entry.action {
                    TraceAction::SegmentFree => {
                        (entry.size == SMALL_SEGMENT_SIZE) == (request.size <= SMALL_SIZE)
                    }
                    // Pages for large requests are larger than 10 MiB; many small ones may look like them.
                    TraceAction::SegmentUnmap => {
                        request.size <= SMALL_SIZE || entry.size > size::MIN_LARGE_ALLOCATION
                    }
                    _ => false,
                }
        })
    }
}

fn is_of_burst(entry: &TraceEntry) -> bool {
    matches!(entry.action, TraceAction::FreeCompleted | TraceAction::SegmentFree | TraceAction::SegmentUnmap)
}

/// Large segments before small ones, each by stream, size and address: so the whole cache is released.
fn is_in_order(releases: &[TraceEntry]) -> bool {
    let whole = releases.iter().filter(|entry| entry.action == TraceAction::SegmentFree);
    whole.is_sorted_by_key(|entry| (entry.size == SMALL_SEGMENT_SIZE, entry.stream, entry.size, entry.addr))
}
