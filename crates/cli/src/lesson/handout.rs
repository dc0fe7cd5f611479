//! A lesson on paper: the cards with their figures, room for answers, the exercise, and the answers on the last page.

use std::fmt::Write as _;

use blockyard_figure::{Changes, Stage, StageView, Theme, breakdown_text};
use blockyard_lessons::{Answers, Inline, LessonQuestion, PlayedCard, PlayedLesson, TextBlock, plain};

use super::moment;
use crate::output::escaped;
use crate::typeface::font_faces;

/// How wide figures are laid out, in CSS pixels; the page scales them to the paper.
const WIDTH_PX: f32 = 720.0;

const STYLE: &str = "
@page { size: A4; margin: 18mm 16mm; }
body { font: 11pt/1.45 \"Noto Sans\", \"Helvetica Neue\", Arial, sans-serif; color: #1b1f24; background: #fff;
  max-width: 46em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 20pt; margin: 0 0 .2em; } h2 { font-size: 13pt; margin: 1.6em 0 .4em; }
section { break-inside: avoid; } svg { display: block; width: 100%; height: auto; margin: .6em 0; }
code, pre { font-family: \"Noto Sans Mono\", ui-monospace, monospace; font-size: .92em; }
pre { border: 1px solid #c8ccd1; padding: .6em .8em; white-space: pre-wrap; }
.question { border-left: 3px solid #1b1f24; padding: .1em .8em; margin: .6em 0; }
.answer { border-bottom: 1px solid #1b1f24; height: 1.8em; }
ol.choices { list-style: none; padding-left: 0; } ol.choices li::before { content: \"\\2610\\00a0\\00a0\"; }
.answers { break-before: page; } .quiet { color: #555; }
@media print { body { margin: 0; padding: 0; max-width: none; } }
";

/// The handout as one HTML document that needs nothing else.
pub(crate) fn handout(lesson: &PlayedLesson) -> anyhow::Result<String> {
    let mut out = String::new();
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{}</title>\n<style>{}{STYLE}</style>\n<h1>{}</h1>\n<p>{}</p>\n",
        escaped(&lesson.title),
        font_faces(),
        escaped(&lesson.title),
        escaped(&lesson.summary)
    );
    for (index, card) in lesson.cards.iter().enumerate() {
        write_card(&mut out, lesson, card, index)?;
    }
    write_answers(&mut out, lesson)?;
    Ok(out)
}

fn write_card(
    out: &mut String,
    lesson: &PlayedLesson,
    card: &PlayedCard,
    index: usize,
) -> anyhow::Result<()> {
    let _ = writeln!(out, "<section>\n<h2>{}. {}</h2>", index + 1, inlines(&card.title));
    match &card.question {
        // On paper nothing can be hidden: the answers are printed after the last card.
        Some(question) => {
            out.push_str(&figure(lesson, card, card.steps.start)?);
            write_question(out, question);
        }
        None => write_card_text(out, lesson, card)?,
    }
    if let Some(exercise) = &card.exercise {
        let _ = writeln!(
            out,
            "<p>The device has {}.</p>\n<pre>{}</pre>\n<ul>",
            exercise.capacity,
            escaped(exercise.start())
        );
        for goal in &exercise.goals {
            let _ = writeln!(out, "<li>Goal: {}</li>", escaped(&goal.to_string()));
        }
        for hint in &exercise.hints {
            let _ = writeln!(out, "<li class=\"quiet\">Hint: {}</li>", inlines(hint));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</section>\n");
    Ok(())
}

fn write_question(out: &mut String, question: &LessonQuestion) {
    let _ = writeln!(out, "<div class=\"question\"><p>{}</p>", inlines(&question.text));
    match &question.answers {
        Answers::Choices(choices) => {
            out.push_str("<ol class=\"choices\">\n");
            for choice in choices {
                let _ = writeln!(out, "<li>{}</li>", inlines(&choice.text));
            }
            out.push_str("</ol>\n");
        }
        Answers::Bytes(_) | Answers::Count(_) => out.push_str("<p class=\"answer\"></p>\n"),
    }
    out.push_str("</div>\n");
}

/// The moment after so many steps of the card's run, with patterns, so that it can be read in grey.
fn figure(lesson: &PlayedLesson, card: &PlayedCard, step: usize) -> anyhow::Result<String> {
    let is_first = lesson.cards.first().is_some_and(|first| std::ptr::eq(first, card));
    if card.steps.is_empty() && !is_first {
        // The figure of the card before still stands.
        return Ok(String::new());
    }
    let (state, recording) = moment(lesson, card, step)?;
    let events =
        |step: usize| step.checked_sub(1).and_then(|last| recording.step(last)).map_or(0, |step| step.end);
    let changes = Changes::of(recording, events(card.steps.start.min(step)), events(step));
    let workload = lesson.runs.get(card.run).map(|run| &run.workload);
    let pool_name = |pool| workload.and_then(|workload| workload.pool_name(pool)).map(ToOwned::to_owned);
    let last = step.checked_sub(1).filter(|_| step > card.steps.start);
    let figure = Stage::new(&state, recording, &changes, last, &pool_name);
    let view = StageView { is_patterned: true, is_compact: true, ..StageView::default() };
    let svg = figure.scene(&view, WIDTH_PX).to_svg(
        Theme::Light,
        &plain(&card.title),
        &breakdown_text(&state, recording),
    );
    Ok(svg)
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
fn write_card_text(out: &mut String, lesson: &PlayedLesson, card: &PlayedCard) -> anyhow::Result<()> {
    if card.exercise.is_none() {
        out.push_str(&figure(lesson, card, card.steps.end)?);
    }
    card.body.iter().for_each(|block| write_block(out, block));
    Ok(())
}

fn write_answers(out: &mut String, lesson: &PlayedLesson) -> anyhow::Result<()> {
    out.push_str("<section class=\"answers\">\n<h2>Answers</h2>\n<p class=\"quiet\">As the allocator gave them.</p>\n</section>\n");
    for (index, card) in lesson.cards.iter().enumerate() {
        let Some(question) = &card.question else { continue };
        let _ = writeln!(
            out,
            "<section>\n<h2>{}. {}</h2>\n<p><strong>{}</strong> {}</p>",
            index + 1,
            inlines(&card.title),
            escaped(&question.right),
            inlines(&question.because)
        );
        write_card_text(out, lesson, card)?;
        out.push_str("</section>\n");
    }
    let id = escaped(&lesson.id);
    let _ =
        writeln!(out, "<p>The exercise is checked by <code>blockyard lesson {id} --check FILE</code>.</p>");
    Ok(())
}

fn inlines(text: &[Inline]) -> String {
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
