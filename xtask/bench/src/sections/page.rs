//! How long the page's thread is busy while a reader waits: with each move of the scrubber, and with each key
//! in a long text.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Page, Window};
use blockyard_measure::{ReportRow, Section};
use serde_json::Value;

use super::BenchContext;
use crate::cores::pin;

/// Moves the slider 240 times, back and forth, near and far, so that caches help little. Returns the
/// milliseconds of each frame.
const SCRUB: &str = "
    const slider = document.querySelector('[data-testid=scrub]');
    performance.clearMeasures('frame');
    for (let moves = 0; moves < 240; moves += 1) {
        slider.value = String(Math.round(Number(slider.max) * ((moves * 0.618034) % 1)));
        slider.dispatchEvent(new Event('input', { bubbles: true }));
        await new Promise(requestAnimationFrame);
    }
    return performance.getEntriesByName('frame').map((entry) => entry.duration);";

/// Keeps in `window.keys` the milliseconds from each key to the end of the frame after it.
const NOTE_KEYS: &str = "
    window.keys = [];
    document.addEventListener('keydown', () => {
        const begun = performance.now();
        requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => window.keys.push(performance.now() - begun);
            port2.postMessage(0);
        });
    }, true);";

/// Milliseconds of single frames and keys.
///
/// # Errors
///
/// If the page was not built, Chromium is missing, or the page fails.
pub(super) fn page(context: &BenchContext) -> Result<Section> {
    let mut section = Section::new("page", "The page's thread while a reader works", "ms", ["Blockyard"]);
    // The browser may use all cores.
    pin(&context.cores)?;
    let (mut frames, mut keys) = (Vec::new(), Vec::new());
    for _ in 0..context.rounds.min(3) {
        frames.extend(scrub()?);
        keys.extend(type_into_long_text()?);
    }
    for (what, mut times) in [("frame of the scrubber, GPT-2", frames), ("key in 100,000 lines", keys)] {
        ensure!(!times.is_empty(), "{what}: nothing was measured");
        times.sort_by(f64::total_cmp);
        let late = times.get((times.len() - 1) * 95 / 100).copied().unwrap_or_default();
        section.notes.push(format!("{what}: 95th percentile {late:.1} ms of {} times", times.len()));
        section.rows.push(ReportRow::new(what, 1, &[times]));
    }
    Ok(section)
}

fn workbench() -> Result<Page> {
    let page = Page::blank(Window::default(), GpuChoice::None)?;
    page.goto("/#workbench")?;
    Ok(page)
}

/// A recording of many events, below this package.
const GPT2: &str = "../../tests/fixtures/programs/gpt2_varlen.jsonl.gz";

fn scrub() -> Result<Vec<f64>> {
    let page = workbench()?;
    page.upload("[data-testid=file]", &Path::new(env!("CARGO_MANIFEST_DIR")).join(GPT2))?;
    page.wait_text("[data-testid=headline]", "identical")?;
    numbers(page.execute_async(SCRUB, &[])?)
}

fn type_into_long_text() -> Result<Vec<f64>> {
    let page = workbench()?;
    let lines: Vec<_> = (0..100_000).map(|index| format!("a{index} = alloc 512")).collect();
    page.drop_file("main", "long.txt", lines.join("\n").as_bytes())?;
    page.wait_text("[data-testid=verdict]", "100,000 steps")?;
    page.execute(NOTE_KEYS, &[])?;
    page.click_at(".editor .sheet", 120.0, 60.0)?;
    page.press(Key::End)?;
    page.press(" # a comment of forty letters, typed slowly")?;
    page.wait_until("window.keys.length >= 40")?;
    numbers(page.execute("return window.keys", &[])?)
}

fn numbers(value: Value) -> Result<Vec<f64>> {
    serde_json::from_value(value).context("numbers")
}
