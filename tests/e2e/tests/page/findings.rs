//! Defects that people who tried the page met first, and that must not come back.

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, drive, drive_at};
use serde_json::json;

use crate::{choose, fixture, id, run_program, snapshot, wait_long};

const LAPTOP: Window = Window { width: 1366, height: 768 };
const PHONE: Window = Window { width: 390, height: 844 };
/// A laptop's screen at 200 percent.
const ZOOMED: Window = Window { width: 683, height: 384 };

/// The upper and the lower edge of an element in the window, without scrolling it into view.
fn edges(page: &Page, css: &str) -> Result<(f64, f64)> {
    page.wait_for(css)?;
    let script = "const { top, bottom } = document.querySelector(arguments[0]).getBoundingClientRect();
        return [top, bottom];";
    Ok(serde_json::from_value(page.execute(script, &[json!(css)])?)?)
}

#[test]
fn in_one_column_the_verdict_stands_above_controls_and_figures() -> Result<()> {
    for window in [PHONE, ZOOMED] {
        drive_at("/#workbench", window, GpuChoice::None, |page| {
            page.upload(&id("file"), &snapshot("oom/loss_history_100"))?;
            page.wait_text(&id("verdict-headline"), "Out of memory by a leak")?;
            ensure!(page.count(&id("run-verdict"))? == 1, "the verdict stands once");
            page.execute("scrollTo(0, 0)", &[])?;
            let (_, foot) = edges(page, &id("verdict-headline"))?;
            ensure!(foot <= f64::from(window.height), "the verdict is below the fold: {foot}");
            for below in [".open-bar", ".transport", id("map").as_str(), "#tab-lab"] {
                ensure!(foot < edges(page, below)?.0, "the verdict is below {below}");
            }
            page.check_accessible()
        })?;
    }
    Ok(())
}

#[test]
fn files_of_ranks_have_a_verdict_about_the_rank_that_decides() -> Result<()> {
    drive_at("/#workbench", LAPTOP, GpuChoice::None, |page| {
        let files = ["rank0", "rank1"].map(|name| {
            Ok::<_, anyhow::Error>(
                snapshot(&format!("snapshots/{name}")).canonicalize()?.display().to_string(),
            )
        });
        page.upload_all(&id("file"), &files.into_iter().collect::<Result<Vec<String>>>()?)?;
        page.wait_text(&id("ranks-summary"), "Most is allocated on rank1.pickle.gz: 860.97 MiB at its peak")?;
        page.wait_text(&id("ranks-summary"), "The line that differs most is ")?;
        page.wait_text(
            &id("verdict-rank"),
            "About rank1.pickle.gz, where most is allocated, one of 2 ranks.",
        )?;
        page.wait_text(&id("verdict-headline"), "It fits: at most 860.97 MiB are allocated, and ")?;
        // Another rank that the reader chooses has its own verdict.
        page.click(".ranks .rank:nth-child(1)")?;
        page.wait_text(&id("verdict-rank"), "About rank0.pickle.gz, one of 2 ranks.")?;
        page.wait_text(&id("verdict-headline"), "It fits: at most 536.84 MiB are allocated, and ")
    })
}

#[test]
fn the_verdict_and_the_figures_have_one_peak() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &fixture("programs/resnet50_amp"))?;
        page.wait_text(&id("verdict-headline"), "It fits")?;
        ensure!(page.count(&id("verdict-other-peak"))? == 0, "ResNet-50 has one peak");
        page.wait_text(&id("position"), "request 7,024 of")?;
        page.click("#tab-holders")?;
        page.wait_text(&id("holders-summary"), "at the peak, after request 7,024")?;
        page.click("#tab-lab")?;
        page.upload(&id("file"), &fixture("programs/gpt2_varlen"))?;
        page.wait_text(&id("verdict-headline"), "It fits: at most 10.12 GiB")?;
        ensure!(page.count(&id("verdict-other-peak"))? == 0, "GPT-2 has one peak");
        Ok(())
    })
}

#[test]
fn no_border_moves_when_tabs_change() -> Result<()> {
    drive_at("/#workbench", LAPTOP, GpuChoice::None, |page| {
        page.upload(&id("file"), &fixture("programs/gnn_random"))?;
        page.wait_text(&id("verdict-headline"), "It fits")?;
        let (side, tabs) = (page.rect(&id("divide-side"))?, page.rect(".tabs")?);
        for tab in ["#tab-source", "#tab-holders", "#tab-numbers", "#tab-lab"] {
            page.click(tab)?;
            let (now, below) = (page.rect(&id("divide-side"))?, page.rect(".tabs")?);
            ensure!(
                (now.x - side.x).abs() < 1.0 && (below.y - tabs.y).abs() < 1.0,
                "a border moves with {tab}"
            );
        }
        Ok(())
    })
}

#[test]
fn while_a_program_runs_the_figures_of_the_run_before_are_dimmed() -> Result<()> {
    drive_at("/#python", LAPTOP, GpuChoice::None, |page| {
        run_program(page, "import torch\na = torch.empty(1024, 1024, device='cuda')\n")?;
        wait_long(page, &id("program-status"), "Finished: 1 request")?;
        ensure!(page.count(".figures.shows-old")? == 0, "the run is the new one");
        run_program(page, "import torch\na = torch.empty(1024, 1024, device='cuda')\nwhile True: pass\n")?;
        page.wait_for(".figures.shows-old[aria-busy='true'] .old-run:not([hidden])")?;
        page.wait_text(&id("old-run"), "The program runs. Below is still the run before.")?;
        let opacity =
            "return Number(getComputedStyle(document.querySelector('.figures .stage-panel')).opacity)";
        ensure!(page.execute(opacity, &[])?.as_f64().is_some_and(|opacity| opacity < 0.6), "not dimmed");
        page.click(&id("stop-program"))?;
        page.wait_text(&id("old-run"), "The program has no result. Below is still the run before.")?;
        run_program(page, "import torch\n")?;
        page.wait_gone(&id("old-run"))
    })
}

#[test]
fn a_frame_of_640_by_400_has_its_bar_in_sight() -> Result<()> {
    let frame = Window { width: 640, height: 400 };
    for (address, button) in [
        ("/?embed=stage#preset=terms&step=3", "forward"),
        ("/?embed=lesson#lesson=reserved&card=2", "step-forward"),
    ] {
        drive_at(address, frame, GpuChoice::None, |page| {
            page.wait_for(&id(button))?;
            for scroll in [0, 100_000] {
                page.execute("scrollTo(0, arguments[0])", &[json!(scroll)])?;
                let (top, foot) = edges(page, &id(button))?;
                let height = page.execute("return innerHeight", &[])?.as_f64().unwrap_or_default();
                ensure!(
                    top >= 0.0 && foot <= height + 1.0,
                    "{address}, scrolled by {scroll}: {button} is from {top} to {foot} of {height}"
                );
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn the_lines_of_an_exercise_have_room_for_eighty_letters() -> Result<()> {
    drive_at("/#lesson=reserved&card=6", Window { width: 1440, height: 900 }, GpuChoice::None, |page| {
        page.wait_for(&id("exercise-text"))?;
        let letters = "const area = document.querySelector('[data-testid=exercise-text]');
            const style = getComputedStyle(area);
            const brush = document.createElement('canvas').getContext('2d');
            brush.font = style.font;
            const room = area.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
            return Math.floor(room / brush.measureText('x').width);";
        let letters = page.execute(letters, &[])?.as_u64().unwrap_or_default();
        ensure!(letters >= 72, "{letters} letters");
        Ok(())
    })
}

/// Each card as a class sees it, its question answered.
#[test]
fn presented_cards_fit_the_screen_and_fill_it() -> Result<()> {
    for (width, height) in [(1366, 768), (3840, 2160)] {
        drive_at("/#lesson=reserved&card=1", Window { width, height }, GpuChoice::None, |page| {
            // A browser without a screen chooses the size of a page on the whole screen.
            let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
            page.devtools("Emulation.setDeviceMetricsOverride", &screen)?;
            page.click(&id("present"))?;
            page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
            let mut title = String::new();
            for _ in 0..16 {
                title = page.text(&id("card-title"))?;
                let is_exercise = page.count(".exercise")? > 0;
                // An exercise may be longer than a screen.
                if !is_exercise {
                    page.wait_until("document.documentElement.scrollHeight <= innerHeight + 1")
                        .with_context(|| format!("{title} at {width} is too high"))?;
                    let share = "return parseFloat(getComputedStyle(document.querySelector('.lesson-card')).fontSize) / innerHeight";
                    let share = page.execute(share, &[])?.as_f64().unwrap_or_default();
                    // The last row of a room reads letters of a fiftieth of the height.
                    ensure!(share >= 0.02, "{title} at {width}: letters of {share} of the height");
                }
                page.press(blockyard_e2e::Key::PageDown)?;
                std::thread::sleep(std::time::Duration::from_millis(120));
                let is_end = "return !location.hash.startsWith('#lesson=reserved&')";
                if page.execute(is_end, &[])?.as_bool() == Some(true) {
                    break;
                }
            }
            ensure!(title.starts_with("Exercise"), "the last card is {title}");
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn an_old_pickle_has_a_way_out() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "terms")?;
        page.click("#tab-lab")?;
        page.click(&id("lab-details"))?;
        page.click(&id("lab-what-if"))?;
        page.fill(&id("lab-conf"), "")?;
        page.click(&id("lab-ask"))?;
        page.wait_for(&id("lab-timelines"))?;
        page.drop_file("main", "old.pickle", b"(dp0\nVsegments\np1\n(lp2\ns.")?;
        page.wait_text(&id("message"), "pickle.dump(snapshot, file, protocol=4)")
    })
}
