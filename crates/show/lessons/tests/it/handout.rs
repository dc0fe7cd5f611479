//! Handouts: the pages before the answers, and the answers.

use std::fmt::Write as _;

use blockyard_lessons::{Lesson, PlayedLesson, RightAnswers, handout, lessons, plain, without_solutions};

use crate::course::played;

/// The text of HTML: without tags and figures, in one line.
fn words(html: &str) -> String {
    let mut words = String::new();
    for (index, part) in html.split("<svg ").enumerate() {
        let part = if index == 0 { part } else { part.rsplit_once("</svg>").map_or("", |(_, rest)| rest) };
        for piece in part.split('<') {
            words.push_str(piece.split_once('>').map_or(piece, |(_, text)| text));
        }
    }
    let words = words
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The card after a question shows its answer, so the card is on another page; and each page can be handed
/// out alone.
fn pages_end_with_their_questions(lesson: &PlayedLesson, cards: &str) {
    let pages: Vec<&str> = cards.split("<section class=\"sheet\">").skip(1).collect();
    let questions = lesson.cards.iter().filter(|card| card.question.is_some()).count();
    assert!(pages.len() >= questions, "{}: {} pages of {questions} questions", lesson.id, pages.len());
    for (index, page) in pages.iter().enumerate() {
        let said = words(page);
        let head = format!("{}, page {} of {} Name: Date:", lesson.title, index + 1, pages.len());
        assert!(said.starts_with(&head), "{said}");
        let Some((_, after)) = page.split_once("<div class=\"question\">") else { continue };
        assert!(
            !after.contains("<svg") && !after.contains("<h2>"),
            "{}: more after a question: {after}",
            lesson.id
        );
    }
}

#[test]
fn answers_stand_on_pages_after_all_questions_and_the_exercise_has_its_lines() {
    let mut questions = 0;
    for lesson in played() {
        let paper = handout(&lesson).unwrap();
        let html = paper.to_string();
        assert_eq!(html.matches("<section").count(), html.matches("</section>").count(), "{}", lesson.id);
        let (cards, answers) = html.split_once("<section class=\"answers\">").unwrap();
        let (on_cards, in_answers) = (words(cards), words(answers));
        assert!(in_answers.starts_with(&format!("{}: answers", lesson.title)), "{in_answers}");
        pages_end_with_their_questions(&lesson, &paper.cards);
        let mut number = 0;
        for (index, card) in lesson.cards.iter().enumerate() {
            let place = format!("{}, card {}", lesson.id, index + 1);
            if let Some(question) = &card.question {
                questions += 1;
                number += 1;
                let (asked, because) = (plain(&question.text), plain(&question.because));
                assert!(on_cards.contains(&asked), "{place}: {asked}");
                // The key can be read alone: each answer is after its question.
                let letter = question.letter().map(|letter| format!("{letter}) ")).unwrap_or_default();
                let title = format!("Question {number}: {}", plain(&card.title));
                let answer = format!("{title} {asked} {letter}{}", question.right);
                assert!(in_answers.contains(&answer), "{place}: {answer}");
                assert!(in_answers.contains(&because) && !on_cards.contains(&because), "{place}: {because}");
                assert!(in_answers.contains(&format!("{} {because}", question.right)), "{place}");
                assert!(on_cards.contains(&format!("{}. Question {number} ", index + 1)), "{place}");
                let title = format!("{}. {}", index + 1, plain(&card.title));
                assert!(
                    card.exercise.is_some() || !on_cards.contains(&title),
                    "{place}: the title has the answer"
                );
                let choices = match &question.answers {
                    RightAnswers::Choices(choices) => choices.as_slice(),
                    RightAnswers::Bytes(_) | RightAnswers::Count(_) => &[],
                };
                for choice in choices {
                    assert!(on_cards.contains(&plain(&choice.text)), "{place}: {}", plain(&choice.text));
                }
            }
            if let Some(exercise) = &card.exercise {
                let lines: Vec<&str> = exercise.start().split_whitespace().collect();
                assert!(on_cards.contains(&lines.join(" ")), "{place}: {}", exercise.start());
                for goal in &exercise.goals {
                    let goal = plain(&blockyard_lessons::with_code(&goal.to_string()));
                    assert!(on_cards.contains(&goal), "{place}: {goal}");
                }
                // The class gets neither a hint nor the solution; the teacher has both.
                for hint in exercise.hints.iter().map(|hint| plain(hint)) {
                    assert!(in_answers.contains(&hint) && !on_cards.contains(&hint), "{place}: {hint}");
                }
                let solution: Vec<&str> = exercise.solution().unwrap().split_whitespace().collect();
                assert!(in_answers.contains(&solution.join(" ")), "{place}: {solution:?}");
                let whole = exercise.with_region(exercise.solution().unwrap());
                let whole: Vec<&str> = whole.split_whitespace().collect();
                assert!(!on_cards.contains(&whole.join(" ")), "{place}");
            }
        }
    }
    assert!(questions > 30, "{questions} questions");
}

/// The questions of a lesson as the sheet has them.
fn asked_questions(asked: &str) -> Vec<&str> {
    asked
        .split("<section class=\"asks\">")
        .skip(1)
        .map(|part| part.split("</section>").next().unwrap())
        .collect()
}

/// Questions and exercises alone are a test: two pages, numbered questions, and no figure that shows the
/// answer to an earlier one.
#[test]
fn questions_alone_are_numbered_on_two_pages_and_have_no_figure_after_a_question_about_the_run() {
    let mut figures = 0;
    for lesson in played() {
        let asked = handout(&lesson).unwrap().asked;
        assert_eq!(asked.matches("<section").count(), asked.matches("</section>").count(), "{}", lesson.id);
        let pages: Vec<&str> = asked.split("<section class=\"sheet\">").skip(1).collect();
        assert_eq!(pages.len(), 2, "{}: the questions, and the exercise", lesson.id);
        for (index, page) in pages.iter().enumerate() {
            let head = format!("{}, page {} of 2 Name: Date:", lesson.title, index + 1);
            assert!(words(page).starts_with(&head), "{}", words(page));
        }
        assert!(
            pages[1].contains("<section class=\"task\">") && !pages[0].contains("<section class=\"task\">")
        );
        let sections = asked_questions(&asked);
        let questions: Vec<_> = lesson.cards.iter().filter(|card| card.question.is_some()).collect();
        assert_eq!(sections.len(), questions.len(), "{}", lesson.id);
        for (place, card) in questions.iter().enumerate() {
            let (section, name) = (sections[place], format!("{}, question {}", lesson.id, place + 1));
            assert!(words(section).starts_with(&format!("{}. ", place + 1)), "{name}: {}", words(section));
            let earlier = &questions[..place];
            let is_first_of_run = !earlier.iter().any(|other| other.run == card.run);
            // An empty device shows nothing, and contradicts a question about memory that the program will
            // have allocated.
            let is_empty = card.steps.start == 0 && card.non_pytorch.is_none();
            let has_figure = section.contains("<svg");
            assert!(!has_figure || is_first_of_run && !is_empty, "{name}");
            let rights = earlier.iter().map(|card| card.question.as_ref().unwrap().right.as_str());
            for right in rights.filter(|right| right.ends_with("iB")) {
                // 120 MiB are not 20 MiB.
                let figure = section.split("<div class=\"question\"").next().unwrap();
                let is_longer =
                    |at| figure[..at].ends_with(|before: char| before.is_ascii_digit() || before == '.');
                assert!(figure.match_indices(right).all(|(at, _)| is_longer(at)), "{name} shows {right}");
            }
            figures += usize::from(has_figure);
            let because = plain(&card.question.as_ref().unwrap().because);
            assert!(!words(&asked).contains(&because), "{name}: {because}");
        }
    }
    assert!(figures > 5, "{figures} figures");
}

/// All questions as the sheets have them, for a reader: no number in a question may answer an earlier
/// question, or be enough to compute its answer.
#[test]
fn questions_alone_leave_numbers_out_that_would_answer_earlier_questions() {
    let mut text = String::new();
    let mut left_out = 0;
    for lesson in played() {
        let asked = handout(&lesson).unwrap().asked;
        for (section, number) in asked_questions(&asked).into_iter().zip(1..) {
            let question = words(section.split("<ol").next().unwrap());
            let question = question.trim_start_matches(&format!("{number}. "));
            left_out += question.matches("(…)").count();
            writeln!(text, "{} {number}: {question}", lesson.id).unwrap();
        }
    }
    assert!(left_out > 3, "{left_out} numbers are left out");
    expect_test::expect_file!["../asked.txt"].assert_eq(&text);
}

#[test]
fn a_number_from_which_an_earlier_answer_follows_is_left_out_and_a_size_that_is_asked_for_is_not() {
    let text = "---\nid: own\ntitle: Own\nsummary: S.\ncapacity: 64 MiB\n---\n## One\nText.\n```workload\na = alloc 3 MiB\n```\n\
                ```predict\nquestion: `a` asks for {size a}. How much is reserved?\nmeasure: reserved\n```\n\
                ## Two\nText.\n```workload\nb = alloc 5 MiB\n```\n\
                ```predict\nquestion: Of {capacity}, {cached} are cached and {free} free; `a` has {size a}, and `b` asks for {size b}, less than {own_segment}. {cached more than size b => Enough} of it?\nmeasure: segments\n```\n";
    let lesson = Lesson::parse(text).unwrap().play().unwrap();
    let second = lesson.cards[1].question.as_ref().unwrap();
    assert_eq!(
        plain(&second.text_alone),
        "Of 64 MiB, (…) are cached and (…) free; a has 3 MiB, and b asks for 5 MiB, less than 10 MiB. (…) of it?"
    );
    assert!(plain(&second.text).starts_with("Of 64 MiB, 17 MiB are cached and 44 MiB free"));
    let first = lesson.cards[0].question.as_ref().unwrap();
    assert_eq!(first.text, first.text_alone, "nothing was asked before it");
}

#[test]
fn a_key_has_each_answer_by_its_number_and_the_solution() {
    for lesson in played() {
        let key = handout(&lesson).unwrap().key;
        assert_eq!(key.matches("<section").count(), 1, "{}", lesson.id);
        let said = words(&key);
        assert!(said.starts_with(&format!("{}: answer key", lesson.title)), "{said}");
        let questions = lesson.cards.iter().filter_map(|card| card.question.as_ref());
        for (question, number) in questions.zip(1..) {
            let letter = question.letter().map(|letter| format!("{letter})")).unwrap_or_default();
            let row = format!("<th scope=\"row\">{number}</th><td><strong>{letter} ");
            assert!(key.contains(&row), "{}: {row}", lesson.id);
            assert!(said.contains(&question.right), "{}: {}", lesson.id, question.right);
        }
        let exercise = lesson.cards.iter().find_map(|card| card.exercise.as_ref()).unwrap();
        let solution: Vec<&str> = exercise.solution().unwrap().split_whitespace().collect();
        assert!(said.contains(&solution.join(" ")), "{}", lesson.id);
    }
}

/// The figure of an empty device shows the whole device, since the next tensor may be larger than a part of
/// it.
#[test]
fn an_empty_device_is_drawn_whole() {
    let lesson = played().into_iter().find(|lesson| lesson.id == "reserved").unwrap();
    assert!(lesson.cards[0].question.is_some() || lesson.cards[1].question.is_some());
    let paper = handout(&lesson).unwrap();
    let first = paper.cards.split("<svg").nth(1).unwrap();
    assert!(!first.contains("of which this is the first"), "{first}");
}

#[test]
fn a_class_gets_a_lesson_without_its_solutions_and_the_same_goals() {
    for file in lessons() {
        let text = without_solutions(file.text);
        let (whole, given) = (Lesson::parse(file.text).unwrap(), Lesson::parse(&text).unwrap());
        let (whole, given) = (whole.play().unwrap(), given.play().unwrap());
        assert_eq!(whole.cards.len(), given.cards.len(), "{}", file.id);
        for (card, other) in whole.cards.iter().zip(&given.cards) {
            assert_eq!(card.question.is_some(), other.question.is_some(), "{}", file.id);
            let Some(exercise) = &card.exercise else { continue };
            let other = other.exercise.as_ref().unwrap();
            assert!(exercise.solution().is_some() && other.solution().is_none(), "{}", file.id);
            assert_eq!((exercise.start(), &exercise.goals), (other.start(), &other.goals), "{}", file.id);
        }
    }
}
