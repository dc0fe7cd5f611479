//! How little memory any allocator could need: the peak of live bytes, and a layout that knows all lifetimes.

mod plan;

use std::collections::BTreeMap;

use blockyard_record::Bytes;
use blockyard_replay::{OnProgress, Progress};
use serde::{Deserialize, Serialize};

use crate::lifetimes::{Lifetime, lifetimes};
use crate::{LabError, Run};

use plan::{Orders, place};

/// How much memory a run needs at least, and a layout that is close to that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The most live bytes at a time, each request rounded up to 512: no allocator needs less.
    pub lower_bound: Bytes,
    /// The request, counted from 1, after which the most bytes are live.
    pub request: u64,
    /// The bytes of the best layout that was found.
    pub layout_peak: Bytes,
    /// The place of each allocation in the layout, in the order of the requests.
    pub layout: Vec<Placement>,
    /// Sentences that a reader of the numbers must know.
    pub notes: Vec<String>,
}

/// The place of an allocation in a layout, and its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The request that makes the allocation, counted from 1.
    pub request: u64,
    /// The first request, counted from 1, after which nothing uses the allocation any more; the number of
    /// requests plus one if it is used to the end.
    pub until: u64,
    /// The bytes from the beginning of the layout to the block.
    pub offset: Bytes,
    /// The size of the block in bytes.
    pub size: Bytes,
}

/// The lower bound of a run, and a layout for its lifetimes.
///
/// # Errors
///
/// [`LabError::Cancelled`].
pub fn bound(run: &Run, on_progress: OnProgress) -> Result<Bound, LabError> {
    let lifetimes = lifetimes(run);
    let (lower_bound, request) = most_live(&lifetimes);
    let (layout_peak, offsets) = planned(&lifetimes, on_progress)?;
    let layout = lifetimes.iter().zip(&offsets).map(|(lifetime, offset)| Placement {
        request: run.request_number(lifetime.request),
        until: run.request_number(lifetime.done),
        offset: Bytes::new(*offset),
        size: lifetime.size,
    });
    let mut notes = vec![
        "the layout knows every lifetime in advance and lets streams share memory, for which a program would have to wait"
            .to_owned(),
    ];
    notes.extend(run.notes());
    let request = run.request_number(request);
    Ok(Bound { lower_bound, request, layout_peak, layout: layout.collect(), notes })
}

/// The most live bytes at a time, and the request at which they are.
pub(crate) fn most_live(lifetimes: &[Lifetime]) -> (Bytes, usize) {
    let mut ends: Vec<(usize, Bytes)> =
        lifetimes.iter().map(|lifetime| (lifetime.freed, lifetime.size)).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let (mut live, mut most, mut at) = (Bytes::ZERO, Bytes::ZERO, 0);
    for lifetime in lifetimes {
        while let Some((_, size)) = ends.next_if(|(end, _)| *end < lifetime.request) {
            live = live.saturating_sub(size);
        }
        live = live.saturating_add(lifetime.size);
        if live > most {
            (most, at) = (live, lifetime.request);
        }
    }
    (most, at)
}

/// The best of several layouts.
fn planned(lifetimes: &[Lifetime], on_progress: OnProgress) -> Result<(Bytes, Vec<u64>), LabError> {
    let mut best: Option<(u64, Vec<u64>)> = None;
    let least = most_live_until_done(lifetimes).get();
    let mut orders = Orders::new(lifetimes);
    let total = orders.most();
    let mut done = 0;
    while let Some(order) = orders.next(best.as_ref().map(|(_, offsets)| offsets.as_slice())) {
        let (height, offsets) =
            place(lifetimes, &order, &mut |_| on_progress(Progress::new("planning", done, total)))
                .ok_or(LabError::Cancelled)?;
        orders.placed(order, height);
        if best.as_ref().is_none_or(|(least, _)| height < *least) {
            best = Some((height, offsets));
        }
        done += 1;
        if best.as_ref().is_some_and(|(height, _)| *height <= least) {
            break;
        }
    }
    let (height, offsets) = best.unwrap_or_default();
    Ok((Bytes::new(height), offsets))
}

/// The least bytes of any layout: a layout keeps freed allocations that other streams still use.
fn most_live_until_done(lifetimes: &[Lifetime]) -> Bytes {
    let kept: Vec<Lifetime> =
        lifetimes.iter().map(|lifetime| Lifetime { freed: lifetime.done, ..lifetime.clone() }).collect();
    most_live(&kept).0
}

impl Bound {
    /// Whether no two allocations that are in use at the same time share a byte.
    pub fn is_valid(&self) -> bool {
        let mut ends: Vec<&Placement> = self.layout.iter().collect();
        ends.sort_by_key(|placement| placement.until);
        let mut ends = ends.into_iter().peekable();
        let mut live: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        for placement in &self.layout {
            while let Some(gone) = ends.next_if(|gone| gone.until <= placement.request) {
                live.remove(&gone.offset);
            }
            let Some(end) = placement.offset.checked_add(placement.size) else { return false };
            let before = live.range(..end).next_back();
            if before.is_some_and(|(_, other)| *other > placement.offset) || end > self.layout_peak {
                return false;
            }
            live.insert(placement.offset, end);
        }
        true
    }
}
