//! The breakdown over time, with the cursor.

use blockyard_figure::{
    Point, Role, Scene, Size, TargetId, describe_target, timeline as timeline_scene, timeline_cursor,
    timeline_line, timeline_plot, timeline_range, timeline_text,
};
use leptos::html;
use leptos::prelude::*;
use web_sys::MouseEvent;

use crate::effect::effect;
use crate::frames::{self, Slot};
use crate::numbers::grouped_count;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::surface;
use crate::view::figure::gesture::{self, Gesture};
use crate::view::figure::over_time::{OverTime, TimeAxis, axes, show_all};
use crate::view::figure::tip::Tip;
use crate::view::kit::text;
use crate::view::workbench::divider::{SizedPanel, divider};

/// The parts of the figure that its handlers share.
#[derive(Clone, Copy)]
struct Timeline {
    session: Session,
    size: RwSignal<Size>,
    /// The figure without the cursor; `None` until it has a size.
    scene: Memo<Option<PtrEq<Scene>>>,
    tip: Tip,
    over_time: OverTime,
    /// The moment under the pointer.
    pointer: RwSignal<Option<usize>>,
    /// The place of the pointer; `None` while the pointer is outside of the figure or pressed.
    place: StoredValue<Option<Point>>,
}

pub(crate) fn timeline(session: Session) -> AnyView {
    frames::forget_with_view(&[Slot::Seek, Slot::Tip, Slot::Cross]);
    let area = NodeRef::<html::Div>::new();
    let base = NodeRef::<html::Canvas>::new();
    let overlay = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let scene = Memo::new(move |_| {
        let size = Some(size.get()).filter(|size| size.width_px >= 1.0)?;
        let (run, view) = (session.run.get(), session.figures().timeline_view_or_fit());
        let clock = session.figures().clock.get();
        let scene = timeline_scene(&run.series, &run.recording, &view, clock.as_deref(), size);
        Some(PtrEq::new(scene))
    });
    let it = Timeline {
        session,
        size,
        scene,
        tip: Tip::new(),
        over_time: OverTime { session, size, axis: TimeAxis::Plot },
        pointer: RwSignal::new(None),
        place: StoredValue::new(None),
    };
    it.keep_drawn(base, overlay);
    gesture::listen(area, move |gesture, at, event| it.act(gesture, at, event));
    let label = Memo::new(move |_| session.run.with(|run| timeline_text(&run.series, &run.recording)));
    view! {
        <section class="panel timeline" aria-label="Memory over time">
            {head(session)}
            <div class="canvas-box" node_ref=area>
                <canvas node_ref=base role="img" data-testid="timeline" aria-label=text(move || label.get())></canvas>
                <canvas node_ref=overlay class="overlay" aria-hidden="true"></canvas>
            </div>
            {move || (!session.figures().shows_allocations()).then(|| divider(SizedPanel::Timeline))}
            {it.tip.view()}
        </section>
    }
    .into_any()
}

impl Timeline {
    /// Draws the figure and, on a separate canvas, the cursor whenever one of them changes.
    fn keep_drawn(self, base: NodeRef<html::Canvas>, overlay: NodeRef<html::Canvas>) {
        let Self { session, scene, pointer, .. } = self;
        effect(move || {
            if let (Some(canvas), Some(scene)) = (base.get(), scene.get()) {
                surface::show(session, &canvas, &scene);
            }
        });
        // Keys and the wheel change the part of the figure under a pointer that rests.
        effect(move || {
            session.run.track();
            session.figures().timeline_view.track();
            let _ = session.figures().clock.get();
            frames::plan(Slot::Tip, move || self.update_tip());
        });
        // A cursor that moves does not draw the figure again.
        let steps = Memo::new(move |_| session.player.with(|player| player.steps));
        effect(move || {
            if let (Some(canvas), Some(base)) = (overlay.get(), scene.get()) {
                let scene = cursors(session, &base, steps.get(), pointer.get());
                surface::show(session, &canvas, &scene);
            }
        });
    }

    fn act(self, gesture: Gesture, at: Point, event: &MouseEvent) -> bool {
        match gesture {
            Gesture::Hover => self.hover(at, event),
            Gesture::Leave => self.leave(),
            Gesture::Choose
                if self.scene.get_untracked().is_some_and(|it| go_to_mark(self.session, &it, at)) => {}
            _ => return self.over_time.act(gesture, at),
        }
        true
    }

    fn hover(self, at: Point, event: &MouseEvent) {
        self.place.set_value(Some(at));
        let step = self.moment_at(at);
        self.tip.show(self.words_at(at, step), event);
        frames::plan(Slot::Cross, move || {
            let _ = self.pointer.try_set(step);
        });
    }

    /// The moment at a place of the figure; `None` outside of the plot.
    fn moment_at(self, at: Point) -> Option<usize> {
        let size = self.size.get_untracked();
        let plot = self.session.run.with_untracked(|run| timeline_plot(&run.series, size));
        plot.contains(at.x_px, at.y_px).then(|| self.over_time.moment(at.x_px))
    }

    /// The words about the mark at a place of the figure, or else the values of the moment there.
    fn words_at(self, at: Point, step: Option<usize>) -> Option<String> {
        let words = self.scene.get_untracked().and_then(|scene| mark_text(self.session, &scene, at));
        words.or_else(|| moment_text(self.session, step?))
    }

    /// Shows the words about the place that the pointer is on now.
    fn update_tip(self) {
        let Some(Some(place)) = self.place.try_get_value() else { return };
        let step = self.moment_at(place);
        self.tip.say(self.words_at(place, step));
        let _ = self.pointer.try_set(step);
    }

    fn leave(self) {
        self.place.set_value(None);
        self.tip.hide();
        self.pointer.set(None);
    }
}

/// The cursor, the mark and the line of the pointer. Reads signals.
fn cursors(session: Session, base: &Scene, step: usize, pointer: Option<usize>) -> Scene {
    let size = Size::new(base.width_px, base.height_px);
    let view = session.figures().timeline_view_or_fit();
    let clock = session.figures().clock.get();
    let clock = clock.as_deref();
    let (recording, plot) = session.run.with(|run| (run.recording.clone(), timeline_plot(&run.series, size)));
    let mut scene = timeline_cursor(Some(&recording), base, &plot, &view, clock, step);
    if let Some(range) = session.figures().drawn_range() {
        timeline_range(&mut scene, &view, clock, range, &plot);
    }
    if let Some(step) = pointer {
        timeline_line(&mut scene, &view, clock, step, Role::Hover, &plot);
    }
    scene
}

fn head(session: Session) -> AnyView {
    view! {
        <div class="head">
            <h2>"Memory over time"</h2>
            {move || (!session.figures().shows_allocations()).then(|| axes(session))}
            <span class="spacer"></span>
            {show_all(session, "fit-timeline")}
        </div>
    }
    .into_any()
}

/// The words about the mark or the name at a place of a figure over time.
pub(super) fn mark_text(session: Session, scene: &Scene, at: Point) -> Option<String> {
    let target = scene.hit(at.x_px, at.y_px)?.what;
    session.with_state_now(|run, state| describe_target(target, state, &run.recording)).flatten()
}

/// Goes to the peak whose mark or name is at a place of a figure over time. Returns whether there is one.
pub(super) fn go_to_mark(session: Session, scene: &Scene, at: Point) -> bool {
    let target = scene.hit(at.x_px, at.y_px).map(|target| target.what);
    let is_peak = matches!(target, Some(TargetId::PeakAllocated | TargetId::PeakReserved));
    if is_peak {
        session.seek_peak(target == Some(TargetId::PeakReserved));
    }
    is_peak
}

/// The values of the breakdown after `step` steps, a line for each, and the markers around this moment.
pub(crate) fn moment_text(session: Session, step: usize) -> Option<String> {
    let run = session.run.get_untracked();
    let recording = &run.recording;
    let breakdown = match step.checked_sub(1) {
        Some(last) => recording.breakdown_after(last)?,
        None => recording.breakdown_before(),
    };
    let mut lines = vec![match step {
        0 => "before the first request".to_owned(),
        _ => format!("after request {}", grouped_count(step)),
    }];
    if let (Some(first), Some(now)) =
        (recording.time_us(0), step.checked_sub(1).and_then(|step| recording.time_us(step)))
    {
        // The times of a file may run backwards.
        lines.push(format!("{} µs after the first", blockyard_record::grouped(now.saturating_sub(first))));
    }
    lines.extend([
        format!("reserved: {}", breakdown.reserved()),
        format!("allocated: {}", breakdown.allocated()),
        format!("  requested: {}", breakdown.requested),
        format!("  rounding: {}", breakdown.rounding),
        format!("pending: {}", breakdown.pending),
        format!("cached: {}", breakdown.cached),
    ]);
    // Recordings have fewer than 2^32 steps.
    let at = u32::try_from(step).unwrap_or(u32::MAX);
    let around = recording
        .markers()
        .iter()
        .filter(|marker| marker.start_step < at && marker.end_step.is_none_or(|end| end >= at));
    let names: Vec<&str> = around.map(|marker| marker.text.as_str()).take(4).collect();
    if !names.is_empty() {
        lines.push(format!("in {}", names.join(" › ")));
    }
    Some(lines.join("\n"))
}
