//! The result of checking a lesson's text: its errors, and the words that no run proves.

use blockyard_lessons::{Lesson, LessonErrorKind, PlannedLesson, PlayedLesson, UnprovedWord, plain};
use blockyard_record::counted;

use crate::messages::sentence;
use crate::ptr_eq::PtrEq;

/// The result of checking a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LessonCheck {
    /// The result in a sentence.
    pub(super) headline: String,
    /// The lesson, if it is one.
    pub(super) lesson: Option<PtrEq<PlayedLesson>>,
    /// The titles of the cards, each with the kinds of parts that the card has beside its text.
    pub(super) cards: Vec<String>,
    /// The errors, each with its line of the text, counted from 1.
    pub(super) findings: Vec<(u32, String)>,
    /// The numbers and words that nothing proves, each with its line.
    pub(super) unproved: Vec<(u32, String)>,
}

impl LessonCheck {
    pub(super) fn of(text: &str) -> Self {
        let lesson = match Lesson::check(text) {
            Ok(lesson) => lesson,
            Err(errors) => {
                let finding = |error: &blockyard_lessons::LessonError| {
                    (error.position().0, sentence(&error.kind().to_string()))
                };
                // The editor runs the program, and says what comes of it.
                let known =
                    errors.iter().filter(|error| !matches!(error.kind(), LessonErrorKind::NotRecorded));
                let mut findings: Vec<_> = known.map(finding).collect();
                // Two values of a line may have the same error.
                findings.dedup();
                let why = match findings.len() {
                    0 => "its program has not run".to_owned(),
                    count => counted(count, "error"),
                };
                let headline = format!("This is not a lesson yet: {why}.");
                return Self { headline, findings, ..Self::default() };
            }
        };
        let cards = lesson.cards.iter().map(|card| {
            let has = match (card.question.is_some(), card.exercise.is_some()) {
                (true, true) => ": a question and an exercise",
                (true, false) => ": a question",
                (false, true) => ": an exercise",
                (false, false) => "",
            };
            format!("{}{has}", plain(&card.title))
        });
        let (unproved, wrong): (Vec<_>, Vec<_>) =
            lesson.notes.iter().partition(|note| note.is_without_proof());
        let found = |notes: Vec<&UnprovedWord>| {
            notes.into_iter().map(|note| (note.line, sentence(&note.text))).collect::<Vec<_>>()
        };
        let (mut findings, unproved) = (found(wrong), found(unproved));
        if PlannedLesson::of_course(&lesson.id).is_some() {
            let line = text.lines().position(|line| line.starts_with("id:")).unwrap_or_default();
            let words = format!(
                "\"{}\" is the id of a lesson of this page: links, plans and grades would mean that one. Choose another.",
                lesson.id
            );
            findings.insert(0, (u32::try_from(line).unwrap_or_default().saturating_add(1), words));
        }
        let headline = match (findings.len(), unproved.len()) {
            (0, 0) => "It plays, and every number and comparison in it is proved by its run.".to_owned(),
            (0, _) => "It plays, and its run contradicts nothing in it.".to_owned(),
            (wrong, _) => format!("It plays, with {}.", counted(wrong, "mistake")),
        };
        let cards = cards.collect();
        Self { headline, lesson: Some(PtrEq::new(lesson)), cards, findings, unproved }
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::view::teach::make_lesson::STARTER;

    #[test]
    fn the_lesson_of_the_beginning_is_proved() {
        let checked = LessonCheck::of(STARTER);
        assert!(
            checked.lesson.is_some() && checked.findings.is_empty() && checked.unproved.is_empty(),
            "{checked:?}"
        );
        assert_eq!(checked.cards, ["A small tensor: a question", "Exercise: another type: an exercise"]);
    }

    #[test]
    fn an_untrue_claim_and_an_unproved_number_have_their_lines() {
        let untrue =
            LessonCheck::of(&STARTER.replace("more than size a => more", "less than size a => less"));
        assert!(
            untrue.lesson.is_none() && untrue.findings.first().is_some_and(|(line, _)| *line == 10),
            "{untrue:?}"
        );
        // All errors at once, each with its line.
        let worse = STARTER.replace("more than size a => more", "less than size a => less");
        let worse = LessonCheck::of(
            &worse.replace("goal: most_allocated", "goal: most_allocatd").replace("id: my-lesson", "id: My"),
        );
        assert_eq!(worse.headline, "This is not a lesson yet: 3 errors.");
        assert_eq!(worse.findings.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 10, 33]);
        let unproved = LessonCheck::of(&STARTER.replace("than it needs.", "than it needs, by 17 MiB."));
        assert!(unproved.lesson.is_some() && unproved.findings.is_empty(), "{unproved:?}");
        assert_eq!(unproved.unproved.len(), 1);
        // A statement that the run contradicts comes before those that nothing proves.
        let wrong =
            STARTER.replace("=> more} than it needs.", "=> stays} than it needs, by 17 MiB, in 3 parts.");
        let wrong = LessonCheck::of(&wrong);
        assert_eq!((wrong.headline.as_str(), wrong.findings.len()), ("It plays, with 1 mistake.", 1));
        assert_eq!(wrong.unproved.len(), 2, "{wrong:?}");
        let taken = LessonCheck::of(&STARTER.replace("id: my-lesson", "id: tensor"));
        assert!(taken.findings.len() == 1 && taken.findings[0].0 == 2, "{taken:?}");
    }
}
