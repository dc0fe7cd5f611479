//! Frees that wait for the work of other streams.

use std::collections::{BTreeMap, VecDeque};

use blockyard_device::DeviceMemory;
use blockyard_record::{Event, EventSink, StreamId};

use crate::block::BlockIndex;
use crate::private_pool::PoolIndex;
use crate::{AllocError, CachingAllocator};

/// Events that frees wait for: for each stream a queue in the order of recording (`cuda_events`).
#[derive(Debug)]
pub(crate) struct PendingFrees<E> {
    queues: BTreeMap<StreamId, VecDeque<(E, BlockIndex)>>,
}

impl<E> Default for PendingFrees<E> {
    fn default() -> Self {
        Self { queues: BTreeMap::new() }
    }
}

impl<E> PendingFrees<E> {
    pub(crate) fn push(&mut self, block: BlockIndex, events: Vec<(StreamId, E)>) {
        for (stream, event) in events {
            self.queues.entry(stream).or_default().push_back((event, block));
        }
    }
}

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// One event on each of the streams (`insert_events`).
    pub(crate) fn record_events(
        &mut self,
        streams: &[StreamId],
    ) -> Result<Vec<(StreamId, D::Event)>, AllocError> {
        let device = &mut self.device;
        streams.iter().map(|stream| Ok((*stream, device.record_event(*stream)?))).collect()
    }

    /// Completes the frees whose streams are done (`process_events`): each stream up to its first unfinished event.
    pub(crate) fn process_events(&mut self) -> Result<(), AllocError> {
        self.undefer_frees()?;
        if self.pending.queues.is_empty() {
            return Ok(());
        }
        let streams: Vec<StreamId> = self.pending.queues.keys().copied().collect();
        for stream in streams {
            while let Some((event, _)) = self.pending.queues.get(&stream).and_then(VecDeque::front) {
                if !self.device.is_complete(event)? {
                    break;
                }
                self.finish_event(stream, 0);
            }
        }
        Ok(())
    }

    /// Waits for every event, or every one of a pool's blocks, and completes their frees (`synchronize_and_free_events`).
    pub(crate) fn synchronize_streams(&mut self, only: Option<PoolIndex>) -> Result<(), AllocError> {
        self.stats.num_sync_all_streams += 1;
        self.sink.record(Event::StreamsSynchronized);
        if self.scopes.is_empty() {
            self.undefer_frees()?;
        }
        let streams: Vec<StreamId> = self.pending.queues.keys().copied().collect();
        for stream in streams {
            let mut position = 0;
            while let Some((event, block)) =
                self.pending.queues.get(&stream).and_then(|queue| queue.get(position))
            {
                if only.is_some_and(|only| self.blocks[*block].owner != only) {
                    position += 1;
                    continue;
                }
                self.device.wait(event)?;
                self.finish_event(stream, position);
            }
        }
        Ok(())
    }

    /// Frees that came while a scope was open wait for their streams now, except those noted while it was open.
    fn undefer_frees(&mut self) -> Result<(), AllocError> {
        while let Some(index) = self.deferred.first().copied() {
            let block = &self.blocks[index];
            let outside: Vec<StreamId> = block
                .streams
                .iter()
                .filter(|stream| !block.streams_in_scope.contains(stream))
                .copied()
                .collect();
            let events = self.record_events(&outside)?;
            self.deferred.remove(0);
            self.await_events(index, events);
        }
        Ok(())
    }

    /// Lets the block's free wait for the events; without any it completes at once.
    pub(crate) fn await_events(&mut self, index: BlockIndex, events: Vec<(StreamId, D::Event)>) {
        if events.is_empty() {
            self.complete_free(index);
        } else {
            self.blocks[index].outstanding = events.len();
            self.pending.push(index, events);
        }
    }

    fn finish_event(&mut self, stream: StreamId, position: usize) {
        let Some(queue) = self.pending.queues.get_mut(&stream) else {
            return;
        };
        let finished = queue.remove(position);
        if queue.is_empty() {
            self.pending.queues.remove(&stream);
        }
        if let Some((_, index)) = finished {
            let block = &mut self.blocks[index];
            block.outstanding = block.outstanding.saturating_sub(1);
            if block.outstanding == 0 {
                self.complete_free(index);
            }
        }
    }
}
