//! The story of the first screen.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Page, Window, drive_at};
use serde_json::json;

use crate::{choose, id};

fn at_home(test: impl Fn(&mut Page) -> Result<()>) -> Result<()> {
    drive_at("/", Window::default(), GpuChoice::None, test)
}

/// Makes the viewport as large as a screen; a window of the browser is at least 500 pixels wide.
fn screen(page: &Page, width: u32, height: u32) -> Result<()> {
    let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
    page.devtools("Emulation.setDeviceMetricsOverride", &size).map(drop)
}

/// Waits for `memory_allocated()`, `memory_reserved()` and the number of `nvidia-smi`.
fn shows(page: &Page, allocated: &str, reserved: &str, nvidia_smi: &str) -> Result<()> {
    for (name, bytes) in
        [("readout-allocated", allocated), ("readout-reserved", reserved), ("readout-nvidia-smi", nvidia_smi)]
    {
        page.wait_until(&format!(
            "document.querySelector({}).textContent === {}",
            json!(id(name)),
            json!(bytes)
        ))?;
    }
    Ok(())
}

#[test]
fn a_deleted_tensor_leaves_nvidia_smi_as_it_was_and_empty_cache_does_not() -> Result<()> {
    at_home(|page| {
        shows(page, "0 B", "0 B", "518 MiB")?;
        page.click(&id("story-create"))?;
        shows(page, "3 MiB", "20 MiB", "538 MiB")?;
        page.wait_text(
            &id("story-program"),
            "a = torch.empty(3 * 2**20, dtype=torch.uint8, device=\"cuda\")",
        )?;
        page.wait_text(&id("answer"), "a segment of 20 MiB")?;
        page.check_accessible()?;
        page.click(&id("story-delete"))?;
        shows(page, "0 B", "20 MiB", "538 MiB")?;
        page.wait_text(&id("story-program"), "del a")?;
        page.wait_text(&id("answer"), "nvidia-smi did not fall: 538 MiB")?;
        page.click(&id("story-empty-cache"))?;
        shows(page, "0 B", "0 B", "518 MiB")?;
        page.wait_text(&id("story-program"), "torch.cuda.empty_cache()")?;
        page.wait_text(&id("answer"), "gave 20 MiB back")?;
        // A small tensor gets a small segment.
        choose(page, "story-size", "1")?;
        page.click(&id("story-create"))?;
        shows(page, "512 KiB", "2 MiB", "520 MiB")?;
        page.click(&id("story-undo"))?;
        shows(page, "0 B", "0 B", "518 MiB")?;
        page.press_with(&Key::Control, "z")?;
        shows(page, "0 B", "20 MiB", "538 MiB")
    })
}

#[test]
fn what_fits_in_bytes_fails_in_pieces_and_passes_under_expandable_segments() -> Result<()> {
    at_home(|page| {
        page.click(&id("story-next"))?;
        shows(page, "12 GiB", "21 GiB", "21.51 GiB")?;
        page.wait_text(&id("answer"), "11.49 GiB are unused")?;
        page.click(&id("story-create"))?;
        page.wait_text(&id("failure"), "CUDA out of memory. Tried to allocate 3.00 GiB.")?;
        page.wait_text(&id("failure"), "expandable_segments:True")?;
        page.wait_text(&id("answer"), "in pieces of at most 1.5 GiB")?;
        page.wait_text(&id("story-program"), "torch.OutOfMemoryError")?;
        shows(page, "12 GiB", "21 GiB", "21.51 GiB")?;
        page.check_accessible()?;
        // No segment is wholly cached.
        page.click(&id("story-empty-cache"))?;
        page.wait_text(&id("answer"), "Nothing was given back")?;
        page.click(&id("story-undo"))?;
        page.wait_for(&id("failure"))?;
        page.click(&id("story-replay"))?;
        page.wait_gone(&id("failure"))?;
        page.wait_text(&id("readout-allocated"), "15 GiB")?;
        page.wait_text(&id("answer"), "one piece")?;
        page.check_accessible()?;
        page.dark(true)?;
        page.click(&id("story-replay"))?;
        page.wait_for(&id("failure"))?;
        page.check_accessible()?;
        page.click(&id("story-next"))?;
        shows(page, "0 B", "0 B", "518 MiB")
    })
}

#[test]
fn nothing_moves_before_the_reader_does_something() -> Result<()> {
    at_home(|page| {
        let seen = "const main = document.querySelector('main');
            return main.innerText + main.querySelector('canvas').toDataURL()";
        page.click(&id("story-create"))?;
        shows(page, "3 MiB", "20 MiB", "538 MiB")?;
        // The motion of the step ends.
        std::thread::sleep(std::time::Duration::from_millis(900));
        let before = page.execute(seen, &[])?;
        page.execute("document.activeElement.blur()", &[])?;
        // These keys move a player elsewhere; the story has none.
        for key in [" ", "k"] {
            page.press(key)?;
        }
        page.press(Key::Left)?;
        page.press(Key::Home)?;
        std::thread::sleep(std::time::Duration::from_millis(2500));
        ensure!(page.execute(seen, &[])? == before, "the first screen moved by itself");
        Ok(())
    })
}

#[test]
fn numbers_are_those_of_a_moment_while_the_figure_moves() -> Result<()> {
    at_home(|page| {
        // The script collects each number that any frame of a motion draws.
        let script = "
            const drawn = new Set();
            const before = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
                drawn.add(text);
                return before.call(this, text, ...rest);
            };
            document.querySelector(arguments[0]).click();
            const shown = new Set();
            const begun = performance.now();
            while (performance.now() - begun < 700) {
                await new Promise(requestAnimationFrame);
                document.querySelectorAll('.readouts b').forEach((it) => shown.add(it.textContent));
            }
            CanvasRenderingContext2D.prototype.fillText = before;
            return [[...drawn].filter((text) => / [KMG]?i?B$/.test(text)).sort(), [...shown].sort()];";
        let seen = page.execute_async(script, &[json!(id("story-create"))])?.to_string();
        for number in seen.split('"').filter(|part| part.ends_with("iB")) {
            let bytes = number.rsplit("allocated ").next().and_then(|part| part.rsplit("reserved ").next());
            let known = ["3 MiB", "17 MiB", "20 MiB", "518 MiB", "538 MiB", "139.29 GiB", "139.28 GiB"];
            let ticks = ["8 MiB", "16 MiB", "24 MiB", "32 MiB", "40 MiB", "48 MiB", "56 MiB", "64 MiB"];
            let is_known = bytes.is_some_and(|bytes| known.contains(&bytes) || ticks.contains(&bytes));
            ensure!(is_known, "{number:?} is a number of no moment: {seen}");
        }
        ensure!(seen.contains("538 MiB"), "{seen}");
        Ok(())
    })
}

#[test]
fn the_story_and_the_doors_are_in_sight() -> Result<()> {
    at_home(|page| {
        let below = "return arguments[0].filter((css) => {
            const { bottom, right, width } = document.querySelector(css).getBoundingClientRect();
            return width < 1 || bottom > innerHeight || right > innerWidth;
        })";
        let ids = |names: &[&str]| json!(names.iter().map(|name| id(name)).collect::<Vec<_>>());
        let story =
            ["answer", "stage", "story-create", "story-delete", "story-empty-cache", "readout-nvidia-smi"];
        let doors = ["door-open", "door-script", "door-fit", "door-learn"];
        for (name, width, height) in [("a laptop", 1366, 768), ("a phone", 390, 844)] {
            screen(page, width, height)?;
            page.execute("scrollTo(0, 0)", &[])?;
            let hidden = page.execute(below, &[ids(&doors)])?;
            ensure!(hidden == json!([]), "doors that are not in sight on {name}: {hidden}");
            // The story is below the doors, and in sight as a whole.
            page.execute("document.querySelector('.home > h2').scrollIntoView()", &[])?;
            let hidden = page.execute(below, &[ids(&story)])?;
            ensure!(hidden == json!([]), "not in sight on {name}: {hidden}");
        }
        // A page that is too wide widens the window of a phone, too.
        let width = page.execute("return document.documentElement.scrollWidth", &[])?;
        ensure!(width.as_i64().is_some_and(|width| width <= 390), "the page is {width} px wide");
        page.check_accessible()
    })
}

#[test]
fn the_keyboard_alone_tells_the_story() -> Result<()> {
    at_home(|page| {
        let tab_to = |name: &str| -> Result<()> {
            let is_there = format!("return document.activeElement?.dataset?.testid === {}", json!(name));
            for _ in 0..40 {
                if page.execute(&is_there, &[])?.as_bool() == Some(true) {
                    return Ok(());
                }
                page.press(Key::Tab)?;
            }
            anyhow::bail!("{name} cannot be reached with Tab")
        };
        let focus_stays = |name: &str| -> Result<()> {
            let now = page.execute("return document.activeElement?.dataset?.testid", &[])?;
            ensure!(now == json!(name), "the focus went from {name} to {now}");
            Ok(())
        };
        for (name, answer) in [
            ("story-create", "a segment of 20 MiB"),
            ("story-delete", "did not fall"),
            ("story-empty-cache", "Now it falls"),
            ("story-undo", "did not fall"),
            ("story-next", "Does a tensor of 3 GiB fit?"),
        ] {
            tab_to(name)?;
            page.press(Key::Enter)?;
            page.wait_text(&id("answer"), answer)?;
            focus_stays(name)?;
            // A screen reader gets the same sentence.
            page.wait_text(&id("live"), answer)?;
        }
        // The second situation is further up in the order.
        page.execute(
            "document.querySelector('h1').tabIndex = -1; document.querySelector('h1').focus()",
            &[],
        )?;
        tab_to("story-create")?;
        page.press(Key::Enter)?;
        page.wait_for(&id("failure"))?;
        focus_stays("story-create")?;
        tab_to("story-replay")?;
        page.press(Key::Space)?;
        page.wait_gone(&id("failure"))?;
        focus_stays("story-replay")
    })
}

#[test]
fn the_buttons_stay_where_they_are_when_memory_runs_out() -> Result<()> {
    at_home(|page| {
        screen(page, 1366, 768)?;
        page.click(&id("story-next"))?;
        page.wait_text(&id("answer"), "12 GiB")?;
        let before = page.rect(&id("story-create"))?;
        page.click(&id("story-create"))?;
        page.wait_for(&id("failure"))?;
        let after = page.rect(&id("story-create"))?;
        ensure!((before.y - after.y).abs() < 0.5, "the button moved from {before:?} to {after:?}");
        Ok(())
    })
}
