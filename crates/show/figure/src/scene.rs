//! Scenes: marks to draw in order, and targets for the pointer and the keyboard.

use blockyard_record::{BlockId, Bytes, SegmentId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::fill::Fill;
use crate::geometry::{Point, Rect};
use crate::role::{BreakdownClass, Role};

/// A picture: marks to draw in order, and targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// The width of the picture.
    pub width_px: f32,
    /// The height of the picture. Marks may reach beyond it and are cut there.
    pub height_px: f32,
    /// The marks; later marks are drawn on top.
    pub marks: Vec<Mark>,
    /// The parts that the pointer and the keyboard can reach; later targets are on top.
    pub targets: Vec<Target>,
}

/// One thing that a renderer draws, with its colors as roles.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A filled rectangle with an outline one pixel wide, drawn inside its edges.
    Rect {
        /// The rectangle's place and size in the scene.
        rect: Rect,
        /// The inside.
        fill: Fill,
        /// The color of the outline.
        outline: Option<Role>,
    },
    /// A filled rectangle with round corners.
    Rounded {
        /// The rectangle's place and size in the scene.
        rect: Rect,
        /// The inside.
        fill: Fill,
        /// The radius of the corners.
        radius_px: f32,
    },
    /// A rectangle's outline alone, drawn inside its edges.
    Frame {
        /// The rectangle's place and size in the scene.
        rect: Rect,
        /// The color.
        role: Role,
        /// The dashes of the line.
        dash: Dash,
        /// The width of the line.
        width_px: f32,
    },
    /// A straight line.
    Line {
        /// One end of the line.
        from: Point,
        /// The other end of the line.
        to: Point,
        /// The color.
        role: Role,
        /// The dashes of the line.
        dash: Dash,
        /// The width of the line.
        width_px: f32,
    },
    /// A line through several points.
    Path {
        /// The points in order.
        points: Vec<Point>,
        /// The color.
        role: Role,
        /// The dashes of the line.
        dash: Dash,
        /// The width of the line.
        width_px: f32,
    },
    /// A filled polygon, closed from its last point to its first.
    Area {
        /// The corners in order.
        points: Vec<Point>,
        /// The inside.
        fill: Fill,
    },
    /// One line of text.
    Text {
        /// Where the baseline begins, or its middle or end, as `anchor` says.
        at: Point,
        /// The characters to draw.
        text: String,
        /// The color.
        role: Role,
        /// The font size.
        size_px: f32,
        /// Which part of the text is at `at`.
        anchor: Anchor,
        /// The rectangle that the text is clipped to.
        clip: Option<Rect>,
        /// How bold.
        weight: Weight,
    },
}

/// How a line is broken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dash {
    /// An unbroken line.
    Solid,
    /// Long dashes.
    Dashed,
    /// Short dashes.
    Dotted,
}

impl Dash {
    /// Lengths drawn and skipped in turn, in pixels; empty for an unbroken line.
    pub fn lengths_px(self) -> &'static [f32] {
        match self {
            Self::Solid => &[],
            Self::Dashed => &[6.0, 3.0],
            Self::Dotted => &[2.0, 2.0],
        }
    }
}

/// Which part of a text is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The point is where the text begins.
    Start,
    /// The point is the middle of the text.
    Middle,
    /// The point is where the text ends.
    End,
}

/// How bold a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// As running text.
    Normal,
    /// Emphasized.
    Bold,
}

/// A part of the picture that the pointer and the keyboard can reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The part's place and size in the scene.
    pub rect: Rect,
    /// The thing that the target is.
    pub what: TargetId,
}

/// The kinds of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TargetId {
    /// The block with this id.
    Block(BlockId),
    /// Neighboring blocks of one segment that are too narrow to be drawn one by one.
    SmallBlocks {
        /// The segment that the blocks belong to.
        segment: SegmentId,
        /// The first of these blocks, by address.
        first: BlockId,
        /// How many they are.
        count: u32,
        /// The sizes of the blocks, added up.
        bytes: Bytes,
    },
    /// A segment, reached at the head of its row.
    Segment(SegmentId),
    /// A segment that the current step released.
    Released(SegmentId),
    /// The strip that shows a zoomed segment as a whole.
    Overview(SegmentId),
    /// A term that does not stand for a single class.
    Term(crate::term::Term),
    /// A class of the breakdown.
    Class(BreakdownClass),
    /// A step label, by its step.
    Label(u32),
    /// A time span that the program named, by its place among the markers of the recording.
    Marker(u32),
    /// A step that failed, by its index.
    FailedStep(u32),
    /// The mark of the most bytes allocated.
    PeakAllocated,
    /// The mark of the most bytes reserved.
    PeakReserved,
    /// The mark of the memory fraction's limit.
    Limit,
    /// A frame of a flame graph, by its number in the graph.
    FlameNode(u32),
}

impl Scene {
    /// An empty picture.
    #[must_use]
    pub fn new(width_px: f32, height_px: f32) -> Self {
        Self { width_px, height_px, marks: Vec::new(), targets: Vec::new() }
    }

    /// The uppermost target at the point.
    pub fn hit(&self, x_px: f32, y_px: f32) -> Option<&Target> {
        self.targets.iter().rev().find(|target| target.rect.contains(x_px, y_px))
    }

    /// Adds a rectangle of a fill and, to the right of it, the text of its meaning, as in a legend.
    pub fn add_swatch(&mut self, rect: Rect, fill: Fill, text: &str) {
        self.add_rect(rect, fill, None);
        let at = Point::new(rect.right_px() + 6.0, rect.bottom_px() - 2.0);
        self.add_text(at, text, TextStyle::new(Role::Text, 12.0));
    }

    pub(crate) fn add_rect(&mut self, rect: Rect, fill: Fill, outline: Option<Role>) {
        self.marks.push(Mark::Rect { rect, fill, outline });
    }

    pub(crate) fn add_rounded(&mut self, rect: Rect, fill: Fill, radius_px: f32) {
        let radius_px = radius_px.min(rect.width_px / 2.0).min(rect.height_px / 2.0).max(0.0);
        self.marks.push(Mark::Rounded { rect, fill, radius_px });
    }

    /// Gives each allocated block the role of `role_of` in place of the role that all allocated blocks share;
    /// a block for which `role_of` returns `None` keeps its color.
    pub fn color_blocks(&mut self, role_of: impl Fn(BlockId) -> Option<Role>) {
        // A block's mark begins where its target does; its rounding is a separate mark to the right.
        let corner = |rect: &Rect| (rect.x_px.to_bits(), rect.y_px.to_bits());
        let colors: FxHashMap<(u32, u32), Role> = self
            .targets
            .iter()
            .filter_map(|target| match target.what {
                TargetId::Block(block) => Some((corner(&target.rect), role_of(block)?)),
                _ => None,
            })
            .collect();
        for mark in &mut self.marks {
            if let Mark::Rect { rect, fill, .. } | Mark::Rounded { rect, fill, .. } = mark
                && fill.role == Role::Requested
                && let Some(role) = colors.get(&corner(rect))
            {
                fill.role = *role;
            }
        }
    }

    pub(crate) fn add_frame(&mut self, rect: Rect, role: Role, dash: Dash, width_px: f32) {
        self.marks.push(Mark::Frame { rect, role, dash, width_px });
    }

    pub(crate) fn add_line(&mut self, from: Point, to: Point, role: Role, dash: Dash, width_px: f32) {
        self.marks.push(Mark::Line { from, to, role, dash, width_px });
    }

    /// A line one pixel wide and unbroken.
    pub(crate) fn add_hairline(&mut self, from: Point, to: Point, role: Role) {
        self.add_line(from, to, role, Dash::Solid, 1.0);
    }

    pub(crate) fn add_text(&mut self, at: Point, text: impl Into<String>, style: TextStyle) {
        let TextStyle { role, size_px, anchor, clip, weight } = style;
        self.marks.push(Mark::Text { at, text: text.into(), role, size_px, anchor, clip, weight });
    }

    pub(crate) fn add_target(&mut self, rect: Rect, what: TargetId) {
        self.targets.push(Target { rect, what });
    }
}

/// How a text is drawn: everything but its words and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextStyle {
    pub(crate) role: Role,
    pub(crate) size_px: f32,
    pub(crate) anchor: Anchor,
    pub(crate) clip: Option<Rect>,
    pub(crate) weight: Weight,
}

impl TextStyle {
    /// Normal text of `size_px` that starts at its position.
    pub(crate) const fn new(role: Role, size_px: f32) -> Self {
        Self { role, size_px, anchor: Anchor::Start, clip: None, weight: Weight::Normal }
    }

    pub(crate) const fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(crate) const fn bold(self) -> Self {
        Self { weight: Weight::Bold, ..self }
    }

    pub(crate) const fn clipped(self, rect: Rect) -> Self {
        Self { clip: Some(rect), ..self }
    }
}
