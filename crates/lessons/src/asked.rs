//! The questions and exercises of a lesson alone, for a class that has seen the lesson: few pages, and a sheet that can be a test.
//!
//! What comes after a question shows how the allocator answered it. So a figure stands only with the first question about a run, and a number in
//! a later question that is the answer to an earlier one is left to the reader.

use blockyard_record::RecordingError;

use crate::handout::{figure_at, inlines, write_card_text, write_exercise, write_question, write_sheets};
use crate::played::{PlayedCard, PlayedLesson};
use crate::question::LessonQuestion;
use crate::text::Inline;

/// The most questions of a page: with their figures and their choices, two have room on A4 and on Letter.
const QUESTIONS_A_PAGE: usize = 2;

/// The pages, each a `section.sheet`.
pub(crate) fn asked_pages(lesson: &PlayedLesson) -> Result<String, RecordingError> {
    let mut questions = Vec::new();
    let mut tasks = Vec::new();
    for (index, card) in lesson.cards.iter().enumerate() {
        if let Some(question) = &card.question {
            questions.push(asked(lesson, card, question, index)?);
        }
        if let Some(exercise) = &card.exercise {
            let mut out =
                format!("<section class=\"task\">\n<h2>{}. {}</h2>", index + 1, inlines(&card.title));
            if card.question.is_none() {
                write_card_text(&mut out, lesson, card)?;
            }
            write_exercise(&mut out, exercise);
            out.push_str("</section>\n");
            tasks.push(out);
        }
    }
    let pages = questions.chunks(QUESTIONS_A_PAGE).map(<[String]>::concat).chain(tasks).collect::<Vec<_>>();
    Ok(write_sheets(lesson, &pages))
}

/// A question with the figure of its moment, where that shows no answer to an earlier question.
fn asked(
    lesson: &PlayedLesson,
    card: &PlayedCard,
    question: &LessonQuestion,
    index: usize,
) -> Result<String, RecordingError> {
    let mut out = format!("<section class=\"asks\">\n<h2>{}. Question</h2>\n", index + 1);
    let before = lesson.cards.get(..index).unwrap_or_default();
    let is_first_of_run = !before.iter().any(|other| other.run == card.run && other.question.is_some());
    if is_first_of_run {
        out.push_str(&figure_at(lesson, card, card.steps.start)?);
    }
    let answered = before.iter().zip(1..).filter_map(|(other, number)| {
        other.question.as_ref().map(|question| (number, question.right.as_str()))
    });
    let answered: Vec<(usize, &str)> = answered.collect();
    let text = without_answers(&question.text, &answered);
    write_question(&mut out, &LessonQuestion { text, ..question.clone() });
    out.push_str("</section>\n");
    Ok(out)
}

/// The sentence, with a reference in place of each value that is the answer to an earlier question.
fn without_answers(text: &[Inline], answered: &[(usize, &str)]) -> Vec<Inline> {
    let inner = |text: &[Inline]| without_answers(text, answered);
    let piece = |inline: &Inline| match inline {
        Inline::Value { text, .. } => {
            let earlier = answered.iter().find(|(_, right)| right == text);
            earlier.map_or_else(
                || inline.clone(),
                |(number, _)| Inline::Emphasis(vec![Inline::Text(format!("(your answer to {number})"))]),
            )
        }
        Inline::Strong(text) => Inline::Strong(inner(text)),
        Inline::Emphasis(text) => Inline::Emphasis(inner(text)),
        Inline::Link { text, target } => Inline::Link { text: inner(text), target: target.clone() },
        Inline::Text(_) | Inline::Code(_) => inline.clone(),
    };
    text.iter().map(piece).collect()
}
