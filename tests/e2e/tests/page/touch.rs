//! Fingers: a swipe turns the card, a tap only looks.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, drive_at};
use serde_json::json;

use crate::resize::first_end;
use crate::{FIRST_BLOCK, id, workload, write_workload};

fn on_a_phone(path: &str, test: impl Fn(&mut Page) -> Result<()>) -> Result<()> {
    drive_at(path, Window::default(), GpuChoice::None, |page| {
        page.reduced_motion(true)?;
        page.devtools(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true }),
        )?;
        page.devtools(
            "Emulation.setTouchEmulationEnabled",
            &json!({ "enabled": true, "maxTouchPoints": 2 }),
        )?;
        test(page)
    })
}

/// Moves a finger along these places.
fn finger(page: &Page, places: &[(f64, f64)]) -> Result<()> {
    let touch = |kind: &str, points: &[(f64, f64)]| {
        let points: Vec<_> = points.iter().map(|(x, y)| json!({ "x": x, "y": y })).collect();
        page.devtools("Input.dispatchTouchEvent", &json!({ "type": kind, "touchPoints": points }))
    };
    let Some((first, rest)) = places.split_first() else { return Ok(()) };
    touch("touchStart", &[*first])?;
    for place in rest {
        touch("touchMove", &[*place])?;
    }
    touch("touchEnd", &[]).map(drop)
}

#[test]
fn a_swipe_turns_the_card() -> Result<()> {
    on_a_phone("/#lesson=reserved&card=1", |page| {
        page.wait_text(&id("card-position"), "Card 1 of")?;
        let title = page.rect(&id("card-title"))?;
        let y = title.y + title.height / 2.0;
        finger(page, &[(300.0, y), (240.0, y + 4.0), (160.0, y + 6.0), (90.0, y + 6.0)])?;
        page.wait_text(&id("card-position"), "Card 2 of")?;
        finger(page, &[(60.0, y), (140.0, y), (220.0, y), (290.0, y)])?;
        page.wait_text(&id("card-position"), "Card 1 of")?;
        // A move up or down scrolls the page.
        finger(page, &[(180.0, y + 200.0), (184.0, y + 100.0), (190.0, y)])?;
        page.wait_text(&id("card-position"), "Card 1 of")
    })
}

#[test]
fn a_question_and_its_figure_fit_a_phone() -> Result<()> {
    on_a_phone("/#lesson=reserved&card=2", |page| {
        page.wait_for(&id("choice-1"))?;
        page.check_accessible()?;
        let next = page.rect(&id("card-next"))?;
        ensure!(next.y + next.height <= 740.0, "the controls are not at the thumb: {next:?}");
        page.click(&id("choice-1"))?;
        page.wait_text(&id("answer"), "The answer is: 20 MiB")?;
        let stage = page.rect(&id("stage"))?;
        ensure!(stage.width > 300.0 && stage.x >= 0.0 && stage.x + stage.width <= 360.0, "{stage:?}");
        Ok(())
    })
}

#[test]
fn a_tap_looks_and_changes_nothing() -> Result<()> {
    on_a_phone("/#preset=terms&step=4", |page| {
        let before = workload(page)?;
        let map = page.rect(&id("map"))?;
        finger(page, &[(map.x + 160.0, map.y + 40.0)])?;
        page.wait_for(&id("block"))?;
        ensure!(workload(page)? == before, "a tap changed the workload");
        let small = page.execute(
            "return [...document.querySelectorAll('button, select, input:not([type=range]):not([type=file])')]
                .filter((it) => it.checkVisibility() && it.getBoundingClientRect().height < 24
                    && !(it.closest('label')?.getBoundingClientRect().height >= 24))
                .map((it) => it.outerHTML.slice(0, 90))",
            &[],
        )?;
        ensure!(small == json!([]), "too small for a finger: {small}");
        Ok(())
    })
}

#[test]
fn a_finger_takes_hold_of_the_end_of_a_block() -> Result<()> {
    on_a_phone("/#workbench", |page| {
        write_workload(page, "a = alloc 3 MiB\nb = alloc 4 MiB\n")?;
        page.execute(
            "document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })",
            &[json!(id("map"))],
        )?;
        let (x, y) = first_end(page, FIRST_BLOCK.1)?;
        let map = page.rect(&id("map"))?;
        let (x, y) = (map.x + x, map.y + y);
        finger(page, &[(x, y), (x + 20.0, y), (x + 40.0, y)])?;
        ensure!(!workload(page)?.contains("a = alloc 3 MiB"), "nothing changed: {}", workload(page)?);
        ensure!(workload(page)?.contains("b = alloc 4 MiB"), "{}", workload(page)?);
        Ok(())
    })
}
