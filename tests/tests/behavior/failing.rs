//! When nothing fits: the retry, out of memory, garbage collection, and PyTorch's messages.

use blockyard_record::{Bytes, Event};
use expect_test::expect;

use crate::picture::{Device, values};

const ADVICE: &str = " If reserved but unallocated memory is large try setting \
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  \
    (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";

#[test]
fn a_full_device_is_asked_again_after_the_cache_went_back() {
    let device = Device::of(Bytes::mib(64));
    let retried = "a = alloc 20 MiB; b = alloc 20 MiB; free a; c = alloc 30 MiB";
    let played = device.check(
        retried,
        &expect![[r#"
        S2 large default: 0..20971520 b (20971520)
        S3 large default: 0..31457280 c (31457280)
        allocation 2/2/3/1
        segment 2/2/3/1
        active 2/2/3/1
        allocated_bytes 52428800/52428800/73400320/20971520
        reserved_bytes 52428800/52428800/73400320/20971520
        active_bytes 52428800/52428800/73400320/20971520
        requested_bytes 52428800/52428800/73400320/20971520
        num_alloc_retries 1, num_sync_all_streams 1, num_device_alloc 3, num_device_free 1
    "#]],
    );
    let stats = &played.stats;
    assert_eq!((stats.num_alloc_retries, stats.num_sync_all_streams, stats.num_ooms), (1, 1, 0));
    assert_eq!((stats.num_device_alloc, stats.num_device_free), (3, 1));
    let trace = played.trace_lines();
    assert_eq!(
        trace[trace.len() - 3..],
        ["segment_free S1 20971520", "segment_alloc S3 31457280", "alloc S3 31457280"]
    );
}

#[test]
fn what_fails_twice_is_out_of_memory() {
    let device = Device::of(Bytes::mib(64));
    let text = "a = alloc 20 MiB; b = alloc 20 MiB; free a; c = alloc 30 MiB; d = alloc 40 MiB";
    let played = device.check(
        text,
        &expect![[r#"
        S2 large default: 0..20971520 b (20971520)
        S3 large default: 0..31457280 c (31457280)
        allocation 2/2/3/1
        segment 2/2/3/1
        active 2/2/3/1
        allocated_bytes 52428800/52428800/73400320/20971520
        reserved_bytes 52428800/52428800/73400320/20971520
        active_bytes 52428800/52428800/73400320/20971520
        requested_bytes 52428800/52428800/73400320/20971520
        num_alloc_retries 2, num_ooms 1, num_sync_all_streams 2, num_device_alloc 3, num_device_free 1
    "#]],
    );
    let stats = &played.stats;
    assert_eq!((stats.num_alloc_retries, stats.num_ooms, stats.num_sync_all_streams), (2, 1, 2));
    assert_eq!(played.trace_lines().last().unwrap(), "oom 14680064 41943040");
}

#[test]
fn the_message_names_the_segment_and_the_trace_the_rounded_request() {
    let text = "a = alloc 1048577; b = alloc 20 MiB; c = alloc 2 MiB; free b; d = alloc 20971521";
    let played = Device::of(Bytes::mib(40)).check(
        text,
        &expect![[r#"
        S1 large default: 0..1049088 a (1048577) | 1049088..3146240 c (2097152) | 3146240..20971520 cached (0)
        allocation 2/3/3/1
        segment 1/2/2/1
        active 2/3/3/1
        inactive_split 1/1/1/0
        allocated_bytes 3146240/24117760/24117760/20971520
        reserved_bytes 20971520/41943040/41943040/20971520
        active_bytes 3146240/24117760/24117760/20971520
        inactive_split_bytes 17825280/19922432/19922432/2097152
        requested_bytes 3145729/24117249/24117249/20971520
        num_alloc_retries 1, num_ooms 1, num_sync_all_streams 1, num_device_alloc 2, num_device_free 1
    "#]],
    );
    let message = "CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 40.00 MiB of which 20.00 \
        MiB is free. Of the allocated memory 3.00 MiB is allocated by PyTorch, and 17.00 MiB is reserved by PyTorch but \
        unallocated.";
    assert_eq!(played.messages(), [format!("{message}{ADVICE}")]);
    assert_eq!(played.trace_lines().last().unwrap(), "oom 20971520 20972032");
    let asked = (0..played.recording.event_count()).find_map(|event| match played.recording.event(event) {
        Some(Event::OutOfMemory { requested, rounded, segment_size, .. }) => {
            Some([requested, rounded, segment_size].map(Bytes::get))
        }
        _ => None,
    });
    assert_eq!(asked, Some([20_971_521, 20_972_032, 23_068_672]));
}

#[test]
fn the_message_names_the_limit_of_a_memory_fraction() {
    let text = "set_fraction 0.5; a = alloc 30 MiB; b = alloc 3 MiB";
    let played = Device::of(Bytes::mib(64)).play(text);
    let message = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 64.00 MiB of which 34.00 \
        MiB is free. 32.00 MiB allowed; Of the allocated memory 30.00 MiB is allocated by PyTorch, and 0 bytes is reserved \
        by PyTorch but unallocated.";
    assert_eq!(played.messages(), [format!("{message}{ADVICE}")]);
    assert_eq!((played.stats.num_alloc_retries, played.stats.num_ooms), (1, 1));
}

#[test]
fn a_fraction_limits_segments_and_not_what_the_cache_serves() {
    let text = "a = alloc 30 MiB; free a; set_fraction 0.25; b = alloc 30 MiB; c = alloc 1 MiB; set_fraction 1; d = alloc 1 MiB";
    let played = Device::of(Bytes::mib(64)).check(
        text,
        &expect![[r#"
        S1 large default: 0..31457280 b (31457280)
        S2 small default: 0..1048576 d (1048576) | 1048576..2097152 cached (0)
        allocation 2/2/3/1
        segment 2/2/2/0
        active 2/2/3/1
        inactive_split 1/1/1/0
        allocated_bytes 32505856/32505856/63963136/31457280
        reserved_bytes 33554432/33554432/33554432/0
        active_bytes 32505856/32505856/63963136/31457280
        inactive_split_bytes 1048576/1048576/1048576/0
        requested_bytes 32505856/32505856/63963136/31457280
        num_alloc_retries 1, num_ooms 1, num_sync_all_streams 1, num_device_alloc 2
    "#]],
    );
    assert_eq!(played.messages().len(), 1);
}

#[test]
fn garbage_collection_releases_the_block_that_waited_longest() {
    let config = "garbage_collection_threshold:0.5,per_process_memory_fraction:0.5";
    let text = "a = alloc 20 MiB; b = alloc 22 MiB; c = alloc 24 MiB; free a, b, c
        x = alloc 20 MiB; y = alloc 4 MiB; z = alloc 30 MiB";
    let played = Device::of(Bytes::mib(256)).with(config).check(
        text,
        &expect![[r#"
        S1 large default: 0..20971520 x (20971520)
        S2 large default: 0..4194304 y (4194304) | 4194304..23068672 cached (23068672)
        S4 large default: 0..31457280 z (31457280)
        allocation 3/3/6/3
        segment 3/3/4/1
        active 3/3/6/3
        inactive_split 1/1/1/0
        allocated_bytes 56623104/69206016/125829120/69206016
        reserved_bytes 75497472/75497472/100663296/25165824
        active_bytes 56623104/69206016/125829120/69206016
        inactive_split_bytes 18874368/18874368/18874368/0
        requested_bytes 56623104/69206016/125829120/69206016
        num_device_alloc 4, num_device_free 1
    "#]],
    );
    assert_eq!(played.recording.state_at(1).unwrap().limit(), Some(Bytes::new(134_217_728)));
    let trace = played.trace_lines();
    assert_eq!(
        trace[trace.len() - 3..],
        ["segment_free S3 25165824", "segment_alloc S4 31457280", "alloc S4 31457280"]
    );
    let stats = &played.stats;
    assert_eq!((stats.num_alloc_retries, stats.num_sync_all_streams), (0, 0));
    assert_eq!(values(stats.reserved_bytes.all)[1], 20 * (1 << 20) + 22 * (1 << 20) + 30 * (1 << 20));
}

#[test]
fn without_a_fraction_the_threshold_does_nothing() {
    let text = "a = alloc 20 MiB; b = alloc 22 MiB; c = alloc 24 MiB; free a, b, c; z = alloc 30 MiB";
    let played = Device::of(Bytes::mib(256)).with("garbage_collection_threshold:0.1").play(text);
    assert_eq!(played.stats.num_device_free, 0);
}

#[test]
fn just_enough_oversize_blocks_go_before_the_whole_cache_does() {
    let device = Device::of(Bytes::mib(96)).with("max_split_size_mb:20");
    let cached = "a = alloc 20 MiB; b = alloc 24 MiB; c = alloc 2 MiB; free a, b, c";
    let played = device.check(
        &format!("{cached}; d = alloc 44 MiB"),
        &expect![[r#"
        S1 large default: 0..20971520 cached (20971520)
        S4 large default: 0..46137344 d (46137344)
        allocation 1/3/4/3
        segment 2/3/4/2
        active 1/3/4/3
        inactive_split 0/1/1/1
        allocated_bytes 46137344/48234496/94371840/48234496
        reserved_bytes 67108864/67108864/113246208/46137344
        active_bytes 46137344/48234496/94371840/48234496
        inactive_split_bytes 0/18874368/18874368/18874368
        requested_bytes 46137344/48234496/94371840/48234496
        oversize_allocations 1/2/3/2
        oversize_segments 2/3/4/2
        num_device_alloc 4, num_device_free 2
    "#]],
    );
    assert_eq!((played.stats.num_device_free, played.stats.num_alloc_retries), (2, 0));
    assert_eq!(played.stats.num_sync_all_streams, 0);
    let released: Vec<String> =
        played.trace_lines().into_iter().filter(|line| line.starts_with("segment_free")).collect();
    // The largest segment goes first, and of equal segments the segment at the highest address.
    assert_eq!(released, ["segment_free S2 25165824", "segment_free S3 20971520"]);

    let played = device.play(&format!("{cached}; d = alloc 70 MiB"));
    assert_eq!((played.stats.num_device_free, played.stats.num_alloc_retries), (3, 1), "not enough for that");
}
