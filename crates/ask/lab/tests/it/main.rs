//! Answers of the lab compared with what PyTorch did.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod addresses;
mod agreement;
mod cases;
mod code_fixes;
mod gap;
mod growth;
mod oom;
mod peaks;
mod properties;
mod questions;
mod releases;
mod search;
mod verdict;
mod what_if;

use std::ops::ControlFlow;
use std::path::Path;

use blockyard_device::VirtualDevice;
use blockyard_lab::Run;
use blockyard_pytorch::{Meta, RecordedBlock, RecordedRun, RecordedSegment};
use blockyard_record::{Bytes, SegmentSnapshot, StepOutcome};
use blockyard_replay::{Progress, RunSettings, Runner};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::{Request, Workload};

/// Goes on.
fn on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Goes on.
fn on_requests(_: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The run of one of the recorded programs.
fn program(name: &str) -> Run {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/programs");
    let bytes = std::fs::read(folder.join(format!("{name}.jsonl.gz"))).unwrap();
    Run::from_recorded(&RecordedRun::read(&bytes).unwrap(), &mut on).unwrap()
}

/// The run of a workload's text as PyTorch would record it under a memory fraction that limits it to `limit`:
/// its trace up to the request that fails, and the segments then. The recording does not name the limit.
fn recorded(text: &str, config: &str, limit: Bytes) -> Run {
    let capacity = Bytes::gib(4);
    let settings = RunSettings {
        title: text.to_owned(),
        config: AllocatorConfig::parse(config, Release::default()).unwrap(),
        capacity,
    };
    let written = Workload::parse(text).unwrap();
    #[expect(clippy::cast_precision_loss, reason = "the sizes of tests are far below 2^52")]
    let fraction = (limit.get() as f64 + 0.5) / capacity.get() as f64;
    let mut requests = written.requests().to_vec();
    requests.insert(0, Request::SetFraction { fraction });
    let workload = Workload::from_requests(requests);
    let mut runner = Runner::new(VirtualDevice::new(capacity), &settings, &workload).with_trace();
    while let Some(result) = runner.step().unwrap() {
        if matches!(result, StepOutcome::OutOfMemory(_)) {
            break;
        }
    }
    let meta =
        Meta { name: text.to_owned(), conf: config.to_owned(), total_memory: capacity, ..Meta::default() };
    let snapshot = runner.snapshot();
    let mapped = snapshot.segments.iter().flat_map(SegmentSnapshot::mapped_runs);
    let segments = mapped.map(|segment| recorded_segment(&segment)).collect();
    let trace = Some(runner.trace().to_vec());
    let recorded = RecordedRun { meta, trace, segments: Some(segments), ..RecordedRun::default() };
    Run::from_recorded(&recorded, &mut on).unwrap()
}

fn recorded_segment(segment: &SegmentSnapshot) -> RecordedSegment {
    let blocks = segment.blocks.iter().map(|block| RecordedBlock {
        addr: block.addr.get(),
        size: block.size,
        requested: block.requested,
        state: block.state.name().to_owned(),
    });
    RecordedSegment {
        addr: segment.addr.get(),
        size: segment.size,
        stream: segment.stream,
        pool_id: segment.pool_id,
        pool: segment.pool,
        is_expandable: segment.is_expandable,
        sums: [segment.allocated(), segment.active(), segment.requested()],
        blocks: blocks.collect(),
    }
}
