//! Runs that keep no history: what a configuration comes to, at the speed of the allocator.

use std::collections::HashMap;
use std::ops::ControlFlow;

use blockyard_allocator::AllocatorConfig;
use blockyard_device::{Advance, DeviceMemory};
use blockyard_record::{BlockState, DeviceAddr, EventSink, NullSink, Snapshot, Stats};
use blockyard_workload::{Request, TensorId, Workload};

use crate::{OnProgress, Progress, Replayer, RunError, StepResult, progress};

/// What a run comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The allocator's counters at the end, as PyTorch reports them; peaks among them.
    pub stats: Stats,
    /// Requests that failed for want of memory.
    pub out_of_memory: u64,
    /// Requests that were refused without touching the allocator.
    pub refused: u64,
    /// Requests that could not be done because an earlier one had failed.
    pub skipped: u64,
}

/// A workload made ready to run again and again.
///
/// Its tensors take turns on as few places as are in use at a time, so that a run touches little memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedWorkload {
    // The tensors of these are places; `NOWHERE` for those that are not there.
    pub(crate) requests: Vec<Request>,
    pub(crate) places: usize,
    settings: Vec<String>,
    pub(crate) start: Snapshot,
    pub(crate) placements: Vec<Option<DeviceAddr>>,
}

const NOWHERE: TensorId = TensorId::new(u32::MAX);

impl PreparedWorkload {
    /// The plan of a workload.
    #[must_use]
    pub fn new(workload: &Workload) -> Self {
        Self::beginning_with(workload, Snapshot::default())
    }

    /// The plan of a workload before whose first request the memory of `start` is there already.
    ///
    /// The allocated blocks of `start` are the workload's first tensors, by ascending address.
    #[must_use]
    pub fn beginning_with(workload: &Workload, start: Snapshot) -> Self {
        let blocks = start.segments.iter().flat_map(|segment| &segment.blocks);
        let held = blocks.filter(|block| block.state == BlockState::Allocated).count();
        let mut places = Places::default();
        for tensor in (0..).take(held) {
            places.give(TensorId::new(tensor));
        }
        Self {
            requests: workload.requests().iter().map(|request| places.placed(request)).collect(),
            places: places.count as usize,
            settings: (0..).map_while(|number| workload.settings(number).map(str::to_owned)).collect(),
            start,
            placements: Vec::new(),
        }
    }

    /// As [`Runner::with_placements`](crate::Runner::with_placements).
    #[must_use]
    pub fn with_placements(self, placements: Vec<Option<DeviceAddr>>) -> Self {
        Self { placements, ..self }
    }

    /// How many requests it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(crate) fn settings(&self, number: u32) -> Option<&str> {
        self.settings.get(number as usize).map(String::as_str)
    }
}

/// Which tensor has which place.
#[derive(Default)]
struct Places {
    of: HashMap<TensorId, TensorId>,
    vacant: Vec<TensorId>,
    count: u32,
}

impl Places {
    fn give(&mut self, tensor: TensorId) -> TensorId {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.count += 1;
            TensorId::new(self.count - 1)
        });
        self.of.insert(tensor, place);
        place
    }

    fn placed(&mut self, request: &Request) -> Request {
        match *request {
            Request::Allocate { tensor, size, stream } => {
                Request::Allocate { tensor: self.give(tensor), size, stream }
            }
            Request::Free { tensor } => {
                let place = self.of.remove(&tensor);
                self.vacant.extend(place);
                Request::Free { tensor: place.unwrap_or(NOWHERE) }
            }
            Request::RecordStream { tensor, stream } => {
                Request::RecordStream { tensor: self.of.get(&tensor).copied().unwrap_or(NOWHERE), stream }
            }
            other => other,
        }
    }
}

/// Runs a plan and keeps nothing but its totals, which are those of the same run recorded.
///
/// # Errors
///
/// [`RunError::Cancelled`] when `on_progress` breaks off, [`RunError::Allocator`] when the device fails in another way than
/// for want of memory, or cannot have given what the plan begins with.
pub fn totals<D: DeviceMemory + Advance>(
    plan: &PreparedWorkload,
    config: &AllocatorConfig,
    device: D,
    on_progress: OnProgress,
) -> Result<Totals, RunError> {
    let total = plan.len();
    totals_into(plan, config, device, NullSink, &mut |done| {
        on_progress(Progress::new("running", done, total))
    })
}

/// Runs a plan under each of `configs`, on a device of its own each; the totals come in the same order.
///
/// # Errors
///
/// As [`totals`], of the first run that fails.
pub fn sweep<D: DeviceMemory + Advance>(
    plan: &PreparedWorkload,
    configs: &[AllocatorConfig],
    mut device: impl FnMut() -> D,
    on_progress: OnProgress,
) -> Result<Vec<Totals>, RunError> {
    let total = plan.len() * configs.len();
    let run = |(index, config): (usize, &AllocatorConfig)| {
        totals_into(plan, config, device(), NullSink, &mut |done| {
            on_progress(Progress::new("running", index * plan.len() + done, total))
        })
    };
    configs.iter().enumerate().map(run).collect()
}

/// Runs a plan, and tells `sink` every event and nothing else; `on_progress` is told how many requests are done.
///
/// # Errors
///
/// As [`totals`].
pub fn totals_into<D: DeviceMemory + Advance, S: EventSink>(
    plan: &PreparedWorkload,
    config: &AllocatorConfig,
    device: D,
    sink: S,
    on_progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Totals, RunError> {
    let mut replayer = Replayer::new(plan, config, device, sink)?;
    let mut totals = Totals::default();
    for done in (0..plan.len()).step_by(progress::INTERVAL) {
        if on_progress(done).is_break() {
            return Err(RunError::Cancelled);
        }
        while let Some(failed) = replayer.run_to(done + progress::INTERVAL)? {
            match failed.result {
                StepResult::OutOfMemory(_) => totals.out_of_memory += 1,
                _ => totals.refused += 1,
            }
        }
    }
    Ok(Totals { stats: replayer.stats(), skipped: replayer.skipped(), ..totals })
}
