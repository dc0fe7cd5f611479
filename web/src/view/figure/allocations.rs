//! The figure of all allocations over time, each from its request to its free: at their addresses, or
//! stacked.

#![allow(
    clippy::large_types_passed_by_value,
    reason = "handles of signals, which closures copy; with 64-bit addresses and debug assertions they are over the limit"
)]

mod painting;
mod paper;
mod picture;
mod pointer;
mod whole;
mod words;

use blockyard_figure::{
    Allocations, BreakdownClass, ColorBy, DIMMED_PERCENT, GridCursor, GridKind, GridView, Groups,
    LegendEntry, Point, RESERVED_PERCENT, Rects, Role, SMALL_FILL, Scene, Size, blended, grid_bounds,
    grid_cursor, grid_plot, grid_scene,
};
use blockyard_record::Recording;
use leptos::html;
use leptos::prelude::*;
use web_sys::HtmlCanvasElement;

use self::picture::{GridColors, GridPart, Picture};
use self::pointer::Pointed;
pub(crate) use self::whole::whole_scene;
pub(crate) use self::words::allocation_lines;
use crate::browser;
use crate::effect::effect;
use crate::figures::Columns;
use crate::frames::{self, Slot};
use crate::numbers::grouped_count;
use crate::painter::Painter;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::surface::{self, pixels};
use crate::view::figure::gesture;
use crate::view::figure::over_time::{OverTime, TimeAxis, axes, show_all};
use crate::view::figure::tip::Tip;
use crate::view::kit::{check, flag, select, text};
use crate::view::workbench::divider::{SizedPanel, divider};

/// How long the page's thread computes the picture in one frame.
const SLICE_MILLIS: f64 = 1.5;
/// How long the page's thread computes the picture in a frame in which the shown part moves, since such a
/// frame also draws the figures over time.
const MOVING_SLICE_MILLIS: f64 = 0.4;
/// With more allocations than these, the names of groups are written and not the names of single allocations.
const MAX_NAMED: usize = 400;
/// While the GPU draws, the grid is computed again after the view has not changed for this time.
const REST_MILLIS: i32 = 120;

/// The parts of the figure that its handlers share.
#[derive(Clone, Copy)]
struct AllocationsFigure {
    session: Session,
    size: RwSignal<Size>,
    base: NodeRef<html::Canvas>,
    picture: StoredValue<Picture, LocalStorage>,
    /// The colors of the picture; `None` until the allocations are collected.
    colors: StoredValue<Option<GridColors>, LocalStorage>,
    /// Draws the allocations at their addresses on the GPU; `None` without a GPU.
    painter: StoredValue<Option<Painter>, LocalStorage>,
    /// Whether a painter was opened or could not be opened.
    is_painter_begun: StoredValue<bool>,
    /// Whether the painter can draw.
    is_painted: RwSignal<bool>,
    /// The allocations as the painter draws them; `None` without a painter.
    rects: Memo<Option<PtrEq<Rects>>>,
    /// Whether the shown part changed since the last slice of the picture.
    has_moved: StoredValue<bool>,
    /// The number of changes of the shown part.
    changes: StoredValue<u32>,
    /// The number of pictures that were made.
    drawn: RwSignal<u32>,
    groups: Memo<PtrEq<Groups>>,
    /// The names of groups in their areas, of a picture that is complete.
    names: Memo<PtrEq<Scene>>,
    /// What bounds stacked allocations: the reserved bytes, the limit, requests that failed.
    bounds: Memo<PtrEq<Scene>>,
    pointer: RwSignal<Option<Point>>,
    /// What the tooltip names, with the place of the pointer then: a click there chooses it.
    named: StoredValue<Option<(Point, Pointed)>>,
    over_time: OverTime,
    tip: Tip,
}

pub(crate) fn allocations(session: Session) -> AnyView {
    frames::forget_with_view(&[Slot::Grid, Slot::GridTip, Slot::Cross]);
    effect(move || {
        session.run.track();
        // A separate command, which runs after the effects of the change.
        let _ = browser::after_millis(0, move || session.figures().collect_allocations());
    });
    session.figures().paper.set_value(Some(paper::part));
    let area = NodeRef::<html::Div>::new();
    let base = NodeRef::<html::Canvas>::new();
    let painted = NodeRef::<html::Canvas>::new();
    let overlay = NodeRef::<html::Canvas>::new();
    let figure = AllocationsFigure::new(session, surface::size_of(area), base);
    painting::start(figure, painted);
    gesture::listen(area, move |gesture, at, event| figure.act(gesture, at, event));
    effect(move || figure.lay_out());
    effect(move || figure.choose_colors());
    effect(move || {
        if let Some(canvas) = base.get() {
            figure.show(&canvas);
        }
    });
    let steps = Memo::new(move |_| session.player.with(|player| player.steps));
    effect(move || {
        if let Some(canvas) = overlay.get() {
            figure.draw_cursor(&canvas, steps.get());
        }
    });
    // Keys, the wheel and a complete picture change the part of the figure under a pointer that rests.
    effect(move || {
        session.figures().timeline_view.track();
        figure.drawn.track();
        frames::plan(Slot::GridTip, move || figure.update_tip());
    });
    let hidden = text(move || figure.hidden_text());
    let label = text(move || figure.shown_text());
    view! {
        <section class="panel lifetimes" aria-label="Allocations over time">
            {head(figure)}
            <div class="canvas-box" node_ref=area>
                <canvas node_ref=painted class="painted" aria-hidden="true"
                    hidden=flag(move || !figure.paints())></canvas>
                <canvas node_ref=base role="img" data-testid="lifetimes" aria-label=label></canvas>
                <canvas node_ref=overlay class="overlay" aria-hidden="true"></canvas>
            </div>
            {move || session.figures().shows_allocations().then(|| divider(SizedPanel::Timeline))}
            {legend(figure)}
            <p class="hint quiet" data-testid="too-small">{hidden}</p>
            {figure.tip.view()}
        </section>
    }
    .into_any()
}

fn head(figure: AllocationsFigure) -> AnyView {
    let (session, figures) = (figure.session, figure.session.figures());
    let place = move |is_on: bool| {
        figures.range.set(None);
        figures.kind.set(if is_on { GridKind::Address } else { GridKind::Stacked });
    };
    let colors = Signal::derive(move || {
        let shown = offered_colors(session).into_iter();
        shown.map(|by| (by.name().to_owned(), format!("color: {}", by.name()))).collect()
    });
    let pick_color = move |name: String| figures.chosen_colors.set(ColorBy::from_name(&name));
    view! {
        <div class="head">
            <h2>{move || if session.shows_recording() { "Memory over time" } else { "Allocations over time" }}</h2>
            {move || session.figures().shows_allocations().then(|| axes(session))}
            {check("by-address", "At addresses", "Each allocation at its address; else stacked, a color on top of another", flag(move || figures.kind.get() == GridKind::Address), place)}
            {select("color-by", "What colors say", colors, text(move || session.figures().color_by().name().to_owned()), pick_color)}
            <span class="spacer"></span>
            {show_all(session, "fit")}
        </div>
    }
    .into_any()
}

/// What colors can say about this run: its lines or names, the kind of data, and how long allocations live.
/// Sizes are for a run of which nothing else is known. Reads signals.
fn offered_colors(session: Session) -> Vec<ColorBy> {
    let columns = session.figures().columns();
    let has_stacks = columns.as_ref().is_some_and(|columns| columns.has_stacks);
    let has_pools = columns.as_ref().is_some_and(|columns| columns.has_pools);
    let has_names = columns.is_some_and(|columns| columns.has_names);
    let has_categories = session.shown_program().is_some() || session.lessons().has_category_names();
    let is_offered = |by: &ColorBy| match by {
        ColorBy::Line => has_stacks,
        ColorBy::Category => has_stacks || has_categories,
        ColorBy::Name => has_names && !has_stacks,
        ColorBy::Size => !has_stacks,
        ColorBy::Pool => has_pools,
        ColorBy::Stream | ColorBy::Age => true,
    };
    ColorBy::ALL.into_iter().filter(is_offered).collect()
}

fn legend(figure: AllocationsFigure) -> AnyView {
    let entries = move || {
        let groups = figure.groups.get();
        let names = short_names(groups.legend().iter().map(|entry| entry.text.as_str()));
        groups.legend().iter().zip(names).map(group_entry).collect::<Vec<_>>()
    };
    view! {
        <div class="legend" data-testid="legend">
            {entries}
            {move || fixed_entry(background(figure), false)}
            {move || fixed_entry(TOO_SMALL, !has_hidden(figure))}
        </div>
    }
    .into_any()
}

/// The names of a legend's entries: of a line its file and number, and the number alone where the entry before
/// is of the same file. The title has the function.
fn short_names<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut before = "";
    let short = |text: &'a str| {
        let Some((file, line)) = text.rsplit(' ').next().and_then(|place| place.split_once(':')) else {
            return text.to_owned();
        };
        let name = file.rsplit('/').next().unwrap_or(file);
        if std::mem::replace(&mut before, file) == file {
            format!(":{line}")
        } else {
            format!("{name}:{line}")
        }
    };
    texts.map(short).collect()
}

fn group_entry((entry, name): (&LegendEntry, String)) -> AnyView {
    let title = format!("{}: {} allocations, {} in all", entry.text, grouped_count(entry.count), entry.bytes);
    let blame = entry.blame.map(|what| view! { <strong>{what}</strong> });
    view! {
        <span class="entry" class:is-blamed=entry.blame.is_some() title=title>
            <span class="swatch" style=swatch(entry) aria-hidden="true"></span>
            <span>{name}" "{blame}</span>
        </span>
    }
    .into_any()
}

/// An area of the figure that is not an allocation: the class of its color, its name and its meaning.
type Area = (&'static str, &'static str, &'static str);

const TOO_SMALL: Area =
    ("swatch is-small", "too small to draw one by one", "Allocations that are lower than a pixel, together.");

fn background(figure: AllocationsFigure) -> Area {
    match figure.session.figures().kind.get() {
        GridKind::Address => {
            ("swatch is-cached", BreakdownClass::Cached.name(), BreakdownClass::Cached.meaning())
        }
        GridKind::Stacked => ("swatch is-reserved", "reserved", "Bytes of all segments."),
    }
}

/// Whether allocations of the shown part are lower than a pixel. Reads signals.
fn has_hidden(figure: AllocationsFigure) -> bool {
    figure.drawn.track();
    figure.picture.with_value(|picture| picture.grid().is_some_and(|grid| grid.most_hidden().count > 0))
}

/// An area in the legend. One that is not in the shown part keeps its place, so that nothing below moves.
fn fixed_entry((class, name, title): Area, is_absent: bool) -> AnyView {
    view! {
        <span class="entry" class:is-absent=is_absent title=title>
            <span class=class aria-hidden="true"></span><span>{name}</span>
        </span>
    }
    .into_any()
}

impl AllocationsFigure {
    fn new(session: Session, size: RwSignal<Size>, base: NodeRef<html::Canvas>) -> Self {
        let is_painted = RwSignal::new(false);
        let (drawn, picture) = (RwSignal::new(0), StoredValue::new_local(Picture::default()));
        let groups = Memo::new(move |_| {
            session.figures().color_groups().unwrap_or_else(|| PtrEq::new(Groups::default()))
        });
        let names = Memo::new(move |_| {
            drawn.track();
            session.figures().timeline_view.track();
            let (groups, plot) = (groups.get(), grid_plot(size.get()));
            let names = picture.with_value(|picture| {
                let grid = picture.grid().filter(|grid| grid.is_done())?;
                // A few tensors are known by their names, and many allocations by their groups.
                let columns = session.figures().columns()?;
                let (allocations, recording) = (&columns.allocations, &columns.recording);
                let rows = allocations.len();
                if rows <= MAX_NAMED && (0..rows).any(|row| name_of(allocations, recording, row).is_some()) {
                    let name = |row: usize| name_of(allocations, recording, row);
                    // An area that is too low for the names of its allocations has the name of their group.
                    let mut names = grid.row_names(rows, name, plot);
                    names.marks.extend(grid.names(&groups, plot, &names).marks);
                    return Some(names);
                }
                Some(grid.names(&groups, plot, &Scene::new(0.0, 0.0)))
            });
            PtrEq::new(names.unwrap_or_default())
        });
        let bounds = Memo::new(move |_| {
            let (figures, size) = (session.figures(), size.get());
            let columns =
                figures.columns().filter(|_| figures.kind.get() == GridKind::Stacked && size.width_px >= 1.0);
            let scene = columns.map(|columns| {
                let steps = figures.timeline_view_or_fit();
                let (low, high) = figures.byte_range(&columns, &steps);
                let (run, clock, view) =
                    (session.run.get(), figures.clock.get(), GridView { steps, low, high });
                grid_bounds(&run.series, &run.recording, &view, clock.as_deref(), size)
            });
            PtrEq::new(scene.unwrap_or_default())
        });
        let rects = Memo::new(move |_| {
            // The rectangles are computed only while the painter draws.
            let columns = session.figures().columns().filter(|_| is_painted.get())?;
            Some(PtrEq::new(Rects::new(&columns.allocations, &columns.map)))
        });
        Self {
            session,
            size,
            base,
            picture,
            colors: StoredValue::new_local(None),
            painter: StoredValue::new_local(None),
            is_painter_begun: StoredValue::new(false),
            is_painted,
            rects,
            has_moved: StoredValue::new(false),
            changes: StoredValue::new(0),
            drawn,
            groups,
            names,
            bounds,
            pointer: RwSignal::new(None),
            named: StoredValue::new(None),
            over_time: OverTime { session, size, axis: TimeAxis::Plot },
            tip: Tip::new(),
        }
    }

    /// Draws the cursor, the mark, the lines of the pointer and the marked part. Reads signals.
    fn draw_cursor(self, canvas: &HtmlCanvasElement, moment: usize) {
        let (session, size) = (self.session, self.size.get());
        if size.width_px < 1.0 {
            return;
        }
        let cursor =
            GridCursor { moment, range: session.figures().drawn_range(), pointer: self.pointer.get() };
        let clock = session.figures().clock.get();
        let Some(columns) = session.figures().columns() else { return };
        let part = self.shown_now(&columns);
        let (clock, bounds) = (clock.as_deref(), self.bounds.get());
        let mut base = grid_scene(part.kind, &part.view, clock, &columns.map, size);
        base.marks.extend(bounds.marks.iter().cloned());
        let mut scene = Scene::new(size.width_px, size.height_px);
        scene.marks.extend(bounds.marks.iter().cloned());
        let over = grid_cursor(&columns.recording, &base, &part.view.steps, clock, &cursor);
        scene.marks.extend(over.marks);
        // Names are drawn over the line of the cursor, so that they stay in sight.
        scene.marks.extend(self.names.get().marks.iter().cloned());
        surface::show(session, canvas, &scene);
    }

    /// The part that is shown. Reads signals.
    fn shown_now(self, columns: &Columns) -> GridPart {
        let session = self.session;
        let steps = session.figures().timeline_view_or_fit();
        let (low, high) = session.figures().byte_range(columns, &steps);
        let plot = grid_plot(self.size.get());
        let ratio = pixels(browser::canvas_ratio());
        let (width, height) = (cells(plot.width_px * ratio), cells(plot.height_px * ratio));
        let kind = session.figures().kind.get();
        let is_by_clock = session.figures().clock.with(Option::is_some);
        GridPart { kind, view: GridView { steps, low, high }, is_by_clock, width, height }
    }

    /// Begins a picture of the part that is shown now. Reads signals.
    fn lay_out(self) {
        let session = self.session;
        let (columns, size) = (session.figures().columns(), self.size.get());
        session.appearance().version.track();
        let Some(columns) = columns.filter(|_| size.width_px >= 1.0) else {
            self.picture.update_value(Picture::clear);
            return;
        };
        let (shown, groups) = (self.shown_now(&columns), self.groups.get());
        let clock = session.figures().clock.get();
        self.has_moved.set_value(true);
        let begin = move || {
            self.picture.update_value(|picture| {
                let (recording, allocations) = (&columns.recording, &columns.allocations);
                picture.want(Some(shown), recording, allocations, groups.clone(), clock.clone());
            });
            self.go_on(columns);
        };
        let change = self.changes.with_value(|changes| changes.wrapping_add(1));
        self.changes.set_value(change);
        if !self.paints() {
            return begin();
        }
        // The GPU draws. The grid is needed only for the words under the pointer and for the count of
        // allocations that are too small to be drawn, so it waits until the view has not changed for a while.
        self.picture.update_value(Picture::clear);
        let _ = browser::after_millis(REST_MILLIS, move || {
            if self.changes.try_with_value(|changes| *changes == change) == Some(true) {
                begin();
            }
        });
    }

    /// Computes the picture in this frame and the next frames, until the picture is complete.
    fn go_on(self, columns: PtrEq<Columns>) {
        frames::plan(Slot::Grid, move || {
            let begun = browser::now_millis();
            let has_moved = self.has_moved.try_update_value(std::mem::take) == Some(true);
            let slice = if has_moved { MOVING_SLICE_MILLIS } else { SLICE_MILLIS };
            let is_over = || browser::now_millis() - begun > slice;
            let paints = untrack(|| self.paints());
            let progress = self.picture.try_update_value(|picture| {
                self.colors.with_value(|colors| {
                    let colors = colors.as_ref().filter(|_| !paints);
                    picture.advance(&columns.allocations, &columns.map, colors, is_over)
                })
            });
            let Some(progress) = progress else { return };
            if progress.is_new {
                let _ = self.drawn.try_update(|drawn| *drawn = drawn.wrapping_add(1));
            }
            if progress.has_more {
                self.go_on(columns);
            }
        });
    }

    /// Finds the colors of all groups, and draws the picture again with them. Reads signals.
    fn choose_colors(self) {
        let session = self.session;
        let Some(columns) = session.figures().columns() else { return };
        let groups = self.groups.get();
        let marked = self.marked(&columns);
        let mut roles = vec![Role::Background, Role::Cached, SMALL_FILL.role];
        roles.extend(groups.legend().iter().map(|entry| entry.role));
        let colors = session.appearance().rgb(&roles);
        let ground = colors.first().copied().unwrap_or([255; 3]);
        let color = |place: usize| colors.get(place).copied().unwrap_or([128; 3]);
        let reserved = opaque(blended(color(1), ground, RESERVED_PERCENT));
        let of_place = |place: usize| {
            let own = color(place + 3);
            [opaque(own), opaque(blended(own, ground, DIMMED_PERCENT))]
        };
        self.colors.set_value(Some(GridColors {
            colors: (0..groups.legend().len()).map(of_place).collect(),
            groups,
            marked,
            reserved,
            dots: opaque(color(1)),
            small: opaque(color(2)),
            ground: opaque(ground),
        }));
        self.picture.update_value(Picture::recolor);
        self.go_on(columns);
    }

    /// Draws the last picture with its axes on the canvas. Reads signals.
    fn show(self, canvas: &HtmlCanvasElement) {
        self.drawn.track();
        let (session, size) = (self.session, self.size.get());
        let Some(columns) = session.figures().columns().filter(|_| size.width_px >= 1.0) else {
            // While a run is read, the figure of the run before must not be shown.
            canvas.set_width(0);
            return;
        };
        let shown = self.shown_now(&columns);
        if self.paints() {
            return;
        }
        let clock = session.figures().clock.get();
        let scene = grid_scene(shown.kind, &shown.view, clock.as_deref(), &columns.map, size);
        surface::show(session, canvas, &scene);
        self.picture.with_value(|picture| {
            picture.show(canvas, &shown, grid_plot(size));
        });
    }

    /// Which rows are chosen: the picked rows, and the allocation of the chosen block; `None` if no row is.
    /// Reads signals.
    fn marked(self, columns: &Columns) -> Option<Vec<bool>> {
        let picked = self.session.figures().picked.get();
        let selected = self.session.figures().selected();
        let row = selected.and_then(|block| {
            let allocation =
                self.session.with_state_now(|_, state| state.block(block).and_then(|block| block.allocation));
            columns.allocations.row(allocation.flatten()?)
        });
        if picked.is_none() && row.is_none() {
            return None;
        }
        let mut marked = vec![false; columns.allocations.len()];
        let rows = picked.iter().flat_map(|picked| picked.rows.iter().copied()).chain(row);
        for row in rows {
            if let Some(place) = marked.get_mut(row) {
                *place = true;
            }
        }
        Some(marked)
    }
}

/// The style of a legend's color.
pub(crate) fn swatch(entry: &LegendEntry) -> String {
    format!("background:var({})", entry.role.css_variable())
}

/// The program's name of an allocation.
fn name_of<'a>(allocations: &Allocations, recording: &'a Recording, row: usize) -> Option<&'a str> {
    recording.name(allocations.id(row)?)
}

/// A length in whole pixels, which is also a count of cells of the grid.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
fn cells(length_px: f32) -> usize {
    length_px.max(0.0) as usize
}

fn opaque([red, green, blue]: [u8; 3]) -> [u8; 4] {
    [red, green, blue, 255]
}
