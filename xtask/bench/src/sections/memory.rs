//! The memory that the allocator takes for a block, and a recording for an event.

use std::ops::ControlFlow;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use blockyard_measure::{Measurement, Opcode, OperationList, Replay, ReportRow, Section};
use blockyard_record::Bytes;
use blockyard_replay::verify;
use blockyard_rules::AllocatorConfig;

use super::BenchContext;
use crate::suite::{CAPACITY, PROGRAMS, Suite, recording};

/// Bytes of the allocator's own memory for each block, at the moment when most are live.
///
/// # Errors
///
/// When the program that counts is not there, or fails.
pub(super) fn heap(context: &BenchContext) -> Result<Section> {
    let mut suite = Suite::load(&context.workspace)?;
    suite.traces.retain(|trace| trace.most_live().1 > 100);
    suite.traces.push(many_blocks());
    let progress = super::progress("heap", suite.traces.len())?;
    let mut rows = Vec::new();
    for trace in &suite.traces {
        progress.set_message(trace.name.clone());
        let file = context.target.join("bench/counted.trace");
        std::fs::create_dir_all(context.target.join("bench"))?;
        std::fs::write(&file, trace.to_bytes())?;
        let program = std::env::current_exe()?.with_file_name("blockyard-bench-heap");
        let output = Command::new(&program).arg(&file).output();
        let output = output.with_context(|| format!("cannot run {}", program.display()))?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let HeapUse { bytes, live, all } = serde_json::from_slice(&output.stdout)?;
        rows.push(ReportRow {
            name: format!("{}, {live} live of {all}", trace.name),
            units: live,
            values: vec![
                Some(Measurement::exact(per(bytes, live))),
                Some(Measurement::exact(per(bytes, all))),
            ],
            ratio: None,
        });
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(Section {
        rows,
        notes: vec![
            "everything that the allocator and its virtual device hold on the heap, grown tables and fixed ones alike; few \
             blocks share the fixed ones; the shared handle's table of addresses, 32 to 64 bytes a live block, is not in it"
                .to_owned(),
        ],
        ..Section::new(
            "heap",
            "The allocator's own memory when most blocks are live",
            "bytes",
            ["a live block", "a block, free ones too"],
        )
    })
}

/// The heap of the program that counts, as that program prints it.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct HeapUse {
    /// Bytes on the heap.
    pub bytes: usize,
    /// Allocated blocks.
    pub live: usize,
    /// All blocks.
    pub all: usize,
}

impl HeapUse {
    /// Replays the trace up to the moment when most blocks are live; `held` returns the bytes on the heap.
    ///
    /// # Errors
    ///
    /// When the allocator fails.
    pub fn of(trace: &OperationList, held: impl Fn() -> usize) -> Result<Self> {
        let (moment, _) = trace.most_live();
        let before = held();
        let mut replay = Replay::new(trace, AllocatorConfig::default(), Bytes::new(CAPACITY));
        replay.run_ops(&trace.operations[..moment])?;
        let bytes = held() - before - replay.slot_bytes();
        let (live, all) = replay.blocks();
        Ok(Self { bytes, live, all })
    }
}

/// A hundred thousand small blocks at a time.
fn many_blocks() -> OperationList {
    let mut trace = OperationList::ping_pong("blocks_100k_1KiB", 1 << 10, 100_000);
    let mut slot = 0;
    for op in &mut trace.operations {
        op.slot = slot;
        slot += u32::from(op.kind == Opcode::Free);
    }
    trace.slots = slot;
    trace.operations.sort_by_key(|op| op.kind == Opcode::Free);
    trace
}

#[expect(clippy::cast_precision_loss, reason = "a count of bytes")]
fn per(bytes: usize, count: usize) -> f64 {
    bytes as f64 / count.max(1) as f64
}

/// Bytes of a recording for each of its events, by part of the recording.
///
/// # Errors
///
/// When a recording cannot be replayed.
pub(super) fn recordings(context: &BenchContext) -> Result<Section> {
    let progress = super::progress("recordings", PROGRAMS.len())?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let mut largest: f64 = 0.0;
    for name in PROGRAMS {
        progress.set_message(name);
        progress.inc(1);
        let Some(recorded) = recording(&context.workspace, name)? else {
            notes.push(format!("{name} is left out: its recording is not there"));
            continue;
        };
        let recording = verify(&recorded, &mut |_| ControlFlow::Continue(()))?.recording;
        let events = recording.event_count();
        let size = recording.size();
        let parts =
            [size.total(), size.events, size.breakdowns, size.steps, size.allocations, size.saved_states];
        largest = largest.max(per(size.total(), events));
        rows.push(ReportRow {
            name: format!("{name}, {events} events"),
            units: events,
            values: parts.iter().map(|bytes| Some(Measurement::exact(per(*bytes, events)))).collect(),
            ratio: None,
        });
    }
    progress.finish_and_clear();
    let result = if largest <= 24.0 { "met" } else { "NOT met" };
    notes.push(format!("goal: at most 24 bytes an event in all; the largest is {largest:.1}: {result}"));
    Ok(Section {
        rows,
        notes,
        ..Section::new(
            "recordings",
            "A recording in memory",
            "bytes an event",
            ["in all", "events", "breakdowns", "steps", "allocations", "saved states"],
        )
    })
}
