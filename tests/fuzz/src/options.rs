//! Settings texts.

use blockyard_allocator::{AllocatorConfig, CachingAllocator};
use blockyard_device::VirtualDevice;
use blockyard_record::{Bytes, Silent, StreamId};

const MIB: u64 = 1 << 20;

/// Reads the bytes as a settings text. What can be read has sane values and reads the same again, with other white space too;
/// whatever came of it, an allocator works with it.
pub fn options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (config, is_sound) = read(&text);
    assert_eq!(config.text(), text);
    check_values(&config);
    check_again(&config, is_sound);
    check_white_space(&text, &config, is_sound);
    check_use(config);
}

/// The settings as they are when PyTorch is loaded, and whether all of the text could be read; settings that stand before an
/// error stay applied. (Later texts may name no other backend.)
fn read(text: &str) -> (AllocatorConfig, bool) {
    match text.parse() {
        Ok(config) => (config, true),
        Err(_) => {
            let mut config = AllocatorConfig::default();
            assert!(config.apply(text).is_err(), "{text:?}");
            (config, false)
        }
    }
}

fn check_values(config: &AllocatorConfig) {
    assert!(config.large_segment_size() > Bytes::mib(10));
    assert!((0.0..1.0).contains(&config.garbage_collection_threshold()));
    assert!((0.0..=1.0).contains(&config.per_process_memory_fraction()));
    assert!(config.roundup_table().iter().all(|divisions| *divisions == 0 || divisions.is_power_of_two()));
    assert_eq!(config.max_split_size_signed() == -1, config.max_split_size() == Bytes::new(u64::MAX));
}

fn check_again(config: &AllocatorConfig, is_sound: bool) {
    let mut again = config.clone();
    assert_eq!(again.apply(config.text()).is_ok(), is_sound);
    assert_eq!(again, *config);
    if is_sound {
        // Settings that return to their defaults do so whatever stood before.
        let mut over: AllocatorConfig =
            "max_split_size_mb:64,garbage_collection_threshold:0.5,roundup_power2_divisions:8"
                .parse()
                .unwrap();
        if over.apply(config.text()).is_ok() {
            assert_eq!(over, *config);
        }
    }
}

/// White space belongs to no token.
fn check_white_space(text: &str, config: &AllocatorConfig, is_sound: bool) {
    let dense: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    let sparse: String = dense.chars().flat_map(|character| [' ', character, '\t']).collect();
    for text in [dense, sparse] {
        let (spaced, is_read) = read(&text);
        assert_eq!(is_read, is_sound, "{text:?}");
        let values = |config: &AllocatorConfig| {
            let sizes =
                [config.max_split_size(), config.max_non_split_rounding(), config.large_segment_size()];
            let shares = [config.garbage_collection_threshold(), config.per_process_memory_fraction()];
            (sizes, shares, config.roundup_table().to_vec(), config.expandable_segments())
        };
        assert_eq!(values(&spaced), values(config), "{text:?}");
    }
}

fn check_use(config: AllocatorConfig) {
    let mut allocator = CachingAllocator::new(VirtualDevice::new(Bytes::mib(256)), config, Silent);
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
