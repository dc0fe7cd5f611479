//! Every text in its box: nothing is cut off, nothing lies over anything else, at any size, light and dark.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, drive_at};
use serde_json::json;

/// Widths and heights in CSS pixels; the last is a laptop's screen at 200 percent.
const SIZES: [(u32, u32); 7] =
    [(360, 740), (768, 1024), (1024, 768), (1366, 768), (1920, 1080), (3840, 2160), (683, 384)];

const PLACES: [&str; 12] = [
    "#",
    "#lessons",
    "#lesson=reserved&card=2",
    "#glossary",
    "#teachers",
    "#quiz",
    "#handout=reserved",
    "#preset=terms&step=6",
    "#preset=fragmentation&step=34",
    "#lesson=oom-message&card=4",
    "#preset=fragmentation&lab=what-if",
    "#python",
];

/// The width of a sheet of A4 and of letter paper in CSS pixels, less a margin.
const PAPER: [u32; 2] = [718, 740];

/// The texts that are cut by their box, reach out of the window, or lie over another text of the same layer.
const CLASHES: &str = r"
    const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    // Boxes that scroll show all of their text in the end.
    const scrolls = (element) => {
        for (let at = element; at && at !== document.body; at = at.parentElement) {
            const { overflowX, overflowY } = getComputedStyle(at);
            if (/auto|scroll/.test(overflowX + overflowY)) return true;
        }
        return false;
    };
    const sticks = (element) => {
        for (let at = element; at && at !== document.body; at = at.parentElement) {
            if (/sticky|fixed/.test(getComputedStyle(at).position)) return true;
        }
        return false;
    };
    // Not looked at: line numbers (`.numbers`), which scroll with the text beside them and are cut where the editor ends.
    const found = [];
    const name = (element) => `${element.tagName.toLowerCase()}.${element.className} '${element.textContent.trim().slice(0, 30)}'`;
    const boxes = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!node.textContent.trim() || !shown(element) || element.closest('.visually-hidden, .skip, option, noscript, style, .error-overlay, .tooltip, .numbers')) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const inside = scrolls(element);
        for (const rect of range.getClientRects()) {
            if (rect.width < 1 || rect.height < 1) continue;
            if (!inside && (rect.right > innerWidth + 1 || rect.left < -1)) found.push(`out of the window: ${name(element)}`);
            const head = element.closest('.top')?.getBoundingClientRect();
            if (head && (rect.bottom > head.bottom + 1 || rect.top < head.top - 1)) found.push(`out of the page's head: ${name(element)}`);
            const holder = element.closest('button, select, p, li, h1, h2, h3, td, th, dt, dd, label, a, code, section, div');
            const box = holder.getBoundingClientRect();
            const style = getComputedStyle(holder);
            const cuts = /hidden|clip/.test(style.overflowX + style.overflowY);
            if ((cuts || holder.tagName === 'BUTTON') && !inside && (rect.right > box.right + 1 || rect.bottom > box.bottom + 2)) found.push(`cut off: ${name(element)}`);
            if (!inside && !sticks(element)) boxes.push([rect, element]);
        }
    }
    for (let index = 0; index < boxes.length; index += 1) {
        for (let other = index + 1; other < boxes.length; other += 1) {
            const [one, of] = boxes[index];
            const [two, its] = boxes[other];
            const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
            const along = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
            // Lines of one text may touch with their ascenders.
            if (across > 1.5 && along > 4 && !of.contains(its) && !its.contains(of)) found.push(`${name(of)} lies over ${name(its)}`);
        }
    }
    if (document.documentElement.scrollWidth > innerWidth + 1) found.push(`the page is ${document.documentElement.scrollWidth - innerWidth} px too wide`);
    return [...new Set(found)].slice(0, 8);";

fn clashes(page: &Page) -> Result<Vec<String>> {
    Ok(serde_json::from_value(page.execute(CLASHES, &[])?)?)
}

#[test]
fn no_text_is_cut_off_or_covered_at_any_size() -> Result<()> {
    drive_at("/#lessons", Window { width: 1366, height: 768 }, GpuChoice::None, |page| {
        page.reduced_motion(true)?;
        let mut found = Vec::new();
        let mut measured = 0;
        for place in PLACES {
            page.execute("location.hash = arguments[0]", &[json!(place)])?;
            page.wait_until("document.querySelector('main') !== null")?;
            for (width, height) in SIZES {
                page.devtools(
                    "Emulation.setDeviceMetricsOverride",
                    &json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
                )?;
                for is_dark in [false, true] {
                    // Colors move nothing, so one size in the dark is enough to prove that.
                    if is_dark && width != 1366 {
                        continue;
                    }
                    page.dark(is_dark)?;
                    // Two frames: figures take on the size of their box in the one after.
                    page.execute_async(
                        "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
                        &[],
                    )?;
                    measured += 1;
                    found.extend(
                        clashes(page)?.into_iter().map(|text| format!("{place} {width}x{height}: {text}")),
                    );
                }
            }
        }
        ensure!(measured == PLACES.len() * (SIZES.len() + 1), "only {measured} were measured");
        ensure!(found.is_empty(), "{}", found.join("\n"));
        Ok(())
    })
}

#[test]
fn no_text_is_cut_off_or_covered_on_paper() -> Result<()> {
    drive_at("/#lessons", Window { width: 1366, height: 768 }, GpuChoice::None, |page| {
        page.reduced_motion(true)?;
        let mut found = Vec::new();
        for place in PLACES {
            page.execute("location.hash = arguments[0]", &[json!(place)])?;
            page.wait_until("document.querySelector('main') !== null")?;
            for width in PAPER {
                page.devtools(
                    "Emulation.setDeviceMetricsOverride",
                    &json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false }),
                )?;
                page.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }))?;
                page.execute_async(
                    "dispatchEvent(new Event('beforeprint'));
                    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
                    &[],
                )?;
                found.extend(clashes(page)?.into_iter().map(|text| format!("{place} {width}: {text}")));
                let script = "return [...document.querySelectorAll('canvas')]
                    .filter((canvas) => canvas.checkVisibility() && canvas.width > 1)
                    .map((canvas) => (canvas.clientWidth / canvas.clientHeight) / (canvas.width / canvas.height))";
                let ratios: Vec<f64> = serde_json::from_value(page.execute(script, &[])?)?;
                let is_stretched = |ratio: &f64| !(0.97..1.03).contains(ratio);
                if ratios.iter().any(is_stretched) {
                    found.push(format!("{place} {width}: figures are stretched by {ratios:?}"));
                }
                page.execute("dispatchEvent(new Event('afterprint'))", &[])?;
                page.devtools("Emulation.setEmulatedMedia", &json!({ "media": "" }))?;
            }
        }
        ensure!(found.is_empty(), "{}", found.join("\n"));
        Ok(())
    })
}

#[test]
fn the_measure_itself_finds_what_is_wrong() -> Result<()> {
    drive_at("/#lessons", Window { width: 1366, height: 768 }, GpuChoice::None, |page| {
        page.wait_for("main")?;
        let script = "document.querySelector('main').insertAdjacentHTML('beforeend',
            '<div style=\"position: relative; height: 20px\"><p style=\"position: absolute\">one text</p><p style=\"position: absolute\">another</p></div>')";
        page.execute(script, &[])?;
        let found = clashes(page)?;
        ensure!(found.iter().any(|text| text.contains("lies over")), "{found:?}");
        Ok(())
    })
}
