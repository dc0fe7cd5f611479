//! The answer in a file of a class: which exercise it is of, its lines, and its grade.

use blockyard_lessons::{Exercise, GradeRow, Lesson, Plan, PlannedLesson, current_id, exercise_of, lessons};
use leptos::prelude::*;

use super::links::solution_links;
use super::taking;
use crate::browser;
use crate::lessons::{ClassSignals, HandedIn, grade_answer, region};
use crate::link::{Link, LinkTarget, unpacked};
use crate::messages::sentence;
use crate::session::Session;
use crate::view::teach::make_lesson;

/// A graded file.
pub(super) struct Graded {
    pub(super) row: GradeRow,
    /// The student's own lines; the whole text where the lesson is not known or a line of the task was changed.
    pub(super) lines: String,
    /// Whether the lines are those that the exercise begins with.
    pub(super) is_start: bool,
}

/// The exercises of all lessons with their ids: of the lessons that came with the files, of the course, of the
/// plan, and of the editor.
pub(super) fn all_exercises(session: Session) -> Vec<(String, Exercise)> {
    let written = browser::recall(make_lesson::KEY);
    let given = session.lessons().class.lessons.get_untracked();
    let given = given.iter().map(|lesson| lesson.text.clone());
    let plan = Plan::from_text(&session.lessons().class_plan.get_untracked());
    let planned = plan.lessons.iter().filter_map(|planned| unpacked(&planned.own.as_ref()?.source).ok());
    let texts = given.chain(lessons().iter().map(|file| file.text.to_owned())).chain(planned).chain(written);
    texts.filter_map(|text| exercise_in(&text).ok()).collect()
}

/// The exercise of a lesson's text, with the lesson's id.
fn exercise_in(text: &str) -> Result<(String, Exercise), String> {
    let lesson =
        Lesson::parse(text).and_then(|lesson| lesson.play()).map_err(|why| sentence(&why.to_string()))?;
    let exercise = lesson.cards.into_iter().find_map(|card| card.exercise);
    Ok((lesson.id, exercise.ok_or("its lesson has no exercise")?))
}

pub(super) async fn grade(
    class: ClassSignals,
    (name, file): (&str, &HandedIn),
    lesson: &str,
    exercises: &[(String, Exercise)],
) -> Graded {
    let failed = |lesson: &str, why: &str, lines: String| Graded {
        row: GradeRow::failed(name, lesson, why),
        lines,
        is_start: false,
    };
    let text = match taking::text_of(name, file).await {
        Ok(text) => text,
        Err(why) => return failed(lesson, &why, String::new()),
    };
    let mut links = solution_links(&text).into_iter();
    if let Some(link) = links.next() {
        // A mail may have the answers to several exercises: each gets a row.
        let address =
            |link: Link| (name.to_owned(), HandedIn::Bytes(format!("#{}", link.write()).into_bytes()));
        let others: Vec<_> = links.map(address).collect();
        class.enqueue(others);
        return match of_link(class, &link, exercises).await {
            Ok((id, exercise, is_of_link)) => {
                let text = exercise.with_region(&link.solution.unwrap_or_default());
                let mut graded = run(class, (name, &id), &exercise, text).await;
                if is_of_link {
                    let words = "Its goals are those of the lesson in the link.";
                    let space = if graded.row.message.is_empty() { "" } else { " " };
                    graded.row.message += space;
                    graded.row.message += words;
                }
                graded
            }
            Err(why) => failed(lesson, &why, link.solution.unwrap_or_default()),
        };
    }
    let found = match Some(lesson).filter(|lesson| !lesson.is_empty()) {
        Some(id) => exercises.iter().find(|(known, _)| known == id),
        None => exercise_of(name, &text, exercises),
    };
    let Some((id, exercise)) = found else {
        let why = "its lines are those of no exercise here. Choose the lesson above. A student hands in the whole file, a link with the lines, or the lines between `# edit from here` and `# edit to here`";
        return failed(lesson, why, text);
    };
    match exercise.whole_answer(&text) {
        Ok(text) => run(class, (name, id), exercise, text).await,
        Err(why) => failed(id, &why.to_string(), text),
    }
}

/// Runs a whole answer.
async fn run(class: ClassSignals, (name, id): (&str, &str), exercise: &Exercise, text: String) -> Graded {
    let lines = exercise.own_text(&text).join("\n");
    let is_start = written(&lines).eq(written(&region(exercise)));
    let grade = grade_answer(exercise, text, move |bytes| class.loading.set(Some(bytes))).await;
    class.loading.set(None);
    let row = match grade {
        Ok(grade) => GradeRow::of(name, id, exercise, &grade),
        Err(why) => GradeRow::failed(name, id, &why),
    };
    Graded { row, lines, is_start }
}

/// The exercise of a link, with the id of its lesson, and whether it is known from the link alone. The lesson of
/// the teacher counts, and not the text in a link that a student could change.
async fn of_link(
    class: ClassSignals,
    link: &Link,
    exercises: &[(String, Exercise)],
) -> Result<(String, Exercise, bool), String> {
    let known = |id: &str| exercises.iter().find(|(known, _)| known == id);
    let own = |id: &str| known(id).filter(|_| PlannedLesson::of_course(id).is_none());
    let (found, is_of_link) = match &link.target {
        LinkTarget::Lesson { id, .. } => {
            let why = || {
                format!(
                    "its link names the lesson \"{id}\", which is not known here: give its file (.md) with the files"
                )
            };
            (known(current_id(id)).cloned().ok_or_else(why)?, false)
        }
        LinkTarget::LessonText { text, .. } => {
            let in_link = exercise_in(text)?;
            match own(&in_link.0) {
                Some(own) => (own.clone(), false),
                None => (in_link, true),
            }
        }
        LinkTarget::Beside(file) => {
            let given = class.lessons.get_untracked();
            let id = given.iter().find(|lesson| lesson.file.ends_with(file)).map(|lesson| lesson.id.as_str());
            match own(id.unwrap_or(file.trim_end_matches(".md"))) {
                Some(own) => (own.clone(), false),
                None => (beside(file).await?, false),
            }
        }
        _ => return Err("its link is of no lesson".to_owned()),
    };
    let (id, exercise) = found;
    Ok((id, exercise, is_of_link))
}

/// The exercise of a lesson that lies beside the page.
async fn beside(file: &str) -> Result<(String, Exercise), String> {
    let why = || format!("its link names the lesson {file}: give this file with the files");
    let blob = browser::fetch_blob(&browser::address_beside(file)).await.ok_or_else(why)?;
    let bytes = taking::bytes_of(&blob).await.ok_or_else(why)?;
    exercise_in(&String::from_utf8_lossy(&bytes))
}

/// The lines of a text that are not blank.
pub(super) fn written(lines: &str) -> impl Iterator<Item = &str> {
    lines.lines().map(str::trim_end).filter(|line| !line.is_empty())
}
