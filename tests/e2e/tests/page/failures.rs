//! The way of a reader whose training ran out of memory: the first sentence, a change, the comparison.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, drive, drive_at};
use serde_json::json;

use crate::{choose, fixture, id, wait_long};

const NAME: &str = "checkerboard_default_100.pickle.gz";

/// Every second of 24 blocks in two segments is freed, and the holes are too small for the request of line 8.
const FRAGMENTS: &str = "import torch
def buffer(mib):
    return torch.empty(mib, 1024, 1024, device='cuda', dtype=torch.uint8)
first = [buffer(240) for _ in range(2)]; del first
kept = [buffer(20) for _ in range(24)]
for place in range(0, 24, 2):
    kept[place] = None
large = buffer(300)
";

/// Runs a program that runs out of memory at this line.
fn run(page: &Page, program: &str, line: u32) -> Result<()> {
    let script = "const set = (element, value, event) => {
            element.value = value;
            element.dispatchEvent(new Event(event, { bubbles: true }));
        };
        set(document.querySelector('[data-testid=program-capacity]'), '1500 MiB', 'input');
        set(document.getElementById('program-text'), arguments[0], 'input');";
    page.execute(script, &[json!(program)])?;
    page.click(&id("run-program"))?;
    // Python is fetched and compiled.
    wait_long(page, &id("program-status"), &format!("out of memory at line {line}"))
}

#[test]
fn a_failed_program_runs_again_with_the_setting_that_helps() -> Result<()> {
    drive_at("/#python", Window::default(), GpuChoice::None, |page| {
        page.wait_text(&id("invitation"), "The program has not run yet: Run starts it.")?;
        run(page, FRAGMENTS, 3)?;
        page.click(&id("program-answers"))?;
        // The first sentence has the line of the program as a link.
        page.wait_text(&id("verdict-headline"), "Out of memory at line 3")?;
        page.click(&id("verdict-line-link"))?;
        wait_long(
            page,
            &id("program-again"),
            "With expandable_segments:True the program runs to its end, and reserves at most",
        )?;
        page.check_accessible()?;
        // The run with the change is one click away.
        page.click(&id("again-show"))?;
        wait_long(page, &id("program-status"), "Finished")?;
        ensure!(page.value(&id("program-config"))? == "expandable_segments:True", "the setting is not shown");
        Ok(())
    })
}

#[test]
fn a_program_that_fails_later_says_at_which_line_and_fits_a_larger_gpu() -> Result<()> {
    drive_at("/#python", Window::default(), GpuChoice::None, |page| {
        run(
            page,
            &format!("{FRAGMENTS}more = torch.empty(250, 1024, 1024, device='cuda', dtype=torch.uint8)\n"),
            3,
        )?;
        page.click(&id("program-answers"))?;
        wait_long(
            page,
            &id("program-again"),
            "With expandable_segments:True the program runs out of memory, too, at line 9",
        )?;
        choose(page, "again-gpu", "t4")?;
        wait_long(page, &id("program-again"), "With Tesla T4 (14.74 GiB) the program runs to its end")?;
        page.check_accessible()
    })
}

#[test]
fn a_long_run_with_a_change_is_cancelled() -> Result<()> {
    drive_at("/#python", Window::default(), GpuChoice::None, |page| {
        // Without a change the program ends at once; on a GPU with room it would run without an end.
        run(page, &format!("{FRAGMENTS}while True:\n    pass\n"), 3)?;
        page.click(&id("program-answers"))?;
        wait_long(page, &id("again-running"), "The program runs with expandable_segments:True for ")?;
        page.click(&id("again-cancel"))?;
        page.wait_gone(&id("again-running"))?;
        page.wait_text(&id("program-again"), "Run it again with").map(drop)
    })
}

#[test]
fn a_device_is_a_gpu_or_its_size_and_the_context_is_taken_off() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &fixture("x").with_file_name("snapshots").join(NAME))?;
        page.wait_text(&id("verdict-headline"), "Out of memory")?;
        page.click(&id("tab-lab"))?;
        page.click(&id("lab-details"))?;
        page.click(&id("lab-what-if"))?;
        page.fill(&id("lab-capacity"), "T4")?;
        page.click(&id("lab-ask"))?;
        page.wait_text(&id("answer-what-if"), "Tesla T4 (14.01 GiB for PyTorch)")?;
        page.fill(&id("lab-capacity"), "24 GB")?;
        page.click(&id("lab-ask"))?;
        page.wait_text(
            &id("answer-what-if"),
            "a device of 24 GB (22.35 GiB, of which 21.62 GiB for PyTorch)",
        )?;
        page.fill(&id("lab-capacity"), "B9000")?;
        page.click(&id("lab-ask"))?;
        page.wait_text(
            "[data-testid=lab-error]:not([hidden])",
            "B9000 is neither a size, as 24 GiB, nor a GPU",
        )?;
        page.check_accessible()
    })
}

#[test]
fn a_note_for_the_report_stays_with_its_file() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &fixture("x").with_file_name("snapshots").join(NAME))?;
        page.wait_text(&id("verdict-headline"), "Out of memory")?;
        page.click(&id("share"))?;
        page.fill(&id("report-note"), "since Monday")?;
        page.click(&id("share-close"))?;
        page.click(&id("share"))?;
        ensure!(page.value(&id("report-note"))? == "since Monday", "the note is lost");
        page.click(&id("share-close"))?;
        page.upload(&id("file"), &fixture("x").with_file_name("oom").join("loss_history_100.pickle.gz"))?;
        page.wait_text(&id("verdict-headline"), "by a leak")?;
        page.click(&id("share"))?;
        ensure!(page.value(&id("report-note"))?.is_empty(), "the note of another file is kept");
        Ok(())
    })
}

/// The request fails by the program's own limit, with most of the GPU free.
const LIMITED: &str = "import torch
torch.cuda.set_per_process_memory_fraction(0.05)
x = torch.empty(200, 1024, 1024, device='cuda', dtype=torch.uint8)
";

#[test]
fn a_program_that_limits_itself_is_out_of_memory_by_its_limit_and_says_what_it_needs() -> Result<()> {
    drive_at("/#python", Window::default(), GpuChoice::None, |page| {
        run(page, LIMITED, 3)?;
        page.click(&id("ask-helps"))?;
        page.wait_text(&id("program-need"), "the program may fail at the next one")?;
        page.click(&id("again-need"))?;
        wait_long(
            page,
            &id("program-need"),
            "With 1 TiB of memory the program runs to its end, and reserves at most 200 MiB",
        )?;
        page.check_accessible()?;
        page.click(&id("program-answers"))?;
        page.wait_text(&id("verdict-headline"), "Out of memory at line 3").map(drop)
    })
}

/// A list keeps each loss with its graph.
const KEPT: &str = "import torch
model = torch.nn.Linear(4096, 4096).cuda()
losses = []
for _ in range(100):
    losses.append(model(torch.randn(4096, 4096, device='cuda')).square().mean())
";

#[test]
fn what_grows_comes_first_among_what_would_have_helped() -> Result<()> {
    drive_at("/#python", Window::default(), GpuChoice::None, |page| {
        run(page, KEPT, 5)?;
        page.click(&id("ask-helps"))?;
        page.wait_text(&id("step-leak"), "Line 5: losses keeps the backward graphs of")?;
        page.check_accessible()
    })
}
