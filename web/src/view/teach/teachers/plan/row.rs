//! A lesson in the plan of a class, with everything that a teacher sets for it.

use blockyard_lessons::{
    ExerciseUse, Lesson, MAX_SET_MINUTES, PlannedLesson, PlayedCard, PlayedLesson, UnpresentedCard,
    class_task, lessons, plain,
};
use blockyard_record::counted;
use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{HtmlDetailsElement, HtmlInputElement};

use super::super::{card_link, chosen_plan};
use super::{choose, keep};
use crate::browser;
use crate::link::unpacked;
use crate::session::Session;
use crate::view::kit::{click, flag, on, select, text};

const PRESENT: &str = "present";
const HOME: &str = "home";

/// The places of an exercise, as a list has them.
const EXERCISES: [(ExerciseUse, &str, &str); 3] = [
    (ExerciseUse::InClass, "class", "Exercise in class"),
    (ExerciseUse::Homework, "homework", "Exercise as homework"),
    (ExerciseUse::LeftOut, "none", "No exercise"),
];

/// A lesson, with the lists for what the class does with it and with its exercise.
pub(super) fn row(session: Session, lesson: PlannedLesson) -> AnyView {
    let (id, title) = (lesson.id.clone(), lesson.title().to_owned());
    let link = card_link(&lesson, 0, &title);
    let has_exercise = lesson.exercise != ExerciseUse::LeftOut || lesson.own.is_none();
    let lesson = StoredValue::new(lesson);
    let planned =
        Memo::new(move |_| lesson.with_value(|lesson| chosen_plan(session).lesson(&lesson.id).cloned()));
    let change = move |change: &dyn Fn(PlannedLesson) -> Option<PlannedLesson>| {
        let now = planned.get_untracked().unwrap_or_else(|| lesson.get_value());
        choose(session, &now.id, change(now.clone()));
    };
    let listed = |(value, words): (&str, &str)| (value.to_owned(), words.to_owned());
    let of_lesson = [("", "Leave out"), (PRESENT, "Present"), (HOME, "At home")].map(listed).to_vec();
    let lesson_value = text(move || {
        let value = |planned: &PlannedLesson| if planned.is_at_home { HOME } else { PRESENT };
        planned.with(|planned| planned.as_ref().map_or("", value)).to_owned()
    });
    let is_at_home =
        Memo::new(move |_| planned.with(|planned| planned.as_ref().is_some_and(|it| it.is_at_home)));
    let of_exercise = Signal::derive(move || {
        let all = EXERCISES.map(|(_, value, words)| (value.to_owned(), words.to_owned()));
        all.into_iter().skip(usize::from(is_at_home.get())).collect::<Vec<_>>()
    });
    let exercise_value = text(move || {
        let exercise = planned.with(|planned| planned.as_ref().map(|it| it.exercise)).unwrap_or_default();
        EXERCISES.iter().find(|row| row.0 == exercise).map_or("", |row| row.1).to_owned()
    });
    let is_presented = Memo::new(move |_| planned.with(|it| it.as_ref().is_some_and(|it| !it.is_at_home)));
    let minutes = text(move || planned.with(|it| it.as_ref().map_or(0, PlannedLesson::minutes)).to_string());
    let of_minutes = minutes_field(format!("minutes-{id}"), "Minutes", minutes, move |minutes| {
        change(&|planned| Some(planned.with_minutes(minutes)));
    });
    let of_use =
        select(format!("use-{id}"), "Lesson", Signal::stored(of_lesson), lesson_value, move |value| {
            change(&|planned| (!value.is_empty()).then(|| planned.used(value == HOME, None)));
        });
    let of_exercise =
        select(format!("exercise-{id}"), "Exercise", of_exercise, exercise_value, move |value| {
            let exercise = EXERCISES.iter().find(|row| row.1 == value).map(|row| row.0);
            change(&|planned| Some(planned.clone().used(planned.is_at_home, exercise)));
        });
    let cards = cards_of(session, lesson, planned);
    let is_out = flag(move || !has_exercise || planned.with(Option::is_none));
    view! {
        <li><div role="group" aria-label=title>
            <span inner_html=link></span>
            {of_use}
            <span><span hidden=is_out>{of_exercise}</span></span>
            <span><span hidden=flag(move || !is_presented.get())>{of_minutes}</span></span>
            {move_buttons(session, &id)}
            <p class="quiet" hidden=flag(move || !is_presented.get())>{class_task(&id)}</p>
            {cards}
            {break_line(session, &id)}
        </div></li>
    }
    .into_any()
}

/// A field for minutes. An empty field, or one without a number, stands for no minutes.
fn minutes_field(
    id: String,
    label: &'static str,
    value: Signal<String>,
    change: impl Fn(Option<u32>) + 'static,
) -> AnyView {
    let change = on(move |event: ev::Event| {
        change(event_target_value(&event).parse().ok());
        // The plan may keep what it had, and then the field shows that again.
        if let Some(field) = event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok()) {
            field.set_value(&value.get_untracked());
        }
    });
    let most = MAX_SET_MINUTES.to_string();
    view! {
        <label class="minutes">
            <input type="number" class="field" min="0" max=most data-testid=id aria-label=label title=label prop:value=value on:change=change />
            " min"
        </label>
    }
    .into_any()
}

/// The buttons that move a planned lesson before the lesson above it, or after the lesson below it.
fn move_buttons(session: Session, id: &str) -> AnyView {
    let moved = move |id: String, is_later: bool, name: &'static str| {
        let (of_flag, of_click) = (id.clone(), id.clone());
        let is_off = flag(move || {
            let plan = chosen_plan(session);
            plan.lesson(&of_flag).is_none() || plan.with_moved(&of_flag, is_later) == plan
        });
        let press = click(move || {
            keep(session, &untrack(|| chosen_plan(session)).with_moved(&of_click, is_later));
            // The rows are drawn again, so the pressed button gets the focus back.
            let focus = format!("[data-testid='{name}-{of_click}']:enabled");
            let _ = browser::after_millis(0, move || browser::focus_first(&focus));
        });
        let (label, mark) = if is_later { ("Later", "↓") } else { ("Earlier", "↑") };
        view! {
            <button type="button" class="icon" data-testid=format!("{name}-{id}") aria-label=label title=label disabled=is_off on:click=press>{mark}</button>
        }
        .into_any()
    };
    let buttons = vec![moved(id.to_owned(), false, "earlier"), moved(id.to_owned(), true, "later")];
    view! { <span class="moves">{buttons}</span> }.into_any()
}

/// The break after a presented lesson that is not the last.
fn break_line(session: Session, id: &str) -> AnyView {
    let [of_flag, of_text, of_change] = [id, id, id].map(str::to_owned);
    let is_out = flag(move || {
        let plan = chosen_plan(session);
        let place = plan.presented().position(|planned| planned.id == of_flag);
        place.is_none_or(|place| place + 1 == plan.presented().count())
    });
    let value = text(move || chosen_plan(session).break_after(&of_text).to_string());
    let field = minutes_field(format!("break-{id}"), "Break after the lesson", value, move |minutes| {
        let plan = untrack(|| chosen_plan(session));
        keep(session, &plan.with_break(&of_change, minutes.unwrap_or_default()));
    });
    view! { <p class="quiet break" hidden=is_out>"Then a break of "{field}</p> }.into_any()
}

/// The cards of a presented lesson, folded away, each of which may be left out. The exercise has its own list.
fn cards_of(
    session: Session,
    lesson: StoredValue<PlannedLesson>,
    planned: Memo<Option<PlannedLesson>>,
) -> AnyView {
    let is_open = RwSignal::new(false);
    let toggle = on(move |event: ev::Event| {
        let details = event.target().and_then(|target| target.dyn_into::<HtmlDetailsElement>().ok());
        is_open.set(details.is_some_and(|details| details.open()));
    });
    let words = text(move || {
        let count = planned.with(|planned| planned.as_ref().map_or(0, |planned| planned.without.len()));
        if count == 0 { "All its cards".to_owned() } else { format!("Without {}", counted(count, "card")) }
    });
    let content = move || is_open.get().then(|| card_checks(session, lesson, planned));
    let is_out = flag(move || planned.with(|planned| planned.as_ref().is_none_or(|it| it.is_at_home)));
    view! {
        <details class="plan-cards" hidden=is_out on:toggle=toggle>
            <summary>{words}</summary>
            {content}
        </details>
    }
    .into_any()
}

fn card_checks(
    session: Session,
    lesson: StoredValue<PlannedLesson>,
    planned: Memo<Option<PlannedLesson>>,
) -> Vec<AnyView> {
    let Some(played) = lesson.with_value(played) else { return Vec::new() };
    let last = played.cards.iter().filter(|card| card.exercise.is_none()).count().saturating_sub(1);
    let cards = played.cards.iter().enumerate().filter(|(_, card)| card.exercise.is_none());
    let row = |(card, played): (usize, &PlayedCard)| {
        let left = UnpresentedCard { card, is_asking: played.question.is_some() };
        let is_shown =
            flag(move || planned.with(|planned| planned.as_ref().is_some_and(|it| !it.leaves_out(card))));
        let change = on(move |event: ev::Event| {
            let Some(mut now) = planned.get_untracked() else { return };
            now.without.retain(|other| other.card != card);
            // A lesson that is presented keeps a card.
            if !event_target_checked(&event) && now.without.len() < last {
                now.without.push(left);
                now.without.sort_unstable();
            }
            choose(session, &now.id.clone(), Some(now));
        });
        let words = format!("{}. {}", card + 1, plain(&played.title));
        view! {
            <label class="check">
                <input type="checkbox" data-testid="plan-card" prop:checked=is_shown on:change=change />
                {words}
            </label>
        }
        .into_any()
    };
    cards.map(row).collect()
}

/// The lesson with its runs.
fn played(planned: &PlannedLesson) -> Option<PlayedLesson> {
    let own = planned.own.as_ref().and_then(|own| unpacked(&own.source).ok());
    let text = own.or_else(|| Some(lessons().iter().find(|file| file.id == planned.id)?.text.to_owned()))?;
    Lesson::parse(&text).ok()?.play().ok()
}
