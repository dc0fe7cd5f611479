//! Lesson files, their texts once they are played, and the grades of exercises.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]
#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them when it updates a text")]

mod claims;
mod course;
mod errors;
mod grading;
mod handout;
mod language;
mod measured;
mod recorded;
mod sliders;
mod transcript;
