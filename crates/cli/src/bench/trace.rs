use std::path::Path;

use anyhow::bail;
use blockyard_pytorch::{RecordedRun, requests};
use blockyard_record::{Bytes, StreamId};
use blockyard_workload::Request;

use crate::output;

/// The requests of a recording, as far as any allocator can serve them.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    /// How many blocks there are, over the whole run.
    pub(crate) slots: usize,
    /// How many of the steps are allocations.
    pub(crate) allocations: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Allocate { slot: usize, size: Bytes, stream: StreamId },
    Free { slot: usize },
    RecordStream { slot: usize, stream: StreamId },
    Advance { stream: Option<StreamId> },
    EmptyCache,
}

impl Trace {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let run = RecordedRun::read(&output::read(path)?)?;
        let inferred = requests(&run)?;
        let mut trace = Self { name: run.meta.name.clone(), steps: Vec::new(), slots: 0, allocations: 0 };
        let mut live = std::collections::HashSet::new();
        for request in inferred.workload.requests() {
            let step = match *request {
                Request::Allocate { tensor, size, stream } => {
                    let slot = tensor.get() as usize;
                    trace.slots = trace.slots.max(slot + 1);
                    trace.allocations += 1;
                    live.insert(slot);
                    Step::Allocate { slot, size, stream }
                }
                Request::Free { tensor } => {
                    let slot = tensor.get() as usize;
                    live.remove(&slot);
                    Step::Free { slot }
                }
                Request::RecordStream { tensor, stream } => {
                    Step::RecordStream { slot: tensor.get() as usize, stream }
                }
                Request::Advance { stream } => Step::Advance { stream },
                Request::EmptyCache => Step::EmptyCache,
                Request::EnterPool { .. } | Request::LeavePool { .. } => {
                    bail!("it has memory pools, which the driver's own allocators do not")
                }
                // Statistics cost the same whatever they are.
                _ => continue,
            };
            trace.steps.push(step);
        }
        // Each round begins with nothing in use.
        let mut left: Vec<usize> = live.into_iter().collect();
        left.sort_unstable();
        trace.steps.extend(left.into_iter().map(|slot| Step::Free { slot }));
        trace.steps.push(Step::Advance { stream: None });
        if trace.allocations == 0 {
            bail!("it allocates nothing");
        }
        Ok(trace)
    }
}
