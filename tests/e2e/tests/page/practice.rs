//! Practice: questions with numbers drawn anew, remembered for the day on which they are due again.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Page, Window, drive_at};
use serde_json::json;

use crate::id;

fn at(path: &str, window: Window, test: impl Fn(&mut Page) -> Result<()>) -> Result<()> {
    drive_at(path, window, GpuChoice::None, test)
}

/// The storage of a reader who answered one question wrong yesterday, and knows another for long.
const PRACTICED: &str = "const today = Math.floor(Date.now() / 86400000);
    localStorage.setItem('blockyard.practice', `tensor/3=0@${today - 1}\\npools/2=3@${today}`);
    location.hash = '#practice'; location.reload();";

#[test]
fn what_is_due_comes_first_and_the_keyboard_answers_it() -> Result<()> {
    at("/#lessons", Window { width: 1366, height: 768 }, |page| {
        page.wait_for(&id("to-practice"))?;
        page.execute(PRACTICED, &[])?;
        page.wait_text(
            &id("practice-sums"),
            "2 questions answered, 1 of them mastered. Next: 1 question that is due again.",
        )?;
        page.wait_text(&id("practice-chapters"), "What a tensor costs: 1 question answered, 1 due again")?;
        page.wait_text(&id("practice-title"), "What a tensor costs")?;
        page.wait_text(&id("drawn-question"), "PyTorch holds no memory yet, and a weight of")?;
        page.check_accessible()?;
        // The ruler, its button and the next question are reached by keys alone.
        page.execute("document.querySelector(arguments[0]).focus()", &[json!(id("draw"))])?;
        page.press(Key::End)?;
        page.press(Key::Tab)?;
        page.press(Key::Enter)?;
        page.wait_text(&id("drawn-answer"), "32 MiB")?;
        page.wait_until("document.activeElement.dataset.testid === 'drawn-answer'")?;
        page.check_accessible()?;
        // The wrong answer is due at once; the same question has another size.
        page.wait_text(&id("practice-sums"), "Next: 1 question that is due again")?;
        let before = page.text(&id("drawn-question"))?;
        page.click(&id("another"))?;
        page.wait_gone(&id("drawn-answer"))?;
        page.wait_text(&id("drawn-question"), "PyTorch holds no memory yet, and a weight of")?;
        ensure!(page.text(&id("drawn-question"))? != before, "the same numbers again");
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("practice-sums"), "1 of them mastered. Next: 1 question that is due again.")
            .map(drop)
    })
}

#[test]
fn what_was_read_is_asked_first() -> Result<()> {
    at("/#lessons", Window { width: 390, height: 844 }, |page| {
        page.wait_for(&id("to-practice"))?;
        page.execute(
            "localStorage.setItem('blockyard.progress', 'pools/0 pools/4');
            location.hash = '#practice'; location.reload();",
            &[],
        )?;
        page.wait_text(&id("drawn-question"), "the segment of the pool is wholly cached")?;
        // The letters of the figure have the size of those on the page.
        let letters = "return Math.min(...[...document.querySelectorAll('.drawn svg text')]
            .map((text) => text.getBoundingClientRect().height))";
        let height = page.execute(letters, &[])?.as_f64().unwrap_or_default();
        ensure!(height > 9.0, "letters of {height} px");
        page.click(&id("drawn-reveal"))?;
        page.click(&id("practice-next"))?;
        page.wait_text(".practice", "You have not read this part of the chapter yet.")
    })
}

#[test]
fn a_question_of_a_chapter_is_asked_with_other_numbers() -> Result<()> {
    at("/#lesson=tensor&card=2", Window { width: 390, height: 844 }, |page| {
        page.reduced_motion(true)?;
        let card = "[data-card='1']";
        page.click(&format!("{card} .choices button:nth-child(4)"))?;
        page.wait_text(card, "Right: 1.5 KiB.")?;
        // The answer in the chapter counts in the practice.
        page.wait_until("localStorage.getItem('blockyard.practice').startsWith('tensor/1=1@')")?;
        page.click(&format!("{card} {}", id("another")))?;
        page.wait_text(&id("drawn-question"), "How much memory does PyTorch give to it?")?;
        ensure!(!page.text(&id("drawn-question"))?.contains("of 300 numbers"), "the same question");
        page.click(&id("drawn-reveal"))?;
        page.wait_text(&id("drawn-answer"), "The answer is")?;
        page.check_accessible()?;
        let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        ensure!(page.execute(overflow, &[])? == json!(0), "the page is wider than the window");
        // The old address of all questions leads to the practice, which works without storage.
        page.execute(
            "Storage.prototype.getItem = () => { throw new Error('no storage'); };
            Storage.prototype.setItem = Storage.prototype.getItem; location.hash = '#quiz'",
            &[],
        )?;
        page.click(&id("drawn-reveal"))?;
        page.click(&id("practice-next"))?;
        page.wait_gone(&id("drawn-answer"))?;
        page.wait_for(&id("drawn-reveal"))
    })
}
