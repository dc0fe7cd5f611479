//! Against crates that a Rust user would pick, each called directly in one program.
#![expect(unsafe_code, reason = "the virtual blocks of vk-mem have an unsafe interface")]

use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use blockyard_allocator::AllocatorConfig;
use blockyard_bench_trace::{OpKind, Replay, Trace};
use blockyard_record::Bytes;
use vk_mem::{
    VirtualAllocation, VirtualAllocationCreateFlags, VirtualAllocationCreateInfo, VirtualBlock,
    VirtualBlockCreateInfo,
};

use super::{BenchContext, times_for};
use crate::measure::{Measure, alternate};
use crate::report::{Goal, Row, Section};
use crate::suite::{CAPACITY, Suite};

/// What offset-allocator counts in, since it counts to 2^32: the smallest block of ours.
const UNIT: u64 = 512;

/// Nanoseconds a pair of allocation and free beside crates of handles.
///
/// # Errors
///
/// When an allocator fails.
pub fn crates(context: &BenchContext) -> Result<Section> {
    let suite = Suite::load(&context.workspace)?;
    // The others know no streams.
    let traces: Vec<_> = suite.traces.iter().filter(|trace| trace.streams == 1).collect();
    let progress = super::progress("crates", traces.len())?;
    let mut rows = Vec::new();
    for trace in traces {
        progress.set_message(trace.name.clone());
        rows.push(row(trace, context.rounds)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let mut notes = vec![
        "all called directly with handles, each turn after one replay to warm up; ours keeps PyTorch's addresses and all statistics, \
         the others place as they like in one arena and count nothing"
            .to_owned(),
        format!("offset-allocator 0.2 in units of {UNIT} B; vk-mem 0.5: VMA's virtual block (TLSF)"),
        "multistream is left out: the others know no streams; the ratio is ours over offset-allocator's time".to_owned(),
    ];
    notes.extend(suite.missing);
    Ok(Section {
        name: "crates".to_owned(),
        title: "Against crates, in one program".to_owned(),
        unit: "ns a pair of allocation and free".to_owned(),
        contenders: ["Blockyard", "offset-allocator", "VMA virtual block"].map(str::to_owned).to_vec(),
        rows,
        goal: Some(Goal::AtMost(1.2)),
        notes,
    })
}

fn row(trace: &Trace, rounds: usize) -> Result<Row> {
    let pairs = trace.pairs();
    let times = times_for(pairs)?;
    let mut contenders: [Box<dyn Contender>; 3] = [
        Box::new(Replay::new(trace, AllocatorConfig::default(), Bytes::new(CAPACITY))),
        Box::new(Offsets::new(trace)?),
        Box::new(Virtual::new(trace)?),
    ];
    let nanos = alternate(rounds, times, pairs, &mut contenders, |contender, times| {
        let begun = Instant::now();
        for _ in 0..times {
            contender.replay(trace).with_context(|| trace.name.clone())?;
        }
        Ok(begun.elapsed())
    })?;
    Ok(Row {
        name: trace.name.clone(),
        units: pairs,
        values: nanos.iter().map(|nanos| Some(Measure::of(nanos))).collect(),
        ratio: Some(Measure::ratio(&nanos[0], &nanos[1])),
    })
}

/// An allocator, and a caller's slots full of its handles.
trait Contender {
    fn replay(&mut self, trace: &Trace) -> Result<()>;
}

impl Contender for Replay {
    fn replay(&mut self, trace: &Trace) -> Result<()> {
        self.run(trace)?;
        Ok(())
    }
}

struct Offsets {
    allocator: offset_allocator::Allocator<u32>,
    live: Vec<Option<offset_allocator::Allocation<u32>>>,
}

impl Offsets {
    fn new(trace: &Trace) -> Result<Self> {
        let units = u32::try_from(CAPACITY / UNIT)?;
        // Room for every block and for the gaps between them.
        let nodes = 2 * trace.slots.max(64) + 64;
        let allocator = offset_allocator::Allocator::with_max_allocs(units, nodes);
        Ok(Self { allocator, live: vec![None; trace.slots as usize] })
    }
}

impl Contender for Offsets {
    fn replay(&mut self, trace: &Trace) -> Result<()> {
        for op in &trace.ops {
            match op.kind {
                OpKind::Allocate => {
                    let units = u32::try_from(op.size.div_ceil(UNIT))?;
                    let allocation = self.allocator.allocate(units).context("offset-allocator is full")?;
                    self.live[op.slot as usize] = Some(allocation);
                }
                OpKind::Free => {
                    if let Some(allocation) = self.live[op.slot as usize].take() {
                        self.allocator.free(allocation);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

struct Virtual {
    block: VirtualBlock,
    live: Vec<Option<VirtualAllocation>>,
}

impl Virtual {
    fn new(trace: &Trace) -> Result<Self> {
        let block = VirtualBlock::new(VirtualBlockCreateInfo { size: CAPACITY, ..Default::default() });
        let block = block.map_err(|error| anyhow!("VMA makes no virtual block: {error}"))?;
        Ok(Self { block, live: (0..trace.slots).map(|_| None).collect() })
    }
}

impl Contender for Virtual {
    fn replay(&mut self, trace: &Trace) -> Result<()> {
        for op in &trace.ops {
            match op.kind {
                OpKind::Allocate => {
                    let info = VirtualAllocationCreateInfo {
                        size: op.size,
                        alignment: UNIT,
                        user_data: 0,
                        flags: VirtualAllocationCreateFlags::empty(),
                    };
                    // SAFETY: the block lives; the size is not zero and the alignment a power of two.
                    let made = unsafe { self.block.allocate(info) };
                    let (allocation, _) = made.map_err(|error| anyhow!("VMA's block is full: {error}"))?;
                    self.live[op.slot as usize] = Some(allocation);
                }
                OpKind::Free => {
                    if let Some(mut allocation) = self.live[op.slot as usize].take() {
                        // SAFETY: the allocation is of this block, and this is its last use.
                        unsafe { self.block.free(&mut allocation) };
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
