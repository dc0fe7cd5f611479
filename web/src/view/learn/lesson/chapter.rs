//! A chapter: a lesson with sliders, as one page that scrolls beside its figure. A value that moves plays the
//! lesson again.

use blockyard_figure::{
    Changes, ReadRun, Size, Stage, StageForm, StageView, breakdown_text, read_timeline, read_timeline_text,
};
use blockyard_lessons::{LessonQuestion, PlayedCard, PlayedLesson, card_stage};
use blockyard_record::{Bytes, MemoryState, Recording, counted};
use blockyard_workload::Workload;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use super::answer::answer_field;
use super::over_time::OverTime;
use super::room::Rooms;
use super::slider::sliders;
use super::{bars, categories, exercise_view, question};
use crate::browser;
use crate::effect::effect;
use crate::lessons::{GivenAnswer, OpenLesson, color_training, has_category, training_sums};
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::surface;
use crate::view::figure::stage::SMALL_PX;
use crate::view::kit::{button, click, flag, on, text};
use crate::view::learn::practice;
use crate::view::prose;

/// The figure grows to this height beside the text.
const HIGH_PX: f32 = 420.0;

/// The places of these categories.
const PARAMETERS: usize = 0;
const GRADIENTS: usize = 1;
const ACTIVATIONS: usize = 3;

/// A run of fewer steps than this has no figure over time.
pub(super) const FEW_STEPS: usize = 20;

/// The chapter as the reader has set it; a handle that is copied freely.
#[derive(Clone, Copy)]
struct Chapter {
    session: Session,
    lesson: StoredValue<PtrEq<OpenLesson>>,
    /// The lesson at these positions; `None` where the text of a reader's own lesson is wrong there.
    played: Memo<Option<PtrEq<PlayedLesson>>>,
    /// The cards whose answer is not shown yet.
    asked: RwSignal<Vec<bool>>,
    rooms: Rooms,
    /// The card that is read, as the window's place last said or as a link did.
    seen: StoredValue<usize>,
    /// A card that was answered or moved before it came to the line of reading: it is read while it is in the
    /// window.
    held: StoredValue<Option<usize>>,
}

/// A canvas in its area, with its words for people who do not see it.
fn drawn(
    class: &'static str,
    id: &'static str,
    area: NodeRef<html::Div>,
    canvas: NodeRef<html::Canvas>,
    words: Signal<String>,
    is_hidden: Signal<bool>,
) -> AnyView {
    view! {
        <div class=class node_ref=area hidden=is_hidden>
            <canvas node_ref=canvas role="img" data-testid=id aria-label=words></canvas>
        </div>
    }
    .into_any()
}

pub(super) fn chapter(session: Session, lesson: &PtrEq<OpenLesson>) -> AnyView {
    let lessons = session.lessons();
    let positions = lessons.positions;
    let moved = lesson.clone();
    let played = Memo::new(move |_| moved.moved(&positions.get()).ok().map(PtrEq::new));
    let is_open = |(card, played): (usize, &blockyard_lessons::PlayedCard)| {
        let question = played.question.as_ref();
        question.is_some_and(|question| lessons.answer_to(&lesson.id, card, question).is_none())
    };
    let asked = RwSignal::new(lesson.cards.iter().enumerate().map(is_open).collect::<Vec<_>>());
    // A link may show answers.
    effect(move || {
        let revealed = lessons.revealed.get();
        let is_shown = |(card, is_asked): (usize, &bool)| *is_asked && revealed.contains(&card);
        if asked.with_untracked(|asked| asked.iter().enumerate().any(is_shown)) {
            asked.update(|asked| {
                asked.iter_mut().enumerate().for_each(|(card, asked)| *asked &= !revealed.contains(&card));
            });
        }
    });
    let kept = StoredValue::new(lesson.clone());
    let rooms = Rooms::new(kept);
    let (seen, held) = (StoredValue::new(0), StoredValue::new(None));
    let shown = Chapter { session, lesson: kept, played, asked, rooms, seen, held };
    shown.follow_scroll();
    let read = Memo::new(move |_| lessons.state.with(|state| state.card));
    effect(move || rooms.make(read.get()));
    let cards = (0..lesson.cards.len()).map(|card| shown.card_view(card)).collect::<Vec<_>>();
    let next = lessons.neighbor(true);
    let next_words = next.map_or_else(|| "All lessons".to_owned(), |next| format!("Next: {}", next.title()));
    view! {
        <section class="lesson-stage" aria-label="Memory of the device">
            <div class="lesson-figures">
                <div class="lesson-head">
                    <h1>{lesson.title.clone()}</h1>
                    <span class="quiet" data-testid="chapter-position">{text(move || shown.position())}</span>
                    {crate::view::teach::present::present_button(session)}
                </div>
                {shown.figure()}
            </div>
        </section>
        <section class="lesson-card" aria-label="Chapter">
            {cards}
            <p>{button("primary large", "card-next", next_words, "", click(move || session.lessons().show_next()))}</p>
        </section>
    }
    .into_any()
}

impl Chapter {
    /// Whether the question of a card waits for its answer. Reads signals.
    fn is_asked(self, card: usize) -> bool {
        self.asked.with(|asked| asked.get(card).copied().unwrap_or(false))
    }

    /// The card that is read, and how many questions are open: `Card 3 of 9, 2 questions left`. Reads signals.
    fn position(self) -> String {
        let card = self.session.lessons().state.with(|state| state.card);
        let count = self.lesson.with_value(|lesson| lesson.cards.len());
        let left = match self.asked.with(|asked| asked.iter().filter(|is_asked| **is_asked).count()) {
            0 => String::new(),
            left => format!(", {} left", counted(left, "question")),
        };
        format!("Card {} of {count}{left}", card + 1)
    }

    fn set_asked(self, card: usize, is_asked: bool) {
        self.session.lessons().revealed.update(|revealed| {
            if is_asked {
                revealed.remove(&card);
            } else {
                revealed.insert(card);
            }
        });
        self.asked.update(|asked| {
            if let Some(asked) = asked.get_mut(card) {
                *asked = is_asked;
            }
        });
    }

    /// Whether a card is hidden, because an open question of its run comes before it: its words would answer
    /// the question. Exercises do not wait. Reads signals.
    fn waits(self, card: usize) -> bool {
        let is_exercise =
            |lesson: &PtrEq<OpenLesson>| lesson.cards.get(card).is_some_and(|card| card.exercise.is_some());
        self.shown_card(card) != card && !self.lesson.with_value(is_exercise)
    }

    /// Shows the answer to the question of a card. The focus goes to the words about it, since the buttons are
    /// disabled by then.
    fn reveal(self, card: usize) {
        self.set_asked(card, false);
        self.hold(card);
        let said = format!("[data-card='{card}'] [data-testid=answer]");
        let _ = browser::after_millis(0, move || browser::focus_first(&said));
    }

    /// Reads a card below the line of reading, so that the figure shows what the reader does there.
    fn hold(self, card: usize) {
        self.held.set_value(Some(card));
        if self.seen.get_value() != card {
            self.seen.set_value(card);
            self.session.lessons().see_card(card);
        }
    }

    /// Keeps the card of the session equal to the card that is read, and scrolls to a card that a link opens.
    fn follow_scroll(self) {
        let lessons = self.session.lessons();
        let (seen, held) = (self.seen, self.held);
        effect(move || {
            let card = lessons.state.with(|state| state.card);
            if seen.get_value() != card {
                seen.set_value(card);
                // A card that waits for an answer has nothing to show yet.
                let shown = if self.waits(card) { self.shown_card(card) } else { card };
                let to = format!("[data-card='{shown}']");
                let _ = browser::after_millis(40, move || browser::scroll_to(&to));
            }
        });
        let listener = window_event_listener(ev::scroll, move |_| {
            // The figure covers the upper part of a narrow window.
            let is_narrow = self.session.appearance().is_narrow.get_untracked();
            let line = if is_narrow { 0.5 } else { 0.3 };
            let last_above = |line: f64| {
                let card = browser::last_above("[data-card]:not([hidden])", line)?;
                card.get_attribute("data-card")?.parse::<usize>().ok()
            };
            let Some(mut card) = last_above(line) else { return };
            let Some(of_reader) = held.try_get_value() else { return };
            match of_reader {
                Some(of_reader) if card < of_reader && last_above(0.9) >= Some(of_reader) => card = of_reader,
                Some(_) => held.set_value(None),
                None => {}
            }
            if seen.try_get_value().is_some_and(|before| before != card) {
                seen.set_value(card);
                lessons.see_card(card);
            }
        });
        on_cleanup(move || listener.remove());
    }

    /// The card whose moment is shown while a card is read: an earlier card of its run, if a question there is
    /// open, since a later moment would answer the question. Reads signals.
    fn shown_card(self, card: usize) -> usize {
        let run_of =
            |card: usize| self.lesson.with_value(|lesson| lesson.cards.get(card).map(|card| card.run));
        (0..card).find(|before| self.is_asked(*before) && run_of(*before) == run_of(card)).unwrap_or(card)
    }

    /// The memory at the moment of the card that is read.
    fn figure(self) -> AnyView {
        let session = self.session;
        let area = NodeRef::<html::Div>::new();
        let canvas = NodeRef::<html::Canvas>::new();
        let size = surface::size_of(area);
        let stage = Memo::new(move |_| {
            if self.shows_own_run() {
                return session.with_state(|run, state| {
                    let stage = Stage::new(state, &run.recording, &Changes::default(), None, &|_| None);
                    let stage = stage.for_one_moment().with_leaders();
                    let words = breakdown_text(state, &run.recording);
                    // The device of a program is without these parts.
                    let stage = match session.lessons().non_pytorch() {
                        Some(outside) => stage
                            .as_process(outside.size, Bytes::ZERO, false)
                            .with_non_pytorch_parts(&outside.parts),
                        None => stage,
                    };
                    (stage, words)
                });
            }
            let (played, card) = self.shown_moment()?;
            let (stage, words) = card_stage(&played, card, self.is_asked(card)).ok()??;
            Some((stage.with_ruler_to_peak(self.room(&played, card, self.last_seen(&played, card))), words))
        });
        surface::keep_drawn(session, canvas, size, move |size: Size| {
            let (form, least_height_px) = if size.width_px < SMALL_PX {
                (StageForm::Small, 0.0)
            } else {
                (StageForm::Compact, HIGH_PX)
            };
            let lit = session.figures().lit.get();
            let view = StageView { form, lit, least_height_px, ..StageView::default() };
            let mut scene =
                stage.with(|stage| stage.as_ref().map(|(stage, _)| stage.scene(&view, size.width_px)))?;
            self.with_training(|workload, recording, state| {
                color_training(&mut scene, workload, recording, state);
            });
            Some(scene)
        });
        let sums = Memo::new(move |_| self.with_training(training_sums).unwrap_or_default());
        let has_none = flag(move || sums.get().iter().all(|sum| sum.is_zero()));
        let beside = Memo::new(move |_| {
            let shown =
                self.shown_moment().filter(|(_, card)| !self.is_asked(*card) && !self.shows_own_run());
            let bars = shown.map(|(played, card)| {
                let run = |index: usize| played.runs.get(index).map(|run| (&run.workload, &run.recording));
                bars::of_card(&played.cards, card, run)
            });
            bars.unwrap_or_default()
        });
        let words =
            text(move || stage.with(|stage| stage.as_ref().map(|stage| stage.1.clone()).unwrap_or_default()));
        view! {
            <div class="chapter-figure">
                {drawn("", "chapter-figure", area, canvas, words, flag(|| false))}
                {bars::bars(beside)}
                {self.over_time()}
                {categories(sums, has_none)}
            </div>
        }
        .into_any()
    }

    /// The run of the shown moment over time, up to the first open question about it; at the exercise, the
    /// run of the reader's lines over the run before it.
    fn over_time(self) -> AnyView {
        let area = NodeRef::<html::Div>::new();
        let canvas = NodeRef::<html::Canvas>::new();
        let size = surface::size_of(area);
        let run = Memo::new(move |_| {
            if self.shows_own_run() {
                return self.session.lessons().state.with(|state| {
                    let run = state.graded.as_ref()?.run.clone()?;
                    Some(PtrEq::new(OverTime::of_exercise(run, state.run_before.as_deref())))
                });
            }
            let (played, card) = self.shown_moment()?;
            let index = played.cards.get(card)?.run;
            // A slider does not take the figure away.
            let steps = |lesson: &PtrEq<OpenLesson>| Some(lesson.runs.get(index)?.recording.step_count());
            let is_long = self.lesson.with_value(steps)? >= FEW_STEPS;
            is_long.then(|| OverTime::of(played, index))?.map(PtrEq::new)
        });
        // The room of the axis, the step up to which the reader sees the run, and the step of the moment.
        let moment = Memo::new(move |_| {
            if self.shows_own_run() {
                let run = run.get()?;
                let most = run.before.iter().copied().max().unwrap_or_default();
                return Some((most.max(run.series.peaks().1), None, run.series.step_count()));
            }
            let (played, card) = self.shown_moment()?;
            let shown = played.cards.get(card)?;
            let last = self.last_seen(&played, card);
            let step = shown.shown_step(self.is_asked(card));
            Some((self.room(&played, card, last), last, step))
        });
        surface::keep_drawn(self.session, canvas, size, move |size: Size| {
            let (run, (highest, last, step)) = (run.get()?, moment.get()?);
            let (groups, before) = (run.groups.clone(), run.before.clone());
            let read = ReadRun { last, highest, groups, before };
            Some(read_timeline(&run.series, run.recording()?, &read, step, size))
        });
        let words = text(move || {
            // The words about the whole run would answer a question.
            if moment.get().is_some_and(|(_, last, _)| last.is_some()) {
                return "Memory over time, up to the open question.".to_owned();
            }
            run.with(|run| {
                let run = run.as_ref()?;
                Some(read_timeline_text(&run.series, run.recording()?))
            })
            .unwrap_or_default()
        });
        let is_hidden = flag(move || run.with(Option::is_none));
        drawn("chapter-curve", "chapter-curve", area, canvas, words, is_hidden)
    }

    /// The cards whose runs are compared with the run of a card: all runs of a model with its activations have
    /// one scale, and any other run has its own.
    fn compared(self, card: usize) -> Vec<usize> {
        self.lesson.with_value(|lesson| {
            let is_of_model = |card: usize| {
                let run = lesson.run(card);
                let has = |place| run.as_ref().is_some_and(|run| has_category(&run.workload, place));
                has(PARAMETERS) && has(ACTIVATIONS)
            };
            let is_model = is_of_model(card);
            let is_compared = |other: &usize| *other == card || is_model && is_of_model(*other);
            (0..lesson.cards.len()).filter(is_compared).collect()
        })
    }

    /// The most that these runs reserve at any place of the sliders.
    fn highest(self, compared: &[usize]) -> Bytes {
        let peak = |card: &usize| self.lesson.with_value(|lesson| lesson.peak(*card, false));
        compared.iter().map(peak).max().unwrap_or_default()
    }

    /// The step up to which the reader sees the run of a card: where the first open question about it is asked.
    /// Reads signals.
    fn last_seen(self, played: &PlayedLesson, shown: usize) -> Option<usize> {
        let run = played.cards.get(shown)?.run;
        let is_open = |(index, card): &(usize, &PlayedCard)| card.run == run && self.is_asked(*index);
        played.cards.iter().enumerate().find(is_open).map(|(_, card)| card.steps.start)
    }

    /// The bytes that the figures have room for: what the compared runs reserve where the sliders stand, up
    /// to `last` steps of the run that is shown, in whole quarters of the most, at least one, so that a
    /// slider that moves a little leaves the scale.
    fn room(self, played: &PlayedLesson, shown: usize, last: Option<usize>) -> Bytes {
        let compared = self.compared(shown);
        let run_of = |card: usize| played.cards.get(card).map(|card| card.run);
        let reserved = |card: &usize| {
            let run = run_of(*card)?;
            let steps = last.filter(|_| run_of(shown) == Some(run)).unwrap_or(usize::MAX);
            let after = played.runs.get(run)?.recording.breakdowns_from(0).take(steps);
            after.map(|breakdown| breakdown.reserved()).max()
        };
        let most = compared.iter().filter_map(reserved).max().unwrap_or_default();
        let quarter = self.highest(&compared).get().div_ceil(4).max(1);
        Bytes::new(quarter.saturating_mul(most.get().div_ceil(quarter).max(1)))
    }

    /// Whether the figure shows the run of the reader's lines, which it does at the exercise. Reads signals.
    fn shows_own_run(self) -> bool {
        self.session.lessons().state.with(|state| state.has_run() && state.card == state.exercise_card)
    }

    /// The lesson at the places of its sliders, and the card whose moment the figure shows. Reads signals.
    fn shown_moment(self) -> Option<(PtrEq<PlayedLesson>, usize)> {
        let card = self.session.lessons().state.with(|state| state.card);
        Some((self.played.get()?, self.shown_card(card)))
    }

    /// Reads the run of the card whose moment the figure shows, and the memory at that moment, if the run is a
    /// training with gradients or activations: a single weight needs no categories. Reads signals.
    fn with_training<T>(self, read: impl FnOnce(&Workload, &Recording, &MemoryState) -> T) -> Option<T> {
        let (played, card) = self.shown_moment().filter(|_| !self.shows_own_run())?;
        let shown = played.cards.get(card)?;
        let of_step =
            |workload: &Workload| [GRADIENTS, ACTIVATIONS].iter().any(|place| has_category(workload, *place));
        let run = played.runs.get(shown.run).filter(|run| of_step(&run.workload))?;
        let step = shown.shown_step(self.is_asked(card));
        let events = step.checked_sub(1).and_then(|last| run.recording.step(last)).map_or(0, |step| step.end);
        let state = run.recording.state_at(events).ok()?;
        Some(read(&run.workload, &run.recording, &state))
    }

    fn card_view(self, card: usize) -> AnyView {
        let session = self.session;
        let (title, question, exercise, sliders) = self.lesson.with_value(|lesson| {
            let shown = lesson.cards.get(card);
            (
                shown.map(|shown| shown.title.clone()).unwrap_or_default(),
                shown.and_then(|shown| shown.question.clone()),
                shown.and_then(|shown| shown.exercise.clone()),
                sliders(session, &lesson.sliders, card),
            )
        });
        let words = Memo::new(move |before: Option<&Vec<_>>| {
            let played = self.played.get();
            let now = played.and_then(|played| Some(played.cards.get(card)?.body.clone()));
            now.or_else(|| before.cloned()).unwrap_or_default()
        });
        let body = move || words.with(|words| prose::blocks(session, words));
        let question = question.map(|question| self.question_view(card, &question));
        let exercise = exercise.map(|exercise| exercise_view(session, exercise));
        let is_asked = flag(move || self.is_asked(card));
        // Of several cards that wait, the first says so.
        let waits = flag(move || self.waits(card));
        let is_hidden =
            flag(move || waits.get() && card.checked_sub(1).is_some_and(|before| self.waits(before)));
        view! {
            <section
                class="chapter-card"
                data-card=card.to_string()
                hidden=is_hidden
                on:input=on(move |_: ev::Event| self.hold(card))
            >
                <p class="quiet" hidden=flag(move || !waits.get())>
                    "What follows from the question above comes after its answer."
                </p>
                <div class="chapter-body" hidden=waits>
                <h2 data-testid="card-title" tabindex="-1">
                    {move || {
                        if is_asked.get() { "What will happen?".into_any() } else { prose::inlines(session, &title).into_any() }
                    }}
                </h2>
                {question}
                <div class="chapter-answer" hidden=is_asked>
                    <div class="prose-room">
                        <div class="prose" data-testid="card-body">{body}</div>
                        {self.rooms.view(session, card)}
                    </div>
                    {sliders}
                </div>
                {exercise}
                </div>
            </section>
        }
        .into_any()
    }

    /// A question with its answer. A size is drawn on a ruler, and the answer lies over it.
    fn question_view(self, card: usize, question: &LessonQuestion) -> AnyView {
        let session = self.session;
        let id = self.lesson.with_value(|lesson| lesson.id.clone());
        let given = RwSignal::new(session.lessons().answer_to(&id, card, question));
        let problem = RwSignal::new(String::new());
        let asked = StoredValue::new(question.clone());
        let remembered = StoredValue::new(id);
        let answer = StoredValue::new_local(move |answer: &str| {
            match asked.with_value(|question| GivenAnswer::new(question, answer)) {
                Ok(new) => {
                    remembered.with_value(|id| {
                        session.lessons().remember_answer(id, card, Some(&new.raw));
                        session.lessons().add_to_practice(id, card, new.is_right);
                    });
                    problem.set(String::new());
                    given.set(Some(new));
                    self.reveal(card);
                }
                Err(why) => problem.set(why),
            }
        });
        let is_done = flag(move || !self.is_asked(card));
        let field = answer_field(question, given, is_done, answer);
        let result = move || {
            if self.is_asked(card) {
                return view! { <p class="error" role="status">{problem.get()}</p> }.into_any();
            }
            let (class, words) = asked.with_value(|question| match given.get() {
                Some(given) if given.is_right => {
                    ("verdict is-right", question::answer_sentence(question, &given))
                }
                Some(given) => ("verdict is-wrong", question::answer_sentence(question, &given)),
                None => ("verdict", format!("The answer is: {}", question::stopped(&question.right))),
            });
            let because = asked.with_value(|question| prose::inlines(session, &question.because));
            view! { <p class=class role="status" data-testid="answer" tabindex="-1">{words}" "{because}</p> }
                .into_any()
        };
        let again = click(move || {
            remembered.with_value(|id| session.lessons().remember_answer(id, card, None));
            given.set(None);
            self.set_asked(card, true);
        });
        let is_asked = Memo::new(move |_| self.is_asked(card));
        let more = move || {
            let another = || self.lesson.with_value(|lesson| practice::another(session, lesson, card));
            (!is_asked.get()).then(another)
        };
        view! {
            <section class="predict" aria-label=format!("Question of card {}", card + 1)>
                <h3>"Predict"</h3>
                <p>{prose::inlines(session, &question.text)}</p>
                {field}
                {result}
                <p>
                    <span hidden=is_done>{button("link", "reveal", "Show me", "", click(move || self.reveal(card)))}</span>
                    <span hidden=flag(move || self.is_asked(card))>{button("link", "ask-again", "Answer again", "", again)}</span>
                </p>
                {more}
            </section>
        }
        .into_any()
    }
}
