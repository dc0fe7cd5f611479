//! Accessibility: colors, keys, screen readers, small screens.

use anyhow::{Result, ensure};
use blockyard_e2e::{Key, drive};
use serde_json::json;

use crate::{choose, id, workload, write_workload};

#[test]
fn axe_finds_nothing_serious_in_light_and_dark() -> Result<()> {
    drive(|page| {
        page.dark(false)?;
        choose(page, "preset", "training")?;
        page.click(&id("end"))?;
        page.check_accessible()?;
        page.click("#tab-numbers")?;
        page.check_accessible()?;
        page.dark(true)?;
        page.check_accessible()?;
        choose(page, "sample", "growing_sizes")?;
        page.wait_for(&id("verdict-headline"))?;
        page.click("#tab-source")?;
        page.wait_for(&id("headline"))?;
        page.check_accessible()?;
        page.press("?")?;
        page.wait_for(&id("help-dialog"))?;
        page.check_accessible()
    })
}

#[test]
fn the_page_follows_the_system_into_the_dark_and_can_be_set_otherwise() -> Result<()> {
    drive(|page| {
        let background = "return getComputedStyle(document.documentElement).backgroundColor";
        page.dark(false)?;
        let light = page.execute(background, &[])?;
        page.dark(true)?;
        let dark = page.execute(background, &[])?;
        ensure!(light != dark, "the page stays {light}");
        page.click(&id("help"))?;
        choose(page, "theme", "light")?;
        ensure!(page.execute(background, &[])? == light, "the choice of light colors does nothing");
        Ok(())
    })
}

#[test]
fn everything_can_be_done_with_the_keyboard() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB\nb = alloc 5 MiB")?;
        page.press(Key::Escape)?;
        page.press(Key::Home)?;
        page.wait_text(&id("position"), "request 0 of 2")?;
        page.press(Key::Right)?;
        page.wait_text(&id("position"), "request 1 of 2")?;
        page.press(Key::End)?;
        page.wait_text(&id("position"), "request 2 of 2")?;
        // Tab alone leads to the map, in any number of stops.
        let mut stops = 0;
        while !page
            .execute("return document.activeElement?.dataset?.testid === 'map'", &[])?
            .as_bool()
            .unwrap_or(false)
        {
            page.press(Key::Tab)?;
            stops += 1;
            ensure!(stops < 80, "the map cannot be reached with Tab");
        }
        page.press(Key::Home)?;
        page.press(Key::Enter)?;
        page.wait_text(&id("block"), "3 MiB")?;
        page.press("+")?;
        page.wait_for(&id("zoom-out"))?;
        page.press("-")?;
        page.wait_gone(&id("zoom-out"))?;
        page.press("f")?;
        page.wait_text(&id("position"), "request 3 of 3")?;
        ensure!(workload(page)?.contains("free a"), "{}", workload(page)?);
        page.press_with(&Key::Control, "z")?;
        page.wait_text(&id("position"), "of 2")
    })
}

#[test]
fn the_figures_have_words_beside_them() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        let label = page.attribute(&id("stage"), "aria-label")?.unwrap_or_default();
        ensure!(label.contains("3 MiB"), "the bar's label: {label}");
        let label = page.execute("const timeline = document.querySelector(arguments[0]);
                return (timeline.closest('[aria-label]') ?? timeline.querySelector('[aria-label]')).getAttribute('aria-label')",
            &[json!(id("timeline"))])?.to_string();
        ensure!(!label.is_empty(), "the timeline has no label");
        Ok(())
    })
}

#[test]
fn nothing_is_cut_off_on_a_phone() -> Result<()> {
    drive(|page| {
        // A window is at least 500 pixels wide, a phone is not.
        page.devtools(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": false }),
        )?;
        page.wait_for(&id("map"))?;
        let wide = page.execute(
            "return [...document.querySelectorAll('body *')]
                .filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > innerWidth + 1
                    && !element.closest('.scroller, pre, table, textarea'))
                .map((element) => `${element.tagName}.${element.className} ${element.dataset.testid ?? ''}`)",
            &[],
        )?;
        let overflow = page.execute("return document.documentElement.scrollWidth - innerWidth", &[])?;
        ensure!(overflow.as_i64().unwrap_or(1) <= 0, "the page is {overflow} px too wide: {wide}");
        page.check_accessible()
    })
}
