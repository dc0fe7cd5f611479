//! The architectures of the GPUs.

/// The architecture of a GPU, by its compute capability.
///
/// Whatever depends on the architecture is a `match` without `_`. So a new architecture does not compile until
/// each such value is known for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Compute capability 7.5.
    Turing,
    /// Compute capability 8.0.
    Ampere,
    /// Compute capability 8.9.
    Ada,
    /// Compute capability 9.0.
    Hopper,
}

impl Architecture {
    /// The compute capability, major and minor.
    pub const fn capability(self) -> (u32, u32) {
        match self {
            Self::Turing => (7, 5),
            Self::Ampere => (8, 0),
            Self::Ada => (8, 9),
            Self::Hopper => (9, 0),
        }
    }
}
