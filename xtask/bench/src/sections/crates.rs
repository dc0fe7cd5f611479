//! Our allocator and crates that a Rust user would pick, each called directly in one program.
#![expect(unsafe_code, reason = "the virtual blocks of vk-mem have an unsafe interface")]

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use blockyard_measure::{
    Contender, Measurement, OperationList, RatioGoal, Replay, ReportRow, Section, alternate,
};
use blockyard_record::{Bytes, StreamId};
use blockyard_rules::AllocatorConfig;
use vk_mem::{
    VirtualAllocation, VirtualAllocationCreateFlags, VirtualAllocationCreateInfo, VirtualBlock,
    VirtualBlockCreateInfo,
};

use super::{BenchContext, times_for};
use crate::suite::{CAPACITY, Suite};

/// The unit of offset-allocator's sizes, which count to 2^32: our smallest block.
const UNIT: u64 = 512;

/// Nanoseconds a pair of allocation and free beside crates of handles.
///
/// # Errors
///
/// When an allocator fails.
pub(super) fn crates(context: &BenchContext) -> Result<Section> {
    let suite = Suite::load(&context.workspace)?;
    // The other crates know no streams.
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
        rows,
        goal: Some(RatioGoal::AtMost(1.2)),
        notes,
        ..Section::new(
            "crates",
            "Against crates, in one program",
            "ns a pair of allocation and free",
            ["Blockyard", "offset-allocator", "VMA virtual block"],
        )
    })
}

fn row(trace: &OperationList, rounds: usize) -> Result<ReportRow> {
    let pairs = trace.pairs();
    let times = times_for(pairs)?;
    let mut ours = Replay::new(trace, AllocatorConfig::default(), Bytes::new(CAPACITY));
    let (mut offsets, mut virtuals) = (Offsets::new(trace)?, VirtualContender::new(trace)?);
    let mut contenders: [&mut dyn FnMut(u32) -> Result<Duration>; 3] = [
        &mut |times| Ok(ours.time(trace, times)?),
        &mut |times| offsets.time_replay(trace, times),
        &mut |times| virtuals.time_replay(trace, times),
    ];
    let nanos = alternate(rounds, times, pairs, &mut contenders, |contender, times| {
        contender(times).with_context(|| trace.name.clone())
    })?;
    let ratio = Measurement::ratio(&nanos[0], &nanos[1]);
    Ok(ReportRow::new(&trace.name, pairs, &nanos).with_ratio(ratio))
}

struct Offsets {
    allocator: offset_allocator::Allocator<u32>,
    live: Vec<Option<offset_allocator::Allocation<u32>>>,
}

impl Offsets {
    fn new(trace: &OperationList) -> Result<Self> {
        let units = u32::try_from(CAPACITY / UNIT)?;
        // Room for every block and for the gaps between them.
        let nodes = 2 * trace.slots.max(64) + 64;
        let allocator = offset_allocator::Allocator::with_max_allocs(units, nodes);
        Ok(Self { allocator, live: vec![None; trace.slots as usize] })
    }
}

impl Contender for Offsets {
    type Error = anyhow::Error;

    fn name(&self) -> &'static str {
        "offset-allocator"
    }

    fn make_slots(&mut self, count: usize) {
        self.live.resize(count.max(self.live.len()), None);
    }

    fn allocate(&mut self, slot: usize, size: Bytes, _stream: StreamId) -> Result<()> {
        let units = u32::try_from(size.get().div_ceil(UNIT))?;
        self.live[slot] = Some(self.allocator.allocate(units).context("offset-allocator is full")?);
        Ok(())
    }

    fn free(&mut self, slot: usize) -> Result<()> {
        if let Some(allocation) = self.live[slot].take() {
            self.allocator.free(allocation);
        }
        Ok(())
    }
}

struct VirtualContender {
    block: VirtualBlock,
    live: Vec<Option<VirtualAllocation>>,
}

impl VirtualContender {
    fn new(trace: &OperationList) -> Result<Self> {
        let block = VirtualBlock::new(VirtualBlockCreateInfo { size: CAPACITY, ..Default::default() });
        let block = block.map_err(|error| anyhow!("VMA makes no virtual block: {error}"))?;
        Ok(Self { block, live: (0..trace.slots).map(|_| None).collect() })
    }
}

impl Contender for VirtualContender {
    type Error = anyhow::Error;

    fn name(&self) -> &'static str {
        "VMA virtual block"
    }

    fn make_slots(&mut self, count: usize) {
        self.live.resize_with(count.max(self.live.len()), || None);
    }

    fn allocate(&mut self, slot: usize, size: Bytes, _stream: StreamId) -> Result<()> {
        let info = VirtualAllocationCreateInfo {
            size: size.get(),
            alignment: UNIT,
            user_data: 0,
            flags: VirtualAllocationCreateFlags::empty(),
        };
        // SAFETY: the block lives; the size is not zero and the alignment a power of two.
        let made = unsafe { self.block.allocate(info) };
        let (allocation, _) = made.map_err(|error| anyhow!("VMA's block is full: {error}"))?;
        self.live[slot] = Some(allocation);
        Ok(())
    }

    fn free(&mut self, slot: usize) -> Result<()> {
        if let Some(mut allocation) = self.live[slot].take() {
            // SAFETY: the allocation is of this block, and this is its last use.
            unsafe { self.block.free(&mut allocation) };
        }
        Ok(())
    }
}
