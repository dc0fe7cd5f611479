//! Best fit: which of the free blocks serves a request.

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Bytes, EventSink};

use crate::CachingAllocator;
use crate::block::BlockIndex;
use crate::request::AllocParams;

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// The block that best fit chooses, before the oversize limits are applied.
    ///
    /// The reach of a block is its size plus the size of the unmapped block after it, into which it could
    /// grow. While segments expand, a block that could grow is skipped if the next block in the order has a
    /// smaller reach. While segments do not expand, blocks of expandable segments are skipped.
    #[inline]
    pub(crate) fn best_fit(&mut self, params: &AllocParams) -> Option<BlockIndex> {
        if self.config.release().oldest_block_first() {
            return self.best_fit_by_reach(params);
        }
        let first = self.free_lists[params.list].cached.first_fitting(params.rounded, &self.blocks)?;
        if self.blocks[first].is_expandable { self.best_fit_by_reach(params) } else { Some(first) }
    }

    fn best_fit_by_reach(&mut self, params: &AllocParams) -> Option<BlockIndex> {
        self.free_lists[params.list].cached.put_latest_in_bin(&self.blocks);
        let list = &self.free_lists[params.list];
        if self.config.release().oldest_block_first() {
            return self
                .choose_by_reach(params, self.oldest_first(list.fitting(params.rounded, &self.blocks)));
        }
        self.choose_by_reach(params, list.fitting(params.rounded, &self.blocks))
    }

    /// Blocks of one list and of ascending size, of equal size the oldest first. One size is looked at after
    /// the other, since the first block is nearly always the chosen one.
    fn oldest_first(&self, blocks: impl Iterator<Item = BlockIndex>) -> impl Iterator<Item = BlockIndex> {
        let mut blocks = blocks.peekable();
        // Of one size, the oldest last.
        let mut equal: Vec<BlockIndex> = Vec::new();
        std::iter::from_fn(move || {
            if equal.is_empty() {
                let first = blocks.next()?;
                let size = self.blocks[first].size;
                equal.push(first);
                while let Some(next) = blocks.next_if(|next| self.blocks[*next].size == size) {
                    equal.push(next);
                }
                equal.sort_by_key(|index| std::cmp::Reverse(self.blocks[*index].id));
            }
            equal.pop()
        })
    }

    /// Chooses among fitting blocks in best-fit order.
    fn choose_by_reach(
        &self,
        params: &AllocParams,
        mut fitting: impl Iterator<Item = BlockIndex>,
    ) -> Option<BlockIndex> {
        let mut chosen = fitting.next()?;
        if !params.expands {
            while self.blocks[chosen].is_expandable {
                chosen = fitting.next()?;
            }
            return Some(chosen);
        }
        for next in fitting {
            if !self.blocks[chosen].is_expandable || self.reach(next) >= self.reach(chosen) {
                break;
            }
            chosen = next;
        }
        Some(chosen)
    }

    /// Orders blocks of ascending size as the release does: where sizes are equal, the oldest block first.
    pub(crate) fn put_oldest_first(&self, blocks: &mut [BlockIndex]) {
        if self.config.release().oldest_block_first() {
            blocks.sort_by_key(|index| {
                let block = &self.blocks[*index];
                (self.free_lists[block.list].stream, block.size, block.id)
            });
        }
    }

    /// The size of a block together with the unmapped block after it.
    fn reach(&self, index: BlockIndex) -> Bytes {
        let block = &self.blocks[index];
        let next =
            block.next.map(|next| &self.blocks[next]).filter(|next| next.state == BlockState::Unmapped);
        block.size.saturating_add(next.map_or(Bytes::ZERO, |next| next.size))
    }
}
