//! The trait by which the suites check the data of blocks: patterns that are written and read on streams.

use std::fmt;

use blockyard_device::{Advance, DeviceError, DeviceMemory};
use blockyard_record::{Bytes, DeviceAddr, StreamId};
use blockyard_replay::PatternedBlock;

/// A device whose memory can be written and read on its streams.
///
/// Sizes and addresses are multiples of 4 bytes. All calls only give work to the stream. The work is done in
/// the order of the calls of that stream, and no later than [`PatternMemory::faults`], a wait for an event
/// after the work, or [`Advance`].
pub trait PatternMemory: DeviceMemory + Advance {
    /// Writes [`word_at`]`(pattern, i)` to the i-th word of the block.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn fill(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError>;

    /// Reads the block; every word that [`PatternMemory::fill`] with these arguments would not have written
    /// is wrong. Mismatches are kept for [`PatternMemory::faults`].
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn check(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError>;

    /// Lets work that is given to the stream from now on wait for [`PatternMemory::resume`]; only a few calls
    /// may come between both. A device that does no work before a call waits for it has
    /// nothing to hold.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn hold(&mut self, _stream: StreamId) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Lets the work of the stream that waits since [`PatternMemory::hold`] begin.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn resume(&mut self, _stream: StreamId) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Completes the work of all streams and returns the mismatches since the last call, in any order.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn faults(&mut self) -> Result<Vec<Fault>, DeviceError>;
}

/// A block with its pattern.
pub(crate) const fn patterned(addr: DeviceAddr, size: Bytes, pattern: u32) -> PatternedBlock {
    PatternedBlock { addr, size, pattern }
}

/// The i-th word of memory that is filled with a pattern: no two words of one fill are the same, so that
/// memory that shows in two places is found too.
pub const fn word_at(pattern: u32, index: u32) -> u32 {
    pattern.wrapping_add(index.wrapping_mul(0x9e37_79b1))
}

/// A mismatch: memory whose words differ from the written ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The memory that was checked, and the pattern that was expected.
    pub block: PatternedBlock,
    /// How many words of 4 bytes are wrong.
    pub wrong: u64,
    /// The address of the first wrong word, or of any wrong word if the device does not know the first.
    pub first: DeviceAddr,
    /// The word at `first`; `None` if that address has no memory.
    pub found: Option<u32>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block: PatternedBlock { addr, size, pattern }, wrong, first, found } = self;
        let words = size.get() / 4;
        write!(
            f,
            "{wrong} of {words} words from {addr} on are not of pattern {pattern:#x}, one is at {first}: "
        )?;
        match found {
            Some(found) => write!(f, "{found:#x}"),
            None => write!(f, "no memory"),
        }
    }
}
