//! The cards that the reader has seen, the exercises that are passed, and the questions that were practiced. The
//! browser remembers them.

use std::collections::BTreeSet;

use blockyard_lessons::{Practice, PracticeQuestion, course};
use leptos::prelude::*;

use super::LessonSignals;
use crate::browser;
use crate::session::Feature;

/// A card that the reader has seen, or an exercise that is passed. The browser keeps this on the reader's
/// machine only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CardProgress {
    pub(crate) lesson: String,
    /// The card, from 0.
    pub(crate) card: usize,
    /// Whether the exercise of the card was passed; false if the card was only seen.
    pub(crate) is_passed: bool,
}

/// The cards seen and the exercises passed in all lessons.
pub(crate) type LessonProgress = BTreeSet<CardProgress>;

/// The storage key of the progress.
const KEY: &str = "blockyard.progress";
/// The storage key of the card that the reader saw last.
const LAST_KEY: &str = "blockyard.lesson";
/// The storage key of the practice.
const PRACTICE_KEY: &str = "blockyard.practice";

/// The lesson and the card, from 0, that the reader saw last on an earlier visit.
pub(super) fn recall_last() -> Option<(String, usize)> {
    let text = browser::recall(LAST_KEY)?;
    let (id, card) = text.split_once('/')?;
    let is_known = course().any(|lesson| lesson.id == id);
    Some((id.to_owned(), card.parse().ok()?)).filter(|_| is_known)
}

/// The progress of earlier visits.
pub(super) fn recall() -> LessonProgress {
    browser::recall(KEY).map(|text| read(&text)).unwrap_or_default()
}

/// The stored form, such as `reserved/3 reserved/8!`: lesson and card, with `!` for a passed exercise.
fn written(progress: &LessonProgress) -> String {
    let words = progress
        .iter()
        .map(|done| format!("{}/{}{}", done.lesson, done.card, if done.is_passed { "!" } else { "" }));
    words.collect::<Vec<_>>().join(" ")
}

/// Reads the stored form. Words that cannot be read are left out.
fn read(text: &str) -> LessonProgress {
    let card_done = |word: &str| {
        let (lesson, card) = word.split_once('/')?;
        let is_passed = card.ends_with('!');
        let card = card.trim_end_matches('!').parse().ok()?;
        Some(CardProgress { lesson: lesson.to_owned(), card, is_passed })
    };
    text.split_whitespace().filter_map(card_done).collect()
}

impl Feature<LessonSignals> {
    /// How the reader stands with the questions that were practiced on earlier visits.
    pub(crate) fn recall_practice(self) -> Practice {
        let is_own = self.session.navigation().embed.is_none();
        let text = is_own.then(|| browser::recall(PRACTICE_KEY)).flatten();
        text.map(|text| Practice::read(&text)).unwrap_or_default()
    }

    /// Keeps the practice on the reader's machine only.
    pub(crate) fn remember_practice(self, practice: &Practice) {
        if self.session.navigation().embed.is_none() {
            browser::remember(PRACTICE_KEY, &practice.written());
        }
    }

    /// Takes the answer to a question of the course into the practice.
    pub(crate) fn add_to_practice(self, id: &str, card: usize, is_right: bool) {
        if course().any(|lesson| lesson.id == id) {
            let mut practice = self.recall_practice();
            practice.answer(&PracticeQuestion { lesson: id.to_owned(), card }, is_right, browser::today());
            self.remember_practice(&practice);
        }
    }

    /// Whether the reader has seen a card. Reads no signals.
    pub(crate) fn has_seen(self, id: &str, card: usize) -> bool {
        let seen = CardProgress { lesson: id.to_owned(), card, is_passed: false };
        self.progress.with_untracked(|progress| progress.contains(&seen))
    }

    pub(super) fn remember_card(self, id: &str, card: usize) {
        let is_bundled = course().any(|lesson| lesson.id == id);
        if is_bundled && self.session.navigation().embed.is_none() {
            self.last_card.set(Some((id.to_owned(), card)));
            browser::remember(LAST_KEY, &format!("{id}/{card}"));
        }
    }

    pub(super) fn add_progress(self, id: &str, card: usize, is_passed: bool) {
        let done = CardProgress { lesson: id.to_owned(), card, is_passed };
        if self.progress.with_untracked(|progress| !progress.contains(&done)) {
            self.progress.update(|progress| {
                progress.insert(done);
            });
            if self.session.navigation().embed.is_none() {
                self.progress.with_untracked(|progress| browser::remember(KEY, &written(progress)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn progress_comes_back_and_damage_is_left_out() {
        let done = |card, is_passed| CardProgress { lesson: "reserved".to_owned(), card, is_passed };
        let progress = LessonProgress::from([done(0, false), done(3, false), done(3, true)]);
        assert_eq!(read(&written(&progress)), progress);
        assert_eq!(read("reserved/x nothing reserved/0 /"), LessonProgress::from([done(0, false)]));
    }
}
