//! Recorded programs as traces.

use std::collections::{BTreeSet, HashMap};

use blockyard_pytorch::{ReadError, RecordedRun};
use blockyard_record::StreamId;
use blockyard_trace::requests;
use blockyard_workload::{Request, TensorSlots};

use super::{Opcode, Operation, OperationList};

/// Why a recording gives no list of operations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationListError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The recording has a request that a flat list cannot represent.
    #[error("request {index}: {what} cannot be replayed as a flat list")]
    Unsupported {
        /// The index of the request.
        index: usize,
        /// The kind of the request.
        what: &'static str,
    },
    /// The recording uses memory pools.
    #[error("request {index}: a memory pool cannot be replayed as a flat list")]
    MemoryPool {
        /// The index of the request.
        index: usize,
    },
    /// The recording uses more streams at a time than a flat list can number.
    #[error("more than 65535 streams at a time")]
    Streams,
}

impl OperationList {
    /// The requests of a recorded program, as they follow from its trace.
    ///
    /// The recording shows when the wait of a late free ended, and not for which stream it waited: such waits
    /// share as few streams as possible.
    ///
    /// # Errors
    ///
    /// [`OperationListError::Read`] for a recording that cannot be replayed,
    /// [`OperationListError::MemoryPool`] for one with memory pools, [`OperationListError::Unsupported`] for
    /// one that changes settings.
    pub fn recorded(name: &str, run: &RecordedRun) -> Result<Self, OperationListError> {
        let inferred = requests(run)?;
        let requests = inferred.workload.requests();
        let mut flat = TraceBuilder::new(name, requests);
        for (index, request) in requests.iter().enumerate() {
            flat.add(index, request)?;
        }
        Ok(flat.finish())
    }
}

/// Builds an [`OperationList`] from requests.
struct TraceBuilder {
    trace: OperationList,
    slots: TensorSlots,
    /// The numbers of streams that something is allocated on, and of those that something waits for at the
    /// moment.
    streams: HashMap<StreamId, u16>,
    own: BTreeSet<StreamId>,
    vacant: Vec<u16>,
}

impl TraceBuilder {
    fn new(name: &str, requests: &[Request]) -> Self {
        let own: BTreeSet<_> = requests
            .iter()
            .filter_map(|request| match request {
                Request::Allocate { stream, .. } => Some(*stream),
                _ => None,
            })
            .chain([StreamId::DEFAULT])
            .collect();
        Self {
            trace: OperationList { name: name.to_owned(), operations: Vec::new(), slots: 0, streams: 0 },
            slots: TensorSlots::default(),
            streams: HashMap::new(),
            own,
            vacant: Vec::new(),
        }
    }

    fn stream(&mut self, stream: StreamId) -> Result<u16, OperationListError> {
        // Numbers ascend with the handles of streams that own blocks: best fit orders by them.
        if self.streams.is_empty() {
            for own in &self.own {
                self.streams.insert(*own, self.trace.streams);
                self.trace.streams = self.trace.streams.checked_add(1).ok_or(OperationListError::Streams)?;
            }
        }
        if let Some(number) = self.streams.get(&stream) {
            return Ok(*number);
        }
        let number = if let Some(number) = self.vacant.pop() {
            number
        } else {
            self.trace.streams = self.trace.streams.checked_add(1).ok_or(OperationListError::Streams)?;
            self.trace.streams - 1
        };
        self.streams.insert(stream, number);
        Ok(number)
    }

    fn add(&mut self, index: usize, request: &Request) -> Result<(), OperationListError> {
        let unsupported = |what| Err(OperationListError::Unsupported { index, what });
        match *request {
            // These requests ask nothing of the allocator, or only cost as much as other statistics.
            Request::Snapshot | Request::ResetPeak | Request::ResetAccumulated => {}
            Request::Allocate { size, .. } if size.is_zero() => {}
            Request::Allocate { tensor, size, stream } => {
                let (slot, stream) = (self.slots.allocate(tensor), self.stream(stream)?);
                self.push(Opcode::Allocate, slot, stream, size.get());
            }
            Request::Free { tensor } => {
                if let Some(slot) = self.slots.free(tensor) {
                    self.push(Opcode::Free, slot, 0, 0);
                }
            }
            Request::RecordStream { tensor, stream } => {
                let stream = self.stream(stream)?;
                if let Some(slot) = self.slots.get(tensor) {
                    self.push(Opcode::RecordStream, slot, stream, 0);
                }
            }
            Request::Advance { stream: Some(stream) } => {
                let number = self.stream(stream)?;
                self.push(Opcode::Advance, 0, number, 0);
                if !self.own.contains(&stream) {
                    self.streams.remove(&stream);
                    self.vacant.push(number);
                }
            }
            Request::Advance { stream: None } => self.push(Opcode::AdvanceAll, 0, 0, 0),
            Request::EmptyCache => self.push(Opcode::EmptyCache, 0, 0, 0),
            Request::SetFraction { .. } => return unsupported("a memory fraction"),
            Request::Set { .. } => return unsupported("a change of settings"),
            Request::CreatePool { .. }
            | Request::EnterPool { .. }
            | Request::LeavePool { .. }
            | Request::DestroyPool { .. } => {
                return Err(OperationListError::MemoryPool { index });
            }
        }
        Ok(())
    }

    fn push(&mut self, kind: Opcode, slot: u32, stream: u16, size: u64) {
        self.trace.operations.push(Operation::new(kind, slot, stream, size));
    }

    /// Frees what the program had allocated at its end, so that the trace can be replayed again.
    fn finish(mut self) -> OperationList {
        for slot in self.slots.allocated() {
            self.push(Opcode::Free, slot, 0, 0);
        }
        if self.trace.operations.iter().any(|op| op.kind == Opcode::RecordStream) {
            self.push(Opcode::AdvanceAll, 0, 0, 0);
        }
        OperationList { slots: self.slots.count(), streams: self.trace.streams.max(1), ..self.trace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_program_gives_back_all_that_it_takes() {
        let file = include_bytes!("../../../../../tests/fixtures/programs/multistream.jsonl.gz");
        let run = RecordedRun::read(file).unwrap();
        let trace = OperationList::recorded("multistream", &run).unwrap();
        let count = |kind| trace.operations.iter().filter(|op| op.kind == kind).count();
        assert!(trace.pairs() > 100);
        assert_eq!(count(Opcode::Free), trace.pairs());
        assert!(count(Opcode::RecordStream) > 0 && count(Opcode::Advance) > 0);
        assert!(trace.streams < 200, "{} streams", trace.streams);
    }
}
