//! "Will it fit?": the largest value that fits, and a safe one, for a program that runs in the page.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window, drive_at};
use serde_json::json;

use crate::{choose, id, run_program, scroll_and_click, set_field, wait_long};

const PROGRAM: &str = "import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument('--batch-size', type=int, default=64)
parser.add_argument('--amp', action='store_true')
args = parser.parse_args()
dtype = torch.float16 if args.amp else torch.float32
x = torch.empty(args.batch_size, 5, 2**20, device='cuda', dtype=dtype)
print('done', args.batch_size)
";

const LAPTOP: Window = Window { width: 1366, height: 768 };

#[test]
fn the_largest_batch_that_fits_is_found_by_running_the_program() -> Result<()> {
    drive_at("/#python", Window::default(), GpuChoice::None, |page| {
        set_field(page, "program-capacity", "1500 MiB")?;
        run_program(page, PROGRAM)?;
        wait_long(page, &id("program-status"), "Ended by an exception")?;
        page.wait_for(&id("fit-find"))?;
        page.check_accessible()?;
        scroll_and_click(page, "fit-find")?;
        // A run can be cancelled, and the search continues from there.
        page.wait_for("[data-testid=fit-running]:not([hidden])")?;
        scroll_and_click(page, "fit-cancel")?;
        page.wait_gone("[data-testid=fit-running]:not([hidden])")?;
        scroll_and_click(page, "fit-find")?;
        // Of 1500 MiB the CUDA context and libraries leave 751: 37 samples of 20 MiB.
        wait_long(
            page,
            &id("fit"),
            "The largest --batch-size that fits a GPU of 1500 MiB is 37: peak 740 MiB reserved; 38 runs out of memory.",
        )?;
        wait_long(
            page,
            &id("fit"),
            "With --amp the largest --batch-size that fits a GPU of 1500 MiB is 75: peak 750 MiB reserved",
        )?;
        ensure!(page.count(&id("fit-answer"))? == 2, "two answers");
        // 5 % of 1500 MiB are kept: at most 676 MiB are for samples.
        page.wait_text(
            &id("fit-answer"),
            "A safe --batch-size is 32: 111.19 MiB stay free, 7.4 % of 1.46 GiB",
        )?;
        page.check_accessible()?;
        scroll_and_click(page, "fit-show")?;
        wait_long(page, &id("program-output"), "done 37")?;
        // A program without a number has no such button.
        run_program(page, "import torch\nx = torch.empty(2**31, device='cuda')\n")?;
        wait_long(page, &id("program-status"), "Ended by an exception")?;
        page.wait_gone("[data-testid=fit]:not([hidden])")
    })
}

/// Writes a script into the field of the first screen.
fn paste(page: &Page, script: &str) -> Result<()> {
    let write = "const field = document.querySelector('[data-testid=door-script]');
        field.value = arguments[0];
        field.dispatchEvent(new Event('input', { bubbles: true }));";
    page.execute(write, &[json!(script)]).map(drop)
}

#[test]
fn from_the_first_screen_a_script_that_fits_has_a_curve_and_a_safe_value() -> Result<()> {
    drive_at("/", LAPTOP, GpuChoice::None, |page| {
        page.wait_for(&id("door-fit"))?;
        paste(
            page,
            "import torch\nlayers, batch = 3, 64\nx = torch.empty(batch, 64, 2**20, device='cuda')\n",
        )?;
        choose(page, "door-gpu", "t4")?;
        page.wait_text(&id("door-varied"), "layers")?;
        ensure!(page.value(&id("door-varied"))? == "batch", "the batch is not the first");
        page.check_accessible()?;
        page.click(&id("door-fit"))?;
        // A sample takes 256 MiB: 64 of them do not fit a T4, and 32 do.
        wait_long(page, &id("fit-answer"), "The largest batch that fits the Tesla T4 is 56")?;
        page.wait_text(&id("fit-answer"), "57 runs out of memory. A safe batch is 5")?;
        page.wait_text(&id("fit-answer"), "where 5 % are kept in reserve.")?;
        page.wait_for(&id("fit-curve"))?;
        let curve = page.rect(&id("fit-curve"))?;
        ensure!(curve.y > 0.0 && curve.y + curve.height <= 768.0, "the curve is not in sight: {curve:?}");
        page.check_accessible()?;
        // A program that fits has the question too, and another number can vary.
        run_program(
            page,
            "import torch\nbatch = 2\nwidth = 4\nx = torch.empty(batch, width, 2**28, device='cuda')\n",
        )?;
        wait_long(page, &id("program-status"), "Finished")?;
        page.wait_gone(&id("fit-answer"))?;
        choose(page, "fit-varied", "width")?;
        scroll_and_click(page, "fit-find")?;
        // A unit takes 2 GiB of 14.01 GiB.
        wait_long(
            page,
            &id("fit-answer"),
            "The largest width that fits the Tesla T4 is 7: peak 14 GiB reserved",
        )?;
        page.wait_text(&id("fit-answer"), "A safe width is 6")
    })
}

#[test]
fn a_program_whose_library_is_missing_gets_the_command() -> Result<()> {
    drive_at("/", LAPTOP, GpuChoice::None, |page| {
        page.wait_for(&id("door-fit"))?;
        paste(
            page,
            "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--train-batch-size', type=int, default=8)\nimport a_library_of_mine\n",
        )?;
        page.click(&id("door-fit"))?;
        wait_long(page, &id("ended"), "This page does not have a_library_of_mine.")?;
        page.wait_text(
            &id("fit-command"),
            "blockyard fit train.py --vary train-batch-size=1..512 --gpu h200",
        )?;
        page.check_accessible()
    })
}
