//! Cuts through recordings of the real allocator.

use std::ops::ControlFlow;

use blockyard_pytorch::RecordedRun;
use blockyard_replay::{ReplayableRun, RunSettings, open, verify};
use blockyard_rules::AllocatorConfig;
use blockyard_tests::fixtures::recorded_run;

use super::truth::{MemoryAtCut, moments};

/// The recording without its operations and without the first `cut` entries, as a full ring buffer leaves a
/// program's.
fn cut_at(run: &RecordedRun, cut: usize) -> RecordedRun {
    let mut late = run.clone();
    late.operations.clear();
    late.meta.profile.clear();
    late.memory_summary = None;
    late.trace = Some(run.trace.as_ref().unwrap()[cut..].to_vec());
    late.checkpoints.retain(|(_, at, _)| *at >= cut);
    for (_, at, _) in &mut late.checkpoints {
        *at -= cut;
    }
    late
}

fn open_late(late: &RecordedRun) -> ReplayableRun<'_> {
    let settings = RunSettings {
        title: String::new(),
        config: AllocatorConfig::parse(&late.meta.conf, late.meta.release()).unwrap(),
        capacity: late.meta.total_memory,
    };
    open(late, &settings, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Sums over all cuts of a recording.
#[derive(Debug, Default)]
struct CutTotals {
    cuts: usize,
    blocks: usize,
    /// The number of blocks whose size is marked as unknown, and of those among them that are larger or
    /// smaller than the assumed size.
    unknown: usize,
    other: usize,
}

/// Cuts the recording after every `every` entries. For each cut, the inferred memory must be that of the
/// whole recording, except for sizes that are marked as unknown, and all later placements must be identical.
#[track_caller]
fn check(name: &str, every: usize) -> CutTotals {
    let run = recorded_run(name);
    let whole = verify(&run, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(whole.comparison.is_identical());
    let length = run.trace.as_ref().unwrap().len();
    let cuts: Vec<usize> = (0..length).step_by(every).collect();
    let truths = moments(&whole.recording, &cuts);
    let mut seen = CutTotals::default();
    for (cut, truth) in cuts.into_iter().zip(truths) {
        let late = cut_at(&run, cut);
        let opened = open_late(&late);
        // Entries that are left out are the end of a request; the inferred memory is that of the moment after
        // the request.
        if opened.run.trace == late.trace {
            check_beginning(&format!("{name} cut at {cut}"), &opened, &truth, &mut seen);
        }
        assert_eq!(opened.rewound.is_none(), cut == 0, "{name} cut at {cut}");
        let comparison = verify(&late, &mut |_| ControlFlow::Continue(())).unwrap().comparison;
        assert!(comparison.is_identical(), "{name} cut at {cut}: {comparison:?}");
        seen.cuts += 1;
    }
    println!("{name}: {seen:?}");
    // Sizes that are marked as unknown are not compared: they must be the smaller part, and most of them must
    // still be right.
    assert!(seen.cuts >= 5 && seen.blocks >= 100, "{name}: too little was compared: {seen:?}");
    assert!(2 * seen.unknown <= seen.blocks && 100 * seen.other <= seen.blocks, "{name}: {seen:?}");
    seen
}

fn check_beginning(what: &str, opened: &ReplayableRun<'_>, truth: &MemoryAtCut, seen: &mut CutTotals) {
    let found = MemoryAtCut::of(&opened.inferred.start);
    assert_eq!(found.segments, truth.segments, "{what}");
    let open = opened.rewound.iter().flat_map(|rewound| &rewound.open).filter(|open| !open.is_decided);
    let open: Vec<u64> = open.map(|open| open.addr).collect();
    seen.blocks += found.blocks.len();
    seen.unknown += open.len();
    assert_eq!(found.blocks.len(), truth.blocks.len(), "{what}");
    for ((addr, found), (true_addr, truth)) in found.blocks.iter().zip(&truth.blocks) {
        assert_eq!((addr, found.1, found.2), (true_addr, truth.1, truth.2), "{what}");
        let is_known = !open.contains(addr);
        assert!(!is_known || found.0 == truth.0, "{what}: {addr:#x} has {} not {}", truth.0, found.0);
        seen.other += usize::from(found.0 != truth.0);
    }
}

#[test]
fn cut_heads_under_default_settings() {
    for name in ["mix", "large", "small", "pow"] {
        check(&format!("synthetic/default-{name}"), 61);
    }
}

#[test]
fn cut_heads_under_split_limits_and_rounding() {
    for name in ["split64-mix", "split64-large", "nonsplit-large", "pow2div4-mix", "pow2divlist-mix"] {
        check(&format!("synthetic/{name}"), 83);
    }
}

#[test]
fn cut_heads_under_expandable_segments() {
    for name in ["mix", "large", "streams"] {
        let seen = check(&format!("synthetic/expand-{name}"), 61);
        assert_eq!(seen.unknown, 0, "everything is split to the last 512 bytes");
    }
}

#[test]
fn cut_heads_with_several_streams_and_pools() {
    check("synthetic/default-streams", 61);
    check("synthetic/pools-mix", 83);
    check("programs/cudagraph_mlp", 7);
    check("programs/multistream", 211);
}

#[test]
fn cut_heads_where_memory_runs_out() {
    // The memory fraction is not in the trace, only that requests were refused.
    for name in ["default-tight", "split64-tight", "expand-tight"] {
        check(&format!("synthetic/{name}"), 61);
    }
}

#[test]
fn cut_heads_of_programs() {
    check("programs/gpt2_varlen", 12_007);
    check("programs/resnet50_amp", 2_111);
    check("programs/gnn_random", 907);
    check("programs/gnn_random.expandable_segments", 907);
    check("programs/gnn_random.max_split_size_mb_128", 907);
}

#[test]
fn a_memory_fraction_is_inferred_from_garbage_collection() {
    for name in ["synthetic/gc06-tight", "synthetic/split32gc06-tight"] {
        let run = recorded_run(name);
        let length = run.trace.as_ref().unwrap().len();
        let (mut identical, mut cuts) = (0, 0);
        for cut in (0..length).step_by(83) {
            let comparison =
                verify(&cut_at(&run, cut), &mut |_| ControlFlow::Continue(())).unwrap().comparison;
            // The ages of blocks that were cached before decide too, and no trace has these ages: a note says
            // so.
            let is_said =
                comparison.notes.iter().any(|note| note.contains("garbage collection depends on how long"));
            let is_identical = comparison.is_identical();
            assert!(is_identical || (cut > 0 && is_said), "{name} cut at {cut}: {comparison:?}");
            identical += usize::from(is_identical);
            cuts += 1;
        }
        println!("{name}: {identical} of {cuts} cuts are identical");
        assert!(4 * identical >= 3 * cuts, "{name}: {identical} of {cuts}");
    }
}

#[test]
fn every_cut_through_a_recording() {
    let seen = check("synthetic/default-mix", 1);
    assert!(seen.cuts > 1700 && seen.blocks > 100_000, "{seen:?}");
}

#[test]
fn what_cannot_be_known_is_said() {
    let run = recorded_run("synthetic/default-large");
    let late = cut_at(&run, 462);
    let opened = open_late(&late);
    let rewound = opened.rewound.unwrap();
    let true_size = 11_740_672;
    let block =
        rewound.open.iter().find(|open| open.addr == 0x7f27_6d55_2a00).expect("it is said to be unknown");
    assert!(!block.is_decided && block.size.get() < true_size && block.most.get() >= true_size);
    let words = rewound.notes().join("\n");
    assert!(words.starts_with("the recording begins late: "), "{words}");
    assert!(words.contains("cannot be known"), "{words}");
}
