//! Every text in its box: nothing is cut off, nothing lies over anything else, at any size, light and dark.

use anyhow::{Result, ensure};
use blockyard_e2e::{Fonts, GpuChoice, Page, Window, drive_at, drive_with_fonts, repository_file};
use blockyard_figure::{Weight, text_width_px};
use serde_json::json;

use crate::id;

/// Widths and heights in CSS pixels; the last is a laptop's screen at 200 percent.
const SIZES: [(u32, u32); 7] =
    [(360, 740), (768, 1024), (1024, 768), (1366, 768), (1920, 1080), (3840, 2160), (683, 384)];

const PLACES: [&str; 15] = [
    "#",
    "#lessons",
    "#lesson=reserved&card=2",
    "#glossary",
    "#teachers",
    "#teachers=present",
    "#teachers=hand-out",
    "#teachers=host",
    "#practice",
    "#handout=reserved",
    "#preset=terms&step=6",
    "#preset=fragmentation&step=34",
    "#lesson=what-to-change&card=4",
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

const LAPTOP: Window = Window { width: 1366, height: 768 };

#[test]
fn no_text_is_cut_off_or_covered_at_any_size() -> Result<()> {
    at_any_size(Fonts::System)
}

#[test]
fn no_text_is_cut_off_or_covered_at_any_size_whatever_fonts_the_machine_has() -> Result<()> {
    at_any_size(Fonts::OneThatNobodyChose)
}

#[test]
fn no_text_is_cut_off_or_covered_on_paper() -> Result<()> {
    on_paper(Fonts::System)
}

#[test]
fn no_text_is_cut_off_or_covered_on_paper_whatever_fonts_the_machine_has() -> Result<()> {
    on_paper(Fonts::OneThatNobodyChose)
}

/// In headings, in code and on canvases: each letter is as wide as the figures' layout assumes, so it comes
/// from the page's typeface.
#[test]
fn the_page_draws_its_texts_in_the_typeface_that_figures_are_measured_for() -> Result<()> {
    const TEXTS: [&str; 4] =
        ["allocated 0123456789 MiB", "AVATAR To fi ffl", "größer ≤ 2 × 20 MiB → … ✓", "reserved − “free”"];
    drive_with_fonts("/#lessons", LAPTOP, GpuChoice::None, Fonts::OneThatNobodyChose, |page| {
        page.wait_for("main")?;
        let script = "
            const context = document.createElement('canvas').getContext('2d');
            context.textRendering = 'geometricPrecision';
            const family = getComputedStyle(document.querySelector('h1, h2')).fontFamily;
            return [400, 600].map((weight) => arguments[0].map((text) => {
                context.font = `${weight} 100px ${family}`;
                return context.measureText(text).width;
            }));";
        let drawn: [Vec<f32>; 2] = serde_json::from_value(page.execute(script, &[json!(TEXTS)])?)?;
        for (weight, widths) in [Weight::Normal, Weight::Bold].into_iter().zip(drawn) {
            for (text, width) in TEXTS.into_iter().zip(widths) {
                let wanted = text_width_px(text, 100.0, weight);
                ensure!((width - wanted).abs() < 0.1, "{text:?} {weight:?}: {width} px, not {wanted}");
            }
        }
        // In code, digits and letters have one width, which is that of the monospaced typeface.
        let script = "
            const context = document.createElement('canvas').getContext('2d');
            context.font = `100px ${getComputedStyle(document.documentElement).getPropertyValue('--mono')}`;
            return ['i', 'W', '0'].map((letter) => context.measureText(letter).width);";
        let mono: Vec<f32> = serde_json::from_value(page.execute(script, &[])?)?;
        ensure!(mono.iter().all(|width| (width - 60.0).abs() < 0.1), "{mono:?}");
        Ok(())
    })
}

/// A figure that was saved as a file holds no font: where a machine has only wide fonts, each text keeps the
/// width of the layout.
#[test]
fn a_saved_figure_keeps_the_widths_of_its_texts_whatever_fonts_the_machine_has() -> Result<()> {
    let page = Page::with_fonts(LAPTOP, GpuChoice::None, Fonts::OneThatNobodyChose)?;
    for name in ["map-story", "stage-story", "stage-failed", "timeline-story"] {
        page.goto_file(&repository_file(&format!("crates/show/figure/tests/figure/{name}.svg"))?)?;
        let script = "
            const texts = [...document.querySelectorAll('text[textLength]')];
            return texts.map((text) => [text.getBBox().width, Number(text.getAttribute('textLength'))]);";
        let widths: Vec<[f64; 2]> = serde_json::from_value(page.execute(script, &[])?)?;
        ensure!(widths.len() > 5, "{name} has {} texts", widths.len());
        let wrong = widths.iter().find(|[drawn, wanted]| (drawn - wanted).abs() > 0.5);
        ensure!(wrong.is_none(), "{name}: {wrong:?}");
    }
    Ok(())
}

/// The content of a panel that scrolls is never wider than the panel, and no button and no line to copy hides
/// a part of its text.
#[test]
fn advice_and_lines_to_copy_are_whole_in_their_panel() -> Result<()> {
    drive_at("/#workbench", LAPTOP, GpuChoice::None, |page| {
        page.upload(
            &id("file"),
            &repository_file("tests/fixtures/snapshots/checkerboard_default_100.pickle.gz")?,
        )?;
        page.wait_for(&id("verdict-line"))?;
        page.wait_for(&id("try-change-0"))?;
        for width in [390, 1024, 1366, 1920] {
            page.devtools(
                "Emulation.setDeviceMetricsOverride",
                &json!({ "width": width, "height": 768, "deviceScaleFactor": 1, "mobile": false }),
            )?;
            let script = "
                const panel = document.querySelector(arguments[0]).closest('.lab');
                // In one column the panel has no box of its own.
                const right = (panel.getBoundingClientRect().right || innerWidth) + 1;
                const cut = (element) => element.matches('textarea, button')
                    && (element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 2);
                return [...panel.querySelectorAll('*')]
                    .filter((element) => element.checkVisibility() && (element.getBoundingClientRect().right > right || cut(element)))
                    .map((element) => `${element.tagName}.${element.className} ${(element.value || element.textContent).slice(0, 60)}`);";
            let found: Vec<String> =
                serde_json::from_value(page.execute(script, &[json!(id("verdict-line"))])?)?;
            ensure!(found.is_empty(), "{width}: {found:?}");
        }
        Ok(())
    })
}

fn at_any_size(fonts: Fonts) -> Result<()> {
    drive_with_fonts("/#lessons", LAPTOP, GpuChoice::None, fonts, |page| {
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
                    // The test waits for two frames, since figures take on the size of their box one frame
                    // later.
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

fn on_paper(fonts: Fonts) -> Result<()> {
    drive_with_fonts("/#lessons", LAPTOP, GpuChoice::None, fonts, |page| {
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
    drive_at("/#lessons", LAPTOP, GpuChoice::None, |page| {
        page.wait_for("main")?;
        let script = "document.querySelector('main').insertAdjacentHTML('beforeend',
            '<div style=\"position: relative; height: 20px\"><p style=\"position: absolute\">one text</p><p style=\"position: absolute\">another</p></div>')";
        page.execute(script, &[])?;
        let found = clashes(page)?;
        ensure!(found.iter().any(|text| text.contains("lies over")), "{found:?}");
        Ok(())
    })
}
