//! Sharing and printing: a file has a report in place of a link, and paper has the figures and the name.

use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blockyard_e2e::{Page, drive};
use flate2::read::ZlibDecoder;
use serde_json::{Value, json};

use crate::{choose, fixture, id};

const NAME: &str = "checkerboard_default_100.pickle.gz";

fn open_snapshot(page: &Page) -> Result<()> {
    page.upload(&id("file"), &fixture("x").with_file_name("snapshots").join(NAME))?;
    page.wait_text(&id("position"), "request 81 of 81")
}

fn is_visible(page: &Page, name: &str) -> Result<bool> {
    let script = "return document.querySelector(arguments[0])?.checkVisibility() ?? false";
    Ok(page.execute(script, &[json!(id(name))])? == json!(true))
}

/// The name and the text of the file that the browser would have saved last.
fn saved(page: &Page) -> Result<(String, String)> {
    let script = "return { name: saved.at(-1).name, text: await saved.at(-1).blob.text() }";
    let found = page.execute_async(script, &[])?;
    let part =
        |key: &str| found[key].as_str().map(str::to_owned).with_context(|| format!("no {key}: {found}"));
    Ok((part("name")?, part("text")?))
}

/// Keeps the files that the page saves, in place of saving them.
fn keep_what_is_saved(page: &Page) -> Result<()> {
    let script = "
        window.saved = [];
        const make = URL.createObjectURL, click = HTMLAnchorElement.prototype.click;
        URL.createObjectURL = (blob) => { window.last = blob; return make.call(URL, blob) };
        HTMLAnchorElement.prototype.click = function () {
            if (!this.download) return click.call(this);
            saved.push({ name: this.download, blob: window.last });
        };";
    page.execute(script, &[]).map(drop)
}

#[test]
fn a_file_of_the_readers_has_a_report_in_place_of_a_link() -> Result<()> {
    drive(|page| {
        open_snapshot(page)?;
        keep_what_is_saved(page)?;
        page.click(&id("share"))?;
        page.wait_text(&id("link-words"), "cannot hold your file")?;
        page.wait_text(&id("link-words"), NAME)?;
        for hidden in ["share-link", "copy-link", "share-embed", "copy-frame"] {
            ensure!(!is_visible(page, hidden)?, "{hidden} offers what a link cannot hold");
        }
        let link =
            page.execute("return document.querySelector(arguments[0]).value", &[json!(id("share-link"))])?;
        ensure!(!link.as_str().context("no link")?.contains('#'), "{link} opens something else");
        page.check_accessible()?;
        page.fill(&id("report-note"), "since <b>Monday</b>")?;
        page.click(&id("save-report"))?;
        page.wait_text(&id("report-words"), "The report is saved.")?;
        let (name, html) = saved(page)?;
        ensure!(name == "checkerboard-default-100-pickle-gz-report.html", "{name}");
        for part in [
            NAME,
            "Out of memory at <code>buf train.py:12</code>, called at <code>checkerboard_default train.py:17</code>: 480 MiB cached",
            "<svg",
            "placements identical",
            "since &lt;b&gt;Monday",
        ] {
            ensure!(html.contains(part), "the report has no {part}");
        }
        ensure!(!html.contains("<script") && html.len() < 1_000_000, "{} bytes", html.len());
        ensure!(html.contains(".py"), "the report has no line of the program");
        page.click(&id("report-redacted"))?;
        page.click(&id("save-report"))?;
        page.wait_until("saved.length === 2")?;
        let (name, html) = saved(page)?;
        ensure!(name == "report.html" && !html.contains("checkerboard") && !html.contains(".py"), "{name}");
        ensure!(html.contains("call site 1"), "no call site is left");
        Ok(())
    })
}

#[test]
fn the_report_of_the_page_is_that_of_the_command() -> Result<()> {
    drive(|page| {
        open_snapshot(page)?;
        keep_what_is_saved(page)?;
        page.click(&id("share"))?;
        page.click(&id("save-report"))?;
        page.wait_until("saved.length === 1")?;
        let (_, html) = saved(page)?;
        // The report is a separate page without the program: its figures are shown in the colors of the
        // reader's system.
        page.execute(
            "const frame = document.createElement('iframe');
            frame.srcdoc = arguments[0]; frame.id = 'report'; frame.style.cssText = 'width: 900px; height: 900px';
            document.body.append(frame);",
            &[json!(html)],
        )?;
        page.wait_until("document.getElementById('report').contentDocument?.querySelectorAll('figure .wide svg').length === 2")?;
        let wide = "return document.getElementById('report').contentDocument.documentElement.scrollWidth";
        ensure!(
            page.execute(wide, &[])?.as_f64().unwrap_or(f64::MAX) <= 900.0,
            "the report scrolls sideways"
        );
        Ok(())
    })
}

#[test]
fn what_a_link_can_hold_still_has_one() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "caching")?;
        page.click(&id("share"))?;
        ensure!(is_visible(page, "copy-link")? && is_visible(page, "copy-frame")?, "no link");
        ensure!(page.value(&id("share-link"))?.contains("#preset=caching"), "another link");
        page.click(&id("share-close"))?;
        choose(page, "sample", "growing_sizes")?;
        page.wait_text(&id("headline"), "identical")?;
        page.click(&id("share"))?;
        ensure!(page.value(&id("share-link"))?.contains("sample=growing_sizes"), "another link");
        keep_what_is_saved(page)?;
        page.click(&id("save-report"))?;
        page.wait_until("saved.length === 1")?;
        ensure!(saved(page)?.1.contains("Who holds the memory"), "no report of a sample");
        Ok(())
    })
}

#[test]
fn a_recording_is_printed_with_its_charts_and_its_name() -> Result<()> {
    drive(|page| {
        open_snapshot(page)?;
        page.wait_text(&id("headline"), "placements identical")?;
        // Runs after the page's own listener, when the page is as it is printed.
        page.execute(
            "addEventListener('beforeprint', () => {
                const sheet = document.querySelector('.paper');
                window.printed = {
                    text: sheet.querySelector('h1')?.textContent,
                    figures: [...sheet.querySelectorAll('svg')].map((svg) => svg.querySelectorAll('path, rect, text').length),
                };
            })",
            &[],
        )?;
        let print = || fills(&page.devtools("Page.printToPDF", &json!({ "printBackground": true }))?);
        let drawn = print()?;
        let printed = page.execute("return window.printed", &[])?;
        ensure!(printed["text"] == json!(NAME), "{printed}");
        let figures: Vec<u64> = serde_json::from_value(printed["figures"].clone())?;
        ensure!(figures.len() == 3 && figures.iter().all(|marks| *marks > 20), "{figures:?}");
        // The same sheet without its figures.
        page.execute(
            "document.head.insertAdjacentHTML('beforeend', '<style id=bare>.paper svg { visibility: hidden }</style>')",
            &[],
        )?;
        let bare = print()?;
        page.execute("document.getElementById('bare').remove()", &[])?;
        ensure!(drawn > bare + 40, "{drawn} areas are filled on paper, {bare} without the figures");
        page.wait_until("document.querySelector('.paper').childElementCount === 0")?;
        ensure!(is_visible(page, "stage")?, "the workbench does not come back");
        // The page as the browser lays it out for paper.
        page.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }))?;
        page.execute("dispatchEvent(new Event('beforeprint'))", &[])?;
        let script = "return [...document.querySelectorAll('canvas, button, input, select, textarea')]
            .filter((element) => element.checkVisibility()).map((element) => element.outerHTML.slice(0, 80))";
        let left = page.execute(script, &[])?;
        ensure!(left == json!([]), "controls or canvases on paper: {left}");
        Ok(())
    })
}

/// How many areas the pages of a PDF fill.
fn fills(pdf: &Value) -> Result<usize> {
    let data = pdf["data"].as_str().context("no PDF")?;
    let bytes = STANDARD.decode(data)?;
    let mut count = 0;
    let starts = bytes.windows(7).enumerate().filter(|(_, part)| part == b"stream\n" || part == b"stream\r");
    for (at, _) in starts {
        let from = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(at, |line| at + line + 1);
        let mut content = Vec::new();
        // A stream that is not packed content, such as a picture or a font, is passed over.
        if ZlibDecoder::new(&bytes[from..]).read_to_end(&mut content).is_ok() {
            let words = content.split(u8::is_ascii_whitespace);
            count += words.filter(|word| *word == b"f" || *word == b"f*").count();
        }
    }
    Ok(count)
}
