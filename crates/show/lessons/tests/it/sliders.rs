//! Sliders: the lesson runs again with each value, and every number in a sentence follows.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_lessons::{
    Lesson, LessonQuestion, PlayedLesson, RightAnswers, Slider, TextBlock, drawn_question, has_other_numbers,
    lessons, plain,
};
use blockyard_record::Bytes;
use expect_test::expect;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::language::text;

const SLIDER: &str = "```slider\nname: rows\nlabel: Rows\nfrom: 8\nto: 8192\nstep: 8\nstart: 768\n```\n";

fn moved(card: &str, position: usize) -> String {
    let text = text(card);
    match Lesson::parse_at(&text, &[position]).and_then(|lesson| lesson.play()) {
        Err(error) => error.to_string(),
        Ok(lesson) => body(&lesson, 0),
    }
}

fn body(lesson: &PlayedLesson, card: usize) -> String {
    let texts = lesson.cards[card].body.iter().filter_map(|block| match block {
        TextBlock::Paragraph(text) => Some(plain(text)),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_value_is_in_the_text_in_the_lines_and_in_the_run() {
    let card = format!(
        "## One\n`$rows` rows and $5, `$[rows/3]` for each rank: {{size a exactly 4 times $[1024*rows] B => four bytes each}}, {{exact reserved}}.\n\
         {SLIDER}```workload\na = torch.empty($rows, 1024, device=\"cuda\")\n```\n"
    );
    assert!(moved(&card, 0).starts_with("8 rows and $5, 3 for each rank: four bytes each, 2,097,152 bytes."));
    assert!(
        moved(&card, 1023)
            .starts_with("8192 rows and $5, 2731 for each rank: four bytes each, 33,554,432 bytes.")
    );
    let lesson = Lesson::parse(&text(&card)).unwrap();
    let [slider] = lesson.sliders() else { panic!("{:?}", lesson.sliders()) };
    assert_eq!(
        (slider.label(), slider.cards(), slider.stop_count(), slider.start()),
        ("Rows", &[0][..], 1024, 95)
    );
    let played = lesson.play().unwrap();
    let [_, TextBlock::Code { text, .. }] = played.cards[0].body.as_slice() else { panic!("no lines") };
    assert_eq!(text, "a = torch.empty(768, 1024, device=\"cuda\")");
    assert_eq!(played.peaks(), [Bytes::mib(20)]);
}

#[test]
fn of_several_cases_the_first_that_holds_is_said_and_one_has_to_hold() {
    let card = format!(
        "## One\n{{size a at most small_limit => **small**, {{reserved}} || size a less than own_segment => shared || size a less than 30 MiB => its own}}.\n\
         {SLIDER}```workload\na = torch.empty($rows, 1024, device=\"cuda\")\n```\n"
    );
    assert_eq!(moved(&card, 31), "small, 2 MiB.");
    assert_eq!(moved(&card, 32), "shared.");
    assert_eq!(moved(&card, 319), "its own.");
    expect![[r#"line 9, column 98: the text says "the size of the request of a is less than 30 MiB", and that is not so: the size of the request of a is 32 MiB, 2 MiB more than 30 MiB"#]]
    .assert_eq(&moved(&card, 1023));
}

#[test]
fn a_slider_that_cannot_be_moved_is_refused_with_its_place() {
    let sliders = [
        "name: rows\nlabel: Rows\nfrom: 8\nto: 8\nstart: 8",
        "name: rows\nlabel: Rows\nfrom: 8\nto: 80\nstep: 8\nstart: 12",
        "name: rows\nlabel: Rows\nstops: one",
        "name: rows\nlabel: Rows\nstops: one, two\nstart: three",
        "name: Rows\nlabel: Rows\nstops: one, two",
        "name: rows\nlabel: Rows\nfrom: 8\nto: 80",
        "name: rows",
    ];
    let errors = sliders.map(|lines| moved(&format!("## One\nText.\n```slider\n{lines}\n```\n"), 0));
    expect![[r#"
        line 14, column 1: expected a number above "from", at most 19,999 steps away, found "8"
        line 16, column 1: expected a number that the slider stops at, found "12"
        line 13, column 1: expected two stops or more, such as "float32, bfloat16", found "one"
        line 14, column 1: expected one of the stops, found "three"
        line 11, column 1: expected a name of lowercase letters, such as "width", found "Rows"
        line 10, column 1: a slider of numbers has no "start"
        line 10, column 1: a slider of numbers has no "from"
    "#]]
    .assert_eq(&(errors.join("\n") + "\n"));
}

#[test]
fn a_drawn_answer_is_compared_in_bytes() {
    let card = "## One\nText.\n```workload\na = torch.empty(512, 1536, device=\"cuda\")\n```\n\
                ```predict\nquestion: How much?\nmeasure: reserved\ndraw: 32 MiB\nbecause: So.\n```\n";
    let lesson = Lesson::parse(&text(card)).unwrap().play().unwrap();
    let question = lesson.cards[0].question.as_ref().unwrap();
    assert_eq!(question.ruler, Some(Bytes::mib(32)));
    let said = |mib| question.drawn_sentence(Bytes::mib(mib)).unwrap();
    assert_eq!(said(3), "17 MiB too low: you drew 3 MiB, and the allocator says 20 MiB.");
    assert_eq!(said(20), "Right: 20 MiB.");
    assert_eq!(said(32), "12 MiB too high: you drew 32 MiB, and the allocator says 20 MiB.");
    assert_eq!((question.drawn_at(40), question.drawn_steps()), (Bytes::mib(20), 64));
    // The mark begins in the middle, or else where it is not the answer.
    assert_eq!(question.first_step(), 32);
    let longer = LessonQuestion { ruler: Some(Bytes::mib(40)), ..question.clone() };
    assert_eq!((longer.drawn_at(longer.first_step()), longer.drawn_steps()), (Bytes::mib(13), 40));
    assert_eq!((question.check("20 MiB"), question.check("20.5 MiB")), (Ok(true), Ok(false)));
}

/// A reader can draw the right answer of each question, whatever its numbers.
#[test]
fn a_step_of_each_ruler_is_right_and_its_end_is_not_passed() {
    for file in lessons() {
        let opened = at(file.text, &[]);
        let has_ruler = |question: &LessonQuestion| question.ruler.is_some();
        let cards = opened.cards.iter().enumerate();
        for (card, _) in cards.filter(|(_, card)| card.question.as_ref().is_some_and(has_ruler)) {
            for seed in 0..2 {
                let drawn = drawn_question(file.text, card, seed, None);
                let Some(question) = drawn.as_ref().and_then(|drawn| drawn.cards[card].question.as_ref())
                else {
                    continue;
                };
                let (RightAnswers::Bytes(right), Some(ruler)) = (&question.answers, question.ruler) else {
                    continue;
                };
                let name = format!("{}, card {}: {right} of {ruler}", file.id, card + 1);
                assert!(*right <= ruler, "{name}");
                let steps =
                    (0..=u32::try_from(question.drawn_steps()).unwrap()).map(|step| question.drawn_at(step));
                let said =
                    steps.filter(|drawn| question.drawn_sentence(*drawn).unwrap().starts_with("Right"));
                assert!((1..=2).contains(&said.count()), "{name}");
            }
        }
    }
}

/// The questions with their right answers, which no slider changes that the reader moves: a reader may come back
/// to an answered question with other values.
fn questions(lesson: &PlayedLesson) -> Vec<Option<&LessonQuestion>> {
    lesson.cards.iter().map(|card| card.question.as_ref()).collect()
}

fn at(text: &str, positions: &[usize]) -> PlayedLesson {
    let played = Lesson::parse_at(text, positions).and_then(|lesson| lesson.play());
    played.unwrap_or_else(|error| panic!("{positions:?}: {error}"))
}

fn is_chapter(lesson: &PlayedLesson) -> bool {
    !lesson.sliders.iter().all(Slider::is_drawn)
}

#[test]
fn a_chapter_shows_lines_of_pytorch_alone() {
    let mut count = 0;
    for lesson in lessons().iter().map(|file| at(file.text, &[])).filter(is_chapter) {
        for block in lesson.cards.iter().flat_map(|card| &card.body) {
            let TextBlock::Code { text, .. } = block else { continue };
            count += 1;
            assert!(!text.contains("alloc ") && !text.contains("free "), "{}: {text}", lesson.id);
        }
    }
    assert!(count > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Every number and every comparison of a sentence is proved by its run at each place of each slider, and
    /// at each drawn value. Exactly one choice of each question is right there, since the lesson plays.
    #[test]
    fn sentences_are_true_wherever_the_sliders_are(places in proptest::collection::vec(any::<Index>(), 12)) {
        for file in lessons() {
            let first = Lesson::parse(file.text).unwrap();
            let sliders = first.sliders();
            if sliders.is_empty() {
                continue;
            }
            prop_assert!(sliders.len() <= places.len());
            let mut positions: Vec<usize> =
                sliders.iter().zip(&places).map(|(slider, place)| place.index(slider.stop_count())).collect();
            let played = at(file.text, &positions);
            prop_assert!(played.notes.is_empty(), "{} at {positions:?}: {:?}", file.id, played.notes);
            for (position, slider) in positions.iter_mut().zip(sliders).filter(|(_, slider)| slider.is_drawn()) {
                *position = slider.start();
            }
            let (played, opened) = (at(file.text, &positions), at(file.text, &[]));
            prop_assert_eq!(questions(&played), questions(&opened));
        }
    }
}

/// The words of a card and of its question, without their numbers.
fn words_of(lesson: &PlayedLesson, card: usize) -> String {
    let question = lesson.cards[card].question.as_ref();
    let asked = question.map(|question| plain(&question.text) + " " + &plain(&question.because));
    let words = body(lesson, card) + &asked.unwrap_or_default();
    words.split_whitespace().filter(|word| !word.contains(|letter: char| letter.is_ascii_digit())).collect()
}

/// A slider with at most so many stops is a choice.
const MAX_CHOICES: usize = 4;

/// The places at which a slider's sentence changes its words are few of many, so each place is tried. Each
/// case of a sentence is said at one of them.
#[test]
fn sentences_are_true_at_every_place_of_each_slider() {
    for file in lessons() {
        let lesson = Lesson::parse(file.text).unwrap();
        let start: Vec<usize> = lesson.sliders().iter().map(Slider::start).collect();
        let mut said: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (index, slider) in lesson.sliders().iter().enumerate() {
            // Beside each choice of another slider of the card, if there is one.
            let choice = lesson.sliders().iter().enumerate().find(|(other, choice)| {
                let is_beside = choice.cards().iter().any(|card| slider.cards().contains(card));
                *other != index && is_beside && choice.stop_count() <= MAX_CHOICES
            });
            for chosen in 0..choice.map_or(1, |(_, choice)| choice.stop_count()) {
                for place in 0..slider.stop_count() {
                    let mut positions = start.clone();
                    positions[index] = place;
                    if let Some((other, _)) = choice {
                        positions[other] = chosen;
                    }
                    let played = at(file.text, &positions);
                    assert!(played.notes.is_empty(), "{} at {positions:?}: {:?}", file.id, played.notes);
                    for card in 0..played.cards.len() {
                        said.entry(card).or_default().insert(words_of(&played, card));
                    }
                }
            }
        }
        for (card, text) in file.text.split("\n## ").skip(1).enumerate() {
            let cases = text.lines().map(|line| line.matches(" || ").count() + 1).max().unwrap();
            let count = said.get(&card).map_or(1, BTreeSet::len);
            assert!(count >= cases, "{}, card {}: {count} of {cases} cases are said", file.id, card + 1);
        }
    }
}

/// A question is offered with other numbers exactly where it has some. In a lesson with drawn values, each question
/// with a number has others.
#[test]
fn each_question_of_a_chapter_is_asked_anew() {
    for file in lessons() {
        let opened = at(file.text, &[]);
        let has_drawn = opened.sliders.iter().any(Slider::is_drawn);
        for (card, played) in opened.cards.iter().enumerate() {
            let Some(question) = &played.question else { continue };
            let name = format!("{}, card {}", file.id, card + 1);
            let drawn = drawn_question(file.text, card, 7, Some(question));
            assert_eq!(has_other_numbers(file.text, card, question), drawn.is_some(), "{name}");
            let has_number = plain(&question.text).contains(|letter: char| letter.is_ascii_digit());
            assert!(drawn.is_some() || !has_drawn || !has_number, "{name}: no other numbers");
            let Some(drawn) = drawn else { continue };
            let other = drawn.cards[card].question.as_ref().unwrap();
            let said = |question: &LessonQuestion| (plain(&question.text), question.right.clone());
            assert_ne!(said(question), said(other), "{name}");
            assert_eq!(other.check(&right(other)), Ok(true));
        }
    }
}

/// The right answer as a reader types it.
fn right(question: &LessonQuestion) -> String {
    match &question.answers {
        RightAnswers::Choices(choices) => {
            (choices.iter().position(|choice| choice.is_right).unwrap() + 1).to_string()
        }
        RightAnswers::Bytes(_) | RightAnswers::Count(_) => question.right.clone(),
    }
}
