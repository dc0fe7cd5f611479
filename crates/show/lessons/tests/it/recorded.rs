//! Lessons whose cards run a program: the requests of its run are kept in the file.

use std::ops::ControlFlow;

use blockyard_lessons::{
    Lesson, LessonErrorKind, LessonProgram, RecordedError, split_recorded, with_recorded, without_solutions,
};
use blockyard_record::{Bytes, Recording};
use blockyard_replay::{RunSettings, run};
use blockyard_rules::AllocatorConfig;
use blockyard_workload::Workload;

const LESSON: &str = "---
id: two
title: Two tensors
summary: A program in two cards.
capacity: 64 MiB
---

## The first
{size a} are allocated in {reserved}.

```python run
import torch
a = torch.empty(3 * 2**18, device=\"cuda\")
```

```notes
Say {reserved}.
```

## The second
{cached} are cached.

```python run
b, c = a + 1, a + 2
del a
```
";

/// The run of a program, as the allocator decides, with the line of each request.
fn played(text: &str) -> Recording {
    let settings =
        RunSettings { title: String::new(), config: AllocatorConfig::default(), capacity: Bytes::mib(64) };
    run(&Workload::parse(text).unwrap(), &settings, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn recorded(text: &str) -> String {
    let program = LessonProgram::of(text).unwrap();
    let recording = played("x = alloc 3 MiB; y = alloc 3 MiB; z = alloc 3 MiB; free x; free y, z");
    // What Python frees at its end belongs to no line.
    program.record(&recording, &[2, 3, 3, 4, 0, 0], None).unwrap()
}

#[test]
fn each_card_plays_the_requests_of_its_lines() {
    let block = recorded(LESSON);
    let whole = with_recorded(LESSON, &block);
    let statements: Vec<&str> = block.lines().skip(1).collect();
    assert_eq!(
        statements,
        [
            "card 1",
            "a = alloc 3145728 B",
            "card 2",
            "t = alloc 3145728 B",
            "t_1 = alloc 3145728 B",
            "free a",
            "```"
        ]
    );
    let lesson = Lesson::check(&whole).unwrap();
    assert!(lesson.notes.is_empty(), "{:?}", lesson.notes);
    let body = |card: usize| format!("{:?}", lesson.cards[card].body);
    assert!(body(0).contains("3 MiB") && body(0).contains("20 MiB"), "{}", body(0));
    assert!(body(0).contains("torch.empty"), "the reader sees the program: {}", body(0));
    assert!(body(1).contains("14 MiB"), "{}", body(1));
    assert_eq!(blockyard_lessons::plain(&lesson.cards[0].notes), "Say 20 MiB.");
    // The editor shows the text without the requests, and a class gets no notes.
    assert_eq!(split_recorded(&whole), (LESSON.to_owned(), block));
    assert!(
        !without_solutions(&whole).contains("notes") && Lesson::check(&without_solutions(&whole)).is_ok()
    );
}

#[test]
fn a_program_that_was_changed_has_no_requests() {
    let whole = with_recorded(LESSON, &recorded(LESSON));
    for changed in
        [LESSON.to_owned(), whole.replace("3 * 2**18", "4 * 2**18"), whole.replace("64 MiB", "32 MiB")]
    {
        let errors = Lesson::check(&changed).unwrap_err();
        assert!(
            errors.iter().all(|error| matches!(error.kind(), LessonErrorKind::NotRecorded)),
            "{errors:?}"
        );
        assert_eq!(errors[0].position(), (11, 1));
    }
}

#[test]
fn a_line_of_the_program_has_its_line_in_the_lesson() {
    let program = LessonProgram::of(LESSON).unwrap();
    for (number, line) in (1..).zip(program.source.lines()) {
        let found = LessonProgram::line_in(LESSON, number).unwrap();
        assert_eq!(LESSON.lines().nth(found as usize - 1), Some(line));
    }
    assert_eq!(
        LessonProgram::line_in(LESSON, 1 + u32::try_from(program.source.lines().count()).unwrap()),
        None
    );
}

#[test]
fn a_run_that_cards_cannot_play_is_refused() {
    let program = LessonProgram::of(LESSON).unwrap();
    let of = |text: &str, lines: &[u32]| program.record(&played(text), lines, None).unwrap_err();
    assert_eq!(
        of("stream side; x = alloc 3 MiB on side", &[2]),
        RecordedError::Unplayable { line: 2, what: "a stream" }
    );
}

/// A lesson may be about an out-of-memory error, and then its card says so.
#[test]
fn a_program_that_runs_out_of_memory_is_expected_by_its_card() {
    let recording = played("x = alloc 3 MiB; y = alloc 3 MiB; z = alloc 1 GiB");
    let end = |text: &str, traceback: Option<&str>| {
        LessonProgram::of(text).unwrap().record(&recording, &[2, 3, 3], traceback)
    };
    let failed = "Traceback (most recent call last):\n  File \"two.md\", line 3, in <module>\n    b = f()\n  File \"two.md\", line 2, in f\n    x\ntorch.OutOfMemoryError: CUDA out of memory.\n";
    let error = end(LESSON, Some(failed)).unwrap_err();
    assert_eq!(error.line(), Some(2));
    assert!(error.to_string().ends_with("its program begins with \"```python run fails\""), "{error}");
    let (before, second) = LESSON.split_once("## The second").unwrap();
    let expected = format!("{before}## The second{}", second.replace("python run", "python run fails"));
    let block = end(&expected, Some(failed)).unwrap();
    assert!(block.contains("failed = alloc 1073741824 B"), "{block}");
    // The block belongs to a program that is to fail.
    assert!(!LessonProgram::of(LESSON).unwrap().has_run(&block));
    assert_eq!(end(&expected, None), Err(RecordedError::Passes { line: 3 }));
    let early = LESSON.replacen("python run", "python run fails", 1);
    let first = failed.replace("line 3", "line 2");
    assert_eq!(end(&early, Some(&first)), Err(RecordedError::Unreached { line: 3 }));
    let other = end(&expected, Some("  File \"two.md\", line 4\nNameError: x\n")).unwrap_err();
    assert_eq!(other, RecordedError::Failed { line: Some(4), why: "NameError: x".to_owned() });
}

#[test]
fn the_example_of_a_lesson_is_one() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/teaching-lesson.md");
    let document = std::fs::read_to_string(folder).unwrap();
    let example = document.split("````markdown\n").nth(1).and_then(|rest| rest.split("````").next()).unwrap();
    let program = LessonProgram::of(example).unwrap();
    let block = program.record(&played("x = alloc 3 MiB"), &[3], None).unwrap();
    let lesson = Lesson::check(&with_recorded(example, &block)).unwrap();
    assert_eq!(lesson.notes, []);
}
