//! The stage on a canvas. A step dissolves into the next one, and pointing at a part describes it.

use blockyard_figure::{
    BreakdownClass, MapView, Point, Rect, Scene, Size, Stage, StageForm, StageView, TargetId, Term,
    breakdown_text, describe_target, process_stage_height, stage_height,
};
use blockyard_record::{BlockId, Bytes};
use leptos::html;
use leptos::prelude::*;
use web_sys::MouseEvent;

use crate::effect::effect;
use crate::frames::{self, Slot};
use crate::lessons::Presentation;
use crate::program::ProgramResult;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::story::{CONTEXT, Story};
use crate::surface::{self, DrawnScene};
use crate::view::figure::dissolve::Dissolve;
use crate::view::figure::drag::Drag;
use crate::view::figure::gesture::{self, Gesture};
use crate::view::figure::resize_drag::ResizeDrag;
use crate::view::figure::tip::Tip;
use crate::view::kit::text;

/// The fewest bytes that the ruler of a lesson about a process shows.
const MIN_SHOWN: Bytes = Bytes::mib(64);

/// The canvas and the scene that is drawn on it; a handle that is copied freely.
#[derive(Clone, Copy)]
struct StageCanvas {
    session: Session,
    canvas: NodeRef<html::Canvas>,
    drawn: DrawnScene,
    dissolve: Dissolve,
}

/// The stage at the moment under the cursor. Reads signals.
fn stage_of(session: Session) -> Option<Stage> {
    let changes = session.changes.get();
    let step = {
        let run = session.run.get();
        session.player.with(|player| player.current_step(&run.recording))
    };
    let stage = session.with_state(|run, state| {
        let pool_name = |pool| run.workload.pool_name(pool).map(str::to_owned);
        let stage = Stage::new(state, &run.recording, &changes, step, &pool_name);
        let limit = session.player.with(|player| run.series.process_limit(player.steps));
        // A slider moves the memory, and not the ruler below it.
        let (lesson, card) = (session.open_lesson(), session.lessons().state.with(|state| state.card));
        let of_sliders = lesson.filter(|lesson| lesson.is_chapter()).map(|lesson| lesson.peak(card, true));
        let peak = run.series.peaks().1.max(of_sliders.unwrap_or_default());
        stage.with_limit(limit).with_ruler_to_peak(peak)
    })?;
    let stage = at_rest(session, stage);
    if let Some(non_pytorch) = session.lessons().non_pytorch() {
        return Some(stage.as_process_of_whole_device(&non_pytorch.parts, MIN_SHOWN));
    }
    if session.shows_story() {
        let (least_shown, is_first) =
            session.story().state.with(|story| (story.situation().least_shown, story.is_first()));
        return Some(stage.as_process(CONTEXT, least_shown, !is_first));
    }
    Some(match non_pytorch_of_program(session) {
        Some(program) => {
            let details = &program.details;
            stage
                .as_process(details.non_pytorch, Bytes::ZERO, false)
                .with_non_pytorch_parts(&details.non_pytorch_parts)
        }
        None => stage,
    })
}

/// The stage of a lesson's card where it stops: with the names of narrow blocks, and with the peak that the card
/// is about. Reads signals.
fn at_rest(session: Session, stage: Stage) -> Stage {
    let steps = session.player.with(|player| player.steps);
    let lesson = session.open_lesson().filter(|_| session.stop_at.get() == Some(steps));
    let Some(lesson) = lesson else { return stage };
    let card = session.lessons().state.with(|state| state.card);
    let is_peak = lesson.cards.get(card).is_some_and(|card| card.peak == Some(steps));
    let stage = stage.with_leaders();
    if is_peak { stage.at_peak() } else { stage }
}

/// The shown program, if the capacity of its device is without the non-PyTorch memory. Reads signals.
pub(crate) fn non_pytorch_of_program(session: Session) -> Option<PtrEq<ProgramResult>> {
    session.shown_program().filter(|program| !program.details.non_pytorch.is_zero())
}

/// Whether the stage shows the non-PyTorch memory of a process. Reads signals.
fn is_of_process(session: Session) -> bool {
    session.shows_story()
        || session.lessons().non_pytorch().is_some()
        || non_pytorch_of_program(session).is_some()
}

/// Whether the stage has all the height that a presentation leaves. Reads signals.
fn fills(session: Session) -> bool {
    session.lessons().presenting.get() != Presentation::No && !session.appearance().is_narrow.get()
}

/// A lesson's stage narrower than this is as low as it can be: text and figure stay in sight together.
pub(crate) const SMALL_PX: f32 = 560.0;

/// Which parts of the stage have room at this width. Reads signals.
fn form(session: Session, width_px: f32, is_compact: bool) -> StageForm {
    if width_px < SMALL_PX && session.open_lesson().is_some() && !fills(session) {
        StageForm::Small
    } else if fills(session) {
        StageForm::Projected
    } else if is_compact || is_of_process(session) {
        StageForm::Compact
    } else {
        StageForm::Full
    }
}

/// The stage at the moment under the cursor as a scene, for files and paper.
pub(crate) fn scene_now(session: Session, width_px: f32) -> Option<Scene> {
    untrack(|| {
        let stage = stage_of(session)?;
        let view = StageView { selected: session.figures().selected(), ..StageView::default() };
        let mut scene = stage.scene(&view, width_px);
        session.with_state(|_, state| session.lessons().color_blocks(&mut scene, state));
        Some(scene)
    })
}

pub(crate) fn stage(session: Session, is_compact: bool) -> AnyView {
    frames::forget_with_view(&[Slot::Stage]);
    let area = NodeRef::<html::Div>::new();
    let canvas = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let shown = StageCanvas {
        session,
        canvas,
        drawn: DrawnScene::new(),
        dissolve: Dissolve::new(session, Slot::Stage, canvas),
    };
    let tip = Tip::new();
    let resize = ResizeDrag::new(session, shown.drawn, tip, bytes_per_px);
    let pointer = StagePointer { shown, drag: Drag::new(session), resize, tip };
    gesture::listen(area, move |gesture, at, event| pointer.act(gesture, at, event));
    let height = Memo::new(move |_| {
        let run = session.run.get();
        let may_fail = session.shows_story() && !session.story().state.with(Story::is_first);
        let has_failures = may_fail || blockyard_figure::has_failures(&run.recording);
        let width_px = size.get().width_px;
        let form = form(session, width_px, is_compact);
        if is_of_process(session) {
            process_stage_height(width_px, has_failures, form)
        } else {
            stage_height(width_px, has_failures, form)
        }
    });
    effect(move || {
        if canvas.get().is_some() {
            shown.follow(size.get(), is_compact);
        }
    });
    let style = text(move || {
        // The page's letters may have grown, and with them the figure, while its own height stays.
        size.track();
        // A presented stage fills the height that the screen leaves (`--own` in the style sheet), and is at
        // least as high as the figure.
        let own = surface::on_page(height.get());
        format!("height:{own}px;--own:{own}px")
    });
    let label = text(move || {
        let words = session.with_state(|run, state| breakdown_text(state, &run.recording));
        let memory = session.with_state(|_, state| state.breakdown());
        let process = session.lessons().non_pytorch().zip(memory);
        let process = process.map(|(non_pytorch, memory)| non_pytorch.process_sentence(&memory));
        format!("{} {}", words.unwrap_or_default(), process.unwrap_or_default()).trim_end().to_owned()
    });
    view! {
        <div class="stage-figure" node_ref=area style=style>
            <canvas
                node_ref=canvas
                role="img"
                class=text(move || resize.class(""))
                data-testid="stage"
                aria-label=label
            ></canvas>
            {pointer.drag.view()}
            {pointer.tip.view()}
        </div>
    }
    .into_any()
}

/// The handlers of the pointer on the stage; a handle that is copied freely.
#[derive(Clone, Copy)]
struct StagePointer {
    shown: StageCanvas,
    drag: Drag,
    resize: ResizeDrag,
    tip: Tip,
}

/// The number of bytes that one pixel of the stage is. The stage has one scale, and it is computed from the
/// block's segment, which is wider than the block and so more precise.
fn bytes_per_px(session: Session, scene: &Scene, block: BlockId, _: &Rect) -> Option<f64> {
    let (segment, size) = session
        .with_state_now(|_, state| {
            let segment = state.segment_of(block)?;
            let found = state.segments().find(|info| info.id == segment)?;
            Some((segment, found.size))
        })
        .flatten()?;
    let drawn = scene.targets.iter().find(|target| target.what == TargetId::Segment(segment))?;
    Some(bytes_f64(size) / f64::from(drawn.rect.width_px.max(1.0)))
}

impl StagePointer {
    /// Does what the gesture means. The stage always shows all memory, so that it has no part to zoom or
    /// move.
    fn act(self, gesture: Gesture, at: Point, event: &MouseEvent) -> bool {
        match gesture {
            Gesture::Hover => self.hover(at, event),
            Gesture::Leave => self.left(),
            Gesture::Grab { .. } => {
                return self.resize.down(at, event) || self.drag.down(event, self.shown.target(at));
            }
            Gesture::Hold => {
                self.resize.hold(event);
                self.drag.hold(event);
            }
            Gesture::Drop => {
                self.resize.drop_at(event);
                self.drag.drop_at(event);
            }
            Gesture::Cancel => {
                self.resize.cancel();
                self.drag.cancel();
            }
            Gesture::Choose => self.choose(at),
            Gesture::Begin
            | Gesture::Zoom(_)
            | Gesture::Pan(_)
            | Gesture::Brush(_)
            | Gesture::Brushed(_)
            | Gesture::Whole => return false,
        }
        true
    }

    fn hover(self, at: Point, event: &MouseEvent) {
        self.resize.look(at, event);
        let session = self.shown.session;
        let target = self.shown.target(at);
        let words = target.and_then(|target| {
            session.with_state_now(|run, state| describe_target(target, state, &run.recording)).flatten()
        });
        self.tip.show(words, event);
        let lit = target.and_then(term_of);
        if session.figures().lit.get_untracked() != lit {
            session.figures().lit.set(lit);
        }
    }

    fn left(self) {
        self.tip.hide();
        self.shown.session.figures().lit.set(None);
    }

    fn choose(self, at: Point) {
        let session = self.shown.session;
        self.tip.hide();
        match self.shown.target(at) {
            Some(TargetId::Block(block)) => {
                let is_same = session.figures().selected_now() == Some(block);
                session.figures().select((!is_same).then_some(block));
            }
            Some(TargetId::PeakAllocated) => session.seek_peak(false),
            Some(TargetId::PeakReserved) => session.seek_peak(true),
            _ => session.figures().select(None),
        }
    }
}

impl StageCanvas {
    /// Shows the moment under the cursor at this width. Reads signals.
    fn follow(self, room: Size, is_compact: bool) {
        let width_px = room.width_px;
        if width_px < 1.0 {
            return;
        }
        let session = self.session;
        let view = StageView {
            lit: session.figures().lit.get(),
            selected: session.figures().selected(),
            form: form(session, width_px, is_compact),
            least_height_px: if fills(session) { room.height_px } else { 0.0 },
        };
        session.appearance().version.track();
        let Some(canvas) = self.canvas.get_untracked() else { return };
        if let Some(stage) = stage_of(session) {
            let mut scene = stage.scene(&view, width_px);
            session.with_state(|_, state| session.lessons().color_blocks(&mut scene, state));
            surface::fit(&canvas, &scene);
            // The targets are those of the next picture, so that the pointer reaches a part at its final
            // place.
            self.drawn.keep(scene.clone());
            self.dissolve.show(&MapView::default(), scene);
        }
    }

    /// The target at a place of the figure.
    fn target(self, at: Point) -> Option<TargetId> {
        self.drawn.look(|scene| scene.hit(at.x_px, at.y_px).map(|target| target.what))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a scale of pixels")]
pub(crate) fn bytes_f64(bytes: Bytes) -> f64 {
    bytes.get() as f64
}

/// The term that lights up under the pointer.
fn term_of(target: TargetId) -> Option<Term> {
    match target {
        TargetId::Term(term) => Some(term),
        TargetId::Class(BreakdownClass::Requested) => Some(Term::Allocated),
        TargetId::Class(class) => Some(Term::of_class(class)),
        TargetId::PeakAllocated => Some(Term::MaxAllocated),
        TargetId::PeakReserved => Some(Term::MaxReserved),
        _ => None,
    }
}
