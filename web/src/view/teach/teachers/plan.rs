//! The page for teachers with the plan of a class: which lessons are presented, and which are homework.

mod row;

use blockyard_figure::escaped;
use blockyard_lessons::{
    EXERCISE_MINUTES, ExerciseUse, LECTURES, Lecture, Lesson, OwnLesson, Plan, PlannedLesson, course,
};
use leptos::prelude::*;

use super::{chosen_plan, class_buttons, cluster, marked};
use crate::browser;
use crate::lessons::has_plan_before;
use crate::link::{MAX_ADDRESS_CHARS, packed};
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, choice, choices, click, flag, text};
use crate::view::teach::make_lesson::{self, open_file};

pub(super) fn plan(session: Session) -> Vec<AnyView> {
    let lectures = LECTURES.iter().map(|lecture| lecture_button(session, lecture)).collect();
    let own = own_lesson(session);
    let lessons = course().filter_map(|lesson| PlannedLesson::of_course(lesson.id)).chain(own);
    let lessons = StoredValue::new(lessons.collect::<Vec<_>>());
    let order = Memo::new(move |_| {
        let ids = lessons.with_value(|all| all.iter().map(|lesson| lesson.id.clone()).collect());
        row_order(ids, &chosen_plan(session))
    });
    let rows = move || {
        let lesson =
            |id: &String| lessons.with_value(|all| all.iter().find(|lesson| lesson.id == *id).cloned());
        let all = order.get().iter().filter_map(lesson).collect::<Vec<_>>();
        untrack(|| all.into_iter().map(|lesson| row::row(session, lesson)).collect::<Vec<_>>())
    };
    let words = text(move || sum_words(&chosen_plan(session)));
    let to_editor = click(move || session.navigation().go_to(Place::MakeLesson));
    let minutes = format!(
        "<p class=\"quiet\">Minutes with a class: one for a card, one more for a question, {EXERCISE_MINUTES} for an exercise, or those that you set. An empty field brings the first back. This browser keeps the plan, and so does the address of this page. The lesson that you make has a row above.</p>"
    );
    vec![
        lecture_buttons(session, lectures),
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

/// The ids of all rows: in the places of the planned lessons, these lessons in the order of the plan.
fn row_order(mut ids: Vec<String>, plan: &Plan) -> Vec<String> {
    let planned = plan.lessons.iter().map(|planned| planned.id.clone());
    let mut planned = planned.filter(|id| ids.contains(id)).collect::<Vec<_>>().into_iter();
    for id in &mut ids {
        if plan.lesson(id).is_some() {
            *id = planned.next().unwrap_or_default();
        }
    }
    ids
}

/// The minutes of the plan, its breaks and its homework, as HTML.
fn sum_words(plan: &Plan) -> String {
    let (planned, whole) = (plan.lesson_minutes(), plan.minutes());
    let pause = |(last, minutes): (&PlannedLesson, u32)| {
        format!("a break of {minutes} min after \"{}\"", escaped(last.title()))
    };
    let breaks: Vec<_> = plan.breaks().into_iter().map(pause).collect();
    let breaks = if breaks.is_empty() { String::new() } else { format!(" and {}", breaks.join(", ")) };
    let homework = plan.homework_sentence().unwrap_or_default();
    format!("<b>{planned} min, {whole} min with questions{breaks}.</b> {}", escaped(&homework))
}

/// The buttons of the lectures, and the way back to the plan before a lecture or a link.
fn lecture_buttons(session: Session, lectures: Vec<AnyView>) -> AnyView {
    let is_off = flag(move || {
        session.lessons().class_plan.track();
        !has_plan_before()
    });
    let undo = click(move || session.lessons().bring_plan_back());
    view! {
        <div class="cluster">
            {choices("Begin with a lecture", false.into(), lectures)}
            <span hidden=is_off>{button("", "undo-plan", "Undo", "Brings back your own plan, which this one replaced", undo)}</span>
        </div>
    }
    .into_any()
}

/// The button that begins a plan with one of the lectures.
fn lecture_button(session: Session, lecture: &'static Lecture) -> AnyView {
    let is_chosen = flag(move || chosen_plan(session).to_string() == lecture.plan);
    choice(
        lecture.id,
        lecture.title,
        is_chosen,
        click(move || session.lessons().replace_plan(lecture.plan.to_owned())),
    )
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
    is_other.then(|| PlannedLesson { id, own: Some(own), exercise, ..PlannedLesson::default() })
}

/// Takes a lesson into the plan, or leaves it out.
fn choose(session: Session, id: &str, planned: Option<PlannedLesson>) {
    keep(session, &untrack(|| chosen_plan(session)).with_lesson(id, planned));
}

/// Takes a changed plan.
fn keep(session: Session, plan: &Plan) {
    let text = plan.to_string();
    if text.len() > MAX_ADDRESS_CHARS {
        return session.show_error(
            "Your lesson is too long for a plan, which is in its address. Put its file on a web server with \"blockyard site\".",
        );
    }
    // An empty text means that none was chosen yet.
    session.lessons().keep_plan(if text.is_empty() { "none".to_owned() } else { text });
}
