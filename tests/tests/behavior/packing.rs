//! Where blocks go: rounding, best fit, splits and merges.

use expect_test::expect;

use crate::picture::{DEVICE, check, values};

const MIB: i64 = 1 << 20;

#[test]
fn two_tensors_take_764_mib_and_empty_cache_leaves_382() {
    let allocated = "x = alloc 10000 x 10000 float32; y = alloc 10000 x 10000 float32";
    let both = check(
        allocated,
        &expect![[r#"
        S1 large default: 0..400556032 x (400000000)
        S2 large default: 0..400556032 y (400000000)
        allocation 2/2/2/0
        segment 2/2/2/0
        active 2/2/2/0
        allocated_bytes 801112064/801112064/801112064/0
        reserved_bytes 801112064/801112064/801112064/0
        active_bytes 801112064/801112064/801112064/0
        requested_bytes 800000000/800000000/800000000/0
        num_device_alloc 2
    "#]],
    );
    for quantity in [both.stats.allocated_bytes, both.stats.active_bytes, both.stats.reserved_bytes] {
        assert_eq!(quantity.large_pool, quantity.all);
    }

    let freed = DEVICE.play(&format!("{allocated}; free y"));
    assert_eq!(values(freed.stats.allocated_bytes.all), [400_556_032, 801_112_064, 801_112_064, 400_556_032]);
    assert_eq!(freed.stats.requested_bytes.all.current, 400_000_000);
    assert_eq!(freed.stats.reserved_bytes.all.current, 801_112_064);
    assert_eq!(freed.segments[1].blocks[0].requested.get(), 400_000_000);

    let emptied = check(
        &format!("{allocated}; free y; empty_cache"),
        &expect![[r#"
        S1 large default: 0..400556032 x (400000000)
        allocation 1/2/2/1
        segment 1/2/2/1
        active 1/2/2/1
        allocated_bytes 400556032/801112064/801112064/400556032
        reserved_bytes 400556032/801112064/801112064/400556032
        active_bytes 400556032/801112064/801112064/400556032
        requested_bytes 400000000/800000000/800000000/400000000
        num_sync_all_streams 1, num_device_alloc 2, num_device_free 1
    "#]],
    );
    assert_eq!(
        emptied.trace_lines(),
        [
            "segment_alloc S1 400556032",
            "alloc S1 400000000",
            "segment_alloc S2 400556032",
            "alloc S2 400000000",
            "free_requested S2 400000000",
            "free_completed S2 400000000",
            "segment_free S2 400556032",
        ]
    );
}

const PACKED: &str = "a = alloc 1; b = alloc 512; c = alloc 513; d = alloc 1048576;";

#[test]
fn small_requests_share_a_segment() {
    let played = check(
        PACKED,
        &expect![[r#"
        S1 small default: 0..512 a (1) | 512..1024 b (512) | 1024..2048 c (513) | 2048..1050624 d (1048576) | 1050624..2097152 cached (0)
        allocation 4/4/4/0
        segment 1/1/1/0
        active 4/4/4/0
        inactive_split 1/1/1/0
        allocated_bytes 1050624/1050624/1050624/0
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 1050624/1050624/1050624/0
        inactive_split_bytes 1046528/2096640/2096640/1050112
        requested_bytes 1049602/1049602/1049602/0
        num_device_alloc 1
    "#]],
    );
    assert_eq!(played.stats.allocated_bytes.small_pool, played.stats.allocated_bytes.all);
}

#[test]
fn a_freed_block_between_live_neighbors_stays_as_it_is() {
    check(
        &format!("{PACKED} free b"),
        &expect![[r#"
        S1 small default: 0..512 a (1) | 512..1024 cached (512) | 1024..2048 c (513) | 2048..1050624 d (1048576) | 1050624..2097152 cached (0)
        allocation 3/4/4/1
        segment 1/1/1/0
        active 3/4/4/1
        inactive_split 2/2/2/0
        allocated_bytes 1050112/1050624/1050624/512
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 1050112/1050624/1050624/512
        inactive_split_bytes 1047040/2096640/2097152/1050112
        requested_bytes 1049090/1049602/1049602/512
        num_device_alloc 1
    "#]],
    );
}

#[test]
fn merging_keeps_the_block_that_is_freed_and_what_was_asked_for_it() {
    let played = check(
        &format!("{PACKED} free b; free a"),
        &expect![[r#"
        S1 small default: 0..1024 cached (1) | 1024..2048 c (513) | 2048..1050624 d (1048576) | 1050624..2097152 cached (0)
        allocation 2/4/4/2
        segment 1/1/1/0
        active 2/4/4/2
        inactive_split 2/2/2/0
        allocated_bytes 1049600/1050624/1050624/1024
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 1049600/1050624/1050624/1024
        inactive_split_bytes 1047552/2096640/2097664/1050112
        requested_bytes 1049089/1049602/1049602/513
        num_device_alloc 1
    "#]],
    );
    let merged = &played.segments[0].blocks[0];
    assert_eq!((merged.size.get(), merged.requested.get()), (1024, 1));
}

#[test]
fn best_fit_takes_the_hole_and_not_the_tail() {
    let played = check(
        &format!("{PACKED} free b; free a; e = alloc 100"),
        &expect![[r#"
        S1 small default: 0..512 e (100) | 512..1024 cached (1) | 1024..2048 c (513) | 2048..1050624 d (1048576) | 1050624..2097152 cached (0)
        allocation 3/4/5/2
        segment 1/1/1/0
        active 3/4/5/2
        inactive_split 2/2/2/0
        allocated_bytes 1050112/1050624/1051136/1024
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 1050112/1050624/1051136/1024
        inactive_split_bytes 1047040/2096640/2097664/1050624
        requested_bytes 1049189/1049602/1049702/513
        num_device_alloc 1
    "#]],
    );
    let remainder = &played.segments[0].blocks[1];
    assert_eq!((remainder.size.get(), remainder.requested.get()), (512, 1));
}

#[test]
fn everything_merges_back_and_the_cache_empties() {
    let freed = "free b; free a; e = alloc 100; free c; free d; free e";
    let played = check(
        &format!("{PACKED} {freed}"),
        &expect![[r#"
        S1 small default: 0..2097152 cached (100)
        allocation 0/4/5/5
        segment 1/1/1/0
        active 0/4/5/5
        inactive_split 0/2/2/2
        allocated_bytes 0/1050624/1051136/1051136
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 0/1050624/1051136/1051136
        inactive_split_bytes 0/2096640/3147264/3147264
        requested_bytes 0/1049602/1049702/1049702
        num_device_alloc 1
    "#]],
    );
    let whole = &played.segments[0].blocks[..];
    assert_eq!((whole.len(), whole[0].size.get(), whole[0].requested.get()), (1, 2_097_152, 100));
    assert!(DEVICE.play(&format!("{PACKED} {freed}; empty_cache")).segments.is_empty());
}

const WINDOW: &str = "a = alloc 1048577; b = alloc 10485759; c = alloc 10485760; d = alloc 9437184;";

#[test]
fn requests_from_1_to_10_mib_share_segments_of_20_mib() {
    check(
        WINDOW,
        &expect![[r#"
        S1 large default: 0..1049088 a (1048577) | 1049088..11534848 b (10485759) | 11534848..20971520 cached (0)
        S2 large default: 0..10485760 c (10485760)
        S3 large default: 0..9437184 d (9437184) | 9437184..20971520 cached (0)
        allocation 4/4/4/0
        segment 3/3/3/0
        active 4/4/4/0
        inactive_split 2/2/2/0
        allocated_bytes 31457792/31457792/31457792/0
        reserved_bytes 52428800/52428800/52428800/0
        active_bytes 31457792/31457792/31457792/0
        inactive_split_bytes 20971008/20971008/31456768/10485760
        requested_bytes 31457280/31457280/31457280/0
        num_device_alloc 3
    "#]],
    );
}

#[test]
fn best_fit_prefers_the_smaller_remainder_of_another_segment() {
    let more = "free b; e = alloc 8388608; free a; g = alloc 3145728";
    let played = check(
        &format!("{WINDOW} {more}"),
        &expect![[r#"
        S1 large default: 0..20971520 cached (1048577)
        S2 large default: 0..10485760 c (10485760)
        S3 large default: 0..9437184 d (9437184) | 9437184..17825792 e (8388608) | 17825792..20971520 g (3145728)
        allocation 4/4/6/2
        segment 3/3/3/0
        active 4/4/6/2
        inactive_split 0/2/2/2
        allocated_bytes 31457280/31457792/42992128/11534848
        reserved_bytes 52428800/52428800/52428800/0
        active_bytes 31457280/31457792/42992128/11534848
        inactive_split_bytes 0/31456768/41942528/41942528
        requested_bytes 31457280/31457280/42991616/11534336
        num_device_alloc 3
    "#]],
    );
    let first = &played.segments[0].blocks;
    assert_eq!((first.len(), first[0].requested.get()), (1, 1_048_577));

    let emptied = DEVICE.play(&format!("{WINDOW} {more}; free c; free d; free e; free g"));
    assert_eq!(values(emptied.stats.inactive_split.all), [0, 2, 3, 3]);
    assert_eq!(values(emptied.stats.inactive_split_bytes.all), [0, 31_456_768, 59_768_320, 59_768_320]);
}

const TWO_CACHED: &str = "a = alloc 20 MiB; b = alloc 20 MiB; free a; free b;";

#[test]
fn equal_blocks_are_taken_from_the_lowest_address_on() {
    let played = check(
        &format!("{TWO_CACHED} c = alloc 19922944"),
        &expect![[r#"
        S1 large default: 0..20971520 c (19922944)
        S2 large default: 0..20971520 cached (20971520)
        allocation 1/2/3/2
        segment 2/2/2/0
        active 1/2/3/2
        allocated_bytes 20971520/41943040/62914560/41943040
        reserved_bytes 41943040/41943040/41943040/0
        active_bytes 20971520/41943040/62914560/41943040
        requested_bytes 19922944/41943040/61865984/41943040
        num_device_alloc 2
    "#]],
    );
    let taken = &played.segments[0].blocks;
    assert_eq!((taken.len(), taken[0].size.get()), (1, 20_971_520), "a remainder of 1 MiB is not split off");
}

#[test]
fn a_remainder_of_more_than_a_mebibyte_is_split_off() {
    let text = format!("{TWO_CACHED} c = alloc 19922944; free c; d = alloc 19922432");
    let played = check(
        &text,
        &expect![[r#"
        S1 large default: 0..19922432 d (19922432) | 19922432..20971520 cached (19922944)
        S2 large default: 0..20971520 cached (20971520)
        allocation 1/2/4/3
        segment 2/2/2/0
        active 1/2/4/3
        inactive_split 1/1/1/0
        allocated_bytes 19922432/41943040/82836992/62914560
        reserved_bytes 41943040/41943040/41943040/0
        active_bytes 19922432/41943040/82836992/62914560
        inactive_split_bytes 1049088/1049088/1049088/0
        requested_bytes 19922432/41943040/81788416/61865984
        num_device_alloc 2
    "#]],
    );
    let remainder = &played.segments[0].blocks[1];
    assert_eq!((remainder.size.get(), remainder.requested.get()), (1_049_088, 19_922_944));
}

#[test]
fn a_small_remainder_is_split_off_from_512_bytes_on() {
    let played = check(
        "a = alloc 1048064; b = alloc 1048576",
        &expect![[r#"
        S1 small default: 0..1048064 a (1048064) | 1048064..2096640 b (1048576) | 2096640..2097152 cached (0)
        allocation 2/2/2/0
        segment 1/1/1/0
        active 2/2/2/0
        inactive_split 1/1/1/0
        allocated_bytes 2096640/2096640/2096640/0
        reserved_bytes 2097152/2097152/2097152/0
        active_bytes 2096640/2096640/2096640/0
        inactive_split_bytes 512/1049088/1049088/1048576
        requested_bytes 2096640/2096640/2096640/0
        num_device_alloc 1
    "#]],
    );
    assert_eq!(played.segments[0].blocks[2].size.get(), 512);
}

#[test]
fn blocks_over_the_split_limit_stay_whole() {
    let device = DEVICE.with("max_split_size_mb:40");
    let cached = "big = alloc 80 MiB; mid = alloc 30 MiB; free big; free mid;";
    let before = device.play(cached);
    assert_eq!(values(before.stats.oversize_segments), [1, 1, 1, 0]);
    assert_eq!(values(before.stats.oversize_allocations), [0, 1, 1, 1]);

    let text = format!("{cached} x = alloc 20 MiB; y = alloc 70 MiB; z = alloc 60 MiB");
    let played = device.check(
        &text,
        &expect![[r#"
        S1 large default: 0..83886080 y (73400320)
        S2 large default: 0..20971520 x (20971520) | 20971520..31457280 cached (31457280)
        S3 large default: 0..62914560 z (62914560)
        allocation 3/3/5/2
        segment 3/3/3/0
        active 3/3/5/2
        inactive_split 1/1/1/0
        allocated_bytes 167772160/167772160/283115520/115343360
        reserved_bytes 178257920/178257920/178257920/0
        active_bytes 167772160/167772160/283115520/115343360
        inactive_split_bytes 10485760/10485760/10485760/0
        requested_bytes 157286400/157286400/272629760/115343360
        oversize_allocations 2/2/3/1
        oversize_segments 2/2/2/0
        num_device_alloc 3
    "#]],
    );

    // Unlike in the worked example, the setting is set from the start, so that the statistic shows it.
    assert_eq!(played.stats.max_split_size, 40 * MIB);
    let emptied = device.play(&format!("{text}; free y; free z; free x; empty_cache"));
    let released: Vec<String> =
        emptied.trace_lines().into_iter().filter(|line| line.starts_with("segment_free")).collect();
    assert_eq!(
        released,
        ["segment_free S2 31457280", "segment_free S3 62914560", "segment_free S1 83886080"]
    );
}

#[test]
fn a_cached_block_over_the_split_limit_serves_what_is_less_than_the_rounding_smaller() {
    let cached = "big = alloc 80 MiB; free big;";
    let segments = |config: &'static str, size: &str| {
        DEVICE.with(config).play(&format!("{cached} x = alloc {size}")).stats.segment.all.current
    };
    // 80 MiB serve requests of more than 80 - 20 MiB: exactly 60 MiB get a segment of their own.
    assert_eq!(segments("max_split_size_mb:40", "62914561"), 1);
    assert_eq!(segments("max_split_size_mb:40", "62914560"), 2);
    assert_eq!(segments("max_split_size_mb:40,max_non_split_rounding_mb:32", "62914560"), 1);
    assert_eq!(segments("max_split_size_mb:40,max_non_split_rounding_mb:32", "50331648"), 2);
}

#[test]
fn rounding_to_divisions_of_a_power_of_two_makes_blocks_larger() {
    let device = DEVICE.with("roundup_power2_divisions:4");
    let played = device.play("a = alloc 1200; b = alloc 5000; c = alloc 1048577; d = alloc 84 MiB");
    let sizes: Vec<u64> = played
        .segments
        .iter()
        .flat_map(|segment| &segment.blocks)
        .filter(|block| block.state.is_active())
        .map(|block| block.size.get())
        .collect();
    assert_eq!(sizes, [1536, 5120, 1_310_720, 100_663_296]);
}

#[test]
fn large_segments_have_the_size_that_the_settings_say() {
    let device = DEVICE.with("large_segment_size_mb:32");
    let sizes = |text: &str| -> Vec<u64> {
        device.play(text).segments.iter().map(|segment| segment.size.get() >> 20).collect()
    };
    assert_eq!(sizes("a = alloc 3 MiB; b = alloc 10 MiB; c = alloc 20 MiB; d = alloc 512"), [32, 20, 2]);
    assert_eq!(sizes("a = alloc 10485759; b = alloc 30 MiB"), [10, 30], "10 MiB stays the border");
}
