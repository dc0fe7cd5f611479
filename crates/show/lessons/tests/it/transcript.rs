use std::fmt::Write as _;

use blockyard_lessons::{Exercise, ExerciseLanguage, Lesson, LessonError, PlayedLesson, lessons, plain};

/// The answers of the allocator to every question of our lessons, and its results for the workloads that
/// exercises begin with.
pub(crate) fn transcript() -> Result<String, LessonError> {
    let mut text = String::new();
    for file in lessons() {
        let PlayedLesson { id, cards, .. } = Lesson::parse(file.text)?.play()?;
        for (index, card) in cards.iter().enumerate() {
            if let Some(question) = &card.question {
                let because = plain(&question.because);
                let _ = writeln!(text, "{id} {}: {} | {because}", index + 1, question.right);
            }
            // A program is not run here.
            let is_workload = |exercise: &&Exercise| exercise.language == ExerciseLanguage::Workload;
            if let Some(exercise) = card.exercise.as_ref().filter(is_workload) {
                let verdict = exercise.grade(exercise.start());
                let verdict = verdict.map_or_else(|error| error.to_string(), |grade| grade.sentence);
                let _ = writeln!(text, "{id} {}: {verdict}", index + 1);
            }
        }
    }
    Ok(text)
}
