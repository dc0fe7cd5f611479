use std::fmt::Write as _;
use std::process::ExitCode;

use blockyard_lab::{Leaks, Run, Steps, leaks as ask};
use blockyard_record::{Bytes, grouped};
use blockyard_replay::Progress;
use serde_json::json;

use super::{Answer, Status, each};
use crate::options::LeaksOptions;
use crate::progress::Bar;

const SHOWN: usize = 12;

pub(crate) fn leaks(options: &LeaksOptions) -> anyhow::Result<ExitCode> {
    each(&options.files, options.json, |run, bar| answer(run, bar, options))
}

pub(super) fn answer(run: &Run, bar: &Bar, options: &LeaksOptions) -> anyhow::Result<Answer> {
    let under = options.limits.conditions_with(run, options.conf.as_deref());
    // The run itself goes as far as it was recorded.
    let asked = (under != run.conditions()).then(|| run.under(&under));
    let total = run.requests().len();
    let mut tell = |done| bar.report(&Progress::new("replaying", done, total));
    let cut = asked.as_ref().map(|run| run.until_oom(&mut tell)).transpose()?;
    let run = cut.as_deref().unwrap_or(run);
    let found = ask(run, &mut |progress| bar.report(&progress))?;
    let bytes = |all: &[Bytes]| all.iter().map(|bytes| bytes.get()).collect::<Vec<_>>();
    let json = json!({
        "question": "leaks",
        "steps": found.steps,
        "boundaries": found.boundaries,
        "live": bytes(&found.live),
        "growing": found.growing.iter().map(|growth| json!({
            "site": growth.site,
            "live": bytes(&growth.live),
            "growth": growth.growth.get(),
            "first_request": growth.first_request,
            "last_request": growth.last_request,
        })).collect::<Vec<_>>(),
        "notes": found.notes,
    });
    let status = if found.growing.is_empty() { Status::Fine } else { Status::Found };
    Ok(Answer { json, text: text(&found), status })
}

fn text(found: &Leaks) -> String {
    let from = match found.steps {
        Steps::Markers => "by its markers",
        Steps::Repetition => "by repetition",
        Steps::Parts => "by cutting it into parts",
    };
    let count = found.growing.len();
    let what = match count {
        0 => "nothing grows".to_owned(),
        1 => "one call site grows".to_owned(),
        _ => format!("{} call sites grow", grouped(count as u64)),
    };
    let mut text = format!("{} steps, found {from}: {what}\n", grouped(found.boundaries.len() as u64));
    for growth in found.growing.iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "    {} more, last by request {}  {}",
            growth.growth,
            grouped(growth.last_request),
            growth.site.join(" < ")
        );
    }
    if count > SHOWN {
        let _ = writeln!(text, "    and {} more", count - SHOWN);
    }
    for note in &found.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    text
}
