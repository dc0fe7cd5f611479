//! `blockyard bound`: how little memory any allocator could need, as text and as JSON.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use blockyard_answers::BoundAnswer;
use blockyard_lab::{Bound, Row, Run, bound as ask, replay_under};
use blockyard_record::grouped;

use super::{BoundQuestion, FileOptions, QuestionReply, add_notes, ask_files, requests_sentence};
use crate::exit_status::ExitStatus;
use crate::progress::Bar;

pub(crate) fn bound(options: &FileOptions<BoundQuestion>) -> anyhow::Result<ExitCode> {
    if options.question.layout && !options.json {
        bail!("--layout needs --json");
    }
    ask_files(options, answer)
}

pub(super) fn answer(run: &Run, bar: &Bar, options: &BoundQuestion) -> anyhow::Result<QuestionReply> {
    let found = ask(run, &mut |progress| bar.report(&progress))?;
    if !found.is_valid() {
        bail!("the planned layout overlaps: please report this");
    }
    let baseline = replay_under(run, &run.conditions(), 0, &mut |_| std::ops::ControlFlow::Continue(()))?;
    let own = baseline.outcome_at_lowest();
    let layout = || found.layout.iter().map(|at| (at.request, at.until, at.offset, at.size));
    let json = BoundAnswer {
        requests: run.request_count(),
        limit: baseline.limit,
        lower_bound: found.lower_bound,
        request: found.request,
        layout_peak: found.layout_peak,
        peak_reserved: own.map(|outcome| outcome.peak_reserved),
        ooms: own.map(|outcome| outcome.ooms),
        ooms_at_high: baseline.outcome_at_highest().map(|outcome| outcome.ooms),
        notes: found.notes.clone(),
        layout: options.layout.then(|| layout().collect()),
    };
    Ok(QuestionReply { json: json.into(), text: text(run, &found, &baseline), status: ExitStatus::Positive })
}

fn text(run: &Run, found: &Bound, baseline: &Row) -> String {
    let mut text = format!("{}\n", requests_sentence(run, baseline.limit));
    let least = grouped(found.lower_bound.get());
    let _ = writeln!(
        text,
        "  no allocator needs less than {least} bytes, live at request {}",
        grouped(found.request)
    );
    let _ = writeln!(text, "  a planned layout needs       {} bytes", grouped(found.layout_peak.get()));
    if let Some(own) = baseline.outcome_at_lowest() {
        let end = if baseline.fits() { "" } else { ", and go out of memory" };
        let _ =
            writeln!(text, "  the run's own settings take  {} bytes{end}", grouped(own.peak_reserved.get()));
    }
    add_notes(&mut text, &found.notes);
    text
}
