//! What other settings would have done: a table of replays under the limit that the file implies.

use std::borrow::Cow;
use std::fmt::Write as _;

use blockyard_lab::{Conditions, LabError, Limit, LimitSource, Row, Run, candidates, replay_under};
use blockyard_record::{Bytes, grouped};
use blockyard_replay::{OnProgress, Progress};

use crate::html::{escaped, exact, sentence, two_sizes};

/// The settings that were tried.
pub(crate) struct Settings {
    limit: Limit,
    rows: Vec<Tried>,
}

/// One setting, at both ends of what the limit may be.
struct Tried {
    name: String,
    low: Row,
    /// `None` where the limit is known exactly.
    high: Option<Row>,
}

/// Replays the run under its own settings and under each plain one.
pub(crate) fn tried(run: &Run, own: &Conditions, on_progress: OnProgress) -> Result<Settings, LabError> {
    let limit = limit_of(run, own);
    let most = own.and_limit(limit.highest);
    let single = |conf: &String| !conf.contains(',') && *conf != own.conf;
    let others = candidates(run, &most).into_iter().filter(single);
    let settings: Vec<String> = std::iter::once(own.conf.clone()).chain(others).collect();
    let ends = limit.ends();
    let total = settings.len().saturating_mul(ends.len());
    let mut done = 0_usize;
    let mut rows = Vec::with_capacity(settings.len());
    let runs: Vec<(Bytes, Cow<'_, Run>)> = ends
        .into_iter()
        .map(|end| {
            let mut tell = |_: usize| on_progress(Progress::new("trying settings", 0, total));
            Ok((end, run.under_limit(&own.and_limit(end), &mut tell)?))
        })
        .collect::<Result<_, LabError>>()?;
    for (place, conf) in settings.into_iter().enumerate() {
        let mut found = Vec::with_capacity(runs.len());
        for (end, run) in &runs {
            let mut tell = |_: usize| on_progress(Progress::new("trying settings", done, total));
            found.push(replay_under(run, &own.and_conf(&conf).and_limit(*end), 0, &mut tell)?);
            done = done.saturating_add(1);
        }
        let mut found = found.into_iter();
        let Some(low) = found.next() else { continue };
        let name = match (place, conf.is_empty()) {
            (0, true) => "own settings (default settings)".to_owned(),
            (0, false) => format!("own settings ({conf})"),
            (_, true) => "default settings".to_owned(),
            (_, false) => conf,
        };
        rows.push(Tried { name, low, high: found.next() });
    }
    Ok(Settings { limit, rows })
}

/// The limit that was given; else the one that the file implies; else the capacity.
fn limit_of(run: &Run, own: &Conditions) -> Limit {
    let capacity = own.capacity_of(run);
    match (own.limit_of(run), run.recorded_limit().filter(|_| own.capacity.is_none())) {
        (Some(given), _) => Limit::exactly(given.min(capacity), LimitSource::Given),
        (None, Some(recorded)) => recorded,
        (None, None) => Limit::exactly(capacity, LimitSource::Device),
    }
}

impl Settings {
    pub(crate) fn write(&self, out: &mut String) {
        out.push_str("<h3>Settings tried</h3>\n");
        let _ = writeln!(
            out,
            "<p>Each row is a replay of the same requests. {} Both ends were replayed where they differ.</p>",
            escaped(&self.limit_sentence())
        );
        out.push_str(
            "<table class=\"settings\">\n<thead><tr><th>Peak reserved</th><th>Out of memory</th><th>Device calls</th>\
             <th>Setting</th></tr></thead>\n<tbody>\n",
        );
        for tried in &self.rows {
            let [reserved, oom, calls] = tried.cells();
            let _ = writeln!(
                out,
                "<tr><td class=\"bytes\">{reserved}</td><td>{oom}</td><td>{calls}</td><td class=\"what\"><code>{}</code></td></tr>",
                escaped(&tried.name)
            );
        }
        out.push_str("</tbody>\n</table>\n");
    }

    fn limit_sentence(&self) -> String {
        let Limit { lowest, highest, source, .. } = self.limit;
        let ends = if lowest == highest {
            exact(highest)
        } else {
            format!("between {} and {}", exact(lowest), exact(highest))
        };
        match source {
            LimitSource::Given => format!("The limit of reserved bytes was given: {ends}."),
            LimitSource::Fraction => format!(
                "The limit of reserved bytes is inferred from the file, which does not name it: {ends}."
            ),
            LimitSource::Device => sentence(&format!("the limit is the memory of the device: {ends}")),
        }
    }
}

impl Tried {
    /// Peak reserved, out of memory, device calls, as HTML.
    fn cells(&self) -> [String; 3] {
        let low = match &self.low.outcome {
            Ok(outcome) => outcome,
            Err(error) => return [escaped(&error.to_string()), "not replayed".to_owned(), String::new()],
        };
        let high = self.high.as_ref().and_then(Row::answered).unwrap_or(low);
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
