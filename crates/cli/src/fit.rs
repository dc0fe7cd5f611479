//! `blockyard fit`: the largest value of a program's option that fits a GPU, by runs of the program without one.

mod answer;
mod json;
mod kept;
mod options;
mod runs;
mod sites;
mod text;

use std::cell::Cell;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use blockyard_dry_run::{Torch, find_standin, prepare};
use blockyard_fit::memory_fraction;

use self::answer::{Answer, answer};
use self::kept::{Kept, file_of};
pub(crate) use self::options::FitOptions;
use self::runs::{Ended, Runs, Terms};
use crate::{dry_run, output, progress};

/// The exit status of a process that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

pub(crate) fn fit(options: &FitOptions) -> anyhow::Result<ExitCode> {
    if !options.file.is_file() {
        bail!("{}: there is no such file", options.file.display());
    }
    let gpus = options.gpus();
    for gpu in &gpus {
        if let Some(limit) = options.limit
            && memory_fraction(limit, gpu.total_memory).is_none()
        {
            bail!("--limit {limit} is no part of the {} of {}", gpu.total_memory, gpu.name);
        }
    }
    let python = dry_run::python(options.python.as_deref());
    let torch = Torch::find(&python)?;
    let prepared = prepare(&torch, &find_standin()?)?;
    let path = match &options.keep {
        Some(path) => path.clone(),
        None => file_of(&options.file)?,
    };
    if options.fresh && path.exists() {
        std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
    }
    let folder = tempfile::tempdir().context("no folder for the files of runs")?;
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
        kept: Kept::read(path),
        bar,
        made: Cell::new(0),
        known: Cell::new(0),
    };
    ctrlc::set_handler(dry_run::interrupt).context("Ctrl-C cannot be waited for")?;
    let mut answers = Vec::new();
    for gpu in gpus {
        let terms = Terms { gpu, limit: options.limit, conf: options.conf.clone() };
        let found = answer(&runs, &terms);
        let is_ended = found.is_ended();
        answers.push(found);
        if is_ended {
            break;
        }
    }
    runs.bar.finish_and_clear();
    print(&runs, &answers)?;
    Ok(status(&answers))
}

fn print(runs: &Runs<'_>, answers: &[Answer]) -> anyhow::Result<()> {
    let mut out = output::stdout();
    let options = runs.options;
    for answer in answers {
        if options.quiet {
            output::line(&mut out, &text::sentence(&options.vary, answer))?;
        } else {
            out.write_all(text::report(runs, answer)?.as_bytes())?;
        }
    }
    if answers.len() > 1 {
        out.write_all(text::gpus(&options.vary, answers)?.as_bytes())?;
    }
    if !options.quiet {
        let (made, known) = (runs.made.get(), runs.known.get());
        let place = runs.kept.path.display();
        let steps = options.steps;
        output::line(
            &mut out,
            &format!(
                "{made} runs of at most {steps} steps each over PyTorch {}, and {known} known from before; kept in {place}",
                runs.torch.version
            ),
        )?;
    }
    out.flush()?;
    if let Some(path) = &options.json {
        output::write_whole(path, (json::report(runs, answers).to_string() + "\n").as_bytes())?;
    }
    Ok(())
}

/// 0 where some value fits each GPU, 1 where none fits one, 2 where a run failed.
fn status(answers: &[Answer]) -> ExitCode {
    let ended = answers.iter().find_map(|answer| answer.found.ended.as_ref());
    match ended {
        Some((_, Ended::Stopped)) => ExitCode::from(INTERRUPTED),
        Some((_, Ended::Failed(_))) => ExitCode::from(2),
        None if answers.iter().any(|answer| answer.largest.is_none()) => ExitCode::from(1),
        None => ExitCode::SUCCESS,
    }
}
