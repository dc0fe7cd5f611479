//! Errors of encoded recordings.

/// Encoded bytes of a recording that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EncodingError {
    /// The count of events is not that of their bytes.
    #[error("the count of events is not that of their bytes")]
    Events,
    /// The count of steps is not that of their bytes.
    #[error("the count of steps is not that of their bytes")]
    Steps,
    /// Stacks end where there are no frames.
    #[error("stacks that end where there are no frames")]
    Stacks,
    /// Texts end where there are no characters.
    #[error("texts that end where there are no characters")]
    Texts,
}
