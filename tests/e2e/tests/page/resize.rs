//! The end of a block is dragged, and the workload's text changes with it.

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{Key, Page, drive};
use serde_json::json;

use crate::{FIRST_BLOCK, id, workload, write_workload};

const TEXT: &str = "a = alloc 3 MiB\nb = alloc 4 MiB  # stays\n";

/// The place of the end of the first block in the row of the segment map at `y`, found as a person finds it:
/// by the change of the pointer.
pub(crate) fn first_end(page: &Page, y: f64) -> Result<(f64, f64)> {
    let width = page.rect(&id("map"))?.width;
    let mut x = 60.0;
    while x < width {
        page.hover_at(&id("map"), x, y)?;
        let script = "return new Promise((done) => requestAnimationFrame(() =>
            done(document.querySelector(arguments[0]).classList.contains('on-edge'))))";
        if page.execute(script, &[json!(id("map"))])?.as_bool() == Some(true) {
            return Ok((x, y));
        }
        x += 4.0;
    }
    anyhow::bail!("no end of a block takes hold of the pointer")
}

/// The size of `a` in the text, in MiB.
fn size(page: &Page) -> Result<f64> {
    let text = workload(page)?;
    ensure!(text.ends_with("b = alloc 4 MiB  # stays\n"), "another line changed: {text}");
    let size = text.strip_prefix("a = alloc ").and_then(|rest| rest.split(" MiB").next());
    Ok(size.with_context(|| text.clone())?.parse()?)
}

#[test]
fn a_drag_on_the_end_of_a_block_is_one_change_of_the_text() -> Result<()> {
    drive(|page| {
        page.reduced_motion(true)?;
        write_workload(page, TEXT)?;
        let from = first_end(page, FIRST_BLOCK.1)?;
        // Escape takes the drag back.
        page.begin_drag(&id("map"), from, (from.0 + 90.0, from.1))?;
        page.wait_text(&format!("{}:not([hidden])", id("tooltip")), "requested")?;
        ensure!(size(page)? > 3.0, "nothing changed: {}", workload(page)?);
        page.press(Key::Escape)?;
        ensure!(workload(page)? == TEXT, "Escape: {}", workload(page)?);
        page.end_drag(&id("map"), (from.0 + 120.0, from.1))?;
        ensure!(workload(page)? == TEXT, "after Escape: {}", workload(page)?);

        page.drag(&id("map"), from, (from.0 + 90.0, from.1))?;
        let larger = size(page)?;
        ensure!(larger > 3.0 && (larger * 16.0).fract() == 0.0, "no sensible size: {larger} MiB");
        // The block that grew is the chosen one, with the numbers of the run.
        page.wait_text(&id("block"), &format!("{larger} MiB"))?;
        page.press_with(&Key::Control, "z")?;
        ensure!(workload(page)? == TEXT, "one step of undo: {}", workload(page)?);

        // The block becomes so large that memory runs out: the run says so, and the same drag leads back.
        page.execute("scrollTo(0, 0)", &[])?;
        write_workload(page, "capacity 24 MiB\na = alloc 3 MiB\nb = alloc 4 MiB\n")?;
        let from = first_end(page, FIRST_BLOCK.1)?;
        let right = page.rect(&id("map"))?.width - 4.0;
        page.begin_drag(&id("map"), from, (right, from.1))?;
        ensure!(
            workload(page)?.contains("a = alloc 1") || workload(page)?.contains("a = alloc 2"),
            "{}",
            workload(page)?
        );
        page.end_drag(&id("map"), from)?;
        ensure!(workload(page)?.contains("a = alloc 3 MiB"), "{}", workload(page)?);
        page.check_accessible()
    })
}

#[test]
fn keys_make_the_chosen_block_larger_and_smaller() -> Result<()> {
    drive(|page| {
        write_workload(page, TEXT)?;
        page.click_at(&id("map"), FIRST_BLOCK.0, FIRST_BLOCK.1)?;
        page.wait_for(&id("block"))?;
        page.press(".")?;
        page.wait_text(&id("block"), "3.25 MiB")?;
        ensure!((size(page)? - 3.25).abs() < 1e-9, "{}", workload(page)?);
        page.press(",")?;
        page.press(",")?;
        page.wait_text(&id("block"), "2.75 MiB")?;
        ensure!((size(page)? - 2.75).abs() < 1e-9, "{}", workload(page)?);
        page.press_with(&Key::Control, "z")?;
        ensure!(workload(page)? == TEXT, "keys without a pause are one step: {}", workload(page)?);
        Ok(())
    })
}

#[test]
fn the_stage_takes_hold_of_the_end_of_a_block_too() -> Result<()> {
    drive(|page| {
        write_workload(page, "capacity 64 MiB\na = alloc 30 MiB\nb = alloc 4 MiB\n")?;
        let stage = page.rect(&id("stage"))?;
        let x = (stage.width * 30.0 / 64.0).round() - 1.0;
        let near = (0..20).map(|row| stage.height * (1.0 - f64::from(row) / 20.0) - 2.0).find(|y| {
            let on_edge = || -> Result<bool> {
                page.hover_at(&id("stage"), x, *y)?;
                Ok(page.execute(
                    "return document.querySelector(arguments[0]).classList.contains('on-edge')",
                    &[json!(id("stage"))],
                )? == json!(true))
            };
            on_edge().unwrap_or(false)
        });
        let y = near.context("no end of a block in the stage")?;
        page.drag(&id("stage"), (x, y), (x + stage.width / 16.0, y))?;
        let text = workload(page)?;
        let size: f64 = text
            .split("a = alloc ")
            .nth(1)
            .and_then(|rest| rest.split(" MiB").next())
            .context(text.clone())?
            .parse()?;
        ensure!((33.0..35.0).contains(&size), "a sixteenth of 64 MiB to the right: {text}");
        Ok(())
    })
}
