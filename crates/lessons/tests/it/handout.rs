//! Handouts: what stands before the answers, and what among them.

use blockyard_lessons::{Answers, handout, plain};

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

#[test]
fn answers_stand_on_pages_after_all_questions_and_the_exercise_has_its_lines() {
    let mut questions = 0;
    for lesson in played() {
        let html = handout(&lesson).unwrap().to_string();
        assert_eq!(html.matches("<section").count(), html.matches("</section>").count(), "{}", lesson.id);
        let (cards, answers) = html.split_once("<section class=\"answers\">").unwrap();
        let (on_cards, in_answers) = (words(cards), words(answers));
        for (index, card) in lesson.cards.iter().enumerate() {
            let place = format!("{}, card {}", lesson.id, index + 1);
            if let Some(question) = &card.question {
                questions += 1;
                let (asked, because) = (plain(&question.text), plain(&question.because));
                assert!(on_cards.contains(&asked) && !in_answers.contains(&asked), "{place}: {asked}");
                assert!(in_answers.contains(&because) && !on_cards.contains(&because), "{place}: {because}");
                assert!(in_answers.contains(&format!("{} {because}", question.right)), "{place}");
                assert!(in_answers.contains(&format!("{}. {}", index + 1, plain(&card.title))), "{place}");
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
                    assert!(on_cards.contains(&goal.to_string()), "{place}: {goal}");
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
