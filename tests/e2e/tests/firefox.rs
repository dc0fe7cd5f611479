//! The page in Firefox: it loads, a lesson asks and answers, a link leads to its step, a sample and a program
//! run in their workers.

use anyhow::Result;
use blockyard_e2e::{Page, Window};

fn id(name: &str) -> String {
    format!("[data-testid=\"{name}\"]")
}

#[test]
#[ignore = "needs Firefox and geckodriver: `cargo xtask ci` runs it where these are"]
fn the_doors_the_links_and_the_workers_work() -> Result<()> {
    let page = Page::firefox(Window::default())?;
    page.goto("/")?;
    page.wait_text("h1", "more GPU memory than your tensors use")?;
    page.click(&id("story-create"))?;
    page.wait_text(&id("readout-nvidia-smi"), "538 MiB")?;

    page.goto("/#lesson=reserved&card=2")?;
    page.wait_text(&id("card-position"), "Card 2 of")?;
    page.click(&id("choice-1"))?;
    page.wait_text(&id("answer"), "The answer is: 20 MiB")?;
    page.click(&id("card-next"))?;
    page.wait_until("location.hash === '#lesson=reserved&card=3'")?;

    page.goto("/#preset=terms&step=5")?;
    page.wait_text(&id("position"), "request 5 of")?;

    page.goto("/#workbench")?;
    page.goto("/#sample=growing_sizes")?;
    page.wait_text(&id("headline"), "identical")?;

    page.goto("/#python")?;
    page.wait_for(&id("run-program"))?;
    let script = "const text = document.getElementById('program-text');
        text.value = arguments[0];
        text.dispatchEvent(new Event('input', { bubbles: true }));";
    let program = "import torch\na = torch.empty(1024, device='cuda')\nprint(torch.cuda.memory_allocated())";
    page.execute(script, &[program.into()])?;
    page.click(&id("run-program"))?;
    // Python is fetched and compiled first.
    let ended = (0..6).any(|_| page.wait_text(&id("program-status"), "Finished").is_ok());
    anyhow::ensure!(ended, "the program did not end");
    page.wait_text(&id("printed"), "4096")
}
