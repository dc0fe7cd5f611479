//! Texts of lessons, which readers open from files of their own.

use blockyard_lessons::{Glossary, Lesson};

/// Reads the bytes as a lesson and as a glossary, and plays and grades a lesson that can be read. An error
/// names a place in the text.
pub fn lesson(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = Glossary::parse(&text) {
        check_place(&text, error.position());
    }
    let played = match Lesson::parse(&text).and_then(|lesson| lesson.play()) {
        Ok(played) => played,
        Err(error) => return check_place(&text, error.position()),
    };
    for card in &played.cards {
        let run = &played.runs[card.run];
        assert!(card.steps.start <= card.steps.end && card.steps.end <= run.recording.step_count());
        if let Some(question) = &card.question {
            let _ = question.check(&text);
        }
        if let Some(exercise) = &card.exercise {
            let lines: Vec<&str> = exercise.start().lines().collect();
            let region = lines[exercise.region()].join("\n");
            assert_eq!(exercise.with_region(&region), exercise.start());
            exercise.grade(exercise.start()).unwrap();
            let _ = exercise.grade(&exercise.with_region(&text));
        }
    }
}

fn check_place(text: &str, (line, column): (u32, u32)) {
    let lines: Vec<&str> = text.split('\n').collect();
    let found = (line as usize).checked_sub(1).and_then(|index| lines.get(index));
    let found = found.unwrap_or_else(|| panic!("line {line} of {}", lines.len()));
    assert!(column >= 1 && column as usize <= found.chars().count() + 1, "line {line}, column {column}");
}
