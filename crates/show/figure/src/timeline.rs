//! The breakdown over time.
//!
//! Positions on the x axis count complete steps: the memory after `k` steps fills the column from `k` to
//! `k + 1`. The cost of a drawing grows with its width and never with the length of the recording.

mod air;
mod axis;
mod bands;
mod clock;
mod cursor;
mod draw;
mod legend;
mod marks;
mod names;
mod outline;
mod partial;
mod series;
mod strip;
mod view;

pub(crate) use axis::tick_step;
pub(crate) use axis::{draw_x_axis, duration};
pub use clock::Clock;
pub use cursor::{timeline_cursor, timeline_line, timeline_range};
pub use draw::{ReadRun, read_timeline, timeline};
pub(crate) use outline::draw_outlines;
pub use partial::partial_timeline;
pub use series::Series;
pub(crate) use series::refused_request;
pub use strip::{
    small_timeline, timeline_mini_map, timeline_mini_map_window, timeline_strip, timeline_strip_cursor,
    timeline_strip_step_at,
};
pub use view::{TimelineView, moment_sides, plot_sides, timeline_plot, timeline_step_at};
pub(crate) use view::{XScale, plot_top};
