//! The real page in a real browser: the harness of the end-to-end tests.
//!
//! [`drive`] serves `dist/`, opens the page in a fresh headless Chromium and hands a test a [`Page`] to act
//! on:
//!
//! ```no_run
//! use blockyard_e2e::{Key, drive};
//!
//! drive(|page| {
//!     page.wait_for("main")?;
//!     page.press(Key::Tab)?;
//!     page.dark(true)?;
//!     page.check_accessible()
//! })
//! # .unwrap();
//! ```
//!
//! The tested page is in `dist/`, where `cargo xtask build` puts it, or in the folder that
//! `BLOCKYARD_TESTED_PAGE` names. `cargo xtask test` builds the page first and names its folder. Without
//! `cargo xtask test`: `cargo xtask build`, then `cargo test -p blockyard-e2e --test page`. Chromium is
//! driven through its WebDriver (`chromedriver` from the path, or `CHROMEDRIVER`; `CHROME` names another
//! browser). Every test has its own server, browser and profile, so tests are independent of each other and
//! run in any order; at most two browsers run at a time.
//!
//! Lengths are CSS pixels. Each wait gives up after [`PATIENCE`]. Errors are those of `anyhow`, since a test
//! only shows them.

mod axe;
mod console;
mod driver;
mod input;
mod page;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

pub use axe::Violation;
pub use console::NetworkRequest;
pub use page::{ElementRect, Fonts, GpuChoice, Page, Window, built_page};
pub use thirtyfour::{BrowserLogEntry, Key};

/// The longest wait for anything in the page.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The longest wait for a file of many megabytes. Both limits end tests that hang; they say nothing about how
/// fast the page has to be.
pub const PATIENCE_WITH_LARGE_FILES: Duration = Duration::from_mins(3);

/// Calls `ask` until it returns an answer, at most for `patience`.
///
/// # Errors
/// The error of `ask`, or that no answer came, with `what` as the name of the awaited thing.
pub fn wait_for_answer<T>(
    what: &str,
    patience: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if begun.elapsed() > patience {
            bail!("waited in vain for {what}");
        }
        // The pause between two questions; the test continues as soon as an answer comes.
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// Opens the page's workbench in a window of 1280 x 900, runs `test` on it, and checks that the console
/// stayed clean.
///
/// Where the test fails, a picture of the page is left in `target/e2e/`, named after the test.
///
/// # Errors
/// The error of the test, or else the errors that the page wrote to its console.
pub fn drive(test: impl FnOnce(&mut Page) -> Result<()>) -> Result<()> {
    drive_in(Window::default(), GpuChoice::None, test)
}

/// Runs `test` as [`drive`] does, in a browser with an adapter for WebGPU.
///
/// # Errors
/// The errors of [`drive`].
pub fn drive_on_gpu(test: impl FnOnce(&mut Page) -> Result<()>) -> Result<()> {
    drive_in(Window::default(), GpuChoice::Software, test)
}

/// Runs `test` as [`drive`] does, in a window of this size and with this adapter for WebGPU.
///
/// # Errors
/// The errors of [`drive`].
pub fn drive_in(window: Window, gpu: GpuChoice, test: impl FnOnce(&mut Page) -> Result<()>) -> Result<()> {
    drive_at("/#workbench", window, gpu, test)
}

/// Runs `test` as [`drive_in`] does, at this address of the page: `/` is the first page, `/#lessons` the
/// lessons.
///
/// # Errors
/// The errors of [`drive`].
pub fn drive_at(
    path: &str,
    window: Window,
    gpu: GpuChoice,
    test: impl FnOnce(&mut Page) -> Result<()>,
) -> Result<()> {
    drive_with_fonts(path, window, gpu, Fonts::System, test)
}

/// Runs `test` as [`drive_at`] does, with these fonts in place of this machine's.
///
/// # Errors
/// The errors of [`drive`].
pub fn drive_with_fonts(
    path: &str,
    window: Window,
    gpu: GpuChoice,
    fonts: Fonts,
    test: impl FnOnce(&mut Page) -> Result<()>,
) -> Result<()> {
    let mut page = Page::with_fonts(window, gpu, fonts)?;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        page.goto(path)?;
        test(&mut page)?;
        page.check_console()
    }));
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.context(portrait(&page))),
        Err(panic) => {
            eprintln!("{}", portrait(&page));
            resume_unwind(panic)
        }
    }
}

/// Keeps a picture of a page on which a test failed, and returns a note with the path of the picture.
fn portrait(page: &Page) -> String {
    let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
    let path = output().join(format!("{test}.png"));
    match page.screenshot(&path) {
        Ok(()) => format!("the page then: {}", path.display()),
        Err(error) => format!("no picture of the page: {error:#}"),
    }
}

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder for pictures and browser profiles, which git ignores.
fn output() -> PathBuf {
    root().join("target/e2e")
}

/// A file of the repository, by its path from the root.
///
/// # Errors
/// Where there is no such file.
pub fn repository_file(path: &str) -> Result<PathBuf> {
    let file = root().join(path);
    file.canonicalize().with_context(|| format!("{} is missing", file.display()))
}
