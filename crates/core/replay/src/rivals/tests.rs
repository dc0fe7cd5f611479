//! Properties that hold for every allocator, and behavior that is known of each one.

use std::collections::BTreeMap;

use super::{Arena, Bfc, Buddy, NoCache, RivalAllocation, RivalAllocator, Stitching, Tlsf};
use blockyard_record::{Bytes, StreamId};
use proptest::prelude::*;

const CAPACITY: Bytes = Bytes::gib(1);

fn all() -> Vec<(&'static str, Box<dyn RivalAllocator>)> {
    vec![
        ("bfc", Box::new(Bfc::new(CAPACITY))),
        ("tlsf", Box::new(Tlsf::new(CAPACITY))),
        ("buddy", Box::new(Buddy::new(CAPACITY))),
        ("arena", Box::new(Arena::new(CAPACITY))),
        ("stitching", Box::new(Stitching::new(CAPACITY))),
        ("no cache", Box::new(NoCache::new(CAPACITY))),
    ]
}

const DEFAULT: StreamId = StreamId::DEFAULT;

proptest! {
    #[test]
    fn blocks_never_overlap_and_the_sums_hold(
        steps in prop::collection::vec((any::<bool>(), 1_u64..40_000_000, 0_u64..2, any::<prop::sample::Index>()), 1..120),
    ) {
        for (name, mut allocator) in all() {
            let mut live: BTreeMap<u64, RivalAllocation> = BTreeMap::new();
            for (is_free, size, stream, which) in &steps {
                if *is_free && !live.is_empty() {
                    let addr = *live.keys().nth(which.index(live.len())).unwrap();
                    allocator.free(live.remove(&addr).unwrap());
                } else if let Ok(block) = allocator.allocate(Bytes::new(*size), StreamId::new(*stream)) {
                    prop_assert!(block.size >= block.requested && block.addr % 512 == 0, "{name}");
                    let end = block.addr + block.size.get();
                    let before = live.range(..end).next_back();
                    prop_assert!(before.is_none_or(|(addr, other)| addr + other.size.get() <= block.addr), "{name}");
                    live.insert(block.addr, block);
                }
                let usage = allocator.usage();
                let requested: Bytes = live.values().map(|block| block.requested).sum();
                let allocated: Bytes = live.values().map(|block| block.size).sum();
                prop_assert_eq!((usage.requested, usage.allocated), (requested, allocated), "{}", name);
                prop_assert!(allocated <= usage.reserved && usage.reserved <= usage.peak_reserved, "{name}");
                prop_assert!(usage.peak_reserved <= CAPACITY, "{name}");
            }
            for (_, block) in live {
                allocator.free(block);
            }
            allocator.empty_cache();
            prop_assert_eq!(allocator.usage().reserved, Bytes::ZERO, "{}", name);
        }
    }
}

fn peak(allocator: &mut dyn RivalAllocator, sizes_mib: &[u64]) -> Bytes {
    for size in sizes_mib {
        let _ = allocator.allocate(Bytes::mib(*size), DEFAULT).unwrap();
    }
    allocator.usage().peak_reserved
}

#[test]
fn regions_of_bfc_double() {
    assert_eq!(peak(&mut Bfc::new(CAPACITY), &[2, 4, 8, 16]), Bytes::mib(2 + 4 + 8 + 16));
}

#[test]
fn buddies_round_up_to_a_power_of_two() {
    let mut buddy = Buddy::new(CAPACITY);
    let block = buddy.allocate(Bytes::mib(65), DEFAULT).unwrap();
    assert_eq!((block.size, buddy.usage().reserved), (Bytes::mib(128), Bytes::mib(128)));
}

#[test]
fn stitching_serves_from_pages_that_do_not_lie_together() {
    let mut allocator = Stitching::new(CAPACITY);
    let blocks: Vec<RivalAllocation> =
        (0..4).map(|_| allocator.allocate(Bytes::mib(20), DEFAULT).unwrap()).collect();
    for (place, block) in blocks.into_iter().enumerate() {
        if place % 2 == 0 {
            allocator.free(block);
        }
    }
    let _ = allocator.allocate(Bytes::mib(40), DEFAULT).unwrap();
    assert_eq!(allocator.usage().reserved, Bytes::mib(80));
}

#[test]
fn an_empty_superblock_serves_another_stream() {
    let mut arena = Arena::new(CAPACITY);
    let block = arena.allocate(Bytes::mib(60), StreamId::new(1)).unwrap();
    arena.free(block);
    let _ = arena.allocate(Bytes::mib(60), DEFAULT).unwrap();
    assert_eq!(arena.usage().reserved, Bytes::mib(64));
    let mut tlsf = Tlsf::new(CAPACITY);
    let block = tlsf.allocate(Bytes::mib(60), StreamId::new(1)).unwrap();
    tlsf.free(block);
    let _ = tlsf.allocate(Bytes::mib(60), DEFAULT).unwrap();
    assert_eq!(tlsf.usage().reserved, Bytes::mib(128));
}

#[test]
fn without_caching_every_request_is_two_calls() {
    let mut allocator = NoCache::new(CAPACITY);
    for _ in 0..3 {
        let block = allocator.allocate(Bytes::mib(1), DEFAULT).unwrap();
        allocator.free(block);
    }
    let usage = allocator.usage();
    assert_eq!((usage.device_allocs, usage.device_frees, usage.peak_reserved), (3, 3, Bytes::mib(1)));
}
