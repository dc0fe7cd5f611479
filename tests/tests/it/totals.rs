//! A run that keeps no history has the same totals as the recorded run.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use blockyard_device::VirtualDevice;
use blockyard_pytorch::RecordedRun;
use blockyard_record::{Bytes, Recording, StepOutcome};
use blockyard_replay::{
    PreparedWorkload, RunError, RunSettings, Totals, device_of, open, run, sweep, totals, verify,
};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::Workload;

fn recordings() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let files = ["programs", "synthetic"].map(|folder| std::fs::read_dir(fixtures.join(folder)).unwrap());
    files.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

fn outcomes(recording: &Recording) -> (u64, u64, u64) {
    let count = |is: fn(&StepOutcome) -> bool| {
        recording.failed_steps().iter().filter(|(_, outcome)| is(outcome)).count() as u64
    };
    (
        count(|outcome| matches!(outcome, StepOutcome::OutOfMemory(_))),
        count(|outcome| matches!(outcome, StepOutcome::Refused(_))),
        count(|outcome| matches!(outcome, StepOutcome::Skipped(_))),
    )
}

#[track_caller]
fn check_same(totals: &Totals, recording: &Recording, name: &str) {
    let end = recording.state_at(recording.event_count()).expect("it adds up");
    assert_eq!(totals.stats, end.reported_stats(), "{name}");
    let Totals { out_of_memory, refused, skipped, .. } = *totals;
    assert_eq!((out_of_memory, refused, skipped), outcomes(recording), "{name}");
}

/// Whether the recording can be replayed; if so, its totals are compared.
#[track_caller]
fn check(recorded: &RecordedRun, name: &str) -> bool {
    let mut go_on = |_| ControlFlow::Continue(());
    let Ok(config) = AllocatorConfig::parse(&recorded.meta.conf, recorded.meta.release()) else {
        return false;
    };
    let Ok(verified) = verify(recorded, &mut go_on) else { return false };
    let settings = RunSettings { title: String::new(), config, capacity: recorded.meta.total_memory };
    let replayable = open(recorded, &settings, &mut go_on).unwrap();
    let inferred = &replayable.inferred;
    let plan = PreparedWorkload::beginning_with(&inferred.workload, inferred.start.clone())
        .with_placements(inferred.placements.clone());
    let device = device_of(&replayable.run, inferred);
    let totals = totals(&plan, &settings.config, device, &mut go_on).unwrap();
    check_same(&totals, &verified.recording, name);
    true
}

#[test]
fn the_totals_of_recordings_are_those_of_their_replays() {
    let compared = recordings().into_iter().filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        check(&RecordedRun::read(&std::fs::read(path).unwrap()).unwrap(), &name)
    });
    let compared = compared.count();
    assert!(compared >= 28, "{compared} recordings were compared");
}

#[test]
fn what_was_there_before_a_recording_counts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs/gnn_random.jsonl.gz");
    let mut recorded = RecordedRun::read(&std::fs::read(path).unwrap()).unwrap();
    recorded.trace.as_mut().unwrap().drain(..4000);
    recorded.checkpoints.clear();
    assert!(check(&recorded, "gnn_random without its beginning"));
}

const FAILING: &str = "
    repeat 40 as i {
        x[i] = alloc 700 MiB
        y[i] = alloc 3 KiB
    }
    repeat 40 as i { free x[i] }
    z = alloc 900 MiB
    t = alloc 4 EiB
    free t
    set_fraction 0.5
    w = alloc 2 GiB
    record_stream w default
    free w
    empty_cache
    reset_peak
    v = alloc 5 MiB
    reset_accumulated
    free v, z
";

#[test]
fn failures_count_and_what_they_leave_is_skipped() {
    let workload = Workload::parse(FAILING).unwrap();
    let texts = ["", "max_split_size_mb:64", "expandable_segments:True", "roundup_power2_divisions:4"];
    let configs = texts.map(|text| AllocatorConfig::parse(text, Release::default()).unwrap());
    let capacity = Bytes::gib(8);
    let plan = PreparedWorkload::new(&workload);
    let mut reported = Vec::new();
    let swept = sweep(&plan, &configs, || VirtualDevice::new(capacity), &mut |progress| {
        reported.push(progress.done);
        ControlFlow::Continue(())
    });
    for ((config, totals), text) in configs.into_iter().zip(swept.unwrap()).zip(texts) {
        let settings = RunSettings { title: String::new(), config, capacity };
        let recording = run(&workload, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
        check_same(&totals, &recording, text);
        assert!(totals.out_of_memory > 0 && totals.skipped > 0, "{totals:?}");
    }
    assert_eq!(reported, [0, 1, 2, 3].map(|index| index * plan.len() as u64));
}

#[test]
fn a_run_can_be_broken_off() {
    let workload = Workload::parse("repeat 10000 as i { x[i] = alloc 1 KiB }").unwrap();
    let plan = PreparedWorkload::new(&workload);
    let mut asked = 0;
    let result = totals(&plan, &AllocatorConfig::default(), VirtualDevice::new(Bytes::gib(1)), &mut |_| {
        asked += 1;
        if asked == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(result, Err(RunError::Cancelled)));
}
