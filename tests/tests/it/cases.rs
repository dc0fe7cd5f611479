//! Random runs: settings, a device, and requests whose sizes crowd around every threshold.

use std::fmt;

use blockyard_record::{Bytes, PoolId, StreamId};
use blockyard_replay::RunSettings;
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::{Request, TensorId, Workload};
use proptest::collection::{SizeRange, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// A pool of the program's own.
const PROGRAM_POOL: PoolId = PoolId { capture: 0, user: 1 };

/// The input of a run; the allocator decides the events.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) config: String,
    pub(crate) capacity: Bytes,
    pub(crate) requests: Vec<Request>,
    /// The index after the last drawn request; the requests that give everything back follow.
    pub(crate) drained_from: usize,
}

// A line a request, since a failure prints the case.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} bytes, \"{}\"", self.capacity.get(), self.config)?;
        self.requests.iter().try_for_each(|request| writeln!(f, "    {request:?}"))
    }
}

impl Case {
    pub(crate) fn settings(&self) -> RunSettings {
        RunSettings {
            title: "random".to_owned(),
            config: AllocatorConfig::parse(&self.config, Release::default())
                .expect("the strategy draws settings that are modeled"),
            capacity: self.capacity,
        }
    }

    pub(crate) fn workload(&self) -> Workload {
        Workload::from_requests(self.requests.clone())
    }
}

/// Runs of `length` drawn requests, each ended by requests that give everything back.
pub(crate) fn cases(length: impl Into<SizeRange>) -> impl Strategy<Value = Case> {
    (configs(), capacities(), vec(acts(), length), any::<bool>()).prop_map(
        |(config, capacity, acts, advances_at_end)| {
            let (requests, drained_from) = requests(&acts, advances_at_end);
            Case { config, capacity, requests, drained_from }
        },
    )
}

/// A request before the existing tensors are known.
#[derive(Clone, Debug)]
enum Act {
    Allocate(u64, StreamId),
    Free(Index),
    RecordStream(Index, StreamId),
    Plain(Request),
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        20 => (sizes(), streams()).prop_map(|(size, stream)| Act::Allocate(size, stream)),
        14 => any::<Index>().prop_map(Act::Free),
        4 => (any::<Index>(), streams()).prop_map(|(tensor, stream)| Act::RecordStream(tensor, stream)),
        3 => option::of(streams()).prop_map(|stream| Act::Plain(Request::Advance { stream })),
        2 => plain().prop_map(Act::Plain),
        1 => pool_scopes().prop_map(Act::Plain),
    ]
}

// A graph capture's memory pool is released once it is left and empty; a program's memory pool stays.
fn pool_scopes() -> impl Strategy<Value = Request> {
    let pools = select(vec![PoolId { capture: 1, user: 0 }, PROGRAM_POOL, PoolId::DEFAULT]);
    (pools, 0..3).prop_map(|(pool, leaves)| match leaves {
        0 => Request::EnterPool { pool_id: pool },
        _ => Request::LeavePool { pool_id: pool },
    })
}

fn plain() -> impl Strategy<Value = Request> {
    let fractions = [0.0, 0.3, 0.5, 0.75, 1.0, 1.0, -0.1, 1.5, f64::NAN];
    prop_oneof![
        3 => Just(Request::EmptyCache),
        3 => select(fractions.to_vec()).prop_map(|fraction| Request::SetFraction { fraction }),
        1 => Just(Request::ResetPeak),
        1 => Just(Request::ResetAccumulated),
        1 => Just(Request::Snapshot),
    ]
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 0..=1_u64,
        3 => 511..=513_u64,
        6 => 1..=8 * KIB,
        6 => MIB - 512..=MIB + 512,
        6 => 10 * MIB - 512..=10 * MIB + 512,
        6 => (1..=20_u64, -1..=1_i64).prop_map(|(count, change)| (2 * MIB * count).saturating_add_signed(change)),
        6 => MIB..=48 * MIB,
        4 => (9..=25_u32, -2..=2_i64).prop_map(|(power, change)| (1_u64 << power).saturating_add_signed(change)),
        2 => select(vec![100 * MIB, (1 << 60) - 1, (1 << 60) - 1, 1 << 60, u64::MAX]),
    ]
}

// Handles of real streams are addresses; best fit orders by them.
fn streams() -> impl Strategy<Value = StreamId> {
    select(vec![0, 0, 0, 0, 1, 2, 0x7f12_3456_7890].into_iter().map(StreamId::new).collect::<Vec<_>>())
}

// Small enough that memory runs out often, and not always a multiple of anything; or larger than any device.
fn capacities() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        1 => select(vec![0, 2 * MIB, u64::MAX]),
        9 => select(vec![24 * MIB, 40 * MIB, 64 * MIB, 64 * MIB + 12_345, 100 * MIB, 200 * MIB, KIB * MIB]),
    ]
    .prop_map(Bytes::new)
}

fn configs() -> impl Strategy<Value = String> {
    let settings = (
        option::weighted(0.2, select(vec![11_u64, 12, 32])),
        option::weighted(0.5, select(vec![0_u64, 1, 4, 20])),
        option::weighted(0.3, select(vec![0_u64, 2, 12])),
        option::weighted(0.3, select(vec!["0.2", "0.5", "0.8"])),
        option::weighted(0.3, select(vec!["2", "4", "8", "64", "[2:4,8:2,>:8]", "[1:0,4:16,16:1]"])),
        option::weighted(0.3, select(vec!["0.4", "0.75", "1.0"])),
        option::weighted(0.3, Just("True")),
    );
    let drawn = settings.prop_map(|(large, split, rounding, collection, divisions, fraction, expands)| {
        // The two limits may not be less than a large segment.
        let least = large.unwrap_or(20);
        let parts = [
            large.map(|mib| format!("large_segment_size_mb:{mib}")),
            split.map(|more| format!("max_split_size_mb:{}", least + more)),
            rounding.map(|more| format!("max_non_split_rounding_mb:{}", least + more)),
            collection.map(|threshold| format!("garbage_collection_threshold:{threshold}")),
            divisions.map(|divisions| format!("roundup_power2_divisions:{divisions}")),
            fraction.map(|fraction| format!("per_process_memory_fraction:{fraction}")),
            expands.map(|expands| format!("expandable_segments:{expands}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(",")
    });
    prop_oneof![1 => Just(String::new()), 4 => drawn]
}

// Tensors whose allocation fails are freed and recorded too, as a program's requests would be.
fn requests(acts: &[Act], advances_at_end: bool) -> (Vec<Request>, usize) {
    let mut requests = Vec::new();
    let mut live = Vec::new();
    let mut tensors = 0;
    for act in acts {
        match act {
            Act::Allocate(size, stream) => {
                let tensor = TensorId::new(tensors);
                tensors += 1;
                live.push(tensor);
                requests.push(Request::Allocate { tensor, size: Bytes::new(*size), stream: *stream });
            }
            Act::Free(_) | Act::RecordStream(..) if live.is_empty() => {}
            Act::Free(index) => {
                let tensor = live.swap_remove(index.index(live.len()));
                requests.push(Request::Free { tensor });
            }
            Act::RecordStream(index, stream) => {
                let tensor = live[index.index(live.len())];
                requests.push(Request::RecordStream { tensor, stream: *stream });
            }
            Act::Plain(request) => requests.push(*request),
        }
    }
    let drained_from = requests.len();
    requests.extend(live.into_iter().map(|tensor| Request::Free { tensor }));
    if advances_at_end {
        requests.push(Request::Advance { stream: None });
    }
    // Refused where the scope is not open.
    for pool in [PoolId { capture: 1, user: 0 }, PROGRAM_POOL] {
        requests.push(Request::LeavePool { pool_id: pool });
    }
    requests.push(Request::EmptyCache);
    (requests, drained_from)
}
