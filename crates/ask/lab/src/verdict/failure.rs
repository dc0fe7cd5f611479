//! The verdict about a run in which a request fails.

use blockyard_record::{Bytes, OomCause, counted, frame_text, joined, own_caller, own_line};
use blockyard_replay::{OnProgress, Progress};

use super::growth::{
    GrowthAdvice, KEEP_LESS_FOR_BACKWARD, LineGrowth, by_line, grow_much, growth_findings, keeper_findings,
    kept_by_layers, leak_headline, repeated_growth,
};
use super::memory::{gpu_for_the_failure, under_the_latest_release};
use super::moments::Moments;
use super::settings::{fitting_setting, setting_findings};
use super::{Verdict, pair_finding};
use crate::autopsy::{GrowthToFailure, passes_changed};
use crate::lifetimes::lifetimes;
use crate::request_numbers::request_text;
use crate::rest::CompletedRun;
use crate::{
    Autopsy, Change, ChangeKind, Conditions, Finding, FindingTopic, IterationSource, LabError, Leaks,
    LimitedRun, MomentName, RestSource, Run, VerdictAnswer, VerdictKind, keepers,
};

/// The verdict about a run that fails as `found` says.
pub(super) fn verdict_of_failure(
    run: &Run,
    conditions: &Conditions,
    found: Autopsy,
    growth: &GrowthToFailure,
    on_progress: OnProgress,
) -> Result<Verdict, LabError> {
    let total = run.requests().len();
    let mut on_done = |done| on_progress(Progress::new("replaying", done, total));
    let limited = LimitedRun::of(run, conditions, &mut on_done)?;
    let lines = by_line(&growth.leaks);
    let freed = without_earlier_iterations(limited.run(), conditions, &found, &growth.leaks, on_progress)?;
    // Where the iterations before the failure are equal but for what grows, and lead to this failure, growth is
    // its cause, whatever the memory looks like when the request fails.
    let is_growth = growth.is_explained && grow_much(&lines, found.failure.memory.allocated);
    let is_leak = is_growth || freed.as_ref().is_some_and(|change| change.proved);
    let failed = FailedRun { run, found: &found, growth, lines: &lines, is_leak };
    let moments = Moments::of(run);
    let mut findings = failed.what_happened(&moments);
    findings.extend(failed.certainty());
    findings.extend(pair_finding(run, conditions)?);
    findings.extend(freed.map(|change| {
        let about = if change.proved { FindingTopic::Helps } else { FindingTopic::DoesNotHelp };
        Finding::new(about, change.sentence).at(found.failure.request.request)
    }));
    let advice = is_leak.then(|| GrowthAdvice::about(&lines));
    findings.extend(advice.map(GrowthAdvice::finding));
    if !is_leak && growth.leaks.are_layers && !lines.is_empty() {
        findings.push(Finding::new(FindingTopic::Helps, KEEP_LESS_FOR_BACKWARD));
    }
    let setting = fitting_setting(&limited, &found, on_progress)?;
    findings.extend(setting_findings(&found, setting.as_deref()));
    findings.extend(failed.shortfall());
    if found.limit.is_inferred() && found.limit.is_fraction() {
        findings.push(Finding::new(FindingTopic::Helps, LIMIT_OF_THE_PROCESS));
    }
    findings.extend(run.device_words.iter().map(|device| Finding::new(FindingTopic::Gpus, device)));
    let mut on_done = |done| on_progress(Progress::new("looking for the smallest device", done, total));
    let (leaks, completed) = (&growth.leaks, growth.completed.as_ref());
    findings.extend(gpu_for_the_failure(limited.run(), conditions, &found, leaks, completed, &mut on_done)?);
    findings.extend(under_the_latest_release(run, conditions, None, on_progress)?);
    findings.sort_by_key(|finding| finding.about);
    let (mut held, moment) = (found.held.clone(), found.failure.request.request);
    for line in &mut held {
        line.moments = moments.of_line(line);
    }
    for finding in findings.iter_mut().filter(|finding| finding.request == Some(moment)) {
        if matches!(finding.about, FindingTopic::Happened | FindingTopic::Certainty) {
            finding.moments = moments.at(MomentName::Failure, moment).into_iter().collect();
        }
    }
    let kind = if is_leak { VerdictKind::Leak } else { VerdictKind::OutOfMemory };
    let answer = VerdictAnswer {
        cause: Some(found.cause),
        held,
        moment,
        setting,
        ..VerdictAnswer::new(&conditions.conf, kind, failed.headline(), findings)
    };
    Ok(Verdict { answer, autopsy: Some(Box::new(found)), advice })
}

/// What the sentences that need no further replay are made of.
struct FailedRun<'a> {
    run: &'a Run,
    found: &'a Autopsy,
    growth: &'a GrowthToFailure,
    /// The lines of the program whose live bytes grow from iteration to iteration.
    lines: &'a [LineGrowth],
    /// Whether growth is the cause of the failure.
    is_leak: bool,
}

impl FailedRun<'_> {
    /// The verdict in one sentence.
    fn headline(&self) -> String {
        let Self { found, lines, growth: GrowthToFailure { leaks, .. }, .. } = self;
        if let Some(line) = lines.first().filter(|_| self.is_leak) {
            return leak_headline(line);
        }
        let is_repeated = leaks.answer.steps == IterationSource::Repetition && !leaks.has_known_iterations;
        let growing = match lines.first().filter(|_| is_repeated) {
            Some(_) if leaks.are_layers => kept_by_layers(lines, leaks, found),
            Some(line) => repeated_growth(line, found),
            None => None,
        };
        format!("{}{}", failure_headline(found), growing.unwrap_or_default())
    }

    /// The request that failed, and what grew before it.
    fn what_happened(&self, moments: &Moments<'_>) -> Vec<Finding> {
        let Self { run, found, growth: GrowthToFailure { leaks, .. }, .. } = self;
        let happened = |text| Finding::new(FindingTopic::Happened, text).at(found.failure.request.request);
        let mut findings = vec![happened(found.failure.sentence.clone()), happened(what_was_asked(found))];
        findings.extend(keeper_findings(&keepers(run, leaks), found.failure.memory.allocated));
        findings.extend(growth_findings(moments, self.lines, leaks, &found.held));
        findings
    }

    /// How sure the replay is.
    fn certainty(&self) -> Vec<Finding> {
        let growth = self.growth;
        // How the limit is known is among the notes.
        let rest = (!growth.is_explained).then(|| rest_sentence(self.run, growth.completed.as_ref()));
        let texts = rest.into_iter().chain(self.found.notes.iter().cloned());
        let texts = texts.map(|text| Finding::new(FindingTopic::Certainty, text));
        same_request(self.run, self.found).into_iter().chain(texts).collect()
    }

    /// How much less memory would have been enough.
    fn shortfall(&self) -> impl Iterator<Item = Finding> {
        let is_about_less =
            |change: &&Change| matches!(change.kind, ChangeKind::Limit(_) | ChangeKind::FreeTensors { .. });
        let failure = &self.found.failure;
        failure.changes.iter().chain(&failure.in_vain).filter(is_about_less).map(|change| {
            let until = if self.is_leak && change.forecast.is_none() {
                ", until what the iterations keep fills that too"
            } else {
                ""
            };
            Finding::new(FindingTopic::Shortfall, format!("{}{until}", change.sentence))
        })
    }
}

/// Whether it is known what comes after the failure.
fn rest_sentence(run: &Run, completed: Option<&CompletedRun>) -> String {
    match completed {
        Some(CompletedRun { from: RestSource::Recording, is_whole, .. }) => {
            let end = if *is_whole { "" } else { ", up to the request at which it failed" };
            format!(
                "the recorded run did not fail there, so that it is known what comes after the failure{end}"
            )
        }
        Some(completed) => {
            let end = if completed.is_whole { "" } else { ", and is recorded in part" };
            format!(
                "the recording ends in the middle of an iteration: {}, which asks for the same up to the failure{end}",
                completed.from.text()
            )
        }
        None => {
            let device = if run.recorded.devices.is_some() { " and no other device" } else { "" };
            format!(
                "what comes after the failure is not known: no earlier iteration{device} asks for the same up to it"
            )
        }
    }
}

/// A memory fraction refuses what the GPU could give: the reader looks for the call that sets the fraction.
const LIMIT_OF_THE_PROCESS: &str = "a limit of the process refused the request, and not the GPU: look for `torch.cuda.set_per_process_memory_fraction` in the \
     program, and for `per_process_memory_fraction` in its settings (advice, which no replay can test)";

fn failure_headline(found: &Autopsy) -> String {
    let request = &found.failure.request;
    let place = own_line(&request.stack).map_or_else(
        || {
            request.name.as_ref().map_or_else(
                || format!("at {}", request_text(request.request)),
                |name| format!("at `{name}`"),
            )
        },
        |line| {
            let caller = own_caller(&request.stack)
                .map_or_else(String::new, |line| format!(", called at `{}`", frame_text(line)));
            format!("at `{}`{caller}", frame_text(line))
        },
    );
    let memory = &found.failure.memory;
    let why = match found.cause {
        OomCause::RequestAboveLimit
            if found.limit.low < request.segment_size && request.segment_size <= found.limit.high =>
        {
            format!("{} asked for, probably more than may be reserved", request.size)
        }
        OomCause::RequestAboveLimit => format!("{} asked for, more than may be reserved", request.size),
        OomCause::LiveBytesAtLimit => {
            format!("{} allocated, and {} more asked for", memory.allocated, request.size)
        }
        OomCause::FragmentationByLiveBlocks => {
            let cached = memory.free_blocks_text(|blocks| format!("cached in {blocks}"));
            format!("{cached}: too small for {}", request.size)
        }
        OomCause::CachedInAnotherStream => {
            format!(
                "{} cached for other streams, and {} asked for",
                memory.cached_other_streams, request.size
            )
        }
        OomCause::CachedInPrivatePool => {
            format!("{} cached in other pools, and {} asked for", memory.cached_other_pools, request.size)
        }
        OomCause::WaitingForAnotherStream => {
            format!(
                "{} freed but still in use by another stream, and {} asked for",
                memory.pending, request.size
            )
        }
        OomCause::PoolNotSearchedAgain => format!(
            "a free block of {} would serve {}, and PyTorch does not look for it again (a known bug, issue 189504)",
            memory.largest_cached_here, request.size
        ),
        OomCause::RoundingBySetting => {
            format!("{} asked for, rounded up by a setting to {}", request.size, request.rounded)
        }
        OomCause::MemoryOfOthers => {
            format!("others hold {} of the device, and {} asked for", found.limit.others, request.size)
        }
        // A cause that this version does not know has its own name.
        cause => format!("{} asked for: {}", request.size, cause.name()),
    };
    format!("out of memory {place}: {why}")
}

fn what_was_asked(found: &Autopsy) -> String {
    let (request, memory) = (&found.failure.request, &found.failure.memory);
    let place =
        own_line(&request.stack).map_or_else(String::new, |line| format!(" by `{}`", frame_text(line)));
    // The parts add up to the reserved bytes. The parts that matter for every failure are listed even if they
    // are zero.
    let parts = [
        (memory.allocated, "were allocated", true),
        (memory.pending, "freed but in use by another stream", false),
        (memory.cached_here, "cached for its stream", true),
        (memory.cached_other_streams, "cached for other streams", false),
        (memory.cached_other_pools, "cached in other pools", false),
    ];
    let shown = parts.iter().filter(|(bytes, _, is_always)| *is_always || !bytes.is_zero());
    let shown: Vec<String> = shown.map(|(bytes, what, _)| format!("{bytes} {what}")).collect();
    format!(
        "{} asked{place} for {}, while {} were reserved, of which {}",
        request_text(request.request),
        request.size,
        memory.reserved,
        joined(&shown)
    )
}

/// Whether the replay fails where the recorded run did.
fn same_request(run: &Run, found: &Autopsy) -> Option<Finding> {
    let recorded = run.recorded_oom()?;
    let text = if recorded == found.index {
        "the replay fails at the request at which the run failed".to_owned()
    } else {
        format!(
            "the replay fails at another request than the run itself, which failed at {}",
            request_text(run.request_number(recorded))
        )
    };
    Some(Finding::new(FindingTopic::Certainty, text).at(run.request_number(recorded)))
}

/// The change that frees the tensors that the growing lines kept in the iterations before the last one;
/// `None` if nothing grows, no iterations are known, or fewer than two iterations after the first have kept any:
/// a tensor of the iteration before is replaced in each iteration, as the last loss is.
fn without_earlier_iterations(
    run: &Run,
    conditions: &Conditions,
    found: &Autopsy,
    leaks: &Leaks,
    on_progress: OnProgress,
) -> Result<Option<Change>, LabError> {
    let Some(before) = leaks.ends.iter().rev().nth(1).copied() else { return Ok(None) };
    if leaks.answer.growing.is_empty() || !leaks.has_known_iterations {
        return Ok(None);
    }
    let failing = found.index;
    let sites = crate::sites::Sites::of(run);
    let is_growing = |request: usize| {
        let site = sites.name(sites.at(request));
        leaks.answer.growing.iter().any(|growth| growth.site == site)
    };
    let all = lifetimes(run);
    let kept = all.iter().filter(|lifetime| {
        lifetime.request < before && lifetime.request < failing && lifetime.freed >= failing
    });
    let kept: Vec<_> = kept.filter(|lifetime| is_growing(lifetime.request)).collect();
    let iteration = |request: usize| leaks.ends.partition_point(|end| *end <= request);
    let mut iterations: Vec<usize> = kept.iter().map(|lifetime| iteration(lifetime.request)).collect();
    iterations.dedup();
    if iterations.iter().filter(|iteration| **iteration > 0).count() < 2 {
        return Ok(None);
    }
    let bytes: Bytes = kept.iter().map(|lifetime| lifetime.requested).sum();
    let kind = run.frees(kept.iter().map(|lifetime| lifetime.request), bytes);
    let total = run.requests().len();
    let mut on_done = |done| on_progress(Progress::new("proving the leak", done, total));
    let passes = passes_changed(run, conditions, &kind, failing, &mut on_done)?;
    let text = format!(
        "with all {} freed that the growing lines kept from earlier iterations, those of the first two too ({bytes}), {}",
        counted(kept.len(), "tensor"),
        passes.sentence_end(found.limit)
    );
    Ok(Some(passes.change(kind, text)))
}
