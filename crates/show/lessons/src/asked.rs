//! The questions and the exercise of a lesson alone, for a class that has seen the lesson: one page or two,
//! and a sheet that can be a test.
//!
//! The figures and numbers after a question show how the allocator answered it. So only the first question
//! about a run has a figure, and a number that a run has only after an earlier question was asked is left
//! out: that number, or a sum with it, would be the answer.

use std::fmt::Write as _;

use blockyard_record::{Recording, RecordingError};

use crate::error::Errors;
use crate::handout::{
    figure_at, inlines, is_empty_device, write_answers_to, write_card_text, write_exercise,
};
use crate::markdown::{Piece, fill, holding};
use crate::measure::{Measure, RunStretch};
use crate::played::{PlayedCard, PlayedLesson};
use crate::quantity::Quantity;
use crate::question::LessonQuestion;
use crate::sheet::Sheets;
use crate::text::Inline;

/// The text in place of a number that is the answer to an earlier question, or follows from it. A line would
/// look like room to write.
const LEFT_OUT: &str = "(…)";

/// The meaning of [`LEFT_OUT`], as the words above the questions.
const LEFT_OUT_WORDS: &str = "(…) stands for a number that follows from the answer to an earlier question. Nothing is to be written there.";

/// The questions that are earlier on a sheet than the next question.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlierQuestions<'a> {
    /// The run of each, and the number of its steps that are complete when the question is asked.
    moments: Vec<(&'a Recording, usize)>,
    /// The values in their texts, as the sheet has them.
    shown: Vec<String>,
    /// The right answers that are sizes: another run may have the same size for the same reason.
    sizes: Vec<String>,
}

impl<'a> EarlierQuestions<'a> {
    pub(crate) fn add(&mut self, recording: &'a Recording, step: usize, text: &[Inline]) {
        self.moments.push((recording, step));
        self.add_values(text);
    }

    pub(crate) fn add_answer(&mut self, right: &str) {
        if is_size(right) {
            self.sizes.push(right.to_owned());
        }
    }

    fn add_values(&mut self, text: &[Inline]) {
        for inline in text {
            match inline {
                Inline::Value { text, .. } => self.shown.push(text.clone()),
                Inline::Strong(text) | Inline::Emphasis(text) | Inline::Link { text, .. } => {
                    self.add_values(text);
                }
                Inline::Text(_) | Inline::Code(_) => {}
            }
        }
    }

    /// Whether the value is from a moment after one of these questions in the same run.
    fn answers(&self, measure: &Measure, stretch: &RunStretch<'a>) -> bool {
        let is_after = |(recording, step): (&Recording, usize)| {
            self.moments.iter().any(|(asked, from)| std::ptr::eq(*asked, recording) && step > *from)
        };
        let value = || measure.answer(stretch).map(|value| value.to_string());
        let is_size_of_program = measure.quantity == Quantity::RequestedSize;
        if !measure.origins(stretch).into_iter().any(is_after) {
            return !is_size_of_program && value().is_ok_and(|value| self.sizes.contains(&value));
        }
        // A size that an earlier question has named is known.
        !is_size_of_program || !value().is_ok_and(|value| self.shown.contains(&value))
    }
}

fn is_size(answer: &str) -> bool {
    answer.ends_with("iB")
}

/// Whether a figure has this size in its words.
fn has_size(figure: &str, size: &str) -> bool {
    figure.match_indices(size).any(|(at, _)| {
        let before = figure.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(|before| before.is_ascii_digit() || before == '.')
    })
}

/// The text without each value that is the answer to an earlier question, or from which the reader can
/// compute that answer.
pub(crate) fn fill_alone<'a>(
    pieces: &[Piece],
    stretch: &RunStretch<'a>,
    earlier: &EarlierQuestions<'a>,
) -> Vec<Inline> {
    let left_out = || Inline::Text(LEFT_OUT.to_owned());
    let mut filled = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Value { measure, .. } if earlier.answers(measure, stretch) => filled.push(left_out()),
            Piece::Claim { condition, .. }
                if condition.measures().into_iter().any(|measure| earlier.answers(measure, stretch)) =>
            {
                filled.push(left_out());
            }
            Piece::Cases(cases) => filled.extend(fill_alone(holding(cases, stretch), stretch, earlier)),
            Piece::Claim { words, .. } => filled.extend(fill_alone(words, stretch, earlier)),
            Piece::Strong(pieces) => filled.push(Inline::Strong(fill_alone(pieces, stretch, earlier))),
            Piece::Emphasis(pieces) => filled.push(Inline::Emphasis(fill_alone(pieces, stretch, earlier))),
            Piece::Link { text, target } => {
                let text = fill_alone(text, stretch, earlier);
                filled.push(Inline::Link { text, target: target.clone() });
            }
            // The errors are those of the text that the lesson shows, which is filled as well.
            Piece::Text(_) | Piece::Code(_) | Piece::Value { .. } | Piece::Unbound { .. } => {
                filled.extend(fill(std::slice::from_ref(piece), stretch, &mut Errors::default()));
            }
        }
    }
    filled
}

/// The pages, each a `section.sheet`: the questions, counted from 1, and the exercise, on a page of which a
/// student can hand it in.
pub(crate) fn asked_pages(lesson: &PlayedLesson) -> Result<String, RecordingError> {
    let mut sheets = Sheets::compact();
    let questions = lesson.cards.iter().filter_map(|card| card.question.as_ref());
    if questions.into_iter().any(|question| inlines(&question.text_alone).contains(LEFT_OUT)) {
        sheets.add(&format!("<p class=\"quiet\">{LEFT_OUT_WORDS}</p>\n"));
    }
    let mut number = 0;
    for (index, card) in lesson.cards.iter().enumerate() {
        if let Some(question) = &card.question {
            number += 1;
            sheets.add(&asked(lesson, card, question, (index, number))?);
        }
    }
    for card in &lesson.cards {
        if let Some(exercise) = &card.exercise {
            let mut out = format!("<section class=\"task\">\n<h2>{}</h2>", inlines(&card.title));
            if card.question.is_none() {
                write_card_text(&mut out, lesson, card)?;
            }
            write_exercise(&mut out, exercise);
            out.push_str("</section>\n");
            sheets.add(&out);
        }
    }
    Ok(sheets.html(lesson))
}

/// A question with the figure of its moment, if the figure shows no answer to an earlier question, also of
/// another run: 20 MiB are taken there for the same reason. An empty device needs no figure.
fn asked(
    lesson: &PlayedLesson,
    card: &PlayedCard,
    question: &LessonQuestion,
    (index, number): (usize, usize),
) -> Result<String, RecordingError> {
    let mut out = "<section class=\"asks\">\n".to_owned();
    let before = lesson.cards.get(..index).unwrap_or_default();
    let is_first_of_run = !before.iter().any(|other| other.run == card.run && other.question.is_some());
    if is_first_of_run && !is_empty_device(lesson, card)? {
        let figure = figure_at(lesson, card, card.steps.start)?;
        let answers = before.iter().filter_map(|card| card.question.as_ref());
        let mut answers = answers.map(|question| question.right.as_str()).filter(|right| is_size(right));
        if !answers.any(|right| has_size(&figure, right)) {
            out.push_str(&figure);
        }
    }
    let text = inlines(&question.text_alone);
    let _ = writeln!(out, "<div class=\"question\"><p><strong>{number}.</strong> {text}</p>");
    write_answers_to(&mut out, question);
    out.push_str("</div>\n</section>\n");
    Ok(out)
}
