//! The page with a file open: how much of it can be clicked, and where the result of a click is.

use std::fs::File;

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, drive_at};
use blockyard_pytorch::snapshot::{DeviceTrace, read};
use serde_json::json;

use crate::{choose, fixture, id, scroll_and_click, snapshot};

const LAPTOP: Window = Window { width: 1366, height: 768 };
const PHONE: Window = Window { width: 390, height: 844 };

/// The most that a reader has to choose from.
pub(crate) const MAX_CONTROLS: usize = 35;

/// Opens a file and waits for its verdict.
fn open(page: &Page, file: &std::path::Path) -> Result<()> {
    page.upload(&id("file"), file)?;
    page.wait_for(&id("verdict-headline"))?;
    page.wait_for(&id("headline"))?;
    page.wait_gone(&id("lab-work"))
}

/// Presses "Copy summary". The browser of the tests has no clipboard, so `copied` of the page has the texts.
fn press_copy_summary(page: &Page) -> Result<()> {
    let watch = "window.copied = [];
        Object.defineProperty(navigator, 'clipboard', {
            value: { writeText: (text) => { copied.push(text); return Promise.resolve(); } },
        });";
    page.execute(watch, &[])?;
    scroll_and_click(page, "copy-summary")
}

/// Gives the page the size of the window: a window is at least 500 pixels wide, a phone is not.
fn resize(page: &Page, window: Window) -> Result<()> {
    let size =
        json!({ "width": window.width, "height": window.height, "deviceScaleFactor": 1, "mobile": false });
    page.devtools("Emulation.setDeviceMetricsOverride", &size).map(drop)
}

/// The names of all controls that are displayed, whether or not they are scrolled out of sight. The link that
/// skips the head of the page is above the page until it has the focus.
pub(crate) fn controls(page: &Page) -> Result<Vec<String>> {
    let script = "
        const kinds = 'a[href], button, input, select, textarea, summary, [role=slider], [role=separator]';
        return [...document.querySelectorAll(kinds)]
            .filter((element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
            .filter((element) => element.getBoundingClientRect().bottom + scrollY > 0)
            .map((element) => element.dataset.testid ?? element.textContent.trim());";
    Ok(serde_json::from_value(page.execute(script, &[])?)?)
}

/// The workbench leaves the page while parts of it still wait for their first moment.
#[test]
fn a_reader_goes_home_from_a_file_and_opens_another() -> Result<()> {
    drive_at("/", LAPTOP, GpuChoice::None, |page| {
        for name in ["loss_history_100", "side_stream_cache_90", "many_small_80"] {
            page.wait_for(".doors")?;
            page.upload(&id("door-file"), &snapshot(&format!("oom/{name}")))?;
            page.wait_text(&id("document-title"), name)?;
            page.wait_for(&id("verdict-headline"))?;
            page.wait_gone(&id("lab-work"))?;
            page.click(&id("home"))?;
        }
        page.wait_for(".doors")?;
        ensure!(page.count(".crash")? == 0, "the page stopped working");
        Ok(())
    })
}

#[test]
fn an_opened_file_has_few_controls() -> Result<()> {
    for (what, file) in [
        ("a snapshot that failed", snapshot("oom/loss_history_100")),
        ("a snapshot without room", snapshot("snapshots/checkerboard_default_100")),
        ("a snapshot that fits", snapshot("snapshots/resnet50_amp")),
        ("a recording", fixture("programs/gnn_random")),
    ] {
        drive_at("/#workbench", LAPTOP, GpuChoice::None, |page| {
            resize(page, LAPTOP)?;
            open(page, &file)?;
            let found = controls(page)?;
            println!("{what}: {} controls: {}", found.len(), found.join(", "));
            ensure!(found.len() <= MAX_CONTROLS, "{what}: {} controls: {found:?}", found.len());
            page.check_accessible()
        })?;
    }
    Ok(())
}

/// On a phone the button that opens a file may be far below the answer.
#[test]
fn a_phone_opens_a_file_at_the_top() -> Result<()> {
    drive_at("/#workbench", PHONE, GpuChoice::None, |page| {
        resize(page, PHONE)?;
        page.wait_for(&id("map"))?;
        page.execute("scrollTo(0, 100000)", &[])?;
        page.wait_until("scrollY > 500")?;
        open(page, &snapshot("oom/loss_history_100"))?;
        page.wait_until("scrollY === 0")?;
        let foot = page.rect(&id("verdict-headline"))?;
        ensure!(foot.y + foot.height < f64::from(PHONE.height), "the verdict is at {foot:?}");
        Ok(())
    })
}

/// Waits until the middle of the element is seen, and not scrolled away or covered.
fn wait_seen(page: &Page, css: &str) -> Result<()> {
    page.wait_for(css)?;
    page.wait_until(&format!(
        "(element => {{
            const box = element.getBoundingClientRect();
            const y = Math.min(box.top + box.height / 2, box.top + 100);
            const seen = document.elementFromPoint(box.left + box.width / 2, y);
            return seen !== null && element.contains(seen);
        }})(document.querySelector({}))",
        json!(css)
    ))
    .map(drop)
}

#[test]
fn the_result_of_a_click_is_in_sight() -> Result<()> {
    for (window, second_block_px) in [(LAPTOP, 260.0), (PHONE, 144.0)] {
        drive_at("/#workbench", window, GpuChoice::None, |page| {
            resize(page, window)?;
            open(page, &snapshot("snapshots/checkerboard_default_100"))?;
            // A fix: the run with it is drawn.
            for fix in ["try-change-0", "try-change-1"] {
                scroll_and_click(page, fix)?;
                wait_seen(page, &format!(".run-verdict {}", id("lab-timelines")))?;
                let drawn = page.rect(&format!(".run-verdict {}", id("lab-timelines")))?;
                ensure!(drawn.height >= 200.0, "{drawn:?}");
            }
            // A line of a table: its own code is named, and the frames of libraries are folded.
            scroll_and_click(page, "verdict-holder")?;
            wait_seen(page, &id("picked"))?;
            page.click(&id("unpick"))?;
            page.wait_gone(&id("picked"))?;
            scroll_and_click(page, "tab-holders")?;
            page.wait_for(".holder-table .holder")?;
            let script =
                "document.querySelector('.holder-table .holder').scrollIntoView({ block: 'center' })";
            page.execute(script, &[])?;
            page.click(".holder-table .holder")?;
            wait_seen(page, &format!("{} .own-lines", id("picked")))?;
            page.wait_text(&format!("{} .own-lines", id("picked")), "train.py:12")?;
            ensure!(page.count(&format!("{} details[open]", id("picked")))? == 0, "libraries are unfolded");
            page.click(&id("unpick"))?;
            // A block: the second one of the first row is allocated.
            let script = "document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })";
            page.execute(script, &[json!(id("map"))])?;
            page.click_at(&id("map"), second_block_px, 37.0)?;
            wait_seen(page, &format!("{} .own-lines", id("block")))
        })?;
    }
    Ok(())
}

/// A choice in a table scrolls the figure that shows it into sight, and the figure shows allocations again.
#[test]
fn a_line_that_is_chosen_brings_memory_over_time_into_sight() -> Result<()> {
    drive_at("/#workbench", LAPTOP, GpuChoice::None, |page| {
        resize(page, LAPTOP)?;
        open(page, &snapshot("snapshots/checkerboard_default_100"))?;
        page.wait_gone(&id("timeline"))?;
        page.click(&id("by-state"))?;
        page.wait_for(&id("timeline"))?;
        page.wait_gone(&id("lifetimes"))?;
        page.click("#tab-holders")?;
        page.wait_for(".holder-table .holder")?;
        page.execute("document.querySelector('.map').scrollIntoView({ block: 'end' })", &[])?;
        page.click(".holder-table .holder")?;
        wait_seen(page, &id("lifetimes"))?;
        page.wait_gone(&id("timeline"))
    })
}

/// The legend, the answer and the table have one color for a line, and one for what has no line.
#[test]
fn a_line_has_one_color_on_the_page() -> Result<()> {
    drive_at("/#sample=kept_losses", LAPTOP, GpuChoice::None, |page| {
        let colors = |css: &str| -> Result<serde_json::Map<String, serde_json::Value>> {
            page.wait_for(&format!("{css} .swatch"))?;
            let script = "
                const line = (text) => /no stack|own code|no line/.test(text) ? 'none' : text.match(/:[0-9]+/)?.[0];
                return Object.fromEntries([...document.querySelectorAll(arguments[0])]
                    .filter((row) => row.querySelector('.swatch') && line(row.textContent))
                    .map((row) => [line(row.textContent),
                        getComputedStyle(row.querySelector('.swatch')).backgroundColor]));";
            let found = page.execute(script, &[json!(css)])?;
            Ok(found.as_object().cloned().unwrap_or_default())
        };
        // The answer says which line is blamed, which has the first color.
        let answer = colors(&format!("{} tr", id("verdict-held")))?;
        page.wait_for(&format!("{} .is-blamed", id("legend")))?;
        let legend = colors(&format!("{} .entry", id("legend")))?;
        page.click("#tab-holders")?;
        page.wait_text(&id("holders-summary"), "after request 1,115")?;
        let table = colors(".holder-table .holder")?;
        ensure!(legend.len() == 5 && legend.contains_key("none"), "{legend:?}");
        for (line, color) in legend {
            ensure!(answer.get(&line) == Some(&color), "the answer has {line} as {:?}", answer.get(&line));
            ensure!(table.get(&line) == Some(&color), "the table has {line} as {:?}", table.get(&line));
        }
        Ok(())
    })
}

/// Each sample with the first sentence that a reader sees.
const SAMPLES: [(&str, &str); 4] = [
    ("growing_sizes", "Out of memory at read_text growing_sizes.py:18"),
    ("kept_losses", "Out of memory by a leak at train_step kept_losses.py:14"),
    ("activations", "Out of memory at forward activations.py:23"),
    ("ranks", "Out of memory at train_step ranks.py:22"),
];

#[test]
fn each_sample_opens_on_a_verdict_that_names_its_own_line() -> Result<()> {
    for (name, sentence) in SAMPLES {
        drive_at("/", LAPTOP, GpuChoice::None, |page| {
            resize(page, LAPTOP)?;
            page.click(&id(&format!("door-{name}")))?;
            page.wait_text(&id("verdict-headline"), sentence)?;
            wait_seen(page, &id("verdict-headline"))?;
            page.wait_gone(&id("lab-work"))?;
            let found = controls(page)?;
            ensure!(found.len() <= MAX_CONTROLS, "{name}: {} controls: {found:?}", found.len());
            ensure!(page.text(&id("verdict-fit"))?.starts_with(&format!("blockyard fit {name}.py --vary")));
            page.wait_until(&format!("location.hash.startsWith('#sample={name}')"))?;
            page.check_accessible()
        })?;
    }
    Ok(())
}

/// A snapshot of two devices: the first went out of memory, the second has no trace.
fn two_devices() -> Result<Vec<u8>> {
    let file = File::open(snapshot("oom/loss_history_100"))?;
    let mut file = read(file, &mut |_| std::ops::ControlFlow::Continue(()))?;
    let mut second = file.devices.first().cloned().context("a device")?;
    second.index = 1;
    second.trace = DeviceTrace::default();
    second.segments.iter_mut().for_each(|segment| segment.device = 1);
    file.devices.push(second);
    let mut bytes = Vec::new();
    file.write_pickle(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn the_whole_page_is_about_one_device() -> Result<()> {
    let bytes = two_devices()?;
    drive_at("/#workbench", LAPTOP, GpuChoice::None, |page| {
        page.drop_file("body", "two.pickle", &bytes)?;
        page.wait_text(&id("verdict-headline"), "ut of memory")?;
        page.wait_gone(&id("lab-work"))?;
        ensure!(page.value(&id("device"))? == "0", "the device that failed is not shown");
        page.wait_until("location.hash.includes('device=0')")?;
        choose(page, "device", "1")?;
        page.wait_until("location.hash.includes('device=1')")?;
        page.wait_until(
            "!document.querySelector('[data-testid=verdict-headline]')?.textContent.includes('ut of memory')",
        )?;
        page.wait_gone(&id("lab-work"))?;
        press_copy_summary(page)?;
        page.wait_until("copied.length > 0 && copied[0].includes('cuda:1')")?;
        page.check_accessible()?;
        // Another file is about its own device.
        open(page, &snapshot("oom/loss_history_100"))?;
        page.wait_text(&id("verdict-headline"), "ut of memory")?;
        page.wait_gone(&id("lab-error"))?;
        ensure!(page.count(&id("device"))? == 0, "one device has a choice");
        page.wait_until("!location.hash.includes('device=')").map(drop)
    })
}

#[test]
fn the_summary_is_copied_as_plain_text() -> Result<()> {
    drive_at("/#sample=growing_sizes", LAPTOP, GpuChoice::None, |page| {
        page.wait_for(&id("verdict-headline"))?;
        page.wait_gone(&id("lab-work"))?;
        press_copy_summary(page)?;
        page.wait_text(&id("message"), "The summary is copied.")?;
        let text = page.execute("return copied[0]", &[])?;
        let text = text.as_str().unwrap_or_default();
        for line in [
            "Out of memory with memory free: out of memory at `read_text growing_sizes.py:18`",
            "What helps:\n- with expandable_segments:True the request passes",
            "What held the memory at the failure:\n- 1.44 GiB in 49 blocks: read_text growing_sizes.py:18",
        ] {
            ensure!(text.contains(line), "{line} is not in {text}");
        }
        // The dialog that shares has the same text.
        page.click(&id("share"))?;
        page.click(&id("share-summary"))?;
        page.wait_text(&id("report-words"), "The summary is copied.")?;
        ensure!(page.execute("return copied[1] === copied[0]", &[])? == json!(true), "another text");
        Ok(())
    })
}
