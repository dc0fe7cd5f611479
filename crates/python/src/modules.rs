//! The native modules that programs and our own Python import.

#![allow(clippy::needless_pass_by_value, reason = "the interpreter hands arguments over by value")]
#![allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::unnecessary_wraps,
    reason = "the forms that the interpreter's macros ask for"
)]
#![allow(clippy::module_inception, reason = "a native module is a Rust module of the Python module's name")]

pub(crate) mod collector;
pub(crate) mod host;
pub(crate) mod math;
pub(crate) mod random;
pub(crate) mod time;
pub(crate) mod torch;
