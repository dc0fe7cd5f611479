//! Constructed runs that go out of memory for a known reason, with a known smallest change.

use blockyard_lab::{Change, ChangeKind, Conditions, Run, autopsy, replay_under};
use blockyard_record::{Bytes, OomCause};
use blockyard_workload::Workload;

use crate::{on, on_requests};

use OomCause::{
    CachedInAnotherStream, CachedInPrivatePool, FragmentationByLiveBlocks, LiveBytesAtLimit,
    PoolNotSearchedAgain, RequestAboveLimit, RoundingBySetting,
};

/// A change that the autopsy must name among those that help.
pub(crate) enum ExpectedHelp {
    /// This setting, as the first of the settings.
    Setting(&'static str),
    /// This setting, also after others: for programs that cannot use expandable segments.
    SettingToo(&'static str),
    /// No setting at all.
    NoSetting,
    /// Freeing this many tensors with this many MiB, and no less.
    Free(usize, u64),
    /// This limit, in MiB.
    Limit(u64),
    DefaultPool,
    OneStream,
    Synchronize,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) conf: &'static str,
    pub(crate) limit_mib: u64,
    cause: OomCause,
    helps: ExpectedHelp,
}

const fn case(
    name: &'static str,
    text: &'static str,
    conf: &'static str,
    limit_mib: u64,
    cause: OomCause,
    helps: ExpectedHelp,
) -> Case {
    Case { name, text, conf, limit_mib, cause, helps }
}

const HOLES: &str = "w = alloc 240 MiB; free w; repeat 12 as i { a[i] = alloc 20 MiB }
    for t in a[0], a[2], a[4], a[6], a[8], a[10] { free t }
    x = alloc 60 MiB";
const SIDE: &str = "stream side
    a = alloc 200 MiB on side; free a; b = alloc 20 MiB on side; c = alloc 100 MiB";
const POOL: &str = "pool p
    enter p; a = alloc 200 MiB; leave p; free a; b = alloc 100 MiB";

/// vllm#41268: weights of 530 MiB are converted and freed, layer by layer, and the 270 MiB that stay take the
/// front of the cached block. The 260 MiB after them are too small for both sizes, and cannot be released.
const CONVERTED: &str = "repeat 4 as i { w13[i] = alloc 530 MiB; free w13[i]; w2[i] = alloc 270 MiB }";
/// pytorch#189504: a tensor that another stream uses is freed; a live tensor in its segment keeps the segment
/// from being released.
const LATE: &str = "stream side
    whole = alloc 120 MiB; free whole; a = alloc 60 MiB; keep = alloc 60 MiB; record_stream a side; free a; b = alloc 50 MiB";
/// Megatron-LM#6885: every training step makes another stream for its transfers. The blocks that it frees
/// stay cached for that stream, which makes no further request.
const ONE_SHOT: &str = "stream first; stream second; stream third
    a = alloc 60 MiB on first; free a; x = alloc 12 MiB on first
    b = alloc 60 MiB on second; free b; y = alloc 12 MiB on second
    c = alloc 60 MiB on third; free c; z = alloc 12 MiB on third
    d = alloc 90 MiB";

#[rustfmt::skip]
pub(crate) const CASES: [Case; 34] = [
    case("one request above all", "a = alloc 300 MiB", "", 256, RequestAboveLimit, ExpectedHelp::Limit(300)),
    case("one request above all, with others live", "b = alloc 20 MiB; a = alloc 300 MiB", "", 256, RequestAboveLimit, ExpectedHelp::Limit(320)),
    case("a request above the limit that no setting makes smaller", "a = alloc 257 MiB", "expandable_segments:True", 256, RequestAboveLimit, ExpectedHelp::NoSetting),
    case("the limit is full of live blocks", "repeat 5 as i { a[i] = alloc 60 MiB }", "", 256, LiveBytesAtLimit, ExpectedHelp::Free(1, 60)),
    case("live blocks and no setting", "repeat 5 as i { a[i] = alloc 60 MiB }", "", 256, LiveBytesAtLimit, ExpectedHelp::NoSetting),
    case("live blocks need a larger limit", "repeat 5 as i { a[i] = alloc 60 MiB }", "", 256, LiveBytesAtLimit, ExpectedHelp::Limit(300)),
    case("two live blocks must go", "a = alloc 40 MiB; b = alloc 40 MiB; c = alloc 170 MiB; d = alloc 80 MiB", "", 256, LiveBytesAtLimit, ExpectedHelp::Free(2, 80)),
    case("the small pool is full of live blocks", "repeat 256 as i { a[i] = alloc 1 MiB }; b = alloc 1 MiB", "", 256, LiveBytesAtLimit, ExpectedHelp::Free(1, 1)),
    case("small live blocks leave too little for a large one", "repeat 100 as i { a[i] = alloc 1 MiB }; b = alloc 200 MiB", "", 256, LiveBytesAtLimit, ExpectedHelp::Limit(300)),
    case("live blocks of two streams", "stream side; a = alloc 130 MiB; b = alloc 100 MiB on side; c = alloc 60 MiB", "", 256, LiveBytesAtLimit, ExpectedHelp::Free(1, 100)),
    case("holes between live blocks", HOLES, "", 260, FragmentationByLiveBlocks, ExpectedHelp::Setting("expandable_segments:True")),
    case("holes between live blocks, one of them freed", HOLES, "", 260, FragmentationByLiveBlocks, ExpectedHelp::Free(1, 20)),
    case("holes need a larger limit", HOLES, "", 260, FragmentationByLiveBlocks, ExpectedHelp::Limit(300)),
    case("a small survivor keeps a large segment", "a = alloc 200 MiB; free a; s = alloc 20 MiB; b = alloc 190 MiB", "", 256, FragmentationByLiveBlocks, ExpectedHelp::Free(1, 20)),
    case("a small survivor and a limit on splitting", "a = alloc 200 MiB; free a; s = alloc 20 MiB; b = alloc 190 MiB", "", 256, FragmentationByLiveBlocks, ExpectedHelp::Setting("expandable_segments:True")),
    case("survivors in every buffer", "repeat 8 as i { a[i] = alloc 9 MiB; b[i] = alloc 9 MiB }; free a[*]; c = alloc 30 MiB", "", 176, FragmentationByLiveBlocks, ExpectedHelp::Setting("roundup_power2_divisions:4")),
    case("small blocks here and there", "repeat 64 as i { a[i] = alloc 512 KiB; b[i] = alloc 512 KiB }; free a[*]; c = alloc 30 MiB", "", 72, FragmentationByLiveBlocks, ExpectedHelp::NoSetting),
    case("holes under a limit on splitting", "repeat 6 as i { a[i] = alloc 7 MiB; b[i] = alloc 7 MiB }; free a[*]; c = alloc 40 MiB", "max_split_size_mb:64", 120, FragmentationByLiveBlocks, ExpectedHelp::NoSetting),
    case("the cache of another stream", SIDE, "", 256, CachedInAnotherStream, ExpectedHelp::OneStream),
    case("the cache of another stream, unpinned", SIDE, "", 256, CachedInAnotherStream, ExpectedHelp::Free(1, 20)),
    case("the cache of another stream, under expandable segments", SIDE, "", 256, CachedInAnotherStream, ExpectedHelp::Setting("expandable_segments:True")),
    case("the cache of a pool", POOL, "", 256, CachedInPrivatePool, ExpectedHelp::DefaultPool),
    case("the cache of a pool, with more memory", POOL, "", 256, CachedInPrivatePool, ExpectedHelp::Limit(300)),
    case("the cache of a pool, whatever the setting", POOL, "", 256, CachedInPrivatePool, ExpectedHelp::NoSetting),
    case("requests rounded up to a power of two", "repeat 3 as i { a[i] = alloc 65 MiB }", "roundup_power2_divisions:1,roundup_power2_divisions:2", 256, RoundingBySetting, ExpectedHelp::Setting("")),
    case("vllm#41268: a converted weight pins the buffer that it came from", CONVERTED, "", 1900, FragmentationByLiveBlocks, ExpectedHelp::SettingToo("max_split_size_mb:32")),
    case("vllm#41268, with expandable segments", CONVERTED, "", 1900, FragmentationByLiveBlocks, ExpectedHelp::Setting("expandable_segments:True")),
    case("vllm#41268, with more memory", CONVERTED, "", 1900, FragmentationByLiveBlocks, ExpectedHelp::Limit(2120)),
    case("Megatron-LM#6885: a stream of its own for each step", ONE_SHOT, "", 256, CachedInAnotherStream, ExpectedHelp::OneStream),
    case("Megatron-LM#6885, with more memory", ONE_SHOT, "", 256, CachedInAnotherStream, ExpectedHelp::Limit(270)),
    case("pytorch#189504: a free that waits for another stream", LATE, "", 128, PoolNotSearchedAgain, ExpectedHelp::Synchronize),
    case("pytorch#189504, with more memory", LATE, "", 128, PoolNotSearchedAgain, ExpectedHelp::Limit(170)),
    case("a free that waits, in a segment that is released", "stream side; a = alloc 60 MiB; record_stream a side; b = alloc 60 MiB; free a; c = alloc 80 MiB", "", 128, LiveBytesAtLimit, ExpectedHelp::Limit(140)),
    case("one request rounded above the limit", "a = alloc 130 MiB", "roundup_power2_divisions:2", 180, RoundingBySetting, ExpectedHelp::Setting("")),
];

fn proved(changes: &[Change]) -> impl Iterator<Item = &ChangeKind> {
    changes.iter().filter(|change| change.proved).map(|change| &change.kind)
}

#[test]
fn every_constructed_case_has_its_cause_and_its_smallest_change() {
    for Case { name, text, conf, limit_mib, cause, helps } in CASES {
        let run = Run::from_workload(name, Workload::parse(text).unwrap(), conf, Bytes::gib(4));
        let conditions = run.conditions().and_limit(Bytes::mib(limit_mib));
        let found = autopsy(&run, &conditions, &mut on).unwrap().unwrap_or_else(|| panic!("{name}: it fits"));
        assert_eq!(found.cause, cause, "{name}: {found:?}");
        assert!(
            found.failure.changes.iter().all(|change| change.proved)
                && !found.failure.in_vain.iter().any(|change| change.proved)
        );
        let settings: Vec<&str> = proved(&found.failure.changes)
            .filter_map(|kind| if let ChangeKind::Setting(conf) = kind { Some(conf.as_str()) } else { None })
            .collect();
        match helps {
            ExpectedHelp::Setting(conf) => assert_eq!(settings.first(), Some(&conf), "{name}: {settings:?}"),
            ExpectedHelp::SettingToo(conf) => assert!(settings.contains(&conf), "{name}: {settings:?}"),
            ExpectedHelp::NoSetting => assert!(settings.is_empty(), "{name}: {settings:?}"),
            ExpectedHelp::Free(count, mib) => {
                let set = proved(&found.failure.changes).find_map(|kind| match kind {
                    ChangeKind::FreeTensors { requests, bytes, .. } => Some((requests.len(), *bytes)),
                    _ => None,
                });
                assert_eq!(set, Some((count, Bytes::mib(mib))), "{name}");
            }
            ExpectedHelp::Limit(mib) => {
                let limit = proved(&found.failure.changes)
                    .find_map(|kind| if let ChangeKind::Limit(limit) = kind { Some(*limit) } else { None });
                let limit = limit.unwrap_or_else(|| panic!("{name}: no limit"));
                assert_eq!(limit, Bytes::mib(mib), "{name}");
                // One byte less is not enough.
                let less = conditions.and_limit(Bytes::new(limit.get() - 1));
                assert!(!replay_under(&run, &less, 0, &mut on_requests).unwrap().fits(), "{name}");
            }
            ExpectedHelp::DefaultPool => {
                assert!(
                    proved(&found.failure.changes).any(|kind| *kind == ChangeKind::DefaultPool),
                    "{name}"
                );
            }
            ExpectedHelp::OneStream => {
                assert!(proved(&found.failure.changes).any(|kind| *kind == ChangeKind::OneStream), "{name}");
            }
            ExpectedHelp::Synchronize => {
                assert!(
                    proved(&found.failure.changes).any(|kind| *kind == ChangeKind::Synchronize),
                    "{name}"
                );
            }
        }
        for change in found.failure.changes {
            if let ChangeKind::Setting(conf) = &change.kind {
                let alone = Conditions { conf: conf.clone(), ..conditions.clone() };
                assert!(replay_under(&run, &alone, 0, &mut on_requests).unwrap().fits(), "{name}: {conf}");
            }
        }
    }
}

#[test]
fn memory_of_others_is_named_where_the_device_was_full() {
    // A device of 1 GiB had 600 MiB free, of which PyTorch got 400 MiB: the next 300 MiB are more than the
    // 200 MiB left.
    let line = |value: serde_json::Value| value.to_string();
    let (mib, base) = (1_u64 << 20, 0x7f00_0000_0000_u64);
    let recording = [
        line(serde_json::json!({"meta": {"name": "full", "torch": "2.11.0", "conf": "", "total_memory": 1024 * mib}})),
        line(serde_json::json!({"trace": [
            ["segment_alloc", base, 400 * mib, 0],
            ["alloc", base, 400 * mib, 0],
            ["oom", 200 * mib, 300 * mib, 0],
        ]})),
        line(serde_json::json!({"segments": [{
            "address": base, "total_size": 400 * mib, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0],
            "is_expandable": false, "allocated_size": 400 * mib, "active_size": 400 * mib, "requested_size": 400 * mib,
            "blocks": [[base, 400 * mib, 400 * mib, "active_allocated"]],
        }]})),
    ]
    .join("\n");
    let recorded = blockyard_pytorch::RecordedRun::read(recording.as_bytes()).unwrap();
    let run = Run::from_recorded(&recorded, &mut on).unwrap();
    let found = autopsy(&run, &run.conditions(), &mut on).unwrap().unwrap();
    assert_eq!(found.cause, OomCause::MemoryOfOthers);
    assert_eq!((found.limit.high, found.limit.others), (Bytes::mib(600), Bytes::mib(424)));
    assert!(found.failure.sentence.contains("424 MiB"), "{}", found.failure.sentence);
}
