//! Python programs in the page: they run, print, stop, fail and are drawn.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Page, Window, built_page, drive_at};
use serde_json::json;

use crate::{choose, id, run_program, set_field, wait_long};

/// Python is compiled on the first run.
fn at(window: Window, test: impl Fn(&mut Page) -> Result<()>) -> Result<()> {
    drive_at("/#python", window, GpuChoice::None, test)
}

const TWO_TENSORS: &str = "import torch
print('start')
a = torch.empty(1024, 1024, device='cuda')
print('one', torch.cuda.memory_allocated())
b = torch.empty(1024, 1024, device='cuda')
del a
print('end', torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
";

#[test]
fn a_pasted_program_prints_and_each_line_has_its_memory() -> Result<()> {
    at(Window::default(), |page| {
        page.check_accessible()?;
        run_program(page, TWO_TENSORS)?;
        wait_long(page, &id("program-status"), "Finished: 3 requests")?;
        page.wait_text(&id("program-output"), "end 4194304 8388608")?;
        // The figures open at the peak, where both tensors exist. The program ran to its end, so no output is
        // pale.
        page.wait_text(&id("holding-lines"), "line 5 b = torch.empty(1024, 1024, device='cuda')")?;
        page.wait_text(&id("holding-lines"), "50%")?;
        page.wait_text(&id("program-origin"), "Line 5")?;
        page.wait_text(&id("printed"), "end 4194304 8388608")?;
        // The non-PyTorch memory has its parts in the figure, and its reason beside the figure.
        page.wait_text(&id("set-aside"), "748.81 MiB are set aside from the start")?;
        page.wait_text(&id("alive-column"), "4 MiB")?;
        page.wait_text(&id("categories"), "input")?;
        // Memory over time is as high as in an opened file, with its axis.
        let high = page.rect(&id("timeline"))?.height;
        ensure!(high >= 120.0, "memory over time is {high} pixels high");
        // The figures have the categories' colors.
        page.wait_until("document.querySelector('[data-testid=color-by]')?.value === 'category'")?;
        page.wait_text(&id("legend"), "input")?;
        page.check_accessible()?;
        // Back at the first tensor, the last line is yet to be printed.
        page.click(&id("start"))?;
        page.click(&id("forward"))?;
        page.wait_text(&id("program-origin"), "Line 3: empty, forward, input")?;
        page.wait_text(&id("printed"), "one 4194304")?;
        page.wait_text(&id("printed-later"), "end 4194304")?;
        let printed =
            page.execute("return document.querySelector('[data-testid=printed]').textContent", &[])?;
        ensure!(!printed.as_str().unwrap_or_default().contains("end"), "{printed}");
        Ok(())
    })
}

#[test]
fn a_chosen_block_says_which_line_made_it_and_why_it_is_alive() -> Result<()> {
    at(Window::default(), |page| {
        run_program(page, TWO_TENSORS)?;
        wait_long(page, &id("program-status"), "Finished: 3 requests")?;
        page.wait_text(&id("peak-column"), "4 MiB")?;
        page.click(&id("start"))?;
        page.click(&id("forward"))?;
        page.execute("document.querySelector('[data-testid=map]').focus()", &[])?;
        page.press(Key::Home)?;
        page.press(Key::Enter)?;
        page.wait_text(&id("block-origin"), "in line 3 by empty (forward). Category: input.")?;
        page.wait_text(&id("block-alive"), "Alive because of: a.")?;
        // The requests of a line lead to their steps.
        page.click("[data-testid='line-requests'] summary")?;
        page.wait_text(
            &id("line-requests"),
            "Line 3, 1 request, 4 MiB requested in all, at most 4 MiB in use at once",
        )?;
        page.check_accessible()
    })
}

#[test]
fn other_settings_run_the_program_again_and_the_peaks_stand_side_by_side() -> Result<()> {
    at(Window::default(), |page| {
        run_program(page, "import torch\nx = torch.empty(512, 1024, device='cuda')\n")?;
        wait_long(page, &id("program-status"), "Finished: 1 request to the allocator")?;
        let script = "const field = document.querySelector('[data-testid=program-config]');
            field.value = 'large_segment_size_mb:64';
            field.dispatchEvent(new Event('change', { bubbles: true }));";
        page.execute(script, &[])?;
        wait_long(
            page,
            &id("program-status"),
            "Reserved at most: 64 MiB; with the default settings it was 20 MiB.",
        )
    })
}

#[test]
fn a_loop_without_an_end_is_stopped_and_the_next_program_runs() -> Result<()> {
    at(Window::default(), |page| {
        run_program(page, "print('before')\nwhile True:\n    pass\n")?;
        wait_long(page, &id("printed"), "before")?;
        page.wait_text(&id("program-status"), "Running for ")?;
        page.wait_text(&id("program-status"), "1 line printed")?;
        page.click(&id("stop-program"))?;
        page.wait_text(&id("program-status"), "Stopped; the output stays")?;
        page.wait_text(&id("printed"), "before")?;
        run_program(page, "print('again')\n")?;
        wait_long(page, &id("program-status"), "Finished")?;
        page.wait_text(&id("printed"), "again")
    })
}

#[test]
fn long_lists_fit_and_programs_that_take_too_much_end_in_words() -> Result<()> {
    at(Window::default(), |page| {
        let long = "import random
from torch.utils.data import DataLoader
zeros, x = [0] * 1_000_000, list(range(100000))
random.shuffle(x)
loader = DataLoader(range(60000), batch_size=1000, shuffle=True, collate_fn=list)
print(len(zeros), sum(x), sum(len(part) for part in loader))
";
        run_program(page, long)?;
        wait_long(page, &id("program-status"), "Finished")?;
        page.wait_text(&id("printed"), "1000000 4999950000 60000")?;
        run_program(page, "x = 'x'\nwhile True:\n    x += x\n")?;
        wait_long(page, &id("program-status"), "Ended by an exception at line 3")?;
        page.wait_text(&id("traceback"), "MemoryError")?;
        run_program(page, "def f(n):\n    return f(n + 1)\nf(0)\n")?;
        wait_long(page, &id("program-status"), "Ended by an exception at line 2")?;
        page.wait_text(&id("traceback"), "RecursionError: maximum recursion depth exceeded")?;
        // A run that was stopped shows nothing of the run before.
        run_program(page, "print('before')\nwhile True:\n    pass\n")?;
        page.wait_text(&id("printed"), "before")?;
        page.click(&id("stop-program"))?;
        page.wait_text(&id("program-status"), "Stopped")?;
        page.wait_until("!document.querySelector('[data-testid=traceback]')").map(drop)
    })
}

const WITH_ARGUMENTS: &str = "import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument('--size', type=int, required=True)
arguments = parser.parse_args()
kept = [torch.empty(arguments.size, device='cuda', dtype=torch.uint8) for _ in range(3)]
print('size', arguments.size)
";

#[test]
fn a_program_has_arguments_and_its_link_has_them_too() -> Result<()> {
    at(Window::default(), |page| {
        set_field(page, "program-arguments", "--size '2097152")?;
        run_program(page, WITH_ARGUMENTS)?;
        page.wait_text("body", "The arguments are wrong: a quotation mark is not closed.")?;
        set_field(page, "program-arguments", "--size 2097152")?;
        run_program(page, WITH_ARGUMENTS)?;
        wait_long(page, &id("program-status"), "Finished: 3 requests")?;
        page.wait_text(&id("program-output"), "size 2097152")?;
        page.wait_until("decodeURIComponent(location.hash).includes('args=--size')")?;
        // Other arguments run it again.
        set_field(page, "program-arguments", "--size 4194304")?;
        page.wait_text(&id("program-output"), "size 4194304")?;
        page.wait_until("decodeURIComponent(location.hash).includes('4194304')")?;
        // A reload keeps them, and the GPU.
        choose(page, "program-gpu", "rtx4090")?;
        page.wait_until("location.hash.includes('gpu=rtx4090')")?;
        page.execute("location.reload()", &[])?;
        page.wait_until(
            "document.querySelector('[data-testid=program-arguments]')?.value === '--size 4194304'",
        )?;
        page.wait_until("document.querySelector('[data-testid=program-gpu]')?.value === 'rtx4090'").map(drop)
    })
}

#[test]
fn a_program_that_runs_out_of_memory_opens_at_the_failure_and_the_answers_know_it() -> Result<()> {
    at(Window::default(), |page| {
        set_field(page, "program-capacity", "1 GiB")?;
        run_program(
            page,
            "import torch\nkept = []\nfor _ in range(60):\n    kept.append(torch.empty(24, 1024, 1024, device='cuda', dtype=torch.uint8))\n",
        )?;
        wait_long(page, &id("program-status"), "Ended by an exception")?;
        page.wait_text(".holding-lines h2", "What holds the memory at the failure")?;
        page.wait_text(&id("holding-lines"), "line 4")?;
        page.wait_text(&id("program-origin"), "Line 4")?;
        page.click(&id("program-answers"))?;
        page.wait_text(&id("verdict-headline"), "Out of memory")?;
        page.wait_text(&id("verdict-held"), "program.py:4")?;
        page.check_accessible()
    })
}

#[test]
fn an_exception_has_its_traceback_and_an_out_of_memory_can_be_caught() -> Result<()> {
    at(Window::default(), |page| {
        run_program(page, "import torch\nx = torch.empty(4, device='cuda')\nprint(undefined_name)\n")?;
        wait_long(page, &id("program-status"), "Ended by an exception")?;
        page.wait_text(&id("traceback"), "line 3")?;
        page.wait_text(&id("traceback"), "NameError")?;
        // The error is above the output, and its line is marked beside the line of the peak.
        page.wait_text(&id("ended"), "Line 3: NameError: name 'undefined_name' is not defined")?;
        page.wait_for(&id("failing-line"))?;
        let list = "import torch
weight = torch.ones(1024, 1024, device='cuda', requires_grad=True)
losses = []
for step in range(100000):
    big = weight.expand(2048, 1024, 1024) * 2.0
    losses.append(big.square().mean())
";
        run_program(page, list)?;
        wait_long(page, &id("program-status"), "Ended by an exception")?;
        page.wait_text(&id("cause"), "Line 6: losses keeps the backward graphs of")?;
        page.wait_text(&id("cause"), ".item()")?;
        let caught = "import torch
try:
    torch.empty(200, 1024, 1024, 1024, device='cuda')
except torch.OutOfMemoryError as error:
    print('caught:', str(error)[:18])
";
        run_program(page, caught)?;
        page.wait_text(&id("printed"), "caught: CUDA out of memory")?;
        wait_long(page, &id("program-status"), "Finished")
    })
}

#[test]
fn the_answers_about_a_program_lie_over_nothing() -> Result<()> {
    at(Window::default(), |page| {
        // A convolutional network, for which a setting helps: the verdict has a line to copy.
        choose(page, "example", "autoencoder")?;
        wait_long(page, &id("program-status"), "Finished")?;
        page.click(&id("program-answers"))?;
        page.wait_for(&id("verdict-line"))?;
        let is_free = "const button = document.querySelector('[data-testid=run-program]');
            const box = button.getBoundingClientRect();
            const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
            return button === hit || button.contains(hit);";
        page.execute("window.scrollTo(0, 0)", &[])?;
        ensure!(page.execute(is_free, &[])?.as_bool() == Some(true), "something lies over Run");
        page.click(&id("run-program"))?;
        wait_long(page, &id("program-status"), "Finished")
    })
}

#[test]
fn an_example_prints_what_an_h200_printed() -> Result<()> {
    at(Window::default(), |page| {
        choose(page, "example", "mlp_adam")?;
        wait_long(page, &id("program-status"), "Finished")?;
        page.wait_text(&id("comparison"), "lines are what an H200 printed")?;
        let rows = "const rows = [...document.querySelectorAll('[data-testid=comparison] tbody tr')];
            return rows.length > 2 && rows.every(row => row.textContent.startsWith('✓'));";
        ensure!(page.execute(rows, &[])? == json!(true), "a line differs from what an H200 printed");
        page.wait_until("location.hash === '#python=mlp_adam'").map(drop)
    })
}

const LONG_NAMES: &str = "import torch
x = torch.randn(64, 10, device='cuda', requires_grad=True)
torch.nn.functional.cross_entropy(x, torch.randint(0, 10, (64,), device='cuda')).backward()
";

#[test]
fn on_a_phone_the_program_the_output_and_the_figures_stand_below_each_other() -> Result<()> {
    at(Window { width: 360, height: 740 }, |page| {
        run_program(page, TWO_TENSORS)?;
        wait_long(page, &id("program-status"), "Finished")?;
        let tops = "const top = (css) => document.querySelector(css).getBoundingClientRect().top;
            return top('.program .code') < top('.program .output') && top('.program .output') < top('.program .figures')
                && document.documentElement.scrollWidth <= innerWidth;";
        ensure!(page.execute(tops, &[])? == json!(true));
        // Long names of operators do not widen the page.
        run_program(page, LONG_NAMES)?;
        wait_long(page, &id("program-status"), "Finished")?;
        page.click("[data-testid='line-requests'] summary")?;
        page.wait_text(&id("line-requests"), "LogSoftmaxBackward0")?;
        page.wait_until("document.documentElement.scrollWidth <= innerWidth").map(drop)?;
        page.check_accessible()
    })
}

#[test]
fn a_page_without_python_says_why_and_takes_it_when_it_is_there() -> Result<()> {
    // The folder is as `cargo xtask play` leaves it until Python is built.
    let dist = built_page()?;
    let temporary = tempfile::tempdir()?;
    let folder = temporary.path();
    copy(&dist, folder)?;
    let (python, absent) = (folder.join("python"), folder.join("python/absent.txt"));
    std::fs::remove_dir_all(&python)?;
    std::fs::create_dir(&python)?;
    std::fs::write(&absent, "this page was built without Python: npm brought no Pyodide\n")?;
    let page = Page::of(folder, Window::default(), GpuChoice::None)?;
    page.goto("/#python")?;
    run_program(&page, "print(1 + 1)\n")?;
    page.wait_text(&id("program-status"), "This page was built without Python: npm brought no Pyodide.")?;
    std::fs::write(&absent, "building\n")?;
    page.click(&id("run-program"))?;
    page.wait_text(&id("program-status"), "Python is still being built")?;
    copy(&dist.join("python"), &python)?;
    std::fs::remove_file(&absent)?;
    wait_long(&page, &id("program-status"), "Finished")?;
    page.wait_text(&id("printed"), "2")?;
    Ok(())
}

#[test]
fn the_pages_python_is_python_itself_without_the_browser_in_it() -> Result<()> {
    at(Window::default(), |page| {
        page.wait_text(&id("invitation"), "Python 3.13.2")?;
        let program = "import sys, dataclasses, argparse, json, logging, datetime, fractions, pathlib
print(sys.version.split()[0], hash('the same in every run'))
for name in ('js', 'pyodide_js', 'ssl', 'multiprocessing'):
    try:
        __import__(name)
        print(name, 'is there')
    except ImportError as error:
        print(error)
import asyncio
asyncio.run(None)
";
        let mut hashes = Vec::new();
        for _ in 0..2 {
            run_program(page, program)?;
            wait_long(page, &id("program-status"), "Ended by an exception at line 10")?;
            page.wait_text(&id("printed"), "3.13.2")?;
            page.wait_text(&id("printed"), "No module named 'js'")?;
            page.wait_text(&id("printed"), "No module named 'pyodide_js'")?;
            page.wait_text(&id("printed"), "the page's Python has no module 'ssl'")?;
            page.wait_text(&id("printed"), "the page's Python has no module 'multiprocessing'")?;
            page.wait_text(&id("traceback"), "asyncio.run is not available in the page's Python")?;
            hashes.push(
                page.execute("return document.querySelector('[data-testid=printed]').textContent", &[])?,
            );
        }
        ensure!(hashes[0] == hashes[1], "{hashes:?}");
        Ok(())
    })
}

fn copy(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[test]
fn a_link_names_the_release_of_a_program() -> Result<()> {
    // `import torch; x = torch.ones(4, device="cuda")`, as the page packs it.
    let address = |release: &str| {
        format!("/#program=1.y8wtyC8qUSjJL0rO4KpQsIWw9PLzUos1THQUUlLLMpNTbZWSS1MSlTS5AA&release={release}")
    };
    drive_at(&address("2.15"), Window::default(), GpuChoice::None, |page| {
        page.wait_until("document.querySelector('[data-testid=program-release]').value === '2.15'").map(drop)
    })?;
    drive_at(&address("9.9"), Window::default(), GpuChoice::None, |page| {
        page.wait_text(
            "body",
            "This link names PyTorch \"9.9\", which the page does not have. The program runs on 2.11.",
        )
        .map(drop)
    })
}
