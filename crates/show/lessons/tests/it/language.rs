//! The meaning of the forms of a lesson's text.

use blockyard_lessons::{Inline, Lesson, PlayedLesson, RightAnswers, TextBlock, plain};
use blockyard_record::Bytes;
use expect_test::expect;

pub(crate) fn text(cards: &str) -> String {
    format!("---\nid: test\ntitle: A test\nsummary: A sentence.\ncapacity: 64 MiB\n---\n\n{cards}")
}

pub(crate) fn play(cards: &str) -> PlayedLesson {
    Lesson::parse(&text(cards)).and_then(|lesson| lesson.play()).unwrap_or_else(|error| panic!("{error}"))
}

fn body(lesson: &PlayedLesson, card: usize) -> String {
    let words = lesson.cards[card].body.iter().map(|block| match block {
        TextBlock::Paragraph(text) => plain(text),
        TextBlock::List(items) => {
            items.iter().map(|item| format!("- {}", plain(item))).collect::<Vec<_>>().join("\n")
        }
        TextBlock::Code { language, text } => format!("[{language}] {text}"),
    });
    words.collect::<Vec<_>>().join("\n")
}

#[test]
fn cards_play_their_own_lines_of_one_workload() {
    let lesson = play(
        "## One\nText.\n\n```workload\na = alloc 3 MiB\nb = alloc 1 MiB\n```\n\n## Two\nNothing.\n\n## Three\nMore.\n```workload\nfree a\n```\n",
    );
    let steps: Vec<_> = lesson.cards.iter().map(|card| card.steps.clone()).collect();
    assert_eq!(steps, [0..2, 2..2, 2..3]);
    expect![[r#"
        step "One"
        a = alloc 3 MiB
        b = alloc 1 MiB

        step "Three"
        free a
    "#]]
    .assert_eq(&lesson.runs[0].text);
    assert_eq!(lesson.runs[0].recording.labels().len(), 2);
}

#[test]
fn titles_may_hold_every_letter_that_labels_give_a_meaning() {
    let lesson = play("## A \"quoted\" {{brace}} and \\\\\n```workload\na = alloc 1 MiB\n```\n");
    assert_eq!(plain(&lesson.cards[0].title), r#"A "quoted" {brace} and \"#);
    assert_eq!(lesson.runs[0].workload.labels()[0].1, r#"A "quoted" {brace} and \"#);
}

#[test]
fn a_block_with_settings_begins_a_new_run_and_rerun_repeats_the_last_one() {
    let lesson = play(
        "## One\n{reserved}\n```workload\na = alloc 3 MiB\n```\n\
         ## Two\n{reserved}\n```rerun settings=expandable_segments:True\n```\n\
         ## Three\n{reserved} of {capacity}, not {capacity on \"Two\"}\n```workload capacity=128MiB\nb = alloc 30 MiB\n```\n\
         ## Four\n{reserved}\n```workload\nc = alloc 30 MiB\n```\n",
    );
    assert_eq!(lesson.cards.iter().map(|card| card.run).collect::<Vec<_>>(), [0, 1, 2, 2]);
    assert_eq!(lesson.runs[1].conf, "expandable_segments:True");
    assert_eq!(lesson.runs[1].text, lesson.runs[0].text);
    assert_eq!(
        (0..4).map(|card| body(&lesson, card)).collect::<Vec<_>>(),
        ["20 MiB", "20 MiB", "30 MiB of 128 MiB, not 64 MiB", "60 MiB"]
    );
}

#[test]
fn values_come_from_the_run() {
    let lesson = play(
        "## One\n{allocated} of {reserved}, {exact cached}, {segments} segment\n```workload\na = alloc 3 MiB\n```\n\
         ## Two\n{change of allocated} more, {reserved before}, {block b}, {size b}, {reserved at \"One\"}, {cached after a}\n\
         ```workload\nb = alloc 1000\n```\n\
         ## Three\n{device_calls} calls, {device_allocs}, {device_frees}, {largest_cached}, {cached_blocks}, {tensors}, {peak_reserved}\n\
         ```workload\nfree a\nempty_cache\nreset_peak\n```\n\
         ## Four\n{most_reserved} {peak_reserved} {oom} {retries} {message 2}\n```workload\nc = alloc 99 MiB\n```\n",
    );
    expect![[r#"
        3 MiB of 20 MiB, 17,825,792 bytes, 1 segment
        1 KiB more, 20 MiB, 1 KiB, 1000 B, 20 MiB, 17 MiB
        3 calls, 2, 1, 1.99 MiB, 1, 1, 2 MiB
        22 MiB 2 MiB 1 1 Tried to allocate 100.00 MiB."#]]
    .assert_eq(&(0..4).map(|card| body(&lesson, card)).collect::<Vec<_>>().join("\n"));
}

#[test]
fn text_has_a_few_marks() {
    let lesson = play(
        "## Title\nA **strong {reserved}** and *an emphasis* with `code {x}`\nand [a *link*](glossary.md#reserved), \\*no mark\\*.\n\
         - one\n  goes on\n- two\n\n<!-- nobody reads this -->\n```python\nx = 1\n```\n",
    );
    let [TextBlock::Paragraph(text), TextBlock::List(items), TextBlock::Code { language, text: code }] =
        lesson.cards[0].body.as_slice()
    else {
        panic!("{:?}", lesson.cards[0].body);
    };
    assert_eq!(plain(text), "A strong 0 B and an emphasis with code {x} and a link, *no mark*.");
    assert!(matches!(&text[1], Inline::Strong(text) if matches!(text[1], Inline::Value { .. })));
    assert!(
        text.iter()
            .any(|inline| matches!(inline, Inline::Link { target, .. } if target == "glossary.md#reserved"))
    );
    assert_eq!(items.iter().map(|item| plain(item)).collect::<Vec<_>>(), ["one goes on", "two"]);
    assert_eq!((language.as_str(), code.as_str()), ("python", "x = 1"));
}

#[test]
fn questions_are_answered_by_the_allocator() {
    let lesson = play(
        "## Typed\n```workload\na = alloc 3 MiB\n```\n```predict\nquestion: Reserved? Now it is {reserved}.\nmeasure: reserved\n\
         because: It is {reserved},\n  as it goes.\n```\n\
         ## Chosen\n```workload\nfree a\n```\n```predict\nquestion: Segments?\nmeasure: segments\nchoices: 0, 1, 2\n```\n\
         ## Shown\n```workload\nempty_cache\n```\n```predict\nquestion: And now?\n\
         choice: reserved falls => It goes.\nchoice: reserved stays => It stays.\n```\n",
    );
    let question = |card: usize| lesson.cards[card].question.as_ref().unwrap();
    assert_eq!(plain(&question(0).text), "Reserved? Now it is 0 B.");
    assert_eq!(plain(&question(0).because), "It is 20 MiB, as it goes.");
    assert_eq!(question(0).answers, RightAnswers::Bytes(Bytes::mib(20)));
    for (answer, expected) in [
        ("20", true),
        ("20 MiB", true),
        (" 0.03 GiB", false),
        ("20.01", false),
        ("20,971,520 bytes", true),
        ("20480 KiB", true),
        ("3", false),
    ] {
        assert_eq!(question(0).check(answer), Ok(expected), "{answer}");
    }
    assert_eq!(
        question(0).check("20 MB").unwrap_err().to_string(),
        "a MB is 1,000,000 bytes; memory is counted in units of 1024: write \"MiB\""
    );
    assert_eq!(
        question(0).check("many").unwrap_err().to_string(),
        "expected a size such as \"20 MiB\", found \"many\""
    );
    assert_eq!((question(1).check("2"), question(1).right.as_str()), (Ok(true), "1"));
    assert_eq!(question(1).check("4").unwrap_err().to_string(), "expected a number from 1 to 3, found \"4\"");
    assert_eq!((question(2).check("1"), question(2).right.as_str()), (Ok(true), "It goes."));
}

#[test]
fn what_lies_outside_holds_until_a_card_says_otherwise_and_is_not_free() {
    let text = |cards: &str| {
        text(cards).replace(
            "capacity: 64 MiB",
            "capacity: 64 MiB\nmeasured: context = 10 MiB, a file\nmeasured: code = 2 MiB, a file",
        )
    };
    let cards = "## One\n{free}\n```outside\nmeasured context\n```\n## Two\n{free}\n```workload\na = alloc 3 MiB\n```\n\
                 ## Three\n{free}\n```outside\nmeasured context + measured code\n```\n";
    let lesson = Lesson::parse(&text(cards)).unwrap().play().unwrap();
    let non_pytorch: Vec<_> = lesson.cards.iter().map(|card| card.non_pytorch.clone().unwrap()).collect();
    assert_eq!(
        non_pytorch.iter().map(|non_pytorch| non_pytorch.size.get() >> 20).collect::<Vec<_>>(),
        [10, 10, 12]
    );
    let context = ("context".to_owned(), Bytes::mib(10));
    assert_eq!(non_pytorch[1].parts, std::slice::from_ref(&context));
    assert_eq!(non_pytorch[2].parts, [context, ("code".to_owned(), Bytes::mib(2))]);
    let other_run = format!("{cards}## Four\n{{free}}\n```workload new\nb = alloc 3 MiB\n```\n");
    let lesson_of_two = Lesson::parse(&text(&other_run)).unwrap().play().unwrap();
    assert_eq!(lesson_of_two.cards[3].non_pytorch, None, "another run has its own device");
    assert_eq!([0, 1, 2].map(|card| body(&lesson, card)), ["54 MiB", "34 MiB", "32 MiB"]);
    for (block, expected) in [
        ("measured nothing", "there is no line \"measured: nothing = SIZE, SOURCE\""),
        ("segments", "expected measured sizes, such as \"measured context\", found \"0\""),
        ("much", "there is no quantity \"much\""),
    ] {
        let wrong = text(&format!("## One\nText.\n```outside\n{block}\n```\n"));
        let error = Lesson::parse(&wrong).and_then(|lesson| lesson.play()).unwrap_err().to_string();
        assert!(error.starts_with("line 12, column 1: ") && error.contains(expected), "{error}");
    }
    assert_eq!(play("## One\nText.\n").cards[0].non_pytorch, None);
}

#[test]
fn a_word_for_a_number_in_the_title_of_a_lesson_is_no_statement() {
    let titled = |title: &str| text("## One\nText.\n").replace("title: A test", &format!("title: {title}"));
    let notes = |title: &str| Lesson::parse(&titled(title)).unwrap().play().unwrap().notes.len();
    assert_eq!(["Two tensors", "Larger batches", "20 MiB for a tensor"].map(notes), [0, 0, 1]);
}
