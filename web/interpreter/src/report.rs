//! Turns a finished program into the message for the page.

use std::collections::BTreeMap;

use blockyard_program::{AllocationOrigin, Estimate, LineMemory, ProgramNote, ProgramRun, Referrers};
use blockyard_python::{DeviceRun, ProgramOutcome};
use blockyard_record::Bytes;
use blockyard_torch::memory::{Category, LogEntry, Origin, Phase};

/// `non_pytorch` is the memory that the driver and CUDA's libraries took of the GPU.
pub(crate) fn report(finished: ProgramOutcome, non_pytorch: Bytes) -> ProgramRun {
    let note = |note: blockyard_python::ProgramNote| ProgramNote { line: note.line, text: note.text };
    let cause = finished.cause.map(note);
    let notes = finished.notes.into_iter().map(note);
    // Parts that a training does not have are left out.
    let parts = blockyard_gpus::parts_of_training().map(|(name, bytes)| (name.to_owned(), bytes));
    let non_pytorch_parts = if non_pytorch.is_zero() { Vec::new() } else { parts.to_vec() };
    let estimates = finished.estimates.into_iter().map(|estimate| Estimate {
        line: estimate.line,
        operator: estimate.operator,
        reason: estimate.reason,
    });
    let mut devices = finished.devices.into_iter();
    let first = devices.next();
    let further_devices = devices.filter(|device| !device.origins.is_empty()).count();
    let lines = first.as_ref().map(line_memory).unwrap_or_default();
    let (recording, step_lines, origins) = first.map_or((None, Vec::new(), Vec::new()), |device| {
        (device.recording, device.step_lines, device.origins.iter().map(origin).collect())
    });
    ProgramRun {
        status: finished.status,
        traceback: finished.traceback,
        cause,
        notes: notes.collect(),
        estimates: estimates.collect(),
        recording,
        non_pytorch,
        non_pytorch_parts,
        step_lines,
        origins,
        lines,
        further_devices,
    }
}

/// The reasons why memory is alive, with allocations by the ids of the recording.
pub(crate) fn referrers(found: blockyard_python::Referrers) -> Referrers {
    let origins = blockyard_torch::session().device(0).map(|device| device.origins()).unwrap_or_default();
    let allocation = |number: u32| origins.get(usize::try_from(number).ok()?)?.allocation;
    let reasons = found.reasons.into_iter().filter_map(|(number, reasons)| {
        Some((allocation(number)?, reasons.iter().map(ToString::to_string).collect()))
    });
    Referrers {
        step: found.step,
        line: found.line,
        operator: found.operator.to_owned(),
        reasons: reasons.collect(),
    }
}

fn origin(origin: &Origin) -> AllocationOrigin {
    let phase = match origin.phase {
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::Optimizer => "optimizer",
    };
    let category = match origin.category {
        Category::Temporary => "temporaries",
        Category::Input => "input",
        Category::Parameter => "parameters",
        Category::Gradient => "gradients",
        Category::OptimizerState => "optimizer",
        Category::Activation => "activations",
        Category::Workspace => "workspaces",
    };
    AllocationOrigin {
        allocation: origin.allocation,
        line: origin.line,
        operator: origin.operator.to_owned(),
        phase: phase.to_owned(),
        category: category.to_owned(),
    }
}

/// The memory of each line, in the order of lines. Allocations outside of any line are left out.
fn line_memory(device: &DeviceRun) -> Vec<LineMemory> {
    let mut lines: BTreeMap<u32, (LineMemory, Bytes)> = BTreeMap::new();
    let of = |number: u32| device.origins.get(usize::try_from(number).ok()?);
    for request in &device.requests {
        match *request {
            LogEntry::Allocate(number, bytes) => {
                let Some(origin) = of(number).filter(|origin| origin.line > 0) else { continue };
                let (memory, alive) = lines.entry(origin.line).or_default();
                let bytes = Bytes::new(bytes);
                memory.line = origin.line;
                memory.allocations = memory.allocations.saturating_add(1);
                memory.requested = memory.requested.saturating_add(bytes);
                *alive = alive.saturating_add(bytes);
                memory.peak = memory.peak.max(*alive);
            }
            LogEntry::Free(number) => {
                let Some(origin) = of(number) else { continue };
                if let Some((_, alive)) = lines.get_mut(&origin.line) {
                    *alive = alive.saturating_sub(origin.requested);
                }
            }
            // The order of frees changes no sum.
            LogEntry::Unordered(_) => {}
        }
    }
    lines.into_values().map(|(memory, _)| memory).collect()
}
