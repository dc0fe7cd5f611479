//! Why a request ran out of memory. The lab's autopsy, the figure's sentences and PyTorch's exception all
//! take the cause from here. One cause is not decided here: only a replay without the setting shows that a
//! setting rounds requests up too far.

use blockyard_rules::size;
use serde::{Deserialize, Serialize};

use crate::{
    BlockSnapshot, BlockState, Bytes, PoolId, PoolKind, SegmentSnapshot, Snapshot, StreamId, grouped,
};

/// A request that ran out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OomRequest {
    /// The size that the caller asked for.
    pub size: Bytes,
    /// The size after rounding.
    pub rounded: Bytes,
    /// The size of the segment that the allocator asked the device for.
    pub segment_size: Bytes,
    /// The stream of the request.
    pub stream: StreamId,
    /// The memory pool of the request.
    pub pool_id: PoolId,
}

impl OomRequest {
    /// The least memory that any allocator needs for the request. A size that cannot be rounded up is larger
    /// than any limit.
    #[must_use]
    pub fn least_size(&self) -> Bytes {
        size::least(self.size).unwrap_or(Bytes::new(u64::MAX))
    }

    /// The cached bytes that new pages of an expandable segment would touch, at the first place where the
    /// request has enough addresses: the segment has to grow by so much less than the request. `None` where no
    /// expandable segment serves the request, and where the free bytes of the device are enough for the pages.
    /// Then a memory fraction refused the request: PyTorch compares the fraction with the whole segment
    /// (`alloc_block`), however much of it is cached.
    #[must_use]
    pub fn cached_where_segment_grows(&self, snapshot: &Snapshot, device_free: Bytes) -> Option<Bytes> {
        let pool = PoolKind::serving(self.rounded);
        let serves = |segment: &&SegmentSnapshot| {
            let of_request = (segment.pool, segment.pool_id, segment.stream);
            segment.is_expandable && of_request == (pool, self.pool_id, self.stream)
        };
        let segment = snapshot.segments.iter().find(serves)?;
        let places = || segment.blocks.split(|block| block.state.is_active());
        let is_unmapped = |block: &BlockSnapshot| block.state == BlockState::Unmapped;
        let has_addresses = |place: &&[BlockSnapshot]| {
            place.iter().any(is_unmapped)
                && place.iter().map(|block| block.size).sum::<Bytes>() >= self.rounded
        };
        // A snapshot leaves out the addresses after the last mapped block, which are always enough.
        let place = places().find(has_addresses).or_else(|| places().next_back())?;
        let cached: Bytes = place.iter().filter(|block| !is_unmapped(block)).map(|block| block.size).sum();
        (self.mappable(device_free) < self.rounded.saturating_sub(cached)).then_some(cached)
    }

    /// How many of these free bytes of the device an expandable segment can map for the request: whole pages,
    /// of their default size.
    #[must_use]
    pub fn mappable(&self, free: Bytes) -> Bytes {
        let page = match PoolKind::serving(self.rounded) {
            PoolKind::Small => size::SMALL_SEGMENT_SIZE,
            PoolKind::Large => size::DEFAULT_LARGE_SEGMENT_SIZE,
        };
        let left_over = free.get().checked_rem(page.get()).unwrap_or_default();
        free.saturating_sub(Bytes::new(left_over))
    }
}

/// The limit that kept a request from getting more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OomLimit {
    /// The least that the limit may be; equal to `highest` where the limit is known.
    pub lowest: Bytes,
    /// The most that may be reserved.
    pub highest: Bytes,
    /// Bytes of the device that PyTorch's allocator does not have: those of other processes, and those that
    /// other libraries of this process allocated.
    pub used_by_others: Bytes,
}

impl OomLimit {
    /// A limit that is known, and the bytes of others.
    #[must_use]
    pub const fn known(limit: Bytes, others: Bytes) -> Self {
        Self { lowest: limit, highest: limit, used_by_others: others }
    }

    /// Whether the limit is known to the byte.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.lowest.get() >= self.highest.get()
    }

    /// The limit in a few words: `600 MiB`, or `between 594 MiB and 614 MiB`.
    #[must_use]
    pub fn range_text(&self) -> String {
        if self.is_known() {
            return self.highest.to_string();
        }
        format!("between {} and {}", self.lowest, self.refused().unwrap_or(self.highest))
    }

    /// The number of bytes that was refused: `highest` is a byte less. `None` where nothing shows the
    /// refusal.
    fn refused(&self) -> Option<Bytes> {
        let refused = self.highest.saturating_add(Bytes::new(1));
        refused.get().is_multiple_of(size::MIN_BLOCK_SIZE.get()).then_some(refused)
    }

    /// Both bounds in a few words: `at least 594 MiB`, `below 614 MiB`.
    #[must_use]
    pub fn bound_texts(&self) -> [String; 2] {
        let highest = match self.refused() {
            Some(refused) => format!("below {refused}"),
            None => format!("at most {}", self.highest),
        };
        [format!("at least {}", self.lowest), highest]
    }

    /// The limit of a request that failed, from the free and total memory that the device reported at that
    /// moment.
    ///
    /// If the memory fraction leaves too little room for the segment, the fraction is the limit. Otherwise
    /// the limit is all memory that the allocator has or could still get, and others have the remaining
    /// memory of the device.
    #[must_use]
    pub fn at_failure(
        request: &OomRequest,
        reserved: Bytes,
        fraction: Option<Bytes>,
        device_free: Bytes,
        device_total: Bytes,
    ) -> Self {
        let is_met = |limit: &Bytes| reserved.saturating_add(request.segment_size) > *limit;
        if let Some(limit) = fraction.filter(is_met) {
            return Self::known(limit.min(device_total), Bytes::ZERO);
        }
        let highest = reserved.saturating_add(device_free);
        Self::known(highest, device_total.saturating_sub(highest))
    }
}

/// How the memory was used when a request failed, after everything was released that could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryAtFailure {
    /// Bytes of segments.
    pub reserved: Bytes,
    /// Bytes of allocated blocks.
    pub allocated: Bytes,
    /// The requested bytes of allocated blocks, rounded up to 512 bytes for each block.
    pub live: Bytes,
    /// Bytes of blocks that were freed and wait for another stream.
    pub pending: Bytes,
    /// Cached bytes in the memory pool of the request, on the stream of the request.
    pub cached_here: Bytes,
    /// The largest block among `cached_here` in the block pool (small or large) of the request.
    pub largest_cached_here: Bytes,
    /// How many blocks `cached_here` are in.
    #[serde(default)]
    pub blocks_cached_here: u64,
    /// Cached bytes on other streams.
    pub cached_other_streams: Bytes,
    /// Cached bytes in other memory pools: those of programs and of graphs.
    pub cached_other_pools: Bytes,
}

impl MemoryAtFailure {
    /// The use of memory in a snapshot that was taken after the failure, as seen from the request.
    #[must_use]
    pub fn of(snapshot: &Snapshot, request: &OomRequest) -> Self {
        let mut memory = Self::default();
        let add = |sum: &mut Bytes, size: Bytes| *sum = sum.saturating_add(size);
        let pool = PoolKind::serving(request.rounded);
        for segment in &snapshot.segments {
            add(&mut memory.reserved, segment.mapped());
            for block in &segment.blocks {
                match block.state {
                    BlockState::Allocated => {
                        add(&mut memory.allocated, block.size);
                        add(&mut memory.live, size::least(block.requested).unwrap_or(block.size));
                    }
                    BlockState::PendingFree => add(&mut memory.pending, block.size),
                    BlockState::Unmapped => {}
                    BlockState::Inactive if segment.pool_id != request.pool_id => {
                        add(&mut memory.cached_other_pools, block.size);
                    }
                    BlockState::Inactive if segment.stream != request.stream => {
                        add(&mut memory.cached_other_streams, block.size);
                    }
                    BlockState::Inactive => {
                        add(&mut memory.cached_here, block.size);
                        memory.blocks_cached_here = memory.blocks_cached_here.saturating_add(1);
                        if segment.pool == pool {
                            memory.largest_cached_here = memory.largest_cached_here.max(block.size);
                        }
                    }
                }
            }
        }
        memory
    }

    /// Whether a cached block of the request's stream, memory pool and block pool is large enough for the
    /// request.
    #[must_use]
    pub fn has_block_for(&self, request: &OomRequest) -> bool {
        !self.largest_cached_here.is_zero() && self.largest_cached_here >= request.rounded
    }

    /// `480 MiB cached in 8 separate blocks, the largest 240 MiB`: the cached bytes that the request may use, with the
    /// words that `held_in` makes of the blocks.
    #[must_use]
    pub fn free_blocks_text(&self, held_in: impl Fn(&str) -> String) -> String {
        let blocks = match self.blocks_cached_here {
            1 => "1 block".to_owned(),
            count => format!("{} separate blocks", grouped(count)),
        };
        let largest = match (self.blocks_cached_here, self.largest_cached_here) {
            (1, _) => String::new(),
            (_, Bytes::ZERO) => ", all in the other block pool".to_owned(),
            (_, largest) => format!(", the largest {largest}"),
        };
        format!("{} {}{largest}", self.cached_here, held_in(&blocks))
    }

    /// All cached bytes.
    #[must_use]
    pub fn cached(&self) -> Bytes {
        self.cached_here.saturating_add(self.cached_other_streams).saturating_add(self.cached_other_pools)
    }
}

/// Why a request ran out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OomCause {
    /// The request alone is larger than the limit.
    RequestAboveLimit,
    /// The request and the live bytes do not fit together, at whatever addresses; or less than a segment is
    /// left beside the live bytes.
    LiveBytesAtLimit,
    /// There are enough free bytes, but live blocks lie between them.
    FragmentationByLiveBlocks,
    /// There are enough free bytes, but they are cached for another stream.
    CachedInAnotherStream,
    /// There are enough free bytes, but they are cached in another memory pool: that of a program or of a
    /// graph.
    CachedInPrivatePool,
    /// Enough bytes were freed, but wait for another stream that used them.
    WaitingForAnotherStream,
    /// A cached block is large enough, but its free completed only while the allocator released its cache.
    /// PyTorch asks the device once more after that and does not search the pool again (pytorch issue 189504;
    /// pull request 191302 fixes it).
    PoolNotSearchedAgain,
    /// A setting rounds requests up so far that they do not fit. Without the setting they fit, as only a
    /// replay shows.
    RoundingBySetting,
    /// Others use so much of the device that too little is left.
    MemoryOfOthers,
}

impl OomCause {
    /// Why a request failed under a limit.
    ///
    /// A cached block that would serve the request is the cause wherever one exists. A setting that keeps the
    /// request from such a block (`max_split_size_mb`) is not known here.
    ///
    /// A group of bytes (cached here, on other streams or in other pools; pending; used by others) is the
    /// cause if that group alone would have been enough. If several groups are enough, the largest one is the
    /// cause.
    #[must_use]
    pub fn of(request: &OomRequest, memory: &MemoryAtFailure, limit: OomLimit) -> Self {
        let OomLimit { highest: limit, used_by_others: others, .. } = limit;
        let needed = request.least_size();
        let capacity = limit.saturating_add(others);
        if needed > capacity {
            return Self::RequestAboveLimit;
        }
        if memory.has_block_for(request) {
            return Self::PoolNotSearchedAgain;
        }
        let live = memory.live.saturating_add(needed);
        if live > limit {
            return match (live <= capacity, needed > limit) {
                (true, _) => Self::MemoryOfOthers,
                (false, true) => Self::RequestAboveLimit,
                (false, false) => Self::LiveBytesAtLimit,
            };
        }
        let missing = memory.reserved.saturating_add(request.segment_size).saturating_sub(limit);
        // Bytes that are cached here would be enough if they were one block, or if they were released. Bytes
        // that are cached elsewhere would be enough only if they were released.
        let parts = [
            (memory.cached_here, missing.min(request.rounded), Self::FragmentationByLiveBlocks),
            (memory.cached_other_streams, missing, Self::CachedInAnotherStream),
            (memory.cached_other_pools, missing, Self::CachedInPrivatePool),
            (memory.pending, missing, Self::WaitingForAnotherStream),
            (others, missing, Self::MemoryOfOthers),
        ];
        let enough = parts.iter().filter(|(bytes, needed, _)| !bytes.is_zero() && bytes >= needed);
        // If two groups are equal, the first one wins. If no group is enough, less than one segment is left
        // beside the live blocks.
        enough.rev().max_by_key(|(bytes, ..)| *bytes).map_or(Self::LiveBytesAtLimit, |(.., cause)| *cause)
    }

    /// The cause in a few words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestAboveLimit => "a request above the limit",
            Self::LiveBytesAtLimit => "live bytes at the limit",
            Self::FragmentationByLiveBlocks => "fragmentation by live blocks",
            Self::CachedInAnotherStream => "memory cached in another stream",
            Self::CachedInPrivatePool => "memory cached in a private pool",
            Self::WaitingForAnotherStream => "freed memory that waits for another stream",
            Self::PoolNotSearchedAgain => "a free block that PyTorch does not look for again",
            Self::RoundingBySetting => "rounding by a setting",
            Self::MemoryOfOthers => "memory of others on the device",
        }
    }

    /// The cause in a sentence without a full stop.
    #[must_use]
    pub fn sentence(self, request: &OomRequest, memory: &MemoryAtFailure, limit: OomLimit) -> String {
        let OomLimit { highest: most, .. } = limit;
        let size = request.size;
        let is_known = limit.is_known();
        let allowed = if is_known {
            format!("at most {most} may be reserved")
        } else {
            format!("the most that may be reserved is {}", limit.range_text())
        };
        match self {
            Self::RequestAboveLimit if is_known => {
                format!("the request alone, {size}, is larger than the {most} that may be reserved")
            }
            Self::RequestAboveLimit => {
                format!("the request alone, {size}, is probably larger than what may be reserved: {allowed}")
            }
            Self::LiveBytesAtLimit if memory.live.saturating_add(request.least_size()) > most => format!(
                "{} are allocated and {size} more are asked for, and {allowed}: no allocator could serve it",
                memory.allocated
            ),
            Self::LiveBytesAtLimit => format!(
                "{} are allocated, and {size} more need a segment of {}, and {allowed}",
                memory.allocated, request.segment_size
            ),
            Self::FragmentationByLiveBlocks => fragmentation(request, memory),
            Self::CachedInAnotherStream => format!(
                "{} are cached on other streams, whose blocks cannot serve stream {}, and live blocks keep their segments from \
                 being released",
                memory.cached_other_streams, request.stream
            ),
            Self::CachedInPrivatePool => format!(
                "{} are cached in other pools, those of programs or graphs, which give nothing back while they are in use",
                memory.cached_other_pools
            ),
            Self::WaitingForAnotherStream => {
                format!("{} were freed and wait until other streams have finished with them", memory.pending)
            }
            Self::PoolNotSearchedAgain => format!(
                "a cached block of {} would serve {size}, but another stream used the block until the allocator waited for the stream, and \
                 PyTorch does not search the pool again after that (pytorch issue 189504; pull request 191302 fixes it): the same request \
                 passes at once when the program asks again",
                memory.largest_cached_here
            ),
            Self::RoundingBySetting => format!(
                "roundup_power2_divisions rounds requests up ({size} to {}): without it the request passes",
                request.rounded
            ),
            Self::MemoryOfOthers => {
                format!(
                    "others hold {} of the device: without them the request would fit",
                    limit.used_by_others
                )
            }
        }
    }
}

fn fragmentation(request: &OomRequest, memory: &MemoryAtFailure) -> String {
    let text = if memory.largest_cached_here.is_zero() {
        let pool = PoolKind::serving(request.rounded);
        format!("{} are cached for this stream, but none of that is in the {pool} pool", memory.cached_here)
    } else {
        memory.free_blocks_text(|blocks| format!("are cached for this stream, but in {blocks}"))
    };
    format!("{text}, and live blocks keep their segments from being released: {} find no place", request.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn request(mib: u64) -> OomRequest {
        let size = Bytes::mib(mib);
        OomRequest {
            size,
            rounded: size,
            segment_size: size,
            stream: StreamId::DEFAULT,
            pool_id: PoolId::DEFAULT,
        }
    }

    fn memory(live: u64) -> MemoryAtFailure {
        MemoryAtFailure {
            reserved: Bytes::mib(1000),
            live: Bytes::mib(live),
            allocated: Bytes::mib(live),
            ..MemoryAtFailure::default()
        }
    }

    const fn limit(highest: u64, others: u64) -> OomLimit {
        OomLimit::known(Bytes::mib(highest), Bytes::mib(others))
    }

    #[test]
    fn the_largest_group_of_bytes_that_alone_would_have_been_enough_is_the_cause() {
        let free = Bytes::mib(300);
        let cause = |memory: MemoryAtFailure, limit| OomCause::of(&request(200), &memory, limit);
        assert_eq!(cause(memory(100), limit(150, 0)), OomCause::RequestAboveLimit);
        assert_eq!(cause(memory(900), limit(1000, 0)), OomCause::LiveBytesAtLimit);
        assert_eq!(cause(memory(900), limit(1000, 400)), OomCause::MemoryOfOthers);
        let here = MemoryAtFailure { cached_here: free, ..memory(700) };
        assert_eq!(cause(here, limit(1000, 0)), OomCause::FragmentationByLiveBlocks);
        let streams = MemoryAtFailure { cached_other_streams: free, ..memory(700) };
        assert_eq!(cause(streams, limit(1000, 0)), OomCause::CachedInAnotherStream);
        let pools = MemoryAtFailure { cached_other_pools: free, ..memory(700) };
        assert_eq!(cause(pools, limit(1000, 0)), OomCause::CachedInPrivatePool);
        let pending = MemoryAtFailure { pending: free, ..memory(700) };
        assert_eq!(cause(pending, limit(1000, 0)), OomCause::WaitingForAnotherStream);
        let both = MemoryAtFailure { pending: free, cached_here: Bytes::mib(400), ..memory(300) };
        assert_eq!(cause(both, limit(1000, 0)), OomCause::FragmentationByLiveBlocks);
        // One block is large enough, but the free of this block completed too late.
        let late = MemoryAtFailure { largest_cached_here: free, ..here };
        assert_eq!(cause(late, limit(1000, 0)), OomCause::PoolNotSearchedAgain);
        let too_small = MemoryAtFailure { largest_cached_here: Bytes::mib(199), ..here };
        assert_eq!(cause(too_small, limit(1000, 0)), OomCause::FragmentationByLiveBlocks);
        // Nothing is cached: all other reserved bytes are lost to rounding.
        assert_eq!(cause(memory(700), limit(1000, 0)), OomCause::LiveBytesAtLimit);
    }

    #[test]
    fn a_memory_fraction_is_the_limit_where_it_leaves_too_little_and_the_device_otherwise() {
        let met = |fraction: Option<u64>, free: u64| {
            OomLimit::at_failure(
                &request(200),
                Bytes::mib(1000),
                fraction.map(Bytes::mib),
                Bytes::mib(free),
                Bytes::mib(2000),
            )
        };
        assert_eq!(met(Some(1100), 900), limit(1100, 0));
        assert_eq!(met(Some(1500), 100), limit(1100, 900));
        assert_eq!(met(None, 0), limit(1000, 1000));
    }

    #[test]
    fn the_largest_block_is_one_of_the_requests_own_block_pool() {
        let memory = MemoryAtFailure { cached_here: Bytes::mib(64), ..memory(700) };
        let words = OomCause::FragmentationByLiveBlocks.sentence(&request(30), &memory, limit(1000, 0));
        assert!(
            words.starts_with("64 MiB are cached for this stream, but none of that is in the large pool,"),
            "{words}"
        );
    }
}
