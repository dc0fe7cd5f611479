//! A snapshot of 300 MB, made for the test: a real trace, repeated where its memory returns.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{PATIENCE_WITH_LARGE_FILES, drive, wait_for_answer};
use blockyard_measure::write_long;
use blockyard_pytorch::snapshot::read;

use crate::{fixture, id};

const BYTES: u64 = 300_000_000;

/// Writes a trace of at least [`BYTES`].
fn write_large(path: &Path) -> Result<()> {
    let short = fixture("x").with_file_name("snapshots").join("resnet50_amp.pickle.gz");
    let short = read(File::open(short)?, &mut |_| ControlFlow::Continue(()))?;
    let mut out = BufWriter::new(File::create(path)?);
    write_long(&short, &mut out, BYTES)?;
    Ok(out.flush()?)
}

/// Keeps each caption of the growing figure in `window.captions`.
const NOTE_CAPTIONS: &str = "
    window.captions = [];
    new MutationObserver(() => {
        const caption = document.querySelector('[data-testid=growing-timeline] figcaption')?.textContent ?? '';
        if (caption.includes('entries') && caption !== window.captions.at(-1)) window.captions.push(caption);
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
";

/// Presses Cancel as soon as the progress says that the file is read.
const CANCEL_WHILE_READING: &str = "
    window.isCancelled = false;
    const observer = new MutationObserver(() => {
        const progress = document.querySelector('[data-testid=progress]');
        if (!progress?.textContent.includes('reading')) return;
        observer.disconnect();
        document.querySelector('[data-testid=cancel]').click();
        window.isCancelled = true;
    });
    observer.observe(document.body, { childList: true, subtree: true, characterData: true });
";

/// `reading: 2,801,112 entries` as a number.
fn entries_read(caption: &str) -> Result<u64> {
    let (before, _) = caption.split_once(" entries").context("the caption has the entries")?;
    let digits = before.rsplit(' ').next().unwrap_or_default().replace(',', "");
    digits.parse().with_context(|| caption.to_owned())
}

#[test]
fn a_file_of_300_mb_opens_in_pieces_and_can_be_cancelled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (name, large) = ("large.pickle", folder.path().join("large.pickle"));
    write_large(&large)?;
    ensure!(std::fs::metadata(&large)?.len() >= BYTES);
    drive(|page| {
        let before = page.text(&id("document-title"))?;
        // The button is pressed by a script in the page, since a busy machine may read the whole file between
        // two commands of the driver.
        page.execute(CANCEL_WHILE_READING, &[])?;
        page.upload(&id("file"), &large)?;
        page.wait_until("window.isCancelled")?;
        page.wait_gone(&id("progress"))?;
        ensure!(page.text(&id("document-title"))? == before, "what was open is gone");
        // A script in the page notes the captions of the growing figure, since a busy machine may read the
        // whole file between two questions.
        page.execute(NOTE_CAPTIONS, &[])?;
        page.upload(&id("file"), &large)?;
        // A figure of the part that is read grows long before the file is open.
        page.wait_until("window.captions.length > 0")?;
        // Reading that many events takes longer than a test waits for one thing.
        wait_for_answer("the open file", PATIENCE_WITH_LARGE_FILES, || {
            Ok((page.text(&id("document-title"))? == name).then_some(()))
        })?;
        page.wait_gone(&id("growing-timeline"))?;
        let captions = page.execute("return window.captions", &[])?;
        let captions = captions.as_array().context("captions")?;
        let entries: Vec<u64> =
            captions.iter().filter_map(|caption| entries_read(caption.as_str()?).ok()).collect();
        ensure!(entries.len() >= 2, "the figure does not grow: {captions:?}");
        ensure!(entries.is_sorted(), "the figure shrinks: {entries:?}");
        // The page's memory has the recording, and nothing of the file.
        let heap = page.execute("return performance.memory.usedJSHeapSize", &[])?;
        ensure!(heap.as_f64().context("bytes")? < 100e6, "{heap} bytes in the page's heap");
        page.wait_for(&id("lifetimes"))
    })
}
