//! The events of an allocator, added up.

use blockyard_record::{Bytes, Event, EventSink, MemoryState, Recorder, RunInfo};
use blockyard_rules::AllocatorConfig;

/// A log of events that adds them up to a memory state.
#[derive(Debug)]
pub(crate) struct Follower {
    recorder: Recorder,
    events: usize,
}

impl Follower {
    pub(crate) fn new(capacity: Bytes, config: &AllocatorConfig) -> Self {
        let info = RunInfo {
            title: String::new(),
            conf: config.text().to_owned(),
            capacity,
            is_capacity_unknown: false,
            max_split_size: config.max_split_size_signed(),
            backend: config.backend(),
            release: config.release(),
        };
        Self { recorder: Recorder::new(info), events: 0 }
    }

    /// The state that the events add up to.
    pub(crate) fn state(&self) -> &MemoryState {
        self.recorder.state()
    }

    /// How many events were added.
    pub(crate) fn events(&self) -> usize {
        self.events
    }
}

impl EventSink for Follower {
    fn record(&mut self, event: Event) {
        self.events += 1;
        self.recorder.record(event);
    }
}
