//! The table of other settings: replays under the limit that the file implies.

use std::fmt::Write as _;

use blockyard_lab::{
    Conditions, LabError, Limit, LimitKind, LimitSource, LimitedRun, Row, Run, candidates, device_text,
    is_drivers_pool, plain_candidates,
};
use blockyard_record::{exact_size, grouped, sentence};
use blockyard_replay::{OnProgress, Progress};
use blockyard_rules::conf_text;

use crate::html::{escaped, two_sizes};

/// The sentence about rows without a failure in the report of a recording that ends at its failure.
const ENDS_AT_FAILURE: &str = " The recording ends at the failure: a row that does not run out of memory lets that request pass, and what \
                               the program would have asked for afterwards is not known.";

/// The sentence about the row of the other backend, which is a model, since the code of the driver's own pool
/// is not public.
const DRIVERS_POOL: &str = "With <code>backend:cudaMallocAsync</code> the driver's own pool serves the program, and PyTorch's allocator does not. The code \
                            of that pool is not public: the row is a model of the pool, made from a recording of an H200. Its calls of the device are not counted, and \
                            a memory fraction limits the bytes in use, so that more may be reserved than the limit says.";

/// The settings that were tried.
pub(crate) struct Settings {
    limit: Limit,
    rows: Vec<TriedSetting>,
}

/// One setting, replayed at the lower and the upper bound of the limit.
struct TriedSetting {
    /// The text of the settings, as `PYTORCH_CUDA_ALLOC_CONF` would have it.
    conf: String,
    name: String,
    row: Row,
}

/// Replays the run under its own settings, under single other settings, and under the conditions that the
/// reader tried.
pub(crate) fn tried(
    run: &Run,
    own: &Conditions,
    by_reader: &[Conditions],
    on_progress: OnProgress,
) -> Result<Settings, LabError> {
    let mut others = plain_candidates(run, own);
    let singles = candidates(run, own).into_iter().filter(|conf| !conf.contains(',') && *conf != own.conf);
    for conf in singles {
        if !others.contains(&conf) {
            others.push(conf);
        }
    }
    let settings: Vec<String> = std::iter::once(own.conf.clone()).chain(others).collect();
    let total = settings.len();
    let step = |done: usize| Progress::new("trying settings", done, total);
    let limited = LimitedRun::of(run, own, &mut |_| on_progress(step(0)))?;
    let mut rows = Vec::with_capacity(total);
    for (index, conf) in settings.into_iter().enumerate() {
        let row = limited.row(&conf, 0, &mut |_| on_progress(step(index)))?;
        let name = match index {
            0 => format!("own settings ({})", conf_text(&conf)),
            _ => conf_text(&conf).to_owned(),
        };
        rows.push(TriedSetting { conf, name, row });
    }
    for conditions in by_reader {
        let is_known = |tried: &TriedSetting| tried.row.conditions == *conditions;
        if rows.iter().any(is_known) {
            continue;
        }
        let limited = LimitedRun::of(run, conditions, &mut |_| on_progress(step(total)))?;
        let row = limited.row(&conditions.conf, 0, &mut |_| on_progress(step(total)))?;
        rows.push(TriedSetting { conf: conditions.conf.clone(), name: tried_text(conditions), row });
    }
    let capacity = own.capacity_of(run);
    let limit =
        limited.limit().unwrap_or_else(|| Limit::exactly(capacity, LimitSource::Given, LimitKind::Device));
    Ok(Settings { limit, rows })
}

/// The conditions that the reader tried, with bytes in full, so that no two rows have one name.
fn tried_text(conditions: &Conditions) -> String {
    let conf = conf_text(&conditions.conf);
    let capacity = conditions.capacity.map(|capacity| format!(", {}", device_text(capacity)));
    let limit = conditions.limit.map(|limit| format!(", at most {} reserved", limit.exact_text()));
    let release = conditions.release.map(|release| format!(", PyTorch {release}"));
    let given: String = [capacity, limit, release].into_iter().flatten().collect();
    format!("{conf}{given} (tried by the reader)")
}

impl Settings {
    /// The number of the row with these settings, the first of which is the run's own.
    pub(crate) fn row_of(&self, conf: &str) -> Option<usize> {
        self.rows.iter().position(|tried| tried.conf == conf)
    }

    /// The table of the device with this number, whose rows can be linked to.
    pub(crate) fn write(&self, out: &mut String, index: usize) {
        out.push_str("<h3>Settings tried</h3>\n");
        let _ = writeln!(
            out,
            "<p>Each row is a replay of the same requests. {} Both ends were replayed where they differ.{}</p>",
            escaped(&self.limit_sentence()),
            if self.rows.iter().any(|tried| tried.row.ends_at_failure) { ENDS_AT_FAILURE } else { "" }
        );
        out.push_str(
            "<table class=\"settings\">\n<thead><tr><th>Peak reserved</th><th>Out of memory</th><th>Device calls</th>\
             <th>Setting</th></tr></thead>\n<tbody>\n",
        );
        for (row, tried) in self.rows.iter().enumerate() {
            let [reserved, oom, calls] = tried.cells();
            let _ = writeln!(
                out,
                "<tr id=\"setting-{index}-{row}\"><td \
                 class=\"bytes\">{reserved}</td><td>{oom}</td><td>{calls}</td><td \
                 class=\"what\"><code>{}</code>{}</td></tr>",
                escaped(&tried.name),
                if tried.is_drivers_pool() { " a model" } else { "" }
            );
        }
        out.push_str("</tbody>\n</table>\n");
        if self.rows.iter().any(TriedSetting::is_drivers_pool) {
            let _ = writeln!(out, "<p class=\"quiet\">{DRIVERS_POOL}</p>");
        }
    }

    fn limit_sentence(&self) -> String {
        let Limit { low, high, source, by, .. } = self.limit;
        let ends = if low == high {
            exact_size(high)
        } else {
            format!("between {} and {}", exact_size(low), exact_size(high))
        };
        match (source, by) {
            (_, LimitKind::Device) => sentence(&format!("the limit is the memory of the device: {ends}")),
            (LimitSource::Given, _) => format!("The limit of reserved bytes was given: {ends}."),
            (LimitSource::Inferred, _) => format!(
                "The limit of reserved bytes is inferred from the file, which does not name it: {ends}."
            ),
        }
    }
}

impl TriedSetting {
    fn is_drivers_pool(&self) -> bool {
        is_drivers_pool(&self.conf)
    }

    /// Peak reserved, out of memory, device calls, as HTML.
    fn cells(&self) -> [String; 3] {
        let low = match &self.row.outcome {
            Ok(outcome) => outcome,
            Err(error) => return [escaped(&error.to_string()), "not replayed".to_owned(), String::new()],
        };
        let high = self.row.outcome_at_highest().unwrap_or(low);
        let oom = match (&low.first_oom, &high.first_oom) {
            (None, None) => "no".to_owned(),
            (Some(_), None) => "depends on the limit: yes at the lower end, no at the upper".to_owned(),
            (None, Some(_)) => "depends on the limit: no at the lower end, yes at the upper".to_owned(),
            (Some(low), Some(high)) if low.request == high.request => {
                format!("yes, at request {}", grouped(low.request))
            }
            (Some(low), Some(high)) => {
                format!("yes, at request {} or {}", grouped(low.request), grouped(high.request))
            }
        };
        let reserved = if low.peak_reserved == high.peak_reserved {
            two_sizes(low.peak_reserved)
        } else {
            format!("{} to {}", two_sizes(low.peak_reserved), two_sizes(high.peak_reserved))
        };
        let calls = if low.device_calls() == high.device_calls() {
            grouped(low.device_calls())
        } else {
            format!("{} to {}", grouped(low.device_calls()), grouped(high.device_calls()))
        };
        [reserved, oom, calls]
    }
}
