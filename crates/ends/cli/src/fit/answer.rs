//! The answer for one GPU: the search, what the next value needs, how memory grows, and which settings help.

use std::collections::BTreeMap;

use blockyard_fit::{Contradiction, Growth, Probe, SearchOutcome, Values, fit_growth, search};
use blockyard_record::Bytes;
use blockyard_rules::with_setting;

use super::runs::{RunConditions, RunEnd, Runs};
use super::vary::Vary;

/// The number of values over which the rule of growth is found, if the range has them.
const POINTS: u64 = 4;
/// The most lines of the program whose growth is computed.
const MAX_SITES: usize = 12;

/// The answer about one GPU.
pub(super) struct LargestOnGpu {
    pub(super) conditions: RunConditions,
    /// The most bytes that the run with the largest value may reserve; if no value fits, the run with the
    /// lowest value.
    pub(super) limit: Bytes,
    pub(super) found: SearchOutcome<RunEnd>,
    pub(super) contradictions: Vec<Contradiction>,
    /// The largest value that fits, if it is known that the next value does not fit.
    pub(super) largest: Option<u64>,
    /// The run of the next value, which does not fit; if no value fits, the run of the lowest value.
    pub(super) next: Option<Probe>,
    /// The run of the next value on a GPU on which everything fits.
    pub(super) needs: Option<Probe>,
    /// How the peak of allocated memory grows.
    pub(super) peak: Option<Growth>,
    /// Lines of the program: the bytes that they hold at the largest value, and how these grow.
    pub(super) sites: Vec<Site>,
    /// Settings that were tried.
    pub(super) settings: Vec<Setting>,
}

pub(super) struct Site {
    pub(super) what: String,
    pub(super) bytes: Bytes,
    pub(super) growth: Option<Growth>,
}

/// The variable of the allocator's settings.
const ALLOCATOR: &str = "PYTORCH_CUDA_ALLOC_CONF";
/// cuBLAS takes 64 KiB where it would take some MiB.
const SMALL_WORKSPACE: (&str, &str) = ("CUBLAS_WORKSPACE_CONFIG", ":16:8");

/// Another setting: of the allocator, or a variable of the environment.
pub(super) struct Setting {
    pub(super) variable: &'static str,
    pub(super) conf: String,
    /// The value that does not fit without the setting.
    pub(super) value: u64,
    pub(super) is_fitting: bool,
    /// The largest value with the setting, if it was searched for.
    pub(super) largest: Option<u64>,
}

impl LargestOnGpu {
    /// Whether the search ended before it had an answer.
    pub(super) fn is_ended(&self) -> bool {
        self.found.failure.is_some()
    }

    /// The probe of the largest value.
    pub(super) fn best(&self) -> Option<&Probe> {
        let largest = self.largest?;
        self.found.probes.iter().find(|probe| probe.value == largest)
    }

    /// Whether nothing was assumed in the two runs that prove the answer.
    pub(super) fn is_exact(&self) -> bool {
        !self.is_ended() && self.best().into_iter().chain(&self.next).all(|probe| probe.is_exact)
    }
}

pub(super) fn answer(runs: &Runs<'_>, conditions: &RunConditions, vary: &Vary) -> LargestOnGpu {
    let values = &vary.values;
    let found = search(values, conditions.expected(), |value| runs.probe(conditions, vary, value));
    let largest = found.largest(values);
    let next = match largest {
        Some(largest) => values.above(largest),
        None => Some(values.low()),
    };
    let next = next.and_then(|next| found.probes.iter().find(|probe| probe.value == next && !probe.fits));
    let mut answer = LargestOnGpu {
        conditions: conditions.clone(),
        limit: found.probes.last().map_or_else(|| conditions.expected(), |probe| conditions.left(probe)),
        contradictions: Vec::new(),
        largest,
        next: next.cloned(),
        needs: None,
        peak: None,
        sites: Vec::new(),
        settings: Vec::new(),
        found,
    };
    if let Some(probe) = answer.best().or(answer.next.as_ref()) {
        answer.limit = conditions.left(probe);
    }
    // The answer is complete; a run that fails from here on only leaves out an explanation.
    if !answer.is_ended() {
        let _left_out = explain(runs, &mut answer, vary);
    }
    answer.contradictions = answer.found.contradictions();
    answer
}

fn explain(runs: &Runs<'_>, answer: &mut LargestOnGpu, vary: &Vary) -> Result<(), RunEnd> {
    let values = &vary.values;
    let conditions = answer.conditions.clone();
    if let Some(next) = &answer.next {
        answer.needs =
            Some(runs.probe(&conditions.without_end(), vary, next.value)?).filter(|probe| probe.fits);
    }
    for value in more(values, answer) {
        answer.found.probes.push(runs.probe(&conditions, vary, value)?);
    }
    answer.found.probes.sort_by_key(|probe| probe.value);
    grow(answer);
    try_settings(runs, answer, vary)
}

/// Values below the largest that are run for the rule of growth alone.
fn more(values: &Values, answer: &LargestOnGpu) -> Vec<u64> {
    let Some(largest) = answer.largest else { return Vec::new() };
    let known = |value: u64| answer.found.probes.iter().any(|probe| probe.value == value);
    let count = answer.found.probes.iter().filter(|probe| probe.fits).count() as u64;
    let number = values.number_below(largest);
    let mut more: Vec<u64> = [2, 3, 1].map(|part| values.at(number * part / 4)).to_vec();
    more.retain(|value| !known(*value));
    more.dedup();
    more.truncate(usize::try_from(POINTS.saturating_sub(count)).unwrap_or(0));
    more
}

fn grow(answer: &mut LargestOnGpu) {
    let fitting = answer.found.probes.iter().filter(|probe| probe.fits);
    let probes: Vec<&Probe> = fitting.chain(&answer.needs).collect();
    let points: Vec<(u64, u64)> =
        probes.iter().map(|probe| (probe.value, probe.peak_allocated.get())).collect();
    let by_value: Vec<(u64, BTreeMap<&str, u64>)> = probes
        .iter()
        .filter(|probe| !probe.sites.is_empty())
        .map(|probe| {
            (probe.value, probe.sites.iter().map(|held| (held.what.as_str(), held.bytes.get())).collect())
        })
        .collect();
    let sites = answer.best().map(|best| best.sites.as_slice()).unwrap_or_default();
    let sites = sites.iter().take(MAX_SITES).map(|held| {
        let of = |sites: &BTreeMap<&str, u64>| sites.get(held.what.as_str()).copied().unwrap_or(0);
        let points: Vec<(u64, u64)> = by_value.iter().map(|(value, sites)| (*value, of(sites))).collect();
        Site { what: held.what.clone(), bytes: held.bytes, growth: fit_growth(&points) }
    });
    let sites: Vec<Site> = sites.collect();
    (answer.peak, answer.sites) = (fit_growth(&points), sites);
}

/// Tries settings without a change of the program, with the first value that does not fit: expandable
/// segments and, if these do not help, smaller workspaces of cuBLAS too.
fn try_settings(runs: &Runs<'_>, answer: &mut LargestOnGpu, vary: &Vary) -> Result<(), RunEnd> {
    let Some(value) = answer.next.as_ref().map(|next| next.value) else { return Ok(()) };
    let own = answer.conditions.conf.clone().or_else(environment).unwrap_or_default();
    let mut conditions = answer.conditions.clone();
    if !own.contains("expandable_segments:True") {
        let conf = with_setting(&own, "expandable_segments", Some("True"));
        conditions = conditions.under(&conf);
        let is_fitting = runs.probe(&conditions, vary, value)?.fits;
        let mut setting = Setting { variable: ALLOCATOR, conf, value, is_fitting, largest: None };
        if runs.options.try_settings {
            let found = search(&vary.values, answer.limit, |value| runs.probe(&conditions, vary, value));
            setting.largest = found.largest(&vary.values);
        }
        answer.settings.push(setting);
    }
    let (variable, small) = SMALL_WORKSPACE;
    if answer.settings.iter().any(|setting| setting.is_fitting) || std::env::var_os(variable).is_some() {
        return Ok(());
    }
    conditions.environment.push((variable.to_owned(), small.to_owned()));
    let is_fitting = runs.probe(&conditions, vary, value)?.fits;
    let conf = match answer.settings.last() {
        Some(before) => format!("{small} and {}={}", before.variable, before.conf),
        None => small.to_owned(),
    };
    answer.settings.push(Setting { variable, conf, value, is_fitting, largest: None });
    Ok(())
}

/// The allocator's settings in the environment, from the first variable that PyTorch reads; `None` if none is
/// set.
pub(super) fn environment() -> Option<String> {
    ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"].iter().find_map(|name| std::env::var(name).ok())
}
