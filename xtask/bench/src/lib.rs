//! How fast and how large Blockyard is, measured beside other allocators.
//!
//! Every comparison runs in one process on one machine, contenders taking turns, pinned to a core; medians
//! and ranges are reported, and times count only if the addresses are the same. `cargo xtask bench` runs all
//! of it. `sections` has the comparisons, `suite` the traces, `native` PyTorch's library and our C ABI,
//! `cores` the choice of a core, `page` the results in `docs/speed.md`.

pub mod cores;
pub mod native;
pub mod page;
pub mod sections;
pub mod suite;
