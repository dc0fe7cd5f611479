//! A course that `blockyard site` writes: its index, files of the teacher's own, and no network after one
//! visit.

use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, built_page, repository_file};

use crate::id;

#[test]
fn a_course_opens_its_lessons_and_after_one_visit_needs_no_network() -> Result<()> {
    let folder = repository_file("target")?.join("e2e/site");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let lesson = repository_file("web/lessons/07-reserved.md")?;
    let snapshot = repository_file("tests/fixtures/snapshots/rank0.pickle.gz")?;
    let arguments =
        ["blockyard".into(), "site".into(), folder.clone().into(), lesson.into(), snapshot.into()];
    let arguments: [OsString; 5] = arguments;
    let page = ["--page".into(), built_page()?.into()];
    ensure!(blockyard_cli::run_command(arguments.into_iter().chain(page)) == ExitCode::SUCCESS, "no site");

    let mut page = Page::of(&folder, Window::default(), GpuChoice::None)?;
    page.goto("/course.html")?;
    page.wait_text("h1", "GPU memory in PyTorch")?;
    page.check_accessible()?;
    page.click("a[href='./#open=07-reserved.md']")?;
    page.wait_text("header", "Allocated and reserved")?;
    // A lesson beside the page has an address that opens for others, too.
    page.wait_until("location.hash === '#open=07-reserved.md'")?;
    // All files are kept.
    for _ in 0..4 {
        let script = "const done = arguments[arguments.length - 1];
            navigator.serviceWorker.ready.then(() => done(navigator.serviceWorker.controller !== null));";
        if page.execute_async(script, &[])?.as_bool() == Some(true) {
            break;
        }
    }
    page.wait_until("navigator.serviceWorker.controller !== null")?;
    page.cut_network()?;
    page.goto("/course.html")?;
    page.wait_text("h1", "GPU memory in PyTorch")?;
    page.click("a[href='./#open=rank0.pickle.gz']")?;
    page.wait_text(&id("headline"), "3,117 of 3,117 placements identical")?;
    page.goto("/?again#python")?;
    page.click(&id("run-program"))?;
    page.wait_text(&id("program-output"), "parameters: 16957952 bytes")
}
