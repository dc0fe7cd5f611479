//! `blockyard fit`: which value, settings or layout of a program fits a GPU, by runs of the program without a
//! GPU.

mod answer;
mod by_other;
mod cache;
mod curves;
mod json;
mod layouts;
mod options;
mod run_queue;
mod runs;
mod settings;
mod sites;
mod text;
mod vary;

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use blockyard_answers::FitAnswer;
use blockyard_dry_run::{Torch, find_standin, prepare};
use blockyard_fit::memory_fraction;
use blockyard_report::FitReport;

use self::answer::{LargestOnGpu, answer};
use self::cache::{RunCache, file_of};
pub(crate) use self::options::FitOptions;
use self::options::Question;
use self::run_queue::{AnswerQueue, RunQueue, each};
use self::runs::{RunConditions, RunEnd, Runs};
use self::vary::Vary;
use crate::exit_status::ExitStatus;
use crate::questions::json_line;
use crate::{dry_run, output, progress};

/// The answer to a question as text and as JSON, with the exit status.
struct Reply {
    text: String,
    json: FitAnswer,
    status: ExitStatus,
    /// The curves of searches; `None` for settings and layouts.
    page: Option<FitReport>,
}

pub(crate) fn fit(options: &FitOptions) -> anyhow::Result<ExitCode> {
    if !options.file.is_file() {
        bail!("{}: no such file", options.file.display());
    }
    let question = options.question()?;
    let gpus = options.gpus();
    for gpu in &gpus {
        if let Some(limit) = options.limit
            && memory_fraction(limit, gpu.total_memory).is_none()
        {
            bail!("--limit {limit} is not between 1 byte and the {} of {}", gpu.total_memory, gpu.name);
        }
    }
    let conditions: Vec<RunConditions> = gpus
        .into_iter()
        .map(|gpu| RunConditions {
            gpu,
            limit: options.limit,
            conf: options.conf.clone(),
            sets: Vec::new(),
            environment: Vec::new(),
        })
        .collect();
    let python = dry_run::python(options.python.as_deref());
    let torch = Torch::find(&python)?;
    let prepared = prepare(&torch, &find_standin()?)?;
    let path = match &options.keep {
        Some(path) => path.clone(),
        None => file_of(&options.file)?,
    };
    if options.fresh {
        RunCache::forget(&path)?;
    }
    let folder = tempfile::tempdir().context("cannot make a folder for the files of runs")?;
    let bar = progress::line();
    if options.quiet {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    let runs = Runs {
        options,
        python,
        torch,
        prepared,
        folder: folder.path(),
        cache: RunCache::read(path),
        bar,
        queue: RunQueue::new(options.at_once),
        number: AtomicUsize::new(0),
        made_count: AtomicUsize::new(0),
        cached_count: AtomicUsize::new(0),
    };
    ctrlc::set_handler(dry_run::interrupt).context("cannot listen for Ctrl-C")?;
    let reply = match &question {
        Question::Largest(vary) => largest(&runs, &conditions, vary)?,
        Question::ByOther(vary, other) => by_other::by_values(&runs, &conditions, vary, other)?,
        Question::BySettings(vary, settings) => by_other::by_settings(&runs, &conditions, vary, settings)?,
        Question::Settings(settings) => settings::settings(&runs, &conditions, settings)?,
        Question::Layouts(mesh, ranks) => layouts::layouts(&runs, &conditions, mesh, *ranks)?,
        Question::ByLayouts(vary, mesh, ranks) => {
            by_other::by_layouts(&runs, &conditions, vary, mesh, *ranks)?
        }
    };
    runs.bar.finish_and_clear();
    print(&runs, &reply)?;
    Ok(reply.status.into())
}

/// The largest value that fits.
fn largest(runs: &Runs<'_>, conditions: &[RunConditions], vary: &Vary) -> anyhow::Result<Reply> {
    let ask =
        |conditions: &RunConditions, _before: &AnswerQueue<LargestOnGpu>| answer(runs, conditions, vary);
    let answers = each(conditions, runs.queue.most(), ask, LargestOnGpu::is_ended);
    let mut text = String::new();
    for answer in &answers {
        if runs.options.quiet {
            text += &(text::sentence(vary, answer) + "\n");
        } else {
            text += &text::report(vary, answer)?;
        }
    }
    if answers.len() > 1 {
        text += &text::gpus(vary, &answers)?;
    }
    let ended = answers.iter().find_map(|answer| answer.found.failure.as_ref());
    let is_found = answers.iter().all(|answer| answer.largest.is_some());
    Ok(Reply {
        text,
        json: json::report(runs, vary, &answers)?,
        status: status(ended.map(|(_, ended)| ended), is_found),
        page: Some(curves::curve_page(vary, &answers)),
    })
}

fn print(runs: &Runs<'_>, reply: &Reply) -> anyhow::Result<()> {
    let mut out = output::stdout();
    let options = runs.options;
    out.write_all(reply.text.as_bytes())?;
    if !options.quiet {
        let (made, known) =
            (runs.made_count.load(Ordering::Relaxed), runs.cached_count.load(Ordering::Relaxed));
        let place = runs.cache.path.display();
        let steps = options.steps;
        output::line(
            &mut out,
            &format!(
                "{made} runs of at most {steps} steps each over PyTorch {}, and {known} from earlier calls; kept in {place}",
                runs.torch.version
            ),
        )?;
    }
    out.flush()?;
    if let Some(path) = &options.json {
        output::write_whole(path, (json_line(&reply.json)? + "\n").as_bytes())?;
    }
    if let (Some(path), Some(page)) = (&options.report, &reply.page) {
        output::write_whole(path, curves::html(runs, page, &reply.text).as_bytes())?;
    }
    Ok(())
}

fn status(ended: Option<&RunEnd>, is_found: bool) -> ExitStatus {
    match ended {
        Some(RunEnd::Stopped) => ExitStatus::Interrupted,
        Some(RunEnd::Failed(_)) => ExitStatus::Failed,
        None if is_found => ExitStatus::Positive,
        None => ExitStatus::Negative,
    }
}
