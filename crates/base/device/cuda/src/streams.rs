//! The driver's streams by their numbers.

use std::collections::BTreeMap;

use blockyard_record::StreamId;

use crate::driver::{ContextGuard, Stream};
use crate::error::DriverError;

#[derive(Debug)]
pub(crate) struct Streams {
    default: Stream,
    /// Streams that were made here, at the first use of their number.
    own: BTreeMap<StreamId, Stream>,
    /// Streams that other code made.
    foreign: BTreeMap<StreamId, Stream>,
    /// Whether numbers that are not known are handles.
    pub(crate) numbers_are_handles: bool,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            default: Stream::default(),
            own: BTreeMap::new(),
            foreign: BTreeMap::new(),
            numbers_are_handles: false,
        }
    }

    pub(crate) fn add_foreign(&mut self, id: StreamId, stream: Stream) {
        self.foreign.insert(id, stream);
    }

    /// Whether a stream exists for the number; [`Self::get`] makes one if not.
    pub(crate) fn knows(&self, id: StreamId) -> bool {
        id == StreamId::DEFAULT || self.foreign.contains_key(&id) || self.own.contains_key(&id)
    }

    pub(crate) fn get(&mut self, current: &ContextGuard, id: StreamId) -> Result<&Stream, DriverError> {
        if id == StreamId::DEFAULT {
            return Ok(&self.default);
        }
        if let Some(stream) = self.foreign.get(&id) {
            return Ok(stream);
        }
        match self.own.entry(id) {
            std::collections::btree_map::Entry::Occupied(known) => Ok(known.into_mut()),
            std::collections::btree_map::Entry::Vacant(new) => Ok(new.insert(Stream::create(current)?)),
        }
    }

    pub(crate) fn clear(&mut self, current: &ContextGuard) {
        for (_, stream) in std::mem::take(&mut self.own) {
            stream.destroy(current);
        }
    }
}
