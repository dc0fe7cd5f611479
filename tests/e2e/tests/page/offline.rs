//! The page without a network after one visit, by itself.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, built_page, repository_file};
use blockyard_serve::{SERVICE_WORKER, service_worker};

use crate::id;

/// Waits until the service worker has kept all files and serves them.
fn wait_until_kept(page: &Page) -> Result<()> {
    page.execute_async("await navigator.serviceWorker.ready", &[])?;
    page.wait_until("navigator.serviceWorker.controller !== null").map(drop)
}

#[test]
fn the_page_works_without_a_network_after_one_visit() -> Result<()> {
    let mut page = Page::of(&built_page()?, Window::default(), GpuChoice::None)?;
    page.goto("/")?;
    page.wait_for(&id("stage"))?;
    page.execute("location.hash = '#teachers=present'", &[])?;
    page.wait_text(&id("offline"), "Storing for offline use")?;
    wait_until_kept(&page)?;
    page.wait_text(&id("offline"), "Ready offline")?;
    page.cut_network()?;
    page.goto("/?again#python")?;
    page.click(&id("run-program"))?;
    page.wait_text(&id("program-output"), "parameters: 16957952 bytes")?;
    page.goto("/?more#lesson=reserved&card=1")?;
    page.wait_text(&id("card-position"), "Card 1 of")
}

/// Writes a page of one word, with the service worker that keeps it.
fn write(folder: &Path, word: &str) -> Result<()> {
    let start = format!(
        "<!doctype html><title>{word}</title><script type=module src=./offline.js></script><main>{word}</main>"
    );
    let offline = fs::read(repository_file("web/offline.js")?)?;
    let files = [("index.html", start.as_bytes()), ("offline.js", offline.as_slice())];
    fs::create_dir_all(folder)?;
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes)?;
    }
    fs::write(folder.join(SERVICE_WORKER), service_worker("// A page of a test.", files))?;
    Ok(())
}

#[test]
fn a_new_build_takes_the_place_of_the_one_that_is_kept() -> Result<()> {
    let folder = repository_file("target")?.join("e2e/kept");
    write(&folder, "first")?;
    let mut page = Page::of(&folder, Window::default(), GpuChoice::None)?;
    page.goto("/")?;
    wait_until_kept(&page)?;
    let old = page.execute_async("return await caches.keys()", &[])?;
    write(&folder, "second")?;
    page.goto("/?again")?;
    page.wait_text("main", "second")?;
    let script = "for (;;) {
            const keys = await caches.keys();
            const is_new = keys.length === 1 && keys[0] !== arguments[0][0];
            const kept = is_new && await caches.match('./index.html');
            if (kept) return await kept.text();
            await new Promise((done) => setTimeout(done, 50));
        }";
    let kept = page.execute_async(script, std::slice::from_ref(&old))?;
    ensure!(kept.as_str().is_some_and(|text| text.contains("second")), "kept after {old}: {kept}");
    page.cut_network()?;
    page.goto("/?offline")?;
    page.wait_text("main", "second")
}
