//! The gap between reserved and requested bytes adds up, and what is said to lower it does so.

use std::path::Path;

use blockyard_lab::{
    Conditions, FindingTopic, Gap, GapAtMoment, GapOutcome, GapParts, GapRemedy, GapRemedyKind, Run, gap,
    replay_under, search, verdict,
};
use blockyard_record::{Bytes, PoolId, StreamId};
use blockyard_workload::{Request, Workload};
use proptest::prelude::*;

use crate::properties::requests;
use crate::{on, on_requests};

fn run_of(text: &str, conf: &str) -> Run {
    Run::from_workload("gap", Workload::parse(text).unwrap(), conf, Bytes::gib(4))
}

fn gap_of(run: &Run) -> Gap {
    gap(run, &run.conditions(), None, &mut on).unwrap().unwrap()
}

fn assert_adds_up(moment: &GapAtMoment, what: &str) {
    let sum = moment.requested.get() + moment.parts.sum().get();
    assert_eq!(sum, moment.reserved.get(), "{what}: {moment:?}");
}

fn outcome(run: &Run, conditions: &Conditions) -> GapOutcome {
    let row = replay_under(run, conditions, 0, &mut on_requests).unwrap();
    let outcome = row.outcome_at_lowest().unwrap();
    assert!(row.fits());
    GapOutcome {
        peak_reserved: outcome.peak_reserved,
        device_calls: outcome.device_calls(),
        alloc_retries: outcome.alloc_retries,
    }
}

/// The run of a text with a change made to the text, as a person would make it.
fn changed(text: &str, conf: &str, remedy: &GapRemedy) -> GapOutcome {
    let run = match remedy.kind {
        GapRemedyKind::Setting => run_of(text, remedy.conf.as_deref().unwrap()),
        GapRemedyKind::Preallocation => {
            let size = remedy.size.unwrap().get();
            run_of(&format!("whole = alloc {size} B; free whole; {text}"), conf)
        }
        GapRemedyKind::EmptyCache => {
            let own = run_of(text, conf);
            let mut requests = own.requests().to_vec();
            requests.insert(usize::try_from(remedy.request.unwrap()).unwrap() - 1, Request::EmptyCache);
            Run::from_workload("gap", Workload::from_requests(requests), conf, Bytes::gib(4))
        }
        _ => panic!("another kind"),
    };
    outcome(&run, &run.conditions())
}

/// Each iteration needs more than the one before, so that no cached block serves it.
const GROWING: &str = "keep = alloc 30 MiB
    repeat 6 as i { a = alloc 40 MiB; free a; b = alloc 52 MiB; free b; c = alloc 64 MiB; free c }";

#[test]
fn each_part_has_the_bytes_that_its_name_says() {
    let mib = Bytes::mib;
    // The last request reaches the peak of each text.
    let cases = [
        ("rounding", "a = alloc 1000 B", "", {
            GapParts {
                rounding: Bytes::new(24),
                free_pieces: Bytes::new((2 << 20) - 1024),
                ..GapParts::default()
            }
        }),
        ("pending", "stream side; a = alloc 20 MiB; record_stream a side; free a; b = alloc 30 MiB", "", {
            GapParts { pending: mib(20), ..GapParts::default() }
        }),
        ("pool", "pool p; enter p; a = alloc 20 MiB; leave p; free a; b = alloc 30 MiB", "", {
            GapParts { other_pools: mib(20), ..GapParts::default() }
        }),
        // A request in a pool sees the default pool as another one.
        ("from a pool", "pool p; a = alloc 20 MiB; free a; enter p; b = alloc 30 MiB; leave p", "", {
            GapParts { other_pools: mib(20), ..GapParts::default() }
        }),
        (
            "pool before stream",
            "stream side; pool p; enter p; a = alloc 20 MiB on side; leave p; free a; b = alloc 30 MiB",
            "",
            { GapParts { other_pools: mib(20), ..GapParts::default() } },
        ),
        ("stream", "stream side; a = alloc 20 MiB on side; free a; b = alloc 30 MiB", "", {
            GapParts { other_streams: mib(20), ..GapParts::default() }
        }),
        ("piece", "a = alloc 50 MiB; free a; b = alloc 20 MiB; c = alloc 40 MiB", "", {
            GapParts { free_pieces: mib(30), ..GapParts::default() }
        }),
        ("segment", "a = alloc 20 MiB; free a; b = alloc 30 MiB", "", {
            GapParts { free_segments: mib(20), ..GapParts::default() }
        }),
        (
            "page",
            "a = alloc 20 MiB; b = alloc 32 MiB; c = alloc 8 MiB; free b; d = alloc 60 MiB",
            "expandable_segments:True",
            {
                // The 32 MiB begin with a page of 20 MiB, and their last 12 MiB share one with the block after them.
                GapParts { free_segments: mib(20), free_pieces: mib(12), ..GapParts::default() }
            },
        ),
    ];
    for (name, text, conf, parts) in cases {
        let found = gap_of(&run_of(text, conf));
        assert_eq!(found.at_peak.parts, parts, "{name}: {found:?}");
        assert_adds_up(&found.at_peak, name);
    }
}

#[test]
fn the_smallest_preallocation_that_closes_the_gap_is_advised() {
    let run = run_of(GROWING, "");
    let found = gap_of(&run);
    assert_eq!(found.own, Some(outcome(&run, &run.conditions())));
    // 30 MiB stay, and the segments of 40, 52 and 64 MiB are all there at the peak.
    assert_eq!(found.at_peak.reserved, Bytes::mib(186));
    assert_eq!(found.at_peak.requested, Bytes::mib(94));
    let best = found.remedies.iter().find(|remedy| remedy.kind == GapRemedyKind::Preallocation).unwrap();
    assert_eq!(best.size, Some(Bytes::mib(94)));
    assert_eq!(best.outcome.peak_reserved, Bytes::mib(94));
    assert_eq!(best.parts, GapParts::default());
    assert_eq!(changed(GROWING, "", best), best.outcome);
    let smaller = GapRemedy { size: Some(Bytes::mib(92)), ..best.clone() };
    assert!(changed(GROWING, "", &smaller).peak_reserved > best.outcome.peak_reserved);
}

#[test]
fn every_advised_change_gives_the_predicted_numbers_when_it_is_made() {
    let mixed = "repeat 8 as i { a = alloc 40 MiB; k[i] = alloc 5 MiB; free a; b = alloc 70 MiB; free b }";
    for (text, conf) in
        [(GROWING, ""), (mixed, ""), (mixed, "max_split_size_mb:32"), (mixed, "roundup_power2_divisions:4")]
    {
        let run = run_of(text, conf);
        let own = outcome(&run, &run.conditions());
        let setting = Some("expandable_segments:True");
        let found = gap(&run, &run.conditions(), setting, &mut on).unwrap().unwrap();
        for remedy in &found.remedies {
            assert!(remedy.outcome.peak_reserved < own.peak_reserved, "{remedy:?}");
            assert_eq!(changed(text, conf, remedy), remedy.outcome, "{remedy:?}");
        }
    }
}

#[test]
fn a_change_of_a_failed_run_lets_its_request_pass() {
    let run = run_of(GROWING, "");
    let conditions = run.conditions().and_limit(Bytes::mib(120));
    let found = verdict(&run, &conditions, &mut on).unwrap();
    // The allocator releases its cache before a request fails, so that this run fits with retries.
    assert!(found.autopsy.is_none());
    let text = "a = alloc 80 MiB; free a; k = alloc 20 MiB; b = alloc 90 MiB";
    let run = run_of(text, "");
    let conditions = run.conditions().and_limit(Bytes::mib(128));
    let found = verdict(&run, &conditions, &mut on).unwrap();
    let gap = found.answer.gap.as_ref().unwrap();
    let at_failure = gap.at_failure.as_ref().unwrap();
    assert_adds_up(at_failure, "at the failure");
    assert_eq!((at_failure.request, at_failure.parts.free_pieces), (4, Bytes::mib(60)));
    assert_eq!(gap.own.unwrap().peak_reserved, Bytes::mib(170));
    let called = gap.remedies.iter().find(|remedy| remedy.kind == GapRemedyKind::EmptyCache).unwrap();
    assert_eq!((called.request, called.outcome.peak_reserved), (Some(3), Bytes::mib(110)));
    let about = |topic| found.answer.findings.iter().filter(move |finding| finding.about == topic);
    let sentence = &about(FindingTopic::Gap).next().unwrap().text;
    assert_eq!(
        sentence,
        "at the failure 80 MiB are reserved for 20 MiB requested: 60 MiB free pieces between live blocks"
    );
    assert!(about(FindingTopic::Gap).any(|finding| finding.text == called.sentence));
}

#[test]
fn a_small_gap_is_in_the_table_and_has_no_sentence() {
    let run = run_of("a = alloc 400 MiB; b = alloc 11 MiB", "");
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    let gap = found.answer.gap.unwrap();
    assert_eq!((gap.at_peak.parts.sum(), gap.remedies), (Bytes::mib(1), Vec::new()));
    assert!(found.answer.findings.iter().all(|finding| finding.about != FindingTopic::Gap));
}

/// All recorded runs and snapshots of the fixtures.
fn recorded_runs() -> Vec<Run> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures");
    let folders = ["programs", "synthetic", "snapshots", "oom"].map(|folder| fixtures.join(folder));
    let mut files: Vec<_> = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()).collect();
    files.sort_by_key(|file| file.as_ref().unwrap().path());
    let mut runs = Vec::new();
    for file in files {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Pages and archives are unpacked by the command, and have the same snapshots.
        // A pickle of protocol 0 is not read.
        if name.ends_with(".jsonl.gz") || (name.contains(".pickle") && name != "protocol0.pickle.gz") {
            match Run::read(&name, &std::fs::read(&path).unwrap(), &mut on) {
                Ok(read) => runs.extend(read),
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
    runs
}

#[test]
fn the_parts_of_every_recorded_run_add_up_at_its_peak() {
    let (mut count, mut states, mut placed) = (0, 0, 0);
    for run in recorded_runs() {
        if !run.has_requests() {
            let gap = verdict(&run, &run.conditions(), &mut on).unwrap().answer.gap.unwrap();
            assert_adds_up(&gap.at_peak, &run.name);
            states += 1;
            continue;
        }
        let Some(gap) = gap(&run, &run.conditions(), None, &mut on).unwrap() else {
            panic!("{}: nothing is reserved", run.name);
        };
        assert_adds_up(&gap.at_peak, &run.name);
        gap.at_failure.iter().for_each(|moment| assert_adds_up(moment, &run.name));
        if gap.at_failure.is_none() {
            let own = outcome(&run, &run.conditions());
            assert_eq!((gap.at_peak.reserved, gap.own), (own.peak_reserved, Some(own)), "{}", run.name);
        }
        for remedy in &gap.remedies {
            let stack = remedy.request.map(|request| run.stack(usize::try_from(request).unwrap() - 1));
            if stack.is_some_and(|stack| !stack.is_empty()) {
                assert!(remedy.line.is_some() && remedy.occurrence > Some(0), "{}: {remedy:?}", run.name);
                placed += 1;
            }
            assert!(
                remedy.outcome.peak_reserved < gap.own.unwrap().peak_reserved,
                "{}: {remedy:?}",
                run.name
            );
        }
        count += 1;
    }
    assert!(count >= 40 && states >= 1 && placed >= 1, "{count} runs, {states} states, {placed} calls");
}

/// Requests on two streams, of which some go to two memory pools.
fn requests_with_pools() -> impl Strategy<Value = Vec<Request>> {
    let scopes = prop::collection::vec((any::<prop::sample::Index>(), 1_u32..3, 1_usize..12), 0..4);
    (requests(), scopes).prop_map(|(requests, mut scopes)| {
        let mut all = requests;
        // The last scope comes first, so that the places of the others stay; scopes do not overlap.
        scopes.sort_by_key(|(at, ..)| std::cmp::Reverse(at.index(1000)));
        let mut until = all.len();
        for (at, pool, length) in scopes {
            let begin = at.index(1000) * all.len() / 1000;
            let end = (begin + length).min(until);
            if begin < end {
                let pool_id = PoolId { capture: 0, user: pool };
                all.insert(end, Request::LeavePool { pool_id });
                all.insert(begin, Request::EnterPool { pool_id });
                until = begin;
            }
        }
        all
    })
}

const CONFS: [&str; 7] = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "roundup_power2_divisions:4",
    "large_segment_size_mb:64",
    "garbage_collection_threshold:0.6",
    "expandable_segments:True,large_segment_size_mb:64",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_add_up_for_any_run(
        requests in requests_with_pools(),
        conf in prop::sample::select(&CONFS[..]),
        limit in prop::option::of(20_u64..1500),
    ) {
        let run = Run::from_workload("random", Workload::from_requests(requests), conf, Bytes::gib(64));
        let conditions = Conditions { limit: limit.map(Bytes::mib), ..run.conditions() };
        let Some(gap) = gap(&run, &conditions, Some("expandable_segments:True"), &mut on).unwrap() else {
            return Ok(());
        };
        for moment in [Some(&gap.at_peak), gap.at_failure.as_ref()].into_iter().flatten() {
            prop_assert_eq!(moment.requested.get() + moment.parts.sum().get(), moment.reserved.get());
        }
        let own = gap.own.unwrap();
        if gap.at_failure.is_none() {
            prop_assert_eq!(own, outcome(&run, &conditions));
            prop_assert!(gap.at_peak.reserved <= own.peak_reserved);
        }
        for remedy in &gap.remedies {
            prop_assert!(remedy.outcome.peak_reserved < own.peak_reserved);
        }
    }
}

#[test]
fn the_setting_is_the_one_that_the_verdict_recommends() {
    let run = run_of(GROWING, "");
    let settings = blockyard_lab::plain_candidates(&run, &run.conditions());
    let searched = search(&run, &run.conditions(), &settings, &mut |_| std::ops::ControlFlow::Continue(()));
    let searched = searched.unwrap();
    let best = searched.best.unwrap();
    let found = verdict(&run, &run.conditions(), &mut on).unwrap();
    let gap = found.answer.gap.unwrap();
    let setting = gap.remedies.iter().find(|remedy| remedy.kind == GapRemedyKind::Setting).unwrap();
    assert_eq!(setting.conf.as_ref(), Some(&searched.rows[best].conditions.conf));
    assert_eq!(found.answer.setting, setting.conf);
    assert_eq!(gap.at_peak.stream, StreamId::DEFAULT);
}
