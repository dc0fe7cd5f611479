//! The figures, and what a pointer and keys do in them.

pub(crate) mod allocations;
pub(crate) mod dissolve;
pub(crate) mod drag;
pub(crate) mod flame;
pub(crate) mod gesture;
pub(crate) mod holders;
pub(crate) mod map;
pub(crate) mod map_actions;
pub(crate) mod map_overview;
pub(crate) mod map_scroll;
pub(crate) mod memory_stats;
pub(crate) mod mini_map;
pub(crate) mod over_time;
pub(crate) mod resize_drag;
pub(crate) mod scrubber;
pub(crate) mod stage;
pub(crate) mod timeline;
pub(crate) mod tip;
pub(crate) mod unplaced;
