//! The page as people use it.

mod access;
mod batches;
mod boxes;
mod doors;
mod editor;
mod elsewhere;
mod exercises;
mod failures;
mod figures;
mod findings;
mod gpu;
mod grading;
mod hostile;
mod lab;
mod large;
mod offline;
mod one_file;
mod painted;
mod play;
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

/// A place in the block at the start of the map's first row.
const FIRST_BLOCK: (f64, f64) = (200.0, 37.0);
