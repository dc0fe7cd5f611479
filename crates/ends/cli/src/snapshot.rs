//! `blockyard snapshot`: answers about PyTorch's memory snapshots.

mod report;
mod stacks;
mod text;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, bail};
use blockyard_answers::{CertificateAnswer, DeviceAnswer, ErrorLine, SnapshotAnswer, VERSION};
use blockyard_pytorch::snapshot::{self, MemoryName, SnapshotFile};
use blockyard_pytorch::{MemoryFile, OpenError};
use blockyard_record::{Bytes, Frame};
use blockyard_replay::{OnProgress, Progress, certify};
use clap::Args;

pub(crate) use self::report::{DescribeOptions, DeviceReport};
use crate::exit_status::ExitStatus;
use crate::output;
use crate::progress::Bar;
use crate::questions::json_line;

#[derive(Debug, Args)]
pub(crate) struct SnapshotOptions {
    /// Snapshots, or folders of them; `-` for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only this device, by its number, or `host` for pinned host memory.
    #[arg(long, value_name = "INDEX")]
    pub(crate) device: Option<MemoryName>,
    /// The moment that is shown: after this many events of the trace, after a request (`request:5`), at the peak
    /// of allocated memory, or at the first request that ran out of memory.
    #[arg(long, value_name = "EVENT|request:N|peak|oom")]
    pub(crate) at: Option<MomentChoice>,
    /// How many of the stacks that hold most are shown.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) top: usize,
    /// Leave out the comparison with our allocator, which takes as long as the rest.
    #[arg(long)]
    pub(crate) no_certificate: bool,
    /// One JSON value a file instead of lines for people; `docs/snapshot-json.md` lists the fields.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The moment that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentChoice {
    /// The moment at which the most bytes were allocated.
    Peak,
    /// The first request that failed.
    OutOfMemory,
    /// After this many entries of the trace.
    Event(usize),
    /// After this request, as answers and figures count them.
    Request(usize),
}

impl FromStr for MomentChoice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "peak" => Ok(Self::Peak),
            "oom" => Ok(Self::OutOfMemory),
            text => {
                let request = text.strip_prefix("request:").map(|number| number.parse().map(Self::Request));
                request.unwrap_or_else(|| text.parse().map(Self::Event)).with_context(|| {
                    format!(
                        "\"{text}\" is not a moment: write a number of events, \"request:5\", \"peak\" or \"oom\""
                    )
                })
            }
        }
    }
}

pub(crate) fn snapshot(options: &SnapshotOptions) -> anyhow::Result<ExitCode> {
    let mut out = output::stdout();
    let mut has_failed = false;
    for path in files(&options.files)? {
        let name = path.display().to_string();
        match answer(&path, options, &Bar::new(&name)) {
            Ok((reports, summary)) if options.json => {
                output::line(&mut out, &json_line(&summary.json(&name, &reports))?)?;
            }
            Ok((reports, summary)) => text::write(&mut out, &name, &summary, &reports)?,
            Err(error) => {
                has_failed = true;
                let error = format!("{error:#}");
                if options.json {
                    let line = ErrorLine { version: VERSION, file: name, error };
                    output::line(&mut out, &json_line(&line)?)?;
                } else {
                    output::line(&mut out, &format!("{name}: not opened: {error}"))?;
                }
            }
        }
        out.flush()?;
    }
    Ok(if has_failed { ExitStatus::Failed } else { ExitStatus::Positive }.into())
}

/// One device of a snapshot, or host memory, as JSON: an element of `devices` with `--json`, or `host`.
///
/// `at` is a number of events, `request:5`, `peak` or `oom`; without it, the moment that the command takes.
/// `top` is the number of stacks that the answer lists, by descending bytes.
///
/// # Errors
///
/// The errors of the command: a moment that the trace does not have, work that `on_progress` cancelled.
pub fn describe_device(
    file: &SnapshotFile,
    place: usize,
    at: Option<&str>,
    top: usize,
    on_progress: OnProgress,
) -> anyhow::Result<DeviceAnswer> {
    let at = at.map(|at| at.parse().map_err(anyhow::Error::msg)).transpose()?;
    let question = DescribeOptions { at, top, has_certificate: false };
    Ok(DeviceReport::of(file, place, question, on_progress)?.answer)
}

/// The certificate of one device of a snapshot: `certificate` of the device with `--json`.
///
/// # Errors
///
/// A place that the file does not have, a trace without requests that can be replayed, work that
/// `on_progress` cancelled.
pub fn certify_device(
    file: &SnapshotFile,
    place: usize,
    on_progress: OnProgress,
) -> anyhow::Result<CertificateAnswer> {
    Ok(certify(file, place, on_progress)?.answer)
}

/// The files, and those of folders by name: one for each rank.
fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        let mut inside: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        inside.retain(|path| {
            let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
            path.is_file() && ["pickle", "pkl", "gz", "zst", "zip", "json", "html"].contains(&end.as_str())
        });
        if inside.is_empty() {
            bail!("{}: no snapshots in this folder", path.display());
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// What the command writes about one file with `--json`.
#[cfg(feature = "mcp")]
pub(crate) fn answer_file(
    path: &Path,
    options: &SnapshotOptions,
    on_progress: OnProgress,
) -> anyhow::Result<SnapshotAnswer> {
    let (reports, summary) = answer(path, options, &Bar::to(on_progress))?;
    Ok(summary.json(&path.display().to_string(), &reports))
}

fn answer(
    path: &Path,
    options: &SnapshotOptions,
    bar: &Bar,
) -> anyhow::Result<(Vec<DeviceReport>, FileSummary)> {
    let file = open(path, bar)?;
    let question =
        DescribeOptions { at: options.at, top: options.top, has_certificate: !options.no_certificate };
    let mut reports = Vec::new();
    for place in 0..file.memories().count() {
        if options.device.is_none_or(|device| file.place_of(device) == Some(place)) {
            reports.push(DeviceReport::of(&file, place, question, &mut |progress| bar.report(&progress))?);
        }
    }
    if let Some(device) = options.device
        && reports.is_empty()
    {
        bail!("the snapshot has nothing about {device}; it has {}", file.memory_names());
    }
    Ok((reports, FileSummary { file }))
}

/// The name of the holder for requests of threads without a line of Python.
pub(crate) const WITHOUT_LINE: &str = "threads without a line of Python, as those of backward";

/// The bytes that each line of the program holds at the peak of allocated memory, those first that hold most.
/// `indices` are those of the file's memories that count, and `line_of` gets the frame of the program's own
/// code, where a stack has one.
pub(crate) fn lines_at_peak<L: Ord>(
    file: &SnapshotFile,
    indices: Range<usize>,
    mut line_of: impl FnMut(Option<Frame<'_>>) -> L,
) -> anyhow::Result<Vec<(L, Bytes)>> {
    let question = DescribeOptions { at: Some(MomentChoice::Peak), top: usize::MAX, has_certificate: false };
    let mut lines: BTreeMap<L, Bytes> = BTreeMap::new();
    for place in indices {
        let report = DeviceReport::of(file, place, question, &mut |_| ControlFlow::Continue(()))?;
        for (holder, stack) in report.answer.at.top.iter().zip(&report.stacks) {
            let frame = file.stacks.own_frame(*stack).map(|frame| file.stacks.frame(frame));
            let bytes = lines.entry(line_of(frame)).or_default();
            *bytes = bytes.saturating_add(holder.bytes);
        }
    }
    let mut lines: Vec<(L, Bytes)> = lines.into_iter().collect();
    // The sort is stable: lines with equally many bytes stay in their order.
    lines.sort_by_key(|(_, bytes)| Reverse(*bytes));
    Ok(lines)
}

/// Opens a snapshot; `-` for standard input.
pub(crate) fn open(path: &Path, bar: &Bar) -> anyhow::Result<SnapshotFile> {
    if path == Path::new("-") {
        return Ok(snapshot::read(&output::read(path)?[..], &mut |_| ControlFlow::Continue(()))?);
    }
    let reader = File::open(path).with_context(|| path.display().to_string())?;
    let total = reader.metadata().map_or(0, |metadata| metadata.len());
    let shows = std::io::stderr().is_terminal();
    let file = snapshot::read(reader, &mut |read| {
        if shows {
            // On 32 bits, the bar of a file above 4 GiB is at its end.
            let count = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
            return bar.report(&Progress::new("reading", count(read), count(total)));
        }
        ControlFlow::Continue(())
    })?;
    Ok(file)
}

/// Opens a file of any kind.
pub(crate) fn open_file(bytes: &[u8]) -> Result<MemoryFile, OpenError> {
    MemoryFile::read(bytes, &mut |_| ControlFlow::Continue(()))
}

/// Facts about a file that belong to no device.
pub(crate) struct FileSummary {
    pub(crate) file: SnapshotFile,
}

impl FileSummary {
    fn json(&self, name: &str, reports: &[DeviceReport]) -> SnapshotAnswer {
        let of = |is_host| reports.iter().filter(move |report| report.is_host == is_host);
        SnapshotAnswer {
            version: VERSION,
            file: name.to_owned(),
            conf: self.file.settings.conf.clone(),
            settings: self.file.settings.values.iter().cloned().collect(),
            annotations: self.file.annotations.len() as u64,
            devices: of(false).map(|report| report.answer.clone()).collect(),
            host: of(true).map(|report| report.answer.clone()).next(),
            notes: self.file.notes.clone(),
        }
    }
}
