//! `blockyard fit`: which value, settings or layout of a program fits a GPU, by runs of the program without a
//! GPU.

mod curves;
mod options;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use blockyard_answers::{FitAnswer, FitHolder};
use blockyard_budget::fit::{
    End, FitError, ImportsProcess, Question, RunCache, RunCaller, RunConditions, RunCounts, RunQueue, Runs,
    ask, end, kept_file, text,
};
use blockyard_dry_run::{Torch, find_standin, prepare};
use blockyard_figure::frame_text;
use indicatif::ProgressBar;

pub(crate) use self::options::FitOptions;
use crate::dry_run::{interrupt, is_interrupted};
use crate::exit_status::ExitStatus;
use crate::output;
use crate::progress::{self, Bar};
use crate::questions::json_line;
use crate::snapshot::{self, WITHOUT_LINE, lines_at_peak};

/// The line on standard error that says what runs.
#[derive(Debug)]
struct RunLine(ProgressBar);

impl RunCaller for RunLine {
    fn is_stopped(&self) -> bool {
        is_interrupted()
    }

    fn show(&self, what: String) {
        self.0.set_message(what);
    }

    fn lines_at_peak(&self, snapshot: &Path) -> Result<Vec<FitHolder>, String> {
        lines(snapshot)
    }
}

/// The lines that hold the peak allocated in a snapshot, or why they are not known.
pub(crate) fn lines(snapshot: &Path) -> Result<Vec<FitHolder>, String> {
    sites(snapshot).map_err(|error| format!("{error:#}"))
}

/// The lines by descending bytes, for all devices together.
fn sites(file: &Path) -> anyhow::Result<Vec<FitHolder>> {
    let file = snapshot::open(file, &Bar::hidden())?;
    let places = 0..file.memories().count();
    let lines =
        lines_at_peak(&file, places, |frame| frame.map_or_else(|| WITHOUT_LINE.to_owned(), frame_text))?;
    Ok(lines.into_iter().map(|(what, bytes)| FitHolder { what, bytes }).collect())
}

pub(crate) fn fit(options: &FitOptions) -> anyhow::Result<ExitCode> {
    let question = options.question()?;
    let caller = RunLine(progress::line(options.quiet));
    ctrlc::set_handler(interrupt).context("cannot listen for Ctrl-C")?;
    let answer = answer(options, &question, &caller);
    caller.0.finish_and_clear();
    let answer = answer?;
    print(options, &question, &answer)?;
    Ok(match end(&answer.result) {
        End::Found => ExitStatus::Positive,
        End::NotFound => ExitStatus::Negative,
        End::Failed => ExitStatus::Failed,
        End::Stopped => ExitStatus::Interrupted,
    }
    .into())
}

/// The answer to the question, by dry runs of the program.
pub(crate) fn answer(
    options: &FitOptions,
    question: &Question,
    caller: &dyn RunCaller,
) -> anyhow::Result<FitAnswer> {
    if !options.file.is_file() {
        bail!("{}: no such file", options.file.display());
    }
    let conditions = options.gpus().into_iter();
    let conditions: Vec<RunConditions> = conditions
        .map(|gpu| {
            // As a limit, the memory of the GPU counts PyTorch's memory alone.
            let all = options.program.memory.all_memory.then_some(gpu.total_memory);
            RunConditions::new(gpu, options.limit.or(all), options.program.conf.clone())
        })
        .collect::<Result<_, FitError>>()?;
    let program = options.program();
    let torch = Torch::find(&program.python)?;
    let prepared = prepare(&torch, &find_standin()?)?;
    let path = match &options.keep {
        Some(path) => path.clone(),
        None => kept_file(&options.file).context("--keep names a file in another folder")?,
    };
    if options.fresh {
        RunCache::forget(&path)?;
    }
    let folder = tempfile::tempdir().context("cannot make a folder for the files of runs")?;
    let runs = Runs {
        program: &program,
        torch: &torch,
        prepared: &prepared,
        folder: folder.path(),
        cache: RunCache::read(path),
        queue: RunQueue::new(options.at_once),
        caller,
        counts: RunCounts::default(),
        imports: ImportsProcess::default(),
    };
    Ok(ask(&runs, &conditions, question)?)
}

fn print(options: &FitOptions, question: &Question, answer: &FitAnswer) -> anyhow::Result<()> {
    let text = text(question, &answer.result, options.run_ranks.as_ref(), options.quiet);
    let mut out = output::stdout();
    out.write_all(text.as_bytes())?;
    if !options.quiet {
        let call = &answer.call;
        output::line(
            &mut out,
            &format!(
                "{} runs of at most {} steps each over PyTorch {}, and {} from earlier calls; kept in {}",
                call.runs, call.steps, call.torch, call.known, call.kept
            ),
        )?;
    }
    out.flush()?;
    let json = json_line(answer)? + "\n";
    if let Some(path) = &options.json {
        output::write_whole(path, json.as_bytes())?;
    }
    if let Some(path) = &options.report
        && let Some(page) = curves::page(options, question, (answer, &json), &text)
    {
        output::write_whole(path, page.as_bytes())?;
    }
    Ok(())
}
