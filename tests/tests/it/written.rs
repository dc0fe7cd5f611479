//! Statistics and snapshots as each release of PyTorch writes them, compared with the files that PyTorch
//! 2.11.0 and 2.15.0 wrote for the same program (`fixtures/written/written.py`).

use std::collections::BTreeMap;
use std::path::Path;

use blockyard_allocator::{CachingAllocator, PoolOptions};
use blockyard_device::VirtualDevice;
use blockyard_pytorch::memory_stats_in;
use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_record::{Bytes, Recorder, Recording, RunInfo, StepOutcome, StreamId};
use blockyard_rules::{AllocatorConfig, Release};
use serde_json::{Value, json};

fn written(release: Release) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/written/{release}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The requests of `written.py`: its statistics at the end, and its recording.
fn run(release: Release) -> (Vec<(String, i64)>, Recording) {
    let config = AllocatorConfig::of(release);
    let capacity = Bytes::gib(80);
    let info = RunInfo { capacity, max_split_size: -1, release, ..RunInfo::default() };
    let mut ours = CachingAllocator::new(VirtualDevice::new(capacity), config, Recorder::new(info));
    let x = ours.allocate(Bytes::mib(3), StreamId::DEFAULT).unwrap();
    let pool = ours.create_pool(PoolOptions::default());
    ours.begin_allocate_to_pool(pool, None).unwrap();
    let y = ours.allocate(Bytes::mib(12), StreamId::DEFAULT).unwrap();
    let z = ours.allocate(Bytes::new(1000), StreamId::DEFAULT).unwrap();
    ours.end_allocate_to_pool(pool).unwrap();
    ours.free(x).unwrap();
    ours.free(z).unwrap();
    ours.allocate(Bytes::new(1 << 45), StreamId::DEFAULT).unwrap_err();
    let stats = memory_stats_in(release, &ours.stats(), ours.reserved_by_private_pools());
    // The program still holds `y`.
    let _ = y;
    let mut recorder = ours.into_sink();
    recorder.finish_step(StepOutcome::Done);
    (stats, recorder.finish().unwrap())
}

#[test]
fn statistics_are_those_of_the_release() {
    for (release, count) in [
        (Release::V2_6, 122),
        (Release::V2_7, 122),
        (Release::V2_8, 122),
        (Release::V2_9, 122),
        (Release::V2_10, 122),
        (Release::V2_11, 122),
        (Release::V2_15, 135),
    ] {
        let expected: BTreeMap<String, i64> =
            serde_json::from_value(written(release)["stats"].clone()).unwrap();
        assert_eq!(expected.len(), count);
        let (found, _) = run(release);
        assert!(found.is_sorted());
        assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected, "{release}");
    }
    assert_eq!(run(Release::V2_12).0.len(), 123);
}

/// A setting as Python's `json` writes it.
fn python(name: &str, value: &str) -> Value {
    match (name, value) {
        ("roundup_power2_divisions", _) => value
            .split(',')
            .map(|pair| pair.split_once(':').unwrap())
            .map(|(power, divisions)| (power.to_owned(), json!(divisions.parse::<u64>().unwrap())))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        ("PYTORCH_CUDA_ALLOC_CONF", _) => json!(value),
        ("garbage_collection_threshold", _) => json!(value.parse::<f64>().unwrap()),
        (_, "True") => json!(true),
        (_, "False") => json!(false),
        _ => json!(value.parse::<i64>().unwrap()),
    }
}

#[test]
fn snapshots_are_written_as_the_release_writes_them() {
    for release in Release::ALL.into_iter().filter(|release| !matches!(release.minor(), 12..=14)) {
        let expected = written(release);
        let (_, recording) = run(release);
        let mut made = SnapshotFile::from_recordings(&[(0, &recording)]).unwrap();
        made.list_settings(release);
        let mut bytes = Vec::new();
        made.write_pickle(&mut bytes).unwrap();
        let has_host = expected["keys"].as_array().unwrap().contains(&json!("host_segments"));
        assert_eq!(bytes.windows(13).any(|part| part == b"host_segments"), has_host, "{release}");
        for key in ["user_metadata", "compile_context"] {
            let has_key = expected["entries"][0].get(key).is_some();
            assert_eq!(bytes.windows(key.len()).any(|part| part == key.as_bytes()), has_key, "{release}");
        }
        let settings = made.settings.values.iter().map(|(name, value)| (name.clone(), python(name, value)));
        assert_eq!(Value::Object(settings.collect()), expected["settings"], "{release}");
        let entries = expected["entries"].as_array().unwrap();
        let trace = &made.devices[0].trace;
        assert_eq!(trace.len(), entries.len(), "{release}");
        for (entry, expected) in trace.iter().zip(entries) {
            assert_eq!(entry.entry.action.name(), expected["action"], "{release}");
            assert_eq!(json!(entry.entry.size.get()), expected["size"], "{release}: {expected}");
            let pool = made.contexts[entry.context as usize].pool_id;
            let pool = pool.map_or(Value::Null, |pool| json!([pool.capture, pool.user]));
            assert_eq!(pool, *expected.get("pool_id").unwrap_or(&Value::Null), "{release}: {expected}");
        }
        // The file says its release again.
        let read =
            blockyard_pytorch::snapshot::read(&bytes[..], &mut |_| std::ops::ControlFlow::Continue(()))
                .unwrap();
        let told = if release.minor() < 11 { Release::V2_11 } else { release };
        assert_eq!(read.release(), told);
        assert_eq!(read.host_place(), None, "lists without an entry are no memory");
    }
}
