use std::fmt::Write as _;

use blockyard_figure::{
    BreakdownClass, Series, TargetId, block_facts, breakdown_text, describe_step, describe_target, map_text,
    timeline_text,
};
use blockyard_record::{Bytes, MemoryState, Recording};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::program::{Program, SIDE, ops, random, story};

fn described(recording: &Recording) -> String {
    let mut text = String::new();
    for step in 0..recording.step_count() {
        let words = describe_step(recording, step);
        writeln!(text, "{}: {}", words.title, words.sentence).unwrap();
    }
    text
}

fn check(program: Program, expected: &Expect) {
    expected.assert_eq(&described(&program.recording()));
}

#[test]
fn every_step_of_a_story_is_reported() {
    check(
        story(),
        &expect![[r#"
            weights = alloc 12 MiB: takes a new 12 MiB segment from the device, all of it
            bias = alloc 3.91 KiB: 4,000 bytes are rounded up to 4,096; takes a new 2 MiB segment from the device and splits 4 KiB off; 1.99 MiB stay cached
            x = alloc 2.86 MiB: 3,000,000 bytes are rounded up to 3,000,320; takes a new 20 MiB segment from the device and splits 2.86 MiB off; 17.14 MiB stay cached
            hidden = alloc 5 MiB: reuses a cached block of 17.14 MiB in a 20 MiB segment and splits 5 MiB off; 12.14 MiB stay cached
            copy = alloc 3 MiB on side: takes a new 20 MiB segment from the device for stream side and splits 3 MiB off; 17 MiB stay cached
            record_stream hidden side: tensor hidden is used on stream side too, so its free will wait for that stream
            free x: the 2.86 MiB of x are cached now
            free hidden: 5 MiB wait for stream side before they can be used again
            advance: 5 MiB that waited for stream side can be used again and merge with the cached neighbors of 2.86 MiB and 12.14 MiB: one cached block of 20 MiB
            grad = alloc 12 MiB: reuses a cached 20 MiB segment and splits 12 MiB off; 8 MiB stay cached
            mask = alloc 600 KiB: reuses a cached block of 1.99 MiB in a 2 MiB segment and splits 600 KiB off; 1.41 MiB stay cached
            free grad: its 12 MiB merge with a cached neighbor of 8 MiB: one cached block of 20 MiB; the 20 MiB segment is wholly cached now
            big = alloc 60 MiB: the device refuses a new 60 MiB segment, it has 42 MiB free; waits until the GPU has finished its work; releases 1 cached segment (20 MiB) to the device; tries again; takes a new 60 MiB segment from the device, all of it
            free copy: its 3 MiB merge with a cached neighbor of 17 MiB: one cached block of 20 MiB; the 20 MiB segment is wholly cached now
            empty_cache: releases 1 cached segment (20 MiB) to the device; 1.41 MiB stay cached beside blocks that are in use
            reset_peak: every peak is set to its present value
        "#]],
    );
}

#[test]
fn a_failure_names_the_largest_block_that_does_not_do() {
    let mut program = Program::new(Bytes::mib(64));
    for name in ["a", "b", "c", "d", "e", "f"] {
        program.alloc(name, Bytes::mib(8));
    }
    program.free("a").free("c").free("e").alloc("big", Bytes::mib(12));
    check(
        program,
        &expect![[r#"
            a = alloc 8 MiB: takes a new 20 MiB segment from the device and splits 8 MiB off; 12 MiB stay cached
            b = alloc 8 MiB: reuses a cached block of 12 MiB in a 20 MiB segment and splits 8 MiB off; 4 MiB stay cached
            c = alloc 8 MiB: takes a new 20 MiB segment from the device and splits 8 MiB off; 12 MiB stay cached
            d = alloc 8 MiB: reuses a cached block of 12 MiB in a 20 MiB segment and splits 8 MiB off; 4 MiB stay cached
            e = alloc 8 MiB: takes a new 20 MiB segment from the device and splits 8 MiB off; 12 MiB stay cached
            f = alloc 8 MiB: reuses a cached block of 12 MiB in a 20 MiB segment and splits 8 MiB off; 4 MiB stay cached
            free a: the 8 MiB of a are cached now
            free c: the 8 MiB of c are cached now
            free e: the 8 MiB of e are cached now
            alloc 12 MiB: the device refuses a new 12 MiB segment, it has 4 MiB free; waits until the GPU has finished its work; tries again; out of memory: 12 MiB need a new segment, and the device has 4 MiB free; 36 MiB are cached, but the largest cached block for it is 8 MiB
        "#]],
    );
}

#[test]
fn a_failure_names_what_other_streams_hold() {
    let mut program = Program::new(Bytes::mib(32));
    program
        .alloc_on("a", Bytes::mib(2), SIDE)
        .alloc("b", Bytes::mib(11))
        .free("b")
        .alloc("c", Bytes::mib(14));
    check(
        program,
        &expect![[r#"
            a = alloc 2 MiB on side: takes a new 20 MiB segment from the device for stream side and splits 2 MiB off; 18 MiB stay cached
            b = alloc 11 MiB: takes a new 12 MiB segment from the device, all of it: 1 MiB more than asked for, not enough to split off
            free b: the 12 MiB of b are cached now; the 12 MiB segment is wholly cached now
            alloc 14 MiB: the device refuses a new 14 MiB segment, it has 0 B free; waits until the GPU has finished its work; releases 1 cached segment (12 MiB) to the device; tries again; out of memory: 14 MiB need a new segment, and the device has 12 MiB free; 18 MiB are cached, but none of that is in the large pool of the default stream
        "#]],
    );
}

#[test]
fn a_failure_by_the_limit_says_so() {
    let mut program = Program::new(Bytes::gib(1));
    program.set_limit(Bytes::mib(256)).alloc("a", Bytes::mib(200)).alloc("b", Bytes::mib(60));
    check(
        program,
        &expect![[r#"
            set_fraction 0.25: at most 256 MiB of 1 GiB may be reserved from now on
            a = alloc 200 MiB: takes a new 200 MiB segment from the device, all of it
            alloc 60 MiB: a new 60 MiB segment would go beyond the limit of 256 MiB; waits until the GPU has finished its work; tries again; out of memory: 60 MiB need a new segment, and the limit of 256 MiB leaves 56 MiB; nothing is cached
        "#]],
    );
}

#[test]
fn blocks_that_come_back_late_are_reported_with_their_neighbors() {
    let mut program = Program::new(Bytes::mib(64));
    program.alloc("a", Bytes::mib(3)).alloc("b", Bytes::mib(4)).alloc("c", Bytes::mib(5));
    program
        .record_stream("b", SIDE)
        .free("a")
        .free("c")
        .free("b")
        .advance()
        .advance()
        .empty_cache()
        .empty_cache();
    check(
        program,
        &expect![[r#"
            a = alloc 3 MiB: takes a new 20 MiB segment from the device and splits 3 MiB off; 17 MiB stay cached
            b = alloc 4 MiB: reuses a cached block of 17 MiB in a 20 MiB segment and splits 4 MiB off; 13 MiB stay cached
            c = alloc 5 MiB: reuses a cached block of 13 MiB in a 20 MiB segment and splits 5 MiB off; 8 MiB stay cached
            record_stream b side: tensor b is used on stream side too, so its free will wait for that stream
            free a: the 3 MiB of a are cached now
            free c: its 5 MiB merge with a cached neighbor of 8 MiB: one cached block of 13 MiB
            free b: 4 MiB wait for stream side before they can be used again
            advance: 4 MiB that waited for stream side can be used again and merge with the cached neighbors of 3 MiB and 13 MiB: one cached block of 20 MiB
            nothing to do: nothing changed
            empty_cache: releases 1 cached segment (20 MiB) to the device
            empty_cache: nothing is reserved, so nothing is released
        "#]],
    );
}

#[test]
fn requests_that_did_not_reach_the_allocator_are_reported() {
    let mut program = Program::new(Bytes::mib(64));
    program.refused("a is not allocated").done();
    check(
        program,
        &expect![[r#"
        refused request: refused: a is not allocated
        nothing to do: nothing changed
    "#]],
    );
}

#[test]
fn the_events_of_a_hard_won_allocation() {
    let words = describe_step(&story().recording(), 12);
    expect![[r#"
        the device refuses a segment of 60 MiB: it has 42 MiB free
        the allocator waits until all streams are done
        the segment of 20 MiB at 0x7f0000e00000 is released to the device
        the second attempt begins
        the device gives a segment of 60 MiB at 0x7f0003600000, for the large pool and the default stream
        block #10 of 60 MiB is allocated as big"#]]
    .assert_eq(&words.events.join("\n"));
}

fn after(recording: &Recording, step: usize) -> MemoryState {
    recording.state_at(recording.step(step).unwrap().end).unwrap()
}

#[test]
fn all_facts_of_a_pending_block() {
    let program = story();
    let recording = program.recording();
    let state = after(&recording, 7);
    let block = state.snapshot().segments[2].blocks[1].id;
    let facts = block_facts(&recording, &state, block).unwrap();
    let text = facts.iter().fold(String::new(), |text, (label, value)| format!("{text}{label}: {value}\n"));
    expect![[r#"
        name: hidden
        state: pending
        requested: 5 MiB (5,242,880 bytes)
        size: 5 MiB (5,242,880 bytes)
        rounding: 0 bytes
        address: 0x7f00010dc800
        offset in segment: 2.86 MiB (3,000,320 bytes)
        segment: 20 MiB (20,971,520 bytes) at 0x7f0000e00000, large pool
        stream: default
        waits for: side
        allocated by request: 4
    "#]]
    .assert_eq(&text);
    assert_eq!(block_facts(&recording, &state, blockyard_record::BlockId::new(999)), None);
}

#[test]
fn targets_are_reported_in_a_sentence() {
    let recording = story().recording();
    let state = after(&recording, 7);
    let segment = &state.snapshot().segments[2];
    let targets = [
        TargetId::Block(segment.blocks[0].id),
        TargetId::Block(segment.blocks[1].id),
        TargetId::Segment(segment.id),
        TargetId::Class(BreakdownClass::Pending),
        TargetId::Label(2),
        TargetId::PeakAllocated,
        TargetId::PeakReserved,
    ];
    let mut text = String::new();
    for target in targets {
        writeln!(text, "{}", describe_target(target, &state, &recording).unwrap()).unwrap();
    }
    expect![[r#"
        block #4, cached: 2.86 MiB
        stream: default
        hidden, pending: 5 MiB
        requested: 5 MiB (5,242,880 bytes)
        stream: default
        waits for: side
        allocated by request: 4
        segment of 20 MiB at 0x7f0000e00000, large pool, the default stream: 0 B allocated in 3 blocks
        pending: 5 MiB, 9.3% of reserved. Bytes given back by the program that wait until another stream is done with them.
        forward: from request 3 on
        peak allocated: at most 22.87 MiB were in use at once since the peaks were last reset
        peak reserved: at most 54 MiB were held at once since the peaks were last reset
    "#]].assert_eq(&text);
    assert_eq!(describe_target(TargetId::Limit, &state, &recording), None);
    assert_eq!(describe_target(TargetId::FailedStep(3), &state, &recording), None);
}

#[test]
fn the_figures_as_text() {
    let mut program = story();
    program.alloc("too much", Bytes::gib(1));
    let recording = program.recording();
    let state = after(&recording, 7);
    let text = format!(
        "{}\n\n{}\n{}\n",
        breakdown_text(&state, &recording),
        map_text(&state, &recording),
        timeline_text(&Series::new(&recording), &recording)
    );
    expect![[r#"
        Of 96 MiB: requested 15 MiB (16%), rounding 96 B (<0.1%), pending 5 MiB (5.2%), cached 33.99 MiB (35%), free 42 MiB (44%). Allocated 15 MiB (peak 22.87 MiB), reserved 54 MiB (peak 54 MiB).

        L default     12 MiB [##########################weights###########################]
        S default      2 MiB [#|..........................................................]
        L default     20 MiB [........|~~~~hidden~~~~~|...................................]
        L side        20 MiB [##copy###|..................................................]

        17 requests. At the end 72.59 MiB are allocated and 74 MiB reserved, of 96 MiB. Most allocated: 75.59 MiB after request 13. Most reserved: 94 MiB after request 13. Labels: load from request 1, forward from request 3, backward from request 10. Out of memory 1 time: at request 17.
    "#]].assert_eq(&text);
}

#[test]
fn a_crowded_segment_as_text_shows_what_most_bytes_are() {
    let mut program = Program::new(Bytes::mib(64));
    program.full_segment(Bytes::mib(2), Bytes::kib(4));
    for index in 0..256 {
        program.free(&format!("t{index}"));
    }
    for index in (256..512).step_by(2) {
        program.free(&format!("t{index}"));
    }
    let state = program.state().clone();
    expect![[r#"
        S default      2 MiB [................................##..##.##..##..##..##.##..##] 256 blocks
    "#]]
    .assert_eq(&map_text(&state, &program.recording()));
}

#[test]
fn nothing_is_reported_too() {
    let recording = Program::new(Bytes::gib(1)).recording();
    let state = recording.initial_state();
    assert_eq!(describe_step(&recording, 0).title, "");
    assert_eq!(map_text(&state, &recording), "no segments\n");
    assert_eq!(timeline_text(&Series::new(&recording), &recording), "No requests.");
}

proptest! {
    #[test]
    fn every_step_has_a_title_and_a_sentence_and_a_line_an_event(ops in ops(80)) {
        let recording = random(&ops).recording();
        for step in 0..recording.step_count() {
            let words = describe_step(&recording, step);
            let range = recording.step(step).unwrap();
            prop_assert!(!words.title.is_empty() && !words.sentence.is_empty(), "{:?}", words);
            prop_assert_eq!(words.events.len(), range.end - range.start);
            prop_assert!(!words.sentence.contains("; ;"), "{:?}", words);
        }
    }
}

proptest! {
    #[test]
    fn every_byte_of_the_device_is_in_one_class(ops in ops(60)) {
        let recording = random(&ops).recording();
        for step in 0..recording.step_count() {
            let breakdown = after(&recording, step).breakdown();
            let sum: Bytes = BreakdownClass::ALL.iter().map(|class| class.bytes(&breakdown)).sum();
            prop_assert_eq!(sum, recording.capacity());
            prop_assert_eq!(Some(breakdown), recording.breakdown_after(step));
        }
    }
}
