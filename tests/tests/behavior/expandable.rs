//! Segments that grow page by page.

use expect_test::expect;

use crate::picture::{DEVICE, Device};

const EXPANDING: Device = DEVICE.with("expandable_segments:True");

#[test]
fn pages_are_mapped_as_they_are_needed() {
    let text = "a = alloc 1000; b = alloc 1048577; c = alloc 20 MiB";
    let played = EXPANDING.check(text, &expect![[r#"
        S1 small default: 0..1024 a (1000) | 1024..2097152 cached (0) | 2097152..1207959552 unmapped (0)
        S2 large default: 0..1049088 b (1048577) | 1049088..22020608 c (20971520) | 22020608..41943040 cached (0) | 41943040..1216348160 unmapped (0)
        allocation 3/3/3/0
        active 3/3/3/0
        allocated_bytes 22021632/22021632/22021632/0
        reserved_bytes 44040192/44040192/44040192/0
        active_bytes 22021632/22021632/22021632/0
        requested_bytes 22021097/22021097/22021097/0
        num_device_alloc 3
    "#]]);
    let stats = &played.stats;
    assert_eq!((stats.segment.all.current, stats.num_device_alloc), (0, 3));
    assert_eq!(stats.reserved_bytes.all.current, 44_040_192);
    assert_eq!(stats.allocated_bytes.all.current, 22_021_632);
    assert_eq!(stats.inactive_split.all.current, 0);
}

const HOLES: &str = "a = alloc 1000; b = alloc 1048577; c = alloc 20 MiB; free b; d = alloc 30 MiB; free c";

#[test]
fn only_whole_pages_are_given_back() {
    let played = EXPANDING.check(&format!("{HOLES}; empty_cache"), &expect![[r#"
        S1 small default: 0..1024 a (1000) | 1024..2097152 cached (0) | 2097152..1207959552 unmapped (0)
        S2 large default: 0..20971520 unmapped (20971520) | 20971520..22020608 cached (0) | 22020608..53477888 d (31457280) | 53477888..62914560 cached (0) | 62914560..1216348160 unmapped (0)
        allocation 2/3/4/2
        active 2/3/4/2
        allocated_bytes 31458304/52429824/53478912/22020608
        reserved_bytes 44040192/65011712/65011712/20971520
        active_bytes 31458304/52429824/53478912/22020608
        requested_bytes 31458280/52429800/53478377/22020097
        num_sync_all_streams 1, num_device_alloc 4, num_device_free 1
    "#]]);
    assert_eq!((played.stats.reserved_bytes.all.current, played.stats.num_device_free), (44_040_192, 1));
    let large = &played.segments[1];
    let second = &large.blocks[1];
    assert_eq!((second.addr.offset_from(large.addr).get(), second.size.get()), (20_971_520, 1_049_088));
    assert_eq!((second.requested.get(), second.state.name()), (0, "inactive"));
}

#[test]
fn empty_ranges_are_released() {
    let played = EXPANDING.check(
        &format!("{HOLES}; empty_cache; free a, d; empty_cache"),
        &expect![[r#"
        allocation 0/3/4/4
        active 0/3/4/4
        allocated_bytes 0/52429824/53478912/53478912
        reserved_bytes 0/65011712/65011712/65011712
        active_bytes 0/52429824/53478912/53478912
        requested_bytes 0/52429800/53478377/53478377
        num_sync_all_streams 2, num_device_alloc 4, num_device_free 3
    "#]],
    );
    let stats = &played.stats;
    assert_eq!((stats.reserved_bytes.all.current, stats.num_device_alloc, stats.num_device_free), (0, 4, 3));
    assert!(played.segments.is_empty());
    let unmapped = played.trace().into_iter().filter(|entry| entry.action.name() == "segment_unmap");
    let sizes: Vec<u64> = unmapped.map(|entry| entry.size.get()).collect();
    assert_eq!(sizes, [20_971_520, 41_943_040, 2_097_152]);
}

const THREE: &str =
    "a = alloc 20 MiB; b = alloc 20 MiB; c = alloc 20 MiB; free a; empty_cache; d = alloc 4 MiB";

#[test]
fn the_lowest_hole_is_mapped_again() {
    let played = EXPANDING.check(THREE, &expect![[r#"
        S1 large default: 0..4194304 d (4194304) | 4194304..20971520 cached (20971520) | 20971520..41943040 b (20971520) | 41943040..62914560 c (20971520) | 62914560..1216348160 unmapped (0)
        allocation 3/3/4/1
        active 3/3/4/1
        allocated_bytes 46137344/62914560/67108864/20971520
        reserved_bytes 62914560/62914560/83886080/20971520
        active_bytes 46137344/62914560/67108864/20971520
        requested_bytes 46137344/62914560/67108864/20971520
        num_sync_all_streams 1, num_device_alloc 4, num_device_free 1
    "#]]);
    let [first, remainder, ..] = &played.segments[0].blocks[..] else { panic!("two blocks and more") };
    assert_eq!(
        (first.size.get(), remainder.size.get(), remainder.requested.get()),
        (4_194_304, 16_777_216, 20_971_520)
    );
}

#[test]
fn what_fits_no_hole_grows_at_the_end() {
    let played = EXPANDING.check(&format!("{THREE}; g = alloc 30 MiB"), &expect![[r#"
        S1 large default: 0..4194304 d (4194304) | 4194304..20971520 cached (20971520) | 20971520..41943040 b (20971520) | 41943040..62914560 c (20971520) | 62914560..94371840 g (31457280) | 94371840..104857600 cached (0) | 104857600..1216348160 unmapped (0)
        allocation 4/4/5/1
        active 4/4/5/1
        allocated_bytes 77594624/77594624/98566144/20971520
        reserved_bytes 104857600/104857600/125829120/20971520
        active_bytes 77594624/77594624/98566144/20971520
        requested_bytes 77594624/77594624/98566144/20971520
        num_sync_all_streams 1, num_device_alloc 5, num_device_free 1
    "#]]);
    let segment = &played.segments[0];
    let grown = segment.blocks.iter().find(|block| block.requested.get() == 30 << 20).unwrap();
    assert_eq!(grown.addr.offset_from(segment.addr).get(), 60 << 20);
    assert_eq!(played.stats.reserved_bytes.all.current, 100 << 20);
}

#[test]
fn a_hole_that_fits_is_taken_before_anything_grows() {
    let played =
        EXPANDING.check(&format!("{THREE}; g = alloc 30 MiB; free b; h = alloc 29 MiB"), &expect![[r#"
            S1 large default: 0..4194304 d (4194304) | 4194304..34603008 h (30408704) | 34603008..41943040 cached (20971520) | 41943040..62914560 c (20971520) | 62914560..94371840 g (31457280) | 94371840..104857600 cached (0) | 104857600..1216348160 unmapped (0)
            allocation 4/4/6/2
            active 4/4/6/2
            allocated_bytes 87031808/87031808/128974848/41943040
            reserved_bytes 104857600/104857600/125829120/20971520
            active_bytes 87031808/87031808/128974848/41943040
            requested_bytes 87031808/87031808/128974848/41943040
            num_sync_all_streams 1, num_device_alloc 5, num_device_free 1
        "#]]);
    let [_, hole, remainder, ..] = &played.segments[0].blocks[..] else { panic!("three blocks and more") };
    assert_eq!((hole.requested.get(), remainder.size.get()), (29 << 20, 7_340_032));
}
