//! Which GPUs hold a run, and what another release of PyTorch makes of it.

use blockyard_gpus::{GpuProfile, OUTSIDE_RECORDED_ON, outside_of_training};
use blockyard_record::Bytes;
use blockyard_replay::{OnProgress, Progress};
use blockyard_rules::Release;

use super::{About, Finding};
use crate::outcome::replay_under;
use crate::{Conditions, LabError, Limit, Outcome, Run};

/// All memory of a device, with the name of a GPU that has as much. A file has the bytes as PyTorch's messages write them, in GiB with two
/// places.
fn named_device(capacity: Bytes) -> String {
    let is_of = |gpu: &&GpuProfile| gpu.total_memory.to_string() == capacity.to_string();
    match GpuProfile::ALL.iter().find(is_of) {
        Some(gpu) => format!("the device has {capacity}, as an {} has", gpu.name),
        None => format!("the device has {capacity}"),
    }
}

/// How much is reserved at most: by the run itself, where its file tells, and in a replay.
pub(super) fn reserving(run: &Run, own: Option<Bytes>, replayed: Bytes) -> String {
    // What was cached when a recording began late is not requested again.
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
pub(super) fn limit_words(run: &Run, conditions: &Conditions, limit: Option<Limit>) -> String {
    let device = || match run.device_words.as_ref().filter(|_| conditions.capacity_of(run) == run.capacity) {
        Some(words) => words.clone(),
        None => named_device(conditions.capacity_of(run)),
    };
    limit.map_or_else(device, |limit| limit.sentence())
}

/// The smallest GPU that holds so many bytes beside the context and the libraries of a process, and those that are too small. A run that `goes_on` would take
/// more than was recorded.
pub(super) fn gpus_that_hold(reserved: Bytes, goes_on: bool) -> Finding {
    let outside = outside_of_training();
    let mut gpus = GpuProfile::ALL.map(|gpu| (gpu.total_memory.saturating_sub(outside), gpu.name));
    gpus.sort();
    let (small, large): (Vec<&(Bytes, &str)>, Vec<_>) = gpus.iter().partition(|(left, _)| *left < reserved);
    let named = |(left, name): &(Bytes, &str)| format!("{name} ({left})");
    let which = match large.first() {
        Some(smallest) => format!(
            "{} is the smallest of the known GPUs that holds the {reserved} of the replay",
            named(smallest)
        ),
        None => format!("none of the known GPUs holds the {reserved} of the replay"),
    };
    let small: Vec<String> = small.into_iter().rev().map(named).collect();
    let too_small = match small.as_slice() {
        [] => String::new(),
        small => format!("; too small: {}", small.join(", ")),
    };
    let so_far = if goes_on { ", as far as it was recorded" } else { "" };
    let text = format!(
        "{which}{so_far}{too_small}; {outside} are taken off for the CUDA context and libraries, as recorded on an {OUTSIDE_RECORDED_ON}"
    );
    Finding::about(About::Gpus, text, None)
}

/// The run under the rules of the latest release, where its own are older. `own` is the run under its own rules, where it fits.
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
    let mut tell = |done| on_progress(Progress::new("replaying under another release", done, total));
    let row = replay_under(run, &conditions.and_release(to), 0, &mut tell)?;
    let Some(other) = row.answered() else { return Ok(None) };
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
    Ok(Some(Finding { release: Some(to), ..Finding::about(About::Releases, text, None) }))
}
