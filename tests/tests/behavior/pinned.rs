//! Pinned host memory, against what programs printed that ran under PyTorch: `torch.cuda.host_memory_stats()` after a tensor was
//! pinned and copied to the device.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use blockyard_allocator::HostAllocator;
use blockyard_device::VirtualHostMemory;
use blockyard_pytorch::host_memory_stats;
use blockyard_record::{Bytes, StreamId};
use blockyard_rules::AllocatorConfig;
use flate2::read::GzDecoder;
use serde_json::Value;

/// What the program of a fixture printed.
fn printed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pinned").join(format!("{name}.json.gz"));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    recorded["stdout"].as_str().unwrap().to_owned()
}

/// Statistics once a tensor of so many bytes was pinned and copied to the device on the default stream.
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
    // `torch.empty(1000, 1000, pin_memory=True)`; the program prints two statistics behind "pinned copy".
    let line = text.lines().skip_while(|line| !line.starts_with("pinned copy")).nth(1).unwrap();
    let found = pinned_and_copied(1000 * 1000 * 4);
    assert_eq!(format!("{} {}", found["allocated_bytes.current"], found["num_host_alloc"]), line);
}
