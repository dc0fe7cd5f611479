//! The open lesson: its card, the reader's answers and exercises, and the progress in all lessons.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use blockyard_figure::{Player, PlayerAction};
use blockyard_lessons::{
    Answers, Exercise, Handout, Lesson, LessonError, LessonFile, LessonQuestion, OutsideMemory, PlayedCard,
    PlayedLesson, course,
};
use leptos::prelude::*;
use thiserror::Error;

use super::answer::{AnswerRun, recall_draft, remember_draft};
use super::{Place, Session, Source};
use crate::browser;
use crate::ptr_eq::PtrEq;
use crate::run::Run;

/// A lesson with its runs, ready to be drawn.
#[derive(Debug)]
pub(crate) struct OpenLesson {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) cards: Vec<PlayedCard>,
    pub(crate) runs: Vec<PtrEq<Run>>,
}

/// The card of the open lesson, and what the reader has done on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LessonState {
    /// The card, from 0.
    pub(crate) card: usize,
    /// Whether the answer to the card's question is shown, because the reader answered or gave up.
    pub(crate) is_revealed: bool,
    /// The reader's answer.
    pub(crate) answer: Option<GivenAnswer>,
    /// Why the typed answer cannot be read.
    pub(crate) problem: Option<String>,
    /// The reader's lines of the exercise.
    pub(crate) text: String,
    /// The reader's lines of all exercises, by lesson and card.
    drafts: BTreeMap<(String, usize), String>,
    /// How many hints are shown.
    pub(crate) hints: usize,
    pub(crate) graded: Option<GradedExercise>,
    /// The reader's program, where the exercise is in Python.
    pub(crate) answer_run: AnswerRun,
}

/// An answer of the reader's that could be compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GivenAnswer {
    /// As it was given: the number of a choice from 1, or what was typed.
    pub(crate) raw: String,
    /// For people.
    pub(crate) words: String,
    pub(crate) is_right: bool,
}

impl GivenAnswer {
    /// The answer to a question; or why it cannot be compared, in a sentence.
    pub(crate) fn new(question: &LessonQuestion, raw: &str) -> Result<Self, String> {
        let raw = raw.trim();
        let is_right = question.check(raw).map_err(|error| crate::commands::sentence(&error.to_string()))?;
        let words = match &question.answers {
            Answers::Choices(choices) => {
                let place = raw.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let choice = place.and_then(|place| choices.get(place));
                choice.map(|choice| blockyard_lessons::plain(&choice.text)).unwrap_or_default()
            }
            Answers::Bytes(_) | Answers::Count(_) => raw.to_owned(),
        };
        Ok(Self { raw: raw.to_owned(), words, is_right })
    }
}

/// The result of an exercise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GradedExercise {
    pub(crate) is_passed: bool,
    pub(crate) sentence: String,
    /// The goals, each with whether it is met, in the order of the exercise. The sentence has the numbers.
    pub(crate) goals: Vec<(String, bool)>,
    /// The run of the reader's text; `None` if the text could not be run.
    pub(crate) run: Option<PtrEq<Run>>,
}

/// Why a lesson cannot be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenLessonError {
    #[error("there is no lesson \"{0}\" here")]
    Unknown(String),
    #[error(transparent)]
    Lesson(#[from] LessonError),
}

impl OpenLesson {
    /// The lesson that comes with the page under this id, one of `files`.
    fn bundled(id: &str, files: &[LessonFile]) -> Result<Self, OpenLessonError> {
        let file = files.iter().find(|file| file.id == id);
        let file = file.ok_or_else(|| OpenLessonError::Unknown(id.to_owned()))?;
        Ok(Self::read(file.text)?)
    }

    /// The lessons that come with the page under these ids, separated by commas, as HTML for paper; or why not. Without an id, the lesson
    /// with the text `own`. Only the module with the texts calls this.
    pub(crate) fn handout(ids: &str, own: Option<&str>) -> Result<Handout, String> {
        let text_of = |id: &str| {
            let file = blockyard_lessons::lessons().iter().find(|file| file.id == id);
            let text = if id.is_empty() { own } else { file.map(|file| file.text) };
            text.map(str::to_owned).ok_or_else(|| OpenLessonError::Unknown(id.to_owned()).to_string())
        };
        let mut all = Handout { cards: String::new(), answers: String::new() };
        for id in ids.split(',') {
            let text = text_of(id)?;
            let played = Lesson::parse(&text).and_then(|lesson| lesson.play());
            let played = played.map_err(|error| error.to_string())?;
            let one = blockyard_lessons::handout(&played).map_err(|error| error.to_string())?;
            all.cards.push_str(&one.cards);
            all.answers.push_str(&one.answers);
        }
        Ok(all)
    }

    /// The lesson in a file.
    pub(crate) fn read(text: &str) -> Result<Self, LessonError> {
        Lesson::parse(text).and_then(|lesson| lesson.play()).map(Self::of)
    }

    fn of(played: PlayedLesson) -> Self {
        let PlayedLesson { id, title, cards, runs, .. } = played;
        let runs = runs.into_iter().map(|run| PtrEq::new(Run::of(run.workload, run.recording))).collect();
        Self { id, title, cards, runs }
    }

    /// The run that the stage shows for a card.
    pub(crate) fn run(&self, card: usize) -> Option<PtrEq<Run>> {
        self.runs.get(self.cards.get(card)?.run).cloned()
    }
}

impl LessonState {
    /// Whether the stage shows the run of the reader's exercise.
    pub(crate) fn has_run(&self) -> bool {
        self.graded.as_ref().is_some_and(|graded| graded.run.is_some())
    }

    /// The state at the beginning of a card. The reader's exercises are kept.
    fn at(lesson: &OpenLesson, card: usize, drafts: BTreeMap<(String, usize), String>) -> Self {
        let exercise = lesson.cards.get(card).and_then(|card| card.exercise.as_ref());
        let draft = drafts.get(&(lesson.id.clone(), card)).cloned();
        let draft = draft.or_else(|| exercise.and_then(|_| recall_draft(&lesson.id, card)));
        let text = draft.or_else(|| exercise.map(region)).unwrap_or_default();
        Self { card, text, drafts, ..Self::default() }
    }
}

/// The lines of an exercise that the reader may change.
pub(crate) fn region(exercise: &Exercise) -> String {
    let Range { start, end } = exercise.region();
    let lines: Vec<_> = exercise.start().lines().collect();
    lines.get(start..end).unwrap_or_default().join("\n")
}

/// Steps a second while a card plays.
const CARD_SPEED: f32 = 0.9;

impl Session {
    /// The lesson that is shown. Reads signals.
    pub(crate) fn open_lesson(self) -> Option<PtrEq<OpenLesson>> {
        self.source.with(|source| match source {
            Source::Lesson(lesson) => Some(lesson.clone()),
            _ => None,
        })
    }

    /// What the process has beside PyTorch's segments at the moment that the open lesson shows; none where the lesson says nothing of it.
    /// Reads signals.
    pub(crate) fn outside(self) -> Option<OutsideMemory> {
        let lesson = self.open_lesson()?;
        let (card, is_revealed) = self.lesson.with(|state| (state.card, state.is_revealed));
        let shown = lesson.cards.get(card)?;
        // Until it is answered, a question is about the moment before the card.
        let before = card.checked_sub(1).filter(|_| shown.question.is_some() && !is_revealed);
        let before = before.and_then(|before| lesson.cards.get(before)).filter(|card| card.run == shown.run);
        before.unwrap_or(shown).outside.clone()
    }

    /// Whether the card has a question that the reader has not answered. Reads signals.
    pub(crate) fn is_asked(self) -> bool {
        let (card, is_revealed) = self.lesson.with(|state| (state.card, state.is_revealed));
        let lesson = self.open_lesson();
        let card = lesson.as_ref().and_then(|lesson| lesson.cards.get(card));
        !is_revealed && card.is_some_and(|card| card.question.is_some())
    }

    /// After how many steps the run is hidden: where the first question stands that the reader has not answered, on this card or a later one.
    /// None where everything may be seen. Reads signals.
    pub(crate) fn hidden_after(self) -> Option<usize> {
        let lesson = self.open_lesson()?;
        let (card, is_revealed, has_run) =
            self.lesson.with(|state| (state.card, state.is_revealed, state.has_run()));
        let run = lesson.cards.get(card).filter(|_| !has_run)?.run;
        let is_open = |place: usize| {
            let is_answered =
                || self.answers.with(|answers| answers.contains_key(&(lesson.id.clone(), place)));
            if place == card { !is_revealed } else { !is_answered() }
        };
        let asking = lesson.cards.iter().enumerate().skip(card);
        let mut asking = asking.filter(|(_, card)| card.run == run && card.question.is_some());
        asking.find(|(place, _)| is_open(*place)).map(|(_, card)| card.steps.start)
    }

    /// Opens a lesson of the page, one of `files`, at a card, counted from 0.
    pub(crate) fn start_lesson(
        self,
        id: &str,
        card: usize,
        files: &[LessonFile],
    ) -> Result<(), OpenLessonError> {
        let is_open = untrack(|| self.open_lesson()).is_some_and(|lesson| lesson.id == id);
        if !is_open {
            self.show(Source::Lesson(PtrEq::new(OpenLesson::bundled(id, files)?)));
        }
        self.show_card(card);
        Ok(())
    }

    /// Opens a lesson of the reader's own.
    pub(crate) fn show_lesson(self, lesson: OpenLesson) {
        let lesson = PtrEq::new(lesson);
        self.own_lesson.set(Some(lesson.clone()));
        self.show_own_lesson(lesson, 0);
    }

    /// Shows a card of a lesson of the reader's own, counted from 0.
    pub(crate) fn show_own_lesson(self, lesson: PtrEq<OpenLesson>, card: usize) {
        self.show(Source::Lesson(lesson));
        self.show_card(card);
        self.place.set(Place::OwnLesson);
    }

    /// Goes to the beginning of a card, and plays its steps unless the card asks a question.
    pub(crate) fn show_card(self, card: usize) {
        let Some(lesson) = untrack(|| self.open_lesson()) else { return };
        // A lesson has at least one card, or it could not have been read. An address may name a card after the last one.
        let card = card.min(lesson.cards.len().saturating_sub(1));
        let before = self.lesson.get_untracked().card;
        let drafts = self.lesson.with_untracked(|state| state.drafts.clone());
        let mut state = LessonState::at(&lesson, card, drafts);
        let Some(played) = lesson.cards.get(card) else { return };
        state.answer =
            played.question.as_ref().and_then(|question| self.answer_to(&lesson.id, card, question));
        state.is_revealed = state.answer.is_some();
        let is_asked = played.question.is_some() && !state.is_revealed;
        self.lesson.set(state);
        let is_same_run = lesson.cards.get(before).is_some_and(|before| before.run == played.run);
        self.select(None);
        self.stop_at.set(Some(played.steps.end));
        if !is_same_run || !self.player.with_untracked(|player| player.steps == played.steps.start) {
            self.player.set(Player { speed: CARD_SPEED, ..Player::default() });
            self.dispatch(PlayerAction::SeekStep(played.steps.start));
        }
        self.player.update(|player| player.speed = CARD_SPEED);
        if !is_asked {
            self.play_card();
        }
        if let Some(id) = untrack(|| self.open_lesson()).map(|lesson| lesson.id.clone()) {
            self.remember_card(&id, card);
            self.add_progress(&id, card, false);
        }
    }

    /// Takes the reader's lines of the card's exercise. They are kept when another card is shown, and for the next visit.
    pub(crate) fn write_exercise(self, text: String) {
        let Some(id) = untrack(|| self.open_lesson()).map(|lesson| lesson.id.clone()) else { return };
        if self.embed.is_none() {
            remember_draft(&id, self.lesson.with_untracked(|state| state.card), &text);
        }
        self.lesson.update(|state| {
            state.drafts.insert((id, state.card), text.clone());
            state.text = text;
        });
    }

    /// Plays the card's steps. If the reader's system asks for reduced motion, goes to their end instead.
    pub(crate) fn play_card(self) {
        let Some(lesson) = untrack(|| self.open_lesson()) else { return };
        let card = self.lesson.with_untracked(|state| state.card);
        let Some(Range { start, end }) = lesson.cards.get(card).map(|card| card.steps.clone()) else {
            return;
        };
        self.stop_at.set(Some(end));
        let is_there = self.player.with_untracked(|player| (start..end).contains(&player.steps));
        if !is_there {
            self.dispatch(PlayerAction::SeekStep(start));
        }
        if start >= end {
            return;
        }
        if browser::is_motion_reduced() {
            self.dispatch(PlayerAction::SeekStep(end));
        } else {
            self.dispatch(PlayerAction::Forward);
            if start + 1 < end {
                self.dispatch(PlayerAction::Play);
            }
        }
    }

    /// Takes an answer to the card's question, and shows the right answer.
    pub(crate) fn answer_question(self, question: &LessonQuestion, answer: &str) {
        match GivenAnswer::new(question, answer) {
            Ok(given) => {
                if let Some(id) = untrack(|| self.open_lesson()).map(|lesson| lesson.id.clone()) {
                    let card = self.lesson.with_untracked(|state| state.card);
                    self.remember_answer(&id, card, Some(&given.raw));
                }
                self.lesson.update(|state| {
                    state.answer = Some(given);
                    state.problem = None;
                    state.is_revealed = true;
                });
                self.play_card();
            }
            Err(problem) => self.lesson.update(|state| state.problem = Some(problem)),
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
        let raw = self.answers.with_untracked(|answers| answers.get(&place).cloned())?;
        GivenAnswer::new(question, &raw).ok()
    }

    /// Keeps an answer, or forgets it. The browser remembers answers on the reader's machine only.
    pub(crate) fn remember_answer(self, lesson: &str, card: usize, raw: Option<&str>) {
        let place = (lesson.to_owned(), card);
        self.answers.update(|answers| {
            match raw {
                Some(raw) => answers.insert(place, raw.to_owned()),
                None => answers.remove(&place),
            };
        });
        if self.embed.is_none() {
            self.answers.with_untracked(|answers| browser::remember(ANSWERS_KEY, &written_answers(answers)));
        }
    }

    /// Asks the card's question once more.
    pub(crate) fn ask_again(self) {
        if let Some(id) = untrack(|| self.open_lesson()).map(|lesson| lesson.id.clone()) {
            let card = self.lesson.with_untracked(|state| state.card);
            self.remember_answer(&id, card, None);
            self.show_card(card);
        }
    }

    /// Shows the right answer without an answer of the reader's.
    pub(crate) fn reveal(self) {
        self.lesson.update(|state| state.is_revealed = true);
        self.play_card();
    }

    /// The lesson and the card, from 0, that the reader saw last.
    pub(crate) fn last_card(self) -> Option<(String, usize)> {
        self.last_card.get()
    }

    fn remember_card(self, id: &str, card: usize) {
        let is_bundled = course().any(|lesson| lesson.id == id);
        if is_bundled && self.embed.is_none() {
            self.last_card.set(Some((id.to_owned(), card)));
            browser::remember(LAST_KEY, &format!("{id}/{card}"));
        }
    }

    pub(super) fn add_progress(self, id: &str, card: usize, is_passed: bool) {
        let done = CardDone { lesson: id.to_owned(), card, is_passed };
        if self.progress.with_untracked(|progress| !progress.contains(&done)) {
            self.progress.update(|progress| {
                progress.insert(done);
            });
            if self.embed.is_none() {
                self.progress.with_untracked(|progress| browser::remember(KEY, &written(progress)));
            }
        }
    }
}

/// A card that the reader has seen, or an exercise that is passed. The browser remembers it on the reader's machine only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CardDone {
    pub(crate) lesson: String,
    /// The card, from 0.
    pub(crate) card: usize,
    /// Whether the exercise of the card was passed; false if the card was only seen.
    pub(crate) is_passed: bool,
}

/// What the reader has done in all lessons.
pub(crate) type Progress = BTreeSet<CardDone>;

/// The storage key of the progress.
const KEY: &str = "blockyard.progress";
/// The answers to questions as they were given, by lesson and card.
pub(crate) type GivenAnswers = BTreeMap<(String, usize), String>;

/// The storage key of the answers.
const ANSWERS_KEY: &str = "blockyard.answers";

/// The answers of earlier visits.
pub(crate) fn recall_answers() -> GivenAnswers {
    browser::recall(ANSWERS_KEY).map(|text| read_answers(&text)).unwrap_or_default()
}

/// The stored form, a line for each answer: `reserved/1=3`, counted from 0.
fn written_answers(answers: &GivenAnswers) -> String {
    let lines = answers.iter().map(|((lesson, card), raw)| format!("{lesson}/{card}={raw}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads the stored form. Lines that cannot be read are left out.
fn read_answers(text: &str) -> GivenAnswers {
    let answer = |line: &str| {
        let (place, raw) = line.split_once('=')?;
        let (lesson, card) = place.split_once('/')?;
        Some(((lesson.to_owned(), card.parse().ok()?), raw.to_owned()))
    };
    text.lines().filter_map(answer).collect()
}

/// The storage key of the card that the reader saw last.
const LAST_KEY: &str = "blockyard.lesson";

/// The lesson and the card, from 0, that the reader saw last on an earlier visit.
pub(crate) fn recall_last() -> Option<(String, usize)> {
    let text = browser::recall(LAST_KEY)?;
    let (id, card) = text.split_once('/')?;
    let is_known = course().any(|lesson| lesson.id == id);
    Some((id.to_owned(), card.parse().ok()?)).filter(|_| is_known)
}

/// The progress of earlier visits.
pub(crate) fn recall() -> Progress {
    browser::recall(KEY).map(|text| read(&text)).unwrap_or_default()
}

/// The stored form, such as `reserved/3 reserved/8!`: lesson and card, with `!` for a passed exercise.
fn written(progress: &Progress) -> String {
    let words = progress
        .iter()
        .map(|done| format!("{}/{}{}", done.lesson, done.card, if done.is_passed { "!" } else { "" }));
    words.collect::<Vec<_>>().join(" ")
}

/// Reads the stored form. Words that cannot be read are left out.
fn read(text: &str) -> Progress {
    let card_done = |word: &str| {
        let (lesson, card) = word.split_once('/')?;
        let is_passed = card.ends_with('!');
        let card = card.trim_end_matches('!').parse().ok()?;
        Some(CardDone { lesson: lesson.to_owned(), card, is_passed })
    };
    text.split_whitespace().filter_map(card_done).collect()
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn answers_come_back_and_damage_is_left_out() {
        let place = |card| ("reserved".to_owned(), card);
        let answers = GivenAnswers::from([(place(1), "3".to_owned()), (place(3), "36 MiB".to_owned())]);
        assert_eq!(read_answers(&written_answers(&answers)), answers);
        assert_eq!(read_answers("reserved/x=1\nnothing\nreserved/1=3").len(), 1);
    }

    #[test]
    fn progress_comes_back_and_damage_is_left_out() {
        let done = |card, is_passed| CardDone { lesson: "reserved".to_owned(), card, is_passed };
        let progress = Progress::from([done(0, false), done(3, false), done(3, true)]);
        assert_eq!(read(&written(&progress)), progress);
        assert_eq!(read("reserved/x nothing reserved/0 /"), Progress::from([done(0, false)]));
    }
}
