//! The native modules that programs and our own Python import.

pub(crate) mod host;
pub(crate) mod math;
pub(crate) mod random;
pub(crate) mod time;
pub(crate) mod torch;
