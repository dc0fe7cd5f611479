//! `blockyard guard`: programs of a repository, compared with its `memory.toml`.

mod json;
mod lines;
mod options;
mod runs;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use blockyard_dry_run::{Report, Torch, find_standin, prepare};
use blockyard_guard::{
    Failure, GuardComparison, GuardFile, MeasuredRun, ProgramEntry, RunFailure, compare, report,
};

pub(crate) use self::options::GuardOptions;
use self::runs::Runs;
use crate::exit_status::ExitStatus;
use crate::questions::json_line;
use crate::{dry_run, output, progress};

/// The run of a program, compared with the guard's file.
struct GuardedRun {
    entry: ProgramEntry,
    run: MeasuredRun,
    report: Report,
    found: GuardComparison,
}

pub(crate) fn guard(options: &GuardOptions) -> anyhow::Result<ExitCode> {
    let place = GuardPaths::of(options)?;
    let mut file = place.read(options)?;
    let entries = entries(options, &place, &file)?;
    let python = absolute_command(&dry_run::python(options.python.as_deref()));
    let torch = Torch::find(&python)?;
    let standin = find_standin()?;
    let prepared = prepare(&torch, &std::path::absolute(&standin).unwrap_or(standin))?;
    ctrlc::set_handler(dry_run::interrupt).context("cannot wait for Ctrl-C")?;
    let bar = progress::line();
    if options.quiet {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    let runs = Runs { folder: &place.folder, python, torch, prepared };
    let mut held = Vec::new();
    for entry in entries {
        bar.set_message(format!("{} on {}", entry.command(), entry.gpu));
        let Some((run, report)) = runs.run(&entry)? else {
            bar.finish_and_clear();
            eprintln!("interrupted: nothing is written");
            return Ok(ExitStatus::Interrupted.into());
        };
        let found = compare(&entry, &run);
        held.push(GuardedRun { entry, run, report, found });
    }
    bar.finish_and_clear();
    if options.update && held.iter().any(|program| program.run.failure.is_none()) {
        update(&mut file, &held)?;
        output::write_whole(&place.file, file.to_string().as_bytes())?;
    }
    print(options, &place, &file, &held)?;
    if let Some(path) = &options.json {
        output::write_whole(
            path,
            (json_line(&json::report(options.update, &place.file, &runs.torch, &held))? + "\n").as_bytes(),
        )?;
    }
    Ok(status(options.update, &held).into())
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

/// Stores the results of the programs that ended in the file.
fn update(file: &mut GuardFile, held: &[GuardedRun]) -> anyhow::Result<()> {
    for GuardedRun { entry, run, .. } in held.iter().filter(|program| program.run.failure.is_none()) {
        let baseline = Some(run.baseline(entry.lines));
        file.set(&ProgramEntry { baseline, ..entry.clone() })?;
    }
    Ok(())
}

fn print(
    options: &GuardOptions,
    place: &GuardPaths,
    file: &GuardFile,
    runs: &[GuardedRun],
) -> anyhow::Result<()> {
    let mut out = output::stdout();
    let name = place.file.display();
    for GuardedRun { entry, run, found, .. } in runs {
        if !options.quiet || is_failed(options.update, &found.failures) {
            out.write_all(report(entry, run, found, outcome(options.update, &found.failures))?.as_bytes())?;
        }
    }
    let unread = file.unread_keys();
    if !unread.is_empty() && !options.quiet {
        output::line(
            &mut out,
            &format!("{name} has keys that the guard does not know: {}", unread.join(", ")),
        )?;
    }
    if options.update {
        let written = runs.iter().filter(|program| program.run.failure.is_none()).count();
        let words = match written {
            0 => format!("{name} is unchanged"),
            _ => format!("{name} has the new baseline of {}", blockyard_record::counted(written, "program")),
        };
        output::line(&mut out, &words)?;
    } else if runs.len() > 1 {
        let failed = runs.iter().filter(|program| !program.found.failures.is_empty()).count();
        let programs = blockyard_record::counted(runs.len(), "program");
        output::line(&mut out, &format!("{failed} of {programs} failed"))?;
    }
    Ok(out.flush()?)
}

/// Whether a program fails. A growth is not a failure of an update.
fn is_failed(is_update: bool, failures: &[Failure]) -> bool {
    let is_growth = |failure: &Failure| matches!(failure, Failure::Allocated(_) | Failure::Reserved(_));
    failures.iter().any(|failure| !is_update || !is_growth(failure))
}

fn outcome(is_update: bool, failures: &[Failure]) -> &'static str {
    match (is_update, is_failed(is_update, failures)) {
        (_, true) => "FAILS",
        (true, false) => "written",
        (false, false) => "passes",
    }
}

fn status(is_update: bool, held: &[GuardedRun]) -> ExitStatus {
    let is_unknown = |failure: &Failure| matches!(failure, Failure::Ended(RunFailure::Failed(_)));
    if held.iter().flat_map(|held| &held.found.failures).any(is_unknown) {
        ExitStatus::Failed
    } else if held.iter().any(|held| is_failed(is_update, &held.found.failures)) {
        ExitStatus::Negative
    } else {
        ExitStatus::Positive
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
