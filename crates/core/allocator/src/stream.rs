//! Pending frees, which wait for the work of other streams.

use std::collections::VecDeque;

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Event, EventSink, StreamId};

use crate::block::BlockIndex;
use crate::memory_pool::MemoryPoolIndex;
use crate::{AllocError, CachingAllocator};

/// The events that frees wait for: one queue for each stream, in the order of recording (`cuda_events`).
#[derive(Debug)]
pub(crate) struct PendingFrees<E> {
    /// The queues by ascending stream; no queue is empty.
    queues: Vec<(StreamId, VecDeque<(E, BlockIndex)>)>,
    /// Empty queues, kept so that their memory can be reused.
    vacant: Vec<VecDeque<(E, BlockIndex)>>,
    /// How many events are in all queues.
    outstanding: usize,
    /// Events that were just recorded, for a block that will wait for them.
    recorded: Vec<(StreamId, E)>,
}

impl<E> Default for PendingFrees<E> {
    fn default() -> Self {
        Self { queues: Vec::new(), vacant: Vec::new(), outstanding: 0, recorded: Vec::new() }
    }
}

impl<E> PendingFrees<E> {
    fn push(&mut self, stream: StreamId, event: E, block: BlockIndex) {
        let position = match self.queues.binary_search_by_key(&stream, |(stream, _)| *stream) {
            Ok(position) => position,
            Err(position) => {
                let queue = self.vacant.pop().unwrap_or_default();
                self.queues.insert(position, (stream, queue));
                position
            }
        };
        self.queues[position].1.push_back((event, block));
        self.outstanding += 1;
    }

    /// Removes one event, and its queue if it is empty then.
    fn take(&mut self, position: usize, place: usize) -> Option<(E, BlockIndex)> {
        let taken = self.queues.get_mut(position)?.1.remove(place)?;
        self.outstanding -= 1;
        if self.queues[position].1.is_empty() {
            let (_, queue) = self.queues.remove(position);
            self.vacant.push(queue);
        }
        Some(taken)
    }
}

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Whether any free waits for a stream or for the end of a graph capture.
    #[inline]
    pub(crate) fn has_pending_frees(&self) -> bool {
        // `||` would branch.
        (self.pending.outstanding > 0) | !self.deferred.is_empty()
    }

    /// Records an event on each stream that used the block, for [`CachingAllocator::await_events`]
    /// (`insert_events`). With `only_outside`, streams that were recorded during a graph capture are left
    /// out. After an error no event is kept.
    pub(crate) fn record_events(&mut self, index: BlockIndex, only_outside: bool) -> Result<(), AllocError> {
        self.pending.recorded.clear();
        let Some(uses) = self.blocks.uses(&self.blocks[index]) else {
            return Ok(());
        };
        for stream in &uses.streams {
            if only_outside && uses.in_capture.contains(stream) {
                continue;
            }
            self.pending.recorded.push((*stream, self.device.record_event(*stream)?));
        }
        Ok(())
    }

    /// Makes the free of the block wait for the events just recorded. Without events, the free completes at
    /// once.
    pub(crate) fn await_events(&mut self, index: BlockIndex) {
        let outstanding = self.pending.recorded.len();
        if outstanding == 0 {
            self.complete_pending_free(index);
            return;
        }
        self.blocks.uses_mut(index).outstanding = outstanding;
        let mut recorded = std::mem::take(&mut self.pending.recorded);
        for (stream, event) in recorded.drain(..) {
            self.pending.push(stream, event, index);
        }
        // The memory of the list is kept for the next block.
        self.pending.recorded = recorded;
    }

    /// Completes the frees whose streams are done (`process_events`): each stream up to its first incomplete
    /// event.
    pub(crate) fn process_events(&mut self) -> Result<(), AllocError> {
        self.undefer_frees()?;
        let mut position = 0;
        while let Some((_, queue)) = self.pending.queues.get(position) {
            match queue.front() {
                // When this queue becomes empty, the next queue has its position.
                Some((event, _)) if self.device.is_complete(event)? => self.finish_event(position, 0),
                _ => position += 1,
            }
        }
        Ok(())
    }

    /// Waits for all events, or for the events of one pool's blocks, and completes the frees
    /// (`synchronize_and_free_events`).
    pub(crate) fn synchronize_streams(&mut self, only: Option<MemoryPoolIndex>) -> Result<(), AllocError> {
        self.counters.infrequent.num_sync_all_streams += 1;
        self.sink.record(Event::StreamsSynchronized);
        if !self.is_capturing() {
            self.undefer_frees()?;
        }
        let (mut position, mut place) = (0, 0);
        while let Some((_, queue)) = self.pending.queues.get(position) {
            let Some((event, index)) = queue.get(place) else {
                (position, place) = (position + 1, 0);
                continue;
            };
            let memory_pool = self.free_lists[self.blocks[*index].list].memory_pool;
            if only.is_some_and(|only| memory_pool != only) {
                place += 1;
                continue;
            }
            self.device.wait(event)?;
            self.finish_event(position, place);
        }
        Ok(())
    }

    /// Makes deferred frees wait for their streams, except for streams that were recorded during the capture.
    fn undefer_frees(&mut self) -> Result<(), AllocError> {
        while let Some(index) = self.deferred.first().copied() {
            self.record_events(index, true)?;
            self.deferred.remove(0);
            self.await_events(index);
        }
        Ok(())
    }

    /// Removes one event from the queue of its stream. The last event of a block completes the free of the
    /// block.
    fn finish_event(&mut self, position: usize, place: usize) {
        let Some((_, index)) = self.pending.take(position, place) else {
            return;
        };
        let uses = self.blocks.uses_mut(index);
        debug_assert!(uses.outstanding > 0, "each event in a queue is counted here once");
        uses.outstanding = uses.outstanding.saturating_sub(1);
        if uses.outstanding == 0 {
            self.complete_pending_free(index);
        }
    }

    fn complete_pending_free(&mut self, index: BlockIndex) {
        let block = &self.blocks[index];
        debug_assert_eq!(block.state, BlockState::PendingFree, "only a pending free completes");
        let (pool, size, requested) = (block.pool, block.size, block.requested);
        self.blocks.clear_uses(index);
        self.complete_free::<true>(index);
        self.counters.pending_completed(pool, size, requested);
    }
}
