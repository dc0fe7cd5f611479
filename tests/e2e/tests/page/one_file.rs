//! A page that is one file: the file that `blockyard export OUT.html` writes, and the figure that a notebook
//! shows.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use blockyard_cli::{BuiltPage, PageFile, frame, one_page};
use blockyard_e2e::{GpuChoice, Page, Window, built_page};

use crate::id;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn built() -> Result<BuiltPage> {
    BuiltPage::find(Some(&built_page()?))
}

fn snapshot(name: &str) -> Result<PageFile> {
    let bytes = fs::read(repository(&format!("tests/fixtures/snapshots/{name}")))?;
    PageFile::new(name, bytes, None)
}

/// Opens the page from a file in a browser that has no network.
fn show(name: &str, html: &str, test: impl Fn(&mut Page) -> Result<()>) -> Result<()> {
    let folder = repository("target/e2e");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.html"));
    fs::write(&path, html)?;
    let mut page = Page::of(&folder, Window::default(), GpuChoice::None)?;
    page.cut_network()?;
    page.goto_file(&path)?;
    test(&mut page)?;
    page.check_console()
}

#[test]
fn an_exported_snapshot_opens_from_a_file_without_a_network() -> Result<()> {
    let html = one_page(&built()?, &snapshot("rank0.pickle.gz")?, false)?;
    show("exported", &html, |page| {
        page.wait_text(&id("headline"), "3,117 of 3,117 placements identical")?;
        page.wait_text("h1, header", "rank0.pickle.gz")?;
        ensure!(page.count(&id("sample"))? == 0, "samples are offered that are not there");
        page.click(&id("back"))
    })
}

#[test]
fn a_workload_is_exported_with_its_device() -> Result<()> {
    let file = PageFile::new("mine.workload", b"a = alloc 3 MiB\nb = alloc 30 MiB\n".to_vec(), None)?;
    show("exported-workload", &one_page(&built()?, &file, false)?, |page| {
        page.wait_text("header", "mine.workload")?;
        ensure!(page.value(&id("capacity"))? == "1 GiB", "the device is another one");
        Ok(())
    })
}

#[test]
fn a_notebook_shows_the_figure_in_a_frame_that_sees_nothing_around() -> Result<()> {
    let file = snapshot("resnet50_amp.pickle.gz")?;
    let cell = frame(&built()?, &file)?;
    println!("one cell: {} bytes, of which the snapshot {}", cell.len(), file.packed_len());
    let html = format!("<!doctype html><title>A notebook</title><p>Out[1]:</p>{cell}");
    show("notebook", &html, |page| {
        page.enter_frame("iframe")?;
        page.wait_text(&id("position"), "request 7020 of 8669")?;
        page.dark(true)?;
        page.wait_until("matchMedia('(prefers-color-scheme: dark)').matches")?;
        page.click(&id("forward"))?;
        page.wait_text(&id("position"), "request 7021 of 8669")
    })
}
