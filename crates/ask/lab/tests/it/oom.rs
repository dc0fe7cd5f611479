//! Runs that went out of memory on an H200, and what PyTorch did under other settings.

use std::ops::ControlFlow;
use std::path::Path;

use blockyard_lab::{Autopsy, ChangeKind, Conditions, Run, RunSource, Simulation, autopsy, what_if};
use blockyard_pytorch::snapshot::read;
use blockyard_record::{Bytes, OomCause};
use blockyard_rules::Release;
use serde_json::Value;

use crate::on;

const TOTAL: u64 = 150_109_880_320;

/// The limit that each program sets for itself, in MiB.
const CAPS: [(&str, f64); 9] = [
    ("checkerboard_default", 1024.0),
    ("loss_history", 600.0),
    ("views_pin", 2048.0),
    ("long_lived_in_buffers", 800.0),
    ("side_stream_cache", 1000.0),
    ("mem_pool_cache", 1000.0),
    ("one_too_large", 1024.0),
    ("rounding", 1150.0),
    ("many_small", 400.0),
];

/// The snapshots: a program and how its limit was scaled.
pub(crate) const SNAPSHOTS: [(&str, f64); 11] = [
    ("checkerboard_default", 1.0),
    ("loss_history", 1.0),
    ("views_pin", 1.0),
    ("long_lived_in_buffers", 1.0),
    ("side_stream_cache", 0.9),
    ("side_stream_cache", 0.8),
    ("mem_pool_cache", 1.0),
    ("one_too_large", 1.0),
    ("rounding", 1.0),
    ("rounding", 0.8),
    ("many_small", 0.8),
];

fn fixture(name: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures");
    ["oom", "snapshots"].iter().find_map(|kind| std::fs::read(folder.join(kind).join(name)).ok())
}

/// The limit that a program set, as PyTorch computes it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "as PyTorch does"
)]
fn limit(program: &str, scale: f64) -> Bytes {
    let (_, cap) = CAPS.iter().find(|(name, _)| *name == program).unwrap();
    let bytes = (cap * scale) as u64 * (1 << 20);
    let fraction = bytes as f64 / TOTAL as f64;
    Bytes::new((fraction * TOTAL as f64) as u64)
}

pub(crate) fn snapshot(program: &str, scale: f64) -> Run {
    let name = format!("{program}_{:.0}", scale * 100.0);
    let bytes = fixture(&format!("{name}.pickle.gz")).unwrap();
    let file = read(&bytes[..], &mut |_| ControlFlow::Continue(())).unwrap();
    Run::from_snapshot(&name, &file, &mut on).unwrap().remove(0)
}

fn results() -> Vec<Value> {
    let text = String::from_utf8(fixture("results.jsonl").unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn results_of<'a>(results: &'a [Value], program: &str, scale: f64) -> impl Iterator<Item = &'a Value> {
    let is_of =
        move |row: &&Value| row["case"] == program && (row["scale"].as_f64().unwrap() - scale).abs() < 1e-9;
    results.iter().filter(is_of)
}

#[test]
fn from_each_snapshot_every_setting_does_what_it_did_on_the_device() {
    let results = results();
    let mut compared = 0;
    for (program, scale) in SNAPSHOTS {
        let run = snapshot(program, scale);
        let allocations = run.allocations() as u64;
        for row in results_of(&results, program, scale) {
            let conf = row["conf"].as_str().unwrap();
            let conditions = Conditions::with_conf(conf).and_limit(limit(program, scale));
            let found = what_if(&run, &[conditions], 0, &mut on).unwrap();
            let outcome = found.rows[0].outcome_at_lowest().unwrap();
            let name = format!("{program} x {scale} under {conf:?}");
            let before = row["allocs_before"].as_u64().unwrap();
            // The snapshot ends with the request that failed: a run that got further passes it.
            let has_failed = row["oom"].as_bool().unwrap() && before < allocations;
            assert_eq!(outcome.ooms > 0, has_failed, "{name}: {:?}", outcome.first_oom);
            if let Some(oom) = &outcome.first_oom {
                assert_eq!(oom.allocations_before, before, "{name}");
                assert_eq!(outcome.peak_allocated.get(), row["peak_allocated"].as_u64().unwrap(), "{name}");
                assert_eq!(outcome.device_allocs, row["device_allocs"].as_u64().unwrap(), "{name}");
                assert_eq!(outcome.alloc_retries, row["retries"].as_u64().unwrap(), "{name}");
            }
            if has_failed || before == allocations {
                assert_eq!(outcome.peak_reserved.get(), row["peak_reserved"].as_u64().unwrap(), "{name}");
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 66);
}

/// Under the limit that a snapshot implies, each outcome is that of the H200 or depends on the limit.
#[test]
fn under_the_limit_that_the_snapshot_implies_every_answer_is_the_devices_or_depends_on_the_limit() {
    let results = results();
    let (mut compared, mut depending) = (0, Vec::new());
    for (program, scale) in SNAPSHOTS {
        let run = snapshot(program, scale);
        let allocations = run.allocations() as u64;
        for device in results_of(&results, program, scale) {
            let conf = device["conf"].as_str().unwrap();
            let found = what_if(&run, &[Conditions::with_conf(conf)], 0, &mut on).unwrap();
            let row = &found.rows[0];
            let name = format!("{program} x {scale} under {conf:?}");
            // The snapshot ends with the request that failed: a run that got further passes it.
            let has_failed =
                device["oom"].as_bool().unwrap() && device["allocs_before"].as_u64().unwrap() < allocations;
            if row.depends_on_limit() {
                assert!(row.dependence().unwrap().starts_with("depends on the limit: between "), "{name}");
                assert!(!row.fits(), "{name}");
                depending.push(name.clone());
            } else {
                assert_eq!(row.fits(), !has_failed, "{name}: {row:?}");
                compared += 1;
            }
            // The requests that the run itself passed are known at each limit.
            assert!(!found.baseline.fits() && !found.baseline.depends_on_limit(), "{name}");
            let own = found.baseline.outcome_at_lowest().unwrap();
            let message = &own.first_oom.as_ref().unwrap().message;
            assert!(message.starts_with("out of memory in a replay where at most "), "{name}: {message}");
            assert_eq!(own.first_oom.as_ref().unwrap().request, run.request_count(), "{name}");
            if conf == run.conf {
                assert_eq!(row, &found.baseline, "{name}");
            }
        }
    }
    assert_eq!((compared, depending.len()), (61, 5), "{depending:?}");
}

fn examined(program: &str, scale: f64) -> Autopsy {
    let run = snapshot(program, scale);
    let conditions = run.conditions().and_limit(limit(program, scale));
    autopsy(&run, &conditions, &mut on).unwrap().unwrap()
}

#[test]
fn the_cause_of_each_is_the_one_that_its_program_was_written_for() {
    let causes = SNAPSHOTS.map(|(program, scale)| (program, examined(program, scale).cause));
    assert_eq!(
        causes,
        [
            ("checkerboard_default", OomCause::FragmentationByLiveBlocks),
            ("loss_history", OomCause::LiveBytesAtLimit),
            ("views_pin", OomCause::LiveBytesAtLimit),
            ("long_lived_in_buffers", OomCause::LiveBytesAtLimit),
            ("side_stream_cache", OomCause::CachedInAnotherStream),
            ("side_stream_cache", OomCause::CachedInAnotherStream),
            ("mem_pool_cache", OomCause::CachedInPrivatePool),
            ("one_too_large", OomCause::RequestAboveLimit),
            ("rounding", OomCause::RoundingBySetting),
            ("rounding", OomCause::LiveBytesAtLimit),
            ("many_small", OomCause::LiveBytesAtLimit),
        ]
    );
}

#[test]
fn settings_that_helped_on_the_device_are_proved_and_those_that_did_not_are_in_vain() {
    let results = results();
    for (program, scale) in SNAPSHOTS {
        let allocations = snapshot(program, scale).allocations() as u64;
        let found = examined(program, scale);
        for (change, is_helpful) in found
            .failure
            .changes
            .iter()
            .map(|change| (change, true))
            .chain(found.failure.in_vain.iter().map(|change| (change, false)))
        {
            let ChangeKind::Setting(conf) = &change.kind else { continue };
            assert_eq!(change.proved, is_helpful);
            let mut rows = results_of(&results, program, scale);
            let Some(row) = rows.find(|row| row["conf"] == conf.as_str()) else { continue };
            let passes =
                !row["oom"].as_bool().unwrap() || row["allocs_before"].as_u64().unwrap() >= allocations;
            assert_eq!(is_helpful, passes, "{program} x {scale} under {conf:?}");
        }
    }
}

#[test]
fn live_blocks_are_named_by_the_stacks_that_asked_for_them() {
    let found = examined("checkerboard_default", 1.0);
    assert_eq!(found.failure.request.stack.first().map(String::as_str), Some("buf (train.py:12)"));
    let stacks = found.failure.pinned_by.iter().flat_map(|segment| &segment.blocks).map(|block| &block.stack);
    assert!(stacks.clone().count() > 0);
    for stack in stacks {
        assert!(stack.iter().any(|frame| frame.contains("checkerboard_default")), "{stack:?}");
    }
}

#[test]
fn a_limit_that_nobody_names_is_bounded_by_what_the_trace_shows() {
    for (program, scale) in SNAPSHOTS {
        let run = snapshot(program, scale);
        let bounds = run.implied_limit().unwrap();
        let limit = limit(program, scale);
        assert!(bounds.low <= limit && limit <= bounds.high, "{program} x {scale}: {bounds:?}, {limit}");
        let found = autopsy(&run, &run.conditions(), &mut on).unwrap().unwrap();
        assert_eq!(found.failure.request.request, run.request_count(), "{program} x {scale}");
    }
}

#[test]
fn a_request_that_a_free_block_would_have_served_is_recognized() {
    let bytes = fixture("late_free.pickle.gz").unwrap();
    let file = read(&bytes[..], &mut |_| ControlFlow::Continue(())).unwrap();
    let run = Run::from_snapshot("late_free", &file, &mut on).unwrap().remove(0);
    let found = autopsy(&run, &run.conditions(), &mut on).unwrap().unwrap();
    assert_eq!(found.cause, OomCause::PoolNotSearchedAgain);
    assert_eq!(found.failure.memory.largest_cached_here, Bytes::mib(280));
    assert_eq!(found.failure.request.size, Bytes::mib(200));
    assert!(found.failure.sentence.contains("issue 189504"), "{}", found.failure.sentence);
    let change = found.failure.changes.iter().find(|change| change.kind == ChangeKind::Synchronize).unwrap();
    assert!(change.proved);
}

/// Parameters and states of an optimizer cannot be freed: a program that says which these are gets no advice
/// to free them.
#[test]
fn what_a_training_cannot_free_is_in_no_set_of_tensors_to_free() {
    let bytes = fixture("checkerboard_default_100.pickle.gz").unwrap();
    let freed = |lasting: Vec<u32>| {
        let simulation = Box::new(Simulation {
            program: String::new(),
            arguments: String::new(),
            gpu: "H200".to_owned(),
            total: Bytes::new(TOTAL),
            capacity: Bytes::new(TOTAL),
            release: Release::default(),
            caveats: Vec::new(),
            failed_lines: Vec::new(),
            unfreeable: lasting,
        });
        let source = RunSource::Simulated { name: "program.py".to_owned(), bytes: bytes.clone(), simulation };
        let run = source.runs(&mut on).unwrap().remove(0);
        let found = autopsy(&run, &run.conditions(), &mut on).unwrap().unwrap();
        let changes = found.failure.changes.iter().chain(&found.failure.in_vain);
        let requests = changes.filter_map(|change| match &change.kind {
            ChangeKind::FreeTensors { requests, .. } => Some(requests.clone()),
            _ => None,
        });
        requests.flatten().collect::<Vec<u64>>()
    };
    assert!(!freed(Vec::new()).is_empty(), "without them there are tensors to free");
    assert_eq!(freed((0..100_000).collect()), Vec::<u64>::new());
}
