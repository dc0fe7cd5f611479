//! `blockyard search`: the run under all sensible settings, as text and as JSON.

use std::fmt::Write as _;

use blockyard_answers::SearchAnswer;
use blockyard_lab::{Run, SearchResult, candidates, search as ask};
use blockyard_record::grouped;
use blockyard_replay::Progress;
use blockyard_rules::conf_text;

use super::what_if::{cells, heading, row_json};
use super::{QuestionReply, SearchQuestion, add_notes, requests_sentence, table};
use crate::exit_status::ExitStatus;
use crate::progress::Bar;

pub(crate) fn answer(run: &Run, bar: &Bar, options: &SearchQuestion) -> anyhow::Result<QuestionReply> {
    let conditions = options.conditions.of_run(run);
    let mut settings = candidates(run, &conditions);
    settings.extend(options.conf.iter().cloned());
    let found = ask(run, &conditions, &settings, &mut |step| {
        let progress = Progress::new("searching", step.done, step.total);
        bar.report(&progress)
    })?;
    let status = if found.rows.iter().any(|row| row.outcome.is_err()) {
        ExitStatus::Failed
    } else if found.best.is_some() || !found.baseline.fits() {
        ExitStatus::Negative
    } else {
        ExitStatus::Positive
    };
    let text = text(run, &found, options.all);
    let json = SearchAnswer {
        requests: run.request_count(),
        limit: found.baseline.limit,
        baseline: row_json(&found.baseline, run),
        settings: found.rows.iter().map(|row| row_json(row, run)).collect(),
        front: found.front.iter().map(|index| *index as u64).collect(),
        best: found.best.and_then(|best| found.rows.get(best)).map(|row| row.conditions.conf.clone()),
        line: found.line,
        sentence: found.sentence,
        notes: found.notes,
    };
    Ok(QuestionReply { json: json.into(), text, status })
}

fn text(run: &Run, found: &SearchResult, all: bool) -> String {
    let mut text = format!(
        "{} settings on {}\n",
        grouped(found.rows.len() as u64),
        requests_sentence(run, found.baseline.limit)
    );
    let mut lines = vec![heading(), cells("own settings", &found.baseline)];
    // The recommended row comes first; it may reserve more than others, because it is plainer.
    let rest = found.front.iter().copied().filter(|index| Some(*index) != found.best);
    let front = found.best.into_iter().chain(rest).filter_map(|index| found.rows.get(index));
    lines.extend(front.map(|row| cells(conf_text(&row.conditions.conf), row)));
    text.push_str(&table(&lines));
    let is_shown = |(index, row): &(usize, &blockyard_lab::Row)| {
        (all && !found.front.contains(index) && Some(*index) != found.best) || row.outcome.is_err()
    };
    let others: Vec<Vec<String>> = found
        .rows
        .iter()
        .enumerate()
        .filter(is_shown)
        .map(|(_, row)| cells(conf_text(&row.conditions.conf), row))
        .collect();
    if !others.is_empty() {
        text.push_str("  not on the front:\n");
        text.push_str(&table(&others));
    }
    let _ = writeln!(text, "  {}", found.sentence);
    if let Some(line) = &found.line {
        let _ = writeln!(text, "  {line}");
    }
    add_notes(&mut text, &found.notes);
    text
}
