//! The run as a narrow timeline with a slider, on which the reader moves the cursor.

use blockyard_figure::{Mark, Point, Size, describe_target, timeline_strip, timeline_strip_cursor};
use blockyard_record::MemoryState;
use leptos::html;
use leptos::prelude::*;
use web_sys::{HtmlCanvasElement, MouseEvent};

use crate::effect::effect;
use crate::frames::{self, Slot};
use crate::lessons::Presentation;
use crate::run::Run;
use crate::session::Session;
use crate::surface::{self, DrawnScene};
use crate::view::figure::gesture::{self, Gesture};
use crate::view::figure::over_time::{OverTime, TimeAxis};
use crate::view::figure::timeline::moment_text;
use crate::view::figure::tip::Tip;
use crate::view::workbench::player;

pub(crate) fn scrubber(session: Session) -> AnyView {
    frames::forget_with_view(&[Slot::Seek]);
    let area = NodeRef::<html::Div>::new();
    let base = NodeRef::<html::Canvas>::new();
    let overlay = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let strip = ScrubberStrip {
        over_time: OverTime { session, size, axis: TimeAxis::Strip },
        drawn: DrawnScene::new(),
        tip: Tip::new(),
    };
    gesture::listen(area, move |gesture, at, event| strip.act(gesture, at, event));
    effect(move || {
        if let Some(canvas) = base.get() {
            strip.draw_run(&canvas);
        }
    });
    // The cursor is on a separate canvas, so that the run is not drawn again when the cursor moves.
    let steps = Memo::new(move |_| session.player.with(|player| player.steps));
    effect(move || {
        if let Some(canvas) = overlay.get() {
            strip.draw_cursor(&canvas, steps.get());
        }
    });
    view! {
        <div class="scrubber">
            <div class="strip" node_ref=area>
                <canvas node_ref=base aria-hidden="true"></canvas>
                <canvas node_ref=overlay class="overlay" aria-hidden="true"></canvas>
            </div>
            {player::slider(session)}
            {strip.tip.view()}
        </div>
    }
    .into_any()
}

/// The strip and its pointer; a handle that is copied freely.
#[derive(Clone, Copy)]
struct ScrubberStrip {
    over_time: OverTime,
    drawn: DrawnScene,
    tip: Tip,
}

impl ScrubberStrip {
    fn draw_run(self, canvas: &HtmlCanvasElement) {
        let Some((session, size)) = self.room() else { return };
        let (run, view) = (session.run.get(), session.figures().timeline_view_or_fit());
        let mut scene = timeline_strip(&run.series, &run.recording, &view, size);
        // The title of the card on the screen is large enough.
        if session.lessons().presenting.get() != Presentation::No {
            scene.marks.retain(|mark| !matches!(mark, Mark::Text { .. }));
        }
        surface::show(session, canvas, &scene);
        self.drawn.keep(scene);
    }

    fn draw_cursor(self, canvas: &HtmlCanvasElement, steps: usize) {
        let Some((session, size)) = self.room() else { return };
        let (view, range) = (session.figures().timeline_view_or_fit(), session.figures().drawn_range());
        let scene = timeline_strip_cursor(&view, steps, range, session.lessons().hidden_after(), size);
        surface::show(session, canvas, &scene);
    }

    /// The session and the size of the strip, once it has one. Reads signals.
    fn room(self) -> Option<(Session, Size)> {
        let OverTime { session, size, .. } = self.over_time;
        Some((session, size.get())).filter(|(_, size)| size.width_px >= 1.0)
    }

    fn act(self, gesture: Gesture, at: Point, event: &MouseEvent) -> bool {
        match gesture {
            Gesture::Hover => self.hover(at, event),
            _ => self.tip.hide(),
        }
        self.over_time.act(gesture, at)
    }

    fn hover(self, at: Point, event: &MouseEvent) {
        let session = self.over_time.session;
        let step = self.over_time.moment(at.x_px);
        if untrack(|| session.lessons().hidden_after()).is_some_and(|last| step > last) {
            return self.tip.hide();
        }
        let target = self.drawn.look(|scene| scene.hit(at.x_px, at.y_px).map(|target| target.what));
        let words = target.and_then(|target| {
            let described = |run: &Run, state: &MemoryState| describe_target(target, state, &run.recording);
            session.with_state_now(described).flatten()
        });
        self.tip.show(words.or_else(|| moment_text(session, step)), event);
    }
}
