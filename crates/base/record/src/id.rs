//! Identities: numbers with a type.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $number:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name($number);

        impl $name {
            /// The identity with this number.
            #[must_use]
            pub const fn new(number: $number) -> Self {
                Self(number)
            }

            /// The plain number.
            #[must_use]
            pub const fn get(self) -> $number {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A segment. Segments of one allocator are numbered from 0 in order of creation. Unlike addresses, ids
    /// are never reused within one recording.
    SegmentId,
    u32
);
id!(
    /// A block. Blocks of one allocator are numbered from 0 in order of creation; ids are never reused within
    /// one recording.
    ///
    /// After 2^32 blocks the ids of an allocator begin at 0 again, and a state that follows its events
    /// reports [`StateError::IdUsedAgain`](crate::StateError::IdUsedAgain).
    ///
    /// Ids follow PyTorch's `Block` objects: a split makes a new object for the front and keeps the old
    /// object for the remainder; a merge keeps the object of the block that is being freed.
    BlockId,
    u32
);
id!(
    /// A successful allocation. Allocations of one allocator are numbered from 0 in order.
    AllocationId,
    u32
);
id!(
    /// The handle of a stream. Best fit orders free blocks by the handle as an unsigned number. The default
    /// stream is 0.
    StreamId,
    u64
);
blockyard_rules::schema_as!(StreamId, u64);

id!(
    /// A frame of a stack, numbered from 0 in one [`Stacks`](crate::Stacks); equal frames have one number.
    FrameId,
    u32
);
id!(
    /// A stack, numbered in one [`Stacks`](crate::Stacks); equal stacks have one number.
    StackId,
    u32
);
id!(
    /// A text, numbered in one [`Texts`](crate::Texts); equal texts have one number.
    TextId,
    u32
);

impl StackId {
    /// The stack without frames: none was recorded.
    pub const EMPTY: Self = Self(0);
}

impl StreamId {
    /// The default stream.
    pub const DEFAULT: Self = Self(0);
}

/// The memory pool that a segment belongs to (`MempoolId_t`): a pair of numbers, of which at most one is not
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct PoolId {
    /// The number of a pool that a graph capture made by itself, from 1 on.
    pub capture: u32,
    /// The number of a pool that the program made (`MemPool`, `graph_pool_handle`), from 1 on.
    pub user: u32,
}

blockyard_rules::schema_as!(PoolId, (u64, u64));

impl PoolId {
    /// The pool that serves everything outside of `use_mem_pool` and graph captures.
    pub const DEFAULT: Self = Self { capture: 0, user: 0 };
}

impl From<(u32, u32)> for PoolId {
    fn from((capture, user): (u32, u32)) -> Self {
        Self { capture, user }
    }
}

impl From<PoolId> for (u32, u32) {
    fn from(pool: PoolId) -> Self {
        (pool.capture, pool.user)
    }
}

/// `(0, 1)`, as PyTorch's snapshot writes it.
impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("({}, {})", self.capture, self.user))
    }
}
