//! The figure as marks, for paper.

use blockyard_figure::{
    BreakdownClass, Fill, Grid, GridKind, GridView, Groups, Rect, SMALL_FILL, Scene, Size, grid_bounds,
    grid_plot, grid_scene,
};
use leptos::prelude::*;

use super::{TOO_SMALL, cells};
use crate::session::Session;

/// The part of the figure that is shown now, with its legend, as marks; `None` until the allocations are
/// collected. Reads signals.
pub(crate) fn whole_scene(session: Session, groups: &Groups, size: Size) -> Option<Scene> {
    let columns = session.figures().columns()?;
    let plot = grid_plot(size);
    let steps = session.figures().timeline_view_or_fit();
    let (low, high) = session.figures().byte_range(&columns, &steps);
    let kind = session.figures().kind.get();
    let view = GridView { steps, low, high };
    let (width, height) = (cells(plot.width_px), cells(plot.height_px));
    let clock = session.figures().clock.get();
    let clock = clock.as_deref();
    let grid = Grid::on_axis(&columns.allocations, kind, view, clock, (width, height))
        .by_groups(groups)
        .drawn(&columns.allocations, &columns.map);
    let mut scene = grid_scene(kind, grid.view(), clock, &columns.map, size);
    scene.marks.extend(grid.rects(groups, plot).marks);
    if kind == GridKind::Stacked {
        let bounds =
            session.run.with(|run| grid_bounds(&run.series, &run.recording, grid.view(), clock, size));
        scene.marks.extend(bounds.marks);
    }
    scene.marks.extend(grid.names(groups, plot, &Scene::new(0.0, 0.0)).marks);
    add_legend(&mut scene, groups);
    if kind == GridKind::Address {
        add_entry(&mut scene, Fill::of(BreakdownClass::Cached), BreakdownClass::Cached.name());
    }
    if grid.most_hidden().count > 0 {
        add_entry(&mut scene, SMALL_FILL, TOO_SMALL.1);
    }
    Some(scene)
}

/// Adds the legend below the figure.
fn add_legend(scene: &mut Scene, groups: &Groups) {
    for entry in groups.legend() {
        add_entry(scene, entry.fill(), &entry.text);
    }
}

fn add_entry(scene: &mut Scene, fill: Fill, text: &str) {
    let top = scene.height_px + 4.0;
    scene.add_swatch(Rect::new(64.0, top, 12.0, 12.0), fill, text);
    scene.height_px += 18.0;
}
