//! The report as JSON: `docs/fit.md` has its fields.

use blockyard_fit::{Contradiction, Growth, Held, Probe, memory_fraction};
use serde_json::{Map, Value, json};

use super::answer::{Answer, Setting, Site};
use super::runs::{Ended, Runs};

/// Counts changes of the fields that take something away.
const VERSION: u32 = 1;

/// The answers, that of the first GPU at the top.
pub(super) fn report(runs: &Runs<'_>, answers: &[Answer]) -> Value {
    let options = runs.options;
    let values = &options.vary.values;
    let mut report = answers.first().map(one).unwrap_or_default();
    let about = json!({
        "version": VERSION,
        "program": options.file.display().to_string(),
        "arguments": options.arguments,
        "vary": {
            "name": options.vary.name,
            "kind": if options.vary.is_variable { "variable" } else { "option" },
            "low": values.low(),
            "high": values.high(),
            "multiple": values.multiple(),
        },
        "steps": options.steps,
        "torch": runs.torch.version,
        "kept": runs.kept.path.display().to_string(),
        "runs": runs.made.get(),
        "known": runs.known.get(),
        "others": answers.iter().skip(1).map(one).collect::<Vec<_>>(),
    });
    if let Value::Object(about) = about {
        report.extend(about);
    }
    Value::Object(report)
}

fn one(answer: &Answer) -> Map<String, Value> {
    let gpu = &answer.terms.gpu;
    let (failed_at, error) = match &answer.found.ended {
        Some((value, Ended::Failed(error))) => (Some(value), Some(error.as_str())),
        Some((value, Ended::Stopped)) => (Some(value), Some("Ctrl-C")),
        None => (None, None),
    };
    let value = json!({
        "gpu": {"name": gpu.name, "id": gpu.id, "total": gpu.total_memory.get()},
        "limit": answer.limit.get(),
        "fraction": answer.terms.limit.and_then(|limit| memory_fraction(limit, gpu.total_memory)),
        "conf": answer.terms.conf,
        "largest": answer.largest,
        "next": answer.next.as_ref().map(probe),
        "exact": answer.is_exact(),
        "needs": answer.needs.as_ref().map(probe),
        "probes": answer.found.probes.iter().map(probe).collect::<Vec<_>>(),
        "contradictions": answer.contradictions.iter().map(contradiction).collect::<Vec<_>>(),
        "growth": answer.peak.as_ref().map(growth),
        "sites": answer.sites.iter().map(site).collect::<Vec<_>>(),
        "holders": answer.best().map(|best| held(&best.holders)),
        "settings": answer.settings.iter().map(setting).collect::<Vec<_>>(),
        "failed_at": failed_at,
        "error": error,
    });
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn probe(probe: &Probe) -> Value {
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
        "notes": probe.notes,
        "remarks": probe.remarks,
    })
}

fn held(rows: &[Held]) -> Vec<Value> {
    rows.iter().map(|row| json!({"what": row.what, "bytes": row.bytes.get()})).collect()
}

fn contradiction(found: &Contradiction) -> Value {
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
        "conf": setting.conf,
        "value": setting.value,
        "fits": setting.is_fitting,
        "largest": setting.largest,
    })
}
