//! Traces as flat lists of operations, made before anything is timed, and our allocator's way through them.
//!
//! Every contender replays a [`OperationList`]: the C++ loop around PyTorch's library and our C ABI, the Rust
//! loop around allocators that are called directly, and that same loop as WebAssembly. A list comes from a
//! recorded program ([`OperationList::recorded`]) or from a rule ([`OperationList::ping_pong`],
//! [`OperationList::random_allocations`]), and frees everything that it allocates, so that it can be replayed
//! again and again.
//!
//! This module knows no file.

mod bytes;
mod generate;
mod recorded;
mod replay;

pub use bytes::DecodeError;
pub use recorded::OperationListError;
pub use replay::Replay;

/// What an operation of a list does: one byte, which the loops in C++ read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// Asks for [`Operation::size`] bytes on [`Operation::stream`] and keeps the address in
    /// [`Operation::slot`].
    Allocate,
    /// Frees the allocation in [`Operation::slot`].
    Free,
    /// Says that [`Operation::stream`] uses the allocation in [`Operation::slot`] too.
    RecordStream,
    /// Completes all work that [`Operation::stream`] has so far.
    Advance,
    /// Completes all work of all streams.
    AdvanceAll,
    /// Releases all cached segments.
    EmptyCache,
}

/// One operation; the loops in C++ read the same 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Operation {
    /// Bytes to allocate; 0 for other kinds.
    pub size: u64,
    /// The slot in which the caller keeps the address; slots are reused after a free.
    pub slot: u32,
    /// The stream, by its number within the list; 0 is the default stream.
    pub stream: u16,
    /// The kind of the operation.
    pub kind: Opcode,
    /// Always 0.
    pub padding: u8,
}

const _: () = assert!(size_of::<Operation>() == 16);

/// A list of operations that ends with nothing allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationList {
    /// The name of the list.
    pub name: String,
    /// The operations, in order.
    pub operations: Vec<Operation>,
    /// How many slots the operations use.
    pub slots: u32,
    /// How many streams the operations use, the default stream included.
    pub streams: u16,
}

/// The handle of a list's stream: the default stream's is 0, the others' are even and ascend, like addresses.
///
/// PyTorch takes an odd handle for one of its own streams.
pub fn stream_handle(stream: u16) -> u64 {
    if stream == 0 { 0 } else { 0x5500_0000_0000 + 16 * u64::from(stream) }
}

/// The hash of a replay after one more address. Every loop computes it, so that equal hashes show equal
/// addresses; `addr` counts from the first segment.
#[inline]
pub fn fold(hash: u64, addr: u64) -> u64 {
    hash.wrapping_mul(0x0100_0000_01b3).wrapping_add(addr)
}

impl Operation {
    pub(crate) fn new(kind: Opcode, slot: u32, stream: u16, size: u64) -> Self {
        Self { size, slot, stream, kind, padding: 0 }
    }
}

impl OperationList {
    /// How many allocations the list makes; it frees each of them.
    pub fn pairs(&self) -> usize {
        self.operations.iter().filter(|op| op.kind == Opcode::Allocate).count()
    }

    /// After how many operations the most slots are in use, and the number of these slots.
    pub fn most_live(&self) -> (usize, usize) {
        let (mut live, mut most) = (0_usize, (0, 0));
        for (index, op) in self.operations.iter().enumerate() {
            match op.kind {
                Opcode::Allocate => live += 1,
                Opcode::Free => live = live.saturating_sub(1),
                _ => {}
            }
            if live > most.1 {
                most = (index + 1, live);
            }
        }
        most
    }

    /// The list with all operations of the default stream on `stream` instead.
    #[must_use]
    pub fn on_stream(&self, stream: u16) -> Self {
        let mut moved = self.clone();
        for op in &mut moved.operations {
            op.stream = stream;
        }
        moved.streams = moved.streams.max(stream + 1);
        moved
    }
}
