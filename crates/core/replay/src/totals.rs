//! Runs that record nothing and return only the statistics, at the speed of the allocator.

use blockyard_device::{Advance, DeviceMemory};
use blockyard_record::{BlockState, DeviceAddr, EventSink, NullSink, OnDone, Snapshot, Stats, StepOutcome};
use blockyard_rules::AllocatorConfig;
use blockyard_workload::{Request, TensorId, TensorSlots, Workload};

use crate::{OnProgress, Progress, Replayer, RunError};

/// The statistics and counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The statistics at the end, as PyTorch reports them, with peaks.
    pub stats: Stats,
    /// How many requests ran out of memory.
    pub out_of_memory: u64,
    /// How many requests were refused before they changed anything.
    pub refused: u64,
    /// How many requests were skipped because an earlier request had failed.
    pub skipped: u64,
}

/// A workload that is prepared for many runs.
///
/// Tensors share slots: there are only as many slots as tensors that are allocated at the same time, so that
/// a run touches little memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedWorkload {
    /// The tensor numbers of these requests are slots, or `NOWHERE` for tensors that do not exist.
    pub(crate) requests: Vec<Request>,
    pub(crate) slots: usize,
    settings: Vec<String>,
    pub(crate) start: Snapshot,
    pub(crate) placements: Vec<Option<DeviceAddr>>,
}

/// The slot of a tensor that does not exist.
const NOWHERE: TensorId = TensorId::new(u32::MAX);

impl PreparedWorkload {
    /// Prepares a workload.
    #[must_use]
    pub fn new(workload: &Workload) -> Self {
        Self::beginning_with(workload, Snapshot::default())
    }

    /// Prepares a workload that begins with the memory of `start`.
    ///
    /// The allocated blocks of `start` are the workload's first tensors, by ascending address.
    #[must_use]
    pub fn beginning_with(workload: &Workload, start: Snapshot) -> Self {
        let blocks = start.segments.iter().flat_map(|segment| &segment.blocks);
        let initial = blocks.filter(|block| block.state == BlockState::Allocated).count();
        let mut slots = TensorSlots::default();
        for tensor in (0..).take(initial) {
            slots.allocate(TensorId::new(tensor));
        }
        Self {
            requests: workload.requests().iter().map(|request| in_slots(request, &mut slots)).collect(),
            slots: slots.count() as usize,
            settings: (0..).map_while(|number| workload.settings(number).map(str::to_owned)).collect(),
            start,
            placements: Vec::new(),
        }
    }

    /// Allocates at recorded addresses under `cudaMallocAsync`; see
    /// [`Runner::with_placements`](crate::Runner::with_placements).
    #[must_use]
    pub fn with_placements(self, placements: Vec<Option<DeviceAddr>>) -> Self {
        Self { placements, ..self }
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether the list has no requests.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(crate) fn settings(&self, number: u32) -> Option<&str> {
        self.settings.get(number as usize).map(String::as_str)
    }
}

/// The request with a slot in place of its tensor.
fn in_slots(request: &Request, slots: &mut TensorSlots) -> Request {
    let numbered = |slot: Option<u32>| slot.map_or(NOWHERE, TensorId::new);
    match *request {
        Request::Allocate { tensor, size, stream } => {
            Request::Allocate { tensor: TensorId::new(slots.allocate(tensor)), size, stream }
        }
        Request::Free { tensor } => Request::Free { tensor: numbered(slots.free(tensor)) },
        Request::RecordStream { tensor, stream } => {
            Request::RecordStream { tensor: numbered(slots.get(tensor)), stream }
        }
        other => other,
    }
}

/// Runs a prepared workload and returns its totals, which equal those of a recorded run.
///
/// # Errors
///
/// [`RunError::Cancelled`] when `on_progress` cancels the run, [`RunError::Allocator`] when the device fails
/// for another reason than a lack of memory, or cannot have allocated the memory that the workload begins
/// with.
pub fn totals<D: DeviceMemory + Advance>(
    workload: &PreparedWorkload,
    config: &AllocatorConfig,
    device: D,
    on_progress: OnProgress,
) -> Result<Totals, RunError> {
    let total = workload.len();
    totals_into(workload, config, device, NullSink, &mut |done| {
        on_progress(Progress::new("running", done, total))
    })
}

/// Runs a prepared workload with each of `configs`, each on a new device. The totals are in the order of
/// `configs`.
///
/// # Errors
///
/// The errors of [`totals`], for the first run that fails.
pub fn sweep<D: DeviceMemory + Advance>(
    workload: &PreparedWorkload,
    configs: &[AllocatorConfig],
    mut device: impl FnMut() -> D,
    on_progress: OnProgress,
) -> Result<Vec<Totals>, RunError> {
    let total = workload.len() * configs.len();
    let run = |(index, config): (usize, &AllocatorConfig)| {
        totals_into(workload, config, device(), NullSink, &mut |done| {
            on_progress(Progress::new("running", index * workload.len() + done, total))
        })
    };
    configs.iter().enumerate().map(run).collect()
}

/// Runs a prepared workload and sends its events to `sink`. `on_done` gets the number of requests that are
/// done.
///
/// # Errors
///
/// The errors of [`totals`].
pub fn totals_into<D: DeviceMemory + Advance, S: EventSink>(
    workload: &PreparedWorkload,
    config: &AllocatorConfig,
    device: D,
    sink: S,
    on_done: OnDone,
) -> Result<Totals, RunError> {
    let mut replayer = Replayer::new(workload, config, device, sink)?;
    let mut totals = Totals::default();
    for done in (0..workload.len()).step_by(Progress::INTERVAL) {
        if on_done(done).is_break() {
            return Err(RunError::Cancelled);
        }
        while let Some(failed) = replayer.run_to(done + Progress::INTERVAL)? {
            match failed.result {
                StepOutcome::OutOfMemory(_) => totals.out_of_memory = totals.out_of_memory.saturating_add(1),
                _ => totals.refused = totals.refused.saturating_add(1),
            }
        }
    }
    Ok(Totals { stats: replayer.stats(), skipped: replayer.skipped(), ..totals })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use blockyard_device::VirtualDevice;
    use blockyard_record::Bytes;
    use blockyard_rules::Release;
    use blockyard_workload::presets::presets;

    use super::*;
    use crate::{RunSettings, Runner};

    fn device() -> VirtualDevice {
        VirtualDevice::new(Bytes::mib(64))
    }

    fn go_on(_: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    #[test]
    fn tensors_that_are_never_allocated_together_share_a_slot() {
        let text = "a = alloc 1 MiB; free a; b = alloc 1 MiB; c = alloc 1 MiB; free b, c; free d";
        let whole = Workload::parse(&text.replace("; free d", "")).unwrap();
        let prepared = PreparedWorkload::new(&whole);
        assert_eq!((prepared.slots, prepared.len(), prepared.is_empty()), (2, 6, false));
        let free = |tensor| Request::Free { tensor: TensorId::new(tensor) };
        assert_eq!(prepared.requests[1], free(0));
        assert_eq!(prepared.requests[4..], [free(0), free(1)]);

        let unknown = PreparedWorkload::new(&Workload::from_requests(vec![free(7)]));
        assert_eq!(unknown.slots, 0);
        let found = totals(&unknown, &AllocatorConfig::default(), device(), &mut go_on).unwrap();
        assert_eq!((found.skipped, found.stats), (1, Stats::default()));
    }

    #[test]
    fn totals_are_those_of_a_recorded_run() {
        for preset in presets() {
            let workload = Workload::parse(preset.text).unwrap();
            let config = AllocatorConfig::default();
            let capacity = preset.capacity;
            let settings = RunSettings { title: String::new(), config: config.clone(), capacity };
            let mut runner = Runner::new(VirtualDevice::new(capacity), &settings, &workload);
            let mut counted = Totals::default();
            while let Some(result) = runner.step().unwrap() {
                match result {
                    StepOutcome::OutOfMemory(_) => counted.out_of_memory += 1,
                    StepOutcome::Refused(_) => counted.refused += 1,
                    StepOutcome::Skipped(_) => counted.skipped += 1,
                    StepOutcome::Done => {}
                }
            }
            counted.stats = runner.stats();
            let prepared = PreparedWorkload::new(&workload);
            let found = totals(&prepared, &config, VirtualDevice::new(capacity), &mut go_on).unwrap();
            assert_eq!(found, counted, "{}", preset.id);
        }
    }

    #[test]
    fn a_sweep_has_the_totals_of_each_setting_in_order() {
        let workload =
            Workload::parse("a = alloc 3 MiB; b = alloc 30 MiB; c = alloc 40 MiB; free c").unwrap();
        let prepared = PreparedWorkload::new(&workload);
        let configs = ["", "large_segment_size_mb:32"]
            .map(|text| AllocatorConfig::parse(text, Release::default()).unwrap());
        let mut told = Vec::new();
        let found = sweep(&prepared, &configs, device, &mut |progress| {
            told.push((progress.done, progress.total));
            ControlFlow::Continue(())
        });
        let found = found.unwrap();
        let reserved: Vec<i64> = found.iter().map(|totals| totals.stats.reserved_bytes.all.current).collect();
        assert_eq!(reserved, [50 << 20, 62 << 20]);
        assert!(found.iter().all(|totals| (totals.out_of_memory, totals.skipped) == (1, 1)));
        assert_eq!(told, [(0, 8), (4, 8)]);
    }

    #[test]
    fn work_is_cancelled_before_the_first_request() {
        let prepared = PreparedWorkload::new(&Workload::parse("a = alloc 1 MiB").unwrap());
        let found = totals(&prepared, &AllocatorConfig::default(), device(), &mut |_| ControlFlow::Break(()));
        assert!(matches!(found, Err(RunError::Cancelled)));
    }

    #[test]
    fn a_replayer_stops_at_a_request_that_fails_and_goes_on_after_it() {
        let workload =
            Workload::parse("a = alloc 3 MiB; b = alloc 100 MiB; c = alloc 3 MiB; free a, c").unwrap();
        let prepared = PreparedWorkload::new(&workload);
        let mut replayer = Replayer::new(&prepared, &AllocatorConfig::default(), device(), NullSink).unwrap();
        let failed = replayer.run_to(usize::MAX).unwrap().unwrap();
        assert_eq!((failed.request, replayer.next_request()), (1, 2));
        assert!(matches!(failed.result, StepOutcome::OutOfMemory(_)));
        assert_eq!(replayer.run_to(3).unwrap(), None);
        assert_eq!((replayer.next_request(), replayer.stats().allocated_bytes.all.current), (3, 6 << 20));
        assert_eq!(replayer.run_to(2).unwrap(), None, "the end lies before the next request");
        assert_eq!(replayer.run_to(usize::MAX).unwrap(), None);
        assert_eq!((replayer.next_request(), replayer.stats().allocated_bytes.all.current), (5, 0));
    }
}
