//! Practice: questions with other numbers, and when a reader is asked each again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use blockyard_device::mixed;

use crate::course::LessonFile;
use crate::lesson::Lesson;
use crate::played::PlayedLesson;
use crate::question::LessonQuestion;
use crate::slider::Slider;

/// How often values are drawn for a question that is to differ.
const MAX_DRAWS: u64 = 16;

/// The lesson with values drawn from `seed`, under which the question of the card differs from `shown`, or is
/// any question if nothing is shown. `None` where no value changes the question ([`has_other_numbers`]).
pub fn drawn_question(
    text: &str,
    card: usize,
    seed: u64,
    shown: Option<&LessonQuestion>,
) -> Option<PlayedLesson> {
    if shown.is_some_and(|question| !has_other_numbers(text, card, question)) {
        return None;
    }
    let opened = Lesson::parse(text).ok()?;
    if opened.sliders().is_empty() {
        return shown.is_none().then(|| opened.play().ok()).flatten();
    }
    (0..MAX_DRAWS).find_map(|draw| {
        let mut random = mixed(seed.wrapping_add(draw));
        let mut position = |count: usize| {
            random = mixed(random);
            usize::try_from(random % count.max(1) as u64).unwrap_or(0)
        };
        let positions: Vec<usize> =
            opened.sliders().iter().map(|slider| position(slider.stop_count())).collect();
        let played = Lesson::parse_at(text, &positions).ok()?.play().ok()?;
        let question = played.cards.get(card)?.question.as_ref()?;
        // The text for a sheet differs also with the questions before.
        let is_shown =
            |shown: &LessonQuestion| (&shown.text, &shown.answers) == (&question.text, &question.answers);
        (!shown.is_some_and(is_shown)).then_some(played)
    })
}

/// Whether the question of a card has other numbers at other values of its lesson: it shows a value of its run,
/// and a slider or a drawn value changes that run.
pub fn has_other_numbers(text: &str, card: usize, question: &LessonQuestion) -> bool {
    if !question.has_values() {
        return false;
    }
    let Ok(opened) = Lesson::parse(text) else { return false };
    let other = |slider: &Slider| if slider.start() == 0 { slider.stop_count().saturating_sub(1) } else { 0 };
    let others: Vec<usize> = opened.sliders().iter().map(other).collect();
    let run = |lesson: &Lesson| {
        let run = lesson.runs.get(lesson.cards.get(card)?.run)?;
        Some((run.text.clone(), run.conf.clone(), run.capacity))
    };
    Lesson::parse_at(text, &others).is_ok_and(|moved| run(&opened) != run(&moved))
}

/// A question of the course by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PracticeQuestion {
    /// The lesson's id.
    pub lesson: String,
    /// The card that asks the question, from 0.
    pub card: usize,
}

impl PracticeQuestion {
    /// The questions of these lessons, in their order. A file with an error has none.
    pub fn all(files: &[LessonFile]) -> Vec<Self> {
        let asked = |file: &LessonFile| {
            let cards = Lesson::parse(file.text).map(|lesson| lesson.cards).unwrap_or_default();
            let cards = cards.into_iter().enumerate().filter(|(_, card)| card.question.is_some());
            cards.map(|(card, _)| Self { lesson: file.id.to_owned(), card }).collect::<Vec<_>>()
        };
        files.iter().flat_map(asked).collect()
    }
}

/// After so many days a question is due again, by how often in a row it was answered right.
const DAYS: [u64; 5] = [0, 1, 3, 7, 21];
/// A question is mastered once it was answered right so often in a row, with days between the answers.
const MASTERED: usize = 3;

/// How a reader stands with each question that was practiced. Days are counted from any first day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Practice(BTreeMap<PracticeQuestion, Practiced>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Practiced {
    /// The place in [`DAYS`].
    level: usize,
    /// The day of the last answer.
    day: u64,
}

impl Practiced {
    fn due_day(self) -> u64 {
        self.day.saturating_add(DAYS.get(self.level).copied().unwrap_or_default())
    }
}

/// How many of some questions are mastered, due again, and not asked yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PracticeCount {
    /// All.
    pub all: usize,
    /// Those that were answered right on several days in a row.
    pub mastered: usize,
    /// Those that were asked before and are due again.
    pub due: usize,
    /// Those that were never asked.
    pub new: usize,
}

impl Practice {
    /// Reads what [`Practice::written`] writes. Lines that cannot be read are left out.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let practiced = |line: &str| {
            let (place, stands) = line.split_once('=')?;
            let (lesson, card) = place.split_once('/')?;
            let (level, day) = stands.split_once('@')?;
            let level = level.parse().ok().filter(|level| *level < DAYS.len())?;
            let question = PracticeQuestion { lesson: lesson.to_owned(), card: card.parse().ok()? };
            Some((question, Practiced { level, day: day.parse().ok()? }))
        };
        Self(text.lines().filter_map(practiced).collect())
    }

    /// The form for storage, a line for each question: `tensor/3=2@20787`.
    pub fn written(&self) -> String {
        let mut text = String::new();
        for (question, practiced) in &self.0 {
            let _ =
                writeln!(text, "{}/{}={}@{}", question.lesson, question.card, practiced.level, practiced.day);
        }
        text
    }

    /// Takes an answer. A right answer moves the question to the next interval, if it was due; a wrong one
    /// moves the question to the first.
    pub fn answer(&mut self, question: &PracticeQuestion, is_right: bool, day: u64) {
        let before = self.0.get(question).copied();
        let level = match before {
            _ if !is_right => 0,
            Some(before) if before.due_day() > day => return,
            Some(before) => (before.level + 1).min(DAYS.len() - 1),
            None => 1,
        };
        self.0.insert(question.clone(), Practiced { level, day });
    }

    /// The question to ask next: one that is due again, else one that was never asked, else the one that is due
    /// first. Of those that were never asked, the ones whose card the reader has read come first. Several of a
    /// kind are mixed by `seed`. The questions of `recent`, the last of which was asked last, come after all others.
    pub fn next(
        &self,
        questions: &[PracticeQuestion],
        recent: &[PracticeQuestion],
        is_read: impl Fn(&PracticeQuestion) -> bool,
        (day, seed): (u64, u64),
    ) -> Option<PracticeQuestion> {
        let rank = |question: &PracticeQuestion| match self.0.get(question) {
            Some(practiced) if practiced.due_day() <= day => 0,
            None if is_read(question) => 1,
            None => 2,
            Some(practiced) => 2 + practiced.due_day().saturating_sub(day),
        };
        let others = questions.iter().filter(|question| !recent.contains(question));
        let first = others.clone().map(rank).min();
        let first: Vec<_> = others.filter(|question| Some(rank(question)) == first).collect();
        let place = usize::try_from(mixed(seed) % first.len().max(1) as u64).unwrap_or(0);
        first.get(place).copied().or(recent.first()).cloned()
    }

    /// How the reader stands with these questions.
    pub fn count<'a>(
        &self,
        questions: impl IntoIterator<Item = &'a PracticeQuestion>,
        day: u64,
    ) -> PracticeCount {
        let mut count = PracticeCount::default();
        for question in questions {
            count.all += 1;
            match self.0.get(question) {
                None => count.new += 1,
                Some(practiced) => {
                    count.mastered += usize::from(practiced.level >= MASTERED);
                    count.due += usize::from(practiced.due_day() <= day);
                }
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(card: usize) -> PracticeQuestion {
        PracticeQuestion { lesson: "tensor".to_owned(), card }
    }

    #[test]
    fn a_right_answer_waits_longer_each_time_and_a_wrong_one_comes_back_at_once() {
        let (one, two) = (question(1), question(2));
        let all = [one.clone(), two.clone()];
        let mut practice = Practice::default();
        assert_eq!(practice.count(&all, 5), PracticeCount { all: 2, new: 2, ..PracticeCount::default() });
        practice.answer(&one, true, 5);
        let next =
            |practice: &Practice, recent: &[PracticeQuestion]| practice.next(&all, recent, |_| true, (5, 0));
        assert_eq!(next(&practice, &[]), Some(two.clone()), "a new question before a known one");
        practice.answer(&two, false, 5);
        assert_eq!(practice.count(&all, 5).due, 1);
        assert_eq!(next(&practice, &[]), Some(two.clone()), "the wrong one is due");
        assert_eq!(next(&practice, std::slice::from_ref(&two)), Some(one.clone()), "but not at once");
        assert_eq!(next(&practice, &all), Some(one.clone()), "where all are recent, the first of them");
        // On the same day another right answer moves nothing up.
        practice.answer(&one, true, 5);
        assert_eq!(practice.count([&one], 6).due, 1);
        for day in [6, 9] {
            practice.answer(&one, true, day);
        }
        assert_eq!(practice.count([&one], 15), PracticeCount { all: 1, mastered: 1, ..Default::default() });
        assert_eq!(practice.count([&one], 16).due, 1);
        practice.answer(&one, false, 10);
        assert_eq!(practice.count([&one], 10).mastered, 0);
    }

    #[test]
    fn what_was_read_is_asked_first() {
        let all = [question(1), question(2), question(3)];
        let next = |read: usize, seed| {
            Practice::default().next(&all, &[], |question| question.card == read, (5, seed))
        };
        for seed in 0..8 {
            assert_eq!(next(2, seed), Some(question(2)));
            assert!(next(9, seed).is_some(), "nothing was read");
        }
    }

    #[test]
    fn what_was_practiced_comes_back_and_damage_is_left_out() {
        let mut practice = Practice::default();
        practice.answer(&question(1), true, 20_787);
        practice.answer(&question(3), false, 20_788);
        assert_eq!(practice.written(), "tensor/1=1@20787\ntensor/3=0@20788\n");
        assert_eq!(Practice::read(&practice.written()), practice);
        assert_eq!(Practice::read("tensor/1=9@1\nnothing\ntensor/x=1@2\n"), Practice::default());
    }
}
