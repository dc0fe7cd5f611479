//! A lesson: the card beside the stage that shows the card's run.

mod answer;
mod bars;
mod chapter;
mod curve;
mod exercise_run;
mod over_time;
mod question;
mod room;
mod slider;

use blockyard_figure::{PlayerAction, Term};
use blockyard_lessons::{Exercise, ExerciseLanguage, Inline, TextBlock, with_code};
use blockyard_record::Bytes;
use leptos::ev;
use leptos::prelude::*;

pub(crate) use self::answer::answer_field;
pub(crate) use self::question::{answer_sentence, stopped};
use crate::browser;
use crate::effect::effect;
use crate::lessons::{LessonState, OpenLesson, region};
use crate::messages::sentence;
use crate::navigation::Embed;
use crate::program::CATEGORIES;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::view::figure::scrubber::scrubber;
use crate::view::figure::stage::stage;
use crate::view::icon::Icon;
use crate::view::indent;
use crate::view::kit::{button, click, flag, icon_button, on, text};
use crate::view::learn::term_row::term_row;
use crate::view::prose;
use crate::view::teach::present::{fit_card, follow_speaker, over_card, present_button};
use crate::view::workbench::lab;
use crate::view::workbench::step::step_text;

/// The terms that lessons use. The workbench has all terms.
const TERMS: &[Term] =
    &[Term::Allocated, Term::Reserved, Term::Cached, Term::Free, Term::MaxAllocated, Term::MaxReserved];

pub(crate) fn lesson(session: Session) -> AnyView {
    let is_chapter = Memo::new(move |_| session.lessons().is_chapter());
    // A slider that moves keeps the elements of its lesson, and so the focus.
    let opened = Memo::new_with_compare(
        move |_| session.open_lesson(),
        |before, after| match (before.and_then(Option::as_ref), after.and_then(Option::as_ref)) {
            (Some(before), Some(after)) => before != after && !before.is_same(after),
            (before, after) => before.is_some() || after.is_some(),
        },
    );
    let content = move || {
        let is_chapter = is_chapter.get();
        opened.with(|_| ());
        // What is read while the view is made does not make it again.
        untrack(|| {
            let lesson = session.open_lesson()?;
            Some(if is_chapter { chapter::chapter(session, &lesson) } else { lesson_view(session, &lesson) })
        })
    };
    let swipe = Swipe::new(session);
    follow_speaker(session);
    view! {
        <main
            class="lesson"
            class:is-chapter=is_chapter
            on:pointerdown=on(move |event: ev::PointerEvent| swipe.down(&event))
            on:pointerup=on(move |event: ev::PointerEvent| swipe.up(&event))
            on:pointercancel=on(move |_: ev::PointerEvent| swipe.cancel())
        >
            {content}
        </main>
    }
    .into_any()
}

/// The title of the strip with the meaning of its colors, since the strip is too low for names in its areas.
fn strip_title(session: Session) -> AnyView {
    // A failure that a question hides is not named either.
    let without_failure = flag(move || {
        let last = session.lessons().hidden_after();
        !session.run.with(|run| run.has_failed_before(last))
    });
    let key = |class: &'static str, name: &'static str| {
        view! { <span><span class=class aria-hidden="true"></span>{name}</span> }
    };
    view! {
        <p class="strip-title quiet">
            <span>"Memory over the steps:"</span>
            {key("swatch is-requested", "allocated")}
            {key("swatch is-cached", "cached")}
            <span hidden=without_failure>{key("swatch is-failure", "request that failed")}</span>
        </p>
    }
    .into_any()
}

/// A finger that moves sideways shows the next or the previous card.
#[derive(Clone, Copy)]
struct Swipe {
    session: Session,
    /// The pointer's id, and where the finger went down, in the window.
    start_px: StoredValue<Option<(i32, f64, f64)>>,
}

/// The least distance sideways that is a swipe.
const SWIPE_PX: f64 = 56.0;
/// The largest distance up or down that a swipe may have.
const DRIFT_PX: f64 = 44.0;

impl Swipe {
    fn new(session: Session) -> Self {
        Self { session, start_px: StoredValue::new(None) }
    }

    fn down(self, event: &ev::PointerEvent) {
        // In these elements a finger scrolls, seeks or selects.
        let has_other_use = browser::target_of(event).is_some_and(|element| {
            element.closest(".scrubber, textarea, input, pre").ok().flatten().is_some()
        });
        let is_finger = event.pointer_type() == "touch" && event.is_primary();
        let place = (event.pointer_id(), f64::from(event.client_x()), f64::from(event.client_y()));
        self.start_px.set_value((is_finger && !has_other_use).then_some(place));
    }

    fn up(self, event: &ev::PointerEvent) {
        let start_px = self.start_px.get_value().filter(|_| !untrack(|| self.session.lessons().is_chapter()));
        let Some((finger, x, y)) = start_px else { return };
        self.cancel();
        let (right, down) = (f64::from(event.client_x()) - x, f64::from(event.client_y()) - y);
        if finger != event.pointer_id() || right.abs() < SWIPE_PX || down.abs() > DRIFT_PX {
            return;
        }
        let card = self.session.lessons().state.with_untracked(|state| state.card);
        let count = untrack(|| self.session.open_lesson()).map_or(0, |lesson| lesson.cards.len());
        if right < 0.0 && card + 1 < count {
            self.session.lessons().show_card(card + 1);
        } else if right < 0.0 {
            self.session.lessons().show_next();
        } else if right > 0.0 && card > 0 {
            self.session.lessons().show_card(card - 1);
        }
    }

    fn cancel(self) {
        self.start_px.set_value(None);
    }
}

fn lesson_view(session: Session, lesson: &PtrEq<OpenLesson>) -> AnyView {
    let card_of = Memo::new(move |_| session.lessons().state.with(|state| state.card));
    let title = lesson.title.clone();
    let body = move || {
        let card = card_of.get();
        untrack(|| card_view(session, &session.open_lesson()?, card))
    };
    let head = NodeRef::new();
    fit_card(session, head);
    // A card begins at its top, however far down the card before was read.
    let mut before = None;
    effect(move || {
        let card = card_of.get();
        if before.replace(card).is_some_and(|before| before != card) {
            let _ = browser::after_millis(0, || browser::scroll_to(".lesson-card"));
        }
    });
    view! {
        <section class="lesson-stage" aria-label="Memory of the device">
            <div class="lesson-figures">
                <div class="lesson-head" node_ref=head>
                    <h1>{title}</h1>
                    {present_button(session)}
                </div>
                {strip_title(session)}
                {scrubber(session)}
                {curve::projected_curve(session)}
                {stage(session, false)}
                {categories(
                    Memo::new(move |_| session.lessons().categories()),
                    flag(move || session.lessons().has_no_categories()),
                )}
                {bars::bars(Memo::new(move |_| {
                    let lesson = session.open_lesson().filter(|_| !session.lessons().is_asked());
                    let bars = lesson.map(|lesson| {
                        let run = |index: usize| lesson.runs.get(index).map(|run| (&run.workload, &*run.recording));
                        bars::of_card(&lesson.cards, card_of.get(), run)
                    });
                    bars.unwrap_or_default()
                }))}
                {step_line(session)}
                {lab::helps(session)}
                {term_row(session, TERMS)}
            </div>
        </section>
        <section class="lesson-card" aria-label="Lesson">{body}</section>
        {card_buttons(session, card_of)}
        {over_card(session)}
    }
    .into_any()
}

/// The legend of the blocks' colors in a lesson about a training, with the bytes of each category. In a lesson
/// with categories, the row of the legend keeps its height while nothing is allocated.
fn categories(sums: Memo<[Bytes; CATEGORIES.len()]>, is_hidden: Signal<bool>) -> AnyView {
    let entries = move || {
        let present =
            CATEGORIES.iter().zip(sums.get()).enumerate().filter(|(_, (_, bytes))| !bytes.is_zero());
        let entry = |(index, (name, bytes)): (usize, (&&'static str, Bytes))| {
            view! {
                <li class=format!("category-{index}")>
                    <span class="name">{*name}</span>
                    " "
                    <span class="value">{bytes.to_string()}</span>
                </li>
            }
            .into_any()
        };
        present.map(entry).collect::<Vec<_>>()
    };
    view! {
        <div class="categories is-legend" hidden=is_hidden>
            <ul aria-label="Allocated bytes by category" data-testid="lesson-categories">{entries}</ul>
        </div>
    }
    .into_any()
}

/// The step under the cursor in one line, and on request the attempts of the allocator before a request
/// failed. The line names the event; the card explains the reason.
fn step_line(session: Session) -> AnyView {
    let words = Memo::new(move |_| {
        let run = session.run.get();
        let step = session.player.with(|player| player.current_step(&run.recording));
        let Some(step) = step else {
            return ("The device before the first step.".to_owned(), String::new());
        };
        let words = step_text(&run, step);
        let (tried, said) = match words.failure {
            Some(failure) => (failure.tried, failure.why),
            None => (String::new(), words.sentence),
        };
        let tried = if tried.is_empty() { tried } else { sentence(&tried) };
        // A chapter speaks PyTorch alone, and the title is a statement of the workload language.
        let is_chapter = session.open_lesson().is_some_and(|lesson| lesson.is_chapter());
        let title = if is_chapter { String::new() } else { format!("{}. ", words.title) };
        (title + &sentence(&said), tried)
    });
    view! {
        <div class="step-words">
            <p data-testid="step-sentence">{text(move || words.with(|words| words.0.clone()))}</p>
            <details hidden=flag(move || words.with(|words| words.1.is_empty()))>
                <summary>"What was tried before"</summary>
                <p data-testid="step-tried">{text(move || words.with(|words| words.1.clone()))}</p>
            </details>
        </div>
    }
    .into_any()
}

fn card_view(session: Session, lesson: &PtrEq<OpenLesson>, card: usize) -> Option<AnyView> {
    let played = lesson.cards.get(card)?;
    let counted = lesson.clone();
    let position = text(move || session.lessons().card_position(&counted, card));
    let question = played.question.clone().map(|question| question::question_view(session, question));
    let exercise = played.exercise.clone().map(|exercise| exercise_view(session, exercise));
    let sliders = slider::sliders(session, &lesson.sliders, card);
    // The words of the card, with the sliders where they stand.
    let words = Memo::new(move |before: Option<&(Vec<Inline>, Vec<TextBlock>)>| {
        let now = session.open_lesson();
        let now = now.as_ref().and_then(|lesson| lesson.cards.get(card));
        let now = now.map(|card| (card.title.clone(), card.body.clone()));
        now.or_else(|| before.cloned()).unwrap_or_default()
    });
    let body = move || words.with(|(_, body)| prose::blocks(session, body));
    // The text of the card contains the answer, and often its title does, so both stay hidden until the
    // question is answered.
    let has_question = played.question.is_some();
    let is_unanswered =
        flag(move || has_question && !session.lessons().state.with(|state| state.is_revealed));
    let view = view! {
        <p class="quiet" data-testid="card-position">{position}</p>
        <h2 data-testid="card-title" tabindex="-1">
            {move || {
                if is_unanswered.get() {
                    "What will happen?".into_any()
                } else {
                    words.with(|(title, _)| prose::inlines(session, title)).into_any()
                }
            }}
        </h2>
        {question}
        <div class="prose" data-testid="card-body" hidden=is_unanswered>{body}</div>
        <div class="card-sliders" hidden=is_unanswered>{sliders}</div>
        {exercise}
    };
    Some(view.into_any())
}

fn exercise_view(session: Session, exercise: Exercise) -> AnyView {
    let exercise = PtrEq::new(exercise);
    let region_lines = exercise.region();
    let lines: Vec<_> = exercise.start().lines().map(str::to_owned).collect();
    let before = lines.get(..region_lines.start).unwrap_or_default().join("\n");
    let after = lines.get(region_lines.end..).unwrap_or_default().join("\n");
    let rows = (region_lines.len() + 2).clamp(3, 14).to_string();
    let goals = exercise
        .goals
        .iter()
        .map(|goal| view! { <li>{prose::inlines(session, &with_code(&goal.to_string()))}</li> }.into_any())
        .collect::<Vec<_>>();
    let conditions = conditions(&exercise);
    let is_python = exercise.language == ExerciseLanguage::Python;
    let (label, tip) = if is_python {
        ("Run", "Runs the program and checks the goals (Ctrl + Enter)")
    } else {
        ("Check", "Runs it on the allocator (Ctrl + Enter)")
    };
    let output = is_python.then(|| exercise_run::answer_output(session));
    let language = (!is_python).then(|| language(&exercise));
    let grade = {
        let exercise = exercise.clone();
        move || session.lessons().grade(&exercise)
    };
    let by_key = {
        let grade = grade.clone();
        on(move |event: ev::KeyboardEvent| {
            if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
                event.prevent_default();
                grade();
            }
            indent::key(&event);
        })
    };
    let reset = {
        let exercise = exercise.clone();
        click(move || {
            session.lessons().write_exercise(region(&exercise));
            session.lessons().state.update(LessonState::forget_run);
        })
    };
    view! {
        <section class="exercise" aria-label="Exercise">
            <h3>"Exercise"</h3>
            <ul class="bullets goals">{goals}</ul>
            <p class="quiet">{conditions}</p>
            {language}
            {exercise_run::given_line(session)}
            <pre class="code locked" hidden=before.is_empty()>{before.clone()}</pre>
            <textarea
                class="code"
                data-testid="exercise-text"
                aria-label="The lines that are yours to change"
                spellcheck="false"
                autocomplete="off"
                rows=rows
                prop:value=text(move || session.lessons().state.with(|state| state.text.clone()))
                on:input=on(move |event: ev::Event| {
                    session.lessons().write_exercise(event_target_value(&event));
                })
                on:keydown=by_key
            ></textarea>
            <pre class="code locked" hidden=after.is_empty()>{after.clone()}</pre>
            <p class="cluster exercise-bar">
                {button("primary", "check", label, tip, click(grade))}
                {button("", "reset-exercise", "Start again", "Brings the lines of the beginning back", reset)}
                {hint_button(session, exercise.hints.len())}
                {exercise_run::answer_state(session)}
            </p>
            {hints(session, exercise.clone())}
            {grade_view(session)}
            {exercise_run::hand_in(session, exercise)}
            {output}
        </section>
    }
    .into_any()
}

/// The statements of workloads that exercises have: the text by which a line with the statement is found, an
/// example, and the effect.
const STATEMENTS: [(&str, &str, &str); 10] = [
    ("alloc", "x = alloc 3 MiB", "makes a tensor"),
    ("free", "free x", "deletes it"),
    ("[*]", "free x[*]", "deletes x[0], x[1] and so on"),
    ("repeat", "repeat 10 as i { … }", "makes its lines ten times, with i from 0 to 9"),
    ("pool", "pool p", "makes a memory pool"),
    ("enter", "enter p, leave p", "lets the lines between them allocate from it"),
    ("stream", "stream s", "makes a stream, and “on s” allocates on it"),
    ("record_stream", "record_stream x s", "says that s uses x, too"),
    ("advance", "advance s", "lets the work of s end"),
    ("set ", "set KEY:VALUE", "changes a setting"),
];

/// The statements of the workload language that occur in the exercise.
fn language(exercise: &Exercise) -> AnyView {
    let lines = exercise.start().to_owned() + exercise.solution().unwrap_or_default();
    let rows = STATEMENTS.iter().filter(|(word, ..)| lines.contains(word)).map(|(_, example, meaning)| {
        view! { <span><code>{*example}</code>" "{*meaning}"; "</span> }.into_any()
    });
    view! {
        <p class="quiet language" data-testid="exercise-language">
            "These lines are requests to the allocator, not Python: "{rows.collect::<Vec<_>>()}"a comment begins with "<code>"#"</code>"."
        </p>
    }
    .into_any()
}

/// The device and the settings of an exercise, as a sentence.
fn conditions(exercise: &Exercise) -> String {
    if exercise.conf.is_empty() {
        format!("On a device of {}.", exercise.capacity)
    } else {
        format!("On a device of {}, with {}.", exercise.capacity, exercise.conf)
    }
}

fn hint_button(session: Session, count: usize) -> AnyView {
    let is_off = flag(move || {
        let state = session.lessons().state;
        state.with(|state| state.hints >= count + usize::from(state.last_hint().is_some()))
    });
    let more = click(move || session.lessons().state.update(|state| state.hints += 1));
    view! { <button type="button" data-testid="hint" hidden=is_off on:click=more>"Hint"</button> }.into_any()
}

fn hints(session: Session, exercise: PtrEq<Exercise>) -> AnyView {
    let content = move || {
        let state = session.lessons().state;
        let (shown, last) = state.with(|state| (state.hints, state.last_hint().map(sentence)));
        let last = last.filter(|_| shown > exercise.hints.len()).map(|words| with_code(&words));
        let hints = exercise.hints.iter().take(shown).chain(&last);
        hints.map(|hint| view! { <li>{prose::inlines(session, hint)}</li> }.into_any()).collect::<Vec<_>>()
    };
    view! { <ol class="hints" data-testid="hints">{content}</ol> }.into_any()
}

fn grade_view(session: Session) -> AnyView {
    let is_shown = |state: &LessonState| !state.exercise_run.is_busy();
    let grade = Memo::new(move |_| {
        session.lessons().state.with(|state| state.graded.clone().filter(|_| is_shown(state)))
    });
    // The grade may lie under the buttons or below the window, so it is scrolled into sight.
    let is_busy = Memo::new(move |_| session.lessons().state.with(|state| state.exercise_run.is_busy()));
    effect(move || {
        let said = match (grade.with(Option::is_some), is_busy.get()) {
            (true, _) => "[data-testid=verdict]",
            (false, true) => "[data-testid=answer-status]",
            (false, false) => return,
        };
        let _ = browser::after_millis(0, move || browser::scroll_into_sight(said));
    });
    let content = move || {
        grade.get().map(|grade| {
            let class = if grade.is_passed { "verdict is-right" } else { "verdict is-wrong" };
            let goals = grade
                .goals
                .into_iter()
                .map(|goal| {
                    let mark = match (goal.is_met, goal.is_known) {
                        (true, _) => "✓ met: ",
                        (false, true) => "✗ not met: ",
                        (false, false) => "? not known yet: ",
                    };
                    view! { <li><b>{mark}</b>{prose::inlines(session, &with_code(&goal.goal))}</li> }
                        .into_any()
                })
                .collect::<Vec<_>>();
            let mistake = grade.mistake.map(|words| {
                let words = with_code(&sentence(&words.sentence));
                view! { <p data-testid="mistake">{prose::inlines(session, &words)}</p> }.into_any()
            });
            view! {
                <div class=class role="status" data-testid="verdict">
                    <p>{prose::inlines(session, &with_code(&grade.sentence))}</p>
                    {mistake}
                    <ul class="goals">{goals}</ul>
                </div>
            }
            .into_any()
        })
    };
    view! { {content} }.into_any()
}

/// The buttons back, play and next. On a phone they are at the lower edge, where the thumb is.
fn card_buttons(session: Session, card_of: Memo<usize>) -> AnyView {
    let is_playing = Memo::new(move |_| session.player.with(|player| player.is_playing));
    let label = text(move || if is_playing.get() { "Pause" } else { "Play this card again" }.to_owned());
    let play = click(move || {
        if is_playing.get_untracked() {
            session.dispatch(PlayerAction::Pause);
        } else if session.lessons().state.with_untracked(LessonState::has_run) {
            session.dispatch(PlayerAction::Play);
        } else {
            session.lessons().play_card();
        }
    });
    // Cards after an unanswered question are not shown.
    let is_end = flag(move || {
        let steps = session.player.with(|player| player.steps);
        session.lessons().hidden_after().is_some_and(|last| steps >= last)
    });
    let is_asked = flag(move || session.lessons().is_asked());
    let is_first = flag(move || card_of.get() == 0);
    let next_card = Memo::new(move |_| {
        let lesson = session.open_lesson()?;
        session.lessons().next_card(&lesson, card_of.get())
    });
    let is_last = Memo::new(move |_| next_card.get().is_none());
    let next = click(move || match next_card.get_untracked() {
        Some(next) => session.lessons().show_card(next),
        None => session.lessons().show_next(),
    });
    let next_label = text(move || match (is_last.get(), session.navigation().embed == Some(Embed::Lesson)) {
        (true, true) => "From the start".to_owned(),
        (true, false) if session.lessons().neighbor(true).is_none() => "All lessons".to_owned(),
        (true, false) => "Next lesson".to_owned(),
        (false, _) => "Next →".to_owned(),
    });
    view! {
        <div class="turn">
            <button
                type="button"
                class="large"
                data-testid="card-back"
                disabled=is_first
                // The button is disabled on the first card, so the index stays at least 0.
                on:click=click(move || session.lessons().show_card(card_of.get_untracked().saturating_sub(1)))
            >
                "← Back"
            </button>
            <button type="button" class="icon large" data-testid="play" aria-label=label title=label disabled=is_asked on:click=play>
                {move || if is_playing.get() { Icon::Pause.view() } else { Icon::Play.view() }}
            </button>
            <span class="steps" role="group" aria-label="Steps of the figure">
                {icon_button("icon large", "step-back", Icon::Back, "One step back", click(move || session.dispatch(PlayerAction::Back)))}
                <span class="quiet" data-testid="steps" title="The step of the figure">{steps_text(session)}</span>
                <button
                    type="button"
                    class="icon large"
                    data-testid="step-forward"
                    aria-label="One step forward"
                    title="One step forward"
                    disabled=is_end
                    on:click=click(move || session.dispatch(PlayerAction::Forward))
                >
                    {Icon::Forward.view()}
                </button>
            </span>
            <button type="button" class="primary large" data-testid="card-next" on:click=next>{next_label}</button>
        </div>
    }
    .into_any()
}

/// The position that the arrows beside the text move: step `3/13`.
fn steps_text(session: Session) -> Signal<String> {
    text(move || {
        let count = session.run.with(|run| run.recording.step_count());
        format!("{}/{count}", session.player.with(|player| player.steps))
    })
}
