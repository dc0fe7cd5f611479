//! The segment map: a row for every segment, with its blocks to scale.
//!
//! Only visible rows are laid out, so that thousands of segments cost as much as thirty.

mod blocks;
mod coverage;
mod draw;
mod emphasis;
mod gutter;
mod keyboard;
mod overview;
mod pieces;
mod rows;
mod view;

pub use draw::segment_map;
pub use keyboard::next_block;
pub use overview::MapOverview;
pub use rows::{MapAnchor, scroll_to, segment_map_height};
pub use view::{Direction, MapView, RowHeight, SegmentZoom, pan_segment, zoom_segment};
