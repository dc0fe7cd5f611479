/// Encoded bytes of a recording that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EncodingError {
    /// The count of events is not that of their bytes.
    #[error("events that are not there")]
    Events,
    /// The count of steps is not that of their bytes.
    #[error("steps that are not there")]
    Steps,
    /// Stacks end where there are no frames.
    #[error("stacks that are not there")]
    Stacks,
    /// Texts end where there is no content.
    #[error("texts that are not there")]
    Texts,
}
