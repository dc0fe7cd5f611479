//! Sentences are compared with their run: claims, and the words that no claim proves.

use std::fmt::Write as _;

use blockyard_lessons::{Lesson, TextBlock, lessons, plain};
use expect_test::expect;

use crate::language::{play, text};

/// A lesson with one sentence about 12 MiB in one cached block, and a request for 16 MiB that it cannot
/// serve.
fn about_a_request_that_does_not_fit(sentence: &str) -> String {
    text(&format!(
        "## Before\nText.\n```workload\na = alloc 3 MiB\nb = alloc 5 MiB\n```\n\
         ## A request\n{sentence}\n```workload\nc = alloc 16 MiB\n```\n"
    ))
}

/// The error or the notes of a lesson.
fn found(text: &str) -> String {
    match Lesson::parse(text).and_then(|lesson| lesson.play()) {
        Err(error) => error.to_string(),
        Ok(lesson) => lesson.notes.iter().fold(String::new(), |mut found, note| {
            let _ = writeln!(found, "{note}");
            found
        }),
    }
}

#[test]
fn words_are_shown_if_their_condition_holds() {
    let lesson = play(
        "## {a passes => One} title\n{segments exactly 1 and reserved at least 3 MiB => In **one** segment, {reserved}}.\n\
         ```workload\na = alloc 3 MiB\n```\n",
    );
    let TextBlock::Paragraph(body) = &lesson.cards[0].body[0] else { panic!("{:?}", lesson.cards[0].body) };
    assert_eq!(plain(body), "In one segment, 20 MiB.");
    assert_eq!(plain(&lesson.cards[0].title), "One title");
    assert_eq!(lesson.runs[0].workload.labels()[0].1, "One title");
    assert_eq!(lesson.notes, []);
}

#[test]
fn a_false_claim_is_an_error_with_its_line_and_the_numbers() {
    let sentences = [
        "The {cached} {cached at least size c => would be enough}.",
        "Two lines, and\nthe {reserved stays => same} reserved.",
        "{c fails => Not served}.",
        "{2 times cached + reserved before less than 44 MiB => More}.",
        "{cached at least 1 MiB and segments exactly 3 => Enough}.",
        "{cached at least much => Enough}.",
        "{ => Enough}.",
        "{cached at least size c => would be enough.",
    ];
    let mut errors = String::new();
    for sentence in sentences {
        let _ = writeln!(errors, "{}", found(&about_a_request_that_does_not_fit(sentence)));
    }
    expect![[r#"
        line 15, column 15: the text says "cached is at least the size of the request of c", and that is not so: cached is 12 MiB, the size of the request of c is 16 MiB
        line 16, column 6: the text says "reserved stays", and that is not so: reserved rises from 20 MiB to 36 MiB
        line 15, column 2: the text says "the request for c fails", and that is not so: the request for c passes
        line 15, column 2: the text says "2 times cached + reserved before is less than 44 MiB", and that is not so: 2 times cached + reserved before is 44 MiB
        line 15, column 2: the text says "cached is at least 1 MiB, and the number of segments is exactly 3", and that is not so: cached is 12 MiB; the number of segments is 2, 1 less than 3
        line 15, column 2: there is no quantity "much": known are requested, rounding, allocated, pending, active, cached, reserved, free, capacity, peak_allocated, peak_reserved, most_allocated, most_reserved, largest_cached, segments, cached_blocks, tensors, allocations, device_allocs, device_frees, device_calls, retries, oom, block, size, smallest_block, small_limit, small_segment, large_segment, own_segment, segment_step, measured, message
        line 15, column 2: expected a condition such as "peak reserved at most 40 MiB", "reserved falls" or "x passes", found "": a condition compares with at most, at least, exactly, less than or more than, or ends with rises, falls, stays, passes or fails
        line 15, column 27: this "}" is never closed
    "#]].assert_eq(&errors);
}

/// The sentence that a lesson once had: 12 MiB are fewer than 16 MiB, and they are one block.
#[test]
fn a_sentence_that_nothing_proves_has_a_note() {
    let sentences = [
        "The {cached} that are cached would be enough, but they are not in one piece.",
        "The {cached} that are cached {cached less than size c => would be enough}.",
        "The {cached} that are cached {cached less than size c => are not enough}.",
        "Twelve MiB, 12 MiB, a **hundred million**, `12` and {cached exactly 12 MiB => 12 MiB}.",
        "{cached less than size c => 13 MiB are not enough}.",
        "{reserved rises => Reserved falls}, {size c more than cached => twice} as much, and the largest of {largest_cached}.",
    ];
    let mut notes = String::new();
    for sentence in sentences {
        let _ = writeln!(notes, "{sentence}\n{}", found(&about_a_request_that_does_not_fit(sentence)));
    }
    expect![[r#"
        The {cached} that are cached would be enough, but they are not in one piece.
        line 15, column 39: nothing proves "enough": write a value, or a claim such as {tensors exactly 2 => two}
        line 15, column 67: nothing proves "one": write a value, or a claim such as {tensors exactly 2 => two}

        The {cached} that are cached {cached less than size c => would be enough}.
        line 15, column 31: "enough" says something other than its condition "cached is less than the size of the request of c"

        The {cached} that are cached {cached less than size c => are not enough}.

        Twelve MiB, 12 MiB, a **hundred million**, `12` and {cached exactly 12 MiB => 12 MiB}.
        line 15, column 1: nothing proves "Twelve": write a value, or a claim such as {tensors exactly 2 => two}
        line 15, column 13: nothing proves "12": write a value, or a claim such as {tensors exactly 2 => two}
        line 15, column 25: nothing proves "hundred million": write a value, or a claim such as {tensors exactly 2 => two}

        {cached less than size c => 13 MiB are not enough}.
        line 15, column 2: "13" says something other than its condition "cached is less than the size of the request of c"

        {reserved rises => Reserved falls}, {size c more than cached => twice} as much, and the largest of {largest_cached}.
        line 15, column 2: "falls" says something other than its condition "reserved rises"
        line 15, column 38: "twice" says something other than its condition "the size of the request of c is more than cached"

    "#]].assert_eq(&notes);
}

#[test]
fn notes_reach_every_text_of_a_lesson() {
    let cards = "## Two titles\nText of 3.\n- item of 4\n```predict\nquestion: For 5?\nchoice: reserved stays => A of 6\n\
                 choice: reserved rises => B of 7\nbecause: As 8.\n```\n\
                 ## Exercise\nTask of 9.\n```exercise\ngoal: a passes\nhint: Try 10.\n```\n```start\na = alloc 1 MiB\n```\n";
    let text = text(cards).replace("A sentence.", "A sentence of 11 MiB.");
    let found = found(&text);
    for word in ["Two", "3", "4", "5", "6", "7", "8", "9", "10", "11"] {
        assert!(found.contains(&format!("\"{word}\"")), "no note of {word}: {found}");
    }
    assert_eq!(found.lines().count(), 10, "{found}");
}

#[test]
fn names_and_times_in_a_summary_and_what_a_goal_says_have_no_note() {
    let cards = "## Exercise\nAt most 20 MiB, please, in at most three tensors.\n```exercise\ngoal: reserved at most 20 MiB\n\
                 hint: Twenty is 20.\n```\n```start\na = alloc 1 MiB\n```\n";
    let text = text(cards).replace("A sentence.", "Week 7, in 2 of 3 parts.");
    // "at most" and "20" are in the goal, "three" is in no goal.
    let notes = found(&text);
    assert!(notes.contains("\"three\"") && notes.lines().count() == 1, "{notes}");
}

#[test]
fn a_task_and_its_hints_are_about_what_the_reader_begins_with() {
    let cards = "## Before\nText.\n```workload\nb = alloc 30 MiB\n```\n## Exercise\n{reserved} for {size a}.\n\
                 ```exercise\ngoal: a passes\nhint: Now {segments}.\n```\n```start\na = alloc 1 MiB\n```\n";
    let lesson = play(cards);
    let TextBlock::Paragraph(body) = &lesson.cards[1].body[0] else { panic!("{:?}", lesson.cards[1].body) };
    assert_eq!(plain(body), "2 MiB for 1 MiB.");
    assert_eq!(plain(&lesson.cards[1].exercise.as_ref().unwrap().hints[0]), "Now 1.");
}

/// Each claim of our lessons is needed: with the opposite condition, the lesson is refused.
#[test]
fn every_claim_of_our_lessons_can_fail() {
    let mut count = 0;
    for file in lessons() {
        for (place, _) in file.text.match_indices("=>") {
            let from = file.text[..place].rfind(['{', '\n']).unwrap();
            // Where one of several cases does not hold, the next one is said: `sliders.rs` tries them.
            let line = file.text[from..].lines().next().unwrap();
            if !file.text[from..].starts_with('{') || line.contains(" || ") {
                continue;
            }
            let condition = file.text[from + 1..place].trim();
            let turned = turned(condition);
            let text = format!("{}{turned} {}", &file.text[..=from], &file.text[place..]);
            let error = Lesson::parse(&text).and_then(|lesson| lesson.play()).unwrap_err().to_string();
            assert!(error.contains("and that is not so"), "{}: {error}", file.id);
            count += 1;
        }
    }
    assert!(count >= 80, "{count} claims");
}

/// The text with the opposite of its first condition.
fn turned(condition: &str) -> String {
    let pairs = [
        (" at least ", " less than "),
        (" at most ", " more than "),
        (" less than ", " at least "),
        (" more than ", " at most "),
        (" exactly ", " more than "),
        (" rises", " falls"),
        (" falls", " rises"),
        (" stays", " rises"),
        (" passes", " fails"),
        (" fails", " passes"),
    ];
    let found = pairs.iter().filter_map(|(word, other)| Some((condition.find(word)?, word, other)));
    let (_, word, other) = found.min_by_key(|row| row.0).unwrap();
    condition.replacen(word, other, 1)
}
