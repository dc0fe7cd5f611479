//! PyTorch's own page for snapshots beside ours: the same file in the same Chromium.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use blockyard_e2e::{ElementRect, GpuChoice, Page, Window};
use blockyard_measure::{Measurement, ReportRow, Section};
use serde_json::{Value, json};

use super::BenchContext;
use super::snapshots::{longer, recorded};
use crate::cores::pin;

/// The line with which `MemoryViz.js` imports all of d3, and the line that replaces it: `d3.event` changes at
/// each event, which a module over the script cannot pass on.
const IMPORT: [&str; 2] = ["import * as d3 from \"https://cdn.skypack.dev/d3@5\";", "const d3 = window.d3;"];

/// The other imports of `MemoryViz.js`, as a module over d3's script.
const D3: &str = "export const { axisLeft, scaleLinear, zoom, zoomIdentity, brushX } = window.d3;\n";

/// Files of at least this many bytes are made of the recorded one; 0 is the recorded one itself.
const SIZES: [(&str, u64); 3] = [("as recorded", 0), ("300 MB", 300_000_000), ("1 GB", 1_000_000_000)];
/// How long to wait for a figure.
const PATIENCE: Duration = Duration::from_mins(4);
/// Moves of the pointer in a pan.
const MOVES: u32 = 60;

/// One of the two pages.
struct Viewer {
    name: &'static str,
    /// The field that takes a file.
    field: &'static str,
    /// The figure with a shape for each allocation.
    figure: &'static str,
    /// A script that returns whether the figure of a file is drawn; the first argument is the name of the
    /// file.
    is_drawn: &'static str,
    /// The keys that zoom with the wheel: 2 is Ctrl.
    zoom_keys: u32,
}

const OURS: Viewer = Viewer {
    name: "Blockyard",
    field: "[data-testid=file]",
    figure: "[data-testid=lifetimes]",
    // Before a file is open, the workbench shows such a figure of its own workload.
    is_drawn: "document.querySelector('[data-testid=document-title]')?.textContent.includes(arguments[0]) && \
        /active at once/.test(document.querySelector('[data-testid=lifetimes]')?.getAttribute('aria-label') ?? '')",
    zoom_keys: 2,
};

const THEIRS: Viewer = Viewer {
    name: "MemoryViz.js",
    field: "#file",
    figure: "svg",
    is_drawn: "document.querySelectorAll('svg polygon, svg path, svg rect').length > 100",
    zoom_keys: 0,
};

/// The measurements of a page with a file.
struct PageMeasurement {
    seconds: f64,
    peak_bytes: f64,
    /// Milliseconds of the page's thread a move, and the 95th percentile of the time between frames.
    pan: [f64; 2],
}

/// Seconds until the figure of all allocations is drawn, in both pages; memory and the cost of a pan as
/// notes.
///
/// # Errors
///
/// If Chromium is missing or our own page fails.
pub(super) fn memory_viz(context: &BenchContext) -> Result<Section> {
    let contenders = [OURS.name, THEIRS.name];
    let mut section = Section::new("memory-viz", "Snapshots in a tab, beside MemoryViz.js", "s", contenders);
    let Some(recorded) = recorded() else {
        section.notes.push("not measured: BLOCKYARD_SNAPSHOT names no snapshot to open, unpacked".to_owned());
        return Ok(section);
    };
    let folder = context.target.join("bench/memory-viz");
    fs::create_dir_all(&folder)?;
    let mut is_theirs_measured = match set_up(context, &folder) {
        Ok(()) => true,
        Err(why) => {
            section.notes.push(format!("MemoryViz.js: not measured: {why:#}"));
            false
        }
    };
    // The browser may use all cores.
    pin(&context.cores)?;
    for (title, least) in SIZES {
        let file = if least == 0 { recorded.clone() } else { longer(&recorded, least, &folder)? };
        let mut values: [Vec<f64>; 2] = Default::default();
        for _ in 0..context.rounds.min(3) {
            let page = Page::blank(window(), GpuChoice::None)?;
            page.goto("/#workbench")?;
            let ours = shown(&OURS, &page, &file).with_context(|| format!("{title}: our page"))?;
            drop(page);
            section.notes.push(words(OURS.name, title, &ours));
            values[0].push(ours.seconds);
            if is_theirs_measured {
                let page = Page::of(&folder, window(), GpuChoice::None)?;
                match page.goto("/").and_then(|()| shown(&THEIRS, &page, &file)) {
                    Ok(theirs) => {
                        section.notes.push(words(THEIRS.name, title, &theirs));
                        values[1].push(theirs.seconds);
                    }
                    Err(why) => {
                        is_theirs_measured = false;
                        section.notes.push(format!("MemoryViz.js, {title}: does not open: {why:#}"));
                    }
                }
            }
        }
        let bytes = usize::try_from(fs::metadata(&file)?.len()).unwrap_or(usize::MAX);
        let row = ReportRow::new(title, bytes, &values);
        // A file that their page does not open has no ratio, and does not count in the mean.
        let is_compared = values.iter().all(|values| !values.is_empty());
        let row = if is_compared { row.with_ratio(Measurement::ratio(&values[1], &values[0])) } else { row };
        section.rows.push(row);
        if least > 0 {
            fs::remove_file(&file)?;
        }
    }
    Ok(section)
}

fn window() -> Window {
    Window { width: 1920, height: 1080 }
}

fn words(name: &str, title: &str, shown: &PageMeasurement) -> String {
    let PageMeasurement { seconds, peak_bytes, pan: [thread, between] } = shown;
    format!(
        "{name}, {title}: {seconds:.1} s; peak memory of the page's process {:.2} GB; a move of a pan {thread:.1} ms of the page's \
         thread, 95th percentile between frames {between:.0} ms",
        peak_bytes / 1e9
    )
}

/// Makes a page with `MemoryViz.js`: the file that the user names, d3 from npm, and an HTML page of ours
/// around them.
fn set_up(context: &BenchContext, folder: &Path) -> Result<()> {
    let Some(given) = &context.memory_viz else {
        bail!("--memory-viz DIR names the folder of MemoryViz.js (torch/utils/viz of PyTorch's sources)");
    };
    let script = given.join("MemoryViz.js");
    let text = fs::read_to_string(&script).with_context(|| script.display().to_string())?;
    ensure!(text.contains(IMPORT[0]), "{} does not import d3 as it did in 2026", script.display());
    fs::write(folder.join("MemoryViz.js"), text.replacen(IMPORT[0], IMPORT[1], 1))?;
    fs::copy(d3(given, folder)?, folder.join("d3.min.js"))?;
    fs::write(folder.join("d3.js"), D3)?;
    fs::write(folder.join("index.html"), include_str!("memory_viz.html"))?;
    Ok(())
}

/// d3 beside `MemoryViz.js`, or else from npm.
fn d3(given: &Path, folder: &Path) -> Result<PathBuf> {
    let beside = given.join("d3.min.js");
    if beside.is_file() {
        return Ok(beside);
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(folder).arg("d3@5");
    let output = npm.output().context("there is neither d3.min.js beside MemoryViz.js nor npm")?;
    ensure!(output.status.success(), "npm: {}", String::from_utf8_lossy(&output.stderr));
    Ok(folder.join("node_modules/d3/dist/d3.min.js"))
}

fn shown(viewer: &Viewer, page: &Page, file: &Path) -> Result<PageMeasurement> {
    page.wait_for("body")?;
    // Wait for the parts that both pages fetch once they rest.
    sleep(Duration::from_secs(4));
    let begun = Instant::now();
    page.upload(viewer.field, file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    while page.execute(&format!("return {}", viewer.is_drawn), &[json!(name)])? != Value::Bool(true) {
        ensure!(begun.elapsed() < PATIENCE, "no figure after {} s", PATIENCE.as_secs());
        sleep(Duration::from_millis(50));
    }
    // Layout and paint belong to the figure.
    let painted = "return await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))";
    page.execute_async(painted, &[])?;
    let seconds = begun.elapsed().as_secs_f64();
    sleep(Duration::from_secs(3));
    let pan = pan(viewer, page)?;
    Ok(PageMeasurement { seconds, peak_bytes: peak_bytes()?, pan })
}

/// Zooms in, then drags the figure to and fro.
fn pan(viewer: &Viewer, page: &Page) -> Result<[f64; 2]> {
    let ElementRect { x, y, width, height, .. } = page.rect(viewer.figure)?;
    let (x, y) = (x + width / 2.0, y + height / 2.0);
    let mouse = |kind: &str, at: f64, keys: u32, wheel: i32| {
        let event = json!({
            "type": kind, "x": at, "y": y, "button": if kind == "mouseWheel" { "none" } else { "left" },
            "buttons": 1, "clickCount": 1, "modifiers": keys, "deltaX": 0, "deltaY": wheel,
        });
        page.devtools("Input.dispatchMouseEvent", &event).map(drop)
    };
    for _ in 0..6 {
        mouse("mouseWheel", x, viewer.zoom_keys, -120)?;
    }
    sleep(Duration::from_secs(2));
    page.execute(
        "window.times = []; const tick = (now) => { window.times.push(now); requestAnimationFrame(tick) }; \
         requestAnimationFrame(tick)",
        &[],
    )?;
    let before = page.main_thread_seconds()?;
    mouse("mousePressed", x, 0, 0)?;
    for step in 0..MOVES {
        mouse("mouseMoved", x + 200.0 * (f64::from(step) / 8.0).sin(), 0, 0)?;
        sleep(Duration::from_millis(16));
    }
    mouse("mouseReleased", x, 0, 0)?;
    let thread = (page.main_thread_seconds()? - before) * 1e3 / f64::from(MOVES);
    let between = page.execute(
        "const gaps = window.times.slice(1).map((time, place) => time - window.times[place]).sort((a, b) => a - b);
         return gaps[Math.floor(gaps.length * 0.95)] ?? 0",
        &[],
    )?;
    Ok([thread, between.as_f64().context("the time between frames")?])
}

/// The most memory that a page's process had, of the browsers that this program started.
fn peak_bytes() -> Result<f64> {
    let mut most = 0.0_f64;
    for process in fs::read_dir("/proc")?.filter_map(Result::ok) {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        if !String::from_utf8_lossy(&line).contains("--type=renderer") || !is_ours(&process.path()) {
            continue;
        }
        if let Some(kib) = status(&process.path(), "VmHWM:") {
            most = most.max(kib * 1024.0);
        }
    }
    Ok(most)
}

/// Whether the process descends from this one.
fn is_ours(process: &Path) -> bool {
    let own = f64::from(std::process::id());
    let mut parent = status(process, "PPid:");
    for _ in 0..16 {
        match parent {
            Some(id) if (id - own).abs() < 0.5 => return true,
            Some(id) if id > 1.0 => parent = status(&PathBuf::from(format!("/proc/{id:.0}")), "PPid:"),
            _ => return false,
        }
    }
    false
}

/// The number of a line of the process's status.
fn status(process: &Path, name: &str) -> Option<f64> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
