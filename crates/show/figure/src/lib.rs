//! States and recordings as pictures: pure layout, without a renderer.
//!
//! A [`Scene`] is a list of marks in CSS pixels, with the targets that a pointer or the keyboard can reach. A
//! renderer (SVG, canvas, GPU) needs no knowledge of memory, and the layout needs no knowledge of a screen.
//!
//! * [`timeline`]: how many bytes are in each class over all steps of a recording, from a [`Series`], so that
//!   the cost depends on pixels and not on steps.
//! * [`Stage`]: the device as one bar with nested brackets, and the segments below it on the same ruler.
//! * [`Allocations`]: all allocations of a recording as columns, from which [`holders`] and a [`FlameGraph`]
//!   say who holds the bytes of a moment, and a [`Grid`] draws lifetimes.
//! * [`segment_map`]: a row for every segment, blocks to scale, with the [`Changes`] of the current step
//!   emphasized.
//! * [`MapOverview`]: all segments as one strip above the rows of the segment map.
//! * [`ColorBy`] and [`Groups`]: the color of each allocation, and the legend.
//! * [`compared_timelines`], [`planned_layout`] and [`pinned_segments`]: the figures of the lab's answers.
//! * [`fit_curves`]: peaks of runs over a value, as `blockyard fit` finds them.
//! * [`Rects`]: allocations as rectangles for a renderer on a GPU.
//! * [`Player`] and [`reduce`]: where the reader is in the recording.
//! * [`describe_step`], [`describe_event`], [`block_facts`] and the `_text` functions: steps, events, blocks
//!   and whole figures in words.
//!
//! Colors are [`Role`]s: a mark has a role, and a [`Theme`] has the colors of the roles.
//!
//! This crate must not know an allocator, a device, a clock or a document, so that it can draw a saved
//! snapshot like a live run.
//!
//! # Example
//!
//! ```
//! use blockyard_figure::{Series, Size, Theme, TimelineView, timeline, timeline_text};
//! use blockyard_record::{Bytes, Recorder, RunInfo};
//!
//! let recorder = Recorder::new(RunInfo { capacity: Bytes::gib(80), ..RunInfo::default() });
//! let recording = recorder.finish()?;
//! let series = Series::new(&recording);
//! let view = TimelineView::fit(recording.step_count());
//! let scene = timeline(&series, &recording, &view, None, Size::new(900.0, 300.0));
//! let svg = scene.to_svg(Theme::Light, "Memory over time", &timeline_text(&series, &recording));
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), blockyard_record::RecordingError>(())
//! ```
//!
//! # Decisions
//!
//! - **Lifetimes are a grid of cells, not rectangles** ([`Grid`]). Each column of pixels shows one true
//!   moment, the one with the most active bytes among those that the column covers. An index finds the
//!   allocations of that moment that are large enough to be seen, and the others are counted. So a figure
//!   costs pixels and not allocations, and one look into the grid finds what the pointer is on.
//! - **Rectangles for a GPU are ordered by size** ([`Rects`]), so that those which are high enough to be seen
//!   are a prefix. Lower rectangles are drawn below this prefix, a line of pixels each. Stacked allocations
//!   stay a grid everywhere, since each free moves all allocations above.
//! - **Figures are laid out for letters of 13 pixels**, by the widths of one typeface (`typeface`, 27 kB),
//!   which are data. So a text has one width in every browser, on paper and in a PNG of the command. A saved
//!   SVG holds no font, and each of its texts states its width.
//! - **One moment dissolves into the next.** No mark slides to another place, since most marks of two
//!   pictures have nothing to do with each other; between the two is one picture that shows the change
//!   ([`Scene::halfway_to`]), which can be tested as any other.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        reason = "numbers of files are added and subtracted checked or saturating"
    )
)]

mod allocations;
mod answers;
mod apportion;
mod axis_range;
mod changes;
mod coloring;
mod conversions;
mod fill;
mod geometry;
mod grid;
mod heading;
mod holders;
mod labels;
mod map;
mod markup;
mod moments;
mod player;
mod rects;
mod role;
mod scene;
mod scene_halfway;
mod scene_text;
mod stage;
mod state_cursor;
mod svg;
mod term;
mod text_width;
mod theme;
mod timeline;
pub mod typeface;
mod words;

pub use allocations::{AllocationLifetime, Allocations, Collector};
pub use answers::{
    ComparedCurve, ComparedTimelines, CurvePart, FitCurve, FitOutcome, FitPoint, PinnedBlock, PinnedRow,
    PlacedBlock, PlannedLayout, answer_sides, compared_timelines, fit_curve_role, fit_curves,
    pinned_segments, pinned_segments_height, planned_layout,
};
pub use axis_range::AxisRange;
pub use changes::{Changes, ReleasedSegment};
pub use coloring::{Blame, ColorBy, Groups, LegendEntry};
pub use conversions::{ByteUnit, percent, px};
pub use fill::{Fill, Pattern, Tile};
pub use geometry::{Point, Rect, Size};
pub use grid::{
    AddressMap, Cell, DIMMED_PERCENT, Grid, GridCursor, GridKind, GridPaint, GridView, HiddenAllocations,
    RESERVED_PERCENT, SMALL_FILL, blended, grid_bounds, grid_cursor, grid_plot, grid_scene,
};
pub use heading::{ShownPart, figure_facts};
pub use holders::{
    AllocationFilter, AllocationQuery, FlameGraph, FlameNode, GroupBy, GroupKey, Holder, RangeSums, bytes_of,
    flame_scene, frame_text, group_key, group_text, holder_text, holder_texts, holders, range_sums, rows_in,
    stack_lines,
};
pub use map::{
    Direction, MapAnchor, MapOverview, MapView, RowHeight, SegmentZoom, next_block, pan_segment, scroll_to,
    segment_map, segment_map_height, zoom_segment,
};
pub use markup::escaped;
pub use moments::steps_at_allocation;
pub use player::{MANY_UNITS, MoveUnit, Player, PlayerAction, reduce};
pub use rects::{PICKED_BIT, RECT_OPEN_END, RECT_UNIT, RECT_WORDS, RESERVED_COLOR, Rects};
pub use role::{BreakdownClass, Role};
pub use scene::{Anchor, Dash, Mark, Scene, Target, TargetId, Weight};
pub use stage::{Stage, StageForm, StageView, has_failures, process_stage_height, stage_height};
pub use state_cursor::StateCursor;
pub use term::Term;
pub use text_width::text_width_px;
pub use theme::{Theme, theme_css};
pub use timeline::{
    Clock, ReadRun, Series, TimelineView, moment_sides, partial_timeline, plot_sides, read_timeline,
    small_timeline, timeline, timeline_cursor, timeline_line, timeline_mini_map, timeline_mini_map_window,
    timeline_plot, timeline_range, timeline_step_at, timeline_strip, timeline_strip_cursor,
    timeline_strip_step_at,
};
pub use words::{
    FailureText, StepText, block_facts, breakdown_text, describe_event, describe_step, describe_target,
    map_text, read_timeline_text, timeline_text,
};
