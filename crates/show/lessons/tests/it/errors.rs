//! The errors of a lesson's text, each with its place.

use std::fmt::Write as _;

use blockyard_lessons::Lesson;
use expect_test::expect;
use proptest::prelude::*;

use crate::language::text;

fn error(text: &str) -> String {
    match Lesson::parse(text).and_then(|lesson| lesson.play()) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn front_matter_is_checked() {
    let front = |lines: &str| error(&format!("---\n{lines}\n---\n## Card\nText.\n"));
    let good = "id: a\ntitle: T\nsummary: S\ncapacity: 1 GiB";
    assert_eq!(front(good), "no error");
    let mut found = String::new();
    for text in [
        "",
        "title: T",
        &format!("{good}\ncolour: red"),
        &format!("{good}\nid: b"),
        &good.replace("id: a", "id: A b"),
        &good.replace("1 GiB", "much"),
        &format!("{good}\nsettings: nothing:1"),
        &format!("{good}\nminutes: few"),
        &format!("{good}\nno key"),
    ] {
        let _ = writeln!(found, "{}", front(text));
    }
    let _ = writeln!(found, "{}", error("# A text\n"));
    expect![[r#"
        line 1, column 1: the front matter has no "capacity"
        line 1, column 1: the front matter has no "capacity"
        line 6, column 1: unknown key "colour": known are id, title, summary, capacity, settings, profile, minutes, measured
        line 6, column 1: "id" is given twice
        line 2, column 1: an id has lowercase letters, digits and hyphens, and begins with a letter
        line 5, column 1: expected a size such as "64 MiB", found "much"
        line 6, column 1: settings: Unrecognized key 'nothing' in CUDA allocator config.
        line 6, column 1: expected a number of minutes, found "few"
        line 6, column 1: expected a line such as "key: value"
        line 1, column 1: a lesson begins with a line "---", lines such as "title: Two tensors", and a line "---"
    "#]]
    .assert_eq(&found);
}

#[test]
fn cards_are_checked() {
    let mut found = String::new();
    for cards in [
        "Text before.",
        "",
        "## Title {reserved}",
        "## Title\n### Deeper",
        "## Title\n| a | b |",
        "## Title\nA **strong",
        "## Title\nMore\nlines `code",
        "## Title\n{nothing}",
        "## Title\n{reserved of a}",
        "## Title\n{block}",
        "## Title\n{reserved at noon}",
        "## Title\n{block b}",
        "## Title\n{message}",
        "## Title\n```question\nmeasure: reserved\n```",
        "## Title\n```Workloads\n```",
        "## Title\n```python strat\n```",
        "## Title\n```workload\na = alloc",
        "## Title\n```workload\na = alloc 3 MiB\nfree b\n```",
        "## Title\n```workload\n```\n```workload\n```",
        "## Title\n```workload\nrepeat 60000 { empty_cache }\n```",
        "## Title\n```workload colour=red\n```",
        "## Title\n```workload settings=max:1\n```",
        "## Title\n```rerun\n```",
        "## Title\n```predict\nquestion: Why?\n```",
        "## Title\n```predict\nmeasure: reserved\n```",
        "## Title\n```predict\nquestion: Why?\nmeasure: reserved\nchoices: 1 MiB, 2 MiB\n```",
        "## Title\n```predict\nquestion: Why?\nmeasure: reserved\nchoices: 1 MiB, some\n```",
        "## Title\n```predict\nquestion: Why?\nchoice: reserved stays => A\nchoice: cached stays => B\n```",
        "## Title\n```predict\nquestion: Why?\nchoice: reserved => A\nchoice: cached stays => B\n```",
        "## Title\n```exercise\ngoal: a passes\n```",
        "## Title\n```exercise\nhint: a\n```\n```start\n```",
        "## Title\n```exercise\ngoal: well done\n```\n```start\n```",
        "## Title\n```exercise\ngoal: a passes\n```\n```start\na = allok\n```",
        "## Title\n```exercise\ngoal: a passes\n```\n```start\n# edit to here\n# edit from here\n```",
    ] {
        let _ = writeln!(found, "{}", error(&text(cards)));
    }
    expect![[r###"
        line 8, column 1: the first card begins with a line "## Title"; only blank lines may come before it
        line 1, column 1: the first card begins with a line "## Title"; only blank lines may come before it
        line 8, column 11: a title has no values: put "{{" for a brace
        line 9, column 1: a heading other than "## Title" is not a form of a lesson: paragraphs, lists with "-", links, **strong**, *emphasis*, `code` and fenced blocks are
        line 9, column 1: a table is not a form of a lesson: paragraphs, lists with "-", links, **strong**, *emphasis*, `code` and fenced blocks are
        line 9, column 3: this "**" is never closed
        line 10, column 7: this "`" is never closed
        line 9, column 2: there is no quantity "nothing": known are requested, rounding, allocated, pending, active, cached, reserved, free, capacity, peak_allocated, peak_reserved, most_allocated, most_reserved, largest_cached, segments, cached_blocks, tensors, allocations, device_allocs, device_frees, device_calls, retries, oom, block, size, smallest_block, small_limit, small_segment, large_segment, own_segment, segment_step, measured, message
        line 9, column 2: there is no quantity "reserved of a": near it is "reserved", known are requested, rounding, allocated, pending, active, cached, reserved, free, capacity, peak_allocated, peak_reserved, most_allocated, most_reserved, largest_cached, segments, cached_blocks, tensors, allocations, device_allocs, device_frees, device_calls, retries, oom, block, size, smallest_block, small_limit, small_segment, large_segment, own_segment, segment_step, measured, message
        line 9, column 2: "block" needs the name of a tensor after it
        line 9, column 2: expected "before", "at \"a label\"", "on \"a card\"" or "after a_tensor", found "at noon"
        line 9, column 2: no request before this moment allocates "b"
        line 9, column 2: no request before this moment fails
        line 9, column 1: no block has the name "question"; near it is "predict". What is only shown is "text" or "python"
        line 9, column 1: no block has the name "Workloads"; near it is "workload". What is only shown is "text" or "python"
        line 9, column 1: no block has the name "python strat"; near it is "python start". What is only shown is "text" or "python"
        line 9, column 1: this "```" is never closed
        line 11, column 6: "b" is not allocated: no line before this one allocates it
        line 11, column 1: this card has a second block "workload"
        line 1, column 1: the workloads of a lesson make at most 50000 requests
        line 9, column 1: unknown key "colour=red": known are new, hidden, peak, settings=KEY:VALUE, capacity=64MiB
        line 9, column 1: settings: Unrecognized key 'max' in CUDA allocator config.
        line 9, column 1: there is no workload before this to run again
        line 9, column 1: a question has "measure", perhaps with "choices", or else two or more "choice"
        line 9, column 1: a question has no "question"
        line 12, column 1: 0 of the choices are right, and one has to be: the allocator says 0 B
        line 12, column 1: expected a size such as "3 MiB", found "some"
        line 11, column 1: 2 of the choices are right, and one has to be: the allocator says reserved stays at 0 B; cached stays at 0 B
        line 11, column 1: expected a condition such as "peak reserved at most 40 MiB", "reserved falls" or "x passes", found "reserved": a condition compares with at most, at least, exactly, less than or more than, or ends with rises, falls, stays, passes or fails
        line 9, column 1: an exercise has a block "exercise" and a block "start" or "python start"
        line 9, column 1: an exercise has no "goal"
        line 10, column 1: there is no goal "well done": known are same requests, without set, without set_fraction, without empty_cache, without pool, without reset_peak, peak reserved at most 40 MiB (at least, exactly, less than, more than), reserved falls (rises, stays), x passes (fails)
        line 13, column 5: expected "alloc" and a size, found "allok"
        line 12, column 1: "# edit from here" and then "# edit to here" occur once each, or not at all
    "###]].assert_eq(&found);
}

#[test]
fn an_author_hears_of_all_errors_at_once() {
    let text = text(
        "## One\n{reserved more than 1 GiB => far too much} and {lost}, and {cached at noon}.\n\n| a | b |\n\nMore {oom exactly 3 => three}.\n\
         ```workload\na = alloc 3 MiB\n```\n```predict\nquestion: Why?\nchoice: reserved stays => A\nchoice: reserved falls => B\n```\n\
         ## Two **\nText.\n```exercise\ngoal: well done\nhint: {nothing}\n```\n```start\na = alloc 1 MiB\n```\n",
    );
    let errors = Lesson::check(&text).unwrap_err();
    let found: String = errors.iter().fold(String::new(), |mut found, error| {
        let _ = writeln!(
            found,
            "{:?} {}",
            error.position(),
            error.to_string().chars().take(64).collect::<String>()
        );
        found
    });
    expect![[r#"
        (9, 2) line 9, column 2: the text says "reserved is more than 1 GiB", a
        (9, 49) line 9, column 49: there is no quantity "lost": known are reques
        (9, 61) line 9, column 61: expected "before", "at \"a label\"", "on \"a 
        (11, 1) line 11, column 1: a table is not a form of a lesson: paragraphs
        (13, 7) line 13, column 7: the text says "the number of out-of-memory er
        (19, 1) line 19, column 1: 0 of the choices are right, and one has to be
        (22, 8) line 22, column 8: this "**" is never closed
        (25, 1) line 25, column 1: there is no goal "well done": known are same 
        (26, 8) line 26, column 8: there is no quantity "nothing": known are req
    "#]]
    .assert_eq(&found);
    // The command prints the first error, in the order in which the parts of a lesson are read.
    assert!(errors.iter().any(|one| one.to_string() == error(&text)));
    assert!(Lesson::check("").unwrap_err().len() == 1);
    let sound = crate::language::text("## One\n{reserved}\n```workload\na = alloc 3 MiB\n```\n");
    assert_eq!(Lesson::check(&sound).unwrap().cards.len(), 1);
}

#[test]
fn a_loop_ends_in_the_card_in_which_it_begins() {
    let cards =
        "## One\n```workload\nrepeat 2 {\na = alloc 1 MiB\n```\n## Two\n```workload\nfree a\n}\n```\n";
    assert_eq!(error(&text(cards)), "line 9, column 1: a loop ends in the block in which it begins");
}

proptest! {
    #[test]
    fn no_text_makes_a_lesson_panic(cards in "(## |```workload\n|```predict\n|```exercise\n|```start\n|```\n|\\{reserved\\}|\\*\\*|`|\\[|a = alloc 1 MiB\n|free a\n|goal: a passes\n|measure: reserved\n|question: x\n|- |\n|[a-z{}]){0,30}") {
        if let Ok(lesson) = Lesson::parse(&text(&cards)) {
            let _ = lesson.play();
        }
        let _ = Lesson::parse(&cards);
    }
}
