//! Streams: memory that streams do not share, and frees that wait.

use expect_test::expect;

use crate::picture::{DEVICE, check, values};

const PENDING: &str = "stream side; a = alloc 1024; record_stream a default; record_stream a side; free a;";

#[test]
fn a_block_that_another_stream_used_is_pending_after_its_free() {
    let played = check(
        PENDING,
        &expect![[r#"
        S1 small default: 0..1024 a pending (1024) | 1024..2097152 cached (0)
        allocation 0/1/1/1
        segment 1/1/1/0
        active 1/1/1/0
        inactive_split 1/1/1/0
        allocated_bytes 0/1024/1024/1024
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 1024/1024/1024/0
        inactive_split_bytes 2096128/2096128/2096128/0
        requested_bytes 1024/1024/1024/0
        num_device_alloc 1
    "#]],
    );
    let stats = &played.stats;
    assert_eq!(stats.allocation.all.current, 0);
    assert_eq!(values(stats.allocated_bytes.all), [0, 1024, 1024, 1024]);
    assert_eq!((stats.active.all.current, stats.active_bytes.all.current), (1, 1024));
    assert_eq!(stats.requested_bytes.all.current, 1024);
    let block = &played.segments[0].blocks[0];
    assert_eq!(block.state.name(), "active_pending_free");
    assert_eq!(played.trace_lines().last().unwrap(), "free_requested S1 1024");
}

#[test]
fn other_requests_go_behind_a_pending_block() {
    check(
        &format!("{PENDING} b = alloc 1024; c = alloc 512"),
        &expect![[r#"
        S1 small default: 0..1024 a pending (1024) | 1024..2048 b (1024) | 2048..2560 c (512) | 2560..2097152 cached (0)
        allocation 2/2/3/1
        segment 1/1/1/0
        active 3/3/3/0
        inactive_split 1/1/1/0
        allocated_bytes 1536/1536/2560/1024
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 2560/2560/2560/0
        inactive_split_bytes 2094592/2096128/2096128/1536
        requested_bytes 2560/2560/2560/0
        num_device_alloc 1
    "#]],
    );
}

#[test]
fn the_next_allocation_completes_the_free_and_uses_the_place() {
    let text = format!("{PENDING} b = alloc 1024; c = alloc 512; advance side; d = alloc 1024");
    let played = check(
        &text,
        &expect![[r#"
        S1 small default: 0..1024 d (1024) | 1024..2048 b (1024) | 2048..2560 c (512) | 2560..2097152 cached (0)
        allocation 3/3/4/1
        segment 1/1/1/0
        active 3/3/4/1
        inactive_split 1/2/2/1
        allocated_bytes 2560/2560/3584/1024
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 2560/2560/3584/1024
        inactive_split_bytes 2094592/2096128/2097152/2560
        requested_bytes 2560/2560/3584/1024
        num_device_alloc 1
    "#]],
    );
    let trace = played.trace_lines();
    assert_eq!(trace[trace.len() - 2..], ["free_completed S1 1024", "alloc S1 1024"]);
}

#[test]
fn work_that_is_done_is_noticed_by_the_next_allocation_and_not_before() {
    let played = DEVICE.play(&format!("{PENDING} advance side; b = alloc 0"));
    assert_eq!(played.stats.active.all.current, 1, "zero bytes look at nothing");
}

#[test]
fn empty_cache_waits_for_pending_frees() {
    let played = check(
        &format!("{PENDING} empty_cache"),
        &expect![[r#"
        allocation 0/1/1/1
        segment 0/1/1/1
        active 0/1/1/1
        inactive_split 0/1/1/1
        allocated_bytes 0/1024/1024/1024
        reserved_bytes 0/2097152/2097152/2097152
        active_bytes 0/1024/1024/1024
        inactive_split_bytes 0/2096128/2096128/2096128
        requested_bytes 0/1024/1024/1024
        num_sync_all_streams 1, num_device_alloc 1, num_device_free 1
    "#]],
    );
    assert_eq!(played.stats.num_sync_all_streams, 1);
    assert!(played.segments.is_empty());
    let trace = played.trace_lines();
    assert_eq!(trace[trace.len() - 2..], ["free_completed S1 1024", "segment_free S1 2097152"]);
}

#[test]
fn recording_the_stream_of_the_allocation_changes_nothing() {
    let text = "stream side; a = alloc 1024 on side; record_stream a side; free a";
    let played = check(
        text,
        &expect![[r#"
        S1 small side: 0..2097152 cached (1024)
        allocation 0/1/1/1
        segment 1/1/1/0
        active 0/1/1/1
        inactive_split 0/1/1/1
        allocated_bytes 0/1024/1024/1024
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 0/1024/1024/1024
        inactive_split_bytes 0/2096128/2096128/2096128
        requested_bytes 0/1024/1024/1024
        num_device_alloc 1
    "#]],
    );
    assert_eq!(played.trace_lines().last().unwrap(), "free_completed S1 1024");
    assert_eq!(played.stats.active.all.current, 0);
}

#[test]
fn a_free_waits_for_every_stream_that_was_recorded() {
    let text = "stream one, two; a = alloc 1024; record_stream a one; record_stream a two; free a; advance one; b = alloc 512";
    let pending = DEVICE.play(text);
    assert_eq!(pending.stats.active.all.current, 2);
    let done = DEVICE.play(&format!("{text}; advance two; c = alloc 512"));
    assert_eq!(done.stats.active.all.current, 2);
}

#[test]
fn streams_do_not_share_cached_blocks() {
    let played = check(
        "stream side; a = alloc 12 MiB; free a; b = alloc 12 MiB on side",
        &expect![[r#"
        S1 large default: 0..12582912 cached (12582912)
        S2 large side: 0..12582912 b (12582912)
        allocation 1/1/2/1
        segment 2/2/2/0
        active 1/1/2/1
        allocated_bytes 12582912/12582912/25165824/12582912
        reserved_bytes 25165824/25165824/25165824/0
        active_bytes 12582912/12582912/25165824/12582912
        requested_bytes 12582912/12582912/25165824/12582912
        num_device_alloc 2
    "#]],
    );
    assert_eq!(played.segments.len(), 2);
}

#[test]
fn pending_blocks_do_not_merge() {
    let text = "stream side; a = alloc 512; b = alloc 512; record_stream a side; free a; free b";
    check(
        text,
        &expect![[r#"
        S1 small default: 0..512 a pending (512) | 512..2097152 cached (512)
        allocation 0/2/2/2
        segment 1/1/1/0
        active 1/2/2/1
        inactive_split 1/1/1/0
        allocated_bytes 0/1024/1024/1024
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 512/1024/1024/512
        inactive_split_bytes 2096640/2096640/2097152/512
        requested_bytes 512/1024/1024/512
        num_device_alloc 1
    "#]],
    );
}
