//! The page as people use it.

mod access;
mod batches;
mod boxes;
mod chapters;
mod doors;
mod editor;
mod elsewhere;
mod exercises;
mod failures;
mod figures;
mod findings;
mod gestures;
mod gpu;
mod grading;
mod hostile;
mod lab;
mod large;
mod offline;
mod one_file;
mod opened;
mod painted;
mod play;
mod practice;
mod presenting;
mod programs;
mod recordings;
mod resize;
mod sharing;
mod sheets;
mod site;
mod story;
mod teaching;
mod touch;
mod verdicts;
#[cfg(target_os = "linux")]
mod watch;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use blockyard_e2e::Page;
use serde_json::json;

/// The selector of an element by its test id.
fn id(name: &str) -> String {
    format!("[data-testid='{name}']")
}

/// Chooses an option as a person does, by its value.
fn choose(page: &Page, name: &str, value: &str) -> Result<()> {
    page.wait_for(&id(name))?;
    let script = "
        const select = document.querySelector(arguments[0]);
        select.value = arguments[1];
        select.dispatchEvent(new Event('input', { bubbles: true }));
        select.dispatchEvent(new Event('change', { bubbles: true }));
        return select.value;";
    let chosen = page.execute(script, &[json!(id(name)), json!(value)])?;
    ensure!(chosen == json!(value), "{name} has no option {value}");
    Ok(())
}

/// Replaces the workload's text and goes to its end.
fn write_workload(page: &Page, text: &str) -> Result<()> {
    choose(page, "preset", "empty")?;
    page.fill(&id("workload-text"), text)?;
    page.click(&id("end"))
}

fn workload(page: &Page) -> Result<String> {
    page.value(&id("workload-text"))
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(format!("{name}.jsonl.gz"))
}

fn snapshot(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(format!("{name}.pickle.gz"))
}

/// Waits longer than for other things: Python is fetched and compiled on the first run.
fn wait_long(page: &Page, css: &str, words: &str) -> Result<()> {
    for _ in 0..8 {
        if page.wait_text(css, words).is_ok() {
            return Ok(());
        }
    }
    page.wait_text(css, words)
}

/// Scrolls to the element and clicks it, since the head of the page lies over the window's upper edge.
fn scroll_and_click(page: &Page, name: &str) -> Result<()> {
    page.wait_for(&id(name))?;
    let script = "document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })";
    page.execute(script, &[json!(id(name))])?;
    page.click(&id(name))
}

/// Writes a value into a field and leaves the field.
fn set_field(page: &Page, name: &str, value: &str) -> Result<()> {
    let script = "const field = document.querySelector(`[data-testid=${arguments[0]}]`);
        field.value = arguments[1];
        field.dispatchEvent(new Event('change', { bubbles: true }));";
    page.execute(script, &[json!(name), json!(value)]).map(drop)
}

/// Replaces the text of the program and runs it.
fn run_program(page: &Page, program: &str) -> Result<()> {
    let script = "const text = document.getElementById('program-text');
        text.value = arguments[0];
        text.dispatchEvent(new Event('input', { bubbles: true }));";
    page.execute(script, &[json!(program)])?;
    page.click(&id("run-program"))
}

/// A place in the block at the start of the map's first row.
const FIRST_BLOCK: (f64, f64) = (200.0, 37.0);
