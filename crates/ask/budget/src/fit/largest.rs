//! The largest value that fits one GPU: the search, what the next value needs, how memory grows, and which
//! settings help.

use std::collections::BTreeMap;

use blockyard_answers::{FitHolder, FitLargestOnGpu, FitRun, FitRunEnd, FitSite, FitTriedSetting};
use blockyard_record::Bytes;
use blockyard_rules::{has_setting, with_setting};

use super::own_settings;
use super::run_queue::{AnswerQueue, each};
use super::runs::{RunConditions, Runs};
use super::vary::Vary;
use crate::{Probe, SearchOutcome, SearchStep, Values, fit_growth, next_safe, reserve, search};

/// The number of values over which the rule of growth is found, if the range has them.
const POINTS: u64 = 4;
/// The most lines of the program whose growth is computed.
const MAX_SITES: usize = 12;
/// The variable of the allocator's settings.
const ALLOCATOR: &str = "PYTORCH_CUDA_ALLOC_CONF";
/// cuBLAS takes 64 KiB where it would take some MiB.
const SMALL_WORKSPACE: (&str, &str) = ("CUBLAS_WORKSPACE_CONFIG", ":16:8");

/// The largest value on each GPU.
pub(super) fn largest(runs: &Runs<'_>, conditions: &[RunConditions], vary: &Vary) -> Vec<FitLargestOnGpu> {
    let ask = |conditions: &RunConditions, _before: &AnswerQueue<_>| on_gpu(runs, conditions, vary);
    each(conditions, runs.queue.most(), ask, |answer| answer.error.is_some())
}

fn on_gpu(runs: &Runs<'_>, conditions: &RunConditions, vary: &Vary) -> FitLargestOnGpu {
    let values = &vary.values;
    let mut found = search(values, conditions.expected(), |value| runs.probe(conditions, vary, value));
    let (best, next) = found.proofs(values);
    let (best, next) = (best.cloned(), next.cloned());
    let is_ended = found.failure.is_some();
    let mut answer = FitLargestOnGpu {
        conditions: conditions.terms.clone(),
        largest: best.as_ref().map(|best| best.value),
        reserve: reserve(conditions.terms.limit),
        next: next.as_ref().map(FitRun::from),
        exact: !is_ended && best.iter().chain(&next).all(|probe| probe.run.exact),
        holders: best.as_ref().map(|best| best.holders.clone()),
        advice: best.as_ref().map(|best| advice(&best.holders)),
        ..FitLargestOnGpu::default()
    };
    // The answer is complete; a run that fails from here on only leaves out an explanation.
    if !is_ended {
        let explained = Explanation { runs, conditions, vary, best: best.as_ref(), next: next.as_ref() };
        let _left_out = explained.add(&mut found, &mut answer);
    }
    answer.probes = found.probes.iter().map(FitRun::from).collect();
    answer.contradictions = found.contradictions();
    (answer.failed_at, answer.error) = found.failure.unzip();
    answer
}

/// The runs that explain an answer.
struct Explanation<'a> {
    runs: &'a Runs<'a>,
    conditions: &'a RunConditions,
    vary: &'a Vary,
    best: Option<&'a Probe>,
    next: Option<&'a Probe>,
}

impl Explanation<'_> {
    fn add(
        &self,
        found: &mut SearchOutcome<FitRunEnd>,
        answer: &mut FitLargestOnGpu,
    ) -> Result<(), FitRunEnd> {
        let Self { runs, conditions, vary, best, next } = *self;
        let mut needs = None;
        if let Some(next) = next {
            let without_end = runs.probe(&conditions.without_end(), vary, next.value)?;
            needs = Some(without_end).filter(|probe| probe.run.fits);
            answer.needs = needs.as_ref().map(FitRun::from);
        }
        if let Some(best) = best {
            let most = conditions.left(best).saturating_sub(answer.reserve);
            answer.safe = loop {
                match next_safe(&vary.values, most, &found.probes) {
                    SearchStep::Try(value) => found.probes.push(runs.probe(conditions, vary, value)?),
                    SearchStep::Found(safe) => break safe.map(|probe| probe.value),
                }
            };
        }
        for value in best.map(|best| more(&vary.values, best.value, found)).unwrap_or_default() {
            found.probes.push(runs.probe(conditions, vary, value)?);
        }
        found.probes.sort_by_key(|probe| probe.value);
        let fitting = found.probes.iter().filter(|probe| probe.run.fits);
        let fitting: Vec<&Probe> = fitting.chain(&needs).collect();
        let peaks: Vec<(u64, Bytes)> =
            fitting.iter().map(|probe| (probe.value, probe.run.peak_allocated)).collect();
        answer.growth = fit_growth(&peaks);
        answer.sites = best.map(|best| sites(best, &fitting)).unwrap_or_default();
        self.try_settings(answer)
    }

    /// Tries settings without a change of the program, with the first value that does not fit: expandable
    /// segments and, if these do not help, smaller workspaces of cuBLAS too.
    fn try_settings(&self, answer: &mut FitLargestOnGpu) -> Result<(), FitRunEnd> {
        let Some(next) = self.next else { return Ok(()) };
        let probe = |conditions: &RunConditions, value| self.runs.probe(conditions, self.vary, value);
        let tried = |variable: &str, conf, fits| FitTriedSetting {
            variable: variable.to_owned(),
            conf,
            value: next.value,
            fits,
            largest: None,
        };
        let own = own_settings(self.conditions);
        let mut conditions = self.conditions.clone();
        if !has_setting(&own, "expandable_segments", "True") {
            let conf = with_setting(&own, "expandable_segments", Some("True"));
            conditions = conditions.under(&conf);
            let mut setting = tried(ALLOCATOR, conf, probe(&conditions, next.value)?.run.fits);
            if self.runs.program.searches_settings {
                let limit = self.conditions.left(self.best.unwrap_or(next));
                let found = search(&self.vary.values, limit, |value| probe(&conditions, value));
                setting.largest = found.largest(&self.vary.values);
            }
            answer.settings.push(setting);
        }
        let (variable, small) = SMALL_WORKSPACE;
        if answer.settings.iter().any(|setting| setting.fits) || std::env::var_os(variable).is_some() {
            return Ok(());
        }
        conditions.environment.push((variable.to_owned(), small.to_owned()));
        let conf = match answer.settings.last() {
            Some(before) => format!("{small} and {}={}", before.variable, before.conf),
            None => small.to_owned(),
        };
        answer.settings.push(tried(variable, conf, probe(&conditions, next.value)?.run.fits));
        Ok(())
    }
}

/// Values below the largest that are run for the rule of growth alone.
fn more(values: &Values, largest: u64, found: &SearchOutcome<FitRunEnd>) -> Vec<u64> {
    let known = |value: u64| found.probes.iter().any(|probe| probe.value == value);
    let count = found.probes.iter().filter(|probe| probe.run.fits).count() as u64;
    let number = values.number_below(largest);
    let mut more: Vec<u64> = [2, 3, 1].map(|part| values.at(number * part / 4)).to_vec();
    more.retain(|value| !known(*value));
    more.dedup();
    more.truncate(usize::try_from(POINTS.saturating_sub(count)).unwrap_or(0));
    more
}

/// The lines that hold most in the run of the largest value, and how their bytes grow.
fn sites(best: &Probe, fitting: &[&Probe]) -> Vec<FitSite> {
    let by_value: Vec<(u64, BTreeMap<&str, Bytes>)> = fitting
        .iter()
        .filter(|probe| !probe.run.sites.is_empty())
        .map(|probe| {
            (probe.value, probe.run.sites.iter().map(|held| (held.what.as_str(), held.bytes)).collect())
        })
        .collect();
    let site = |held: &FitHolder| {
        let of = |sites: &BTreeMap<&str, Bytes>| sites.get(held.what.as_str()).copied().unwrap_or_default();
        let points: Vec<(u64, Bytes)> = by_value.iter().map(|(value, sites)| (*value, of(sites))).collect();
        FitSite { what: held.what.clone(), bytes: held.bytes, growth: fit_growth(&points) }
    };
    best.run.sites.iter().take(MAX_SITES).map(site).collect()
}

/// Changes of a program, each with the bytes that it is about at the peak of the last iteration; by
/// descending bytes.
fn advice(holders: &[FitHolder]) -> Vec<FitHolder> {
    // The first words of the names of holders that each change is about.
    let about: [(&[&str], &str); 4] = [
        (
            &["freed between"],
            "activations and temporaries: activation checkpointing, or a smaller batch with more steps of accumulation",
        ),
        (&["optimizer states"], "optimizer states: an optimizer with states of 8 bits, or on the host"),
        (&["gradients"], "gradients: an optimizer step inside of backward, which frees each gradient"),
        (
            &["parameters", "gradients", "optimizer states"],
            "parameters, gradients and optimizer states: sharding over ranks, by FSDP or ZeRO",
        ),
    ];
    let bytes = |starts: &[&str]| {
        let is_about = |held: &&FitHolder| starts.iter().any(|start| held.what.starts_with(start));
        holders.iter().filter(is_about).map(|held| held.bytes).sum()
    };
    let rows =
        about.into_iter().map(|(starts, what)| FitHolder { what: what.to_owned(), bytes: bytes(starts) });
    let mut rows: Vec<FitHolder> = rows.filter(|row| row.bytes > Bytes::ZERO).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    rows
}
