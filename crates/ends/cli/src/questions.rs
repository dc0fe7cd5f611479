//! The common parts of the commands that ask about runs: reading runs, and one answer for each file. Each
//! question is a module.

pub(crate) mod autopsy;
pub(crate) mod bound;
pub(crate) mod compare;
pub(crate) mod diff;
pub(crate) mod leaks;
mod options;
pub(crate) mod search;
pub(crate) mod verdict;
pub(crate) mod what_if;

use std::cmp::Reverse;
use std::error::Error as _;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use blockyard_answers::{Answer, AnswerLine, ErrorLine, Limit, QuestionKind, VERSION};
use blockyard_lab::{LabError, Run};
use blockyard_record::grouped;
use blockyard_replay::OnProgress;
use blockyard_workload::Workload;
use blockyard_workload::presets::presets;
use clap::{Args, Parser};
use serde::Serialize;

use crate::exit_status::ExitStatus;
use crate::output;
use crate::progress::Bar;

pub(crate) use self::options::{
    AllocatorsQuestion, BoundQuestion, ConfOptions, FileOptions, SearchQuestion, WhatIfQuestion,
};

/// The answer about one file.
pub(crate) struct QuestionReply {
    /// The answer as JSON, without version and file.
    pub(crate) json: Answer,
    /// The answer as text for people, line by line.
    pub(crate) text: String,
    pub(crate) status: ExitStatus,
}

/// Answers a question about a run, as the command of this name does for a file with these options and
/// `--json`.
///
/// # Errors
///
/// A name that is not a question about one run, a wrong option, a question that cannot be answered, work that
/// `on_progress` cancelled.
pub fn ask(run: &Run, name: &str, options: &[String], on_progress: OnProgress) -> anyhow::Result<AnswerLine> {
    let bar = &Bar::to(on_progress);
    let reply = match QuestionKind::from_name(name) {
        Some(QuestionKind::Verdict) => verdict::answer(run, bar, &options_of(name, options)?),
        Some(QuestionKind::WhatIf) => what_if::answer(run, bar, &options_of(name, options)?),
        Some(QuestionKind::Search) => search::answer(run, bar, &options_of(name, options)?),
        Some(QuestionKind::Autopsy) => autopsy::answer(run, bar, &options_of(name, options)?),
        Some(QuestionKind::Bound) => bound::answer(run, bar, &options_of(name, options)?),
        Some(QuestionKind::CompareAllocators) => compare::answer(run, bar, &options_of(name, options)?),
        Some(QuestionKind::Leaks) => leaks::answer(run, bar, &options_of(name, options)?),
        Some(QuestionKind::Diff) | None => bail!("`{name}` is not a question about one run"),
    };
    Ok(line_of(None, &run.name, reply?))
}

/// Answers a question about each run of a file, as the command does with these options and `--json`.
#[cfg(feature = "mcp")]
pub(crate) fn ask_file(
    path: &Path,
    question: QuestionKind,
    options: &[String],
    on_progress: OnProgress,
) -> anyhow::Result<Vec<AnswerLine>> {
    let read = if question == QuestionKind::Verdict { read_all } else { read };
    let runs = read(path, &Bar::to(&mut |progress| on_progress(progress)))?;
    let file = path.display().to_string();
    let answer = |run: &Run| -> anyhow::Result<AnswerLine> {
        let line = ask(run, question.name(), options, &mut |progress| on_progress(progress))?;
        Ok(AnswerLine { file: Some(file.clone()), ..line })
    };
    runs.iter().map(answer).collect()
}

/// The options of a question, as its command reads them.
fn options_of<Q: Args>(name: &str, options: &[String]) -> anyhow::Result<Q> {
    #[derive(Parser)]
    struct Asked<Q: Args> {
        #[command(flatten)]
        question: Q,
        /// Answers are JSON anyway.
        #[arg(long, hide = true)]
        json: bool,
    }
    Ok(parse::<Asked<Q>>(name, options)?.question)
}

/// The options of a command from a program, which reads no words for a terminal.
pub(crate) fn parse<P: Parser>(name: &str, options: &[String]) -> anyhow::Result<P> {
    let command = [format!("blockyard {name}")];
    P::try_parse_from(command.iter().chain(options)).map_err(|error| {
        // A value that cannot be read has the reason as its source.
        error.source().map_or_else(|| anyhow!("{error}"), |why| anyhow!("{why}"))
    })
}

/// Asks a question about each file.
pub(crate) fn ask_files<Q: Args>(
    options: &FileOptions<Q>,
    answer: impl Fn(&Run, &Bar, &Q) -> anyhow::Result<QuestionReply>,
) -> anyhow::Result<ExitCode> {
    each(&options.files, options.json, |run, bar| answer(run, bar, &options.question))
}

/// The changes from one run to another: the answer of `diff` with `--json` about the second file.
///
/// # Errors
///
/// The command's own.
pub fn ask_diff(before: &Run, after: &Run, on_progress: OnProgress) -> anyhow::Result<AnswerLine> {
    Ok(line_of(None, &after.name, diff::answer(before, after, &Bar::to(on_progress))?))
}

/// The changes from one iteration of a run to another: the answer of `diff` with `--steps` and `--json`.
///
/// # Errors
///
/// The command's own.
pub fn ask_diff_iterations(
    run: &Run,
    first: usize,
    second: usize,
    on_progress: OnProgress,
) -> anyhow::Result<AnswerLine> {
    Ok(line_of(None, &run.name, diff::answer_steps(run, first, second, &Bar::to(on_progress))?))
}

fn line_of(file: Option<&str>, run: &str, answer: QuestionReply) -> AnswerLine {
    AnswerLine { version: VERSION, file: file.map(str::to_owned), run: run.to_owned(), answer: answer.json }
}

/// An answer as the line of JSON that is printed: fields by name.
///
/// # Errors
///
/// If JSON cannot represent a part of the answer, which none of our types has.
pub fn json_line(answer: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_value(answer)?.to_string())
}

/// Asks about each file in turn, and writes each answer as soon as it is known. Devices without requests are
/// left out where another device of the file has some.
pub(crate) fn each(
    files: &[PathBuf],
    as_json: bool,
    ask: impl FnMut(&Run, &Bar) -> anyhow::Result<QuestionReply>,
) -> anyhow::Result<ExitCode> {
    each_of(files, as_json, read, ask)
}

/// Asks as [`each`] does, about the runs that `read` finds in a file, in their order.
fn each_of(
    files: &[PathBuf],
    as_json: bool,
    read: impl Fn(&Path, &Bar) -> anyhow::Result<Vec<Run>>,
    mut ask: impl FnMut(&Run, &Bar) -> anyhow::Result<QuestionReply>,
) -> anyhow::Result<ExitCode> {
    let mut worst = ExitStatus::Positive;
    let mut out = output::stdout();
    for path in files {
        let name = path.display().to_string();
        let bar = Bar::new(&name);
        let runs = read(path, &bar);
        let answers =
            runs.and_then(|runs| runs.iter().map(|run| Ok((run.name.clone(), ask(run, &bar)?))).collect());
        drop(bar);
        let answers: anyhow::Result<Vec<(String, QuestionReply)>> = answers;
        match answers {
            Ok(answers) => {
                let has_several = answers.len() > 1;
                for (run, answer) in answers {
                    worst = worst.max(answer.status);
                    write(&mut out, as_json, &name, &run, has_several, answer)?;
                }
            }
            Err(error) => {
                worst = ExitStatus::Failed;
                write_error(&mut out, as_json, &name, &error)?;
            }
        }
        out.flush()?;
    }
    Ok(worst.into())
}

fn write(
    out: &mut impl Write,
    as_json: bool,
    file: &str,
    run: &str,
    has_several: bool,
    answer: QuestionReply,
) -> anyhow::Result<()> {
    // The name of a run has the device.
    let named = if has_several { run } else { file };
    if as_json {
        output::line(out, &json_line(&line_of(Some(file), run, answer))?)?;
    } else {
        output::line(out, &format!("{named}: {}", answer.text.trim_end()))?;
    }
    Ok(())
}

pub(crate) fn write_error(
    out: &mut impl Write,
    as_json: bool,
    file: &str,
    error: &anyhow::Error,
) -> anyhow::Result<()> {
    let text = format!("{error:#}");
    if as_json {
        let line = ErrorLine { version: VERSION, file: file.to_owned(), error: text };
        output::line(out, &json_line(&line)?)?;
    } else if matches!(error.downcast_ref(), Some(LabError::Pasted(_))) {
        output::line(out, &format!("{file}: {text}"))?;
    } else {
        output::line(out, &format!("{file}: no answer: {text}"))?;
    }
    Ok(())
}

/// Whether a path is the name of a preset.
fn is_preset(path: &Path) -> bool {
    presets().iter().any(|preset| path == Path::new(preset.id))
}

/// The runs of a file that have requests; all runs if none has.
pub(crate) fn read(path: &Path, bar: &Bar) -> anyhow::Result<Vec<Run>> {
    let mut runs = read_all(path, bar)?;
    if runs.iter().any(Run::has_requests) {
        runs.retain(Run::has_requests);
    }
    Ok(runs)
}

/// The runs of a file: a recording, a snapshot with one for each device, a workload's text, or the name of a
/// preset. Of several devices those come first that ran out of memory, and then those that hold most.
fn read_all(path: &Path, bar: &Bar) -> anyhow::Result<Vec<Run>> {
    let name = path.display().to_string();
    if let Some(preset) = presets().iter().find(|preset| preset.id == name)
        && !path.exists()
    {
        let workload = Workload::parse(preset.text).map_err(|error| anyhow!("{error}"))?;
        return Ok(vec![Run::from_workload(preset.id, workload, "", preset.capacity)]);
    }
    let bytes = output::read(path)?;
    let mut runs = Run::read(&name, &bytes, &mut |progress| bar.report(&progress))?;
    runs.sort_by_key(|run| Reverse(run.device_order()));
    Ok(runs)
}

/// Adds a line for each sentence about facts that are not known.
fn add_notes(text: &mut String, notes: &[String]) {
    for note in notes {
        let _ = writeln!(text, "  note: {note}");
    }
}

/// A sentence with the number of requests of a run and, if `limit` is inferred, the limit that its file
/// implies.
pub(crate) fn requests_sentence(run: &Run, limit: Option<Limit>) -> String {
    let requests = grouped(run.request_count());
    match limit.filter(Limit::is_inferred) {
        Some(limit) => {
            format!("{requests} requests, under the limit that the file implies: {}", limit.range_text())
        }
        None => format!("{requests} requests"),
    }
}

/// Lines of columns, the first to the left and the others to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text.push_str("  ");
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
