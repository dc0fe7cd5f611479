//! The questions of cards, and the reader's answers. The browser remembers the answers.

use std::collections::BTreeMap;

use blockyard_lessons::{LessonQuestion, RightAnswers};
use blockyard_record::Bytes;
use blockyard_workload::parse_size;
use leptos::prelude::*;

use super::{LessonSignals, Presentation};
use crate::browser;
use crate::messages::sentence;
use crate::session::Feature;

/// An answer of the reader's that could be compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GivenAnswer {
    /// The answer as the reader gave it: the number of a choice from 1, or the typed text.
    pub(crate) raw: String,
    /// The answer in words.
    pub(crate) words: String,
    pub(crate) is_right: bool,
}

impl GivenAnswer {
    /// The answer to a question; or why it cannot be compared, in a sentence.
    pub(crate) fn new(question: &LessonQuestion, raw: &str) -> Result<Self, String> {
        let raw = raw.trim();
        let is_right = question.check(raw).map_err(|error| sentence(&error.to_string()))?;
        let words = match &question.answers {
            RightAnswers::Choices(choices) => {
                let place = raw.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let choice = place.and_then(|place| choices.get(place));
                choice.map(|choice| blockyard_lessons::plain(&choice.text)).unwrap_or_default()
            }
            RightAnswers::Bytes(_) if question.ruler.is_some() => {
                drawn_bytes(raw).map_or_else(|| raw.to_owned(), |drawn| drawn.to_string())
            }
            RightAnswers::Bytes(_) | RightAnswers::Count(_) => raw.to_owned(),
        };
        Ok(Self { raw: raw.to_owned(), words, is_right })
    }
}

/// The bytes of an answer that was drawn.
pub(crate) fn drawn_bytes(raw: &str) -> Option<Bytes> {
    parse_size(raw).ok()
}

/// The answers to questions as they were given, by lesson and card.
pub(crate) type GivenAnswers = BTreeMap<(String, usize), String>;

/// The storage key of the answers.
const KEY: &str = "blockyard.answers";

/// The answers of earlier visits.
pub(super) fn recall() -> GivenAnswers {
    browser::recall(KEY).map(|text| read(&text)).unwrap_or_default()
}

/// The stored form, a line for each answer: `reserved/1=3`, counted from 0.
fn written(answers: &GivenAnswers) -> String {
    let lines = answers.iter().map(|((lesson, card), raw)| format!("{lesson}/{card}={raw}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads the stored form. Lines that cannot be read are left out.
fn read(text: &str) -> GivenAnswers {
    let answer = |line: &str| {
        let (place, raw) = line.split_once('=')?;
        let (lesson, card) = place.split_once('/')?;
        Some(((lesson.to_owned(), card.parse().ok()?), raw.to_owned()))
    };
    text.lines().filter_map(answer).collect()
}

impl Feature<LessonSignals> {
    /// Takes an answer to the card's question, and shows the right answer.
    pub(crate) fn answer_question(self, question: &LessonQuestion, answer: &str) {
        match GivenAnswer::new(question, answer) {
            Ok(given) => {
                if let Some(id) = untrack(|| self.session.open_lesson()).map(|lesson| lesson.id.clone()) {
                    let card = self.state.with_untracked(|state| state.card);
                    self.remember_answer(&id, card, Some(&given.raw));
                    // The answer of a class is not the speaker's.
                    if self.presenting.get_untracked() == Presentation::No {
                        self.add_to_practice(&id, card, given.is_right);
                    }
                }
                self.state.update(|state| {
                    state.answer = Some(given);
                    state.problem = None;
                    state.is_revealed = true;
                });
                self.play_card();
            }
            Err(problem) => self.state.update(|state| state.problem = Some(problem)),
        }
    }

    /// The reader's answer to the question of a card, on this visit or an earlier one.
    pub(crate) fn answer_to(
        self,
        lesson: &str,
        card: usize,
        question: &LessonQuestion,
    ) -> Option<GivenAnswer> {
        let place = (lesson.to_owned(), card);
        let raw = self.given_answers.with_untracked(|answers| answers.get(&place).cloned())?;
        GivenAnswer::new(question, &raw).ok()
    }

    /// How many questions of a lesson the reader has answered. Reads signals.
    pub(crate) fn answer_count(self, lesson: &str) -> usize {
        self.given_answers.with(|answers| answers.keys().filter(|(id, _)| id == lesson).count())
    }

    /// Keeps an answer, or forgets it. The browser remembers answers on the reader's machine only.
    pub(crate) fn remember_answer(self, lesson: &str, card: usize, raw: Option<&str>) {
        let place = (lesson.to_owned(), card);
        self.given_answers.update(|answers| {
            match raw {
                Some(raw) => answers.insert(place, raw.to_owned()),
                None => answers.remove(&place),
            };
        });
        if self.session.navigation().embed.is_none() {
            self.given_answers.with_untracked(|answers| browser::remember(KEY, &written(answers)));
        }
    }

    /// Asks the card's question again.
    pub(crate) fn ask_again(self) {
        if let Some(id) = untrack(|| self.session.open_lesson()).map(|lesson| lesson.id.clone()) {
            let card = self.state.with_untracked(|state| state.card);
            self.remember_answer(&id, card, None);
            self.show_card(card);
        }
    }

    /// Shows the right answer without an answer of the reader's.
    pub(crate) fn reveal(self) {
        self.state.update(|state| state.is_revealed = true);
        self.play_card();
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn answers_come_back_and_damage_is_left_out() {
        let place = |card| ("reserved".to_owned(), card);
        let answers = GivenAnswers::from([(place(1), "3".to_owned()), (place(3), "36 MiB".to_owned())]);
        assert_eq!(read(&written(&answers)), answers);
        assert_eq!(read("reserved/x=1\nnothing\nreserved/1=3").len(), 1);
    }
}
