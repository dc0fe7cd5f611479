//! The page for teachers with the plans of lectures.

use blockyard_figure::escaped;
use blockyard_lessons::{EXERCISE_MINUTES, PLANS, Plan, PlanPart, PlannedLesson};
use leptos::prelude::*;

use super::{block, card_link, cluster, copy_link, marked, title_of};
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, click};
use crate::view::make_lesson::open_file;

pub(super) fn plans(session: Session) -> Vec<AnyView> {
    let minutes = format!(
        "<p class=\"quiet\">Minutes with a class: one for a card, one more for a question, {EXERCISE_MINUTES} for an exercise. A tenth is left for questions. Other exercises are homework, and are not presented.</p>"
    );
    let to_editor = click(move || session.navigation().go_to(Place::MakeLesson));
    vec![
        block("plans", "plans", PLANS.iter().map(|plan| plan_view(session, plan)).collect()),
        marked(minutes),
        cluster(vec![
            button("large", "to-make-lesson", "Make a lesson of your own", "", to_editor),
            open_file(session),
        ]),
    ]
}

/// The lessons that a class reads at home, in a sentence.
fn homework(ids: &[&str]) -> String {
    let titles: Vec<String> = ids.iter().map(|id| escaped(title_of(id))).collect();
    if titles.is_empty() { String::new() } else { format!("Homework: {}.", titles.join("; ")) }
}

fn plan_view(session: Session, plan: &'static Plan) -> AnyView {
    let stretch = |stretch: &PlanPart| {
        let lessons = stretch.lessons.iter().map(|PlannedLesson { id, minutes, has_exercise }| {
            let exercise = if *has_exercise { " with its exercise" } else { "" };
            format!("<li>{}, {minutes} min{exercise}</li>", card_link(id, 0, title_of(id)))
        });
        format!(
            "<dt>{} min</dt><dd><ul class=\"bullets\">{}</ul><p class=\"quiet\">{} {}</p></dd>",
            stretch.minutes,
            lessons.collect::<String>(),
            escaped(stretch.task),
            homework(stretch.homework)
        )
    };
    let joined = plan.ids().join(",");
    let linked = plan.for_students().collect::<Vec<_>>().join(",");
    let present = click(move || session.lessons().present_plan(plan.ids()));
    let sheet = click(move || session.navigation().go_to(Place::Handout(joined.clone())));
    let link = click(move || copy_link(session, linked.clone()));
    let stretches: String = plan.parts.iter().map(stretch).collect();
    let buttons = vec![
        button(
            "primary",
            "present-lecture",
            "Present",
            "The whole screen, lesson by lesson, without homework",
            present,
        ),
        button("", "lecture-sheet", "Print sheets", "Questions, exercises and the answer key", sheet),
        button(
            "",
            "copy-plan",
            "Copy link",
            "One address for students, with these lessons and the homework",
            link,
        ),
    ];
    let title = plan.title;
    block(
        "plan",
        plan.id,
        vec![marked(format!("<h2>{title}</h2>")), cluster(buttons), marked(format!("<dl>{stretches}</dl>"))],
    )
}
