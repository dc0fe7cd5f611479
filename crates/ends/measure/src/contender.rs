//! [`Contender`]: the trait of a measured allocator.

use std::hint::black_box;
use std::time::{Duration, Instant};

use blockyard_record::{Bytes, StreamId};

use crate::trace::{Opcode, Operation, OperationList, stream_handle};

/// An allocator that is measured. Its caller names blocks by slots, of which there are as many as
/// [`Contender::make_slots`] made.
///
/// The loops are provided methods, so that they are compiled once for each contender: no call in them goes
/// through a table of functions, also where the contender itself is a `Box<dyn Contender>`.
pub trait Contender {
    /// Why a call fails.
    type Error;

    /// The contender's name in reports.
    fn name(&self) -> &'static str;

    /// Makes room for `count` blocks; never takes slots away.
    fn make_slots(&mut self, count: usize);

    /// Allocates `size` bytes on `stream`, and keeps the block in `slot`.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    fn allocate(&mut self, slot: usize, size: Bytes, stream: StreamId) -> Result<(), Self::Error>;

    /// Frees the block in `slot`.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    fn free(&mut self, slot: usize) -> Result<(), Self::Error>;

    /// Notes that `stream` uses the block in `slot` too.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    fn record_stream(&mut self, _slot: usize, _stream: StreamId) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Completes the work of `stream`, or of all streams, on a device that does no work by itself.
    fn advance(&mut self, _stream: Option<StreamId>) {}

    /// Releases all memory that is not in use.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    fn empty_cache(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether freed memory is kept for the next request.
    fn caches(&self) -> bool {
        true
    }

    /// Whether memory is mapped page by page into a reserved range of addresses.
    fn expands(&self) -> bool {
        false
    }

    /// Replays the trace once.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    fn replay(&mut self, trace: &OperationList) -> Result<(), Self::Error> {
        self.replay_ops(&trace.operations)
    }

    /// Does some operations of a list.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    fn replay_ops(&mut self, ops: &[Operation]) -> Result<(), Self::Error> {
        for op in ops {
            let (slot, stream) = (op.slot as usize, StreamId::new(stream_handle(op.stream)));
            match op.kind {
                Opcode::Allocate => self.allocate(slot, Bytes::new(op.size), stream)?,
                Opcode::Free => self.free(slot)?,
                Opcode::RecordStream => self.record_stream(slot, stream)?,
                Opcode::Advance => self.advance(Some(stream)),
                Opcode::AdvanceAll => self.advance(None),
                Opcode::EmptyCache => self.empty_cache()?,
            }
        }
        Ok(())
    }

    /// The time of `times` replays of the trace.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    fn time_replay(&mut self, trace: &OperationList, times: u32) -> Result<Duration, Self::Error> {
        let begun = Instant::now();
        for _ in 0..times {
            self.replay(trace)?;
        }
        Ok(begun.elapsed())
    }

    /// How long `count` pairs of an allocation and its free take, on the default stream.
    ///
    /// # Errors
    ///
    /// The errors of the allocator.
    fn time_pairs(&mut self, size: Bytes, count: u32) -> Result<Duration, Self::Error> {
        let begun = Instant::now();
        for _ in 0..count {
            self.allocate(0, black_box(size), StreamId::DEFAULT)?;
            self.free(0)?;
        }
        Ok(begun.elapsed())
    }
}
