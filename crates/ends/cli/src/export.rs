//! `blockyard export`: runs in other formats.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use blockyard_figure::{
    Series, ShownPart, Theme, TimelineView, figure_facts, timeline, timeline_text, typeface,
};
use blockyard_pytorch::snapshot::{MemoryName, SnapshotFile};
use blockyard_pytorch::{MemoryFile, Meta, log};
use blockyard_record::Recording;
use blockyard_replay::{OnProgress, Progress, job, run, verify};
use blockyard_workload::Workload;
use clap::Args;

use crate::output;
use crate::page::{BuiltPage, PageFile, PageOptions, one_page};
use crate::progress::Bar;
use crate::snapshot::open_file;

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// A snapshot, a recording, or a workload's text.
    file: PathBuf,
    /// What to write: `OUT.pickle`, `OUT.jsonl`, `OUT.svg`, `OUT.png`, `OUT.csv` or `OUT.html`.
    out: PathBuf,
    /// The device of a snapshot, or `host`; needed where it has several devices, except for a pickle or a
    /// page of all.
    #[arg(long, value_name = "INDEX")]
    device: Option<MemoryName>,
    #[command(flatten)]
    page: PageOptions,
}

/// The size of a figure, in pixels.
const FIGURE: blockyard_figure::Size = blockyard_figure::Size::new(1280.0, 480.0);

/// How many pixels of a PNG one pixel of the figure becomes, in each direction.
const PIXEL_SCALE: f32 = 2.0;

/// A run that is exported.
enum Source {
    Snapshot(Box<SnapshotFile>),
    Recording(Box<Recording>),
}

pub(crate) fn export(options: &ExportOptions) -> anyhow::Result<ExitCode> {
    let name = options.file.display().to_string();
    let format = options.out.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let export = Export { format, device: options.device, page: options.page.page.as_deref() };
    let write = writer(&export)?;
    let bar = Bar::new(&name);
    let content = write(&name, output::read(&options.file)?, &export, &bar)?;
    drop(bar);
    output::write_whole(&options.out, &content)?;
    Ok(ExitCode::SUCCESS)
}

/// The format of an export, and its options.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// `pickle`, `jsonl`, `svg`, `png`, `csv` or `html`, as the end of a file's name.
    pub format: &'a str,
    /// The device of a snapshot, or host memory; needed where it has several devices, except for a pickle or
    /// a page of all.
    pub device: Option<MemoryName>,
    /// The folder of the built page: see [`crate::BuiltPage::find`].
    pub page: Option<&'a Path>,
}

/// The content of a file in another format: what `blockyard export` writes.
///
/// # Errors
///
/// The errors of the command: an unknown format, a file that is not a run, work that `on_progress` cancelled.
pub fn export_bytes(
    name: &str,
    bytes: Vec<u8>,
    export: &Export<'_>,
    on_progress: OnProgress,
) -> anyhow::Result<Vec<u8>> {
    writer(export)?(name, bytes, export, &Bar::to(on_progress))
}

type Writer = fn(&str, Vec<u8>, &Export<'_>, &Bar) -> anyhow::Result<Vec<u8>>;

fn writer(export: &Export<'_>) -> anyhow::Result<Writer> {
    Ok(match export.format {
        "pickle" | "pkl" => |name, bytes, export, bar| pickle(&read(&bytes, name, bar)?, export.device),
        "jsonl" => |name, bytes, export, bar| jsonl(&read(&bytes, name, bar)?, export.device, name, bar),
        "svg" => |name, bytes, export, bar| {
            svg(&read(&bytes, name, bar)?, export.device, name, bar).map(String::into_bytes)
        },
        "csv" => |name, bytes, export, bar| csv(&read(&bytes, name, bar)?, export.device, name, bar),
        "html" => {
            // The page is looked for first: without a page, the file need not be read.
            BuiltPage::find(export.page)?;
            |name, bytes, export, _| {
                let file = PageFile::new(name, bytes, export.device)?;
                Ok(one_page(&BuiltPage::find(export.page)?, &file, false)?.into_bytes())
            }
        }
        "png" => |name, bytes, export, bar| png(&svg(&read(&bytes, name, bar)?, export.device, name, bar)?),
        other => bail!("\"{other}\" is not a format to export: write pickle, jsonl, svg, png, csv or html"),
    })
}

fn read(bytes: &[u8], name: &str, bar: &Bar) -> anyhow::Result<Source> {
    let on_progress = &mut |progress| bar.report(&progress);
    let text = match open_file(bytes).with_context(|| name.to_owned())? {
        MemoryFile::Snapshot(file) => return Ok(Source::Snapshot(file)),
        MemoryFile::Recording(recorded) => {
            let verified = verify(&recorded, on_progress).with_context(|| name.to_owned())?;
            return Ok(Source::Recording(Box::new(verified.recording)));
        }
        MemoryFile::Text(text) => text,
    };
    let (workload, settings) =
        job::read(name, &text, "", Workload::DEFAULT_CAPACITY).with_context(|| name.to_owned())?;
    Ok(Source::Recording(Box::new(run(&workload, &settings, on_progress)?)))
}

impl Source {
    /// The recording of one device: the named one, or the only one.
    fn recording(&self, device: Option<MemoryName>, name: &str, bar: &Bar) -> anyhow::Result<Recording> {
        let file = match self {
            Self::Recording(recording) => return Ok(recording.as_ref().clone()),
            Self::Snapshot(file) => file,
        };
        let place = match device {
            Some(device) => file.place_of(device),
            None if file.devices.len() > 1 => {
                bail!("the snapshot has the devices {}: name one with --device", file.memory_names());
            }
            None => Some(0),
        };
        let place = place.ok_or_else(|| anyhow!("the snapshot has nothing about that device"))?;
        let total = file.trace_len(place);
        let on_done = &mut |done| bar.report(&Progress::new("recording", done, total));
        Ok(blockyard_pytorch::trace::record(file, place, name, on_done)?.recording)
    }
}

fn pickle(source: &Source, device: Option<MemoryName>) -> anyhow::Result<Vec<u8>> {
    let mut content = Vec::new();
    match source {
        Source::Snapshot(file) => match device {
            Some(device) => {
                let mut one = file.as_ref().clone();
                one.retain(device);
                one.write_pickle(&mut content)?;
            }
            None => file.write_pickle(&mut content)?,
        },
        Source::Recording(recording) => {
            let index = match device {
                Some(MemoryName::Device(index)) => index,
                None => 0,
                Some(MemoryName::Host) => bail!("a recording has no host memory"),
            };
            let mut made = SnapshotFile::from_recordings(&[(index, recording)])?;
            made.list_settings(recording.info().release);
            made.write_pickle(&mut content)?;
        }
    }
    Ok(content)
}

fn jsonl(source: &Source, device: Option<MemoryName>, name: &str, bar: &Bar) -> anyhow::Result<Vec<u8>> {
    if let Source::Snapshot(file) = source
        && (device == Some(MemoryName::Host) || (file.devices.is_empty() && file.host.is_some()))
    {
        bail!("host memory has its own allocator: a recording (.jsonl) is for the allocator of a GPU");
    }
    let recording = source.recording(device, name, bar)?;
    let info = recording.info();
    let meta = Meta {
        name: name.to_owned(),
        conf: info.conf.clone(),
        total_memory: info.capacity,
        ..Meta::default()
    };
    let end = recording.state_at(recording.event_count())?;
    let lines = [log::meta(&meta), log::trace(&recording.trace()?), log::segments(&end.snapshot())];
    Ok((lines.join("\n") + "\n").into_bytes())
}

fn svg(source: &Source, device: Option<MemoryName>, name: &str, bar: &Bar) -> anyhow::Result<String> {
    let recording = source.recording(device, name, bar)?;
    let series = Series::new(&recording);
    let scene = timeline(&series, &recording, &TimelineView::fit(recording.step_count()), None, FIGURE);
    let text = timeline_text(&series, &recording);
    let title = format!("{name}: memory over time");
    let facts = figure_facts(&series, &recording, ShownPart::Steps(0, recording.step_count()));
    Ok(scene.under_heading(&title, &facts).to_svg(
        Theme::Light,
        &title,
        &format!("{text} {}", facts.join(", ")),
    ))
}

/// The figure as pixels, two for each pixel of the figure in both directions, as today's screens show them.
fn png(svg: &str) -> anyhow::Result<Vec<u8>> {
    let mut options = resvg::usvg::Options::default();
    for face in typeface::FACES {
        options.fontdb_mut().load_font_data(face.ttf.to_vec());
    }
    // For characters that the typeface does not have.
    options.fontdb_mut().load_system_fonts();
    options.fontdb_mut().set_sans_serif_family(typeface::SANS_REGULAR.family);
    let tree = resvg::usvg::Tree::from_str(svg, &options)?;
    let size = tree.size().to_int_size();
    let scaled = size.scale_by(PIXEL_SCALE).context("the figure is empty")?;
    let mut pixels = resvg::tiny_skia::Pixmap::new(scaled.width(), scaled.height())
        .context("the figure is too large for a PNG")?;
    resvg::render(
        &tree,
        resvg::tiny_skia::Transform::from_scale(PIXEL_SCALE, PIXEL_SCALE),
        &mut pixels.as_mut(),
    );
    Ok(pixels.encode_png()?)
}

/// A table with a line for each step: the bytes of each class after the step.
fn csv(source: &Source, device: Option<MemoryName>, name: &str, bar: &Bar) -> anyhow::Result<Vec<u8>> {
    let recording = source.recording(device, name, bar)?;
    let mut content =
        String::from("step,events,time_us,requested,rounding,pending,cached,allocated,active,reserved\n");
    let mut times = recording.times_us_from(0);
    for (step, breakdown) in recording.breakdowns_from(0).enumerate() {
        let events = recording.step(step).map_or(0, |step| step.end);
        let time = times.next().map(|time| time.to_string()).unwrap_or_default();
        let bytes = [
            breakdown.requested,
            breakdown.rounding,
            breakdown.pending,
            breakdown.cached,
            breakdown.allocated(),
            breakdown.active(),
            breakdown.reserved(),
        ];
        let bytes = bytes.map(|bytes| bytes.get().to_string()).join(",");
        content.extend([&(step + 1).to_string(), ",", &events.to_string(), ",", &time, ",", &bytes, "\n"]);
    }
    Ok(content.into_bytes())
}
