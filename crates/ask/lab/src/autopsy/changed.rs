//! Runs with a change made to them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use blockyard_replay::{OnProgress, Progress};
use blockyard_workload::{Request, TensorId};

use crate::limited_run::row;
use crate::{ChangeKind, Conditions, LabError, LimitedRun, Run, WhatIf};

/// A run with a change, under conditions that may have changed too.
pub(crate) struct ChangedRun<'a> {
    pub(crate) run: Cow<'a, Run>,
    pub(crate) conditions: Conditions,
    /// The request that the change is about, as an index into the changed run's.
    pub(super) request: usize,
}

impl<'a> ChangedRun<'a> {
    /// The run with a change that should let the request at an index pass.
    pub(crate) fn of(run: &'a Run, conditions: &Conditions, kind: &ChangeKind, request: usize) -> Self {
        let same = conditions.clone();
        match kind {
            ChangeKind::Setting(_) | ChangeKind::Limit(_) => {
                let conditions = conditions.and_change(kind, run).unwrap_or(same);
                Self { run: Cow::Borrowed(run), conditions, request }
            }
            ChangeKind::FreeTensors { requests, earlier, .. } => {
                let (edited, frees) = with_frees(run, (requests, earlier), request);
                Self { run: Cow::Owned(edited), conditions: same, request: request + frees }
            }
            ChangeKind::DefaultPool => {
                let before = run.requests().iter().take(request).filter(|request| is_about_pools(request));
                let request = request - before.count();
                let edited = run.requests().iter().filter(|request| !is_about_pools(request)).copied();
                let run = Cow::Owned(run.with_requests(edited.collect()));
                Self { run, conditions: same, request }
            }
            ChangeKind::OneStream => {
                Self { run: Cow::Owned(on_one_stream(run, request)), conditions: same, request }
            }
            ChangeKind::Synchronize => {
                let mut requests = run.requests().to_vec();
                requests.insert(request.min(requests.len()), Request::Advance { stream: None });
                let run = Cow::Owned(run.with_requests(requests));
                Self { run, conditions: same, request: request.saturating_add(1) }
            }
        }
    }
}

impl Conditions {
    /// These conditions with a change of a run; `None` for a change of the requests.
    pub(crate) fn and_change(&self, change: &ChangeKind, run: &Run) -> Option<Self> {
        match change {
            ChangeKind::Setting(conf) => Some(self.and_conf(conf)),
            ChangeKind::Limit(limit) => {
                let capacity = Some(self.capacity_of(run).max(*limit));
                Some(Self { capacity, ..self.and_limit(*limit) })
            }
            ChangeKind::FreeTensors { .. }
            | ChangeKind::DefaultPool
            | ChangeKind::OneStream
            | ChangeKind::Synchronize => None,
        }
    }
}

pub(super) fn is_about_pools(request: &Request) -> bool {
    matches!(
        request,
        Request::CreatePool { .. }
            | Request::EnterPool { .. }
            | Request::LeavePool { .. }
            | Request::DestroyPool { .. }
    )
}

/// The run with all memory on the stream of the request with this index.
fn on_one_stream(run: &Run, request: usize) -> Run {
    let Some(Request::Allocate { stream: own, .. }) = run.requests().get(request).copied() else {
        return run.clone();
    };
    let edited = run.requests().iter().map(|request| match *request {
        Request::Allocate { tensor, size, .. } => Request::Allocate { tensor, size, stream: own },
        other => other,
    });
    run.with_requests(edited.collect())
}

/// The run in which some tensors are freed before the request with the index `before`, and the number of these
/// frees. The tensors are those of requests, by their numbers, and blocks from before the recording, counted
/// from 1.
fn with_frees(run: &Run, (requests, earlier): (&[u64], &[u64]), before: usize) -> (Run, usize) {
    let of_requests = requests.iter().filter_map(|number| run.request_index(*number));
    let all = of_requests.chain(earlier.iter().filter_map(|block| run.earlier_request(*block)));
    let tensors: BTreeSet<TensorId> = all
        .filter_map(|request| match run.requests().get(request) {
            Some(Request::Allocate { tensor, .. }) => Some(*tensor),
            _ => None,
        })
        .collect();
    let mut requests = run.requests().get(..before).unwrap_or_default().to_vec();
    requests.extend(tensors.iter().map(|tensor| Request::Free { tensor: *tensor }));
    // Later frees and uses of these tensors are left out: the tensors are freed above.
    let is_later_use = |request: &Request| match request {
        Request::Free { tensor } | Request::RecordStream { tensor, .. } => tensors.contains(tensor),
        _ => false,
    };
    let later = run.requests().get(before..).unwrap_or_default().iter();
    requests.extend(later.filter(|request| !is_later_use(request)));
    (run.with_requests(requests), tensors.len())
}

/// Replays a run with a change that [`autopsy`](super::autopsy) names, beside the run without it.
///
/// `conditions` are those of the autopsy. Both runs are replayed under the limit in `conditions`, or else
/// under the limit that the run's file implies. `request` is the request that fails without the change,
/// counted from 1; `samples` is about how many parts each timeline has.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings.
pub fn try_change(
    run: &Run,
    conditions: &Conditions,
    change: &ChangeKind,
    request: u64,
    samples: usize,
    on_progress: OnProgress,
) -> Result<WhatIf, LabError> {
    let total = run.requests().len();
    let mut on_done =
        |done: usize| -> ControlFlow<()> { on_progress(Progress::new("replaying", done, total)) };
    let limited = LimitedRun::of(run, conditions, &mut on_done)?;
    let run = limited.run();
    let baseline = limited.row(&conditions.conf, samples, &mut on_done)?;
    // A number after the last request means the end of the run.
    let index = run.request_index(request.max(1)).map_or(total, |index| index.min(total));
    let changed = ChangedRun::of(run, conditions, change, index);
    let row = row(&changed.run, &changed.conditions, samples, &mut on_done)?;
    Ok(WhatIf { baseline, rows: vec![row], differences: vec![None], notes: run.notes() })
}
