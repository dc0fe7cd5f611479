//! Damaged recordings: whatever is changed in a recording, opening it ends with an answer.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use blockyard_device::VirtualDevice;
use blockyard_pytorch::{Meta, OperationKind, log, memory_summary, stat_values};
use blockyard_record::Bytes;
use blockyard_replay::{RunSettings, Runner, job};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::Workload;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use super::{fixture, gunzip, open};

/// Texts to damage: operations with all their parts, and traces of programs.
fn originals() -> &'static [String] {
    static ORIGINALS: OnceLock<Vec<String>> = OnceLock::new();
    ORIGINALS.get_or_init(|| {
        let programs = ["gnn_random", "gnn_random.expandable_segments", "multistream"];
        let mut texts = vec![operations(""), operations("expandable_segments:True")];
        texts.extend(programs.map(program));
        texts
    })
}

/// A recording of every kind of operation, written as the command writes it.
fn operations(conf: &str) -> String {
    let text = "stream side
        a = alloc 1000; b = alloc 3 MiB; c = alloc 11 MiB on side; d = alloc 0; record_stream b side; free a
        e = alloc 30 MiB; free b; set_fraction 0.5; f = alloc 40 MiB; free e; empty_cache; reset_peak
        g = alloc 5 MiB; free c; reset_accumulated; free g; free d; set_fraction 1; h = alloc 70 MiB";
    let workload = Workload::parse(text).unwrap();
    let meta = Meta { conf: conf.to_owned(), total_memory: Bytes::mib(64), ..Meta::default() };
    let settings = RunSettings {
        title: String::new(),
        config: AllocatorConfig::parse(conf, Release::default()).unwrap(),
        capacity: meta.total_memory,
    };
    let mut runner = Runner::new(VirtualDevice::new(settings.capacity), &settings, &workload).with_trace();
    let all = |values: &[i64]| values.iter().copied().enumerate().collect::<Vec<_>>();
    let mut lines = vec![
        log::meta(&meta),
        log::operation(&OperationKind::Start, None, &all(&stat_values(&runner.stats()))),
    ];
    for request in workload.requests() {
        let outcome = runner.step().unwrap().unwrap();
        let kind = OperationKind::of(request).unwrap();
        lines.push(log::operation(
            &kind,
            runner.answer(&outcome).as_ref(),
            &all(&stat_values(&runner.stats())),
        ));
    }
    lines.push(log::operation(&OperationKind::End, None, &[]));
    lines.push(log::trace(runner.trace()));
    lines.push(log::segments(&runner.snapshot()));
    lines.push(log::memory_summary(&memory_summary(&runner.stats(), 0, false)));
    lines.join("\n")
}

/// The first entries of a program's trace.
fn program(name: &str) -> String {
    let text = gunzip(&fixture(&format!("programs/{name}")));
    let (meta, rest) = text.split_once('\n').unwrap();
    let entries: Vec<&str> = rest.split_inclusive(']').take(240).collect();
    format!("{meta}\n{}]}}", entries.concat())
}

#[test]
fn the_originals_are_identical() {
    for text in originals() {
        let comparison = open(text.as_bytes()).unwrap().opened.unwrap().comparison.unwrap();
        assert!(comparison.is_identical(), "{comparison:?}");
    }
}

#[derive(Clone, Debug)]
enum Damage {
    FlipBit(Index, u8),
    Insert(Index, Vec<u8>),
    Delete(Index, usize),
    Duplicate(Index, usize),
    DeleteLine(Index),
    DuplicateLine(Index),
    SwapLines(Index, Index),
    DeleteItem(Index),
    DuplicateItem(Index),
    ReplaceNumber(Index, &'static str),
    CopyNumber(Index, Index),
}

fn damages() -> impl Strategy<Value = Damage> {
    let numbers =
        ["0", "1", "-1", "0.5", "511", "1048577", "1152921504606846976", "18446744073709551615", "1e400"];
    prop_oneof![
        1 => (any::<Index>(), 0..8_u8).prop_map(|(place, bit)| Damage::FlipBit(place, bit)),
        1 => (any::<Index>(), vec(any::<u8>(), 1..4)).prop_map(|(place, bytes)| Damage::Insert(place, bytes)),
        1 => (any::<Index>(), 1..60_usize).prop_map(|(place, length)| Damage::Delete(place, length)),
        1 => (any::<Index>(), 1..60_usize).prop_map(|(place, length)| Damage::Duplicate(place, length)),
        1 => any::<Index>().prop_map(Damage::DeleteLine),
        1 => any::<Index>().prop_map(Damage::DuplicateLine),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Damage::SwapLines(one, other)),
        3 => any::<Index>().prop_map(Damage::DeleteItem),
        3 => any::<Index>().prop_map(Damage::DuplicateItem),
        6 => (any::<Index>(), select(numbers.to_vec())).prop_map(|(place, number)| Damage::ReplaceNumber(place, number)),
        6 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::CopyNumber(from, to)),
    ]
}

fn damage(text: &mut Vec<u8>, damage: &Damage) {
    let length = text.len();
    if length == 0 {
        return;
    }
    match damage {
        Damage::FlipBit(place, bit) => text[place.index(length)] ^= 1 << bit,
        Damage::Insert(place, bytes) => {
            let place = place.index(length);
            text.splice(place..place, bytes.iter().copied());
        }
        Damage::Delete(place, count) => {
            let place = place.index(length);
            text.drain(place..(place + count).min(length));
        }
        Damage::Duplicate(place, count) => {
            let place = place.index(length);
            let copy = text[place..(place + count).min(length)].to_vec();
            text.splice(place..place, copy);
        }
        Damage::DeleteLine(place) => {
            on_pieces(text, b'\n', |lines| drop(lines.remove(place.index(lines.len()))));
        }
        Damage::DuplicateLine(place) => on_pieces(text, b'\n', |lines| {
            let place = place.index(lines.len());
            lines.insert(place, lines[place].clone());
        }),
        Damage::SwapLines(one, other) => on_pieces(text, b'\n', |lines| {
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            lines.swap(one, other);
        }),
        // Entries of a trace and segments end with a bracket.
        Damage::DeleteItem(place) => {
            on_pieces(text, b']', |items| drop(items.remove(place.index(items.len()))));
        }
        Damage::DuplicateItem(place) => on_pieces(text, b']', |items| {
            let place = place.index(items.len());
            items.insert(place, items[place].clone());
        }),
        Damage::ReplaceNumber(place, number) => {
            let numbers = numbers(text);
            if !numbers.is_empty() {
                text.splice(numbers[place.index(numbers.len())].clone(), number.bytes());
            }
        }
        Damage::CopyNumber(from, to) => {
            let numbers = numbers(text);
            if !numbers.is_empty() {
                let copy = text[numbers[from.index(numbers.len())].clone()].to_vec();
                text.splice(numbers[to.index(numbers.len())].clone(), copy);
            }
        }
    }
}

fn on_pieces(text: &mut Vec<u8>, end: u8, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut pieces: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == end).map(<[u8]>::to_vec).collect();
    change(&mut pieces);
    *text = pieces.concat();
}

/// The places of the runs of digits.
fn numbers(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for (place, _) in text.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit()) {
        match found.last_mut() {
            Some(last) if last.end == place => last.end += 1,
            _ => found.push(place..place + 1),
        }
    }
    found
}

proptest! {
    #![proptest_config(Config { cases: 512, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_damaged_recording_comes_to_an_answer(original in select(originals().to_vec()), damages in vec(damages(), 1..5)) {
        let mut bytes = original.into_bytes();
        for one in &damages {
            damage(&mut bytes, one);
        }
        check_answer(&bytes);
    }

    #[test]
    fn damaged_gzip_comes_to_an_answer(place in any::<Index>(), bit in 0..8_u8) {
        static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
        let mut bytes = BYTES.get_or_init(|| super::gzip(originals()[0].as_bytes())).clone();
        damage(&mut bytes, &Damage::FlipBit(place, bit));
        check_answer(&bytes);
    }

    #[test]
    fn random_bytes_come_to_an_error(bytes in vec(any::<u8>(), 0..256)) {
        prop_assert!(open(bytes).is_err());
    }
}

#[test]
fn damage_reaches_the_allocator_and_every_kind_of_error() {
    let mut runner = TestRunner::deterministic();
    let strategy = (select(originals().to_vec()), vec(damages(), 1..5));
    let mut tally: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..1500 {
        let (original, damages) = strategy.new_tree(&mut runner).unwrap().current();
        let mut bytes = original.into_bytes();
        for one in &damages {
            damage(&mut bytes, one);
        }
        let answer = match open(bytes) {
            Ok(product) if product.opened.as_ref().unwrap().comparison.as_ref().unwrap().is_identical() => {
                "identical"
            }
            Ok(_) => "different",
            Err(error) => {
                let text = error.to_string();
                let kinds = [
                    ": column ",
                    "begins late",
                    "is live here",
                    "does not fit",
                    "another kind",
                    "not text",
                    "settings",
                ];
                // Damage at the beginning can make a file look like a snapshot's JSON.
                let text = text.replace("not a memory snapshot", "another kind");
                kinds.into_iter().find(|kind| text.contains(kind)).unwrap_or("other error")
            }
        };
        *tally.entry(answer).or_default() += 1;
    }
    println!("{tally:#?}");
    let wanted = [
        ("identical", 5),
        ("different", 150),
        (": column ", 150),
        ("begins late", 30),
        ("is live here", 15),
        ("another kind", 10),
        ("not text", 30),
    ];
    for (answer, least) in wanted {
        let found = tally.get(answer).copied().unwrap_or(0);
        assert!(found >= least, "{answer}: {found} times, wanted {least}");
    }
}

fn check_answer(bytes: &[u8]) {
    match open(bytes) {
        Ok(product) => {
            let recording = &product.recording;
            let end = recording.state_at(recording.event_count()).unwrap();
            assert_eq!(end.breakdown().capacity(), recording.capacity());
            let again = job::Job::Open { name: String::new(), bytes: bytes.to_vec(), device: None };
            let again = job::perform(&again, &mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(again.recording.to_bytes().unwrap(), recording.to_bytes().unwrap());
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("it.jsonl: ") && text.len() > "it.jsonl: ".len(), "{text}");
        }
    }
}
