//! The report as JSON: `docs/fit.md` has its fields.

use std::sync::atomic::Ordering;

use blockyard_fit::{Contradiction, Growth, Held, Probe, memory_fraction};
use serde_json::{Map, Value, json};

use super::answer::{Answer, Setting, Site};
use super::runs::{Ended, Runs, Terms};
use super::text::advices;
use super::vary::Vary;

/// Counts changes of the fields that take something away.
const VERSION: u32 = 1;

/// The answers, that of the first GPU at the top.
pub(super) fn report(runs: &Runs<'_>, vary: &Vary, answers: &[Answer]) -> Value {
    let about = json!({
        "vary": varied(vary),
        "others": answers.iter().skip(1).map(one).collect::<Vec<_>>(),
    });
    whole(runs, [answers.first().map(one).unwrap_or_default(), fields(about)])
}

/// What all answers have, and these fields.
pub(super) fn whole<const N: usize>(runs: &Runs<'_>, parts: [Map<String, Value>; N]) -> Value {
    let options = runs.options;
    let mut report = fields(json!({
        "version": VERSION,
        "program": options.file.display().to_string(),
        "arguments": options.arguments,
        "steps": options.steps,
        "torch": runs.torch.version,
        "kept": runs.kept.path.display().to_string(),
        "runs": runs.made.load(Ordering::Relaxed),
        "known": runs.known.load(Ordering::Relaxed),
    }));
    for part in parts {
        report.extend(part);
    }
    Value::Object(report)
}

/// The fields of an object.
pub(super) fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// What is varied.
pub(super) fn varied(vary: &Vary) -> Value {
    let values = &vary.values;
    let list = values.multiple().is_none().then(|| values.iter().collect::<Vec<_>>());
    json!({
        "name": vary.name,
        "kind": if vary.is_variable { "variable" } else { "option" },
        "low": values.low(),
        "high": values.high(),
        "multiple": values.multiple(),
        "list": list,
    })
}

/// The GPU and the limit.
pub(super) fn terms(terms: &Terms) -> Map<String, Value> {
    let gpu = &terms.gpu;
    fields(json!({
        "gpu": {"name": gpu.name, "id": gpu.id, "total": gpu.total_memory.get()},
        "limit": terms.most().get(),
        "fraction": terms.limit.and_then(|limit| memory_fraction(limit, gpu.total_memory)),
        "conf": terms.conf,
    }))
}

/// The value whose run ended a search, and why.
pub(super) fn ended(ended: Option<&(u64, Ended)>) -> (Option<u64>, Option<&str>) {
    match ended {
        Some((value, Ended::Failed(error))) => (Some(*value), Some(error.as_str())),
        Some((value, Ended::Stopped)) => (Some(*value), Some("Ctrl-C")),
        None => (None, None),
    }
}

fn one(answer: &Answer) -> Map<String, Value> {
    let (failed_at, error) = ended(answer.found.ended.as_ref());
    let mut all = terms(&answer.terms);
    all.extend(fields(json!({
        "largest": answer.largest,
        "next": answer.next.as_ref().map(probe),
        "exact": answer.is_exact(),
        "needs": answer.needs.as_ref().map(probe),
        "probes": answer.found.probes.iter().map(probe).collect::<Vec<_>>(),
        "contradictions": answer.contradictions.iter().map(contradiction).collect::<Vec<_>>(),
        "growth": answer.peak.as_ref().map(growth),
        "sites": answer.sites.iter().map(site).collect::<Vec<_>>(),
        "holders": answer.best().map(|best| held(&best.holders)),
        "advice": answer.best().map(|best| {
            advices(best).iter().map(|row| json!({"what": row.what, "bytes": row.bytes.get()})).collect::<Vec<_>>()
        }),
        "settings": answer.settings.iter().map(setting).collect::<Vec<_>>(),
        "failed_at": failed_at,
        "error": error,
    })));
    all
}

pub(super) fn probe(probe: &Probe) -> Value {
    let failed = probe
        .failed
        .as_ref()
        .map(|failed| json!({"bytes": failed.bytes.get(), "at": failed.at, "is_below": failed.is_below}));
    json!({
        "value": probe.value,
        "fits": probe.is_fitting,
        "peak_allocated": probe.peak_allocated.get(),
        "peak_reserved": probe.peak_reserved.get(),
        "exact": probe.is_exact,
        "failed": failed,
        "steps": probe.steps,
        "steady": probe.is_steady,
        "sites": held(&probe.sites),
        "outside": held(&probe.outside),
        "outside_unknown": probe.outside_unknown,
        "notes": probe.notes,
        "remarks": probe.remarks,
    })
}

pub(super) fn held(rows: &[Held]) -> Vec<Value> {
    rows.iter().map(|row| json!({"what": row.what, "bytes": row.bytes.get()})).collect()
}

pub(super) fn contradiction(found: &Contradiction) -> Value {
    let (kind, value, larger) = match found {
        Contradiction::Fits { value, larger } => ("fits", value, larger),
        Contradiction::Allocated { value, larger } => ("allocated", value, larger),
        Contradiction::Reserved { value, larger } => ("reserved", value, larger),
    };
    json!({"kind": kind, "value": value, "larger": larger})
}

fn growth(growth: &Growth) -> Value {
    json!({
        "kind": growth.kind.word(),
        "base": growth.base,
        "slope": growth.slope,
        "square": growth.square,
        "values": growth.values,
        "residual": growth.residual,
        "exact": growth.is_exact,
    })
}

fn site(site: &Site) -> Value {
    json!({"what": site.what, "bytes": site.bytes.get(), "growth": site.growth.as_ref().map(growth)})
}

fn setting(setting: &Setting) -> Value {
    json!({
        "variable": setting.variable,
        "conf": setting.conf,
        "value": setting.value,
        "fits": setting.is_fitting,
        "largest": setting.largest,
    })
}
