//! How fast and how large Blockyard is, measured beside other allocators.
//!
//! Every comparison runs in one process on one machine, contenders taking turns, pinned to a core; medians and ranges
//! are reported, and times count only where the addresses are the same. `cargo xtask bench` runs it.

pub mod cores;
pub mod native;
pub mod page;
pub mod sections;
pub mod suite;
