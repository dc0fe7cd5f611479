//! The largest batch that fits, for a program that ran out of memory.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Window, drive_at};

use crate::{id, run_program, scroll_and_click, set_field, wait_long};

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

#[test]
fn the_largest_batch_that_fits_is_found_by_running_the_program() -> Result<()> {
    drive_at("/#python", Window::default(), GpuChoice::None, |page| {
        set_field(page, "program-capacity", "1500 MiB")?;
        run_program(page, PROGRAM)?;
        wait_long(page, &id("program-status"), "Ended by an exception")?;
        page.wait_for(&id("batch-find"))?;
        page.check_accessible()?;
        scroll_and_click(page, "batch-find")?;
        // A run can be cancelled, and the search continues from there.
        page.wait_for("[data-testid=batch-running]:not([hidden])")?;
        scroll_and_click(page, "batch-cancel")?;
        page.wait_gone("[data-testid=batch-running]:not([hidden])")?;
        scroll_and_click(page, "batch-find")?;
        // Of 1500 MiB the CUDA context and libraries leave 751: 37 samples of 20 MiB.
        wait_long(
            page,
            &id("batch"),
            "The largest --batch-size that fits the NVIDIA H200 is 37: peak 740 MiB reserved; 38 runs out of memory.",
        )?;
        wait_long(
            page,
            &id("batch"),
            "With --amp the batch of 64 fits the NVIDIA H200 as it is: peak 640 MiB reserved.",
        )?;
        ensure!(page.count(&id("batch-answer"))? == 2, "two answers");
        page.check_accessible()?;
        scroll_and_click(page, "batch-show")?;
        wait_long(page, &id("program-output"), "done 37")?;
        // A program without a batch size has no such button.
        run_program(page, "import torch\nx = torch.empty(2**31, device='cuda')\n")?;
        wait_long(page, &id("program-status"), "Ended by an exception")?;
        page.wait_gone("[data-testid=batch]:not([hidden])")
    })
}
