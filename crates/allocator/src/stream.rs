//! Frees that wait for the work of other streams.

use std::collections::{BTreeMap, VecDeque};

use blockyard_device::DeviceMemory;
use blockyard_record::{Event, EventSink, StreamId};

use crate::block::BlockIndex;
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
    /// One event on each other stream that used the block, by ascending handle (`insert_events`).
    pub(crate) fn record_events(
        &mut self,
        index: BlockIndex,
    ) -> Result<Vec<(StreamId, D::Event)>, AllocError> {
        let device = &mut self.device;
        let streams = self.blocks[index].streams.iter();
        streams.map(|stream| Ok((*stream, device.record_event(*stream)?))).collect()
    }

    /// Completes the frees whose streams are done (`process_events`): each stream up to its first unfinished event.
    pub(crate) fn process_events(&mut self) -> Result<(), AllocError> {
        if self.pending.queues.is_empty() {
            return Ok(());
        }
        let streams: Vec<StreamId> = self.pending.queues.keys().copied().collect();
        for stream in streams {
            while let Some((event, _)) = self.pending.queues.get(&stream).and_then(VecDeque::front) {
                if !self.device.is_complete(event)? {
                    break;
                }
                self.finish_first_event(stream);
            }
        }
        Ok(())
    }

    /// Waits for every event and completes all pending frees (`synchronize_and_free_events`).
    pub(crate) fn synchronize_streams(&mut self) -> Result<(), AllocError> {
        self.stats.num_sync_all_streams += 1;
        self.sink.record(Event::StreamsSynchronized);
        let streams: Vec<StreamId> = self.pending.queues.keys().copied().collect();
        for stream in streams {
            while let Some((event, _)) = self.pending.queues.get(&stream).and_then(VecDeque::front) {
                self.device.wait(event)?;
                self.finish_first_event(stream);
            }
        }
        Ok(())
    }

    fn finish_first_event(&mut self, stream: StreamId) {
        let Some(queue) = self.pending.queues.get_mut(&stream) else {
            return;
        };
        let finished = queue.pop_front();
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
