//! A lesson on paper: the cards with their figures, room for answers, the exercise with its lines, and at the
//! end the answers, with hints and solutions.
//!
//! The figures and numbers after a question show how the allocator answered it. So a question ends its page,
//! and its title, which often says the answer, is among the answers. An exercise has a separate page, which a
//! student can hand in.

use std::fmt::Write as _;

use blockyard_figure::{Changes, Mark, Pattern, Stage, StageForm, StageView, Theme, breakdown_text, escaped};
use blockyard_record::{Bytes, MemoryState, Recording, RecordingError};

use crate::asked::asked_pages;
use crate::exercise::Exercise;
use crate::played::{MeasuredMemory, PlayedCard, PlayedLesson};
use crate::question::{LessonQuestion, RightAnswers};
use crate::sheet::Sheets;
use crate::text::{Inline, TextBlock, plain, with_code};

/// How wide figures are laid out, in CSS pixels; the page scales them to the paper.
const WIDTH_PX: f32 = 720.0;

/// The fewest bytes that the ruler of a process shows.
const MIN_SHOWN: Bytes = Bytes::mib(64);

/// A lesson as HTML for paper, to be put into a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handout {
    /// A `section.sheet` for each page of the class, with a `section` for each card: `asks` has a question,
    /// `tells` has none, `task` is an exercise. No page shows the answer to a question before it.
    pub cards: String,
    /// The pages with the questions and the exercise alone, one page or two: no number and no figure in these
    /// pages answers one of their questions.
    pub asked: String,
    /// `section.answer-key`: a page with the right answer of each question, by its number, and the lines that
    /// solve the exercise.
    pub key: String,
    /// `section.answers`: the answers with their reasons, hints and solutions, for a separate page or for the
    /// teacher alone.
    pub answers: String,
}

/// The cards, and the answers after them.
impl std::fmt::Display for Handout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.cards, self.answers)
    }
}

/// The lesson for paper.
///
/// A card with a question shows the moment before its steps. Its title and its text, which have the answer,
/// are in the last part.
///
/// # Errors
///
/// Where a recording is damaged, which no run of a lesson is.
pub fn handout(lesson: &PlayedLesson) -> Result<Handout, RecordingError> {
    let mut sheets = Sheets::wide();
    let mut number = 0;
    for (index, card) in lesson.cards.iter().enumerate() {
        number += usize::from(card.question.is_some());
        write_card(&mut sheets, lesson, card, (index, number))?;
    }
    let mut answers = String::new();
    write_answers(&mut answers, lesson)?;
    Ok(Handout { cards: sheets.html(lesson), asked: asked_pages(lesson)?, key: answer_key(lesson), answers })
}

/// The moment at the end of a card, as an SVG; empty for a card that the lesson has not.
///
/// # Errors
///
/// Where a recording is damaged, which no run of a lesson is.
pub fn card_figure(lesson: &PlayedLesson, card: usize, theme: Theme) -> Result<String, RecordingError> {
    lesson
        .cards
        .get(card)
        .map_or_else(|| Ok(String::new()), |shown| figure_in(lesson, shown, shown.shown_step(false), theme))
}

/// The memory after this many steps of a card's run, and the recording that names its blocks.
fn moment<'a>(
    lesson: &'a PlayedLesson,
    card: &PlayedCard,
    step: usize,
) -> Result<Option<(MemoryState, &'a Recording)>, RecordingError> {
    let Some(run) = lesson.runs.get(card.run) else { return Ok(None) };
    let last = step.checked_sub(1).and_then(|step| run.recording.step(step));
    let state = run.recording.state_at(last.map_or(0, |step| step.end))?;
    Ok(Some((state, &run.recording)))
}

/// Adds a card to the last page, and begins a page after a question. The question is numbered among the
/// questions of the lesson.
fn write_card(
    sheets: &mut Sheets,
    lesson: &PlayedLesson,
    card: &PlayedCard,
    (index, number): (usize, usize),
) -> Result<(), RecordingError> {
    if let Some(question) = &card.question {
        // The card before, on the same page, ends at the moment that the question is about.
        let before = index.checked_sub(1).and_then(|before| lesson.cards.get(before));
        let is_drawn = sheets.last().contains("<svg")
            && before
                .is_some_and(|before| before.run == card.run && before.shown_step(false) == card.steps.start);
        let alone = asked_card(lesson, card, question, (index, number), false)?;
        if is_drawn && sheets.has_room(&alone) {
            sheets.add(&alone);
        } else {
            sheets.add(&asked_card(lesson, card, question, (index, number), true)?);
        }
        sheets.break_page();
    } else if card.exercise.is_none() {
        let mut out =
            format!("<section class=\"tells\">\n<h2>{}. {}</h2>\n", index + 1, inlines(&card.title));
        write_card_text(&mut out, lesson, card)?;
        out.push_str("</section>\n");
        sheets.add(&out);
    }
    if let Some(exercise) = &card.exercise {
        sheets.break_page();
        let mut out = format!("<section class=\"task\">\n<h2>{}. {}</h2>\n", index + 1, inlines(&card.title));
        if card.question.is_none() {
            write_card_text(&mut out, lesson, card)?;
        }
        write_exercise(&mut out, exercise);
        out.push_str("</section>\n");
        sheets.add(&out);
    }
    Ok(())
}

/// A question with room for its answer, and the figure of its moment unless the page has this figure already.
fn asked_card(
    lesson: &PlayedLesson,
    card: &PlayedCard,
    question: &LessonQuestion,
    (index, number): (usize, usize),
    has_figure: bool,
) -> Result<String, RecordingError> {
    let mut out = format!("<section class=\"asks\">\n<h2>{}. Question {number}</h2>\n", index + 1);
    if has_figure {
        out.push_str(&figure(lesson, card, card.steps.start)?);
    }
    let _ = writeln!(out, "<div class=\"question\"><p>{}</p>", inlines(&question.text));
    write_answers_to(&mut out, question);
    out.push_str("</div>\n");
    if index + 1 < lesson.cards.len() {
        out.push_str("<p class=\"quiet\">Answer before you turn the page: it shows what happened.</p>\n");
    }
    out.push_str("</section>\n");
    Ok(out)
}

/// Writes the task with all its lines; the reader changes the lines between the two comments on paper. Hints
/// are left out, since the teacher gives them.
pub(crate) fn write_exercise(out: &mut String, exercise: &Exercise) {
    let settings = if exercise.conf.is_empty() {
        String::new()
    } else {
        format!(", with <code>{}</code>", escaped(&exercise.conf))
    };
    let _ = writeln!(
        out,
        "<p>The device has {}{settings}.</p>\n<pre class=\"code\">{}</pre>\n<ul>",
        exercise.capacity,
        escaped(exercise.start())
    );
    for goal in &exercise.goals {
        let _ = writeln!(out, "<li>Goal: {}</li>", inlines(&with_code(&goal.to_string())));
    }
    out.push_str("</ul>\n<p>Your lines between the two comments:</p>\n<div class=\"lines\"></div>\n");
}

fn write_solution_lines(out: &mut String, exercise: &Exercise) {
    if let Some(lines) = exercise.solution() {
        let _ = writeln!(
            out,
            "<p>These lines between the two comments meet all goals; others may, too.</p>\n<pre class=\"code\">{}</pre>",
            escaped(lines)
        );
    }
}

/// The hints, which a teacher gives one after the other, and the lines that solve the exercise.
fn write_solution(out: &mut String, lesson: &PlayedLesson, exercise: &Exercise) {
    out.push_str("<ul>\n");
    for hint in &exercise.hints {
        let _ = writeln!(out, "<li>Hint: {}</li>", inlines(hint));
    }
    out.push_str("</ul>\n");
    write_solution_lines(out, exercise);
    if crate::course().any(|known| known.id == lesson.id) {
        let id = escaped(&lesson.id);
        let _ = writeln!(
            out,
            "<p>In the page, the card checks what is typed there. In a terminal, <code>blockyard lesson {id} --check FILE</code> checks a file.</p>"
        );
    }
}

/// The choices of a question, or a line for its number.
pub(crate) fn write_answers_to(out: &mut String, question: &LessonQuestion) {
    match &question.answers {
        RightAnswers::Choices(choices) => {
            out.push_str("<ol class=\"choices\">\n");
            for choice in choices {
                let _ = writeln!(out, "<li>{}</li>", inlines(&choice.text));
            }
            out.push_str("</ol>\n");
        }
        RightAnswers::Bytes(_) | RightAnswers::Count(_) => out.push_str("<p class=\"answer\"></p>\n"),
    }
}

/// A page for the teacher: the right answer of each question by its number, a choice with its letter, and the
/// lines that solve the exercise.
fn answer_key(lesson: &PlayedLesson) -> String {
    let mut out =
        format!("<section class=\"answer-key\">\n<h2>{}: answer key</h2>\n<table>\n", escaped(&lesson.title));
    let questions = lesson.cards.iter().filter_map(|card| card.question.as_ref());
    for (question, number) in questions.zip(1..) {
        let letter = question.letter().map(|letter| format!("{letter})")).unwrap_or_default();
        let (asked, right) = (inlines(&question.text), escaped(&question.right));
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{number}</th><td><strong>{letter} {right}</strong></td><td>{asked}</td></tr>"
        );
    }
    out.push_str("</table>\n");
    for card in &lesson.cards {
        let Some(exercise) = &card.exercise else { continue };
        let _ = writeln!(out, "<h3>{}</h3>\n<ul>", inlines(&card.title));
        for goal in &exercise.goals {
            let _ = writeln!(out, "<li>Goal: {}</li>", inlines(&with_code(&goal.to_string())));
        }
        out.push_str("</ul>\n");
        write_solution_lines(&mut out, exercise);
    }
    out.push_str("</section>\n");
    out
}

/// The non-PyTorch memory of the process at this moment: before the steps of a card with a question, that of
/// the card before.
fn non_pytorch_at(lesson: &PlayedLesson, card: &PlayedCard, step: usize) -> Option<MeasuredMemory> {
    let place = lesson.cards.iter().position(|other| std::ptr::eq(other, card));
    let is_before = card.question.is_some() && step == card.steps.start && !card.steps.is_empty();
    let before = place.filter(|_| is_before).and_then(|place| lesson.cards.get(place.checked_sub(1)?));
    before.filter(|before| before.run == card.run).unwrap_or(card).non_pytorch.clone()
}

/// The moment after this many steps of the card's run.
fn figure(lesson: &PlayedLesson, card: &PlayedCard, step: usize) -> Result<String, RecordingError> {
    let place = lesson.cards.iter().position(|other| std::ptr::eq(other, card));
    let before = place.and_then(|place| lesson.cards.get(place.checked_sub(1)?));
    let is_drawn = before.is_some_and(|it| it.run == card.run && it.steps.end == card.steps.start);
    if card.steps.is_empty() && is_drawn {
        // The figure of the card before shows this moment already.
        return Ok(String::new());
    }
    figure_at(lesson, card, step)
}

/// Whether nothing is to be seen at the moment of a card's question: a run that has not begun, and no memory
/// outside of PyTorch.
pub(crate) fn is_empty_device(lesson: &PlayedLesson, card: &PlayedCard) -> Result<bool, RecordingError> {
    let Some((state, _)) = moment(lesson, card, card.steps.start)? else { return Ok(true) };
    let is_non_pytorch_drawn = non_pytorch_at(lesson, card, card.steps.start).is_some();
    Ok(state.breakdown().reserved().is_zero() && !is_non_pytorch_drawn)
}

/// The moment on paper.
pub(crate) fn figure_at(
    lesson: &PlayedLesson,
    card: &PlayedCard,
    step: usize,
) -> Result<String, RecordingError> {
    figure_in(lesson, card, step, Theme::Light)
}

/// The moment of a card's question if the card `is_asked`, or else the moment at its end, with a description
/// in words; `None` for a card that the lesson has not.
///
/// # Errors
///
/// Where a recording is damaged, which no run of a lesson is.
pub fn card_stage(
    lesson: &PlayedLesson,
    card: usize,
    is_asked: bool,
) -> Result<Option<(Stage, String)>, RecordingError> {
    let Some(shown) = lesson.cards.get(card) else { return Ok(None) };
    stage_at(lesson, shown, shown.shown_step(is_asked))
}

fn stage_at(
    lesson: &PlayedLesson,
    card: &PlayedCard,
    step: usize,
) -> Result<Option<(Stage, String)>, RecordingError> {
    let Some((state, recording)) = moment(lesson, card, step)? else { return Ok(None) };
    // Changes are not marked, since on paper a frame around half of all blocks has no meaning.
    let changes = Changes::default();
    let workload = lesson.runs.get(card.run).map(|run| &run.workload);
    let pool_name = |pool| workload.and_then(|workload| workload.pool_name(pool)).map(ToOwned::to_owned);
    let last = step.checked_sub(1).filter(|_| step > card.steps.start);
    let mut figure =
        Stage::new(&state, recording, &changes, last, &pool_name).for_one_moment().with_leaders();
    if card.peak == Some(step) {
        figure = figure.at_peak();
    }
    let breakdown = state.breakdown();
    let mut words = breakdown_text(&state, recording);
    if let Some(non_pytorch) = non_pytorch_at(lesson, card, step) {
        figure = figure.as_process_of_whole_device(&non_pytorch.parts, MIN_SHOWN);
        words = format!("{words} {}", non_pytorch.process_sentence(&breakdown));
    }
    if breakdown.reserved().is_zero() && card.non_pytorch.is_none() {
        // An empty device is shown whole: a small part of it would look too small for the next request.
        figure = figure.with_ruler_to_peak(breakdown.capacity());
    }
    Ok(Some((figure, words)))
}

fn figure_in(
    lesson: &PlayedLesson,
    card: &PlayedCard,
    step: usize,
    theme: Theme,
) -> Result<String, RecordingError> {
    let Some((figure, description)) = stage_at(lesson, card, step)? else { return Ok(String::new()) };
    let view = StageView { form: StageForm::Compact, ..StageView::default() };
    let mut scene = figure.scene(&view, WIDTH_PX);
    // A browser prints each dotted block as a picture, which makes a sheet of megabytes; a tint is as clear
    // in grey, beside the full color of allocated bytes.
    for mark in &mut scene.marks {
        if let Mark::Rect { fill, .. } | Mark::Rounded { fill, .. } = mark
            && fill.pattern == Pattern::Dots
        {
            fill.pattern = Pattern::Tint;
        }
    }
    Ok(scene.to_svg(theme, &plain(&card.title), &description))
}

fn write_block(out: &mut String, block: &TextBlock) {
    let _ = match block {
        TextBlock::Paragraph(text) => writeln!(out, "<p>{}</p>", inlines(text)),
        TextBlock::List(items) => {
            let items = items.iter().map(|item| format!("<li>{}</li>\n", inlines(item)));
            writeln!(out, "<ul>\n{}</ul>", items.collect::<String>())
        }
        TextBlock::Code { text, .. } => writeln!(out, "<pre>{}</pre>", escaped(text)),
    };
}

/// The figure of a card, and its text.
pub(crate) fn write_card_text(
    out: &mut String,
    lesson: &PlayedLesson,
    card: &PlayedCard,
) -> Result<(), RecordingError> {
    if card.exercise.is_none() {
        out.push_str(&figure(lesson, card, card.shown_step(false))?);
    }
    let bars = card.beside.iter().filter_map(|bar| {
        let run = lesson.runs.get(bar.run)?;
        let memory = run.recording.breakdown_after(bar.step.checked_sub(1)?)?;
        Some(format!("{}: {}", escaped(&bar.name), memory.allocated()))
    });
    let bars = bars.collect::<Vec<_>>().join("; ");
    if !bars.is_empty() {
        let _ = writeln!(out, "<p class=\"quiet\">{bars}</p>");
    }
    card.body.iter().for_each(|block| write_block(out, block));
    Ok(())
}

fn write_answers(out: &mut String, lesson: &PlayedLesson) -> Result<(), RecordingError> {
    let _ = writeln!(
        out,
        "<section class=\"answers\">\n<h2>{}: answers</h2>\n<p class=\"quiet\">As the allocator gave them.</p>",
        escaped(&lesson.title)
    );
    let mut number = 0;
    for card in &lesson.cards {
        if card.question.is_none() && card.exercise.is_none() {
            continue;
        }
        number += usize::from(card.question.is_some());
        let of_question = card.question.as_ref().map(|_| format!("Question {number}: ")).unwrap_or_default();
        let _ = writeln!(out, "<section>\n<h3>{of_question}{}</h3>", inlines(&card.title));
        if let Some(question) = &card.question {
            let (asked, because) = (inlines(&question.text), inlines(&question.because));
            let letter = question.letter().map(|letter| format!("{letter}) ")).unwrap_or_default();
            let right = escaped(&question.right);
            let _ = writeln!(out, "<p>{asked}</p>\n<p><strong>{letter}{right}</strong> {because}</p>");
            write_card_text(out, lesson, card)?;
        }
        if let Some(exercise) = &card.exercise {
            write_solution(out, lesson, exercise);
        }
        out.push_str("</section>\n");
    }
    out.push_str("</section>\n");
    Ok(())
}

/// A sentence as HTML.
pub fn inlines(text: &[Inline]) -> String {
    text.iter()
        .map(|inline| match inline {
            Inline::Text(text) | Inline::Value { text, .. } => escaped(text),
            Inline::Strong(text) => format!("<strong>{}</strong>", inlines(text)),
            Inline::Emphasis(text) => format!("<em>{}</em>", inlines(text)),
            Inline::Code(text) => format!("<code>{}</code>", escaped(text)),
            // Paper has no links.
            Inline::Link { text, .. } => inlines(text),
        })
        .collect()
}
