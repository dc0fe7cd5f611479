//! The figure of a plan: allocations as rectangles of requests and addresses.

use blockyard_record::Bytes;

use super::axes::Axes;
use crate::axis_range::AxisRange;
use crate::conversions::{bytes_f64, count_px, floor_count};
use crate::fill::{Fill, Pattern};
use crate::geometry::{Rect, Size};
use crate::role::Role;
use crate::scene::{Dash, Mark, Scene};

/// The plan of a run: where each allocation is placed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedLayout {
    /// The allocations.
    pub blocks: Vec<PlacedBlock>,
    /// How many requests the run has.
    pub requests: u64,
    /// The fewest bytes that any allocator needs for the run.
    pub lower_bound: Bytes,
    /// The bytes that an allocator under the run's own settings reserves.
    pub reserved: Option<Bytes>,
}

/// An allocation of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlacedBlock {
    /// The number of requests before the request for the block.
    pub from: u64,
    /// The number of requests before the block is free again.
    pub until: u64,
    /// Bytes from the beginning of the memory.
    pub offset: Bytes,
    /// The size of the block in bytes.
    pub size: Bytes,
}

/// A plan as address over time: a rectangle for each block, from its request to its end, at its offset.
///
/// Blocks smaller than a pixel share the cells that they lie in, so that a plan of any length draws at once.
pub fn planned_layout(plan: &PlannedLayout, part: AxisRange, size: Size) -> Scene {
    let size = size.tame();
    let mut scene = Scene::new(size.width_px, size.height_px);
    let end = |block: &PlacedBlock| block.offset.saturating_add(block.size);
    let top = plan.blocks.iter().map(end).max().unwrap_or_default().max(plan.lower_bound);
    let reserved = plan.reserved.filter(|reserved| reserved.get() / 3 < top.get());
    let axes = Axes::new(size, plan.requests, part, reserved.unwrap_or_default().max(top));
    axes.draw(&mut scene);
    let mut small = Cells::new(axes.plot);
    for block in &plan.blocks {
        let (left, right) = (axes.x_px(block.from), axes.x_px(block.until));
        let (high, low) = (axes.y_px(bytes_f64(end(block))), axes.y_px(bytes_f64(block.offset)));
        if right <= left && !axes.shows(block.from) {
            continue;
        }
        let rect = Rect::new(left, high, right - left, low - high);
        if rect.width_px >= 2.0 && rect.height_px >= 2.0 {
            // An edge separates neighbors; a color would mean something.
            let edge = (rect.width_px >= 4.0 && rect.height_px >= 4.0).then_some(Role::Background);
            scene.add_rect(rect, Fill::solid(Role::Requested), edge);
        } else {
            small.add(&rect);
        }
    }
    small.draw(&mut scene);
    axes.draw_level(
        &mut scene,
        plan.lower_bound,
        Role::PeakAllocated,
        Dash::Dashed,
        &format!("live {}", plan.lower_bound),
    );
    if let Some(reserved) = reserved {
        axes.draw_level(
            &mut scene,
            reserved,
            Role::PeakReserved,
            Dash::Solid,
            &format!("now reserved {reserved}"),
        );
    }
    scene
}

/// Squares of a few pixels, and how much of each is covered.
struct Cells {
    plot: Rect,
    columns: usize,
    covered: Vec<f32>,
}

const CELL_PX: f32 = 3.0;

impl Cells {
    fn new(plot: Rect) -> Self {
        let count = |length: f32| floor_count(f64::from((length / CELL_PX).ceil())).max(1);
        let columns = count(plot.width_px);
        Self { plot, columns, covered: vec![0.0; columns * count(plot.height_px)] }
    }

    /// Adds a rectangle that is thin in at least one direction.
    fn add(&mut self, rect: &Rect) {
        let cell = |at: f32, start: f32| floor_count(f64::from(((at - start) / CELL_PX).max(0.0)));
        let area = rect.width_px.max(0.25) * rect.height_px.max(0.25);
        let (first, last) = (cell(rect.x_px, self.plot.x_px), cell(rect.right_px(), self.plot.x_px));
        let (top, bottom) = (cell(rect.y_px, self.plot.y_px), cell(rect.bottom_px(), self.plot.y_px));
        let share = area / (count_px(last - first + 1) * count_px(bottom - top + 1)) / (CELL_PX * CELL_PX);
        for row in top..=bottom {
            for column in first..=last {
                if let Some(covered) = self.covered.get_mut(row * self.columns + column.min(self.columns - 1))
                {
                    *covered += share;
                }
            }
        }
    }

    /// Runs of cells that are covered as much.
    fn draw(&self, scene: &mut Scene) {
        let pattern = |covered: f32| match covered {
            share if share < 0.04 => None,
            share if share < 0.35 => Some(Pattern::Faint),
            share if share < 0.75 => Some(Pattern::Tint),
            _ => Some(Pattern::Solid),
        };
        for (row, cells) in self.covered.chunks(self.columns).enumerate() {
            let y = self.plot.y_px + count_px(row) * CELL_PX;
            let height = CELL_PX.min(self.plot.bottom_px() - y);
            let mut column = 0;
            for run in cells.chunk_by(|one, other| pattern(*one) == pattern(*other)) {
                let x = self.plot.x_px + count_px(column) * CELL_PX;
                let width = (count_px(run.len()) * CELL_PX).min(self.plot.right_px() - x);
                column += run.len();
                if let Some(pattern) = run.first().and_then(|covered| pattern(*covered)) {
                    let fill = Fill { role: Role::Requested, pattern };
                    scene.marks.push(Mark::Rect {
                        rect: Rect::new(x, y, width, height),
                        fill,
                        outline: None,
                    });
                }
            }
        }
    }
}
