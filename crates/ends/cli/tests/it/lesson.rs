//! Lessons in the terminal: reading, checking an answer, the handout.

use crate::{blockyard, blockyard_with_input, file};

#[test]
fn all_lessons_are_listed_and_each_can_be_read() {
    let list = blockyard(["lesson"]);
    assert_eq!((list.status, list.err.as_str()), (0, ""));
    assert!(
        list.out.starts_with(
            "One small GPT, in six chapters\n 1. tensor          What a tensor costs (10 min)\n"
        ),
        "{}",
        list.out
    );
    assert!(list.out.contains("\n\nAppendix\n 7. reserved "), "{}", list.out);
    let read = blockyard(["lesson", "reserved"]);
    assert_eq!((read.status, read.err.as_str()), (0, ""));
    for text in [
        "== 2. A small tensor takes a large segment ==",
        "  3) 20 MiB\n",
        "! 20 MiB. A request of more than 1 MiB",
        "L default     20 MiB [####a####|...",
        "Allocated 3 MiB (peak 3 MiB), reserved 20 MiB (peak 20 MiB).",
        "- the most reserved is at most 22 MiB\n",
    ] {
        assert!(read.out.contains(text), "{text}: {}", read.out);
    }
    assert!(read.out.lines().all(|line| line.chars().count() <= 100), "{}", read.out);
}

/// The exercise of a built-in lesson with the lines that solve it.
fn solved(id: &str) -> String {
    let file = blockyard_lessons::lessons().iter().find(|file| file.id == id).unwrap();
    let played = blockyard_lessons::Lesson::parse(file.text).unwrap().play().unwrap();
    let exercise = played.cards.iter().find_map(|card| card.exercise.as_ref()).unwrap();
    exercise.with_region(exercise.solution().unwrap())
}

#[test]
fn a_solution_is_graded_and_the_exit_status_says_the_verdict() {
    let start = blockyard(["lesson", "pools", "--start"]);
    assert_eq!(start.status, 0);
    let failed = blockyard_with_input(["lesson", "pools", "--check", "-"], &start.out);
    assert_eq!(failed.status, 1, "{}", failed.err);
    assert!(
        failed.out.starts_with(
            "met    no tensor is left out or made smaller\n\
             missed the number of segments is at most 1: the number of segments is 2, 1 more than 1\n"
        ),
        "{}",
        failed.out
    );
    assert!(failed.out.ends_with("\nNot yet.\n"), "{}", failed.out);
    let passed = blockyard_with_input(["lesson", "pools", "--check", "-"], &solved("pools"));
    assert_eq!(passed.status, 0, "{}", passed.err);
    assert!(passed.out.ends_with("\nPassed.\n"), "{}", passed.out);
    let locked = blockyard_with_input(["lesson", "pools", "--check", "-"], "large = alloc 40 MiB\n");
    assert_eq!(locked.status, 2);
    assert_eq!(
        locked.err,
        "error: -: it has no line of the task: hand in the whole file, as \"Save it as a file\" writes it, or the lines between \"# edit from here\" and \"# edit to here\"\n"
    );
}

#[cfg(feature = "python")]
#[test]
fn a_program_is_an_answer_too_and_every_solution_of_ours_passes_while_its_start_does_not() {
    let mut count = 0;
    for lesson in blockyard_lessons::lessons() {
        let (id, solution) = (lesson.id, solved(lesson.id));
        if !solution.contains("import torch") {
            continue;
        }
        count += 1;
        let start = blockyard(["lesson", id, "--start"]);
        let failed = blockyard_with_input(["lesson", id, "--check", "-"], &start.out);
        assert_eq!(failed.status, 1, "{id}: {}{}", failed.out, failed.err);
        assert!(failed.out.ends_with("\nNot yet.\n"), "{id}: {}", failed.out);
        let passed = blockyard_with_input(["lesson", id, "--check", "-"], &solution);
        assert_eq!(passed.status, 0, "{id}: {}{}", passed.out, passed.err);
        assert!(passed.out.ends_with("\nPassed.\n"), "{id}: {}", passed.out);
    }
    assert!(count >= 8, "{count} exercises are in Python");
}

/// The changes of our exercises that pass, each with the reason why it is a right answer.
#[cfg(feature = "python")]
const RIGHT_ANSWERS: [(&str, &str, &str); 10] = [
    (
        "tensor",
        "solution: `torch.empty`",
        "it has the same shape and type; what the numbers are is not asked",
    ),
    ("nvidia-smi", "start: `request` of line 1 cut to a part", "it frees the whole request before the cache"),
    ("nvidia-smi", "solution: `torch.empty`", "a request of the same size, which is deleted all the same"),
    ("nvidia-smi", "solution: `request` of line 1 cut to a part", "the result needs this part alone"),
    ("nvidia-smi", "solution: `result` of line 2 cut to a part", "the part is the whole result"),
    ("nvidia-smi", "start: and the cache emptied", "the request is deleted by then"),
    ("what-to-change", "solution: and `loss` deleted", "its number is in the list by then"),
    ("what-to-change", "solution: `loss` of line 2 moved to the CPU", "its number is the same there"),
    ("reserved", "solution: 1 in place of 2", "which numbers are added is not asked"),
    ("reserved", "solution: 1 in place of 3", "which numbers are added is not asked"),
];

/// All exercises that are programs.
#[cfg(feature = "python")]
#[test]
fn no_small_change_of_our_exercises_passes() {
    let python = [
        "tensor",
        "nvidia-smi",
        "training",
        "fragmentation",
        "what-to-change",
        "ranks",
        "reserved",
        "workspaces",
    ];
    for id in python {
        let tried = blockyard(["lesson", id, "--mutate"]);
        let passing: Vec<&str> = tried.out.lines().filter_map(|line| line.strip_prefix("PASSES ")).collect();
        let right: Vec<&str> =
            RIGHT_ANSWERS.iter().filter(|row| row.0 == id).map(|(_, change, _)| *change).collect();
        assert_eq!(passing, right, "{id}: {}{}", tried.out, tried.err);
        assert!(tried.out.lines().count() > 10, "{id}: {}", tried.out);
        assert_eq!(tried.status, i32::from(!right.is_empty()), "{id}: {}", tried.err);
    }
}

/// A teacher grades the files of a class with one command, which prints a line for each file.
#[test]
fn several_answers_have_a_line_each_and_one_that_cannot_be_read_stops_nobody() {
    let start = blockyard(["lesson", "pools", "--start"]).out;
    let answers = [("a", solved("pools")), ("b", start), ("c", "large = alloc 40 MiB\n".to_owned())];
    let paths = answers.map(|(name, text)| file(&format!("answer-{name}"), text));
    let [good, early, wrong] = &paths;
    let both = blockyard(["lesson", "pools", "--check", good, good]);
    assert_eq!(
        (both.status, both.out),
        (0, format!("passed     {good}\npassed     {good}\n2 of 2 passed.\n"))
    );
    let one = blockyard(["lesson", "pools", "--check", early, good]);
    assert_eq!(one.status, 1, "{}", one.err);
    assert!(one.out.starts_with(&format!("not yet    {early}: the number of segments is 2")), "{}", one.out);
    assert!(one.out.ends_with(&format!("passed     {good}\n1 of 2 passed.\n")), "{}", one.out);
    let all = blockyard(["lesson", "pools", "--check", wrong, "nowhere", good]);
    assert_eq!(all.status, 2, "{}", all.err);
    assert!(all.out.starts_with(&format!("not graded {wrong}: it has no line of the task")), "{}", all.out);
    assert!(
        all.out.contains("\nnot graded nowhere: ") && all.out.ends_with("1 of 3 passed.\n"),
        "{}",
        all.out
    );
}

/// The table has the same columns as the page for teachers.
#[test]
fn the_grades_of_a_class_are_a_table_too() {
    let (good, early) = (
        file("good.workload", solved("pools")),
        file("early.workload", blockyard(["lesson", "pools", "--start"]).out),
    );
    let table = file("grades.csv", "");
    let called = blockyard(["lesson", "pools", "--check", &good, &early, "nowhere", "--csv", &table]);
    assert_eq!(called.status, 2, "{}", called.err);
    assert!(called.out.ends_with("1 of 3 passed.\n"), "{}", called.out);
    let rows = std::fs::read_to_string(&table).unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows[0], "\"File\",\"Name\",\"Lesson\",\"Result\",\"Goals met\",\"Goals missed\",\"Message\"");
    assert_eq!(rows[1], format!("\"{good}\",\"good\",\"pools\",\"passed\",\"2 of 2\",\"\",\"\""));
    assert_eq!(
        rows[2],
        format!(
            "\"{early}\",\"early\",\"pools\",\"not yet\",\"1 of 2\",\"the number of segments is at most 1\",\"the number of segments is 2, 1 more than 1.\""
        )
    );
    assert!(
        rows[3].starts_with("\"nowhere\",\"nowhere\",\"pools\",\"not graded\",\"\",\"\",\""),
        "{}",
        rows[3]
    );
    // For one file the table goes to standard output, and no other line does.
    let called = blockyard(["lesson", "pools", "--check", &good, "--csv", "-"]);
    assert_eq!((called.status, called.out.lines().count()), (0, 2), "{}", called.out);
}

#[cfg(feature = "python")]
#[test]
fn a_program_that_fails_has_its_output_its_line_and_its_traceback() {
    let start = blockyard(["lesson", "tensor", "--start"]).out;
    let text = start.replace("# edit to here", "print(\"so far\")\nbatch.nothing()\n# edit to here");
    let called = blockyard_with_input(["lesson", "tensor", "--check", "-"], &text);
    assert_eq!(called.status, 1, "{}", called.err);
    assert!(
        called.out.starts_with(
            "so far\nmissed the program runs to its end: the program ends in line 6, `batch.nothing()`: AttributeError: "
        ),
        "{}",
        called.out
    );
    assert!(called.err.starts_with("Traceback (most recent call last):\n"), "{}", called.err);
    let locked = blockyard_with_input(
        ["lesson", "tensor", "--check", "-"],
        &start.replace("import torch", "import os"),
    );
    assert_eq!(locked.status, 2);
    assert_eq!(
        locked.err,
        "error: -: line 1 belongs to the task and was changed: it should read \"import torch\"\n"
    );
}

#[test]
fn a_handout_holds_the_figures_and_needs_nothing_else() {
    let out = file("handout.html", "");
    let called = blockyard(["lesson", "pools", "--handout", &out]);
    assert_eq!(called.status, 0, "{}", called.err);
    let html = std::fs::read_to_string(&out).unwrap();
    assert_eq!(
        html.matches("<svg ").count() - html.matches("<svg x=").count(),
        7,
        "a figure a card, but for a question on the page of the moment that it is about, and one behind each of two answers"
    );
    assert_eq!(html.matches("<section").count(), html.matches("</section>").count());
    assert!(
        html.contains("<h2>Private pools and CUDA graphs: answers</h2>")
            && html.contains("<strong>40 MiB</strong>")
    );
    assert!(!html.contains("<script") && !html.contains("src=") && !html.contains("href="));
    // The answers are in a separate file for the teacher.
    let answers = file("answers.html", "");
    let called = blockyard(["lesson", "pools", "--handout", &out, "--answers", &answers]);
    assert_eq!(called.status, 0, "{}", called.err);
    let [cards, answers] = [&out, &answers].map(|path| std::fs::read_to_string(path).unwrap());
    assert!(!cards.contains("<h2>Answers") && !cards.contains("<strong>40 MiB</strong>"));
    assert!(!cards.contains("Hint: ") && answers.contains("Hint: "), "hints are the teacher's to give");
    assert!(
        answers.contains(
            "<pre class=\"code\">enter first\nx2 = alloc 8 MiB\ny2 = alloc 8 MiB\nleave first</pre>"
        ),
        "{answers}"
    );
    assert!(
        answers.contains("<h2>Private pools and CUDA graphs: answers</h2>")
            && answers.contains("<strong>40 MiB</strong>")
    );
    assert_eq!(
        cards.matches("<svg ").count() - cards.matches("<svg x=").count() + answers.matches("<svg ").count()
            - answers.matches("<svg x=").count(),
        7
    );
}

#[test]
fn questions_alone_and_the_key_have_files_of_their_own() {
    let [out, questions, key] = ["all.html", "questions.html", "key.html"].map(|name| file(name, ""));
    let called = blockyard([
        "lesson",
        "reserved",
        "pools",
        "--handout",
        &out,
        "--questions",
        &questions,
        "--key",
        &key,
    ]);
    assert_eq!(called.status, 0, "{}", called.err);
    let [questions, key] = [&questions, &key].map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!(questions.matches("<section class=\"sheet\">").count(), 4, "two pages a lesson");
    assert!(questions.contains("<strong>2.</strong> The next tensor asks for 5 MiB, and (…) are cached."));
    assert_eq!(key.matches("<section class=\"answer-key\">").count(), 2);
    assert!(
        key.contains("<strong>c) 20 MiB</strong>")
            && key.contains(
                "<pre class=\"code\">enter first\nx2 = alloc 8 MiB\ny2 = alloc 8 MiB\nleave first</pre>"
            ),
        "{key}"
    );
}

#[test]
fn several_lessons_share_a_sheet_and_a_key() {
    let (out, key) = (file("week.html", ""), file("week-answers.html", ""));
    let called = blockyard(["lesson", "reserved", "pools", "--handout", &out, "--answers", &key]);
    assert_eq!(called.status, 0, "{}", called.err);
    let [cards, answers] = [&out, &key].map(|path| std::fs::read_to_string(path).unwrap());
    for title in ["Allocated and reserved", "Private pools and CUDA graphs"] {
        assert!(
            cards.contains(&format!("<h1>{title}</h1>")) && cards.contains(&format!("{title}, page 1 of"))
        );
        assert!(answers.contains(&format!("<h2>{title}: answers</h2>")), "{answers}");
    }
    assert!(cards.contains("<title>Allocated and reserved · Private pools and CUDA graphs</title>"));
    let called = blockyard(["lesson", "reserved", "pools"]);
    assert_eq!(called.status, 2);
    assert!(called.err.contains("write several into one file with --handout"), "{}", called.err);
}

#[test]
fn a_file_of_ones_own_is_a_lesson_and_its_errors_have_a_place() {
    let text = "---\nid: own\ntitle: My own\nsummary: S.\ncapacity: 64 MiB\n---\n## One\nReserved: {reserved}.\n```workload\na = alloc 3 MiB\n```\n";
    let own = file("own.md", text);
    let called = blockyard(["lesson", &own]);
    assert_eq!(called.status, 0, "{}", called.err);
    assert!(called.out.contains("Reserved: 20 MiB.\n"), "{}", called.out);
    let typed = file("typed.md", text.replace("{reserved}", "20 MiB, which is enough"));
    let called = blockyard(["lesson", &typed]);
    assert_eq!(called.status, 0, "{}", called.err);
    assert_eq!(called.err.matches("note: ").count(), 2, "{}", called.err);
    assert!(
        called.err.contains("typed.md: line 8, column 11: nothing proves \"20\": write"),
        "{}",
        called.err
    );
    let claim = file("claim.md", text.replace("{reserved}", "{reserved more than 20 MiB => too large}"));
    let called = blockyard(["lesson", &claim]);
    assert_eq!(called.status, 2);
    assert!(
        called.err.contains(
            "claim.md: line 8, column 12: the text says \"reserved is more than 20 MiB\", and that is not so: reserved is 20 MiB"
        ),
        "{}",
        called.err
    );
    let wrong = file("wrong.md", text.replace("{reserved}", "{lost}"));
    let called = blockyard(["lesson", &wrong]);
    assert_eq!(called.status, 2);
    assert!(
        called.err.contains("wrong.md: line 8, column 12: there is no quantity \"lost\""),
        "{}",
        called.err
    );
    let called = blockyard(["lesson", &own, "--start"]);
    assert_eq!((called.status, called.err.as_str()), (2, "error: own has no exercise\n"));
    let called = blockyard(["lesson", "nothing-like-it"]);
    assert!(
        called.err.contains("neither a lesson's file nor one of the lessons tensor, nvidia-smi,"),
        "{}",
        called.err
    );
}

#[cfg(feature = "python")]
#[test]
fn a_lesson_in_python_runs_its_program() {
    let text = "---\nid: two\ntitle: Two\nsummary: Two tensors.\ncapacity: 64 MiB\n---\n\n## One\n{size a} in {reserved}.\n\n```python run\nimport torch\na = torch.empty(3 * 2**18, device=\"cuda\")\n```\n\n## The copy\n{cached} are cached.\n\n```python run\nb = a.to(torch.float16)\ndel a\n```\n";
    let path = file("two.md", text);
    let read = blockyard(["lesson", &path]);
    assert_eq!((read.status, read.err.as_str()), (0, ""), "{}", read.err);
    for said in ["3 MiB in 20 MiB.", "18.5 MiB are cached.", "a = torch.empty(3 * 2**18, device=\"cuda\")"] {
        assert!(read.out.contains(said), "{said}: {}", read.out);
    }
    let wrong = file("wrong.md", text.replace("del a", "del z"));
    let wrong = blockyard(["lesson", &wrong]);
    assert!(wrong.status == 2 && wrong.err.contains("name 'z' is not defined"), "{}", wrong.err);
    // The lesson of the document has an exercise, which its solution solves.
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/teaching-lesson.md");
    let document = std::fs::read_to_string(document).unwrap();
    let example = document.split("````markdown\n").nth(1).and_then(|rest| rest.split("````").next()).unwrap();
    let example = file("hello.md", example);
    let start = blockyard(["lesson", &example, "--start"]);
    assert_eq!(start.status, 0, "{}", start.err);
    let solved = start.out.replacen("device=\"cuda\"", "device=\"cuda\", dtype=torch.float16", 1);
    for (answer, status) in [(&start.out, 1), (&solved, 0)] {
        let graded = blockyard_with_input(["lesson", &example, "--check", "-"], answer);
        assert_eq!(graded.status, status, "{}{}", graded.out, graded.err);
    }
}
