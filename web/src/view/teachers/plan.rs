//! The page for teachers with the plan of a class: which lessons are presented, and which are homework.

use blockyard_figure::escaped;
use blockyard_lessons::{
    ClassUse, CourseLesson, EXERCISE_MINUTES, LECTURES, Lecture, PlannedLesson, class_task, course,
};
use leptos::prelude::*;

use super::{card_link, chosen_plan, class_buttons, cluster, marked};
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, choice, choices, click, flag, select, text};
use crate::view::make_lesson::open_file;

pub(super) fn plan(session: Session) -> Vec<AnyView> {
    let lectures = LECTURES.iter().map(|lecture| lecture_button(session, lecture)).collect();
    let rows = course().map(|lesson| row(session, lesson)).collect::<Vec<_>>();
    let words = text(move || {
        let plan = chosen_plan(session);
        let (planned, whole) = (plan.lesson_minutes(), plan.minutes());
        let homework = plan.homework_sentence().unwrap_or_default();
        format!("<b>{planned} min, {whole} min with questions.</b> {}", escaped(&homework))
    });
    let to_editor = click(move || session.navigation().go_to(Place::MakeLesson));
    let minutes = format!(
        "<p class=\"quiet\">Minutes with a class: one for a card, one more for a question, {EXERCISE_MINUTES} for an exercise. The address of this page keeps the plan.</p>"
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
    let class_plan = session.lessons().class_plan;
    let is_chosen = flag(move || chosen_plan(session).to_string() == lecture.plan);
    choice(lecture.id, lecture.title, is_chosen, click(move || class_plan.set(lecture.plan.to_owned())))
}

/// What the class does with a lesson and what with its exercise, as the values of two lists; an empty value
/// leaves the lesson out.
const fn values(class_use: Option<ClassUse>) -> [&'static str; 2] {
    match class_use {
        None => ["", HOMEWORK],
        Some(ClassUse::Presented) => [PRESENT, HOMEWORK],
        Some(ClassUse::WithExercise) => [PRESENT, IN_CLASS],
        Some(ClassUse::WithoutExercise) => [PRESENT, NONE],
        Some(ClassUse::AtHome) => [HOME, HOMEWORK],
        Some(ClassUse::AtHomeWithoutExercise) => [HOME, NONE],
    }
}

/// The use with these values. A lesson that is read at home has no exercise in class.
fn use_of_values([lesson, exercise]: [&str; 2]) -> Option<ClassUse> {
    match (lesson, exercise) {
        (PRESENT, IN_CLASS) => Some(ClassUse::WithExercise),
        (PRESENT, NONE) => Some(ClassUse::WithoutExercise),
        (PRESENT, _) => Some(ClassUse::Presented),
        (HOME, NONE) => Some(ClassUse::AtHomeWithoutExercise),
        (HOME, _) => Some(ClassUse::AtHome),
        _ => None,
    }
}

const PRESENT: &str = "present";
const HOME: &str = "home";
const IN_CLASS: &str = "class";
const HOMEWORK: &str = "homework";
const NONE: &str = "none";

/// A lesson, with the lists for what the class does with it and with its exercise.
fn row(session: Session, lesson: &'static CourseLesson) -> AnyView {
    let id = lesson.id;
    let class_use = Memo::new(move |_| chosen_plan(session).use_of(id));
    let change = move |values: [&str; 2]| {
        let changed = untrack(|| chosen_plan(session)).with_use(id, use_of_values(values));
        let text = changed.to_string();
        // An empty text means that none was chosen yet.
        session.lessons().class_plan.set(if text.is_empty() { "none".to_owned() } else { text });
    };
    let now = move || values(class_use.get_untracked());
    let listed = |(value, words): (&str, &str)| (value.to_owned(), words.to_owned());
    let of_lesson = [("", "Leave out"), (PRESENT, "Present"), (HOME, "At home")].map(listed).to_vec();
    let of_exercise = Signal::derive(move || {
        let is_home = class_use.get().is_some_and(|class_use| !class_use.is_presented());
        let all =
            [(IN_CLASS, "Exercise in class"), (HOMEWORK, "Exercise as homework"), (NONE, "No exercise")];
        all.into_iter().skip(usize::from(is_home)).map(listed).collect::<Vec<_>>()
    });
    let [lesson_value, exercise_value] =
        [0, 1].map(|place| text(move || values(class_use.get())[place].to_owned()));
    let minutes = text(move || {
        let class_use = class_use.get().filter(|class_use| class_use.is_presented());
        class_use.map_or_else(String::new, |class_use| {
            format!("{} min", PlannedLesson { id, class_use }.minutes())
        })
    });
    let of_use =
        select(format!("use-{id}"), "Lesson", Signal::stored(of_lesson), lesson_value, move |lesson| {
            change([&lesson, now()[1]]);
        });
    let of_exercise =
        select(format!("exercise-{id}"), "Exercise", of_exercise, exercise_value, move |exercise| {
            change([now()[0], &exercise]);
        });
    view! {
        <li><div role="group" aria-label=lesson.title>
            <span inner_html=card_link(id, 0, lesson.title)></span>
            {of_use}
            <span><span hidden=flag(move || class_use.get().is_none())>{of_exercise}</span></span>
            <span>{minutes}</span>
            <p class="quiet" hidden=flag(move || minutes.with(String::is_empty))>{class_task(id)}</p>
        </div></li>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use blockyard_lessons::Plan;
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn each_use_is_two_choices() {
        let words = ["", ":exercise", ":only", ":home", ":read"];
        for text in words.map(|word| format!("tensor{word}")) {
            let class_use = Plan::from_text(&text).use_of("tensor");
            assert!(class_use.is_some() && use_of_values(values(class_use)) == class_use, "{text}");
        }
        // From class to home the exercise becomes homework.
        assert_eq!(use_of_values([HOME, IN_CLASS]), Some(ClassUse::AtHome));
        assert_eq!(use_of_values(values(None)), None);
    }
}
