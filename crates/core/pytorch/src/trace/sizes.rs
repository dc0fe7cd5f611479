//! The sizes of blocks, as far as they follow from a trace and its final segments.
//!
//! A trace has the requested size, not the size of the block. A free block always begins where the block
//! before it ends, since free neighbors merge. So an allocation after a block shows where the block ends.
//! PyTorch allocates multiples of 512 bytes, and leaves at most 1 MiB of a block of the large pool as a
//! remainder. A size that these rules leave open is marked as open, and the block is drawn as small as
//! possible.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_record::{Bytes, PoolKind, TraceAction, TraceEntry};
use blockyard_rules::Dialect;
use blockyard_rules::size::{self, UNLIMITED};
use rustc_hash::FxHashMap;

use crate::trace::settings;

/// Every size is a multiple of this.
pub(crate) const UNIT: u64 = size::MIN_BLOCK_SIZE.get();
/// A free block of the large pool is always larger than this.
const SMALL_SIZE: u64 = size::SMALL_SIZE.get();

/// The rules of a run, as far as they follow from its settings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// Whether requests may be rounded to divisions of a power of two.
    pub(crate) has_divisions: bool,
    /// Blocks of this size and larger are not split.
    pub(crate) max_split: Option<u64>,
    /// Whether the trace has the sizes of blocks instead of requests, as that of host memory has.
    pub(crate) has_block_sizes: bool,
    /// Bytes that are added to each request.
    pub(crate) padding: Bytes,
}

/// A size and by how much it may be larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) size: u64,
    pub(crate) most_extra: u64,
}

impl Rules {
    /// The rules under a settings text; `max_split` is the limit that the file has beside the text.
    pub(crate) fn of(text: &str, dialect: Dialect, max_split: Option<u64>) -> Self {
        let config = settings(text);
        let named = Some(config.max_split_size()).filter(|limit| *limit < UNLIMITED).map(Bytes::get);
        Self {
            has_divisions: config.has_roundup(),
            max_split: named.or(max_split),
            has_block_sizes: false,
            padding: dialect.padding(),
        }
    }

    /// The rules of host memory, where a block is as large as its trace says.
    pub(crate) fn of_host() -> Self {
        Self { has_block_sizes: true, ..Self::default() }
    }

    /// The least size of a block for the request under these rules, at most `room`.
    pub(crate) fn least(&self, requested: Bytes, room: u64) -> u64 {
        if self.has_block_sizes {
            return requested.get().max(1).min(room);
        }
        size::least(requested.saturating_add(self.padding)).map_or(u64::MAX, Bytes::get).min(room)
    }

    /// The size of a block that is allocated where `room` bytes are free.
    pub(crate) fn size(&self, requested: Bytes, room: u64, pool: PoolKind, is_expandable: bool) -> Size {
        let least = self.least(requested, room);
        if self.has_block_sizes {
            return Size { size: least, most_extra: 0 };
        }
        let left = room.saturating_sub(least);
        let may_leave = if is_expandable || pool == PoolKind::Small { UNIT } else { SMALL_SIZE + 1 };
        if left < may_leave || (!is_expandable && self.max_split.is_some_and(|most| least >= most)) {
            return Size { size: room, most_extra: 0 };
        }
        if !self.has_divisions {
            return Size { size: least, most_extra: 0 };
        }
        let power = least.checked_next_power_of_two().unwrap_or(least);
        Size { size: least, most_extra: power.saturating_sub(least).min(left) }
    }

    /// The size of a block from before the trace, as a drawing needs it: [`size_before`], with a larger extra
    /// where requests may be rounded to divisions of a power of two.
    pub(crate) fn size_before(&self, requested: Bytes, place: BlockRoom) -> Size {
        let BlockRoom { room, .. } = place;
        let least = self.least(requested, room);
        if self.has_block_sizes {
            return Size { size: least, most_extra: 0 };
        }
        let ruled = size_before(least, place, self.max_split);
        let is_ruled = ruled.size > least || self.is_unsplit(least, place);
        let extra = if is_ruled || !self.has_divisions {
            ruled.most_extra
        } else {
            let power = least.checked_next_power_of_two().unwrap_or(least);
            ruled.most_extra.max(power.saturating_sub(least).min(room.saturating_sub(least)))
        };
        Size { size: ruled.size, most_extra: extra.saturating_sub(extra % UNIT) }
    }

    fn is_unsplit(&self, least: u64, place: BlockRoom) -> bool {
        !place.is_always_split && self.max_split.is_some_and(|most| least >= most)
    }
}

/// Where a block from before the trace is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockRoom {
    /// The bytes from its address to the next block in use, or to the end of the memory.
    pub(crate) room: u64,
    /// Whether these are all bytes of the segment.
    pub(crate) is_whole: bool,
    /// Whether every remainder is split off: in the small pool, and while expandable segments are used.
    pub(crate) is_always_split: bool,
}

/// The sizes that a block from before the trace can have if its request takes `least` bytes; at most the room
/// of the place.
///
/// Blocks of at least `max_split` bytes are not split: such a block has all of its segment, or was split off
/// under other settings. A remainder of at most 1 MiB is not split off in the large pool, and a free block of
/// that pool is always larger: so a smaller gap belongs to the block, and before a larger one the block may
/// be up to 1 MiB larger than asked for.
pub(crate) fn size_before(least: u64, place: BlockRoom, max_split: Option<u64>) -> Size {
    let BlockRoom { room, is_whole, is_always_split: leaves_units } = place;
    let left = room.saturating_sub(least);
    let all = Size { size: room, most_extra: 0 };
    if leaves_units {
        return if left < UNIT { all } else { Size { size: least, most_extra: 0 } };
    }
    if max_split.is_some_and(|most| least >= most) {
        return if is_whole { all } else { Size { size: least, most_extra: 0 } };
    }
    if left <= SMALL_SIZE {
        return all;
    }
    Size { size: least, most_extra: SMALL_SIZE.min(left.saturating_sub(SMALL_SIZE).saturating_sub(UNIT)) }
}

/// A block whose size a later allocation may show, by its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BlockOrigin {
    /// The block at this address existed before the first entry.
    Before(u64),
    /// The entry with this index allocated the block.
    Entry(u32),
}

/// The sizes of blocks that follow from the next allocation above each block, which begins where the block
/// ends. `before` has the blocks from before the trace and their possible sizes; the blocks of the trace are
/// watched too where rules for their sizes are given.
pub(crate) fn shown_sizes(
    trace: impl Iterator<Item = TraceEntry>,
    before: &BTreeMap<u64, Size>,
    active: impl Iterator<Item = u64>,
    entry_rules: Option<&Rules>,
) -> FxHashMap<BlockOrigin, u64> {
    let mut shown = FxHashMap::default();
    let open = before.iter().filter(|(_, size)| size.most_extra > 0);
    let mut watched: BTreeMap<u64, (BlockOrigin, Size)> =
        open.map(|(addr, size)| (*addr, (BlockOrigin::Before(*addr), *size))).collect();
    let mut active: BTreeSet<u64> = active.collect();
    for (index, entry) in trace.enumerate() {
        if watched.is_empty() && entry_rules.is_none() {
            break;
        }
        match entry.action {
            TraceAction::Alloc => {
                if let Some(below) = active.range(..entry.addr).next_back()
                    && let Some((asked, Size { size, most_extra: extra })) = watched.get(below).copied()
                {
                    let found = entry.addr.saturating_sub(*below);
                    if (size..=size.saturating_add(extra)).contains(&found) {
                        shown.insert(asked, found);
                        watched.remove(&below.clone());
                    }
                }
                active.insert(entry.addr);
                if let Some(rules) = entry_rules
                    && let Ok(index) = u32::try_from(index)
                {
                    let size = rules.least(entry.size, u64::MAX);
                    let extra = size.checked_next_power_of_two().unwrap_or(size).saturating_sub(size);
                    watched.insert(entry.addr, (BlockOrigin::Entry(index), Size { size, most_extra: extra }));
                }
            }
            TraceAction::FreeCompleted => {
                active.remove(&entry.addr);
                watched.remove(&entry.addr);
            }
            _ => {}
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn sizes_follow_from_the_room() {
        let rules = Rules::default();
        let size = |requested, room| rules.size(Bytes::new(requested), room, PoolKind::Large, false);
        // More than 1 MiB is left: it is split off.
        assert_eq!(size(3 * MIB + 5, 20 * MIB), Size { size: 3 * MIB + 512, most_extra: 0 });
        assert_eq!(size(19 * MIB, 20 * MIB), Size { size: 20 * MIB, most_extra: 0 });
        assert_eq!(size(19 * MIB - 512, 20 * MIB), Size { size: 19 * MIB - 512, most_extra: 0 });
        let small = rules.size(Bytes::new(0), 2 * MIB, PoolKind::Small, false);
        assert_eq!(small, Size { size: 512, most_extra: 0 });
        let spaced = Rules::of(" max_split_size_mb : 64, roundup_power2_divisions : 1", Dialect::Cuda, None);
        assert_eq!((spaced.max_split, spaced.has_divisions), (Some(64 * MIB), false), "as PyTorch reads it");
        let divided = Rules::of("roundup_power2_divisions:4,max_split_size_mb:64", Dialect::Cuda, None);
        let size = |requested| divided.size(Bytes::new(requested), 200 * MIB, PoolKind::Large, false);
        assert_eq!(size(5 * MIB), Size { size: 5 * MIB, most_extra: 3 * MIB });
        assert_eq!(size(64 * MIB), Size { size: 200 * MIB, most_extra: 0 });
    }

    #[test]
    fn blocks_from_before_may_be_larger() {
        let rules = Rules::default();
        let place = |room, is_whole| BlockRoom { room, is_whole, is_always_split: false };
        let size = |room| rules.size_before(Bytes::new(3 * MIB), place(room, false));
        assert_eq!(size(4 * MIB), Size { size: 4 * MIB, most_extra: 0 });
        assert_eq!(size(10 * MIB), Size { size: 3 * MIB, most_extra: MIB });
        assert_eq!(size(4 * MIB + MIB / 2), Size { size: 3 * MIB, most_extra: MIB / 2 - 512 });
    }

    #[test]
    fn a_block_above_the_limit_has_all_of_its_segment() {
        let rules = Rules::of("max_split_size_mb: 64", Dialect::Cuda, None);
        let size = |room, is_whole| {
            rules.size_before(Bytes::new(70 * MIB), BlockRoom { room, is_whole, is_always_split: false })
        };
        assert_eq!(size(90 * MIB, true), Size { size: 90 * MIB, most_extra: 0 });
        assert_eq!(size(90 * MIB, false), Size { size: 70 * MIB, most_extra: 0 });
    }
}
