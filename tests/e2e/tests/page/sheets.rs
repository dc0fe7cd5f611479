//! Class sheets on paper.

use anyhow::{Result, ensure};
use blockyard_e2e::Page;
use serde_json::json;

use crate::id;
use crate::teaching::{LAPTOP, at};

#[test]
fn several_lessons_share_a_class_sheet() -> Result<()> {
    at("/#teachers", LAPTOP, |page| {
        page.wait_for(&id("teachers"))?;
        ensure!(page.attribute(&id("class-sheet"), "disabled")?.is_some(), "nothing is chosen");
        page.execute(
            "document.querySelectorAll('[data-testid=choose-lesson]').forEach((box, place) => { if (place === 1 || place === 6) box.click(); })",
            &[],
        )?;
        page.wait_text(&id("class-sheet"), "Class sheet of 2 lessons")?;
        page.click(&id("class-sheet"))?;
        page.wait_until("location.hash === '#handout=reserved,splits'")?;
        page.wait_text(".handout", "Allocated and reserved, page 1 of")?;
        page.wait_text(".handout", "Splits and merges: answers")?;
        page.check_accessible()
    })
}

/// The pages of the sheet as a browser prints them.
fn printed_pages(page: &Page) -> Result<(usize, usize)> {
    use base64::Engine as _;
    let printed = page.devtools("Page.printToPDF", &json!({}))?;
    let printed = printed["data"].as_str().unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(printed)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok((text.matches("/Type /Page\n").count(), bytes.len()))
}

#[test]
fn a_class_sheet_has_no_empty_page_and_is_small() -> Result<()> {
    // None of its sheets is longer than a page, so that the numbers of the pages are right.
    at("/#handout=reserved", LAPTOP, |page| {
        page.wait_for(".handout .sheet")?;
        let sheets = page.count(".handout .sheets .sheet")?;
        page.execute("window.print = () => {}", &[])?;
        page.click(&id("print-cards"))?;
        page.wait_until("document.querySelector('.handout').dataset.paperPart === 'cards'")?;
        let (pages, bytes) = printed_pages(page)?;
        ensure!(pages == sheets, "{pages} printed pages of {sheets}");
        ensure!(bytes < 300_000, "{bytes} bytes");
        // Questions and exercises alone: two questions a page, and the exercise.
        page.click(&id("print-short"))?;
        page.wait_until("document.querySelector('.handout').dataset.paperPart === 'short'")?;
        let (short, _) = printed_pages(page)?;
        ensure!(short == 3 && short < pages, "{short} printed pages of questions and exercises");
        page.click(&id("print-answers"))?;
        page.wait_until("document.querySelector('.handout').dataset.paperPart === 'answers'")?;
        let (pages, _) = printed_pages(page)?;
        ensure!((1..=3).contains(&pages), "{pages} printed pages of answers");
        page.wait_text(".handout .answers", "How much memory does PyTorch take from the device?")
    })
}

/// Each page has its number and a line for a name only if no sheet is longer than a page.
#[test]
fn no_sheet_of_questions_is_longer_than_its_page() -> Result<()> {
    at("/#lessons", LAPTOP, |page| {
        page.wait_for("[data-testid=lessons] a")?;
        let ids = "return [...document.querySelectorAll('[data-testid=lessons] a')]
            .map((a) => a.getAttribute('href').match(/lesson=([a-z-]+)/)?.[1]).filter(Boolean)";
        let ids: Vec<String> = serde_json::from_value(page.execute(ids, &[])?)?;
        ensure!(ids.len() == 20, "{ids:?}");
        page.execute("window.print = () => {}", &[])?;
        let mut faults = Vec::new();
        for lesson in ids {
            page.execute("location.hash = arguments[0]", &[json!(format!("#handout={lesson}"))])?;
            page.wait_until(&format!("location.hash === '#handout={lesson}'"))?;
            page.wait_for(".handout .sheet")?;
            page.click(&id("print-short"))?;
            page.wait_until("document.querySelector('.handout').dataset.paperPart === 'short'")?;
            let (sheets, (pages, _)) = (page.count(".asked .sheet")?, printed_pages(page)?);
            if pages != sheets {
                faults.push(format!("{lesson}: {pages} printed pages of {sheets}"));
            }
        }
        ensure!(faults.is_empty(), "{faults:?}");
        Ok(())
    })
}
