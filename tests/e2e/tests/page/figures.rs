//! The figures of a memory snapshot: allocations over time, and who holds the bytes.

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{Key, PATIENCE, Page, drive, wait_for_answer};
use serde_json::json;

use crate::{choose, fixture, id};

fn open(page: &Page, name: &str) -> Result<()> {
    let file = format!("{name}.pickle.gz");
    page.upload(&id("file"), &fixture("x").with_file_name("snapshots").join(&file))?;
    page.wait_text(&id("document-title"), &file)?;
    // A file opens with its verdict.
    page.wait_for(&id("run-verdict"))?;
    page.click("#tab-holders")
}

/// The number of colors of the canvas: a figure that was drawn has several.
fn colors(page: &Page, name: &str) -> Result<u64> {
    let script = "
        const canvas = document.querySelector(arguments[0]);
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const found = new Set();
        for (let at = 0; at < data.length; at += 4) found.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
        return found.size;";
    page.execute(script, &[json!(id(name))])?.as_u64().context("a number")
}

#[test]
fn a_snapshot_of_pytorch_2_15_shows_pinned_memory_beside_the_gpu() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &fixture("x").with_file_name("snapshots").join("small_2.15.pickle"))?;
        page.wait_text(&id("document-title"), "small_2.15.pickle")?;
        page.wait_text(&id("headline"), "4 of 4 placements identical")?;
        // The text that the program gave to a tensor. A run that went out of memory opens with the reason.
        page.click("#tab-holders")?;
        page.wait_text(&id("holders"), "snap.py:7 (saved for backward)")?;
        page.click("#tab-source")?;
        choose(page, "device", "1")?;
        page.wait_text(&id("device"), "host (pinned memory): 6 events")?;
        page.wait_text(&id("recording-card"), "not replayed: host (pinned) memory has another allocator")?;
        page.wait_text(&id("headline"), "nothing to compare")?;
        page.wait_text(&id("term-peak-reserved-so-far"), "528 KiB")?;
        page.wait_text(&id("segments-summary"), "2 segments")?;
        page.click("#tab-holders")?;
        page.wait_text(&id("holders"), "snap.py:8")?;
        page.click("#tab-lab")?;
        page.wait_text(&id("lab-host"), "Questions are answered for the GPU")?;
        page.check_accessible()?;
        page.click("#tab-source")?;
        choose(page, "device", "0")?;
        page.wait_text(&id("headline"), "4 of 4 placements identical")
    })
}

#[test]
fn a_snapshot_opens_at_its_peak_with_its_holders() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        page.wait_text(
            &id("holders-summary"),
            "1.66 GiB (1,781,156,352 bytes) in 760 allocations at the peak, after request 7,020",
        )?;
        page.wait_text(&id("term-peak-allocated-so-far"), "1.66 GiB")?;
        page.wait_text(&id("holders"), "forward models/resnet.py:154")?;
        choose(page, "group-by", "stack")?;
        page.wait_text(&id("holders"), "forward models/resnet.py:154 › _conv_forward")?;
        // Every grouping is of the same bytes.
        for by in ["line", "module", "category", "size", "stream", "pool"] {
            choose(page, "group-by", by)?;
            page.wait_text(&id("holders-summary"), "1.66 GiB (1,781,156,352 bytes)")?;
        }
        choose(page, "group-by", "category")?;
        page.wait_text(".holder-table", "activations")?;
        page.wait_text(".holder-table", "optimizer")?;
        page.press("K")?;
        page.wait_text(&id("position"), "request 7,980")?;
        page.wait_text(&id("term-peak-reserved-so-far"), "1.87 GiB")?;
        page.check_accessible()
    })
}

#[test]
fn a_snapshot_that_ran_out_of_memory_opens_there() -> Result<()> {
    drive(|page| {
        open(page, "checkerboard_default_100")?;
        page.wait_text("body", "out of memory")?;
        page.wait_text(&id("position"), "request 81 of 81")
    })
}

#[test]
fn allocations_are_found_chosen_and_shown_everywhere() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        page.wait_text(&id("holders-summary"), "760 allocations")?;
        choose(page, "group-by", "stack")?;
        page.press(Key::Escape)?;
        page.execute("document.activeElement.blur()", &[])?;
        page.press("/")?;
        page.wait_until("document.activeElement.id === 'holders-search'")?;
        page.fill(&id("holders-search"), "sgd.py >1MiB")?;
        page.wait_text(&id("holders-summary"), "of 1.66 GiB")?;
        page.click(".holder-table tbody .holder")?;
        page.wait_text(&id("picked"), "torch/optim/sgd.py")?;
        page.wait_for(".holder[aria-pressed='true']")?;
        page.click(&id("as-flame"))?;
        page.wait_for(&id("flame"))?;
        ensure!(
            page.attribute(&id("flame"), "aria-label")?.unwrap_or_default().contains("Flame graph at all")
        );
        page.click(&id("unpick"))?;
        page.wait_gone(&id("picked"))
    })
}

#[test]
fn lifetimes_are_drawn_colored_and_zoomed() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        // Whether anything is too small depends on the height that the window leaves for the figure.
        page.wait_text(&id("too-small"), "small to draw")?;
        ensure!(colors(page, "lifetimes")? > 12, "hardly anything is drawn");
        let label = page.attribute(&id("lifetimes"), "aria-label")?.unwrap_or_default();
        ensure!(label.contains("4,336 allocations over time stacked"), "{label}");
        page.click(&id("by-address"))?;
        page.wait_until(
            "document.querySelector(\"[data-testid='lifetimes']\").ariaLabel.includes('at their addresses')",
        )?;
        let offered = page.count(&format!("{} option", id("color-by")))?;
        ensure!(offered == 4, "{offered} meanings of colors");
        for by in ["category", "stream", "age", "line"] {
            choose(page, "color-by", by)?;
            page.wait_for(&format!("{} .entry", id("legend")))?;
        }
        page.press("w")?;
        page.wait_for(&id("fit"))?;
        page.click(&id("fit"))?;
        page.wait_gone(&id("fit"))
    })
}

#[test]
fn a_tooltip_says_what_is_under_a_resting_pointer_after_a_zoom() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        for figure in ["lifetimes", "timeline"] {
            let tip = format!(".{figure} [data-testid='tooltip']");
            page.press("0")?;
            if figure == "timeline" {
                page.click(&id("by-state"))?;
            } else {
                page.wait_text(&id("too-small"), "small to draw")?;
            }
            let rect = page.rect(&id(figure))?;
            page.hover_at(&id(figure), rect.width * 0.9, rect.height * 0.6)?;
            page.wait_text(&tip, "after request")?;
            let before = page.text(&tip)?;
            page.press("w")?;
            let words = serde_json::to_string(&before)?;
            let tip = serde_json::to_string(&tip)?;
            page.wait_until(&format!(
                "(text => text.includes('after request') && text !== {words})(document.querySelector({tip}).innerText)"
            ))?;
        }
        Ok(())
    })
}

#[test]
fn files_of_ranks_stand_beside_each_other_on_one_scale() -> Result<()> {
    drive(|page| {
        let files = ["rank0", "rank1"].map(|name| {
            let file = fixture("x").with_file_name("snapshots").join(format!("{name}.pickle.gz"));
            Ok::<_, anyhow::Error>(file.canonicalize()?.display().to_string())
        });
        let files = files.into_iter().collect::<Result<Vec<String>>>()?;
        page.upload_all(&id("file"), &files)?;
        page.wait_for(&id("ranks"))?;
        page.wait_until("document.querySelectorAll('.ranks .rank').length === 2")?;
        // The rank that decides is shown once all are open.
        page.wait_text(&id("document-title"), "rank1.pickle.gz")?;
        page.click(".ranks .rank:nth-child(1)")?;
        page.wait_text(&id("document-title"), "rank0.pickle.gz")?;
        page.wait_for(".ranks .rank:nth-child(1)[aria-pressed='true']")?;
        page.check_accessible()
    })
}

#[test]
fn a_folder_opens_as_the_ranks_in_it() -> Result<()> {
    drive(|page| {
        let folder = tempfile::tempdir()?;
        let folder = folder.path();
        for name in ["rank0.pickle.gz", "rank1.pickle.gz"] {
            std::fs::copy(fixture("x").with_file_name("snapshots").join(name), folder.join(name))?;
        }
        std::fs::write(folder.join("notes.txt"), "not a snapshot")?;
        page.upload(&id("folder"), folder)?;
        page.wait_until("document.querySelectorAll('.ranks .rank').length === 2")?;
        page.wait_text(&id("document-title"), "rank1.pickle.gz")
    })
}

#[test]
fn panels_resize_by_pointer_and_keys_and_stay_so() -> Result<()> {
    drive(|page| {
        let width = |page: &Page| Ok::<_, anyhow::Error>(page.rect(".side")?.width);
        let height = |page: &Page| Ok::<_, anyhow::Error>(page.rect(".timeline .canvas-box")?.height);
        let (wide, high) = (width(page)?, height(page)?);
        page.execute("document.querySelector(arguments[0]).focus()", &[json!(id("divide-side"))])?;
        page.press(Key::Left)?;
        page.press(Key::Left)?;
        ensure!((width(page)? - wide - 48.0).abs() < 2.0, "{} of {wide}", width(page)?);
        let now = page.attribute(&id("divide-side"), "aria-valuenow")?.unwrap_or_default();
        ensure!(now.parse::<f64>().is_ok_and(|now| (now - wide - 48.0).abs() < 2.0), "{now}");
        page.drag(&id("divide-timeline"), (60.0, 4.0), (60.0, -36.0))?;
        ensure!((height(page)? - high + 40.0).abs() < 6.0, "{} of {high}", height(page)?);
        page.check_accessible()?;
        page.execute("location.reload()", &[])?;
        page.wait_for(&id("divide-side"))?;
        ensure!((width(page)? - wide - 48.0).abs() < 2.0 && (height(page)? - high + 40.0).abs() < 6.0);
        page.execute("document.querySelector(arguments[0]).focus()", &[json!(id("divide-side"))])?;
        page.press(Key::Enter)?;
        ensure!((width(page)? - wide).abs() < 2.0, "{} of {wide}", width(page)?);
        Ok(())
    })
}

#[test]
fn memory_over_time_is_high_and_is_made_higher_by_keys() -> Result<()> {
    drive(|page| {
        open(page, "resnet50_amp")?;
        let chart = page.rect(&id("lifetimes"))?;
        ensure!(chart.height >= 280.0, "{} pixels in a window of 768", chart.height);
        page.execute("document.querySelector(arguments[0]).focus()", &[json!(id("divide-timeline"))])?;
        page.press(Key::Down)?;
        let higher = || Ok((page.rect(&id("lifetimes"))?.height >= chart.height + 23.0).then_some(()));
        wait_for_answer("a higher figure", PATIENCE, higher)
    })
}

#[test]
fn memory_pools_stand_as_groups_in_workloads_and_snapshots() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "pools")?;
        page.click(&id("end"))?;
        page.wait_until(
            "document.querySelector(\"[data-testid='map']\").ariaLabel.includes('memory pools')",
        )?;
        page.upload(&id("file"), &fixture("programs/cudagraph_mlp"))?;
        page.wait_text(&id("document-title"), "cudagraph_mlp")?;
        page.press(Key::End)?;
        page.wait_until("document.querySelector(\"[data-testid='map']\").ariaLabel.includes('memory pools')")
            .map(drop)
    })
}

#[test]
fn all_segments_stand_over_the_map_with_a_lens() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &fixture("programs/gpt2_varlen"))?;
        page.wait_text(&id("segments-summary"), "160 segments")?;
        let overview = id("map-overview");
        let seen =
            || -> Result<String> { Ok(page.attribute(&overview, "aria-valuetext")?.unwrap_or_default()) };
        let lens = |page: &Page| {
            page.execute(
                "return document.querySelector('.map-overview .lens').getBoundingClientRect().left",
                &[],
            )
        };
        page.execute("document.querySelector('.map-overview').scrollIntoView({ block: 'center' })", &[])?;
        ensure!(seen()?.starts_with("segments 1 to "), "{}", seen()?);
        let left = lens(page)?.as_f64().context("a place")?;
        // A place of the strip is a place of the rows.
        let strip = page.rect(&overview)?;
        page.click_at(&overview, strip.width - 8.0, 12.0)?;
        page.wait_until("document.querySelector('.map-overview').ariaValueNow === '100'")?;
        ensure!(seen()?.contains(" to 160 of 160, "), "{}", seen()?);
        ensure!(lens(page)?.as_f64().is_some_and(|now| now > left + 100.0), "the lens has not moved");
        // The lens also moves by keys.
        page.press(Key::Home)?;
        page.wait_until("document.querySelector('.map-overview').ariaValueNow === '0'")?;
        page.press(Key::PageDown)?;
        page.wait_until("Number(document.querySelector('.map-overview').ariaValueNow) > 2")?;
        page.check_accessible()
    })
}

#[test]
fn the_map_does_not_jump_when_segments_come_and_go_above_its_rows() -> Result<()> {
    drive(|page| {
        // Segments have growing addresses, and the first segments are released at the end.
        let mut lines: Vec<_> = (0..40).map(|index| format!("a{index} = alloc 12 MiB")).collect();
        lines.extend(["free a1, a2, a3, a4".to_owned(), "empty_cache".to_owned()]);
        let text = lines.join("\n") + "\n";
        crate::write_workload(page, &text)?;
        page.wait_text(&id("position"), "of 45")?;
        page.press(Key::Escape)?;
        page.execute("document.activeElement.blur()", &[])?;
        page.press(Key::Left)?;
        page.wait_text(&id("position"), "request 44 of 45")?;
        let scroll = "document.querySelector(\"[data-testid='map']\").scrollTop";
        page.execute(&format!("{scroll} = 520"), &[])?;
        page.wait_until("Number(document.querySelector('.map-overview').ariaValueNow) > 20")?;
        let row = "return document.querySelector(\"[data-testid='map']\").scrollTop";
        page.press(Key::Right)?;
        // In the step that releases them, the four rows are still drawn.
        page.wait_text(&id("position"), "request 45 of 45")?;
        ensure!(page.execute(row, &[])? == json!(520), "{}", page.execute(row, &[])?);
        page.send_keys(&id("workload-text"), "b = alloc 512\n")?;
        page.click(&id("end"))?;
        page.wait_text(&id("position"), "request 46 of 46")?;
        // Four rows above those in sight were removed, and the rows in sight stay at their places.
        page.wait_until(&format!("Math.abs({scroll} - (520 - 4 * 26)) < 2"))?;
        Ok(())
    })
}

#[test]
fn panels_are_hidden_shown_alone_and_remembered() -> Result<()> {
    drive(|page| {
        page.goto("#preset=terms&step=5")?;
        page.wait_for(".stage-panel")?;
        page.press("3")?;
        page.wait_gone(".map")?;
        page.check_accessible()?;
        page.press("3")?;
        page.wait_for(".map")?;
        // A digit that was meant for a field hides a panel, and a message says how to show the panel again.
        page.press("5")?;
        page.wait_gone(".side")?;
        page.wait_text(&id("message"), "Esc or 0 shows all panels")?;
        page.press(Key::Escape)?;
        page.wait_for(".side")?;
        page.wait_gone(&id("message"))?;
        page.press("5")?;
        page.wait_gone(".side")?;
        page.press_with(&Key::Shift, "1")?;
        page.wait_gone(".map")?;
        page.wait_for(".stage-panel")?;
        ensure!(page.rect(".stage-panel")?.width > 900.0, "the figure has not grown");
        page.execute("location.reload()", &[])?;
        page.wait_for(".stage-panel")?;
        ensure!(page.count(".map")? == 1);
        page.wait_gone(".map")?;
        page.press(Key::Escape)?;
        page.wait_for(".map")?;
        page.wait_gone(".side")?;
        // A panel that a key asks for is shown.
        page.press("/")?;
        page.wait_for(".side")?;
        page.wait_until("document.activeElement.id === 'workload-text'")?;
        page.execute("document.activeElement.blur()", &[])?;
        page.press("2")?;
        page.wait_gone(".over-time")?;
        page.click(&id("all-panels"))?;
        page.wait_for(".over-time")
    })
}
