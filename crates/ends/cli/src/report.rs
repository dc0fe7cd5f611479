//! `blockyard report`: a run as one HTML page to read, to send and to print.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use blockyard_lab::RunSource;
use blockyard_pytorch::snapshot::MemoryName;
use blockyard_report::report_under;
use blockyard_workload::Workload;
use blockyard_workload::presets::presets;
use clap::Args;

use crate::output;
use crate::progress::Bar;
use crate::questions::ConfOptions;

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// A snapshot or a recording, also packed, or a workload's text, or the name of a preset; `-` for
    /// standard input.
    file: PathBuf,
    /// The page to write; `-` for standard output.
    #[arg(short, long, value_name = "OUT.html")]
    out: PathBuf,
    /// A paragraph for the page; may be given several times.
    #[arg(long, value_name = "TEXT")]
    note: Vec<String>,
    /// Leave out stacks, and the names of functions, files and tensors. Sizes stay.
    #[arg(long)]
    redact: bool,
    /// Only this device of a snapshot, or `host` for its pinned memory; without it, all.
    #[arg(long, value_name = "INDEX|host")]
    device: Option<MemoryName>,
    #[command(flatten)]
    under: ConfOptions,
}

pub(crate) fn report(options: &ReportOptions) -> anyhow::Result<ExitCode> {
    let path = options.file.display().to_string();
    let content = blockyard_report::ReportOptions {
        is_redacted: options.redact,
        notes: options.note.clone(),
        device: options.device,
        tried: Vec::new(),
    };
    let bar = Bar::new(&path);
    let source = source(&options.file)?;
    let conditions = |run: &_| options.under.of_run(run);
    let html = report_under(source.into(), &content, &conditions, &mut |progress| bar.report(&progress))
        .with_context(|| path.clone())?;
    drop(bar);
    if options.out == Path::new("-") {
        let mut out = output::stdout();
        out.write_all(html.as_bytes())?;
        out.flush()?;
    } else {
        output::write_whole(&options.out, html.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file, under its own name without its folders; or a preset.
fn source(path: &Path) -> anyhow::Result<RunSource> {
    let name =
        path.file_name().map_or_else(|| "standard input".into(), |name| name.to_string_lossy().into_owned());
    if let Some(preset) = presets().iter().find(|preset| preset.id == name)
        && !path.exists()
    {
        let workload = Workload::parse(preset.text).map_err(|error| anyhow::anyhow!("{error}"))?;
        return Ok(RunSource::Workload {
            name: preset.id.to_owned(),
            workload: Box::new(workload),
            conf: String::new(),
            capacity: preset.capacity,
        });
    }
    let name = if path == Path::new("-") { "standard input".to_owned() } else { name };
    Ok(RunSource::File { name, bytes: output::read(path)? })
}
