//! Pinned host memory, compared with the output of programs that ran under PyTorch:
//! `torch.cuda.host_memory_stats()` after a tensor was pinned and copied to the device.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use blockyard_allocator::HostAllocator;
use blockyard_device::VirtualHostMemory;
use blockyard_pytorch::host_memory_stats;
use blockyard_record::{Bytes, StreamId};
use blockyard_rules::{AllocatorConfig, Release};
use flate2::read::GzDecoder;
use serde_json::Value;

/// The output of the program of a fixture.
fn printed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pinned").join(format!("{name}.json.gz"));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    recorded["stdout"].as_str().unwrap().to_owned()
}

/// The statistics after a tensor of this many bytes was pinned and copied to the device on the default
/// stream.
fn pinned_and_copied(bytes: u64) -> BTreeMap<String, i64> {
    let host = VirtualHostMemory::new(Bytes::gib(4));
    let mut allocator = HostAllocator::new(host, AllocatorConfig::default().pinned());
    let tensor = allocator.allocate(Bytes::new(bytes)).unwrap();
    allocator.record_stream(&tensor, StreamId::DEFAULT).unwrap();
    allocator.memory_mut().advance_all();
    let stats = host_memory_stats(&allocator.stats()).into_iter().collect();
    allocator.free(tensor).unwrap();
    stats
}

#[test]
fn a_pinned_tensor_counts_as_under_pytorch() {
    let text = printed("16_pinned");
    let line = text.lines().find(|line| line.starts_with('{')).unwrap();
    let expected: BTreeMap<String, i64> = serde_json::from_str(&line.replace('\'', "\"")).unwrap();
    assert!(expected.len() >= 6, "{expected:?}");
    // `torch.randn(3, 1000, 1000).pin_memory()`
    let mut found = pinned_and_copied(3 * 1000 * 1000 * 4);
    found.retain(|name, _| name.ends_with("current") || name.starts_with("num"));
    assert_eq!(found, expected);
}

#[test]
fn a_tensor_made_in_pinned_memory_takes_a_power_of_two() {
    let text = printed("memory_api");
    // `torch.empty(1000, 1000, pin_memory=True)`; the program prints two statistics after "pinned copy".
    let line = text.lines().skip_while(|line| !line.starts_with("pinned copy")).nth(1).unwrap();
    let found = pinned_and_copied(1000 * 1000 * 4);
    assert_eq!(format!("{} {}", found["allocated_bytes.current"], found["num_host_alloc"]), line);
}

#[test]
fn sizes_above_the_thresholds_are_those_of_pytorch_2_15() {
    const CONF: &str = "pinned_max_round_threshold_mb:1,pinned_max_cached_size_mb:4";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pinned/thresholds_2.15.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let config = AllocatorConfig::parse(CONF, Release::V2_15).unwrap();
    let mut allocator = HostAllocator::new(VirtualHostMemory::new(Bytes::gib(1)), config.pinned());
    let mut kept = BTreeMap::new();
    let mut lines = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let printed = match words[..] {
            ["alloc", name, size, ..] => {
                let size = Bytes::new(size.parse().unwrap());
                kept.insert(name.to_owned(), allocator.allocate(size).unwrap());
                &words[3..]
            }
            ["free", name, ..] => {
                allocator.free(kept.remove(name).unwrap()).unwrap();
                &words[3..]
            }
            _ => &words[1..],
        };
        let stats = allocator.stats();
        let found = [
            stats.allocated_bytes.current,
            stats.allocated_bytes.peak,
            stats.active_bytes.current,
            stats.allocations.current,
            stats.active_requests.current,
            stats.num_host_alloc,
            stats.num_host_free,
        ];
        assert_eq!(found.map(|number| number.to_string())[..], *printed, "{line}");
        lines += 1;
    }
    assert_eq!(lines, 25);
}
