//! The figures as text and as SVG files, and their properties for any recording.
//!
//! `cargo xtask update figure` writes the expected texts and files again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]
#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them when it updates a text")]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "test sizes are small"
)]
#![allow(clippy::float_cmp, reason = "edges on whole pixels are equal or wrong")]

mod apart;
mod compared;
mod gradients;
mod labels;
mod limit;
mod map;
mod overview;
mod palette;
mod player;
mod program;
mod stage;
mod timeline;
mod widths;
mod words;
