//! The segment map: every segment a row, its blocks to scale.
//!
//! Only the rows in sight are laid out, so thousands of segments cost what thirty do.

mod blocks;
mod draw;
mod emphasis;
mod gutter;
mod keyboard;
mod pieces;
mod rows;
mod view;

pub use draw::segment_map;
pub use keyboard::next_block;
pub use rows::{scroll_to, segment_map_height};
pub use view::{Direction, MapOrder, MapScale, MapView, RowHeight, SegmentZoom, pan_segment, zoom_segment};
