//! The page for teachers with the plan of a class: which lessons are presented, and which are homework.

use blockyard_figure::escaped;
use blockyard_lessons::{
    BREAK_MINUTES, EXERCISE_MINUTES, ExerciseUse, LECTURES, Lecture, Lesson, OwnLesson, PlannedLesson,
    PlayedCard, PlayedLesson, UnpresentedCard, class_task, course, lessons, plain,
};
use blockyard_record::counted;
use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlDetailsElement;

use super::{card_link, chosen_plan, class_buttons, cluster, marked};
use crate::browser;
use crate::lessons::PLAN_KEY;
use crate::link::{MAX_ADDRESS_CHARS, packed, unpacked};
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, choice, choices, click, flag, on, select, text};
use crate::view::make_lesson::{self, open_file};

pub(super) fn plan(session: Session) -> Vec<AnyView> {
    let lectures = LECTURES.iter().map(|lecture| lecture_button(session, lecture)).collect();
    let own = own_lesson(session);
    let lessons = course().filter_map(|lesson| PlannedLesson::of_course(lesson.id)).chain(own);
    let rows = lessons.map(|lesson| row(session, lesson)).collect::<Vec<_>>();
    let words = text(move || {
        let plan = chosen_plan(session);
        let (planned, whole) = (plan.lesson_minutes(), plan.minutes());
        let homework = plan.homework_sentence().unwrap_or_default();
        let pause = |last: &PlannedLesson| {
            format!(" and a break of {BREAK_MINUTES} min after \"{}\"", escaped(last.title()))
        };
        let pause = plan.break_after().map(pause).unwrap_or_default();
        format!("<b>{planned} min, {whole} min with questions{pause}.</b> {}", escaped(&homework))
    });
    let to_editor = click(move || session.navigation().go_to(Place::MakeLesson));
    let minutes = format!(
        "<p class=\"quiet\">Minutes with a class: one for a card, one more for a question, {EXERCISE_MINUTES} for an exercise. This browser keeps the plan, and so does the address of this page. The lesson that you make has a row above.</p>"
    );
    vec![
        choices("Begin with a lecture", false.into(), lectures),
        view! { <ul class="plan-rows" data-testid="plan-rows">{rows}</ul> }.into_any(),
        view! { <p role="status" data-testid="plan-sum" inner_html=words></p> }.into_any(),
        class_buttons(session),
        marked(minutes),
        cluster(vec![
            button("large", "to-make-lesson", "Make a lesson of your own", "", to_editor),
            open_file(session),
        ]),
    ]
}

/// The button that begins a plan with one of the lectures.
fn lecture_button(session: Session, lecture: &'static Lecture) -> AnyView {
    let is_chosen = flag(move || chosen_plan(session).to_string() == lecture.plan);
    choice(lecture.id, lecture.title, is_chosen, click(move || keep(session, lecture.plan.to_owned())))
}

/// The lesson of the teacher's own: that of the editor, else that of the plan. A plan with an earlier text of the
/// editor's lesson gets the text as it is now.
fn own_lesson(session: Session) -> Option<PlannedLesson> {
    let plan = untrack(|| chosen_plan(session));
    let planned = plan.lessons.iter().find(|planned| planned.own.is_some()).cloned();
    let written = browser::recall(make_lesson::KEY).and_then(|text| planned_of(&text));
    let (Some(planned), Some(written)) = (&planned, &written) else { return planned.or(written) };
    if planned.id == written.id && planned.own != written.own {
        let now = PlannedLesson { own: written.own.clone(), ..planned.clone() };
        choose(session, &now.id, Some(now.clone()));
    }
    Some(if planned.id == written.id { written.clone() } else { planned.clone() })
}

/// A lesson's text as a lesson of a plan; `None` for a text that is not a lesson, or has the id of another lesson.
fn planned_of(text: &str) -> Option<PlannedLesson> {
    let lesson = Lesson::parse(text).ok()?;
    let own = OwnLesson {
        title: lesson.title().replace([',', ':'], " "),
        minutes: lesson.class_minutes(),
        source: packed(text),
    };
    let exercise = if lesson.has_exercise() { ExerciseUse::Homework } else { ExerciseUse::LeftOut };
    let id = lesson.id().to_owned();
    let is_other = PlannedLesson::of_course(&id).is_none();
    is_other.then_some(PlannedLesson { id, own: Some(own), is_at_home: false, exercise, without: Vec::new() })
}

/// Takes a lesson into the plan, or leaves it out.
fn choose(session: Session, id: &str, planned: Option<PlannedLesson>) {
    let text = untrack(|| chosen_plan(session)).with_lesson(id, planned).to_string();
    if text.len() > MAX_ADDRESS_CHARS {
        return session.show_error(
            "Your lesson is too long for a plan, which is in its address. Put its file on a web server with \"blockyard site\".",
        );
    }
    // An empty text means that none was chosen yet.
    keep(session, if text.is_empty() { "none".to_owned() } else { text });
}

/// Takes the text of a plan, which this browser offers again. A plan that came in a link is kept once it is
/// changed.
fn keep(session: Session, text: String) {
    browser::remember(PLAN_KEY, &text);
    session.lessons().class_plan.set(text);
}

const PRESENT: &str = "present";
const HOME: &str = "home";

/// The places of an exercise, as a list has them.
const EXERCISES: [(ExerciseUse, &str, &str); 3] = [
    (ExerciseUse::InClass, "class", "Exercise in class"),
    (ExerciseUse::Homework, "homework", "Exercise as homework"),
    (ExerciseUse::LeftOut, "none", "No exercise"),
];

/// A lesson, with the lists for what the class does with it and with its exercise.
fn row(session: Session, lesson: PlannedLesson) -> AnyView {
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
    let minutes = text(move || {
        let minutes =
            planned.with(|planned| planned.as_ref().filter(|it| !it.is_at_home).map(PlannedLesson::minutes));
        minutes.map(|minutes| format!("{minutes} min")).unwrap_or_default()
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
            <span>{minutes}</span>
            <p class="quiet" hidden=flag(move || minutes.with(String::is_empty))>{class_task(&id)}</p>
            {cards}
        </div></li>
    }
    .into_any()
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
