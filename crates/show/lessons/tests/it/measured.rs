//! The lessons about training are compared with the output of PyTorch on a GPU, to the byte.

use std::collections::BTreeMap;

use blockyard_lessons::PlayedLesson;
use blockyard_record::Bytes;

use crate::course::{folder, played};

/// Lesson, card (from 1), file of `tests/fixtures/measured`, place in the file, perhaps with the only number
/// to compare.
const PLACES: [(&str, usize, &str, &str); 18] = [
    ("nvidia-smi", 1, "nvidia_smi", "context"),
    ("nvidia-smi", 2, "nvidia_smi", "tensor"),
    ("nvidia-smi", 3, "nvidia_smi", "kernel"),
    ("nvidia-smi", 4, "nvidia_smi", "product"),
    ("nvidia-smi", 5, "nvidia_smi", "deleted"),
    ("nvidia-smi", 6, "nvidia_smi", "emptied"),
    ("workspaces", 1, "workspaces", "tensor"),
    ("workspaces", 2, "workspaces", "product"),
    ("workspaces", 3, "workspaces", "second product"),
    ("workspaces", 4, "workspaces", "on another stream"),
    ("workspaces", 5, "workspaces", "backward"),
    ("workspaces", 6, "workspaces", "linear with bias"),
    ("ranks", 1, "ranks_zero", "whole"),
    ("ranks", 2, "ranks_zero", "model"),
    ("ranks", 3, "ranks_zero", "backward"),
    ("ranks", 4, "ranks_zero", "step"),
    // Only allocated bytes are compared: the lesson leaves out the intermediate tensors of the iteration.
    ("ranks", 5, "ranks_fsdp", "sharded: allocated"),
    ("ranks", 6, "ranks_fsdp", "forward: allocated"),
];

/// The numbers that a file has at a place, by their words.
fn printed(file: &str, place: &str) -> BTreeMap<String, u64> {
    let path = folder("tests/fixtures/measured").join(format!("{file}.txt"));
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(place)?.strip_prefix(": "));
    let words: Vec<&str> = line.unwrap_or_else(|| panic!("{file} has no place {place}")).split(' ').collect();
    words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect()
}

/// The numbers of the lesson's run at the end of a card, by the same words.
fn of_run(lesson: &PlayedLesson, card: usize) -> BTreeMap<String, u64> {
    let card = &lesson.cards[card - 1];
    let recording = &lesson.runs[card.run].recording;
    let last = card.steps.end.checked_sub(1).and_then(|step| recording.step(step));
    let state = recording.state_at(last.map_or(0, |step| step.end)).unwrap();
    let breakdown = state.breakdown();
    let peak = u64::try_from(state.stats().allocated_bytes.all.peak).unwrap();
    let numbers = [
        ("allocated", breakdown.allocated().get()),
        ("reserved", breakdown.reserved().get()),
        ("peak", peak),
    ];
    numbers.into_iter().map(|(word, number)| (word.to_owned(), number)).collect()
}

#[test]
fn the_runs_of_lessons_are_what_pytorch_printed() {
    let lessons = played();
    for (id, card, file, place) in PLACES {
        let lesson = lessons.iter().find(|lesson| lesson.id == id).unwrap();
        let (place, only) = place.split_once(": ").map_or((place, None), |(place, only)| (place, Some(only)));
        let (printed, run) = (printed(file, place), of_run(lesson, card));
        for (word, number) in &run {
            // `nvidia_smi.txt` has no peaks.
            if only.is_none_or(|only| only == word) && (word != "peak" || printed.contains_key("peak")) {
                assert_eq!(printed.get(word), Some(number), "{id}, card {card}: {word} in {file}, {place}");
            }
        }
    }
}

/// The numbers in the front matter, which no run can give.
#[test]
fn measured_sizes_are_those_of_nvidia_smi() {
    let lessons = played();
    let measured = |id: &str, name: &str| {
        let lesson = lessons.iter().find(|lesson| lesson.id == id).unwrap();
        let found = lesson.measured.iter().find(|measured| measured.name == name);
        found.unwrap_or_else(|| panic!("{id} has no {name}")).size
    };
    // All bytes in use, less the bytes that PyTorch has reserved.
    let outside = |place| {
        let printed = printed("nvidia_smi", place);
        Bytes::mib(printed["nvidia-smi"]).get() - printed["reserved"]
    };
    let of = |name| measured("nvidia-smi", name).get();
    // The context of the process: the memory of the process in the message, less the bytes that PyTorch has
    // reserved. Numbers of the whole GPU include some MiB of the driver, so `nvidia_smi.txt` is used only for
    // the bytes that each step adds.
    let message = std::fs::read_to_string(folder("tests/fixtures/measured/oom.txt")).unwrap();
    let mib_after = |words: &str| -> u64 {
        let rest = message.split_once(words).unwrap_or_else(|| panic!("no {words}")).1;
        rest.split_once(".00 MiB").unwrap().0.parse().unwrap()
    };
    let reserved = mib_after("Of the allocated memory ") + mib_after("is allocated by PyTorch, and ");
    assert_eq!(of("context"), Bytes::mib(mib_after("this process has ") - reserved).get());
    assert_eq!(outside("tensor"), outside("context"));
    assert_eq!(of("kernels"), outside("kernel") - outside("tensor"));
    assert_eq!(of("cuBLAS"), outside("product") - outside("kernel"));
    assert_eq!(of("convolution"), outside("convolution") - outside("emptied"));
    assert_eq!(of("svd"), outside("svd") - outside("attention"));
    let small = printed("workspaces.16_8", "product")["allocated"]
        - printed("workspaces.16_8", "tensor")["allocated"]
        - Bytes::mib(4).get();
    assert_eq!(measured("workspaces", "smallest").get(), small);
    assert_eq!(measured("what-to-change", "context"), measured("nvidia-smi", "context"));
    let process = measured("what-to-change", "process").get() >> 20;
    let sentence = format!("Including non-PyTorch memory, this process has {process}.00 MiB memory in use.");
    assert!(message.contains(&sentence), "{message}");
    let lesson = lessons.iter().find(|lesson| lesson.id == "what-to-change").unwrap();
    assert!(format!("{:?}", lesson.cards).contains(&sentence));
}

#[test]
fn every_measured_size_names_its_source() {
    for lesson in played() {
        for measured in &lesson.measured {
            let file = measured.source.split(',').next().unwrap();
            let is_here = folder(file).is_file();
            assert!(is_here || file.starts_with("PyTorch 2.11"), "{}: {}", lesson.id, measured.source);
        }
    }
}

#[test]
fn a_value_may_add_a_measured_size_and_a_wrong_one_has_its_place() {
    let lesson = |measured: &str, sentence: &str| {
        let text = crate::language::text(&format!("## One\n{sentence}\n```workload\na = alloc 3 MiB\n```\n"));
        let text = text.replacen("capacity:", &format!("{measured}\ncapacity:"), 1);
        blockyard_lessons::Lesson::parse(&text).and_then(|lesson| lesson.play())
    };
    let context = "measured: context = 100 MiB, a file";
    let played =
        lesson(context, "{measured context + reserved}, {exact measured context + size a}.").unwrap();
    let blockyard_lessons::TextBlock::Paragraph(body) = &played.cards[0].body[0] else { panic!() };
    assert_eq!(blockyard_lessons::plain(body), "120 MiB, 108,003,328 bytes.");
    assert_eq!(played.measured[0].source, "a file");
    let failures = [
        (context, "{measured other}.", "there is no line \"measured: other = SIZE, SOURCE\""),
        ("measured: context = 100 MiB", "None.", "expected NAME = SIZE, SOURCE"),
        ("measured: context = much, a file", "None.", "expected a size"),
        (context, "{measured context + oom at \"Nowhere\"}.", "no step has the label"),
    ];
    for (measured, sentence, expected) in failures {
        let error = lesson(measured, sentence).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
