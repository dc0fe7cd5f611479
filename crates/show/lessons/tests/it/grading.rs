//! Exercises, and the grades of answers.

use blockyard_lessons::{
    EndedProgram, Exercise, ExerciseLanguage, GRADE_COLUMNS, GradeError, GradeRow, Lesson, RunOfLines,
    exercise_of,
};
use expect_test::expect;

use crate::language::play;

fn exercise(goals: &str, start: &str) -> Exercise {
    let lesson =
        play(&format!("## Exercise\nTask.\n```exercise\n{goals}\nhint: Try.\n```\n```start\n{start}\n```\n"));
    lesson.cards[0].exercise.clone().unwrap()
}

#[test]
fn a_goal_that_is_missed_says_by_how_much() {
    let exercise = exercise(
        "goal: peak reserved at most 20 MiB\ngoal: device_calls at most 1\ngoal: reserved stays\ngoal: allocated less than 1 MiB",
        "a = alloc 30 MiB\nfree a",
    );
    let grade = exercise.grade(exercise.start()).unwrap();
    expect![[r#"
        Not yet: peak reserved is 30 MiB, 10 MiB more than 20 MiB; reserved rises from 0 B to 30 MiB."#]]
    .assert_eq(&grade.sentence);
    assert_eq!(grade.goals.iter().map(|goal| goal.is_met).collect::<Vec<_>>(), [false, true, false, true]);
    assert_eq!(grade.goals[0].goal, "peak reserved is at most 20 MiB");
    let grade = exercise.grade("").unwrap();
    assert_eq!(
        grade.sentence,
        "Passed: peak reserved is 0 B; the number of device calls is 0; reserved stays at 0 B; allocated is 0 B."
    );
}

#[test]
fn a_request_that_fails_says_why() {
    let exercise = exercise("goal: big passes", "a = alloc 40 MiB\nbig = alloc 40 MiB");
    let grade = exercise.grade(exercise.start()).unwrap();
    expect!["Not yet: the request for big fails: out of memory: 40 MiB need a new segment, and the device has 24 MiB free; nothing is cached."]
    .assert_eq(&grade.sentence);
    let grade = exercise.grade("a = alloc 40 MiB\nfree a\nbig = alloc 40 MiB").unwrap();
    assert_eq!(grade.sentence, "Passed.");
    let grade = exercise.grade("a = alloc 40 MiB").unwrap();
    assert_eq!(grade.sentence, "Not yet: no request before this moment allocates \"big\": known are a.");
}

#[test]
fn an_answer_cannot_leave_requests_out_or_add_what_is_forbidden() {
    let exercise = exercise(
        "goal: same requests\ngoal: without set\ngoal: without empty_cache",
        "a = alloc 1 MiB\nb = alloc 2 MiB\nfree a",
    );
    let sentence = |text| exercise.grade(text).unwrap().sentence;
    assert_eq!(sentence("b = alloc 2 MiB\na = alloc 1 MiB"), "Passed.");
    assert_eq!(sentence("a = alloc 1 MiB"), "Not yet: the tensor b of 2 MiB is not made any more.");
    assert_eq!(
        sentence("a = alloc 1 MiB\nb = alloc 1 MiB"),
        "Not yet: the tensor b of 2 MiB is not made any more."
    );
    assert_eq!(
        sentence("set max_split_size_mb:64\na = alloc 1 MiB\nb = alloc 2 MiB\nempty_cache"),
        "Not yet: `set` occurs 1 time, at the beginning 0 times; `empty_cache` occurs 1 time, at the beginning 0 times."
    );
}

fn program(goals: &str) -> Exercise {
    let start = "import torch\n# edit from here\n# edit to here\n";
    let text =
        format!("## Exercise\nTask.\n```exercise\n{goals}\nhint: Try.\n```\n```python start\n{start}```\n");
    play(&text).cards[0].exercise.clone().unwrap()
}

/// The end of a program that made these requests.
fn end(workload: &str, traceback: Option<&str>) -> EndedProgram {
    let run = exercise("goal: oom exactly 0", "a = alloc 1 MiB").grade(workload).unwrap();
    EndedProgram {
        recording: run.recording,
        status: i32::from(traceback.is_some()),
        traceback: traceback.map(ToOwned::to_owned),
    }
}

#[test]
fn a_program_is_graded_by_its_recording_and_has_to_run_to_its_end() {
    let exercise = program("goal: most_allocated at most 3 MiB\ngoal: reserved rises");
    assert_eq!((exercise.language, exercise.profile.as_str()), (ExerciseLanguage::Python, "h200"));
    let goals: Vec<String> = exercise.goals.iter().map(ToString::to_string).collect();
    assert_eq!(
        goals,
        ["the program runs to its end", "the most allocated is at most 3 MiB", "reserved rises"]
    );
    assert!(matches!(exercise.grade(exercise.start()), Err(GradeError::IsProgram)));
    let grade = |end| exercise.grade_program(&exercise.with_region("x = 1"), end).unwrap().sentence;
    assert_eq!(
        grade(end("a = alloc 2 MiB\nfree a", None)),
        "Passed: the most allocated is 2 MiB; reserved rises from 0 B to 20 MiB."
    );
    let traceback = "Traceback (most recent call last):\n  File \"mine.py\", line 3, in <module>\n    x = 1 / 0\nZeroDivisionError: division by zero\n";
    assert_eq!(
        grade(end("a = alloc 4 MiB", Some(traceback))),
        "Not yet: the program ends in line 3, `x = 1`: ZeroDivisionError: division by zero."
    );
    let exit = EndedProgram { status: 0, ..end("a = alloc 2 MiB\nfree a", Some("")) };
    assert_eq!(grade(exit), "Not yet: `SystemExit` ends the program before its last line.");
    match exercise.grade_program("import os", end("", None)) {
        Err(GradeError::Locked { line: 1, .. }) => {}
        other => panic!("{:?}", other.map(|grade| grade.sentence)),
    }
}

/// The tensors of a program have no names in its recording, and its statements are not counted.
#[test]
fn a_program_has_no_goal_that_only_a_workload_can_meet() {
    for goal in [
        "x passes",
        "size x exactly 1 MiB",
        "reserved at \"Label\" at most 1 MiB",
        "same requests",
        "without set",
    ] {
        let text = format!("## One\nText.\n```exercise\ngoal: {goal}\n```\n```python start\nx = 1\n```\n");
        let error = Lesson::parse(&crate::language::text(&text)).unwrap_err().to_string();
        assert!(
            error.ends_with("is a goal of workloads: tensors and labels of a program have no names here"),
            "{error}"
        );
    }
}

const REGION: &str = "a = alloc 4 MiB\n# edit from here\nb = alloc 1 MiB\n# edit to here\nc = alloc 4 MiB\n";

#[test]
fn only_the_marked_lines_may_change() {
    let exercise = exercise("goal: reserved at most 20 MiB", REGION.trim_end());
    assert_eq!(exercise.start(), REGION);
    assert_eq!(exercise.region(), 2..3);
    assert_eq!(
        exercise.with_region("x = alloc 1\ny = alloc 2"),
        REGION.replace("b = alloc 1 MiB", "x = alloc 1\ny = alloc 2")
    );
    assert!(exercise.grade(&exercise.with_region("")).unwrap().is_passed);
    assert!(exercise.grade(&format!("{REGION}\n\n  \n").replace('\n', " \r\n")).is_ok());
    let changes = [
        ("a = alloc 4 MiB", "a = alloc 3 MiB", 1),
        ("# edit from here\n", "", 2),
        ("# edit to here\n", "", 3),
        ("c = alloc 4 MiB\n", "", 4),
        ("c = alloc 4 MiB", "c = alloc 4 MiB; d = alloc 1", 5),
    ];
    for (from, to, line) in changes {
        match exercise.grade(&REGION.replace(from, to)) {
            Err(GradeError::Locked { line: found, .. }) => assert_eq!(found, line, "{from} -> {to}"),
            other => panic!("{from} -> {to}: {:?}", other.map(|grade| grade.sentence)),
        }
    }
    let error = exercise.grade(&exercise.with_region("free nothing")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3, column 6: \"nothing\" is not allocated: no line before this one allocates it"
    );
    assert!(matches!(exercise.grade(""), Err(GradeError::Locked { line: 1, .. })));
    let long = exercise.grade(&exercise.with_region("repeat 1000000 { empty_cache }"));
    assert_eq!(long.unwrap_err().to_string(), "an exercise makes at most 50000 requests");
}

#[test]
fn a_solution_that_does_not_pass_is_refused_with_its_line_and_what_it_misses() {
    let text = |solution: &str| {
        crate::language::text(&format!(
            "## One\nText.\n```exercise\ngoal: reserved at most 20 MiB\n```\n```start\n{REGION}```\n```{solution}\n```\n"
        ))
    };
    let played = Lesson::parse(&text("solution\nb = alloc 2 MiB")).unwrap().play().unwrap();
    let exercise = played.cards[0].exercise.as_ref().unwrap();
    assert_eq!(exercise.solution(), Some("b = alloc 2 MiB"));
    let refused = |solution: &str| match Lesson::parse(&text(solution)) {
        Ok(lesson) => lesson.play().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    let error = refused("solution\nb = alloc 30 MiB");
    assert!(
        error.ends_with(
            "the solution does not solve the exercise: Not yet: reserved is 50 MiB, 30 MiB more than 20 MiB."
        ),
        "{error}"
    );
    assert!(refused("solution\nfree nothing").contains("\"nothing\" is not allocated"));
    assert!(refused("python solution\nx = 1").contains("a block \"exercise\" and a block \"start\""));
}

#[test]
fn a_program_without_a_tensor_on_the_gpu_is_told_so_and_a_stopped_one_has_met_nothing() {
    let exercise = program("goal: most_allocated at most 3 MiB\ngoal: allocations exactly 1");
    let grade = |end| exercise.grade_program(&exercise.with_region("x = 1"), end).unwrap();
    assert_eq!(
        grade(end("", None)).sentence,
        "Not yet: the program makes no tensor on the GPU. `device=\"cuda\"` puts a tensor there."
    );
    // A goal of at most so many bytes is not met by doing nothing.
    let goals = grade(end("", None)).goals;
    let met: Vec<&str> = goals.iter().filter(|goal| goal.is_met).map(|goal| &*goal.goal).collect();
    assert_eq!(met, ["the program runs to its end"]);
    assert_eq!(goals[1].because, "nothing was done on the GPU");
    let stopped = grade(end("a = alloc 2 MiB", Some("ZeroDivisionError: division by zero\n")));
    assert!(!stopped.is_passed && stopped.goals.iter().all(|goal| !goal.is_met), "{:?}", stopped.goals);
    // Each goal is listed, also the one that the program happened to meet before it stopped.
    let why: Vec<&str> = stopped.goals.iter().map(|goal| &*goal.because).collect();
    assert_eq!(why.len(), 3);
    assert_eq!(why[1..], ["the program did not run to its end"; 2]);
}

#[test]
fn a_setting_that_pytorch_refuses_is_the_reason() {
    let exercise = exercise("goal: reserved at most 20 MiB", "a = alloc 8 MiB\nfree a\nb = alloc 30 MiB");
    let sentence = |setting: &str| {
        let text = format!("set {setting}\n{}", exercise.start());
        exercise.grade(&text).unwrap().sentence
    };
    assert_eq!(
        sentence("expandable_segments:true"),
        "Not yet: PyTorch refuses the setting: Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'."
    );
    assert_eq!(sentence("expandable_segments:True"), "Not yet: reserved is 40 MiB, twice 20 MiB.");
}

#[test]
fn an_exercise_that_its_start_solves_has_a_note() {
    let notes = |start: &str| {
        let text = format!(
            "## Exercise\nTask.\n```exercise\ngoal: reserved at most 2 MiB\ngoal: allocations at least 1\nhint: Try.\n```\n```start\n{start}\n```\n\
             ```solution\na = alloc 1 MiB\n```\n"
        );
        play(&text).notes
    };
    assert_eq!(notes("a = alloc 3 MiB"), []);
    let solved = notes("a = alloc 512 KiB");
    assert_eq!(solved[0].text, "the exercise is solved before the reader changes a line");
}

#[test]
fn an_exercise_whose_goals_ask_for_nothing_has_a_note() {
    let notes = |goal: &str, language: &str, after: &str| {
        let (alloc, size) = match language {
            "" => ("a = alloc 3 MiB", "a = alloc 1 MiB"),
            _ => ("a = torch.empty(3 << 20, device='cuda')", "a = torch.empty(1 << 19, device='cuda')"),
        };
        let text = format!(
            "## Exercise\nTask.\n```exercise\ngoal: {goal}\nhint: Try.\n```\n```{language}start\n# edit from here\n{alloc}\n\
             # edit to here\n{after}\n```\n```{language}solution\n{size}\n```\n"
        );
        play(&text).notes.iter().map(|note| note.text.clone()).collect::<Vec<_>>()
    };
    let said = "the goals are met without any line of the reader's";
    let (most, some) = ("reserved at most 2 MiB", "allocations at least 1");
    for language in ["", "python "] {
        assert!(notes(most, language, "").iter().any(|note| note.starts_with(said)), "{language}");
        assert_eq!(notes(&format!("{most}\ngoal: {some}"), language, ""), [""; 0], "{language}");
    }
    // A line after the reader's needs their result, so that `pass` fails.
    assert_eq!(notes(most, "python ", "print(a.shape)"), [""; 0]);
}

#[test]
fn a_block_without_its_end_is_named_by_its_first_line() {
    let text =
        crate::language::text("## One\nText.\n```workload\na = alloc 1 MiB\n\nText.\n```python\nx\n```\n");
    let line = text.lines().position(|line| line == "```workload").unwrap() + 1;
    let error = Lesson::parse(&text).unwrap_err().to_string();
    assert_eq!(error, format!("line {line}, column 1: this \"```\" is never closed"));
}

/// The exercises of all lessons with their ids.
fn exercises() -> Vec<(String, Exercise)> {
    let exercise = |lesson: blockyard_lessons::PlayedLesson| {
        lesson.cards.into_iter().find_map(|card| card.exercise).map(|exercise| (lesson.id, exercise))
    };
    crate::course::played().into_iter().filter_map(exercise).collect()
}

#[test]
fn a_line_that_the_author_expects_has_the_sentence_of_the_author() {
    let nothing = end("", None).recording;
    let run = RunOfLines { recording: &nothing, lines: &[] };
    for (id, exercise) in exercises() {
        let known = |text: &str| exercise.mistake(text, &run, &run);
        assert_eq!(known(&exercise.with_region(exercise.solution().unwrap())), None, "{id}");
        assert_eq!(known(exercise.start()).is_some(), ["training", "what-to-change"].contains(&&*id), "{id}");
        let view = known(&exercise.with_region("result = request[:1]   # a view"));
        assert_eq!(view.is_some(), id == "nvidia-smi", "{id}");
    }
}

/// Where no difference to the solution explains an answer, the sentence says what its run did.
#[test]
fn an_answer_without_a_known_mistake_is_told_what_it_did() {
    let told = |goal: &str, text: &str| {
        let exercise = exercise(goal, "a = alloc 1 MiB");
        let recording = exercise.grade(text).unwrap().recording;
        let run = RunOfLines { recording: &recording, lines: &[1, 2, 3] };
        exercise.mistake(text, &run, &run).map(|mistake| mistake.sentence)
    };
    assert_eq!(
        told("goal: most_allocated at most 1 MiB", "a = alloc 2 MiB\nb = alloc 1 MiB\nfree a").unwrap(),
        "most is in use when line 2, `b = alloc 1 MiB`, runs: 3 MiB, and line 1, `a = alloc 2 MiB`, made 2 MiB of it"
    );
    assert_eq!(
        told("goal: segments at most 1", "a = alloc 12 MiB\nfree a\nb = alloc 14 MiB").unwrap(),
        "line 3, `b = alloc 14 MiB`, takes a segment of 14 MiB from the device while 12 MiB are cached, in pieces \
         that do not serve it"
    );
    assert_eq!(told("goal: reserved at least 1 MiB", ""), None);
}

#[test]
fn a_goal_in_the_words_of_its_author_has_numbers_where_it_is_missed() {
    let exercise = exercise("goal: allocations at least 2 => both tensors are made", "a = alloc 1 MiB");
    let sentence = |text: &str| exercise.grade(text).unwrap().sentence;
    assert_eq!(exercise.goals[0].to_string(), "both tensors are made");
    assert_eq!(sentence("a = alloc 1 MiB\nb = alloc 1 MiB"), "Passed.");
    assert_eq!(sentence(exercise.start()), "Not yet: the number of allocations is 1, 1 less than 2.");
}

/// A teacher does not sort the files of a class: the lines of each file show which exercise it answers.
#[test]
fn a_file_is_known_by_the_lines_of_its_task_and_else_by_its_name() {
    let all = exercises();
    assert_eq!(all.len(), blockyard_lessons::lessons().len());
    let of = |file: &str, text: &str| exercise_of(file, text, &all).map(|known| known.0.as_str());
    for (id, exercise) in &all {
        let text = exercise.with_region(exercise.solution().unwrap()).replace('\n', "\r\n");
        assert_eq!(of("homework.txt", &text), Some(id.as_str()));
        let changed = format!("changed {}", exercise.start().replace('\n', "\nchanged "));
        assert_eq!(of("homework.txt", &changed), None, "{id}");
        assert_eq!(of(&format!("meyer_{id} (2).txt"), &changed), Some(id.as_str()));
    }
    assert_eq!(of("essay.txt", "It is 20 MiB."), None);
}

#[test]
fn the_lines_of_a_student_alone_are_an_answer() {
    let all = exercises();
    for (id, exercise) in &all {
        let lines = exercise.solution().unwrap();
        let whole = exercise.with_region(lines);
        let found = exercise_of("homework.txt", lines, &all).map(|known| known.0.as_str());
        assert_eq!(found, Some(id.as_str()));
        assert_eq!(exercise.whole_answer(lines).unwrap(), whole, "{id}");
        assert_eq!(exercise.whole_answer(&whole).unwrap(), whole, "{id}");
        assert_eq!(exercise.own_text(&format!("{whole}\n\n")).join("\n"), lines, "{id}");
        let pasted = format!("import torch\n# edit from here\n\n{lines}\n# edit to here\n");
        let known = exercise.whole_answer(&pasted).unwrap();
        assert!(exercise.check_locked(&known).is_ok() && known.contains(lines), "{id}: {known}");
        let essay = exercise.whole_answer("It is 20 MiB.\n");
        assert!(matches!(essay, Err(GradeError::NoTask)), "{id}: {essay:?}");
    }
    let (_, exercise) = all.iter().find(|(id, _)| id == "pools").unwrap();
    let changed = exercise.start().replace("free x1, y1", "free x1");
    assert!(matches!(exercise.whole_answer(&changed), Err(GradeError::Locked { line: 6, .. })));
}

#[test]
fn a_row_has_the_goals_that_are_missed_and_why() {
    let all = exercises();
    let (id, exercise) = all.iter().find(|(id, _)| id == "pools").unwrap();
    let row = |text: &str| GradeRow::of("a.txt", id, exercise, &exercise.grade(text).unwrap()).cells();
    assert_eq!(
        row(exercise.start()),
        [
            "a.txt",
            "a",
            "pools",
            "not yet",
            "1 of 2",
            "the number of segments is at most 1",
            "the number of segments is 2, 1 more than 1."
        ]
    );
    let solved = exercise.with_region(exercise.solution().unwrap());
    assert_eq!(row(&solved), ["a.txt", "a", "pools", "passed", "2 of 2", "", ""]);
    assert_eq!(GRADE_COLUMNS.len(), row(&solved).len());
}
