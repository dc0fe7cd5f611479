//! The report as JSON: `docs/fit-json.md` has its fields, and `blockyard-answers` its types.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use anyhow::Context;
use blockyard_answers::{
    FIT_VERSION, FitAnswer, FitCall, FitConditions, FitContradiction, FitContradictionKind, FitFailedRequest,
    FitGpu, FitGrowth, FitGrowthKind, FitHolder, FitLargestAnswer, FitLargestOnGpu, FitProbe, FitResult,
    FitRun, FitSite, FitTriedSetting, FitValues, FitVary, FitVaryKind,
};
use blockyard_fit::{Contradiction, Growth, GrowthKind, HolderBytes, Layout, Probe, memory_fraction};

use super::answer::{LargestOnGpu, Setting, Site};
use super::runs::{RunConditions, RunEnd, Runs};
use super::text::advices;
use super::vary::Vary;

/// The report of the largest value.
pub(super) fn report(runs: &Runs<'_>, vary: &Vary, answers: &[LargestOnGpu]) -> anyhow::Result<FitAnswer> {
    let (first, others) = first_and_others(answers, one)?;
    let answer = FitLargestAnswer { vary: varied(vary), first, others };
    Ok(whole(runs, FitResult::Largest(Box::new(answer))))
}

/// The answer about the first GPU, and those about further GPUs.
pub(super) fn first_and_others<A, J>(answers: &[A], json: impl Fn(&A) -> J) -> anyhow::Result<(J, Vec<J>)> {
    let (first, others) = answers.split_first().context("no GPU is named: name one with --gpu")?;
    Ok((json(first), others.iter().map(json).collect()))
}

/// The facts of the call together with its result.
pub(super) fn whole(runs: &Runs<'_>, result: FitResult) -> FitAnswer {
    let options = runs.options;
    let call = FitCall {
        version: FIT_VERSION,
        program: options.file.display().to_string(),
        arguments: options.arguments.clone(),
        steps: options.steps,
        torch: runs.torch.version.clone(),
        kept: runs.cache.path.display().to_string(),
        runs: runs.made_count.load(Ordering::Relaxed) as u64,
        known: runs.cached_count.load(Ordering::Relaxed) as u64,
    };
    FitAnswer { call, result }
}

/// The option or variable that is varied, with its values.
pub(super) fn varied(vary: &Vary) -> FitVary {
    let kind = if vary.is_variable { FitVaryKind::Variable } else { FitVaryKind::Option };
    FitVary { kind, values: values(vary) }
}

/// The name and the values of an option or variable.
pub(super) fn values(vary: &Vary) -> FitValues {
    let values = &vary.values;
    FitValues {
        name: vary.name.clone(),
        low: values.low(),
        high: values.high(),
        multiple: values.multiple(),
        list: values.multiple().is_none().then(|| values.iter().collect()),
    }
}

/// The GPU and the limit.
pub(super) fn conditions(conditions: &RunConditions) -> FitConditions {
    let gpu = &conditions.gpu;
    FitConditions {
        gpu: FitGpu { name: gpu.name.to_owned(), id: gpu.id.to_owned(), total: gpu.total_memory.get() },
        limit: conditions.most().get(),
        fraction: conditions.limit.and_then(|limit| memory_fraction(limit, gpu.total_memory)),
        conf: conditions.conf.clone(),
    }
}

/// The value whose run ended a search, and why.
pub(super) fn ended(ended: Option<&(u64, RunEnd)>) -> (Option<u64>, Option<String>) {
    match ended {
        Some((value, RunEnd::Failed(error))) => (Some(*value), Some(error.clone())),
        Some((value, RunEnd::Stopped)) => (Some(*value), Some("Ctrl-C".to_owned())),
        None => (None, None),
    }
}

fn one(answer: &LargestOnGpu) -> FitLargestOnGpu {
    let (failed_at, error) = ended(answer.found.failure.as_ref());
    let advice = |best: &Probe| {
        let rows = advices(best).into_iter();
        rows.map(|row| FitHolder { what: row.what.to_owned(), bytes: row.bytes.get() }).collect()
    };
    FitLargestOnGpu {
        conditions: conditions(&answer.conditions),
        largest: answer.largest,
        next: answer.next.as_ref().map(probe),
        exact: answer.is_exact(),
        needs: answer.needs.as_ref().map(probe),
        probes: answer.found.probes.iter().map(probe).collect(),
        contradictions: answer.contradictions.iter().map(contradiction).collect(),
        growth: answer.peak.as_ref().map(growth),
        sites: answer.sites.iter().map(site).collect(),
        holders: answer.best().map(|best| held(&best.holders)),
        advice: answer.best().map(advice),
        settings: answer.settings.iter().map(setting).collect(),
        failed_at,
        error,
    }
}

/// A run with a value.
pub(super) fn probe(probe: &Probe) -> FitProbe {
    FitProbe { value: probe.value, run: run(probe) }
}

/// A run.
pub(super) fn run(probe: &Probe) -> FitRun {
    let failed = probe.failed.as_ref().map(|failed| FitFailedRequest {
        bytes: failed.bytes.get(),
        at: failed.at.clone(),
        is_of_other_thread: failed.is_of_other_thread,
    });
    FitRun {
        fits: probe.fits,
        peak_allocated: probe.peak_allocated.get(),
        peak_reserved: probe.peak_reserved.get(),
        exact: probe.is_exact,
        failed,
        steps: probe.iterations,
        steady: probe.is_steady,
        sites: held(&probe.sites),
        non_pytorch: held(&probe.non_pytorch),
        unknown_non_pytorch: probe.non_pytorch_unknown.clone(),
        notes: probe.notes.clone(),
        remarks: probe.remarks.clone(),
    }
}

pub(super) fn held(rows: &[HolderBytes]) -> Vec<FitHolder> {
    rows.iter().map(|row| FitHolder { what: row.what.clone(), bytes: row.bytes.get() }).collect()
}

pub(super) fn contradiction(found: &Contradiction) -> FitContradiction {
    let (kind, value, larger) = match *found {
        Contradiction::Fits { value, larger } => (FitContradictionKind::Fits, value, larger),
        Contradiction::Allocated { value, larger } => (FitContradictionKind::Allocated, value, larger),
        Contradiction::Reserved { value, larger } => (FitContradictionKind::Reserved, value, larger),
    };
    FitContradiction { kind, value, larger }
}

/// How many ranks each dimension of a layout has.
pub(super) fn sizes(layout: &Layout) -> BTreeMap<String, u64> {
    layout.sizes().map(|(name, size)| (name.to_owned(), size)).collect()
}

fn growth(growth: &Growth) -> FitGrowth {
    let kind = match growth.kind {
        GrowthKind::Constant => FitGrowthKind::Constant,
        GrowthKind::Linear => FitGrowthKind::Linear,
        GrowthKind::Quadratic => FitGrowthKind::Quadratic,
    };
    FitGrowth {
        kind,
        base: growth.base,
        slope: growth.slope,
        square: growth.square,
        values: growth.values.clone(),
        residual: growth.residual,
        exact: growth.is_exact,
    }
}

fn site(site: &Site) -> FitSite {
    FitSite { what: site.what.clone(), bytes: site.bytes.get(), growth: site.growth.as_ref().map(growth) }
}

fn setting(setting: &Setting) -> FitTriedSetting {
    FitTriedSetting {
        variable: setting.variable.to_owned(),
        conf: setting.conf.clone(),
        value: setting.value,
        fits: setting.is_fitting,
        largest: setting.largest,
    }
}
