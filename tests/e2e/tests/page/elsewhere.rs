//! The page on other people's servers: below a path, as GitHub Pages has it, and in a frame of another page.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, built_page, repository_file};
use serde_json::json;

use crate::id;

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[test]
fn the_page_works_below_a_path_and_in_a_frame() -> Result<()> {
    let folder = repository_file("target")?.join("e2e").join(format!("site-{}", std::process::id()));
    copy(&built_page()?, &folder.join("courses/blockyard"))?;
    fs::write(
        folder.join("courses/index.html"),
        "<!doctype html><meta charset=utf-8><title>A course</title><link rel=icon href=data:,><main><p>Words around the figure.</p>
        <iframe src=\"blockyard/index.html?embed=lesson&amp;theme=light#lesson=reserved&amp;card=2\" width=900 height=600></iframe></main>",
    )?;
    let outcome = try_site(&folder);
    let _ = fs::remove_dir_all(&folder);
    outcome
}

fn try_site(folder: &Path) -> Result<()> {
    let page = Page::of(folder, Window::default(), GpuChoice::None)?;
    page.goto("/courses/blockyard/index.html#lesson=reserved&card=2")?;
    page.wait_text(&id("card-position"), "Card 2 of")?;
    // The worker and the samples are found below the path too.
    page.goto("/courses/blockyard/index.html#sample=kept_losses")?;
    page.wait_for(&id("headline"))?;
    page.wait_text(&id("document-title"), "A list that keeps every loss")?;
    page.click(&id("share"))?;
    page.wait_until("document.querySelector('[data-testid=share-link]')?.value.includes('kept_losses')")?;
    let link = page.value(&id("share-link"))?;
    ensure!(link.contains("/courses/blockyard/index.html#sample=kept_losses"), "{link}");
    page.goto("/courses/index.html")?;
    let inside = "document.querySelector('iframe').contentDocument?";
    // The condition is not about the element itself, which belongs to another document.
    page.wait_until(&format!("{inside}.querySelector('[data-testid=card-title]') != null"))?;
    page.execute(
        "document.querySelector('iframe').contentDocument.querySelector('[data-testid=choice-3]').click(); return true",
        &[],
    )?;
    page.wait_until(&format!(
        "{inside}.querySelector('[data-testid=answer]')?.textContent.includes({})",
        json!("20 MiB")
    ))?;
    page.check_console()
}
