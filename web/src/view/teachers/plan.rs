//! The page for teachers with the plan of a class: which lessons are presented, and which are homework.

use blockyard_figure::escaped;
use blockyard_lessons::{
    ClassUse, CourseLesson, EXERCISE_MINUTES, LECTURES, Lecture, class_minutes, class_task, course,
};
use leptos::prelude::*;

use super::{card_link, chosen_plan, class_buttons, cluster, marked};
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, check, choice, choices, click, flag, text};
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

/// A lesson, with the boxes for what the class does with it.
fn row(session: Session, lesson: &'static CourseLesson) -> AnyView {
    let id = lesson.id;
    let class_use = Memo::new(move |_| chosen_plan(session).use_of(id));
    let boxed = |name: &str, label, title, on: ClassUse, off: Option<ClassUse>| {
        // A lesson with its exercise is presented, too.
        let is_on = flag(move || {
            let is_part = on == ClassUse::Presented && class_use.get() == Some(ClassUse::WithExercise);
            class_use.get() == Some(on) || is_part
        });
        check(format!("{name}-{id}"), label, title, is_on, move |is_on| {
            let changed = untrack(|| chosen_plan(session)).with_use(id, if is_on { Some(on) } else { off });
            let text = changed.to_string();
            // An empty text means that none was chosen yet.
            session.lessons().class_plan.set(if text.is_empty() { "none".to_owned() } else { text });
        })
    };
    let minutes = text(move || {
        let exercise = match class_use.get() {
            None | Some(ClassUse::AtHome) => return String::new(),
            Some(ClassUse::WithExercise) => EXERCISE_MINUTES,
            Some(ClassUse::Presented) => 0,
        };
        format!("{} min", class_minutes(id) + exercise)
    });
    let presented = Some(ClassUse::Presented);
    view! {
        <li><div role="group" aria-label=lesson.title>
            <span inner_html=card_link(id, 0, lesson.title)></span>
            {boxed("present", "Present", "In class", ClassUse::Presented, None)}
            {boxed("exercise", "Exercise in class", "Else it is homework", ClassUse::WithExercise, presented)}
            {boxed("home", "At home", "The class reads it at home", ClassUse::AtHome, None)}
            <span>{minutes}</span>
            <p class="quiet" hidden=flag(move || minutes.with(String::is_empty))>{class_task(id)}</p>
        </div></li>
    }
    .into_any()
}
