use std::collections::HashMap;

use blockyard_pytorch::{Allocated, Inferred, OperationKind, RecordedRun};
use blockyard_record::{BlockState, Bytes, PoolId, Snapshot, TraceAction};
use blockyard_replay::{OnProgress, PreparedWorkload, RunSettings, open};
use blockyard_workload::{Request, TensorId, Workload};

use crate::{Conditions, LabError};

/// One run of a program, as its requests: what every question is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What to call it.
    pub name: String,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the run.
    pub config: String,
    /// All bytes of its device.
    pub capacity: Bytes,
    /// The most that might be reserved, if a memory fraction limited it and is known.
    pub limit: Option<Bytes>,
    workload: Workload,
    plan: PreparedWorkload,
    /// How many of the first requests stand for memory from before the recording.
    from_before: usize,
    resets: Vec<usize>,
    goes_on_after_oom: bool,
    recorded_oom: Option<usize>,
    notes: Vec<String>,
}

impl Run {
    /// The run of a recording.
    ///
    /// # Errors
    ///
    /// [`LabError::Config`] where its settings are wrong, [`LabError::Run`] where its requests cannot be found,
    /// [`LabError::Cancelled`].
    pub fn from_recorded(recorded: &RecordedRun, on_progress: OnProgress) -> Result<Self, LabError> {
        let settings = RunSettings {
            title: recorded.meta.name.clone(),
            config: recorded.meta.config.parse()?,
            capacity: recorded.meta.total_memory,
        };
        let replayable = open(recorded, &settings, on_progress)?;
        let failed = failed_requests(&replayable.run, &replayable.inferred);
        let Inferred { workload, start, notes, .. } = replayable.inferred;
        let (workload, from_before) = with_memory_from_before(&workload, &start);
        let failed: Vec<usize> = failed.into_iter().map(|request| request + from_before).collect();
        let goes_on = failed.first().is_some_and(|first| {
            let behind = workload.requests().iter().skip(first + 1);
            behind.into_iter().any(|request| matches!(request, Request::Allocate { .. }))
        });
        let mut run =
            Self::new(&recorded.meta.name, workload, &recorded.meta.config, recorded.meta.total_memory);
        run.goes_on_after_oom = goes_on;
        run.recorded_oom = failed.first().copied();
        run.from_before = from_before;
        run.notes = notes;
        if from_before > 0 {
            run.notes.push(format!(
                "the recording begins late: the {} that were live then are requested first, by ascending address; what \
                 else was requested before is lost",
                blocks(run.start_allocations())
            ));
        }
        Ok(run)
    }

    /// The run of a workload on a device of its own. It goes on after out of memory, as a workload does.
    #[must_use]
    pub fn from_workload(name: &str, workload: Workload, config: &str, capacity: Bytes) -> Self {
        Self { goes_on_after_oom: true, ..Self::new(name, workload, config, capacity) }
    }

    fn new(name: &str, workload: Workload, config: &str, capacity: Bytes) -> Self {
        let is_reset = |request: &Request| matches!(request, Request::ResetPeak | Request::ResetAccumulated);
        let requests = workload.requests().iter().enumerate();
        let resets = requests.filter(|(_, request)| is_reset(request)).map(|(index, _)| index).collect();
        Self {
            name: name.to_owned(),
            config: config.to_owned(),
            capacity,
            limit: None,
            plan: PreparedWorkload::new(&workload),
            workload,
            from_before: 0,
            resets,
            goes_on_after_oom: false,
            recorded_oom: None,
            notes: Vec::new(),
        }
    }

    /// Its requests, in order.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        self.workload.requests()
    }

    /// Its requests with names and labels.
    #[must_use]
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Its own settings, device and limit.
    #[must_use]
    pub fn conditions(&self) -> Conditions {
        Conditions::with_conf(&self.config)
    }

    /// The request that failed first when the run was recorded, as an index.
    #[must_use]
    pub fn recorded_oom(&self) -> Option<usize> {
        self.recorded_oom
    }

    /// Whether the program goes on after a request that fails. Else the run ends there.
    #[must_use]
    pub fn goes_on_after_oom(&self) -> bool {
        self.goes_on_after_oom
    }

    /// What is not known about the run, in sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn plan(&self) -> &PreparedWorkload {
        &self.plan
    }

    /// The requests that reset statistics, as indices.
    pub(crate) fn resets(&self) -> &[usize] {
        &self.resets
    }

    fn start_allocations(&self) -> usize {
        let before = self.requests().iter().take(self.from_before);
        before.filter(|request| matches!(request, Request::Allocate { .. })).count()
    }
}

fn blocks(count: usize) -> String {
    if count == 1 { "one block".to_owned() } else { format!("{count} blocks") }
}

/// The requests with those before them that lead to the live blocks of `start`, and how many these are.
///
/// Tensors keep their numbers, since the live blocks are the first tensors.
fn with_memory_from_before(workload: &Workload, start: &Snapshot) -> (Workload, usize) {
    let mut before = Vec::new();
    let mut tensor = 0;
    for segment in &start.segments {
        let is_private = segment.pool_id != PoolId::DEFAULT;
        let live = segment.blocks.iter().filter(|block| block.state == BlockState::Allocated);
        for block in live {
            if is_private {
                before.push(Request::EnterPool { pool: segment.pool_id });
            }
            let size = if block.requested.is_zero() { block.size } else { block.requested };
            before.push(Request::Allocate { tensor: TensorId::new(tensor), size, stream: segment.stream });
            if is_private {
                before.push(Request::LeavePool { pool: segment.pool_id });
            }
            tensor += 1;
        }
    }
    if before.is_empty() {
        return (workload.clone(), 0);
    }
    let count = before.len();
    let moved = |at: u32| at.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    before.extend_from_slice(workload.requests());
    let mut all = Workload::from_requests(before);
    all.set_labels(workload.labels().iter().map(|(at, text)| (moved(*at), text.clone())).collect());
    (all, count)
}

/// The requests that failed for want of memory when the run was recorded, as indices.
fn failed_requests(run: &RecordedRun, inferred: &Inferred) -> Vec<usize> {
    let requests = inferred.workload.requests().iter().enumerate();
    let allocations = requests.filter(|(_, request)| matches!(request, Request::Allocate { .. }));
    if run.operations.is_empty() {
        let is_request = |action| matches!(action, TraceAction::Alloc | TraceAction::OutOfMemory);
        let entries = run.trace.iter().flatten().filter(|entry| is_request(entry.action));
        let failed = allocations.zip(entries).filter(|(_, entry)| entry.action == TraceAction::OutOfMemory);
        return failed.map(|((index, _), _)| index).collect();
    }
    let failed: HashMap<usize, bool> = run
        .operations
        .iter()
        .enumerate()
        .map(|(index, operation)| {
            let result = match &operation.kind {
                OperationKind::Allocate { result, .. } => result.as_ref(),
                _ => None,
            };
            (index, matches!(result, Some(Allocated::OutOfMemory(_))))
        })
        .collect();
    let operation = |index: usize| inferred.operations.get(index).copied().unwrap_or(usize::MAX);
    allocations
        .filter(|(index, _)| failed.get(&operation(*index)).copied().unwrap_or(false))
        .map(|(index, _)| index)
        .collect()
}
