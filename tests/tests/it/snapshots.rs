//! Snapshots of PyTorch, replayed by our allocator and compared placement by placement.

use std::ops::ControlFlow;

use blockyard_allocator::CachingAllocator;
use blockyard_device::VirtualDevice;
use blockyard_pytorch::snapshot::{self, SnapshotFile, SnapshotSettings};
use blockyard_record::{Bytes, Recorder, RunInfo, StepOutcome, StreamId, TraceAction};
use blockyard_replay::{Certificate, certify};
use blockyard_rules::{AllocatorConfig, Dialect, Release};

fn open(name: &str) -> SnapshotFile {
    let end = if name.starts_with("small") { "pickle" } else { "pickle.gz" };
    let path = format!("{}/fixtures/snapshots/{name}.{end}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).expect("the fixture is there");
    snapshot::read(bytes.as_slice(), &mut |_| ControlFlow::Continue(())).expect("the fixture is a snapshot")
}

fn certificate(file: &SnapshotFile, place: usize) -> Certificate {
    certify(file, place, &mut |_| ControlFlow::Continue(())).expect("nobody broke it off")
}

#[track_caller]
fn check_identical(name: &str, placements: u64) {
    let file = open(name);
    let found = certificate(&file, 0).answer;
    println!("{name}: {} {:?} {:?}", found.sentence, found.first_difference, found.reasons);
    assert!(found.is_complete, "{name}: {:?} {:?}", found.first_difference, found.reasons);
    assert_eq!((found.placements, found.identical), (placements, placements), "{name}");
    assert_eq!(found.first_difference, None);
}

#[test]
fn programs_are_identical() {
    check_identical("resnet50_amp", 4336);
    check_identical("rank0", 3117);
    check_identical("rank1", 3117);
}

#[test]
fn runs_that_failed_are_identical() {
    check_identical("checkerboard_default_100", 52);
    check_identical("long_lived_in_buffers_100", 180);
    check_identical("mem_pool_cache_100", 15);
    check_identical("side_stream_cache_80", 19);
    check_identical("rounding_100", 28);
}

#[test]
fn one_program_is_identical_under_2_11_and_2_15() {
    check_identical("small_2.11", 3);
    check_identical("small_2.15", 4);
    // The program under 2.15 ran one more statement, which copies to the host; everything else is the same.
    let [old, new] = ["small_2.11", "small_2.15"].map(open);
    let sizes = |file: &SnapshotFile| -> Vec<u64> {
        let entries = file.devices[0].trace.iter().filter(|entry| entry.entry.action == TraceAction::Alloc);
        entries.map(|entry| entry.entry.size.get()).collect()
    };
    assert_eq!(sizes(&old), [12 << 20, 400, 4 << 20]);
    assert_eq!(sizes(&new), [12 << 20, 400, 20 << 20, 4 << 20]);
}

#[test]
fn host_memory_has_no_certificate_of_a_gpus_allocator() {
    let file = open("small_2.15");
    let place = file.host_place().expect("the program pinned memory");
    let found = certificate(&file, place).answer;
    assert_eq!((found.sentence.as_str(), found.placements), ("nothing to compare", 0));
    assert_eq!(found.reasons, ["not replayed: host (pinned) memory has another allocator than a GPU"]);
}

/// A run under these rules: its snapshot, written and read again.
fn written_and_read(release: Release, conf: &str) -> SnapshotFile {
    let capacity = Bytes::gib(8);
    let info = RunInfo { capacity, max_split_size: -1, release, conf: conf.to_owned(), ..RunInfo::default() };
    let config = AllocatorConfig::parse(conf, release).expect("the settings are PyTorch's");
    let mut ours = CachingAllocator::new(VirtualDevice::new(capacity), config, Recorder::new(info));
    let mut held = Vec::new();
    for index in 0..200_usize {
        let size = Bytes::new([300, 512, 1000, 4096, 700_000, 1 << 20, 3 << 20, 11 << 20][index % 8]);
        held.push(ours.allocate(size, StreamId::DEFAULT).expect("the device is large"));
        if index % 3 == 0 {
            let oldest = held.remove(held.len() / 2);
            ours.free(oldest).expect("it was allocated");
        }
    }
    let mut recorder = ours.into_sink();
    recorder.finish_step(StepOutcome::Done);
    let recording = recorder.finish().expect("the run is short");
    drop(held);
    let mut bytes = Vec::new();
    let made = SnapshotFile::from_recordings(&[(0, &recording)]).expect("a recording adds up");
    made.write_pickle(&mut bytes).expect("memory is large");
    snapshot::read(bytes.as_slice(), &mut |_| ControlFlow::Continue(())).expect("we wrote a snapshot")
}

#[test]
fn the_sizes_of_blocks_tell_the_dialect_and_its_rules_replay_it() {
    for conf in ["", "expandable_segments:True"] {
        for dialect in [Dialect::Cuda, Dialect::Ascend] {
            let mut file = written_and_read(Release::V2_11.with_dialect(dialect), conf);
            assert_eq!(file.dialect, dialect);
            // Files of torch_npu have no settings.
            file.settings = SnapshotSettings::default();
            let found = certificate(&file, 0).answer;
            // A recording does not keep the stale request of a free block that Ascend's alignment leaves.
            let is_known = conf.is_empty() || dialect == Dialect::Cuda;
            assert!(found.is_complete || !is_known, "{dialect:?} {conf}: {:?}", found.first_difference);
            assert_eq!((found.placements, found.identical), (200, 200));
            let names_ascend = found.notes.iter().any(|note| note.contains("Ascend"));
            assert_eq!(names_ascend, dialect == Dialect::Ascend, "{:?}", found.notes);
            let other = if dialect == Dialect::Cuda { Dialect::Ascend } else { Dialect::Cuda };
            file.dialect = other;
            assert!(certificate(&file, 0).answer.identical < 200, "{dialect:?} is not {other:?}");
        }
    }
}

#[test]
fn a_trace_that_begins_late_is_identical_from_there_on() {
    let whole = open("resnet50_amp");
    for cut in [333, 5000] {
        let mut file = whole.clone();
        file.devices[0].trace = whole.devices[0].trace.from(cut);
        let found = certificate(&file, 0).answer;
        assert!(found.is_complete, "from {cut}: {:?}", found.first_difference);
        assert_eq!(found.identical, found.placements, "from {cut}");
    }
}

#[test]
fn the_first_difference_is_in_words_with_its_reasons() {
    let mut file = open("checkerboard_default_100");
    // The run was made without this setting, as by a plug-in that splits later.
    file.settings.conf = "max_split_size_mb:30".to_owned();
    let found = certificate(&file, 0).answer;
    assert!(!found.is_complete && found.identical < found.placements);
    assert!(found.sentence.starts_with("differs: "), "{}", found.sentence);
    let difference = found.first_difference.expect("there is a first one");
    assert!(difference.to_string().contains("PyTorch"), "{difference}");
    assert!(found.reasons.iter().any(|reason| reason.contains("another release of PyTorch")));
}
