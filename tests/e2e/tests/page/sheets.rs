//! Class sheets on paper.

use anyhow::{Result, ensure};
use blockyard_e2e::Page;
use serde_json::json;

use crate::id;
use crate::teaching::{LAPTOP, at};

#[test]
fn several_lessons_share_a_class_sheet() -> Result<()> {
    at("/#teachers=hand-out&class=none", LAPTOP, |page| {
        page.wait_for(&id("teachers"))?;
        ensure!(page.attribute(&id("class-sheet"), "disabled")?.is_some(), "nothing is planned");
        page.execute("location.hash = '#teachers=hand-out&class=reserved,workspaces,tensor:home'", &[])?;
        page.wait_text(&id("class-line"), "Allocated and reserved; Workspaces of cuBLAS.")?;
        page.wait_text(&id("hand-out"), "What a tensor costs. Homework: the lesson and its exercise")?;
        page.click(&id("class-sheet"))?;
        page.wait_until("location.hash === '#handout=reserved,workspaces,tensor:home'")?;
        page.wait_text(".handout", "Allocated and reserved, page 1 of")?;
        page.wait_text(".handout", "Workspaces of cuBLAS: answers")?;
        page.wait_text(".handout", "What a tensor costs: answers")?;
        page.check_accessible()?;
        // Homework has its own sheets.
        crate::choose(page, "print-lessons", "home")?;
        page.wait_text(".handout", "What a tensor costs, page 1 of")?;
        page.wait_until(
            "!document.querySelector('.handout').textContent.includes('Workspaces of cuBLAS: answers')",
        )
        .map(drop)
    })
}

/// The pages of the sheet as a browser prints them on Letter, or on A4.
fn printed_pages(page: &Page, is_a4: bool) -> Result<(usize, usize)> {
    use base64::Engine as _;
    let paper = if is_a4 { json!({ "paperWidth": 8.27, "paperHeight": 11.69 }) } else { json!({}) };
    let printed = page.devtools("Page.printToPDF", &paper)?;
    let printed = printed["data"].as_str().unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(printed)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok((text.matches("/Type /Page\n").count(), bytes.len()))
}

/// Chooses a part of the sheets, and prints it.
fn print_part(page: &Page, part: &str) -> Result<()> {
    crate::choose(page, "print-part", part)?;
    page.click(&id("print"))?;
    page.wait_until(&format!("document.querySelector('.handout').dataset.paperPart === '{part}'")).map(drop)
}

#[test]
fn a_class_sheet_has_no_empty_page_and_is_small() -> Result<()> {
    at("/#handout=reserved", LAPTOP, |page| {
        page.wait_for(".handout .sheet")?;
        page.execute("window.print = () => {}", &[])?;
        print_part(page, "cards")?;
        let (pages, bytes) = printed_pages(page, false)?;
        ensure!(bytes < 300_000, "{bytes} bytes");
        print_part(page, "short")?;
        let (short, _) = printed_pages(page, false)?;
        ensure!(short == 2 && short < pages, "{short} printed pages of questions and the exercise");
        print_part(page, "answers")?;
        let (pages, _) = printed_pages(page, false)?;
        ensure!((1..=3).contains(&pages), "{pages} printed pages of answers");
        page.wait_text(".handout .answers", "How much memory does PyTorch take from the device?")
    })
}

/// Each page has its number and the number of pages, so each has to be one page of paper: those of the cards,
/// those of the questions alone, and the key.
#[test]
fn every_lesson_prints_as_many_pages_as_its_sheets_say() -> Result<()> {
    at("/#lessons", LAPTOP, |page| {
        page.wait_for("[data-testid=lessons] a")?;
        let ids = "return [...document.querySelectorAll('[data-testid=lessons] a')]
            .map((a) => a.getAttribute('href').match(/lesson=([a-z-]+)/)?.[1]).filter(Boolean)";
        let ids: Vec<String> = serde_json::from_value(page.execute(ids, &[])?)?;
        ensure!(ids.len() == 10, "{ids:?}");
        page.execute("window.print = () => {}", &[])?;
        let mut faults = Vec::new();
        for lesson in ids {
            page.execute("location.hash = arguments[0]", &[json!(format!("#handout={lesson}"))])?;
            page.wait_until(&format!("location.hash === '#handout={lesson}'"))?;
            page.wait_for(".handout .sheet")?;
            let cards = page.count(".sheets .sheet")?;
            let last = format!(
                "return document.querySelector('.sheets').textContent.includes('page {cards} of {cards}')"
            );
            if page.execute(&last, &[])? != json!(true) {
                faults.push(format!("{lesson}: no page {cards} of {cards}"));
            }
            for (part, sheets) in [("cards", cards), ("short", 2), ("key", 1)] {
                print_part(page, part)?;
                for is_a4 in [true, false] {
                    let (pages, _) = printed_pages(page, is_a4)?;
                    if pages != sheets {
                        faults
                            .push(format!("{lesson}, {part}, A4 {is_a4}: {pages} printed pages of {sheets}"));
                    }
                }
            }
        }
        ensure!(faults.is_empty(), "{faults:#?}");
        Ok(())
    })
}

#[test]
fn a_sheet_of_questions_is_numbered_and_its_key_has_the_letters_of_its_choices() -> Result<()> {
    at("/#handout=reserved", LAPTOP, |page| {
        page.wait_for(".handout .sheet")?;
        let asked = "return document.querySelector('.asked').textContent";
        let asked = page.execute(asked, &[])?;
        let asked = asked.as_str().unwrap_or_default();
        ensure!(asked.contains("2. The next tensor asks for 5 MiB, and (…) are cached."), "{asked}");
        ensure!(!asked.contains("17 MiB"), "a number that answers question 1: {asked}");
        page.execute("window.print = () => {}", &[])?;
        print_part(page, "key")?;
        // On paper only the key is visible.
        page.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }))?;
        page.wait_text(".answer-key tr:nth-child(1)", "c) 20 MiB")?;
        page.wait_text(".answer-key tr:nth-child(3)", "36 MiB")?;
        page.wait_text(".answer-key pre", "del x")?;
        page.devtools("Emulation.setEmulatedMedia", &json!({ "media": "" })).map(drop)
    })
}
