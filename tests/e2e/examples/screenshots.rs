//! Pictures of the page in `dist/`, for the README and for critical eyes, at five sizes, light and dark:
//! `cargo run -p blockyard-e2e --example screenshots [FOLDER [SIZE]]`.
//!
//! The pictures are written into `target/screenshots/`, or into the folder named on the command line.

use std::path::PathBuf;

use anyhow::Result;
use blockyard_e2e::{Page, drive_on_gpu, repository_file};
use serde_json::json;

/// Name, width, height, whether it is dark, device pixels per pixel.
const SIZES: [(&str, u32, u32, bool, u32); 6] = [
    ("laptop", 1366, 768, false, 1),
    ("laptop-dark", 1366, 768, true, 1),
    ("wide", 2560, 1300, false, 1),
    ("wall", 3840, 2160, false, 1),
    ("phone", 390, 844, false, 2),
    ("zoomed", 683, 384, false, 2),
];

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).map_or_else(|| PathBuf::from("target/screenshots"), PathBuf::from);
    let only = std::env::args().nth(2);
    std::fs::create_dir_all(&folder)?;
    let chosen = SIZES.into_iter().filter(|(name, ..)| only.as_deref().is_none_or(|only| only == *name));
    for (name, width, height, is_dark, scale) in chosen {
        drive_on_gpu(|page| {
            page.dark(is_dark)?;
            page.devtools(
                "Emulation.setDeviceMetricsOverride",
                &json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": false }),
            )?;
            let shot = |page: &Page, moment: &str| {
                // Motions of the figure end.
                std::thread::sleep(std::time::Duration::from_millis(500));
                page.screenshot(&folder.join(format!("{name}-{moment}.png")))
            };
            student(page, &shot)?;
            engineer(page, &shot)?;
            teacher(page, &shot)?;
            designer(page, &shot)
        })?;
    }
    Ok(())
}

type Shot<'a> = dyn Fn(&Page, &str) -> Result<()> + 'a;

fn student(page: &Page, shot: &Shot<'_>) -> Result<()> {
    page.goto("/?a")?;
    page.wait_for("[data-testid='story-create']")?;
    shot(page, "1-first")?;
    page.click("[data-testid='story-create']")?;
    page.click("[data-testid='story-delete']")?;
    shot(page, "2-story")?;
    page.goto("/?b#lessons")?;
    page.wait_for("main")?;
    shot(page, "3-lessons")?;
    page.goto("/?c#lesson=reserved&card=2")?;
    page.wait_for("[data-testid='stage']")?;
    shot(page, "4-lesson")
}

fn engineer(page: &Page, shot: &Shot<'_>) -> Result<()> {
    for file in ["oom/loss_history_100", "snapshots/checkerboard_default_100"] {
        page.goto("/?d#workbench")?;
        page.wait_for("[data-testid='map']")?;
        page.upload("[data-testid='file']", &repository_file(&format!("tests/fixtures/{file}.pickle.gz"))?)?;
        page.wait_for("[data-testid='verdict-headline']")?;
        let name = file.split('/').next_back().unwrap_or_default();
        shot(page, &format!("5-{name}"))?;
        page.execute("document.querySelector(\"[data-testid='run-verdict']\").scrollIntoView()", &[])?;
        shot(page, &format!("6-{name}-verdict"))?;
    }
    Ok(())
}

fn teacher(page: &Page, shot: &Shot<'_>) -> Result<()> {
    page.goto("/?e#make-lesson")?;
    page.wait_for("main")?;
    shot(page, "7-make-lesson")?;
    page.goto("/?f#teachers")?;
    page.wait_for("main")?;
    shot(page, "8-teachers")
}

fn designer(page: &Page, shot: &Shot<'_>) -> Result<()> {
    page.goto("/?g#preset=training&step=40")?;
    page.wait_for("[data-testid='map']")?;
    shot(page, "9-training")?;
    page.goto("/?h#preset=fragmentation")?;
    page.wait_for("[data-testid='map']")?;
    page.click("[data-testid='next-failed-step']")?;
    shot(page, "10-failure")?;
    page.goto("/?i#sample=kept_losses")?;
    page.wait_for("[data-testid='headline']")?;
    shot(page, "11-sample")?;
    page.goto("/?j#python")?;
    page.wait_for("[data-testid='run-program']")?;
    shot(page, "12-python")?;
    page.goto("/?k#preset=streams")?;
    page.wait_for("[data-testid='map']")?;
    seek(page, 0.6)?;
    page.click("#tab-numbers")?;
    shot(page, "13-streams")?;
    page.goto("/?l#preset=fragmentation")?;
    page.wait_for("[data-testid='device-gpu']:enabled")?;
    page.click("[data-testid='device-gpu']")?;
    page.wait_text("[data-testid='gpu-found']", "as written")?;
    seek(page, 0.6)?;
    page.rect("[data-testid='device-gpu']")?;
    shot(page, "14-gpu")
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
