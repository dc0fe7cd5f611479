//! The virtual device, with contents.

use blockyard_allocator::CachingAllocator;
use blockyard_device::{DeviceMemory, VirtualDevice};
use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_tests::workload::{EventCounts, RandomWorkload, check_reuse_waits, run};
use blockyard_tests::{SimulatedMemory, conformance};

pub(crate) const PLAN: RandomWorkload = RandomWorkload {
    seed: 1,
    requests: 3000,
    streams: 3,
    largest: Bytes::mib(96),
    most_live: Bytes::mib(512),
};

fn allocator(conf: &str) -> CachingAllocator<SimulatedMemory, EventCounts> {
    let device = SimulatedMemory::new(Bytes::gib(4));
    CachingAllocator::new(
        device,
        AllocatorConfig::parse(conf, Release::default()).unwrap(),
        EventCounts::default(),
    )
}

/// Runs a few workloads and returns the counts of the allocator's events.
fn counted(conf: &str) -> EventCounts {
    let mut allocator = allocator(conf);
    for seed in 1..=4 {
        let report = run(&mut allocator, PLAN.with_seed(seed)).unwrap();
        assert_eq!(report.faults, [], "seed {seed}");
        assert!(report.crossings > 100 && report.reused > 500, "{report:?}");
        allocator.check().unwrap();
    }
    assert_eq!(allocator.stats().reserved_bytes.all.current, 0);
    let device = allocator.device_mut();
    assert_eq!(device.memory_info().unwrap().free, device.total_memory());
    *allocator.sink()
}

#[test]
fn a_device_without_contents_does_what_the_trait_says() {
    let mut device = VirtualDevice::new(Bytes::gib(1));
    conformance::check_segments(&mut device);
    conformance::check_out_of_memory(&mut device);
    conformance::check_virtual_memory(&mut device);
}

#[test]
fn a_device_with_contents_does_what_the_trait_says() {
    let mut device = SimulatedMemory::new(Bytes::gib(1));
    conformance::check_segments(&mut device);
    conformance::check_out_of_memory(&mut device);
    conformance::check_events(&mut device);
    conformance::check_virtual_memory(&mut device);
    conformance::check_data(&mut device);
}

#[test]
fn blocks_keep_their_data_under_default_settings() {
    let counts = counted("");
    assert!(counts.splits > 1000 && counts.merges > 1000 && counts.released > 100, "{counts:?}");
}

#[test]
fn blocks_keep_their_data_under_split_limits_and_garbage_collection() {
    let counts = counted(
        "max_split_size_mb:32,garbage_collection_threshold:0.6,per_process_memory_fraction:0.2,\
         roundup_power2_divisions:4",
    );
    assert!(counts.splits > 1000 && counts.merges > 1000 && counts.released > 100, "{counts:?}");
}

#[test]
fn blocks_keep_their_data_when_memory_is_mapped_anew() {
    let counts = counted("expandable_segments:True");
    assert!(counts.splits > 1000 && counts.mapped > 100 && counts.unmapped > 100, "{counts:?}");
}

#[test]
fn a_block_is_not_used_again_before_its_streams_are_done() {
    for conf in ["", "expandable_segments:True"] {
        assert_eq!(check_reuse_waits(&mut allocator(conf)).unwrap(), []);
    }
}
