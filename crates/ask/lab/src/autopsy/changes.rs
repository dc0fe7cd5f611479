//! Changes that might let the failed request pass, each tried by a replay.

use blockyard_record::{Bytes, OnDone, counted, frame_text, joined, own_line};
use blockyard_replay::{OnProgress, Progress};
use blockyard_rules::with_setting;
use blockyard_workload::Request;

use super::changed::{ChangedRun, is_about_pools};
use super::tensors::tensor_sets;
use super::{Examination, Passes, passes_at_bounds, pins};
use crate::outcome::calls_text;
use crate::setting_search::plain_candidates;
use crate::{Change, ChangeKind, Conditions, LabError, Limit, Run};

impl Examination<'_> {
    /// The end of a sentence about a change.
    fn sentence_end(&self, found: Passes) -> String {
        found.sentence_end(self.limited.limit().unwrap_or(self.limit))
    }
}

impl Passes {
    /// The effect of a change.
    pub(crate) fn of(change: &Change) -> Self {
        let at_low = change.passes_at_lower_bound;
        Self { at_low, at_high: at_low != change.depends_on_limit }
    }

    /// A change with this effect.
    pub(crate) fn change(self, kind: ChangeKind, sentence: String) -> Change {
        Change {
            kind,
            proved: self.always(),
            depends_on_limit: self.at_low != self.at_high,
            passes_at_lower_bound: self.at_low,
            sentence,
            outcome: None,
            forecast: None,
            rest: None,
        }
    }

    /// `the request passes`, and no more: a recording that ends at the failure does not have the program's
    /// later requests.
    pub(crate) fn sentence_end(self, limit: Limit) -> String {
        match self {
            Self { at_low: true, at_high: true } => "the request passes".to_owned(),
            Self { at_low: false, at_high: false } => "the request fails too".to_owned(),
            Self { at_low, .. } => {
                let (low, high) = if at_low { ("passes", "fails") } else { ("fails", "passes") };
                let range = limit.range_text();
                format!(
                    "it depends on the limit, which is {range}: the request {low} at the lower end and {high} at the upper"
                )
            }
        }
    }
}

/// The changes that help, and those that do not; the smallest change of each kind first.
pub(super) fn changes(
    examined: &Examination<'_>,
    on_progress: OnProgress,
) -> Result<(Vec<Change>, Vec<Change>), LabError> {
    let settings = plain_candidates(examined.run, examined.conditions);
    let sets = tensor_sets(examined);
    let total = (settings.len() + sets.len() + 1) as u64;
    let mut done = 0;
    let mut tell_all = |done: u64| on_progress(Progress { phase: "proving changes".to_owned(), done, total });
    let (mut helpful, mut in_vain) = (Vec::new(), Vec::new());
    let mut sort = |change: Change| if change.proved { helpful.push(change) } else { in_vain.push(change) };
    for conf in settings {
        let (found, outcome) = examined.passes_under(&conf, &mut |_| tell_all(done))?;
        let outcome = outcome.filter(|_| found.always());
        let name = if conf.is_empty() { "the default settings" } else { &conf };
        let calls = outcome.map(|outcome| calls_text(&[&conf], &[outcome], &examined.outcome));
        let calls = calls.map_or_else(String::new, |calls| format!(", with {calls}"));
        let sentence = format!("with {name} {}{calls}", examined.sentence_end(found));
        sort(Change { outcome, ..found.change(ChangeKind::Setting(conf), sentence) });
        done = done.saturating_add(1);
    }
    let mut has_set = false;
    for set in sets {
        if !has_set {
            let change = free_tensors(examined, &set, &mut |_| tell_all(done))?;
            has_set = change.proved;
            sort(change);
        }
        done = done.saturating_add(1);
    }
    let structural = [
        synchronized(examined, &mut |_| tell_all(done))?,
        default_pool(examined, &mut |_| tell_all(done))?,
        one_stream(examined, &mut |_| tell_all(done))?,
    ];
    structural.into_iter().flatten().for_each(&mut sort);
    sort(limit(examined, examined.run, examined.failure.index, &mut |_| tell_all(done))?);
    Ok((helpful, in_vain))
}

/// A settings text without one of its keys.
pub(super) fn without_key(conf: &str, key: &str) -> String {
    with_setting(conf, key, None)
}

fn free_tensors(examined: &Examination<'_>, set: &[usize], on_done: OnDone) -> Result<Change, LabError> {
    let sizes = set.iter().filter_map(|request| match examined.run.requests().get(*request) {
        Some(Request::Allocate { size, .. }) => Some(*size),
        _ => None,
    });
    let bytes: Bytes = sizes.sum();
    let kind = examined.run.frees(set.iter().copied(), bytes);
    let found = passes_with(examined, &kind, on_done)?;
    let end = examined.sentence_end(found);
    let sentence = format!("with {} freed before ({bytes}), {end}", tensors_text(examined, set));
    Ok(found.change(kind, sentence))
}

/// Tensors in words: by name or, without names, by the lines of the program that asked for them, in the order
/// of the requests.
fn tensors_text(examined: &Examination<'_>, set: &[usize]) -> String {
    const MAX_GROUPS: usize = 4;
    let mut groups: Vec<(String, usize)> = Vec::new();
    for request in set {
        let of = pins::name(examined, *request).unwrap_or_else(|| {
            own_line(&examined.run.stack(*request))
                .map_or_else(|| "lines that are not recorded".to_owned(), frame_text)
        });
        match groups.iter_mut().find(|(known, _)| *known == of) {
            Some((_, count)) => *count += 1,
            None => groups.push((of, 1)),
        }
    }
    let is_named = set.first().is_some_and(|request| pins::name(examined, *request).is_some());
    let left_out: usize = groups.iter().skip(MAX_GROUPS).map(|(_, count)| count).sum();
    let mut words: Vec<String> = groups
        .into_iter()
        .take(MAX_GROUPS)
        .map(|(of, count)| if is_named { of } else { format!("{} of {of}", counted(count, "tensor")) })
        .collect();
    if left_out > 0 {
        words.push(format!("{left_out} more"));
    }
    joined(&words)
}

/// Whether the request passes with a change, at each bound of the limit.
fn passes_with(examined: &Examination<'_>, kind: &ChangeKind, on_done: OnDone) -> Result<Passes, LabError> {
    passes_changed(examined.run, examined.conditions, kind, examined.failure.index, on_done)
}

/// Whether the request with this index passes in a run with a change, at each bound of the limit.
pub(crate) fn passes_changed(
    run: &Run,
    conditions: &Conditions,
    kind: &ChangeKind,
    request: usize,
    on_done: OnDone,
) -> Result<Passes, LabError> {
    let changed = ChangedRun::of(run, conditions, kind, request);
    let bounds = changed.run.fixed_conditions(&changed.conditions);
    Ok(passes_at_bounds(&changed.run, &bounds, changed.request, on_done)?.0)
}

/// The change that takes all memory from the default pool; `None` if the run enters no memory pool.
fn default_pool(examined: &Examination<'_>, on_done: OnDone) -> Result<Option<Change>, LabError> {
    if !examined.run.requests().iter().take(examined.failure.index).any(is_about_pools) {
        return Ok(None);
    }
    let found = passes_with(examined, &ChangeKind::DefaultPool, on_done)?;
    let end = examined.sentence_end(found);
    let sentence =
        format!("with everything from the default pool in place of the program's memory pools {end}");
    Ok(Some(found.change(ChangeKind::DefaultPool, sentence)))
}

/// The change that waits for all streams right before the request that fails; `None` if no free waits for a
/// stream.
pub(super) fn synchronized(examined: &Examination<'_>, on_done: OnDone) -> Result<Option<Change>, LabError> {
    let is_use = |request: &Request| matches!(request, Request::RecordStream { .. });
    if !examined.run.requests().iter().take(examined.failure.index).any(is_use) {
        return Ok(None);
    }
    let found = passes_with(examined, &ChangeKind::Synchronize, on_done)?;
    let end = examined.sentence_end(found);
    let sentence = format!("with torch.cuda.synchronize() right before {end}");
    Ok(Some(found.change(ChangeKind::Synchronize, sentence)))
}

/// The change that puts all memory on the stream of the request that fails; `None` if all memory is on this
/// stream already.
fn one_stream(examined: &Examination<'_>, on_done: OnDone) -> Result<Option<Change>, LabError> {
    let own = examined.failure.request.stream;
    let is_elsewhere =
        |request: &Request| matches!(request, Request::Allocate { stream, .. } if *stream != own);
    if !examined.run.requests().iter().take(examined.failure.index).any(is_elsewhere) {
        return Ok(None);
    }
    let found = passes_with(examined, &ChangeKind::OneStream, on_done)?;
    let end = examined.sentence_end(found);
    let sentence = format!("with all memory on stream {own} {end}");
    Ok(Some(found.change(ChangeKind::OneStream, sentence)))
}

/// The smallest limit under which a request of the run, or of a longer one, passes, counted in whole segments.
pub(super) fn limit(
    examined: &Examination<'_>,
    run: &Run,
    request: usize,
    on_done: OnDone,
) -> Result<Change, LabError> {
    let Examination { failure, limit, conditions, .. } = examined;
    let least_step = conditions.config(run)?.large_segment_rounding();
    let capacity = conditions.capacity_of(run);
    let mut try_limit = |wanted: Bytes| -> Result<bool, LabError> {
        let conditions = Conditions { capacity: Some(capacity.max(wanted)), ..conditions.and_limit(wanted) };
        let fixed = run.fixed_conditions(&conditions);
        // A given limit is a single limit without bounds.
        let Some(fixed) = fixed.first() else { return Ok(false) };
        Ok(fixed.served(run, request.saturating_add(1), on_done)?.is_some())
    };
    let enough = failure.memory.reserved.saturating_add(failure.request.segment_size);
    let (mut low, mut high) = (limit.high, enough.max(Bytes::new(limit.high.get().saturating_add(1))));
    let mut proved = try_limit(high)?;
    // More memory may lead to another layout, which may need still more.
    let mut attempts = 0_u32;
    while !proved && attempts < 8 {
        low = high;
        let step = failure.request.segment_size.max(least_step);
        high = high.saturating_add(Bytes::new(step.get().saturating_mul(1 << attempts.min(8))));
        proved = try_limit(high)?;
        attempts = attempts.saturating_add(1);
    }
    while proved && high.saturating_sub(low) > least_step && attempts < 40 {
        let middle = low.saturating_add(Bytes::new(high.saturating_sub(low).get() / 2));
        if try_limit(middle)? {
            high = middle;
        } else {
            low = middle;
        }
        attempts = attempts.saturating_add(1);
    }
    let sentence = if proved && limit.low == limit.high {
        let more = high.saturating_sub(limit.high).enough_text();
        // A sum of a rounded limit and a few bytes more would not be the number that a reader adds up.
        format!("with {more} more than the {} that may be reserved, the request passes", limit.high)
    } else if proved {
        format!("with {} that may be reserved the request passes", high.enough_text())
    } else {
        format!("with {high} that may be reserved the request fails too")
    };
    let kind = ChangeKind::Limit(high);
    Ok(Passes { at_low: proved, at_high: proved }.change(kind, sentence))
}
