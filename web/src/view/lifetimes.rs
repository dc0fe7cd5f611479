//! All allocations from their allocation to their free: at their addresses, or stacked.

mod painting;
mod picture;

use blockyard_figure::{
    AllocationLifetime, Cell, ColorBy, Fill, Grid, GridCursor, GridKind, GridView, Groups, Point, Rect,
    Rects, Role, Scene, Size, TimelineView, grid_cursor, grid_plot, grid_scene, stack_lines,
};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::{Element, HtmlCanvasElement};

use self::picture::{Look, Picture, Shown};
use crate::browser;
use crate::export;
use crate::frames::{self, Slot};
use crate::painter::Painter;
use crate::ptr_eq::PtrEq;
use crate::session::{Columns, Session};
use crate::surface::{self, pixels};
use crate::view::divider::{Panel, divider};
use crate::view::kit::{button, choice, choices, click, effect, flag, on, select, text};
use crate::view::numbers::grouped_count;
use crate::view::timeline::zoom_factor;
use crate::view::tip::Tip;

/// How long the page's thread draws at a time.
const SLICE_MILLIS: f64 = 1.5;
/// So long nothing moves before what is under the pointer is worked out anew.
const REST_MILLIS: i32 = 120;
/// A pointer that moved less has clicked.
const CLICK_PX: f32 = 4.0;

/// The parts of the figure that its handlers share.
#[derive(Clone, Copy)]
struct Lifetimes {
    session: Session,
    size: RwSignal<Size>,
    base: NodeRef<html::Canvas>,
    picture: StoredValue<Picture, LocalStorage>,
    /// The colors of the picture.
    look: StoredValue<Option<Look>, LocalStorage>,
    /// Draws the figure at its addresses, where there is a GPU.
    painter: StoredValue<Option<Painter>, LocalStorage>,
    is_painter_begun: StoredValue<bool>,
    /// Whether the painter can draw.
    is_painted: RwSignal<bool>,
    rects: Memo<Option<PtrEq<Rects>>>,
    /// Counts the changes of what is shown.
    changes: StoredValue<u32>,
    /// Counts the pictures.
    drawn: RwSignal<u32>,
    groups: Memo<PtrEq<Groups>>,
    pointer: RwSignal<Option<Point>>,
    brush: RwSignal<Option<(Point, Point)>>,
    grabbed: StoredValue<Option<Grabbed>>,
    tip: Tip,
}

/// A drag, and what was shown when it began.
#[derive(Clone, Copy)]
struct Grabbed {
    from: Point,
    steps: TimelineView,
    range: (f64, f64),
    is_brush: bool,
}

pub(crate) fn lifetimes(session: Session) -> AnyView {
    let figures = session.figures;
    effect(move || {
        session.run.track();
        // Behind the effects of the change: what is collected is a command of its own.
        let _ = browser::after_millis(0, move || session.collect_allocations());
    });
    let area = NodeRef::<html::Div>::new();
    let base = NodeRef::<html::Canvas>::new();
    let painted = NodeRef::<html::Canvas>::new();
    let overlay = NodeRef::<html::Canvas>::new();
    let groups = Memo::new(move |_| {
        let groups = session
            .columns()
            .map(|columns| Groups::new(&columns.allocations, &columns.recording, session.color_by()));
        PtrEq::new(groups.unwrap_or_default())
    });
    let is_painted = RwSignal::new(false);
    let rects = Memo::new(move |_| {
        // Without a painter nobody looks at them.
        let columns = session.columns().filter(|_| is_painted.get())?;
        Some(PtrEq::new(Rects::new(&columns.allocations, &columns.map)))
    });
    let it = Lifetimes {
        session,
        size: surface::size_of(area),
        base,
        picture: StoredValue::new_local(Picture::new()),
        look: StoredValue::new_local(None),
        painter: StoredValue::new_local(None),
        is_painter_begun: StoredValue::new(false),
        is_painted,
        rects,
        changes: StoredValue::new(0),
        drawn: RwSignal::new(0),
        groups,
        pointer: RwSignal::new(None),
        brush: RwSignal::new(None),
        grabbed: StoredValue::new(None),
        tip: Tip::new(),
    };
    painting::start(it, painted);
    effect(move || it.lay_out());
    effect(move || it.choose_colors());
    effect(move || {
        if let Some(canvas) = base.get() {
            it.show(&canvas);
        }
    });
    let steps = Memo::new(move |_| session.player.with(|player| player.steps));
    effect(move || {
        let (Some(canvas), size) = (overlay.get(), it.size.get()) else { return };
        if size.width_px < 1.0 {
            return;
        }
        let cursor = GridCursor {
            moment: steps.get(),
            mark: figures.mark.get(),
            pointer: it.pointer.get(),
            brush: it.brush.get(),
        };
        let scene = grid_cursor(&session.timeline_view_or_fit(), &cursor, size);
        surface::fit(&canvas, &scene);
        session.draw(&canvas, &scene);
    });
    let hidden = text(move || it.hidden_words());
    let label = text(move || it.words());
    view! {
        <section class="panel lifetimes" aria-label="Allocations over time">
            {head(it)}
            <div class="canvas-box" node_ref=area
                on:pointerdown=on(move |event: ev::PointerEvent| it.down(&event))
                on:pointermove=on(move |event: ev::PointerEvent| it.moved(&event))
                on:pointerup=on(move |event: ev::PointerEvent| it.up(&event))
                on:pointercancel=on(move |_: ev::PointerEvent| it.let_go())
                on:pointerleave=on(move |_: ev::PointerEvent| it.leave())
                on:wheel=on(move |event: ev::WheelEvent| it.wheel(&event))
                on:dblclick=click(move || it.fit())
            >
                <canvas node_ref=painted class="painted" aria-hidden="true"
                    hidden=flag(move || !it.paints())></canvas>
                <canvas node_ref=base role="img" data-testid="lifetimes" aria-label=label></canvas>
                <canvas node_ref=overlay class="overlay" aria-hidden="true"></canvas>
            </div>
            {divider(Panel::Lifetimes)}
            {legend(it)}
            <p class="hint quiet" data-testid="too-small">{hidden}</p>
            {it.tip.view()}
        </section>
    }
    .into_any()
}

fn head(it: Lifetimes) -> AnyView {
    let (session, figures) = (it.session, it.session.figures);
    let kind = move |kind: GridKind, id: &'static str, label: &'static str| {
        let set = click(move || {
            figures.range.set(None);
            figures.kind.set(kind);
        });
        choice(id, label, flag(move || figures.kind.get() == kind), set)
    };
    let colors = Signal::derive(move || {
        let has_stacks = session.columns().is_some_and(|columns| columns.has_stacks);
        let shown = ColorBy::ALL
            .into_iter()
            .filter(|by| has_stacks || !matches!(by, ColorBy::Stack | ColorBy::Category));
        shown.map(|by| (by.name().to_owned(), format!("color: {}", by.name()))).collect()
    });
    let pick_color = move |name: String| {
        figures.filtered.set(0);
        figures.color_by.set(ColorBy::from_name(&name));
    };
    let is_fit = flag(move || figures.range.get().is_none() && session.timeline_view.get().is_none());
    view! {
        <div class="head">
            <h2>"Allocations over time"</h2>
            {choices("Vertical axis", Signal::stored(false), vec![
                kind(GridKind::Address, "by-address", "At their addresses"),
                kind(GridKind::Stacked, "by-stack", "Stacked"),
            ])}
            {select("color-by", "What colors say", colors, text(move || session.color_by().name().to_owned()), pick_color)}
            <span class="spacer"></span>
            <span hidden=is_fit>
                {button("", "fit", "Show all", "Show the whole recording again (0, double click)", click(move || it.fit()))}
            </span>
            {button("plain", "lifetimes-svg", "SVG", "Save the figure as SVG", click(move || it.save(true)))}
            {button("plain", "lifetimes-png", "PNG", "Save the figure as PNG", click(move || it.save(false)))}
        </div>
    }
    .into_any()
}

fn legend(it: Lifetimes) -> AnyView {
    let filtered = it.session.figures.filtered;
    let entries = move || {
        let groups = it.groups.get();
        let entries = groups.legend().iter().enumerate().map(|(place, entry)| {
            let bit = 1_u16.checked_shl(u32::try_from(place).unwrap_or(0)).unwrap_or(0);
            let is_shown = text(move || (filtered.get() & bit == 0).to_string());
            let swatch = format!("background:var({})", entry.role.css_variable());
            let title = format!(
                "{}: {} allocations, {} in all. Click to hide or show.",
                entry.text,
                grouped_count(entry.count),
                entry.bytes
            );
            let toggle = click(move || filtered.update(|filtered| *filtered ^= bit));
            view! {
                <button type="button" class="entry" aria-pressed=is_shown title=title on:click=toggle>
                    <span class="swatch" style=swatch aria-hidden="true"></span>
                    <span>{entry.text.clone()}</span>
                </button>
            }
            .into_any()
        });
        entries.collect::<Vec<_>>()
    };
    view! { <div class="legend" role="group" aria-label="Colors" data-testid="legend">{entries}</div> }
        .into_any()
}

impl Session {
    /// The bytes of the figure from bottom to top, following.
    fn byte_range(self, columns: &Columns, steps: &TimelineView) -> (f64, f64) {
        let kind = self.figures.kind.get();
        self.figures.range.get().unwrap_or_else(|| whole(columns, kind, steps))
    }

    /// Zooms the bytes around a place of the height, from 0 (bottom) to 1; above 1 goes in.
    pub(crate) fn zoom_bytes(self, place: f64, factor: f64) {
        let Some(columns) = untrack(|| self.columns()) else { return };
        let steps = untrack(|| self.timeline_view_or_fit());
        let (low, high) = untrack(|| self.byte_range(&columns, &steps));
        let at = low + (high - low) * place.clamp(0.0, 1.0);
        self.set_range(at - (at - low) / factor, at + (high - at) / factor);
    }

    /// Moves the bytes up by a part of the height.
    pub(crate) fn pan_bytes(self, fraction: f64) {
        if let Some((low, high)) = self.figures.range.get_untracked() {
            let by = (high - low) * fraction;
            self.set_range(low + by, high + by);
        }
    }

    fn set_range(self, low: f64, high: f64) {
        let Some(columns) = untrack(|| self.columns()) else { return };
        let steps = untrack(|| self.timeline_view_or_fit());
        let (_, most) = whole(&columns, self.figures.kind.get_untracked(), &steps);
        let height = (high - low).clamp(4096.0_f64.min(most), most);
        let low = low.clamp(0.0, most - height);
        let is_whole = height >= most;
        self.figures.range.set((!is_whole).then_some((low, low + height)));
    }
}

impl Lifetimes {
    /// The part that is shown, following.
    fn shown_now(self, columns: &Columns) -> Shown {
        let session = self.session;
        let steps = session.timeline_view_or_fit();
        let (low, high) = session.byte_range(columns, &steps);
        let plot = grid_plot(self.size.get());
        let ratio = pixels(browser::canvas_ratio());
        let (width, height) = (cells(plot.width_px * ratio), cells(plot.height_px * ratio));
        Shown { kind: session.figures.kind.get(), view: GridView { steps, low, high }, width, height }
    }

    /// Begins a picture of what is shown now.
    fn lay_out(self) {
        let session = self.session;
        let (columns, size) = (session.columns(), self.size.get());
        session.looks.track();
        let Some(columns) = columns.filter(|_| size.width_px >= 1.0) else {
            self.picture.update_value(Picture::clear);
            return;
        };
        let shown = self.shown_now(&columns);
        let begin = move || {
            self.picture.update_value(|picture| {
                picture.want(Some(shown), &columns.recording, &columns.allocations);
            });
            self.go_on(columns);
        };
        let change = self.changes.with_value(|changes| changes.wrapping_add(1));
        self.changes.set_value(change);
        if !self.paints() {
            return begin();
        }
        // The GPU draws; the grid says what is under the pointer and what is too small, once the view rests.
        self.picture.update_value(Picture::clear);
        let _ = browser::after_millis(REST_MILLIS, move || {
            if self.changes.try_with_value(|changes| *changes == change) == Some(true) {
                begin();
            }
        });
    }

    fn go_on(self, columns: PtrEq<Columns>) {
        frames::plan(Slot::Grid, move || {
            let begun = browser::now_millis();
            let is_over = || browser::now_millis() - begun > SLICE_MILLIS;
            let paints = untrack(|| self.paints());
            let progress = self.picture.try_update_value(|picture| {
                self.look.with_value(|look| {
                    let look = look.as_ref().filter(|_| !paints);
                    picture.advance(&columns.allocations, &columns.map, look, is_over)
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

    /// Finds the colors of now, and gives them to the picture.
    fn choose_colors(self) {
        let session = self.session;
        let Some(columns) = session.columns() else { return };
        let groups = self.groups.get();
        let filtered = session.figures.filtered.get();
        let marked = self.marked(&columns);
        let mut roles = vec![Role::Background, Role::Cached, Role::Group(Role::GROUPS - 1)];
        roles.extend(groups.legend().iter().map(|entry| entry.role));
        let colors = session.rgb(&roles);
        let ground = colors.first().copied().unwrap_or([255; 3]);
        let color = |place: usize| colors.get(place).copied().unwrap_or([128; 3]);
        let reserved = opaque(mixed(color(1), ground, 22));
        let of_place = |place: usize| {
            if filtered >> place.min(15) & 1 == 1 {
                return [reserved; 2];
            }
            let own = color(place + 3);
            [opaque(own), opaque(mixed(own, ground, 22))]
        };
        self.look.set_value(Some(Look {
            colors: (0..groups.legend().len()).map(of_place).collect(),
            groups,
            marked,
            reserved,
            small: opaque(mixed(color(2), ground, 55)),
            ground: opaque(ground),
        }));
        self.picture.update_value(Picture::recolor);
        self.go_on(columns);
    }

    /// Shows the picture of now on the canvas, with its axes.
    fn show(self, canvas: &HtmlCanvasElement) {
        self.drawn.track();
        let (session, size) = (self.session, self.size.get());
        let Some(columns) = session.columns().filter(|_| size.width_px >= 1.0) else {
            // The run before must not stand there for the one that is read now.
            canvas.set_width(0);
            return;
        };
        let shown = self.shown_now(&columns);
        if self.paints() {
            return;
        }
        let scene = grid_scene(shown.kind, &shown.view, &columns.map, size);
        surface::fit(canvas, &scene);
        session.draw(canvas, &scene);
        self.picture.with_value(|picture| {
            picture.show(canvas, &shown, grid_plot(size));
        });
    }

    /// Which rows are chosen: those that were picked, and the allocation of the chosen block.
    fn marked(self, columns: &Columns) -> Option<Vec<bool>> {
        let picked = self.session.figures.picked.get();
        let selected = self.session.selected();
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

    /// The cell at a place of the figure: its column, and what it shows.
    fn cell_at(self, at: Point) -> Option<(usize, Cell)> {
        let plot = grid_plot(self.size.get_untracked());
        if !plot.contains(at.x_px, at.y_px) {
            return None;
        }
        self.picture.with_value(|picture| {
            let grid = picture.grid()?;
            let (width, height) = grid.size();
            let column = cells((at.x_px - plot.x_px) / plot.width_px * frames_px(width));
            let row = cells((plot.bottom_px() - at.y_px) / plot.height_px * frames_px(height));
            let (column, row) = (column.min(width - 1), row.min(height - 1));
            Some((column, grid.cell(column, row)))
        })
    }

    fn moved(self, event: &ev::PointerEvent) {
        let at = place(event);
        if let Some(grabbed) = self.grabbed.get_value() {
            if event.buttons() & 1 != 0 {
                return self.drag(grabbed, at);
            }
            self.let_go();
        }
        self.tip.show(self.tip_words(at), event);
        frames::plan(Slot::Cross, move || {
            let _ = self.pointer.try_set(Some(at));
        });
    }

    fn tip_words(self, at: Point) -> Option<String> {
        let columns = untrack(|| self.session.columns())?;
        let (column, cell) = self.cell_at(at)?;
        let (moment, hidden) = self.picture.with_value(|picture| {
            let grid = picture.grid()?;
            Some((grid.moment(column)?, grid.hidden(column)))
        })?;
        let when = format!(
            "after step {}: {} active",
            grouped_count(moment),
            columns.allocations.active_bytes(moment)
        );
        let mut lines = match cell {
            Cell::Row(row) => {
                let found = columns.allocations.get(row)?;
                let mut lines = allocation_lines(&columns, row, &found);
                let stack = columns.recording.allocation_stack(found.id);
                lines.extend(stack_lines(columns.recording.stacks(), stack).into_iter().take(8));
                lines
            }
            Cell::Small => {
                vec![format!("{} smaller allocations: {}", grouped_count(hidden.count), hidden.bytes)]
            }
            Cell::Reserved => vec!["reserved, not allocated".to_owned()],
            Cell::Nothing => Vec::new(),
        };
        lines.push(when);
        Some(lines.join("\n"))
    }

    fn down(self, event: &ev::PointerEvent) {
        if event.button() != 0 {
            return;
        }
        let Some(columns) = untrack(|| self.session.columns()) else { return };
        if let Some(target) = event.current_target().and_then(|target| target.dyn_into::<Element>().ok()) {
            let _ = target.set_pointer_capture(event.pointer_id());
        }
        let steps = untrack(|| self.session.timeline_view_or_fit());
        let range = untrack(|| self.session.byte_range(&columns, &steps));
        let is_brush = event.shift_key();
        self.grabbed.set_value(Some(Grabbed { from: place(event), steps, range, is_brush }));
    }

    fn drag(self, Grabbed { from, steps, range, is_brush }: Grabbed, at: Point) {
        self.tip.hide();
        let plot = grid_plot(self.size.get_untracked());
        if is_brush {
            self.brush.set(Some((from, at)));
            return;
        }
        frames::plan(Slot::Seek, move || {
            let session = self.session;
            let count = session.run.get_untracked().recording.step_count();
            let across = f64::from((from.x_px - at.x_px) / plot.width_px);
            let panned = steps.pan(across, count);
            session.timeline_view.set((panned != TimelineView::fit(count)).then_some(panned));
            if session.figures.range.with_untracked(Option::is_some) {
                let up = f64::from((at.y_px - from.y_px) / plot.height_px) * (range.1 - range.0);
                self.session.set_range(range.0 + up, range.1 + up);
            }
        });
    }

    fn up(self, event: &ev::PointerEvent) {
        let at = place(event);
        let Some(Grabbed { from, steps, range, is_brush }) = self.grabbed.get_value() else { return };
        self.let_go();
        let is_click = (from.x_px - at.x_px).abs() < CLICK_PX && (from.y_px - at.y_px).abs() < CLICK_PX;
        if is_click {
            return self.choose(at);
        }
        if !is_brush {
            return;
        }
        let plot = grid_plot(self.size.get_untracked());
        let x = |x_px: f32| f64::from(((x_px - plot.x_px) / plot.width_px).clamp(0.0, 1.0));
        let y = |y_px: f32| f64::from(((plot.bottom_px() - y_px) / plot.height_px).clamp(0.0, 1.0));
        let count = self.session.run.get_untracked().recording.step_count();
        let (left, right) = (x(from.x_px.min(at.x_px)), x(from.x_px.max(at.x_px)));
        let shown = TimelineView {
            first_step: steps.first_step + left * steps.span(),
            last_step: steps.first_step + right * steps.span(),
        };
        self.session.timeline_view.set(Some(shown.clamp(count)));
        // A flat stroke is about steps alone.
        if (from.y_px - at.y_px).abs() > 12.0 {
            let (low, high) = (y(from.y_px.max(at.y_px)), y(from.y_px.min(at.y_px)));
            let height = range.1 - range.0;
            self.session.set_range(range.0 + low * height, range.0 + high * height);
        }
    }

    /// Chooses the allocation at a place of the figure, and goes to a moment at which it is there.
    fn choose(self, at: Point) {
        let session = self.session;
        let Some((column, cell)) = self.cell_at(at) else { return };
        let moment = self.picture.with_value(|picture| picture.grid()?.moment(column));
        let Some(columns) = untrack(|| session.columns()) else { return };
        let Cell::Row(row) = cell else {
            if !session.unpick()
                && let Some(moment) = moment
            {
                session.seek_moment(moment);
            }
            return;
        };
        let Some(found) = columns.allocations.get(row) else { return };
        let now = session.player.with_untracked(|player| player.steps);
        if let Some(moment) = moment.filter(|_| !columns.allocations.is_active(row, now)) {
            session.seek_moment(moment);
        }
        session.pick(format!("allocation #{}", found.id), vec![row]);
    }

    fn wheel(self, event: &ev::WheelEvent) {
        let at = place(event);
        let plot = grid_plot(self.size.get_untracked());
        if event.ctrl_key() || event.meta_key() {
            event.prevent_default();
            if event.shift_key() {
                let place = f64::from((plot.bottom_px() - at.y_px) / plot.height_px);
                self.session.zoom_bytes(place, zoom_factor(event));
            } else {
                let place = f64::from((at.x_px - plot.x_px) / plot.width_px.max(1.0));
                self.session.zoom_timeline(place, zoom_factor(event));
            }
        } else if event.delta_x().abs() > event.delta_y().abs() {
            event.prevent_default();
            self.session.pan_timeline(event.delta_x() / 600.0);
        }
    }

    fn fit(self) {
        self.session.fit_timeline();
    }

    fn let_go(self) {
        self.grabbed.set_value(None);
        self.brush.set(None);
    }

    fn leave(self) {
        self.tip.hide();
        self.pointer.set(None);
    }

    /// What is too small to be drawn, in count and bytes.
    fn hidden_words(self) -> String {
        self.drawn.track();
        if self.session.columns().is_none() {
            return "Finding all allocations of the recording …".to_owned();
        }
        let found = self.picture.with_value(|picture| {
            let grid = picture.grid()?;
            Some((grid.most_hidden(), grid.is_done()))
        });
        let help = "Ctrl + wheel zooms (with Shift: bytes), drag moves, Shift + drag zooms to a part, click chooses.";
        match found {
            Some((hidden, true)) if hidden.count > 0 => format!(
                "Too small to draw: at most {} allocations of {} in all at a time. {help}",
                grouped_count(hidden.count),
                hidden.bytes
            ),
            Some((_, true)) => format!("No allocation of a shown moment is too small to draw. {help}"),
            _ => help.to_owned(),
        }
    }

    /// The figure in words.
    fn words(self) -> String {
        let Some(columns) = self.session.columns() else { return "Allocations over time".to_owned() };
        let steps = self.session.timeline_view_or_fit();
        let what = match self.session.figures.kind.get() {
            GridKind::Address => format!("at their addresses, {} of addresses", columns.map.total()),
            GridKind::Stacked => "stacked, the oldest at the bottom".to_owned(),
        };
        let groups = self.groups.get();
        let colors: Vec<String> = groups
            .legend()
            .iter()
            .map(|entry| format!("{} ({})", entry.text, grouped_count(entry.count)))
            .collect();
        format!(
            "{} allocations over time {what}. At most {} active at once. Colors by {}: {}. The table of holders says the same in words.",
            grouped_count(columns.allocations.len()),
            columns.allocations.most_active(&steps),
            self.session.color_by().name(),
            colors.join(", ")
        )
    }

    fn save(self, is_svg: bool) {
        let session = self.session;
        let Some(columns) = untrack(|| session.columns()) else { return };
        let size = Size::new(1200.0, 560.0);
        let plot = grid_plot(size);
        let steps = untrack(|| session.timeline_view_or_fit());
        let (low, high) = untrack(|| self.session.byte_range(&columns, &steps));
        let kind = session.figures.kind.get_untracked();
        let view = GridView { steps, low, high };
        let (width, height) = (cells(plot.width_px), cells(plot.height_px));
        let grid = Grid::new(&columns.allocations, kind, view, width, height)
            .drawn(&columns.allocations, &columns.map);
        let filtered = session.figures.filtered.get_untracked();
        let groups = self.groups.get_untracked();
        let mut scene = grid_scene(kind, grid.view(), &columns.map, size);
        scene.marks.extend(grid.rects(&groups, |place| filtered >> place.min(15) & 1 == 0, plot).marks);
        add_legend(&mut scene, &groups);
        let name = match kind {
            GridKind::Address => "addresses over time",
            GridKind::Stacked => "allocations over time",
        };
        if is_svg {
            export::figure_svg(session, &scene, name, &untrack(|| self.words()));
        } else {
            export::figure_png(session, &scene, name);
        }
    }
}

/// The colors of a figure in a file, below it.
fn add_legend(scene: &mut Scene, groups: &Groups) {
    for entry in groups.legend() {
        let top = scene.height_px + 4.0;
        scene.add_swatch(Rect::new(64.0, top, 12.0, 12.0), Fill::solid(entry.role), &entry.text);
        scene.height_px += 18.0;
    }
    scene.height_px += 6.0;
}

/// All bytes of the axis; of stacked allocations, as high as the highest moment that is shown.
fn whole(columns: &Columns, kind: GridKind, steps: &TimelineView) -> (f64, f64) {
    let bytes = match kind {
        GridKind::Address => columns.map.total(),
        GridKind::Stacked => columns.allocations.most_active(steps),
    };
    let room = if kind == GridKind::Stacked { 1.04 } else { 1.0 };
    (0.0, (float(bytes.get()) * room).max(4096.0))
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 8 PiB")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
fn cells(length_px: f32) -> usize {
    length_px.max(0.0) as usize
}

fn frames_px(count: usize) -> f32 {
    pixels(frames::count(count))
}

fn place(event: &web_sys::MouseEvent) -> Point {
    let (x_px, y_px) = surface::offset_px(event);
    Point::new(x_px, y_px)
}

fn opaque([red, green, blue]: [u8; 3]) -> [u8; 4] {
    [red, green, blue, 255]
}

/// `percent` of the color on the ground.
fn mixed(color: [u8; 3], ground: [u8; 3], percent: u32) -> [u8; 3] {
    let mut mixed = color;
    for (part, ground) in mixed.iter_mut().zip(ground) {
        let sum = u32::from(*part) * percent + u32::from(ground) * (100 - percent);
        *part = u8::try_from(sum / 100).unwrap_or(u8::MAX);
    }
    mixed
}

/// An allocation in words, a line a fact, without its stack.
pub(crate) fn allocation_lines(columns: &Columns, row: usize, found: &AllocationLifetime) -> Vec<String> {
    let recording = &columns.recording;
    let name = recording.name(found.id).map_or_else(|| format!("allocation #{}", found.id), str::to_owned);
    let begin = match found.start {
        0 => "allocated before the recording began".to_owned(),
        step => format!("allocated in step {}", grouped_count(step)),
    };
    let end = match found.freed {
        None => "not freed in the recording".to_owned(),
        Some(step) => {
            format!(
                "freed in step {} ({} later)",
                grouped_count(step),
                grouped_count(step - found.start.min(step))
            )
        }
    };
    let group =
        blockyard_figure::group_key(&columns.allocations, recording, row, blockyard_figure::GroupBy::Pool)
            .map(|key| blockyard_figure::group_text(recording, key));
    vec![
        format!(
            "{name}: {} ({} bytes, {} requested)",
            found.size,
            blockyard_record::grouped(found.size.get()),
            found.requested
        ),
        format!("{begin}, {end}"),
        format!(
            "at {}, segment #{}, {}, stream {}",
            found.addr,
            found.segment,
            group.unwrap_or_default(),
            recording.stream_name(found.stream)
        ),
    ]
}
