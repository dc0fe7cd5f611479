//! Which GPUs hold a run, and what another release of PyTorch changes.

use blockyard_gpus::{GpuProfile, NON_PYTORCH_RECORDED_ON, context_and_libraries, pytorch_memory};
use blockyard_record::{Bytes, OnDone};
use blockyard_replay::{OnProgress, Progress};
use blockyard_rules::Release;

use crate::forecast::{Forecaster, forecast_end};
use crate::outcome::replay_under;
use crate::rest::CompletedRun;
use crate::source::with_article;
use crate::{
    Autopsy, ChangeKind, Conditions, Finding, FindingTopic, Forecast, LabError, Leaks, Limit, LimitKind,
    Outcome, Row, Run,
};

/// All memory of a device, with the name of a GPU that has as much. A file has the bytes as PyTorch's
/// messages write them, in GiB with two places.
fn named_device(capacity: Bytes) -> String {
    let is_of = |gpu: &&GpuProfile| gpu.total_memory.to_string() == capacity.to_string();
    match GpuProfile::ALL.iter().find(is_of) {
        Some(gpu) => format!("the device has {capacity}, as {} has", with_article(gpu.name)),
        None => format!("the device has {capacity}"),
    }
}

/// The most reserved bytes in words: those of the recorded run, if its file shows them, and those of a
/// replay.
pub(super) fn reserving(run: &Run, own: Option<Bytes>, replayed: Bytes) -> String {
    // A replay of a recording that begins late does not have the memory that was cached at its beginning.
    match (run.requests_from_before(), own) {
        (_, Some(own)) if own == replayed => format!("reserved are at most {replayed}"),
        (0, Some(own)) => format!("the run reserved at most {own}; a replay reserves at most {replayed}"),
        (_, Some(own)) => format!(
            "the run reserved at most {own}; a replay from what was live at the beginning, without what was cached then, \
             reserves at most {replayed}"
        ),
        (0, None) => format!("reserved are at most {replayed}"),
        (_, None) => format!("a replay from what was live at the beginning reserves at most {replayed}"),
    }
}

/// The limit of a run that fits: a memory fraction or the device.
pub(super) fn limit_text(run: &Run, conditions: &Conditions, limit: Option<Limit>) -> String {
    let device = || match run.device_words.as_ref().filter(|_| conditions.capacity_of(run) == run.capacity) {
        Some(words) => words.clone(),
        None => named_device(conditions.capacity_of(run)),
    };
    limit.map_or_else(device, |limit| limit.sentence())
}

/// How many parts of a GiB the search for the least device tells apart: tenths, as people name devices.
const TENTHS: u64 = 10;

/// All memory of a device with this many tenths of a GiB, to the nearest byte, as a typed size is read.
fn device_of(tenths: u64) -> Bytes {
    let twice = Bytes::gib(tenths).get().saturating_mul(2).saturating_add(TENTHS);
    Bytes::new(twice / (2 * TENTHS))
}

/// How many tenths of a GiB are at least this many bytes.
fn tenths(bytes: Bytes) -> u64 {
    bytes.get().saturating_mul(TENTHS).div_ceil(Bytes::gib(1).get())
}

/// The least device on which a replay passes, in tenths of a GiB, the context and the libraries of a process
/// included. `outcome` is that of the run under these conditions, which fits: its most reserved bytes are
/// enough, and its most allocated bytes are needed.
fn least_device(
    run: &Run,
    conditions: &Conditions,
    outcome: &Outcome,
    on_done: OnDone,
) -> Result<u64, LabError> {
    let non_pytorch = context_and_libraries();
    let (mut low, mut high) = (
        tenths(outcome.peak_allocated.saturating_add(non_pytorch)).saturating_sub(1),
        tenths(outcome.peak_reserved.saturating_add(non_pytorch)),
    );
    while high.saturating_sub(low) > 1 {
        let middle = low.midpoint(high);
        let capacity = Some(pytorch_memory(device_of(middle)));
        let smaller = Conditions { capacity, limit: None, ..conditions.clone() };
        if replay_under(run, &smaller, 0, on_done)?.fits() {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Which GPUs hold a run that fits, by replays: the smallest known GPU and the least device that is enough,
/// under the run's own settings and under the recommended setting. A run that `goes_on` would take more than
/// was recorded.
pub(super) fn gpus_that_hold(
    run: &Run,
    conditions: &Conditions,
    own: &Outcome,
    best: Option<&Row>,
    goes_on: bool,
    on_progress: OnProgress,
) -> Result<Vec<Finding>, LabError> {
    let total = run.requests().len();
    let mut on_done = |done| on_progress(Progress::new("looking for the smallest device", done, total));
    let least = least_device(run, conditions, own, &mut on_done)?;
    let smallest = smallest_known(run, conditions, own, &mut on_done)?;
    let mut findings = vec![
        Finding::new(FindingTopic::Gpus, smallest_gpu_text(smallest, own.peak_reserved, least, goes_on)),
        Finding::new(FindingTopic::Gpus, non_pytorch_text()),
    ];
    if let Some((row, outcome)) = best.and_then(|row| Some((row, row.outcome_at_lowest()?))) {
        let changed = conditions.and_conf(&row.conditions.conf);
        let with = least_device(run, &changed, outcome, &mut on_done)?;
        // A tenth of a GiB is as finely as devices are told apart.
        if with >= least {
            return Ok(findings);
        }
        let name = if row.conditions.conf.is_empty() { "the default settings" } else { &row.conditions.conf };
        let device = device_of(with);
        let with_gpu = smallest_known(run, &changed, outcome, &mut on_done)?.map(|(gpu, _)| gpu);
        let text = match with_gpu.filter(|gpu| smallest.is_none_or(|(other, _)| other.name != gpu.name)) {
            Some(gpu) => {
                format!(
                    "with {name} it fits on {}, and a device of {device} in all is enough",
                    gpu_phrase(gpu)
                )
            }
            None => format!("with {name} a device of {device} in all is enough"),
        };
        findings.insert(1, Finding::new(FindingTopic::Gpus, text));
    }
    Ok(findings)
}

/// A GPU with what it leaves for PyTorch: `NVIDIA L4 (21.31 GiB)`.
fn gpu_phrase(gpu: &GpuProfile) -> String {
    format!("{} ({})", gpu.name, pytorch_memory(gpu.total_memory))
}

/// The smallest known GPU on which a run fits, and whether the run has to release cached memory there.
fn smallest_known(
    run: &Run,
    conditions: &Conditions,
    outcome: &Outcome,
    on_done: OnDone,
) -> Result<Option<(&'static GpuProfile, bool)>, LabError> {
    for gpu in GpuProfile::ALL.iter().rev() {
        let left = pytorch_memory(gpu.total_memory);
        if left >= outcome.peak_reserved {
            return Ok(Some((gpu, false)));
        }
        // If the GPU has between the most allocated and the most reserved bytes, a replay decides.
        let on_it = Conditions { capacity: Some(left), limit: None, ..conditions.clone() };
        if left >= outcome.peak_allocated && replay_under(run, &on_it, 0, on_done)?.fits() {
            return Ok(Some((gpu, true)));
        }
    }
    Ok(None)
}

/// The sentence about the known GPUs on which the run fits or does not fit, and about the least device.
fn smallest_gpu_text(
    smallest: Option<(&GpuProfile, bool)>,
    reserved: Bytes,
    least: u64,
    goes_on: bool,
) -> String {
    let is_smaller =
        |gpu: &&GpuProfile| smallest.is_none_or(|(other, _)| gpu.total_memory < other.total_memory);
    let small: Vec<String> = GpuProfile::ALL.iter().filter(is_smaller).map(gpu_phrase).collect();
    let so_far = if goes_on { ", as far as it was recorded," } else { "" };
    let which = match smallest {
        Some((gpu, releases)) => {
            let how = if releases { ", where it releases cached memory on the way" } else { "" };
            let other = if small.is_empty() {
                String::new()
            } else {
                format!(", and not on a smaller one: {}", small.join(", "))
            };
            format!("the run{so_far} fits on {} and every larger GPU{how}{other}", gpu_phrase(gpu))
        }
        None => format!(
            "no known GPU leaves the {reserved} that the run{so_far} reserves: the largest is {}",
            small.first().map(String::as_str).unwrap_or_default()
        ),
    };
    let device = device_of(least);
    let how =
        if pytorch_memory(device) < reserved { ", where it releases cached memory on the way" } else { "" };
    format!("{which}; a device of {device} in all is enough{how}")
}

/// The smallest known GPU on which the failed iteration passes, where the iterations before it show what the
/// rest of it asks for; else the smallest one on which the failed request passes. `None` where the memory of the
/// device was not the limit.
pub(super) fn gpu_for_the_failure(
    run: &Run,
    conditions: &Conditions,
    found: &Autopsy,
    leaks: &Leaks,
    completed: Option<&CompletedRun>,
    on_done: OnDone,
) -> Result<Option<Finding>, LabError> {
    if found.limit.by != LimitKind::Device {
        return Ok(None);
    }
    let limits = found.failure.changes.iter().filter_map(|change| match change.kind {
        ChangeKind::Limit(limit) => Some(limit),
        _ => None,
    });
    let Some(enough) = limits.min() else { return Ok(None) };
    let cut = run.until_failure(conditions, found.index.saturating_add(1), on_done)?;
    let forecaster = Forecaster::to_failure(&cut, conditions, leaks, on_done)?;
    let failed = leaks.ends.len() as u64;
    let in_vain = |gpu: &GpuProfile| {
        format!(
            "no known GPU holds the iteration that failed: the request passes on {}, and a later one of the iteration fails",
            gpu.name
        )
    };
    let mut text = format!("no known GPU leaves the {} with which the request passes", enough.enough_text());
    for gpu in GpuProfile::ALL.iter().rev() {
        let left = pytorch_memory(gpu.total_memory);
        if left < enough {
            continue;
        }
        let on_it = Conditions { capacity: Some(left), limit: None, ..conditions.clone() };
        let forecast =
            forecaster.as_ref().map(|iterations| iterations.forecast(&on_it, on_done)).transpose()?;
        let rest = completed.map(|completed| {
            completed.of_changed(&completed.run, &completed.run.fixed_conditions(&on_it), on_done)
        });
        let rest = rest.transpose()?.flatten();
        let fails_later = rest.as_ref().is_some_and(|rest| rest.fails.is_some());
        let (passes, end) = match forecast.flatten() {
            Some(Forecast::Fails { iteration, .. }) if iteration <= failed => {
                text = in_vain(gpu);
                continue;
            }
            None if fails_later => {
                text = in_vain(gpu);
                continue;
            }
            Some(forecast) => ("iteration that failed", forecast_end(&forecast)),
            None if rest.is_some_and(|rest| rest.finishes()) => ("iteration that failed", None),
            None if run.continues_after_oom() => ("request", None),
            None => ("request", Some("and what the program asks for after it is not known".to_owned())),
        };
        let end = end.map_or_else(String::new, |end| format!(", {end}"));
        text = format!(
            "the smallest known GPU on which the {passes} passes is {}, of which {left} are left for PyTorch{end}",
            gpu.name
        );
        break;
    }
    Ok(Some(Finding::new(FindingTopic::Gpus, text)))
}

/// The words about the non-PyTorch memory that is subtracted from each GPU.
fn non_pytorch_text() -> String {
    format!(
        "after the name of a GPU stands the memory that it leaves for PyTorch: all without the {} of the CUDA context and libraries, which were measured on an \
         {NON_PYTORCH_RECORDED_ON}: an estimate for every other GPU",
        context_and_libraries()
    )
}

/// The sentence about the run under the rules of the latest release; `None` if its own release is the latest.
/// `own` is the outcome under its own rules, if the run fits.
pub(super) fn under_the_latest_release(
    run: &Run,
    conditions: &Conditions,
    own: Option<&Outcome>,
    on_progress: OnProgress,
) -> Result<Option<Finding>, LabError> {
    let (from, to) = (conditions.release_of(run), Release::LATEST);
    if from == to {
        return Ok(None);
    }
    let total = run.requests().len();
    let mut on_done = |done| on_progress(Progress::new("replaying under another release", done, total));
    let row = replay_under(run, &conditions.and_release(to), 0, &mut on_done)?;
    let Some(other) = row.outcome_at_lowest() else { return Ok(None) };
    let what = match own {
        _ if !row.fits() && own.is_some() => "the replay runs out of memory".to_owned(),
        _ if !row.fits() => "the replay runs out of memory, too".to_owned(),
        None => {
            format!("the replay does not run out of memory, and reserves at most {}", other.peak_reserved)
        }
        Some(own) if own.peak_reserved == other.peak_reserved => {
            format!("the replay reserves at most {}, as under {from}", other.peak_reserved)
        }
        Some(own) if own.peak_reserved > other.peak_reserved => format!(
            "the replay reserves at most {}, {} less",
            other.peak_reserved,
            own.peak_reserved.saturating_sub(other.peak_reserved)
        ),
        Some(own) => format!(
            "the replay reserves at most {}, {} more",
            other.peak_reserved,
            other.peak_reserved.saturating_sub(own.peak_reserved)
        ),
    };
    let text = format!(
        "with the rules of PyTorch {to} in place of {from}'s, {what}; the requests are those of the recording"
    );
    let release = Some(to.name().to_owned());
    Ok(Some(Finding { release, ..Finding::new(FindingTopic::Releases, text) }))
}
