//! Settings texts.

use blockyard_allocator::BackendAllocator;
use blockyard_device::VirtualDevice;
use blockyard_record::{Bytes, NullSink, StreamId};
use blockyard_rules::{AllocatorConfig, Environment, Release};

const MIB: u64 = 1 << 20;

/// Reads the bytes as a settings text, as a process finds it and as it is applied later. A text that can be
/// read has sane values and reads the same again, also with other white space; whatever the result, an
/// allocator works with it.
pub fn options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let found = AllocatorConfig::parse(&text, Release::default());
    if let Ok(config) = &found {
        assert_eq!(config.text(), text);
        assert_eq!(AllocatorConfig::parse(&text, Release::default()).as_ref(), Ok(config));
        check_values(config);
        check_again(config);
    }
    let mut applied = AllocatorConfig::default();
    let is_sound = applied.apply(&text).is_ok();
    assert!(found.is_ok() || !is_sound, "an error at first is one later");
    check_values(&applied);
    check_over_others(&applied, is_sound);
    check_white_space(&text, &applied, is_sound);
    check_environment(&text);
    check_use(applied);
    if let Ok(config) = found {
        check_use(config);
    }
}

fn check_values(config: &AllocatorConfig) {
    assert!(config.large_segment_size() > Bytes::mib(10));
    assert!((0.0..1.0).contains(&config.garbage_collection_threshold()));
    assert!((0.0..=1.0).contains(&config.per_process_memory_fraction()));
    assert!(config.roundup_table().iter().all(|divisions| *divisions == 0 || divisions.is_power_of_two()));
    assert_eq!(config.max_split_size_signed() == -1, config.max_split_size() == Bytes::new(u64::MAX));
    let threads = config.pinned().register_threads;
    assert!(threads.is_power_of_two() && threads <= 128);
}

/// Settings of the environment can be applied once more, and change nothing.
fn check_again(config: &AllocatorConfig) {
    let mut again = config.clone();
    again.apply(config.text()).unwrap();
    assert_eq!(values(&again), values(config));
}

/// Settings that return to their defaults do so whatever the settings before were.
fn check_over_others(config: &AllocatorConfig, is_sound: bool) {
    let mut over = AllocatorConfig::default();
    over.apply("max_split_size_mb:64,garbage_collection_threshold:0.5,roundup_power2_divisions:8").unwrap();
    assert_eq!(over.apply(config.text()).is_ok(), is_sound);
    if is_sound {
        assert_eq!(values(&over), values(config));
    }
}

/// White space belongs to no token. White space is defined by C, since PyTorch asks C.
fn check_white_space(text: &str, config: &AllocatorConfig, is_sound: bool) {
    let is_space = |character: char| matches!(character, ' ' | '\t'..='\r');
    let dense: String = text.chars().filter(|character| !is_space(*character)).collect();
    let sparse: String = dense.chars().flat_map(|character| [' ', character, '\t']).collect();
    for text in [dense, sparse] {
        let mut spaced = AllocatorConfig::default();
        assert_eq!(spaced.apply(&text).is_ok(), is_sound, "{text:?}");
        assert_eq!(values(&spaced), values(config), "{text:?}");
    }
}

/// All but the text and the warnings.
fn values(config: &AllocatorConfig) -> impl PartialEq + std::fmt::Debug + use<> {
    let sizes = [config.max_split_size(), config.max_non_split_rounding(), config.large_segment_size()];
    let shares = [config.garbage_collection_threshold(), config.per_process_memory_fraction()];
    let switches = [
        config.expandable_segments(),
        config.release_lock_on_device_malloc(),
        config.graph_capture_record_stream_reuse(),
        config.is_caching(),
    ];
    (sizes, shares, switches, config.roundup_table().to_vec(), config.pinned(), config.backend())
}

/// Reads the lines of the text as the values of the environment variables.
fn check_environment(text: &str) {
    let mut lines = text.split('\n').map(ToOwned::to_owned);
    let environment = Environment {
        alloc_conf: lines.next(),
        hip_alloc_conf: lines.next(),
        no_cuda_memory_caching: lines.next(),
        ..Environment::default()
    };
    match environment.config() {
        Ok(config) => check_values(&config),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_use(config: AllocatorConfig) {
    let mut allocator = BackendAllocator::new(VirtualDevice::new(Bytes::mib(256)), config, NullSink);
    let mut live = Vec::new();
    for size in [1, 513, MIB, MIB + 1, 3 * MIB + 7, 10 * MIB, 21 * MIB, 33 * MIB, (1 << 60) - 1] {
        live.extend(allocator.allocate(Bytes::new(size), StreamId::DEFAULT));
        allocator.check().unwrap();
    }
    for allocation in live.drain(..) {
        allocator.free(allocation).unwrap();
        allocator.check().unwrap();
    }
    for size in [30 * MIB, 2 * MIB] {
        live.extend(allocator.allocate(Bytes::new(size), StreamId::DEFAULT));
        allocator.check().unwrap();
    }
    allocator.empty_cache().unwrap();
    allocator.check().unwrap();
    drop(live);
}
