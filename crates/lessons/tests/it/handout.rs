//! Handouts: what stands before the answers, and what among them.

use blockyard_lessons::{Answers, Inline, Lesson, PlayedLesson, handout, lessons, plain, without_solutions};

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
    let words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What follows a question shows its answer, so it is on another page; and each page can be handed out alone.
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
        for (index, card) in lesson.cards.iter().enumerate() {
            let place = format!("{}, card {}", lesson.id, index + 1);
            if let Some(question) = &card.question {
                questions += 1;
                let (asked, because) = (plain(&question.text), plain(&question.because));
                assert!(on_cards.contains(&asked), "{place}: {asked}");
                // The key can be read alone: each answer stands after its question.
                let key = format!("{}. {} {asked} {}", index + 1, plain(&card.title), question.right);
                assert!(in_answers.contains(&key), "{place}: {key}");
                assert!(in_answers.contains(&because) && !on_cards.contains(&because), "{place}: {because}");
                assert!(in_answers.contains(&format!("{} {because}", question.right)), "{place}");
                let title = format!("{}. {}", index + 1, plain(&card.title));
                assert!(in_answers.contains(&title), "{place}");
                assert!(
                    card.exercise.is_some() || !on_cards.contains(&title),
                    "{place}: the title has the answer"
                );
                let choices = match &question.answers {
                    Answers::Choices(choices) => choices.as_slice(),
                    Answers::Bytes(_) | Answers::Count(_) => &[],
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

/// Questions and exercises alone are a test: no figure and no number in them answers an earlier question.
#[test]
fn questions_alone_do_not_answer_each_other() {
    let mut replaced = 0;
    for lesson in played() {
        let asked = handout(&lesson).unwrap().asked;
        assert_eq!(asked.matches("<section").count(), asked.matches("</section>").count(), "{}", lesson.id);
        let pages: Vec<&str> = asked.split("<section class=\"sheet\">").skip(1).collect();
        for (index, page) in pages.iter().enumerate() {
            let head = format!("{}, page {} of {} Name: Date:", lesson.title, index + 1, pages.len());
            assert!(words(page).starts_with(&head), "{}", words(page));
        }
        let sections: Vec<&str> = asked.split("<section class=\"asks\">").skip(1).collect();
        let questions: Vec<_> =
            lesson.cards.iter().enumerate().filter(|(_, card)| card.question.is_some()).collect();
        assert_eq!(sections.len(), questions.len(), "{}", lesson.id);
        assert_eq!(
            pages.len(),
            sections.len().div_ceil(2) + 1,
            "{}: two questions a page, and the exercise",
            lesson.id
        );
        for (place, (index, card)) in questions.iter().enumerate() {
            let (section, place_words) = (sections[place], format!("{}, card {}", lesson.id, index + 1));
            assert!(words(section).starts_with(&format!("{}. Question", index + 1)), "{place_words}");
            let earlier = &questions[..place];
            let is_first_of_run = !earlier.iter().any(|(_, other)| other.run == card.run);
            assert_eq!(section.contains("<svg"), is_first_of_run, "{place_words}");
            let text = &card.question.as_ref().unwrap().text;
            for (number, other) in earlier {
                let right = &other.question.as_ref().unwrap().right;
                let has_value =
                    text.iter().any(|piece| matches!(piece, Inline::Value { text, .. } if text == right));
                if has_value {
                    replaced += 1;
                    let asked = section.split("<ol").next().unwrap();
                    assert!(
                        words(asked).contains("(your answer to "),
                        "{place_words}, {number}: {}",
                        words(asked)
                    );
                }
            }
        }
        let because = lesson.cards.iter().filter_map(|card| card.question.as_ref());
        for because in because.map(|question| plain(&question.because)).filter(|because| !because.is_empty())
        {
            assert!(!words(&asked).contains(&because), "{}: {because}", lesson.id);
        }
    }
    assert!(replaced >= 3, "{replaced} numbers are left to the reader");
}

/// The whole device is in the figure of an empty one: a tensor that is asked for next may be larger than a part of it.
#[test]
fn an_empty_device_is_drawn_whole() {
    let lesson = played().into_iter().find(|lesson| lesson.id == "tensor").unwrap();
    assert!(lesson.cards[0].question.is_some() || lesson.cards[1].question.is_some());
    let paper = handout(&lesson).unwrap();
    let first = paper.asked.split("<svg").nth(1).unwrap();
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
