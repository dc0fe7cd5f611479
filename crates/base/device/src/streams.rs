//! Streams whose work is done when the user says so.

use std::collections::BTreeMap;

use blockyard_record::StreamId;

/// An event of a device whose user decides when work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEvent {
    stream: StreamId,
    number: u64,
}

impl StreamEvent {
    /// Event `number` of the stream, for devices that wrap another device. The events of a stream are
    /// numbered in the order of recording.
    #[must_use]
    pub const fn new(stream: StreamId, number: u64) -> Self {
        Self { stream, number }
    }

    /// The number of the event on its stream.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The stream that the event was recorded on.
    #[must_use]
    pub const fn stream(&self) -> StreamId {
        self.stream
    }
}

/// Streams whose work is done when the user of the device decides it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    progress: BTreeMap<StreamId, Progress>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    recorded: u64,
    done: u64,
}

impl Streams {
    pub(crate) fn record(&mut self, stream: StreamId) -> StreamEvent {
        let progress = self.progress.entry(stream).or_default();
        progress.recorded += 1;
        StreamEvent { stream, number: progress.recorded }
    }

    pub(crate) fn is_complete(&self, event: StreamEvent) -> bool {
        self.progress.get(&event.stream).is_some_and(|progress| progress.done >= event.number)
    }

    pub(crate) fn wait(&mut self, event: StreamEvent) {
        let progress = self.progress.entry(event.stream).or_default();
        progress.done = progress.done.max(event.number);
    }

    pub(crate) fn advance(&mut self, stream: StreamId) {
        if let Some(progress) = self.progress.get_mut(&stream) {
            progress.done = progress.recorded;
        }
    }

    pub(crate) fn advance_all(&mut self) {
        for progress in self.progress.values_mut() {
            progress.done = progress.recorded;
        }
    }
}
