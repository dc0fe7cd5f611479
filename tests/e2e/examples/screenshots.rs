//! Pictures of the page in `dist/`, for the README and for critical eyes: `cargo run -p blockyard-e2e
//! --example screenshots`.
//!
//! The pictures are written into `target/screenshots/`, or into the folder named on the command line.

use std::path::PathBuf;

use anyhow::Result;
use blockyard_e2e::{Page, drive_on_gpu};
use serde_json::json;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).map_or_else(|| PathBuf::from("target/screenshots"), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    for (name, width, height, is_dark, scale) in [
        ("laptop", 1366, 768, false, 1),
        ("laptop-dark", 1366, 768, true, 1),
        ("wide", 2560, 1300, false, 1),
        ("phone", 390, 844, false, 2),
        ("zoomed", 683, 384, false, 2),
    ] {
        drive_on_gpu(|page| {
            page.dark(is_dark)?;
            page.devtools(
                "Emulation.setDeviceMetricsOverride",
                &json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": false }),
            )?;
            let shot =
                |page: &Page, moment: &str| page.screenshot(&folder.join(format!("{name}-{moment}.png")));
            page.goto("/")?;
            page.click("[data-testid='story-create']")?;
            page.click("[data-testid='story-delete']")?;
            // The motion of the figure ends.
            std::thread::sleep(std::time::Duration::from_millis(600));
            shot(page, "first")?;
            page.goto("/#workbench")?;
            page.wait_for("[data-testid='map']")?;
            choose(page, "training")?;
            seek(page, 0.45)?;
            shot(page, "training")?;
            choose(page, "fragmentation")?;
            page.click("[data-testid='next-failed-step']")?;
            shot(page, "fragmentation")?;
            choose(page, "streams")?;
            seek(page, 0.6)?;
            page.click("#tab-numbers")?;
            shot(page, "streams")?;
            page.click("#tab-source")?;
            page.click("[data-testid='sample-gpt2_varlen']")?;
            page.wait_for("[data-testid='headline']")?;
            seek(page, 0.72)?;
            shot(page, "gpt2")?;
            page.click("#tab-source")?;
            page.click("[data-testid='back-to-workload']")?;
            choose(page, "fragmentation")?;
            page.click("[data-testid='device-gpu']")?;
            page.wait_text("[data-testid='gpu-found']", "as written")?;
            seek(page, 0.6)?;
            page.rect("[data-testid='device-gpu']")?;
            shot(page, "gpu")
        })?;
    }
    Ok(())
}

fn choose(page: &Page, preset: &str) -> Result<()> {
    let script = "
        const select = document.querySelector(\"[data-testid='preset']\");
        select.value = arguments[0];
        select.dispatchEvent(new Event('change', { bubbles: true }));";
    page.execute(script, &[json!(preset)])?;
    Ok(())
}

/// Moves the cursor to a share of the run, and lets the page draw.
fn seek(page: &Page, share: f64) -> Result<()> {
    let script = "
        const slider = document.querySelector(\"[data-testid='scrub']\");
        slider.value = String(Math.round(Number(slider.max) * arguments[0]));
        slider.dispatchEvent(new Event('input', { bubbles: true }));
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);";
    page.execute_async(script, &[json!(share)])?;
    Ok(())
}
