//! Runs without stacks and names.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockyard_pytorch::RecordedRun;
use blockyard_pytorch::snapshot::{EntryContext, SnapshotFile};
use blockyard_record::{FrameId, StackId, Stacks, UNNAMED_SITE};
use blockyard_workload::Workload;

const PASSED_OVER: &str = "parts of the file were passed over; their names are left out";

/// The snapshot with a number in the place of each call site. Only the parts that are known to have no names
/// are taken over.
pub(crate) fn snapshot(file: SnapshotFile) -> SnapshotFile {
    let contexts = file.contexts.iter().map(|context| EntryContext {
        pool_id: context.pool_id,
        has_empty_stack: context.has_empty_stack,
        ..EntryContext::default()
    });
    SnapshotFile {
        contexts: contexts.collect(),
        stacks: Arc::new(numbered(&file.stacks)),
        annotations: Vec::new(),
        devices: file.devices,
        host: file.host,
        settings: file.settings,
        dialect: file.dialect,
        keepers: String::new(),
        // Notes quote names and texts of the file.
        notes: file.notes.first().map(|_| PASSED_OVER.to_owned()).into_iter().collect(),
    }
}

/// The stacks with the same numbers, each with one frame that names nothing: `call site 3`. Stacks of one
/// line of the program's own code are one call site.
fn numbered(stacks: &Stacks) -> Stacks {
    let mut sites: BTreeMap<Option<FrameId>, usize> = BTreeMap::new();
    let mut made = Stacks::default();
    for stack in (1..u32::try_from(stacks.len()).unwrap_or(u32::MAX)).map(StackId::new) {
        let next = sites.len().saturating_add(1);
        let site = *sites.entry(stacks.own_frame(stack)).or_insert(next);
        let mut frame = |name: &str, line: u32| {
            let name = made.intern_text(name)?;
            let file = made.intern_text("")?;
            made.intern_frame(name, file, line)
        };
        // The second frame only makes equal call sites different stacks, so that every stack keeps its
        // number.
        let site = frame(&format!("{UNNAMED_SITE}{site}"), 0);
        let number = frame("", stack.get());
        let frames: Vec<u32> = site.into_iter().chain(number).map(FrameId::get).collect();
        made.intern_stack(&frames);
    }
    made
}

/// The recording without its name and the labels of its checkpoints.
pub(crate) fn recorded(mut run: RecordedRun) -> RecordedRun {
    run.meta.name = String::new();
    run.keepers = String::new();
    for (number, (label, ..)) in (1_u64..).zip(&mut run.checkpoints) {
        *label = format!("checkpoint {number}");
    }
    run
}

/// The workload without names; streams and memory pools have numbers.
pub(crate) fn workload(workload: &Workload) -> Workload {
    workload.without_names()
}
