//! Exercises of lessons in Python: the page's Python runs them, the grader names the missed goals, a
//! reload keeps the text.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Page, Window, drive_at};
use serde_json::json;

use crate::{id, scroll_and_click, wait_long};

fn write(page: &Page, lines: &str) -> Result<()> {
    let script = "const field = document.querySelector('[data-testid=exercise-text]');
        field.focus();
        field.value = arguments[0];
        field.dispatchEvent(new Event('input', { bubbles: true }));";
    page.execute(script, &[json!(lines)]).map(drop)
}

/// Runs the lines by Ctrl+Enter in the field.
fn run_by_key(page: &Page) -> Result<()> {
    let script = "document.activeElement.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true, cancelable: true }));";
    page.execute(script, &[]).map(drop)
}

const WRONG: &str = "batch = torch.randn(256, 3, 224, 224, dtype=torch.float64, device=\"cuda\")";
const RIGHT: &str = "batch = torch.randn(256, 3, 224, 224, dtype=torch.bfloat16, device=\"cuda\")";

#[test]
fn a_student_solves_an_exercise_in_python_and_a_reload_keeps_the_text() -> Result<()> {
    drive_at("/#lesson=tensor&card=10", Window::default(), GpuChoice::None, |page| {
        page.reduced_motion(true)?;
        page.wait_text("[data-testid=check]", "Run")?;
        page.wait_text(".exercise .goals", "the program runs to its end")?;
        // A wrong answer has the reason, with its numbers.
        write(page, WRONG)?;
        run_by_key(page)?;
        wait_long(page, &id("verdict"), "Not yet: allocated is 294 MiB, 214 MiB more than 80 MiB")?;
        // The difference between the line and the solution, once the solution has run too.
        wait_long(
            page,
            &id("verdict"),
            "makes batch (294 MiB), and the goals need less or other memory there",
        )?;
        let field = "return document.activeElement.dataset.testid";
        ensure!(page.execute(field, &[])? == json!("exercise-text"), "the field has lost the focus");
        page.wait_text(&id("answer-output"), "torch.float64")?;
        // The figure of the chapter shows the run of the reader's lines.
        page.wait_until(
            "document.querySelector('[data-testid=chapter-figure]').getAttribute('aria-label').includes('294 MiB')",
        )?;
        // The memory over time stays in sight.
        page.wait_until("document.querySelector('[data-testid=chapter-curve]').checkVisibility()")?;
        page.check_accessible()?;
        // A program that fails has its reason, too.
        write(page, "batch = torch.randn(256")?;
        run_by_key(page)?;
        wait_long(page, &id("verdict"), "Not yet: the program ends in line")?;
        page.wait_text(&id("answer-traceback"), "SyntaxError")?;
        write(page, RIGHT)?;
        scroll_and_click(page, "check")?;
        wait_long(page, &id("verdict"), "Passed: allocated is 74 MiB")?;
        page.wait_until("!document.querySelector('[data-testid=answer-traceback]').checkVisibility()")?;
        page.execute("location.reload()", &[])?;
        page.wait_for(&id("exercise-text"))?;
        page.wait_until(
            "document.querySelector('[data-testid=exercise-text]').value.includes('torch.bfloat16')",
        )?;
        scroll_and_click(page, "reset-exercise")?;
        page.wait_until(
            "!document.querySelector('[data-testid=exercise-text]').value.includes('torch.bfloat16')",
        )?;
        page.check_accessible()
    })
}

#[test]
fn a_program_of_an_exercise_can_be_stopped() -> Result<()> {
    drive_at("/#lesson=tensor&card=10", Window { width: 390, height: 844 }, GpuChoice::None, |page| {
        write(page, "while True:\n    batch = torch.empty(1, device=\"cuda\")")?;
        scroll_and_click(page, "check")?;
        scroll_and_click(page, "stop-answer")?;
        page.wait_text(&id("answer-status"), "Stopped")?;
        write(page, RIGHT)?;
        scroll_and_click(page, "check")?;
        wait_long(page, &id("verdict"), "Passed")?;
        let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        ensure!(page.execute(overflow, &[])? == json!(0), "the page is wider than the window");
        Ok(())
    })
}

/// A solution travels in a link: a person who opens the link sees, runs and grades the lines, and keeps their
/// own lines.
#[test]
fn a_solution_is_handed_in_as_a_link_and_as_a_file() -> Result<()> {
    drive_at("/#lesson=nvidia-smi&card=11", Window::default(), GpuChoice::None, |page| {
        page.reduced_motion(true)?;
        page.wait_for(&id("check"))?;
        page.wait_until("document.querySelector('[data-testid=hand-in]').hidden")?;
        page.execute(
            "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };
            const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return make(blob); };",
            &[],
        )?;
        let lines =
            page.execute("return document.querySelector('[data-testid=exercise-text]').value", &[])?;
        let lines = format!("{}\n# from a student", lines.as_str().unwrap_or_default());
        write(page, &lines)?;
        scroll_and_click(page, "check")?;
        wait_long(page, &id("verdict"), "Not yet")?;
        scroll_and_click(page, "copy-solution")?;
        page.wait_until("window.copied?.includes('#lesson=nvidia-smi&card=11&solution=1.')")?;
        scroll_and_click(page, "save-solution")?;
        page.wait_until(
            "window.saved?.includes('# from a student') && window.saved.includes('# edit from here')",
        )?;
        scroll_and_click(page, "reset-exercise")?;
        let link = page.execute("return window.copied.split('#')[1]", &[])?;
        page.goto("/#lessons")?;
        page.wait_for(&id("lessons"))?;
        page.execute("location.hash = arguments[0]", &[link])?;
        page.wait_text(&id("given-line"), "These lines came in the link")?;
        page.wait_until(
            "document.querySelector('[data-testid=exercise-text]').value.includes('# from a student')",
        )?;
        page.check_accessible()?;
        scroll_and_click(page, "check")?;
        wait_long(page, &id("verdict"), "Not yet")?;
        scroll_and_click(page, "leave-given")?;
        page.wait_until(
            "!document.querySelector('[data-testid=exercise-text]').value.includes('# from a student')",
        )?;
        page.wait_until("location.hash === '#lesson=nvidia-smi&card=11'").map(drop)
    })
}

#[test]
fn enter_and_tab_indent_and_escape_lets_tab_leave_the_field() -> Result<()> {
    drive_at("/#lesson=tensor&card=10", Window::default(), GpuChoice::None, |page| {
        page.wait_for(&id("exercise-text"))?;
        write(page, "for i in range(2):")?;
        page.press(Key::Enter)?;
        page.press("x")?;
        page.press(Key::Tab)?;
        page.press("y")?;
        page.wait_until(
            "document.querySelector('[data-testid=exercise-text]').value === 'for i in range(2):\\n    x    y'",
        )?;
        page.press(Key::Escape)?;
        page.press(Key::Tab)?;
        page.wait_until("document.activeElement.dataset.testid !== 'exercise-text'").map(drop)
    })
}

#[test]
fn a_mistake_is_named_by_what_the_program_did_at_which_line() -> Result<()> {
    drive_at("/#lesson=reserved&card=6", Window::default(), GpuChoice::None, |page| {
        page.reduced_motion(true)?;
        page.wait_for(&id("exercise-text"))?;
        scroll_and_click(page, "check")?;
        // The start of the exercise makes all tensors before it needs the first.
        wait_long(page, &id("verdict"), "Not yet:")?;
        wait_long(page, &id("verdict"), "makes 6 MiB before the 4 B that come later.")?;
        // What the solution does is a hint, after those of the exercise.
        page.wait_until("!document.querySelector('.exercise').textContent.includes('meets all goals')")?;
        for _ in 0..5 {
            page.execute("document.querySelector('[data-testid=hint]:not([hidden])')?.click()", &[])?;
        }
        page.wait_text(&id("hints"), "A program that meets all goals makes these 4 B first.")?;
        page.wait_until("document.querySelector('[data-testid=hint]').hidden").map(drop)
    })
}
