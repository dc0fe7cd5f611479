//! What the suites need of a device to check the data of blocks: patterns that are written and read on streams.

use std::fmt;

use blockyard_device::{Advance, DeviceError, DeviceMemory};
use blockyard_record::{Bytes, DeviceAddr, StreamId};

/// A device whose memory can be written and read on its streams.
///
/// Sizes and addresses are multiples of 4 bytes. All calls only give work to the stream; it is done in the order of the calls of
/// that stream, and no later than [`PatternMemory::faults`], a wait for an event behind it, or [`Advance`].
pub trait PatternMemory: DeviceMemory + Advance {
    /// Writes [`word_at`]`(pattern, i)` to the i-th word of `size` bytes from `addr` on.
    ///
    /// # Errors
    ///
    /// As the driver reports.
    fn fill(
        &mut self,
        stream: StreamId,
        addr: DeviceAddr,
        size: Bytes,
        pattern: u32,
    ) -> Result<(), DeviceError>;

    /// Reads `size` bytes from `addr` on; every word that [`PatternMemory::fill`] with these arguments would not have written is
    /// wrong. Mismatches are kept for [`PatternMemory::faults`].
    ///
    /// # Errors
    ///
    /// As the driver reports.
    fn check(
        &mut self,
        stream: StreamId,
        addr: DeviceAddr,
        size: Bytes,
        pattern: u32,
    ) -> Result<(), DeviceError>;

    /// Lets work that is given to the stream from now on wait for [`PatternMemory::resume`]; no more than a
    /// few calls come between.
    ///
    /// # Errors
    ///
    /// As the driver reports.
    fn hold(&mut self, stream: StreamId) -> Result<(), DeviceError>;

    /// Lets the stream go on.
    ///
    /// # Errors
    ///
    /// As the driver reports.
    fn resume(&mut self, stream: StreamId) -> Result<(), DeviceError>;

    /// Completes the work of all streams and returns the mismatches since the last call, in any order.
    ///
    /// # Errors
    ///
    /// As the driver reports.
    fn faults(&mut self) -> Result<Vec<Fault>, DeviceError>;
}

/// The i-th word of memory that is filled with a pattern: no two words of one fill are the same, so that memory that shows in two
/// places is found too.
#[must_use]
pub const fn word_at(pattern: u32, index: u32) -> u32 {
    pattern.wrapping_add(index.wrapping_mul(0x9e37_79b1))
}

/// Memory that does not hold what was written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where the check began.
    pub addr: DeviceAddr,
    /// How many bytes were checked.
    pub size: Bytes,
    /// The pattern that was expected.
    pub pattern: u32,
    /// How many words of 4 bytes are wrong.
    pub wrong: u64,
    /// Where the first of them is; where one of them is, if the device does not know the first.
    pub first: DeviceAddr,
    /// The word there, if there is memory.
    pub found: Option<u32>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addr, size, pattern, wrong, first, found } = self;
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
