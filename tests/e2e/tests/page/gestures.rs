//! One grammar of gestures in every figure: the wheel zooms at the pointer, a drag moves the shown part, a
//! drag with Shift, or of the whole, brushes a range, a click chooses, and a double click shows the whole again.

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{GpuChoice, Key, PATIENCE, Page, Window, drive, drive_at, wait_for_answer};
use serde_json::json;

use crate::{FIRST_BLOCK, fixture, id, scroll_and_click, snapshot};

/// One turn of the wheel inwards, and one outwards.
const IN_PX: f64 = -120.0;
const OUT_PX: f64 = 120.0;

fn open(page: &Page, name: &str) -> Result<()> {
    page.upload(&id("file"), &snapshot(&format!("snapshots/{name}")))?;
    page.wait_text(&id("document-title"), name)?;
    page.wait_for(&id("run-verdict"))?;
    page.wait_gone(&id("lab-work"))?;
    // The result of the comparison may take another line, which moves the figures down.
    page.wait_for(&id("headline"))?;
    page.click("#tab-holders")?;
    page.wait_for(&id("holders-summary"))
}

/// What a canvas shows now.
fn picture(page: &Page, css: &str) -> Result<String> {
    let script = "return document.querySelector(arguments[0]).toDataURL()";
    Ok(page.execute(script, &[json!(css)])?.as_str().context("a picture")?.to_owned())
}

/// Waits until a canvas shows another picture, and returns it.
fn other_picture(page: &Page, css: &str, before: &str, what: &str) -> Result<String> {
    wait_for_answer(what, PATIENCE, || {
        let now = picture(page, css)?;
        Ok((now != before).then_some(now))
    })
}

fn wait_for_picture(page: &Page, css: &str, wanted: &str, what: &str) -> Result<()> {
    wait_for_answer(what, PATIENCE, || Ok((picture(page, css)? == wanted).then_some(())))
}

/// How far the page and everything in it is scrolled.
fn scrolled(page: &Page) -> Result<f64> {
    let script = "return [...document.querySelectorAll('*')].reduce((sum, it) => sum + it.scrollTop, 0)";
    page.execute(script, &[])?.as_f64().context("a number")
}

/// Turns the wheel outwards where the whole is shown: the page scrolls.
fn check_wheel_leaves_the_reader_free(page: &Page, css: &str, at: (f64, f64)) -> Result<()> {
    // A pointer that moved begins a new turn of the wheel.
    page.execute("scrollBy(0, -80)", &[])?;
    page.hover_at(css, at.0 - 9.0, at.1)?;
    page.hover_at(css, at.0, at.1)?;
    let before = scrolled(page)?;
    page.wheel(css, at, OUT_PX)?;
    wait_for_answer("the page that scrolls", PATIENCE, || {
        Ok(((scrolled(page)? - before).abs() > 1.0).then_some(()))
    })
    .map(drop)
}

/// The figure of memory over time: of a file its allocations, unless it shows the states.
fn over_time(page: &Page) -> Result<&'static str> {
    let is_by_state = page.execute("return document.querySelector('.timeline').checkVisibility()", &[])?;
    Ok(if is_by_state == json!(true) { "timeline" } else { "lifetimes" })
}

/// The step that memory over time shows in the middle of its plot.
fn middle_step(page: &Page) -> Result<u64> {
    let name = over_time(page)?;
    let figure = page.rect(&id(name))?;
    let x = f64::midpoint(62.0, figure.width - 12.0);
    page.hover_at(&id(name), x - 3.0, figure.height / 3.0)?;
    page.hover_at(&id(name), x, figure.height / 3.0)?;
    let tip = format!(".{name} [data-testid='tooltip']");
    page.wait_text(&tip, "after request")?;
    let text = page.text(&tip)?;
    let step = text.lines().find_map(|line| line.strip_prefix("after request ")).context("a step")?;
    Ok(step.split(':').next().unwrap_or_default().replace(',', "").parse()?)
}

fn wait_for_step(page: &Page, what: &str, is_wanted: impl Fn(u64) -> bool) -> Result<u64> {
    wait_for_answer(what, PATIENCE, || Ok(Some(middle_step(page)?).filter(|step| is_wanted(*step))))
}

/// Waits until a figure stays where it is. The words below a figure above it change with what that figure shows,
/// and may take another line.
fn wait_until_still(page: &Page, css: &str) -> Result<()> {
    const READS: usize = 4;
    let mut places = Vec::new();
    wait_for_answer("a figure that stays where it is", PATIENCE, || {
        places.push(page.rect(css)?.y);
        std::thread::sleep(std::time::Duration::from_millis(60));
        let last = places.iter().rev().take(READS);
        Ok((places.len() >= READS
            && last.clone().all(|place| (place - places[places.len() - 1]).abs() < 0.5))
        .then_some(()))
    })
}

/// Tries every gesture on a figure over time of a file. The figure's axis lies between two distances from its
/// edges; `follows` is whether the frame of a mini map follows a drag, and else the run does.
fn check_figure_over_time(page: &Page, css: &str, sides: (f64, f64), follows: bool) -> Result<()> {
    let figure = page.rect(css)?;
    let at = |part: f64| {
        (sides.0 + (figure.width - sides.0 - sides.1) * part, figure.height * if follows { 0.5 } else { 0.4 })
    };
    let whole = middle_step(page)?;
    let fit = id(if over_time(page)? == "timeline" { "fit-timeline" } else { "fit" });
    // The wheel zooms at the pointer.
    page.hover_at(css, at(0.8).0, at(0.8).1)?;
    for _ in 0..4 {
        wait_until_still(page, css)?;
        page.wheel(css, at(0.8), IN_PX)?;
    }
    page.wait_for(&fit)?;
    let zoomed = wait_for_step(page, "the part at the pointer", |step| step > whole * 5 / 4)?;
    // A drag moves the part.
    wait_until_still(page, css)?;
    page.drag(css, at(0.6), at(0.8))?;
    let moved = |step: u64| if follows { step > zoomed + 50 } else { step + 50 < zoomed };
    wait_for_step(page, "another part after a drag", moved)?;
    page.wait_gone(&id("range"))?;
    // A double click shows the whole again, and keys zoom.
    wait_until_still(page, css)?;
    page.double_click_at(css, at(0.3).0, at(0.3).1)?;
    page.wait_gone(&fit)?;
    page.press("+")?;
    page.wait_for(&fit)?;
    page.press("-")?;
    page.wait_gone(&fit)?;
    page.press("+")?;
    page.wait_for(&fit)?;
    page.press("0")?;
    page.wait_gone(&fit)?;
    while page.count(&format!("{}, {}", id("event"), id("picked")))? > 0 {
        page.press(Key::Escape)?;
    }
    // A drag of the whole, which has no part to move, brushes a range: nothing else is chosen or moves.
    let before = page.text(&id("position"))?;
    page.click("#tab-lab")?;
    wait_until_still(page, css)?;
    page.drag(css, at(0.2), at(0.5))?;
    page.wait_for(&id("range"))?;
    ensure!(page.text(&id("position"))? == before, "a drag moved the cursor");
    ensure!(page.count(&id("event"))? == 0, "a drag chose an event");
    page.wait_until("document.querySelector('#tab-lab').ariaSelected === 'true'")?;
    // The range alone is shown by a key and by a button, and the whole again.
    page.press("z")?;
    page.wait_for(&fit)?;
    page.press("0")?;
    page.wait_gone(&fit)?;
    page.click(&id("zoom-to-range"))?;
    page.wait_for(&fit)?;
    page.execute("scrollTo(0, 0)", &[])?;
    page.click(&fit)?;
    page.wait_gone(&fit)?;
    page.press(Key::Escape)?;
    page.wait_gone(&id("range"))?;
    page.click("#tab-holders")?;
    // A drag with Shift brushes a range, which filters the table of holders and has sums.
    wait_until_still(page, css)?;
    page.drag_with(&Key::Shift, css, at(0.3), at(0.5))?;
    for sum in ["allocated", "freed", "allocated and still there", "most active"] {
        page.wait_text(&id("range"), sum)?;
    }
    page.wait_text(&id("holders-summary"), "allocated after request")?;
    page.wait_gone(&fit)?;
    page.press(Key::Escape)?;
    page.wait_gone(&id("range"))?;
    page.wait_text(&id("holders-summary"), "allocations after request")
}

#[test]
fn memory_over_time_has_every_gesture() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        page.click(&id("by-state"))?;
        let css = id("timeline");
        check_figure_over_time(page, &css, (62.0, 12.0), false)?;
        // A click chooses the event: the cursor goes there, and the side has its own lines.
        let figure = page.rect(&css)?;
        page.click_at(&css, figure.width * 0.7, figure.height * 0.4)?;
        page.wait_text(&id("event"), "Request ")?;
        let position = page.text(&id("position"))?;
        ensure!(!position.contains("request 7,020"), "{position}");
        // The cursor itself follows a drag.
        let x = 62.0
            + (figure.width - 74.0) * {
                let step: f64 = position["request ".len()..]
                    .split(' ')
                    .next()
                    .context("a step")?
                    .replace(',', "")
                    .parse()?;
                (step + 1.0) / 8670.0
            };
        page.drag(&css, (x, figure.height * 0.4), (figure.width * 0.3, figure.height * 0.4))?;
        wait_for_answer("the cursor at the pointer", PATIENCE, || {
            Ok((page.text(&id("position"))? != position).then_some(()))
        })?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("event"))?;
        check_wheel_leaves_the_reader_free(page, &css, (figure.width * 0.5, figure.height * 0.4))
    })
}

#[test]
fn a_chosen_event_names_its_own_lines_before_those_of_libraries() -> Result<()> {
    drive(|page| {
        open(page, "checkerboard_default_100")?;
        page.click(&id("by-state"))?;
        let figure = page.rect(&id("timeline"))?;
        page.click_at(&id("timeline"), figure.width * 0.4, figure.height * 0.4)?;
        page.wait_for(&format!("{} .own-lines", id("event")))?;
        ensure!(page.count(&format!("{} details[open]", id("event")))? == 0, "libraries are unfolded");
        // The arrow keys go on from event to event.
        let before = page.text(&id("event"))?;
        page.press(Key::Right)?;
        wait_for_answer("the next event", PATIENCE, || {
            Ok((page.text(&id("event"))? != before).then_some(()))
        })?;
        page.check_accessible()
    })
}

#[test]
fn a_range_is_brushed_by_keys_too() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        page.press(Key::Escape)?;
        page.press("m")?;
        page.press(Key::End)?;
        page.press("m")?;
        page.wait_text(&id("range"), "After request 7,020 up to request 8,669")?;
        page.wait_text(&id("holders-summary"), "allocated after request 7,020 and up to request 8,669")?;
        crate::choose(page, "wanted", "new")?;
        page.wait_text(
            &id("holders-summary"),
            "allocated after request 7,020 and there after request 8,669",
        )?;
        crate::choose(page, "wanted", "throughout")?;
        page.wait_text(&id("holders-summary"), "all the time from request 7,020 to request 8,669")?;
        page.check_accessible()?;
        page.click(&id("release-range"))?;
        page.wait_text(&id("holders-summary"), "allocations after request 8,669")
    })
}

#[test]
fn allocations_over_time_have_every_gesture() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        page.wait_text(&id("too-small"), "small to draw")?;
        let css = id("lifetimes");
        check_figure_over_time(page, &css, (62.0, 12.0), false)?;
        // A click chooses an allocation, with its own lines.
        page.wait_text(&id("too-small"), "small to draw")?;
        let figure = page.rect(&css)?;
        page.click_at(&css, figure.width * 0.5, figure.height * 0.8)?;
        page.wait_text(&id("picked"), "allocation #")?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("picked"))?;
        // Over the axis of bytes the wheel zooms the bytes.
        page.hover_at(&css, 30.0, figure.height * 0.5)?;
        page.wheel(&css, (30.0, figure.height * 0.5), IN_PX)?;
        page.wait_for(&id("fit"))?;
        page.double_click_at(&css, figure.width * 0.5, figure.height * 0.5)?;
        page.wait_gone(&id("fit"))?;
        check_wheel_leaves_the_reader_free(page, &css, (figure.width * 0.5, figure.height * 0.4))
    })
}

/// The tooltip names an allocation, or several that are too small to be drawn one by one. A click chooses these.
#[test]
fn a_click_chooses_what_the_tooltip_names() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        page.wait_text(&id("too-small"), "small to draw")?;
        for form in ["stacked", "at their addresses"] {
            if form == "at their addresses" {
                page.click(&id("by-address"))?;
                page.wait_until(
                    "document.querySelector('[data-testid=lifetimes]').ariaLabel.includes('at their addresses')",
                )?;
                page.wait_text(&id("too-small"), "small to draw")?;
            }
            let figure = page.rect(&id("lifetimes"))?;
            let mut named = 0;
            for (across, along) in
                (0..24).map(|place| (0.2 + 0.03 * f64::from(place), 0.25 + 0.027 * f64::from(place)))
            {
                // Parts of a pixel, as pointers have them.
                let (x, y) = (figure.width * across + 0.4, figure.height * along + 0.7);
                page.hover_at(&id("lifetimes"), x, y)?;
                page.click_at(&id("lifetimes"), x, y)?;
                // The tooltip has its words some frames after the pointer came.
                page.wait_until(
                    "(() => {
                        const tip = document.querySelector('.lifetimes [data-testid=tooltip]')?.textContent ?? '';
                        const picked = document.querySelector('[data-testid=picked] strong')?.textContent;
                        return tip.includes('allocation #') ? tip.startsWith(picked + ':') : !picked;
                    })()",
                )?;
                if page.count(&id("picked"))? > 0 {
                    named += 1;
                    page.press(Key::Escape)?;
                    page.wait_gone(&id("picked"))?;
                }
            }
            ensure!(named >= 5, "{form}: {named} places with a name");
        }
        Ok(())
    })
}

#[test]
fn the_mini_map_has_every_gesture() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        let css = id("mini-map");
        check_figure_over_time(page, &css, (0.0, 0.0), true)?;
        let figure = page.rect(&css)?;
        page.click_at(&css, figure.width * 0.25, figure.height * 0.5)?;
        page.wait_text(&id("position"), "request 2,1")?;
        page.wait_text(&id("event"), "Request 2,1")
    })
}

#[test]
fn the_memory_of_a_program_has_the_gestures_of_a_file() -> Result<()> {
    drive_at("/#python", Window::default(), GpuChoice::None, |page| {
        let program = "import torch\nkept = [torch.empty(1024, 1024, device='cuda') for _ in range(40)]\n";
        crate::run_program(page, program)?;
        crate::wait_long(page, &id("program-status"), "Finished: 40 requests")?;
        let css = id("timeline");
        let figure = page.rect(&css)?;
        let before = picture(page, &css)?;
        let at = (figure.width * 0.5, figure.height * 0.4);
        page.hover_at(&css, at.0, at.1)?;
        page.wheel(&css, at, IN_PX)?;
        let zoomed = other_picture(page, &css, &before, "a zoom")?;
        page.drag(&css, at, (at.0 + 80.0, at.1))?;
        other_picture(page, &css, &zoomed, "a drag")?;
        page.double_click_at(&css, at.0, at.1)?;
        wait_for_picture(page, &css, &before, "the whole")?;
        page.drag_with(&Key::Shift, &css, at, (at.0 + 80.0, at.1))?;
        page.wait_text(&id("range"), "most active")?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("range"))
    })
}

#[test]
fn the_strip_below_the_stage_has_every_gesture() -> Result<()> {
    drive_at("/?embed=stage#preset=training&step=3", Window::default(), GpuChoice::None, |page| {
        let css = ".scrubber .strip";
        let canvas = ".scrubber .strip canvas";
        let figure = page.rect(css)?;
        let at = |part: f64| (figure.width * part, figure.height * 0.3);
        let value = |page: &Page| -> Result<u64> {
            page.execute("return Number(document.querySelector('.scrubber input').value)", &[])?
                .as_u64()
                .context("a step")
        };
        page.click_at(css, at(0.7).0, at(0.7).1)?;
        page.wait_until("Number(document.querySelector('.scrubber input').value) > 0")?;
        let before = picture(page, canvas)?;
        let chosen = value(page)?;
        page.drag(css, at(0.1), at(0.3))?;
        ensure!(value(page)? == chosen, "a drag moved the cursor");
        page.press(Key::Escape)?;
        wait_for_picture(page, canvas, &before, "the range is released")?;
        page.hover_at(css, at(0.5).0, at(0.5).1)?;
        page.wheel(css, at(0.5), IN_PX)?;
        let zoomed = other_picture(page, canvas, &before, "a zoom")?;
        page.drag(css, at(0.4), at(0.6))?;
        other_picture(page, canvas, &zoomed, "a drag")?;
        page.double_click_at(css, at(0.5).0, at(0.5).1)?;
        wait_for_picture(page, canvas, &before, "the whole")?;
        page.press("+")?;
        other_picture(page, canvas, &before, "a key")?;
        page.press("0")?;
        wait_for_picture(page, canvas, &before, "the whole again")
    })
}

#[test]
fn the_segment_map_has_every_gesture() -> Result<()> {
    drive(|page| {
        open(page, "checkerboard_default_100")?;
        let css = id("map");
        let canvas = format!("{css} canvas");
        page.execute(
            "document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })",
            &[json!(css)],
        )?;
        let (x, y) = FIRST_BLOCK;
        page.hover_at(&css, x, y)?;
        page.wheel(&css, (x, y), IN_PX)?;
        page.wait_for(&id("zoom-out"))?;
        page.hover_at(&css, 4.0, 4.0)?;
        let zoomed = picture(page, &canvas)?;
        page.drag(&css, (x + 120.0, y), (x + 40.0, y))?;
        page.hover_at(&css, 4.0, 4.0)?;
        other_picture(page, &canvas, &zoomed, "another part of the segment")?;
        page.wait_gone(&id("block"))?;
        page.double_click_at(&css, x, y)?;
        page.wait_gone(&id("zoom-out"))?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("block"))?;
        // A click chooses a block, with its own lines.
        page.click_at(&css, 260.0, y)?;
        page.wait_for(&format!("{} .own-lines", id("block")))?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("block"))?;
        // A drag with Shift chooses the blocks that it passes.
        page.drag_with(&Key::Shift, &css, (120.0, y), (420.0, y))?;
        page.wait_text(&id("picked"), "brushed block")?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("picked"))?;
        page.execute("document.querySelector(arguments[0]).focus()", &[json!(css)])?;
        page.press(Key::Home)?;
        page.press("+")?;
        page.wait_for(&id("zoom-out"))?;
        page.press("0")?;
        page.wait_gone(&id("zoom-out"))?;
        page.press("+")?;
        page.wait_for(&id("zoom-out"))?;
        page.press("-")?;
        page.wait_gone(&id("zoom-out"))?;
        check_wheel_leaves_the_reader_free(page, &css, (x, y))
    })
}

#[test]
fn the_flame_graph_of_holders_has_every_gesture() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        page.click(&id("as-flame"))?;
        let css = id("flame");
        let canvas = format!("{css} canvas");
        let figure = page.rect(&css)?;
        let at = |part: f64| (figure.width * part, 33.0);
        let before = picture(page, &canvas)?;
        page.hover_at(&css, at(0.3).0, at(0.3).1)?;
        page.wheel(&css, at(0.3), IN_PX)?;
        let zoomed = other_picture(page, &canvas, &before, "a zoom")?;
        page.drag(&css, at(0.6), at(0.3))?;
        other_picture(page, &canvas, &zoomed, "a drag")?;
        ensure!(page.count(&id("picked"))? == 0, "a drag chose something");
        page.double_click_at(&css, at(0.3).0, at(0.3).1)?;
        page.wait_for(&id("picked"))?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("picked"))?;
        page.click_at(&css, at(0.3).0, at(0.3).1)?;
        page.wait_text(&id("picked"), "allocations")?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("picked"))?;
        page.drag_with(&Key::Shift, &css, at(0.2), at(0.6))?;
        page.wait_text(&id("picked"), "brushed frames")?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("picked"))?;
        page.execute("document.querySelector(arguments[0]).focus()", &[json!(css)])?;
        page.press(Key::Down)?;
        page.wait_for(&id("picked"))?;
        let chosen = other_picture(page, &canvas, &before, "a frame around the chosen node")?;
        page.press("+")?;
        other_picture(page, &canvas, &chosen, "a key")?;
        page.press("0")?;
        wait_for_picture(page, &canvas, &chosen, "the whole again")?;
        page.check_accessible()
    })
}

#[test]
fn the_replay_of_a_fix_has_the_gestures() -> Result<()> {
    drive(|page| {
        open(page, "checkerboard_default_100")?;
        page.click("#tab-lab")?;
        scroll_and_click(page, "try-change-0")?;
        let css = format!(".run-verdict {}", id("lab-timelines"));
        let figure = page.rect(&css)?;
        let at = |part: f64| (figure.width * part, figure.height * 0.4);
        let before = picture(page, &css)?;
        page.hover_at(&css, at(0.6).0, at(0.6).1)?;
        page.wheel(&css, at(0.6), IN_PX)?;
        let zoomed = other_picture(page, &css, &before, "a zoom")?;
        page.drag(&css, at(0.4), at(0.7))?;
        other_picture(page, &css, &zoomed, "a drag")?;
        page.double_click_at(&css, at(0.5).0, at(0.5).1)?;
        wait_for_picture(page, &css, &before, "the whole")?;
        check_wheel_leaves_the_reader_free(page, &css, at(0.5))
    })
}

#[test]
fn ranks_are_zoomed_together_and_a_drag_chooses_none() -> Result<()> {
    drive(|page| {
        let files = ["rank0", "rank1"].map(|name| snapshot(&format!("snapshots/{name}")).canonicalize());
        let files = files.into_iter().collect::<std::io::Result<Vec<_>>>()?;
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        page.upload_all(&id("file"), &files)?;
        page.wait_until("document.querySelectorAll('.ranks .rank').length === 2")?;
        page.wait_text(&id("document-title"), "rank1.pickle.gz")?;
        let canvas = |rank: usize| format!(".ranks .rank:nth-child({rank}) canvas");
        let figure = page.rect(&canvas(1))?;
        let at = |part: f64| (figure.width * part, figure.height * 0.5);
        let before = [picture(page, &canvas(1))?, picture(page, &canvas(2))?];
        page.hover_at(&canvas(1), at(0.5).0, at(0.5).1)?;
        page.wheel(&canvas(1), at(0.5), IN_PX)?;
        let zoomed = other_picture(page, &canvas(1), &before[0], "a zoom")?;
        other_picture(page, &canvas(2), &before[1], "the zoom of the other rank")?;
        page.drag(&canvas(1), at(0.4), at(0.7))?;
        other_picture(page, &canvas(1), &zoomed, "a drag")?;
        page.wait_text(&id("document-title"), "rank1.pickle.gz")?;
        page.click_at(&canvas(1), at(0.5).0, at(0.5).1)?;
        page.wait_text(&id("document-title"), "rank0.pickle.gz")
    })
}

/// The fingers go down, move and go up together.
fn fingers(page: &Page, places: &[&[(f64, f64)]]) -> Result<()> {
    let touch = |kind: &str, points: &[(f64, f64)]| {
        let points: Vec<_> =
            points.iter().zip(1..).map(|((x, y), id)| json!({ "x": x, "y": y, "id": id })).collect();
        page.devtools("Input.dispatchTouchEvent", &json!({ "type": kind, "touchPoints": points }))
    };
    let Some((first, rest)) = places.split_first() else { return Ok(()) };
    touch("touchStart", first)?;
    for points in rest {
        touch("touchMove", points)?;
    }
    touch("touchEnd", &[]).map(drop)
}

#[test]
fn two_fingers_zoom_and_one_moves_the_enlarged_part() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        page.click(&id("by-state"))?;
        page.devtools(
            "Emulation.setTouchEmulationEnabled",
            &json!({ "enabled": true, "maxTouchPoints": 2 }),
        )?;
        let figure = page.rect(&id("timeline"))?;
        let y = figure.y + figure.height * 0.4;
        let x = |part: f64| figure.x + figure.width * part;
        let before = picture(page, &id("timeline"))?;
        // One finger moves nothing while the whole is shown.
        fingers(page, &[&[(x(0.5), y)], &[(x(0.6), y)], &[(x(0.7), y)]])?;
        ensure!(picture(page, &id("timeline"))? == before, "one finger changed the whole");
        fingers(
            page,
            &[&[(x(0.45), y), (x(0.55), y)], &[(x(0.4), y), (x(0.6), y)], &[(x(0.3), y), (x(0.7), y)]],
        )?;
        page.wait_for(&id("fit-timeline"))?;
        let zoomed = other_picture(page, &id("timeline"), &before, "a zoom")?;
        fingers(page, &[&[(x(0.5), y)], &[(x(0.6), y)], &[(x(0.7), y)]])?;
        other_picture(page, &id("timeline"), &zoomed, "a move").map(drop)
    })
}

#[test]
fn a_turn_of_the_wheel_that_began_on_the_page_goes_on_over_a_figure() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        let figure = page.rect(&id("lifetimes"))?;
        let at = (figure.width * 0.5, figure.height * 0.4);
        page.hover_at(&id("lifetimes"), at.0, at.1)?;
        // The page gets the first event of the turn, and the figure the second one, at the same place.
        let script = "
            const [css, x, y] = arguments;
            const turn = (target, deltaY) => {
                const event = new WheelEvent('wheel',
                    { bubbles: true, cancelable: true, deltaY, clientX: x, clientY: y });
                target.dispatchEvent(event);
                return event.defaultPrevented;
            };
            const figure = document.querySelector(css);
            return [turn(document.body, 120), turn(figure, -120)];";
        let taken =
            page.execute(script, &[json!(id("lifetimes")), json!(figure.x + at.0), json!(figure.y + at.1)])?;
        ensure!(taken == json!([false, false]), "{taken}");
        page.wait_gone(&id("fit"))
    })
}

#[test]
fn a_recording_of_ours_has_the_sums_of_a_range() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &fixture("programs/gnn_random"))?;
        page.wait_text(&id("headline"), "identical")?;
        let figure = page.rect(&id("lifetimes"))?;
        let y = figure.height * 0.4;
        page.drag_with(&Key::Shift, &id("lifetimes"), (figure.width * 0.2, y), (figure.width * 0.9, y))?;
        page.wait_text(&id("range"), "freed")?;
        page.click("#tab-holders")?;
        page.wait_text(&id("holders-summary"), "allocated after request")
    })
}

/// What the reader points at stays where it is.
#[test]
fn figures_and_tables_stay_when_something_is_chosen() -> Result<()> {
    drive_at("/#workbench", Window { width: 1366, height: 768 }, GpuChoice::None, |page| {
        open(page, "checkerboard_default_100")?;
        page.wait_text(&id("headline"), "identical")?;
        page.wait_text(&id("too-small"), "small to draw")?;
        // Where each figure begins in the page, however far it is scrolled, and the table in the window: its
        // panel stays there.
        let tops = |page: &Page| -> Result<Vec<f64>> {
            let watched = [("map", "scrollY"), ("lifetimes", "scrollY"), ("holders-summary", "0")];
            let top = |(name, scrolled): &(&str, &str)| -> Result<f64> {
                let element = format!("document.querySelector(\"{}\")", id(name));
                let script = format!("return {element}.getBoundingClientRect().top + {scrolled}");
                page.execute(&script, &[])?.as_f64().context("a number")
            };
            watched.iter().map(top).collect()
        };
        let before = tops(page)?;
        let check = |what: &str| -> Result<()> {
            for (before, now) in before.iter().zip(&tops(page)?) {
                ensure!((before - now).abs() < 1.0, "{what}: {before} became {now}");
            }
            Ok(())
        };
        page.click_at(&id("map"), 260.0, FIRST_BLOCK.1)?;
        page.wait_for(&id("block"))?;
        check("a block of the map")?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("block"))?;
        page.drag_with(&Key::Shift, &id("lifetimes"), (200.0, 80.0), (400.0, 80.0))?;
        page.wait_for(&id("range"))?;
        check("a range")?;
        page.press(Key::Escape)?;
        page.wait_gone(&id("range"))?;
        page.click(".holder-table tbody .holder")?;
        page.wait_for(&id("picked"))?;
        check("a line of the table")
    })
}
