//! Failures of the driver in a trace: releases that belong to an allocation, and requests that fail.

mod retries;
mod scan;

use std::collections::{HashMap, HashSet};

use blockyard_record::{Bytes, PoolId, Snapshot, TraceAction, TraceEntry, counted};

use crate::RecordedRun;

use blockyard_rules::AllocatorConfig;
use blockyard_rules::size::UNLIMITED;

use crate::trace::settings;

use retries::Retries;
use scan::Scan;

/// A moment at which the driver gave no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFailure {
    /// How many earlier entries show memory that the driver gave.
    pub given: usize,
    /// How many requests had failed before.
    pub failed: usize,
    /// How many entries, counted from the beginning, show released memory when the driver gives memory again;
    /// `None` if the request failed.
    pub until_released: Option<usize>,
}

/// The releases and completed waits that happened inside of allocations, and the failures that caused them.
#[derive(Debug, Default)]
pub(super) struct Reclaims {
    inside: HashSet<usize>,
    pub(super) device_failures: Vec<DeviceFailure>,
    pub(super) notes: Vec<String>,
    /// Whether the first of the notes is about the size of failed requests.
    pub(super) has_failed_sizes: bool,
}

impl Reclaims {
    /// Whether the entry happened inside of an allocation, so that no request stands for it.
    pub(super) fn contains(&self, entry: usize) -> bool {
        self.inside.contains(&entry)
    }
}

/// Releases in a row, with the completed waits before them, directly before new memory or a failed request.
#[derive(Clone, Copy, Debug)]
struct Burst {
    start: usize,
    /// The first release, after the completions that come first.
    releases: usize,
    /// The entry after the burst.
    end: usize,
    given: usize,
    failed: usize,
    /// Entries that show returned memory, this burst's among them.
    released: usize,
    /// Bytes that were reserved before the burst.
    held: Bytes,
    /// Whether whole cached segments or unfinished waits were left, or segments came in another order than in
    /// a release of the whole cache.
    is_partial: bool,
    /// Whether waits completed between releases: some were released before all streams were waited for.
    is_mixed: bool,
    /// Whether a wait completed that the request after the burst could have used.
    has_late_wait: bool,
}

/// The reason for which the segments of a burst were released.
#[derive(Clone, Copy, Debug)]
enum BurstMeaning {
    /// The allocation after it failed at first; its entries from here on are the retry.
    Refused { from: usize },
    /// The allocation after it collected garbage.
    Collected,
    /// A separate call released the cache before the allocation.
    SeparateRelease,
}

pub(super) fn find_reclaims(
    run: &RecordedRun,
    trace: &[TraceEntry],
    start: &Snapshot,
    private: &HashMap<usize, PoolId>,
) -> Reclaims {
    let mut scan = Scan::new(trace, start, private);
    let config = settings(&run.meta.conf);
    scan.max_split_size = Some(config.max_split_size()).filter(|limit| *limit < UNLIMITED);
    let mut index = 0;
    while index < trace.len() {
        index = scan.take(index);
    }
    resolve(scan, run, &config, start.segments.is_empty())
}

fn resolve(mut scan: Scan<'_>, run: &RecordedRun, config: &AllocatorConfig, is_whole: bool) -> Reclaims {
    let retries = Retries::new(run, scan.trace, &scan.bursts, is_whole);
    let limits = scan.max_split_size.is_some();
    let collects = config.garbage_collection_threshold() > 0.0;
    let mut reclaims =
        Reclaims { device_failures: std::mem::take(&mut scan.failures), ..Reclaims::default() };
    let (mut collected, mut refused, mut undecided) = (0, 0, 0);
    for (place, burst) in scan.bursts.iter().enumerate() {
        let next = &scan.trace[burst.end];
        let device_failure =
            DeviceFailure { given: burst.given, failed: burst.failed, until_released: Some(burst.released) };
        let wanted = burst.held.saturating_add(next.size);
        let exceeds = wanted > run.meta.total_memory || scan.ceiling.is_some_and(|most| wanted > most);
        let reading = if burst.is_mixed {
            // Frees that complete before the first release completed when the allocation began.
            BurstMeaning::Refused { from: burst.releases }
        } else if burst.has_late_wait || burst.releases == burst.end {
            BurstMeaning::Refused { from: burst.start }
        } else if burst.is_partial && collects {
            BurstMeaning::Collected
        } else if burst.is_partial && limits {
            BurstMeaning::Refused { from: burst.releases }
        } else if limits || collects || scan.would_have_served(burst) {
            // The allocator would have released just enough first, or it would have used the released memory.
            BurstMeaning::SeparateRelease
        } else if next.action == TraceAction::OutOfMemory || retries.is_retry(place).unwrap_or(exceeds) {
            BurstMeaning::Refused { from: burst.start }
        } else {
            BurstMeaning::SeparateRelease
        };
        match reading {
            BurstMeaning::Refused { from } => {
                reclaims.inside.extend(from..burst.end);
                if next.action != TraceAction::OutOfMemory {
                    reclaims.device_failures.push(device_failure);
                    refused += 1;
                }
            }
            BurstMeaning::Collected => {
                reclaims.inside.extend(burst.releases..burst.end);
                collected += 1;
            }
            BurstMeaning::SeparateRelease => undecided += usize::from(retries.is_retry(place).is_none()),
        }
    }
    let mut note = |count: usize, noun: &str, text: &str| {
        if count > 0 {
            reclaims.notes.push(format!("{} {text}", counted(count, noun)));
        }
    };
    // A trace has the requested size of each served request.
    note(scan.failed, "request", "failed; the trace has the size of a failed request only after rounding");
    note(refused, "release", "read as part of an allocation that the driver refused at first");
    note(collected, "release", "read as garbage collection");
    note(
        undecided,
        "release",
        "right before new memory read as a call of empty_cache; an allocation that was refused at first would look the same",
    );
    reclaims.has_failed_sizes = scan.failed > 0;
    reclaims
}
