//! Random workloads in which every block holds its own pattern.

use blockyard_allocator::CachingAllocator;
use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_tests::cuda::{CudaMemory, on_cuda};
use blockyard_tests::workload::{EventCounts, RandomWorkload, check_reuse_waits, run};

const PLAN: RandomWorkload = RandomWorkload {
    seed: 1,
    requests: 2000,
    streams: 3,
    largest: Bytes::mib(96),
    most_live: Bytes::mib(512),
};

fn counted(conf: &str, is_enough: impl Fn(EventCounts) -> bool) {
    on_cuda(|device| {
        let memory = CudaMemory::new(device);
        let mut allocator = CachingAllocator::new(
            memory,
            AllocatorConfig::parse(conf, Release::default()).unwrap(),
            EventCounts::default(),
        );
        for seed in 1..=2 {
            let report = run(&mut allocator, PLAN.with_seed(seed)).unwrap();
            let faults: Vec<String> = report.faults.iter().take(5).map(ToString::to_string).collect();
            assert!(faults.is_empty(), "seed {seed}, {} faults: {faults:#?}", report.faults.len());
            assert!(report.crossings > 50 && report.reused > 200, "{report:?}");
            println!(
                "`{conf}`, seed {seed}: {} blocks, {} bytes filled and checked, {} used by another stream, {} at an address \
                 that was used before",
                report.blocks,
                report.filled.get(),
                report.crossings,
                report.reused
            );
            allocator.check().unwrap();
        }
        let counts = *allocator.sink();
        println!("`{conf}`: {counts:?}");
        assert!(is_enough(counts), "{counts:?}");
    });
}

#[test]
fn blocks_keep_their_data_under_default_settings() {
    counted("", |counts| counts.splits > 300 && counts.merges > 300 && counts.released > 30);
}

#[test]
fn blocks_keep_their_data_under_split_limits_and_garbage_collection() {
    counted("max_split_size_mb:32,garbage_collection_threshold:0.6,roundup_power2_divisions:4", |counts| {
        counts.splits > 300 && counts.merges > 300 && counts.released > 30
    });
}

#[test]
fn blocks_keep_their_data_when_memory_is_mapped_anew() {
    counted("expandable_segments:True", |counts| {
        counts.splits > 300 && counts.mapped > 30 && counts.unmapped > 30
    });
}

#[test]
fn a_block_is_not_used_again_before_its_streams_are_done() {
    for conf in ["", "expandable_segments:True"] {
        on_cuda(|device| {
            let memory = CudaMemory::new(device);
            let mut allocator = CachingAllocator::new(
                memory,
                AllocatorConfig::parse(conf, Release::default()).unwrap(),
                EventCounts::default(),
            );
            assert_eq!(check_reuse_waits(&mut allocator).unwrap(), []);
        });
    }
}
