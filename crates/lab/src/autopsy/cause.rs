use std::collections::BTreeMap;

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

use super::changes::without;
use super::{Examined, Tell};
use crate::LabError;

/// Why a request ran out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The request alone is larger than the limit.
    RequestAboveLimit,
    /// The request and what is live do not fit together, wherever they lie.
    LiveBytesAtLimit,
    /// There are enough free bytes, but live blocks lie between them.
    FragmentationByLiveBlocks,
    /// There are enough free bytes, but they are cached for another stream.
    CachedInAnotherStream,
    /// There are enough free bytes, but they are cached in another pool: that of a program or of a graph.
    CachedInPrivatePool,
    /// A setting rounds requests up so far that they do not fit; they would without it.
    RoundingBySetting,
    /// Others use so much of the device that too little is left.
    MemoryOfOthers,
}

impl Cause {
    /// The cause in a few words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestAboveLimit => "a request above the limit",
            Self::LiveBytesAtLimit => "live bytes at the limit",
            Self::FragmentationByLiveBlocks => "fragmentation by live blocks",
            Self::CachedInAnotherStream => "memory cached in another stream",
            Self::CachedInPrivatePool => "memory cached in a private pool",
            Self::RoundingBySetting => "rounding by a setting",
            Self::MemoryOfOthers => "memory of others on the device",
        }
    }
}

const ROUNDING: u64 = 512;

/// The least that a request takes of any allocator.
fn least(size: Bytes) -> Bytes {
    Bytes::new(size.get().max(1).checked_next_multiple_of(ROUNDING).unwrap_or(u64::MAX))
}

/// The cause and, where the limit is not known exactly and decides, the other causes that it may be.
pub(super) fn cause(examined: &Examined<'_>, tell: Tell<'_>) -> Result<(Cause, Vec<Cause>), LabError> {
    const LIMITS: u64 = 64;
    let Examined { limit, failure, conditions, .. } = examined;
    let needed = least(failure.request.size);
    if conditions.conf.contains("roundup_power2_divisions") && needed <= limit.highest {
        let plain = without(&conditions.conf, "roundup_power2_divisions");
        if examined.passes_under(&plain, tell)? {
            return Ok((Cause::RoundingBySetting, Vec::new()));
        }
    }
    // Every limit within the bounds is as likely as any other: the cause that most of them have.
    let span = limit.highest.saturating_sub(limit.lowest).get();
    let mut counts: BTreeMap<Cause, u64> = BTreeMap::new();
    for place in 0..LIMITS {
        let at = limit.lowest.get()
            + u64::try_from(u128::from(span) * u128::from(place) / u128::from(LIMITS - 1)).unwrap_or(0);
        *counts.entry(cause_at(examined, Bytes::new(at))).or_default() += 1;
    }
    let mut causes: Vec<(Cause, u64)> = counts.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut causes = causes.into_iter().map(|(cause, _)| cause);
    let first = causes.next().unwrap_or(Cause::LiveBytesAtLimit);
    Ok((first, causes.collect()))
}

/// The cause if the limit is this one.
fn cause_at(examined: &Examined<'_>, limit: Bytes) -> Cause {
    let others = examined.limit.others;
    let (memory, request) = (&examined.failure.memory, &examined.failure.request);
    let needed = least(request.size);
    let capacity = limit.saturating_add(others);
    if needed > capacity {
        return Cause::RequestAboveLimit;
    }
    let live = memory.live.saturating_add(needed);
    if live > limit {
        return match (live <= capacity, needed > limit) {
            (true, _) => Cause::MemoryOfOthers,
            (false, true) => Cause::RequestAboveLimit,
            (false, false) => Cause::LiveBytesAtLimit,
        };
    }
    let missing = memory.reserved.saturating_add(request.segment_size).saturating_sub(limit);
    // What is cached here would serve if it lay together or were released; what is cached elsewhere, if it were released.
    let parts = [
        (memory.cached_here, missing.min(request.rounded), Cause::FragmentationByLiveBlocks),
        (memory.cached_other_streams, missing, Cause::CachedInAnotherStream),
        (memory.cached_other_pools, missing, Cause::CachedInPrivatePool),
        (others, missing, Cause::MemoryOfOthers),
    ];
    let enough = parts.iter().filter(|(bytes, needed, _)| !bytes.is_zero() && bytes >= needed);
    // Of several the largest, the first of equal ones. Of none, live blocks fill all but less than a segment.
    enough.rev().max_by_key(|(bytes, ..)| *bytes).map_or(Cause::LiveBytesAtLimit, |(.., cause)| *cause)
}

pub(super) fn sentence(cause: Cause, examined: &Examined<'_>) -> String {
    let Examined { limit, failure, .. } = examined;
    let (memory, request) = (&failure.memory, &failure.request);
    let (size, most) = (request.size, limit.highest);
    match cause {
        Cause::RequestAboveLimit => {
            format!("the request alone, {size}, is larger than the {most} that may be reserved")
        }
        Cause::LiveBytesAtLimit if memory.live.saturating_add(least(size)) > most => format!(
            "{} are live and {size} more are asked for, and at most {most} may be reserved: no allocator could serve it",
            memory.live
        ),
        Cause::LiveBytesAtLimit => format!(
            "{} are live, and {size} more need a segment of {}, and at most {most} may be reserved",
            memory.live, request.segment_size
        ),
        Cause::FragmentationByLiveBlocks => format!(
            "{} are cached for this stream, but the largest block among them has {}, and live blocks keep their segments \
             from being released: {size} find no place",
            memory.cached_here, memory.largest_cached_here
        ),
        Cause::CachedInAnotherStream => format!(
            "{} are cached on other streams, whose blocks cannot serve stream {}, and live blocks keep their segments from \
             being released",
            memory.cached_other_streams, request.stream
        ),
        Cause::CachedInPrivatePool => format!(
            "{} are cached in other pools, those of programs or graphs, which give nothing back while they are in use",
            memory.cached_other_pools
        ),
        Cause::RoundingBySetting => format!(
            "roundup_power2_divisions rounds requests up ({size} to {}): without it the request passes",
            request.rounded
        ),
        Cause::MemoryOfOthers => {
            format!("others hold {} of the device: without them the request would fit", limit.others)
        }
    }
}
