//! What settings do to a run, as sentences of a verdict.

use blockyard_replay::{OnProgress, Progress};

use crate::autopsy::Passes;
use crate::forecast::forecast_end;
use crate::outcome::calls_text;
use crate::setting_search::replay_all;
use crate::{
    Autopsy, Change, ChangeKind, Conditions, Finding, FindingTopic, Forecast, GapOutcome, LabError, Limit,
    LimitedRun, Outcome, RestOfIteration, Row, Run, plain_candidates,
};

/// The run under each of the plain settings.
pub(super) fn under_plain_settings(
    run: &Run,
    conditions: &Conditions,
    on_progress: OnProgress,
) -> Result<Vec<Row>, LabError> {
    let settings = plain_candidates(run, conditions);
    let confs: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut tell = |done, total| on_progress(Progress::new("trying settings", done, total));
    let limited = LimitedRun::of(run, conditions, &mut |_| tell(0, confs.len()))?;
    replay_all(&limited, &confs, &mut |step| tell(step.done, step.total))
}

/// The setting to recommend for a run that goes out of memory: the first under which the whole run fits, and no
/// later iteration is forecast to fail.
///
/// It is the setting of [`Recommendation`](crate::recommendation::Recommendation), which needs more replays.
pub(super) fn fitting_setting(
    limited: &LimitedRun<'_>,
    found: &Autopsy,
    on_progress: OnProgress,
) -> Result<Option<String>, LabError> {
    let total = limited.run().requests().len();
    let mut tell = |done| on_progress(Progress::new("replaying", done, total));
    for change in &found.failure.changes {
        if let ChangeKind::Setting(conf) = &change.kind
            && !postpones(change)
            && limited.row(conf, 0, &mut tell)?.fits()
        {
            return Ok(Some(conf.clone()));
        }
    }
    Ok(None)
}

/// Whether a later request fails with a change that lets the request pass.
fn postpones(change: &Change) -> bool {
    let fails = |rest: &RestOfIteration| rest.fails.is_some();
    matches!(change.forecast, Some(Forecast::Fails { .. })) || change.rest.as_ref().is_some_and(fails)
}

/// How long a run goes on with a change: changes that let it go on longest come first. Only one of the two numbers
/// differs between changes of a run.
fn gone_on(change: &Change) -> (u64, u64) {
    let later = |rest: &RestOfIteration| rest.fails.as_ref().map(|fails| fails.requests_later);
    let requests = change.rest.as_ref().and_then(later).unwrap_or(u64::MAX);
    let iterations = match change.forecast {
        Some(Forecast::Fails { iteration, .. }) => iteration,
        Some(Forecast::Passes { .. }) | None => u64::MAX - 1,
        Some(Forecast::Finishes) => u64::MAX,
    };
    (iterations, requests)
}

/// The sentences about the settings and other changes that were replayed: those that help, the recommended
/// one first, and those that do not help.
pub(super) fn setting_findings(found: &Autopsy, taken: Option<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let failure = &found.failure;
    let is_taken = |change: &Change| matches!(&change.kind, ChangeKind::Setting(conf) if taken == Some(conf));
    let mut helpful: Vec<&Change> = failure.changes.iter().collect();
    helpful.sort_by_key(|change| (!is_taken(change), std::cmp::Reverse(gone_on(change))));
    let in_vain: Vec<&Change> = failure.in_vain.iter().collect();
    for (about, changes, also) in [
        (FindingTopic::Helps, helpful, "the request also passes"),
        (FindingTopic::DoesNotHelp, in_vain, "the request fails too"),
    ] {
        // The settings that share a sentence, and how it ends.
        let mut sharing: Vec<(String, Vec<&Change>)> = Vec::new();
        let mut depending = Vec::new();
        for change in changes {
            match &change.kind {
                ChangeKind::Setting(conf) if change.depends_on_limit => {
                    depending.push((conf, Passes::of(change)));
                }
                // The first setting that helps has a separate sentence.
                ChangeKind::Setting(conf) if about == FindingTopic::Helps && findings.is_empty() => {
                    findings.push(Finding::new(about, &change.sentence).with_settings(&[conf]));
                }
                ChangeKind::Setting(_) => {
                    let end = later(change);
                    match sharing.iter_mut().find(|(known, _)| *known == end) {
                        Some((_, changes)) => changes.push(change),
                        None => sharing.push((end, vec![change])),
                    }
                }
                ChangeKind::Limit(_) | ChangeKind::FreeTensors { .. } => {}
                _ => {
                    let about = if change.depends_on_limit { FindingTopic::DependsOnLimit } else { about };
                    findings.push(Finding::new(about, &change.sentence));
                }
            }
        }
        findings.extend(depending_findings(found.limit, &depending));
        findings.extend(sharing.into_iter().map(|(end, changes)| {
            let confs: Vec<&str> = changes.iter().filter_map(|change| setting(change)).collect();
            let names: Vec<&str> = confs.iter().map(|conf| name(conf)).collect();
            let replays: Option<Vec<GapOutcome>> = changes.iter().map(|change| change.outcome).collect();
            let names = alternatives(&names);
            let calls = replays.map(|all| format!(", with {}", calls_text(&confs, &all, &failure.outcome)));
            let text = format!("with {names} {also}{}{end}", calls.unwrap_or_default());
            Finding::new(about, text).with_settings(&confs)
        }));
    }
    let passing = || failure.changes.iter().filter(|change| matches!(change.kind, ChangeKind::Setting(_)));
    if taken.is_none() && passing().next().is_some() {
        let text = if passing().all(postpones) {
            "none of these settings lets the run finish: each only postpones the failure"
        } else {
            "with none of these settings the whole run fits: a later request runs out of memory"
        };
        findings.push(Finding::new(FindingTopic::DoesNotHelp, text));
    }
    findings
}

/// The text of a change that is a setting.
fn setting(change: &Change) -> Option<&str> {
    if let ChangeKind::Setting(conf) = &change.kind { Some(conf) } else { None }
}

/// What comes after the request, as the end of a sentence.
fn later(change: &Change) -> String {
    let rest = change.rest.as_ref().map(RestOfIteration::end_text);
    let end = change.forecast.as_ref().and_then(forecast_end).or(rest);
    end.map_or_else(String::new, |end| format!(", {end}"))
}

/// The sentences about settings whose effect depends on the limit; settings with the same effect are together.
fn depending_findings(limit: Limit, depending: &[(&String, Passes)]) -> Vec<Finding> {
    let mut groups: Vec<(Passes, Vec<&str>)> = Vec::new();
    for (conf, passes) in depending {
        match groups.iter_mut().find(|(known, _)| known == passes) {
            Some((_, confs)) => confs.push(conf),
            None => groups.push((*passes, vec![conf])),
        }
    }
    let finding = |(passes, confs): (Passes, Vec<&str>)| {
        let names: Vec<&str> = confs.iter().map(|conf| name(conf)).collect();
        let text = format!("with {} {}", alternatives(&names), passes.sentence_end(limit));
        Finding::new(FindingTopic::DependsOnLimit, text).with_settings(&confs)
    };
    groups.into_iter().map(finding).collect()
}

/// A setting in words.
fn name(conf: &str) -> &str {
    if conf.is_empty() { "the default settings" } else { conf }
}

/// `max_split_size_mb:32, 64 or 128, or large_segment_size_mb:64`: values of one setting stand together.
fn alternatives(settings: &[&str]) -> String {
    let mut names: Vec<(&str, Vec<&str>)> = Vec::new();
    for conf in settings {
        // A text of several settings is not combined with others.
        let (key, value) = match conf.split_once(':') {
            Some(parts) if !conf.contains(',') => parts,
            _ => (*conf, ""),
        };
        match names
            .iter_mut()
            .find(|(known, values)| *known == key && !value.is_empty() && !values.is_empty())
        {
            Some((_, values)) => values.push(value),
            None => names.push((key, Some(value).filter(|value| !value.is_empty()).into_iter().collect())),
        }
    }
    let texts: Vec<String> = names
        .iter()
        .map(|(key, values)| match values.split_last() {
            None => (*key).to_owned(),
            Some((last, [])) => format!("{key}:{last}"),
            Some((last, others)) => format!("{key}:{} or {last}", others.join(", ")),
        })
        .collect();
    texts.join(", or ")
}

/// The sentence about the effect of a setting on a run that fits; the setting helps if the run reserves less.
pub(super) fn setting_comparison(conf: &str, row: &Row, own: &Outcome) -> Option<Finding> {
    let other = row.outcome_at_lowest()?;
    let (about, text) = if row.fits() {
        less_or_not(conf, other, own)
    } else {
        (FindingTopic::DoesNotHelp, format!("with {} it runs out of memory", name(conf)))
    };
    Some(Finding::new(about, text).with_settings(&[conf]))
}

fn less_or_not(conf: &str, other: &Outcome, own: &Outcome) -> (FindingTopic, String) {
    let name = name(conf);
    let calls = calls_text(&[conf], &[GapOutcome::from(other)], &GapOutcome::from(own));
    let reserved = format!("with {name} at most {} are reserved", other.peak_reserved);
    if other.peak_reserved < own.peak_reserved {
        let less = own.peak_reserved.saturating_sub(other.peak_reserved);
        (FindingTopic::Helps, format!("{reserved}, {less} less, with {calls}"))
    } else {
        (FindingTopic::DoesNotHelp, format!("{reserved}, which is not less, with {calls}"))
    }
}
