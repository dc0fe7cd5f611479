//! `blockyard guard`: programs of a repository, compared with its `memory.toml`.

mod lines;
mod options;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use blockyard_answers::{GuardAnswer, GuardFailure};
use blockyard_budget::guard::{GuardFile, GuardRuns, GuardedRun, ProgramEntry, answer};
use blockyard_dry_run::{Torch, find_standin, prepare};
use blockyard_record::counted;

pub(crate) use self::options::GuardOptions;
use crate::dry_run::{gpu_of, interrupt, is_interrupted};
use crate::exit_status::ExitStatus;
use crate::questions::json_line;
use crate::{dry_run, output, progress};

pub(crate) fn guard(options: &GuardOptions) -> anyhow::Result<ExitCode> {
    let place = GuardPaths::of(options)?;
    let mut file = place.read(options)?;
    let entries = entries(options, &place, &file)?;
    let python = absolute_command(&options.python.command());
    let torch = Torch::find(&python)?;
    let standin = find_standin()?;
    let prepared = prepare(&torch, &std::path::absolute(&standin).unwrap_or(standin))?;
    ctrlc::set_handler(interrupt).context("cannot wait for Ctrl-C")?;
    let bar = progress::line(options.quiet);
    let counts_non_pytorch = options.memory.leaves_out_non_pytorch();
    let runs = GuardRuns { folder: &place.folder, python, torch, prepared, counts_non_pytorch };
    let mut held = Vec::new();
    for entry in entries {
        bar.set_message(format!("{} on {}", entry.command(), entry.gpu));
        let Some(run) = run(&runs, entry)? else {
            bar.finish_and_clear();
            eprintln!("interrupted: nothing is written");
            return Ok(ExitStatus::Interrupted.into());
        };
        held.push(run);
    }
    bar.finish_and_clear();
    let written = if options.update { update(&mut file, &held)? } else { 0 };
    if written > 0 {
        output::write_whole(&place.file, file.to_string().as_bytes())?;
    }
    let answer = answer(place.file.display().to_string(), runs.torch.version, &held, options.update);
    print(options, &answer, &file, written)?;
    if let Some(path) = &options.json {
        output::write_whole(path, (json_line(&answer)? + "\n").as_bytes())?;
    }
    Ok(status(&answer).into())
}

/// Runs a program; `None` after Ctrl-C.
fn run(runs: &GuardRuns<'_>, entry: ProgramEntry) -> anyhow::Result<Option<GuardedRun>> {
    let scratch = tempfile::tempdir().context("cannot make a folder for the files of a run")?;
    if !runs.folder.join(&entry.program).is_file() {
        bail!("{}: no such file", entry.program);
    }
    let gpu = gpu_of(&entry.gpu)?;
    let lines = |file: &Path| lines::holders(file, runs.folder).map_err(|error| format!("{error:#}"));
    Ok(runs.run(entry, &gpu, scratch.path(), is_interrupted, lines)?)
}

/// The guard's file, and the folder of its programs.
struct GuardPaths {
    file: PathBuf,
    /// The folder as an absolute path without symbolic links.
    folder: PathBuf,
}

impl GuardPaths {
    fn of(options: &GuardOptions) -> anyhow::Result<Self> {
        let file = options.file.clone();
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = std::fs::canonicalize(parent).with_context(|| parent.display().to_string())?;
        Ok(Self { file, folder })
    }

    fn read(&self, options: &GuardOptions) -> anyhow::Result<GuardFile> {
        let name = self.file.display();
        match std::fs::read_to_string(&self.file) {
            Ok(text) => GuardFile::parse(&text).with_context(|| name.to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && options.program.is_some() => {
                Ok(GuardFile::default())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                bail!("{name}: no such file; `blockyard guard --update train.py --gpu h100` makes one")
            }
            Err(error) => Err(error).context(name.to_string()),
        }
    }

    /// The path of a program from the folder of the file, as the file names programs.
    fn name(&self, program: &Path) -> anyhow::Result<String> {
        if !program.is_file() {
            bail!("{}: no such file", program.display());
        }
        let absolute = std::fs::canonicalize(program).with_context(|| program.display().to_string())?;
        let Ok(inside) = absolute.strip_prefix(&self.folder) else {
            bail!("{} is not below the folder of {}", program.display(), self.file.display());
        };
        inside
            .to_str()
            .map(str::to_owned)
            .with_context(|| format!("the path {} is not UTF-8", program.display()))
    }
}

/// The entries of the programs that run. Options replace values of the file.
fn entries(
    options: &GuardOptions,
    place: &GuardPaths,
    file: &GuardFile,
) -> anyhow::Result<Vec<ProgramEntry>> {
    let mut entries = match &options.program {
        None => file.entries().to_vec(),
        Some(program) => {
            let program = place.name(program)?;
            let is_asked = |entry: &&ProgramEntry| {
                let is_gpu = options.gpu.as_ref().is_none_or(|gpu| *gpu == entry.gpu);
                entry.program == program && entry.arguments == options.arguments && is_gpu
            };
            let found: Vec<ProgramEntry> = file.entries().iter().filter(is_asked).cloned().collect();
            if found.is_empty() { vec![options.entry(program)] } else { found }
        }
    };
    let name = place.file.display();
    if entries.is_empty() {
        bail!("{name} has no program; `blockyard guard --update train.py --gpu h100` adds one");
    }
    for entry in &mut entries {
        options.change(entry);
        dry_run::gpu_of(&entry.gpu).with_context(|| format!("{name}: {}", entry.command()))?;
        if !options.update && entry.baseline.is_none() && entry.budget.is_none() {
            bail!(
                "{name} has neither a baseline nor a budget of `{}` on {}: `blockyard guard --update` writes a baseline",
                entry.command(),
                entry.gpu
            );
        }
    }
    Ok(entries)
}

/// Stores the results of the programs that ended in the file, and returns how many these are.
fn update(file: &mut GuardFile, runs: &[GuardedRun]) -> anyhow::Result<usize> {
    let ended: Vec<&GuardedRun> = runs.iter().filter(|program| program.run.failure.is_none()).collect();
    for GuardedRun { entry, run, .. } in &ended {
        let baseline = Some(run.baseline(entry.lines));
        file.set(&ProgramEntry { baseline, ..entry.clone() })?;
    }
    Ok(ended.len())
}

fn print(
    options: &GuardOptions,
    answer: &GuardAnswer,
    file: &GuardFile,
    written: usize,
) -> anyhow::Result<()> {
    let mut out = output::stdout();
    let (name, programs) = (&answer.file, &answer.programs);
    for program in programs.iter().filter(|program| !options.quiet || !program.passed) {
        out.write_all(program.text.as_bytes())?;
    }
    let unread = file.unread_keys();
    if !unread.is_empty() && !options.quiet {
        output::line(
            &mut out,
            &format!("{name} has keys that the guard does not know: {}", unread.join(", ")),
        )?;
    }
    if options.update {
        let words = match written {
            0 => format!("{name} is unchanged"),
            _ => format!("{name} has the new baseline of {}", counted(written, "program")),
        };
        output::line(&mut out, &words)?;
    } else if programs.len() > 1 {
        let failed = programs.iter().filter(|program| !program.passed).count();
        output::line(&mut out, &format!("{failed} of {} failed", counted(programs.len(), "program")))?;
    }
    Ok(out.flush()?)
}

fn status(answer: &GuardAnswer) -> ExitStatus {
    let mut failures = answer.programs.iter().flat_map(|program| &program.failures);
    if failures.any(|failure| matches!(failure, GuardFailure::Error { .. })) {
        ExitStatus::Failed
    } else if answer.passed {
        ExitStatus::Positive
    } else {
        ExitStatus::Negative
    }
}

/// A command with a folder in its name, so that it means the same in every folder.
fn absolute_command(command: &str) -> String {
    if !command.contains('/') {
        return command.to_owned();
    }
    let absolute = std::path::absolute(command).ok().and_then(|path| path.to_str().map(str::to_owned));
    absolute.unwrap_or_else(|| command.to_owned())
}
