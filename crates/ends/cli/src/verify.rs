//! `blockyard verify`: recorded runs through our allocator, compared with what PyTorch did.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use blockyard_answers::{ComparedFacts, FactCount, VerifyAnswer, VerifyError};
use blockyard_device::MirroredDevice;
use blockyard_pytorch::{MemoryFile, RecordedRun};
use blockyard_replay::{Comparison, Count, verify as replay, verify_on};
use blockyard_rules::{Release, known_config, left_out_note};
use clap::Args;

use crate::device::{DeviceName, open_cuda};
use crate::exit_status::ExitStatus;
use crate::output;
use crate::progress::Bar;
use crate::questions::json_line;
use crate::snapshot::open_file;

#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    /// Snapshots, or recordings with one JSON value a line, plain or gzip.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// One JSON value a file instead of lines for people.
    #[arg(long)]
    json: bool,
    /// Where segments are taken from: `virtual`, or `cuda:0` for a real segment at each recorded address.
    #[arg(long, default_value = "virtual")]
    device: DeviceName,
    /// The release of PyTorch whose rules hold ("2.15"); without it, the one that made the recording.
    #[arg(long, value_name = "RELEASE")]
    release: Option<Release>,
    /// Also say under which other releases of PyTorch the replay would be identical.
    #[arg(long)]
    every_release: bool,
}

pub(crate) fn verify(options: &VerifyOptions) -> anyhow::Result<ExitCode> {
    if let DeviceName::Cuda(index) = options.device {
        // Without the device no file can be replayed: this is one error instead of one for each file.
        open_cuda(index)?;
    }
    let mut worst = ExitStatus::Positive;
    let mut out = output::stdout();
    for path in &options.files {
        let name = path.display().to_string();
        match compare(path, &name, options) {
            Ok(comparisons) => {
                for found in comparisons {
                    worst = worst.max(match agreement(&found.comparison) {
                        Agreement::Identical => ExitStatus::Positive,
                        Agreement::Differs => ExitStatus::Negative,
                        Agreement::Nothing => ExitStatus::Failed,
                    });
                    write_comparison(&mut out, &found, options.json)?;
                }
            }
            Err(error) => {
                worst = worst.max(ExitStatus::Failed);
                if options.json {
                    let line = VerifyError { file: name, error: format!("{error:#}") };
                    output::line(&mut out, &json_line(&line)?)?;
                } else {
                    output::line(&mut out, &format!("{name}: not replayed: {error:#}"))?;
                }
            }
        }
        // Each file has a line, which is printed as soon as it is known.
        out.flush()?;
    }
    Ok(worst.into())
}

enum Agreement {
    Identical,
    Differs,
    Nothing,
}

fn agreement(comparison: &Comparison) -> Agreement {
    if comparison.is_identical() {
        Agreement::Identical
    } else if comparison.counts.iter().all(|count| count.total == 0) {
        Agreement::Nothing
    } else {
        Agreement::Differs
    }
}

/// A run with its comparison.
struct VerifiedRun {
    name: String,
    /// The release of PyTorch whose rules held.
    release: Release,
    /// The other releases under which the replay is identical; `None` without the option for it.
    others: Option<Vec<Release>>,
    comparison: Comparison,
}

/// Compares the runs of a file: that of a recording, or those of the devices of a snapshot.
fn compare(path: &Path, name: &str, options: &VerifyOptions) -> anyhow::Result<Vec<VerifiedRun>> {
    let bar = Bar::new(name);
    let on_progress = &mut |progress| bar.report(&progress);
    let mut comparisons = Vec::new();
    for (name, mut run) in runs(&output::read(path)?, name)? {
        let recorded_config = run.meta.conf.clone();
        if let Some(release) = options.release {
            run.meta.torch = release.with_dialect_of(run.meta.release()).to_string();
        }
        let release = run.meta.release();
        let (config, left_out) = known_config(&recorded_config, release);
        run.meta.conf = config;
        let mut verified = match options.device {
            DeviceName::Virtual => replay(&run, on_progress)?,
            DeviceName::Cuda(index) => {
                let device = open_cuda(index)?;
                verify_on(&run, |shown| MirroredDevice::new(shown, device), on_progress)?
            }
        };
        verified.comparison.notes.extend(release.dialect().note().map(str::to_owned));
        verified.comparison.notes.extend(left_out_note(&left_out));
        let mut others = None;
        if options.every_release {
            let mut equal = Vec::new();
            for other in Release::ALL
                .map(|other| other.with_dialect_of(release))
                .into_iter()
                .filter(|other| *other != release)
            {
                run.meta.torch = other.to_string();
                run.meta.conf = known_config(&recorded_config, other).0;
                if replay(&run, on_progress)?.comparison.is_identical() {
                    equal.push(other);
                }
            }
            others = Some(equal);
        }
        comparisons.push(VerifiedRun { name, release, others, comparison: verified.comparison });
    }
    Ok(comparisons)
}

fn runs(bytes: &[u8], name: &str) -> anyhow::Result<Vec<(String, RecordedRun)>> {
    let file = match open_file(bytes)? {
        MemoryFile::Snapshot(file) => file,
        MemoryFile::Recording(run) => return Ok(vec![(name.to_owned(), *run)]),
        // The error says why the text is not a recording.
        MemoryFile::Text(text) => return Ok(vec![(name.to_owned(), RecordedRun::read(text.as_bytes())?)]),
    };
    let traced = file.devices.iter().enumerate().filter(|(_, device)| !device.trace.is_empty());
    let runs = traced.map(|(place, device)| {
        let name = if file.devices.len() == 1 {
            name.to_owned()
        } else {
            format!("{name}, device {}", device.index)
        };
        Ok((name.clone(), blockyard_pytorch::trace::recorded_run(&file, place, &name)?))
    });
    let runs: Vec<(String, RecordedRun)> = runs.collect::<anyhow::Result<_>>()?;
    if runs.is_empty() {
        bail!(
            "the snapshot has no trace, so there is nothing to verify: call \
             `torch.cuda.memory._record_memory_history()` before the program allocates"
        );
    }
    Ok(runs)
}

fn to_json(found: &VerifiedRun) -> VerifyAnswer {
    let VerifiedRun { name, release, others, comparison } = found;
    let count =
        |count: &Count| (count.kind.clone(), FactCount { identical: count.identical, total: count.total });
    VerifyAnswer {
        file: name.clone(),
        release: release.to_string(),
        compared: ComparedFacts {
            identical: comparison.is_identical(),
            counts: comparison.counts.iter().map(count).collect(),
            first_difference: comparison.first_difference.clone(),
            notes: comparison.notes.clone(),
        },
        identical_under: others.as_ref().map(|others| others.iter().map(ToString::to_string).collect()),
    }
}

fn write_comparison(out: &mut impl Write, found: &VerifiedRun, as_json: bool) -> anyhow::Result<()> {
    let VerifiedRun { name, release, others, comparison } = found;
    if as_json {
        output::line(out, &json_line(&to_json(found))?)?;
        return Ok(());
    }
    let agreement_words = match agreement(comparison) {
        Agreement::Identical => "identical",
        Agreement::Differs => "DIFFERS",
        Agreement::Nothing => "nothing to compare: the file has no results",
    };
    let counts: Vec<String> = comparison
        .counts
        .iter()
        .map(|count| format!("{} {}/{}", count.kind, count.identical, count.total))
        .collect();
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    output::line(out, &format!("{name}: {agreement_words}{counts}"))?;
    if let Some(difference) = &comparison.first_difference {
        output::line(out, &format!("  first difference, {}", difference.what))?;
        if let Some(step) = difference.step {
            output::line(out, &format!("    request  {step}"))?;
        }
        output::line(out, &format!("    PyTorch  {}", difference.expected))?;
        output::line(out, &format!("    replay   {}", difference.found))?;
    }
    if let Some(others) = others {
        let names: Vec<String> = others.iter().map(ToString::to_string).collect();
        let names = if names.is_empty() { "no other release".to_owned() } else { names.join(", ") };
        output::line(out, &format!("  replayed as PyTorch {release}; identical under {names} too"))?;
    }
    for note in &comparison.notes {
        output::line(out, &format!("  note: {note}"))?;
    }
    Ok(())
}
