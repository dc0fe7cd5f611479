//! The lessons that Blockyard brings along: each teaches what the allocator does, and each exercise can be
//! solved.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use blockyard_lessons::{
    BREAK_MINUTES, CourseLesson, Exercise, ExerciseLanguage, ExerciseUse, Inline, LECTURES, Lecture, Lesson,
    OwnLesson, PARTS, Plan, PlannedLesson, PlayedLesson, PracticeQuestion, RightAnswers, Slider, TextBlock,
    class_minutes, class_task, course, current_id, glossary, handout, lessons, plain,
};

pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(name)
}

pub(crate) fn played() -> Vec<PlayedLesson> {
    let play = |text| Lesson::parse(text).and_then(|lesson| lesson.play());
    lessons()
        .iter()
        .map(|file| play(file.text).unwrap_or_else(|error| panic!("{}: {error}", file.id)))
        .collect()
}

#[test]
fn every_file_of_the_folder_is_a_lesson_in_its_place() {
    let files = std::fs::read_dir(folder("web/lessons")).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected =
        lessons().iter().enumerate().map(|(index, file)| format!("{:02}-{}.md", index + 1, file.id));
    let expected: Vec<_> = expected.chain(["glossary.md".to_owned()]).collect();
    assert_eq!(names, expected);
    for (lesson, file) in played().iter().zip(lessons()) {
        assert_eq!(lesson.id, file.id);
    }
    let listed: Vec<_> = course().map(|lesson| (lesson.id, lesson.title)).collect();
    let played = played();
    let files: Vec<_> = played.iter().map(|lesson| (lesson.id.as_str(), lesson.title.as_str())).collect();
    assert_eq!(listed, files, "each lesson is in a part of the course, under its title");
}

#[test]
fn a_former_lesson_leads_to_the_chapter_that_has_its_matter() {
    for id in [
        "rounding",
        "cache",
        "splits",
        "settings",
        "peaks",
        "optimizer",
        "checkpointing",
        "mixed-precision",
        "accumulation",
        "oom-message",
        "snapshot",
    ] {
        assert!(lessons().iter().all(|file| file.id != id));
        assert!(lessons().iter().any(|file| file.id == current_id(id)));
    }
    assert!(lessons().iter().all(|file| current_id(file.id) == file.id));
}

#[test]
fn every_lesson_asks_a_question_and_has_an_exercise_with_hints() {
    for lesson in played() {
        let id = &lesson.id;
        let most = if lesson.sliders.iter().all(Slider::is_drawn) { 9 } else { 12 };
        assert!((4..=most).contains(&lesson.cards.len()), "{id}: {} cards", lesson.cards.len());
        assert!(lesson.cards.iter().any(|card| card.question.is_some()), "{id}");
        let exercises: Vec<_> = lesson.cards.iter().filter_map(|card| card.exercise.as_ref()).collect();
        assert_eq!(exercises.len(), 1, "{id}");
        assert!(exercises.iter().all(|exercise| !exercise.hints.is_empty()), "{id}");
    }
}

/// The sentences of a text, roughly: full stops, question marks and colons that end a line count.
fn sentence_count(text: &str) -> usize {
    let mut count = 0;
    let characters: Vec<char> = text.chars().collect();
    for (index, character) in characters.iter().enumerate() {
        let ends = characters.get(index + 1).is_none_or(|next| next.is_whitespace());
        if ends && matches!(character, '.' | '?' | '!') {
            count += 1;
        }
    }
    count
}

#[test]
fn a_card_has_a_few_sentences_and_a_short_title() {
    for lesson in played() {
        for card in &lesson.cards {
            let title = plain(&card.title);
            assert!(title.chars().count() <= 60, "{}: {title}", lesson.id);
            let prose: Vec<String> = card.body.iter().filter_map(prose).collect();
            let count: usize = prose.iter().map(|text| sentence_count(text)).sum();
            // A chapter scrolls, and has room for more than a card.
            let is_chapter = !lesson.sliders.iter().all(Slider::is_drawn);
            let (sentences, letters) = if is_chapter { (8, 800) } else { (4, 480) };
            let most = sentences + usize::from(card.exercise.is_some());
            assert!((1..=most).contains(&count), "{}, {title}: {count} sentences", lesson.id);
            let length: usize = prose.iter().map(String::len).sum();
            assert!(length <= letters, "{}, {title}: {length} letters", lesson.id);
        }
    }
}

fn prose(block: &TextBlock) -> Option<String> {
    match block {
        TextBlock::Paragraph(text) => Some(plain(text)),
        _ => None,
    }
}

#[test]
fn every_exercise_is_failed_by_its_start_and_passed_by_its_solution() {
    for lesson in played() {
        // Programs are run by the command, whose tests check the same properties of them.
        let is_workload = |exercise: &&Exercise| exercise.language == ExerciseLanguage::Workload;
        for exercise in lesson.cards.iter().filter_map(|card| card.exercise.as_ref()).filter(is_workload) {
            let start = exercise.grade(exercise.start()).unwrap();
            assert!(!start.is_passed, "{}: the start passes: {}", lesson.id, start.sentence);
            let solution = exercise.with_region(exercise.solution().unwrap());
            let grade = exercise.grade(&solution).unwrap_or_else(|error| panic!("{}: {error}", lesson.id));
            assert!(grade.is_passed, "{}: {}", lesson.id, grade.sentence);
        }
    }
}

#[test]
fn every_lesson_has_one_exercise_and_its_solution() {
    for lesson in played() {
        let exercises: Vec<&Exercise> =
            lesson.cards.iter().filter_map(|card| card.exercise.as_ref()).collect();
        assert_eq!(exercises.len(), 1, "{}", lesson.id);
        assert!(exercises[0].solution().is_some_and(|lines| !lines.is_empty()), "{}", lesson.id);
    }
}

/// Values and claims come from the run; the notes list the words that nothing proves. The notes are in the
/// order of the file, and cover titles, texts, questions, choices, reasons, tasks and hints.
#[test]
fn every_number_and_every_comparison_of_a_lesson_is_proved_by_its_run() {
    let mut found = String::new();
    for lesson in played() {
        for note in &lesson.notes {
            let _ = writeln!(found, "{} {note}", lesson.id);
        }
    }
    assert!(found.is_empty(), "{} words are not proved:\n{found}", found.lines().count());
}

fn texts(lesson: &PlayedLesson) -> Vec<&[Inline]> {
    let mut texts: Vec<&[Inline]> = Vec::new();
    for card in &lesson.cards {
        texts.push(&card.title);
        for block in &card.body {
            match block {
                TextBlock::Paragraph(text) => texts.push(text),
                TextBlock::List(items) => texts.extend(items.iter().map(Vec::as_slice)),
                TextBlock::Code { .. } => {}
            }
        }
        if let Some(question) = &card.question {
            texts.extend([question.text.as_slice(), question.because.as_slice()]);
        }
        if let Some(exercise) = &card.exercise {
            texts.extend(exercise.hints.iter().map(Vec::as_slice));
        }
    }
    texts
}

#[test]
fn the_glossary_names_every_term_that_lessons_link_to() {
    let glossary = glossary().unwrap();
    let mut linked = BTreeSet::new();
    let texts: Vec<Vec<Inline>> = played()
        .iter()
        .flat_map(|lesson| texts(lesson).into_iter().map(<[Inline]>::to_vec).collect::<Vec<_>>())
        .collect();
    for text in &texts {
        collect_links(text, &mut linked);
    }
    for target in &linked {
        if let Some(id) = target.strip_prefix("#lesson=") {
            assert!(lessons().iter().any(|file| file.id == id), "{target}");
            continue;
        }
        let Some(id) = target.strip_prefix("glossary.md#") else {
            assert!(target.starts_with("https://"), "{target}");
            continue;
        };
        assert!(glossary.entry(id).is_some(), "no term {id}");
    }
    assert!(!linked.is_empty());
    let ids: BTreeSet<_> = glossary.entries.iter().map(|entry| &entry.id).collect();
    assert_eq!(ids.len(), glossary.entries.len(), "every term once");
}

fn collect_links(text: &[Inline], linked: &mut BTreeSet<String>) {
    for inline in text {
        if let Inline::Link { target, .. } = inline {
            linked.insert(target.clone());
        }
        if let Inline::Strong(text) | Inline::Emphasis(text) = inline {
            collect_links(text, linked);
        }
    }
}

#[test]
fn practice_has_every_question_once() {
    let count: usize = played()
        .iter()
        .map(|lesson| lesson.cards.iter().filter(|card| card.question.is_some()).count())
        .sum();
    assert_eq!(PracticeQuestion::all(lessons()).len(), count);
    assert!(count >= lessons().len());
}

/// The same file is compared where lessons run as WebAssembly.
#[test]
fn the_allocator_s_answers_are_these() {
    expect_test::expect_file!["../answers.txt"].assert_eq(&crate::transcript::transcript().unwrap());
}

#[test]
fn the_same_lesson_always_says_the_same() {
    for (one, other) in played().iter().zip(played()) {
        assert_eq!(format!("{:?}", one.cards), format!("{:?}", other.cards));
    }
}

/// A plan is kept only if each lesson has the time that its cards and questions take.
#[test]
fn a_lesson_has_the_time_with_a_class_that_its_cards_and_questions_take() {
    for file in lessons() {
        let lesson = Lesson::parse(file.text).unwrap();
        let (least, minutes) = (lesson.class_minutes(), class_minutes(file.id));
        assert!(minutes >= least, "{}: {least} minutes", file.id);
        assert!(lesson.has_exercise(), "{}", file.id);
    }
}

#[test]
fn a_plan_is_a_text_that_can_be_changed() {
    let text = "tensor,nvidia-smi:home,fragmentation:exercise,what-to-change:home";
    let plan = Plan::from_text(text);
    assert_eq!(plan.to_string(), text);
    assert_eq!((plan.lesson_minutes(), plan.minutes()), (39, 45));
    assert_eq!((plan.end_of("tensor"), plan.end_of("fragmentation")), (Some(15), Some(39)));
    assert_eq!(plan.end_of("nvidia-smi"), None);
    assert_eq!(
        plan.homework_sentence().unwrap(),
        "Homework: exercise of \"What a tensor costs\"; lessons \"Why nvidia-smi did not fall\", \"What to change, and how one knows\"."
    );
    let solved = PlannedLesson { exercise: ExerciseUse::InClass, ..plan.lesson("tensor").unwrap().clone() };
    let other = plan.with_lesson("tensor", Some(solved)).with_lesson("what-to-change", None);
    let other = other.with_lesson("nvidia-smi", None);
    let other = other.with_lesson("training", PlannedLesson::of_course("training"));
    assert_eq!(other.to_string(), "tensor:exercise,training,fragmentation:exercise");
    // The order of a link is kept; lessons have former names, and some are not known.
    assert_eq!(Plan::from_text("cache,tensor,unknown,tensor:home").to_string(), "nvidia-smi,tensor");
    let solved = Plan::from_text("tensor:exercise");
    assert_eq!((solved.homework_sentence(), Plan::default().minutes()), (None, 0));
    // An exercise may be nobody's, in class and at home.
    let none = Plan::from_text("tensor:only,reserved:read");
    assert_eq!((none.to_string().as_str(), none.minutes()), ("tensor:only,reserved:home:only", 20));
    assert_eq!(Plan::from_text("tensor:home:exercise").to_string(), "tensor:home");
    assert_eq!(none.presented().count(), 1);
    // Cards may be left out, and so their minutes.
    let text = "tensor:exercise:without-1-3-5q";
    let shorter = Plan::from_text(text);
    let tensor = shorter.lesson("tensor").unwrap();
    assert_eq!((shorter.to_string().as_str(), tensor.minutes(), tensor.first_card()), (text, 15 - 4 + 8, 1));
    assert_eq!([0, 1, 2, 4].map(|card| tensor.leaves_out(card)), [true, false, true, true]);
    assert_eq!(Plan::from_text("tensor:without-:without-0-x").to_string(), "tensor");
    assert_eq!(
        none.homework_sentence().unwrap(),
        "Homework: lesson \"Allocated and reserved\" without exercise."
    );
}

#[test]
fn paper_has_the_cards_that_the_plan_has() {
    let reserved = played().into_iter().find(|lesson| lesson.id == "reserved").unwrap();
    let paper = |planned: &str| {
        let plan = Plan::from_text(planned);
        handout(&reserved.clone().planned(plan.lesson("reserved").unwrap())).unwrap()
    };
    let whole = paper("reserved");
    assert_eq!(whole, handout(&reserved).unwrap());
    let first = plain(&reserved.cards[0].title);
    let shorter = paper("reserved:without-1-2q");
    assert!(whole.cards.contains(&first) && !shorter.cards.contains(&first));
    // The first figure of the run is drawn on another card.
    assert!(shorter.cards.contains("<svg") && shorter.asked.contains("<svg"));
    assert!(!shorter.asked.contains("How much memory does PyTorch take from the device?"));
    // A class reads all cards at home, and an exercise that nobody solves is not printed.
    let home = paper("reserved:home:only:without-1");
    assert!(home.cards.contains(&first) && whole.asked.contains("Goal:") && !home.asked.contains("Goal:"));
}

#[test]
fn a_plan_has_a_lesson_of_the_teacher_s_own() {
    let own =
        OwnLesson { title: "Ours: week 3, part 1/2".to_owned(), minutes: 6, source: "1.abc".to_owned() };
    let own = PlannedLesson { id: "ours".to_owned(), own: Some(own), ..PlannedLesson::default() };
    let plan = Plan::from_text("training")
        .with_lesson("ours", Some(own))
        .with_lesson("tensor", PlannedLesson::of_course("tensor"));
    let text = "tensor,training,ours/6/1.abc/Ours  week 3  part 1/2";
    assert_eq!(plan.to_string(), text);
    let again = Plan::from_text(&format!("{text}:home:only"));
    let ours = again.lesson("ours").unwrap();
    assert_eq!((ours.title(), ours.minutes(), ours.is_at_home), ("Ours  week 3  part 1/2", 0, true));
    assert_eq!(plan.lesson_minutes(), 15 + 18 + 6);
    assert_eq!(Plan::from_text("unknown/6,ours/six/1.abc/Ours"), Plan::default());
}

#[test]
fn a_long_plan_has_a_break_near_half_of_its_time() {
    let plan = Plan::from_text(LECTURES[2].plan);
    assert_eq!([plan.break_after("training"), plan.break_after("tensor")], [BREAK_MINUTES, 0]);
    assert_eq!((plan.end_of("training"), plan.end_of("fragmentation")), (Some(57), Some(81 + BREAK_MINUTES)));
    for lecture in &LECTURES[..2] {
        assert_eq!(Plan::from_text(lecture.plan).breaks(), []);
    }
}

#[test]
fn a_teacher_sets_breaks_minutes_and_order() {
    let plan = Plan::from_text(LECTURES[2].plan);
    // A second break leaves the first one where it is; 0 minutes take a break away.
    let two = plan.with_break("tensor", 5);
    assert_eq!([two.break_after("tensor"), two.break_after("training")], [5, BREAK_MINUTES]);
    assert_eq!((two.minutes(), two.end_of("nvidia-smi")), (plan.minutes() + 5, Some(15 + 5 + 16)));
    let none = plan.with_break("training", 0);
    assert_eq!((none.breaks(), &Plan::from_text(&none.to_string())), (Vec::new(), &none));
    // Nothing follows the last lesson.
    assert_eq!(Plan::from_text("tensor,training:break-15").breaks(), []);
    // The minutes have the exercise among them.
    let exercise = plan.lesson("training").unwrap().clone().with_minutes(Some(30));
    assert_eq!((exercise.minutes(), exercise.clone().with_minutes(None).minutes()), (30, 26));
    assert_eq!(exercise.to_string(), "training:exercise:min-22");
    assert_eq!(Plan::from_text("tensor:min-0:break-9999").to_string(), "tensor:min-0:break-600");
    // The order stays when another lesson changes.
    let moved = Plan::from_text("tensor,training,fragmentation").with_moved("fragmentation", false);
    assert_eq!(moved.with_moved("tensor", false), moved);
    let other = moved.with_lesson("nvidia-smi", PlannedLesson::of_course("nvidia-smi"));
    let other = other.with_lesson("training", None).with_moved("tensor", true);
    assert_eq!(other.to_string(), "nvidia-smi,tensor,fragmentation");
}

/// A lesson comes after the lessons whose words it uses, in the course and in each plan.
#[test]
fn a_lesson_comes_after_those_that_it_builds_on() {
    let course: Vec<&CourseLesson> = course().collect();
    let known = |id: &str| course.iter().find(|lesson| lesson.id == id).unwrap();
    for (place, lesson) in course.iter().enumerate() {
        for needed in lesson.needs {
            assert!(
                course[..place].iter().any(|before| before.id == *needed),
                "{} needs {needed}",
                lesson.id
            );
        }
    }
    for lecture in LECTURES {
        let plan = Plan::from_text(lecture.plan);
        let ids: Vec<&str> = plan.presented().map(|planned| planned.id.as_str()).collect();
        for (place, id) in ids.iter().enumerate() {
            for needed in known(id).needs {
                assert!(ids[..place].contains(needed), "{id} needs {needed} in {ids:?}");
            }
        }
    }
}

#[test]
fn a_question_with_choices_has_three_or_more_and_says_why() {
    for lesson in played() {
        for question in lesson.cards.iter().filter_map(|card| card.question.as_ref()) {
            let name = format!("{}: {}", lesson.id, plain(&question.text));
            assert!(!question.because.is_empty(), "{name}");
            let RightAnswers::Choices(choices) = &question.answers else { continue };
            let texts: BTreeSet<String> = choices.iter().map(|choice| plain(&choice.text)).collect();
            assert!(texts.len() == choices.len() && choices.len() >= 3, "{name}: {texts:?}");
        }
    }
}

/// An example that ends in an error is about that error: the text of its card says so.
#[test]
fn a_card_on_which_a_request_fails_says_so_and_a_run_under_other_settings_passes() {
    for lesson in played() {
        for (index, card) in lesson.cards.iter().enumerate() {
            let run = &lesson.runs[card.run];
            let failed = card.steps.clone().any(|step| {
                matches!(run.recording.outcome(step), blockyard_record::StepOutcome::OutOfMemory(_))
            });
            let body: Vec<String> = card.body.iter().filter_map(prose).collect();
            let said = format!("{} {}", plain(&card.title), body.join(" "));
            let is_said = ["fails", "OutOfMemoryError", "fill the device", "ends the request"];
            let name = format!("{}, card {}", lesson.id, index + 1);
            assert!(!failed || is_said.iter().any(|word| said.contains(word)), "{name}: {said}");
            assert!(!failed || run.conf.is_empty(), "{name}: the advice does not help");
        }
    }
}

#[test]
fn the_document_of_plans_lists_every_lesson() {
    let teaching = std::fs::read_to_string(folder("docs/teaching-plans.md")).unwrap();
    for (index, file) in lessons().iter().enumerate() {
        let lesson = Lesson::parse(file.text).unwrap();
        let row = format!(
            "| `{}` | [{}](../web/lessons/{:02}-{}.md) | {} | {} |",
            lesson.id(),
            lesson.title(),
            index + 1,
            lesson.id(),
            lesson.summary(),
            lesson.minutes().unwrap()
        );
        assert!(teaching.contains(&row), "no row {row}");
    }
    let headings: Vec<&str> = teaching.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(headings, PARTS.map(|part| part.title));
    let mut hours = "";
    for (Lecture { title, plan: text, .. }, total) in LECTURES.iter().zip([45, 90, 120]) {
        let plan = Plan::from_text(text);
        assert_eq!((plan.minutes(), plan.to_string().as_str()), (total, *text), "{title}");
        let heading = format!("## {title}\n");
        hours = teaching.split(&heading).nth(1).and_then(|rest| rest.split("## ").next()).unwrap();
        let minutes = |line: &str| line.strip_prefix("| ")?.split(" |").next()?.parse::<u32>().ok();
        assert_eq!(hours.lines().filter_map(minutes).sum::<u32>(), total, "{title}");
        for planned in plan.presented() {
            let has_exercise = planned.exercise == ExerciseUse::InClass;
            let exercise = if has_exercise { " with its exercise" } else { "" };
            let (id, minutes) = (&planned.id, planned.minutes());
            let row = format!("| {minutes} | `{id}`{exercise} | {} |", class_task(id));
            assert!(hours.contains(&row), "no row {row}");
        }
        let home = plan.homework_sentence().unwrap();
        let said = hours.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&home), "{home}");
    }
    for CourseLesson { id, .. } in course() {
        assert!(hours.contains(&format!("`{id}`")), "the course says nothing of {id}");
    }
}
