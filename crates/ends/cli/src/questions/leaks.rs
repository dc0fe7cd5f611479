//! `blockyard leaks`: what grows from iteration to iteration, as text and as JSON.

use std::fmt::Write as _;

use blockyard_answers::LeaksAnswer;
use blockyard_lab::{Run, leaks as ask};
use blockyard_record::grouped;
use blockyard_replay::Progress;

use super::{ConfOptions, QuestionReply, add_notes};
use crate::exit_status::ExitStatus;
use crate::progress::Bar;

const SHOWN_CALL_SITES: usize = 12;

pub(crate) fn answer(run: &Run, bar: &Bar, options: &ConfOptions) -> anyhow::Result<QuestionReply> {
    let under = options.of_run(run);
    // Under its own conditions the run is used as recorded, without a replay.
    let asked = (under != run.conditions()).then(|| run.under(&under));
    let total = run.requests().len();
    let mut tell = |done| bar.report(&Progress::new("replaying", done, total));
    let cut = asked.as_ref().map(|run| run.until_oom(&mut tell)).transpose()?;
    let run = cut.as_deref().unwrap_or(run);
    let found = ask(run, &mut |progress| bar.report(&progress))?.answer;
    let status = if found.growing.is_empty() { ExitStatus::Positive } else { ExitStatus::Negative };
    Ok(QuestionReply { text: text(&found), json: found.into(), status })
}

fn text(found: &LeaksAnswer) -> String {
    let mut text = format!("{}\n", found.sentence);
    for growth in found.growing.iter().take(SHOWN_CALL_SITES) {
        let _ = writeln!(
            text,
            "    {} more, last by request {}  {}",
            growth.growth,
            grouped(growth.last_request),
            growth.site.join(" < ")
        );
    }
    let count = found.growing.len();
    if count > SHOWN_CALL_SITES {
        let _ = writeln!(text, "    and {} more", count - SHOWN_CALL_SITES);
    }
    add_notes(&mut text, &found.notes);
    text
}
