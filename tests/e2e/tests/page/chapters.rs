//! Chapters: a slider runs the lesson again, a prediction is drawn, and the figure follows the card that is
//! read.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Page, Window, drive_at};
use serde_json::{Value, json};

use crate::id;

fn at(path: &str, window: Window, test: impl Fn(&mut Page) -> Result<()>) -> Result<()> {
    drive_at(path, window, GpuChoice::None, test)
}

/// Moves a slider as a drag does: one event for each place on the way.
fn drag(page: &Page, slider: &str, to: u32) -> Result<()> {
    let script = "const slider = document.querySelector(arguments[0]);
        const from = Number(slider.value), to = arguments[1], steps = 30;
        for (let step = 1; step <= steps; step += 1) {
            slider.value = Math.round(from + (to - from) * step / steps);
            slider.dispatchEvent(new Event('input', { bubbles: true }));
        }";
    page.execute(script, &[json!(id(slider)), json!(to)]).map(drop)
}

/// Chooses a stop of a slider that shows them all.
fn choose(page: &Page, slider: &str, stop: u32) -> Result<()> {
    let script = "document.querySelector(`${arguments[0]} input[value='${arguments[1]}']`).click()";
    page.execute(script, &[json!(id(slider)), json!(stop)]).map(drop)
}

fn figure_says(page: &Page, words: &str) -> Result<()> {
    let script = format!(
        "document.querySelector('[data-testid=chapter-figure]').getAttribute('aria-label').includes({})",
        json!(words)
    );
    page.wait_until(&script).map(drop)
}

#[test]
fn a_slider_moves_the_sentence_the_lines_and_the_figure() -> Result<()> {
    at("/#lesson=tensor&card=6", Window { width: 1366, height: 768 }, |page| {
        page.reduced_motion(true)?;
        figure_says(page, "20 MiB")?;
        let card = "[data-card='5']";
        page.wait_text(card, "asks for 3 MiB, which is more than 1 MiB and less than 10 MiB")?;
        drag(page, "slider-3", 0)?;
        page.wait_text(card, "asks for 32 KiB, which is at most 1 MiB")?;
        page.wait_text(card, "torch.empty(8, 1024, device=\"cuda\")")?;
        figure_says(page, "2 MiB")?;
        drag(page, "slider-3", 1023)?;
        page.wait_text(card, "asks for 32 MiB, which is at least 10 MiB")?;
        figure_says(page, "32 MiB")?;
        page.check_accessible()?;
        // The keys of the keyboard move the slider too, and not the run of another figure.
        page.execute("document.querySelector(arguments[0]).focus()", &[json!(id("slider-3"))])?;
        page.press(Key::Left)?;
        page.wait_text(card, "torch.empty(8184, 1024, device=\"cuda\")")?;
        // The figure follows the card that is read, and so does the address.
        page.execute("document.querySelector('[data-card=\"2\"]').scrollIntoView()", &[])?;
        // A link holds the place of a slider.
        page.wait_until("location.hash === '#lesson=tensor&card=3&sliders=rows:8184'")?;
        figure_says(page, "2 MiB")?;
        page.goto("/?again#lesson=tensor&card=6&sliders=rows:8")?;
        page.wait_text(card, "torch.empty(8, 1024, device=\"cuda\")")?;
        figure_says(page, "2 MiB")?;
        page.execute("location.hash = '#lesson=tensor&card=6'", &[])?;
        page.wait_text(card, "torch.empty(768, 1024, device=\"cuda\")").map(drop)
    })
}

/// The words of a card have room for the longest of them, so a slider below them stays under the pointer.
#[test]
fn a_slider_stays_where_it_is_while_its_words_change() -> Result<()> {
    at("/#lesson=tensor&card=6", Window { width: 390, height: 844 }, |page| {
        page.reduced_motion(true)?;
        page.wait_text("[data-card='5']", "asks for 3 MiB")?;
        page.wait_until(
            "document.querySelector('[data-card=\"5\"] .is-room').textContent.includes('asks for')",
        )?;
        let place = "return document.querySelector('[data-testid=slider-3]').getBoundingClientRect().top";
        let before = page.execute(place, &[])?;
        for to in [0, 40, 320, 1023] {
            drag(page, "slider-3", to)?;
            page.wait_until("document.querySelector('[data-card=\"5\"]').checkVisibility()")?;
            ensure!(page.execute(place, &[])? == before, "the slider moved at {to}");
        }
        Ok(())
    })
}

#[test]
fn an_answer_is_drawn_and_the_right_one_lies_over_it() -> Result<()> {
    at("/#lesson=tensor&card=4", Window { width: 390, height: 844 }, |page| {
        page.reduced_motion(true)?;
        let card = "[data-card='3']";
        // Neither the text nor the title gives the answer away.
        page.wait_text(card, "What will happen?")?;
        page.wait_until("!document.querySelector('[data-card=\"3\"] .chapter-answer').checkVisibility()")?;
        drag(page, "draw", 6)?;
        page.wait_text(card, "Your mark: 3 MiB")?;
        page.click(&format!("{card} {}", id("draw-answer")))?;
        page.wait_text(card, "9 MiB too low: you drew 3 MiB, and the allocator says 12 MiB.")?;
        page.wait_text(card, "of 12 MiB from the GPU")?;
        let bars = "return [...document.querySelectorAll('.drawn-bars span')].map((bar) => bar.style.width)";
        ensure!(page.execute(bars, &[])? == json!(["9.38%", "37.5%"]));
        page.check_accessible()?;
        let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        ensure!(page.execute(overflow, &[])? == json!(0), "the page is wider than the window");
        page.execute("location.reload()", &[])?;
        page.wait_text(card, "you drew 3 MiB")
    })
}

#[test]
fn ranks_stand_beside_each_other_and_beside_another_card() -> Result<()> {
    at("/#lesson=ranks&card=5", Window { width: 1366, height: 768 }, |page| {
        page.reduced_motion(true)?;
        let bars = id("beside-bars");
        page.wait_text(&bars, "rank 0 of 2")?;
        page.wait_text(&bars, "rank 1 of 2")?;
        page.wait_text(&bars, "DDP, each rank")?;
        let widths = "return [...document.querySelectorAll('[data-testid=beside-bars] .category-0')]
            .map((part) => Math.round(part.getBoundingClientRect().width / 8))";
        let widths = page.execute(widths, &[])?;
        let widths: Vec<u64> = widths.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        ensure!(widths.len() == 3 && widths[0] == widths[1], "{widths:?}");
        ensure!(
            widths[2].abs_diff(2 * widths[0]) <= 1,
            "the whole model is twice a shard of two: {widths:?}"
        );
        page.check_accessible()
    })
}

#[test]
fn a_setting_moves_the_blocks_as_the_allocator_decides() -> Result<()> {
    at("/#lesson=fragmentation&card=10", Window { width: 1366, height: 768 }, |page| {
        page.reduced_motion(true)?;
        let card = "[data-card='9']";
        page.wait_text(card, "large finds its block again: 84 MiB are reserved")?;
        figure_says(page, "84 MiB")?;
        drag(page, "slider-3", 60)?;
        page.wait_text(card, "Under max_split_size_mb:81 the block of 64 MiB is below the limit")?;
        figure_says(page, "128 MiB")?;
        // Two sliders of a card: a size, and a setting.
        page.execute("document.querySelector('[data-card=\"7\"]').scrollIntoView()", &[])?;
        let card = "[data-card='7']";
        page.wait_text(card, "With the setting, a request of 24 MiB passes")?;
        choose(page, "slider-2", 0)?;
        page.wait_text(card, "Without the setting, a request of 24 MiB fails")?;
        drag(page, "slider-1", 4)?;
        page.wait_text(card, "Without the setting, a request of 6 MiB passes: it fits into a hole")?;
        // The lines of a hidden workload are not before the reader's eyes, PyTorch's are.
        page.wait_text("[data-card='4']", "for step in range(10):")?;
        ensure!(!page.text("main")?.contains(" = alloc "), "a statement of our language");
        page.check_accessible()
    })
}

#[test]
fn the_batch_moves_a_training_at_each_card_that_compares_runs() -> Result<()> {
    at("/#lesson=training&card=2", Window { width: 1366, height: 768 }, |page| {
        page.reduced_motion(true)?;
        let card = "[data-card='1']";
        page.wait_text(card, "Now a batch of 16 sequences")?;
        page.wait_text(&id("lesson-categories"), "activations")?;
        drag(page, "slider-2", 0)?;
        page.wait_text(card, "Now a batch of 8 sequences")?;
        page.wait_text(card, "and those do not depend on the batch")?;
        figure_says(page, "880.6 MiB")?;
        // The same slider is shown beside the run under autocast.
        page.wait_until("document.querySelector('[data-testid=slider-2-again-8]').value === '0'")?;
        ensure!(!page.text("main")?.contains(" = alloc "), "a statement of our language");
        page.check_accessible()
    })
}

/// A question below the line of reading is answered: its card is read from then on, and the figure shows it.
#[test]
fn the_figure_shows_the_card_that_is_answered() -> Result<()> {
    at("/#lesson=nvidia-smi", Window { width: 1366, height: 768 }, |page| {
        page.reduced_motion(true)?;
        page.wait_text("[data-card='1']", "What will happen?")?;
        figure_says(page, "nvidia-smi shows 518 MiB")?;
        page.click("[data-card='1'] .choices button:nth-child(2)")?;
        page.wait_text("[data-card='1']", "right, your answer")?;
        page.wait_until("location.hash.startsWith('#lesson=nvidia-smi&card=2')")?;
        figure_says(page, "nvidia-smi shows 538 MiB")?;
        // The card is let go once it is out of the window.
        page.execute("document.querySelector('[data-card=\"3\"]').scrollIntoView()", &[])?;
        page.wait_until("location.hash.startsWith('#lesson=nvidia-smi&card=4')").map(drop)
    })
}

/// A training has its memory over time below the figure, up to the first open question.
#[test]
fn a_training_is_shown_over_time_up_to_an_open_question() -> Result<()> {
    at("/#lesson=training&card=3", Window { width: 1366, height: 768 }, |page| {
        page.reduced_motion(true)?;
        let says = |words: &str| {
            let label = "document.querySelector('[data-testid=chapter-curve]').getAttribute('aria-label')";
            page.wait_until(&format!("{label}.includes({})", json!(words))).map(drop)
        };
        says("up to the open question")?;
        let sees_both = "const figure = document.querySelector('.chapter-curve').getBoundingClientRect();
            return figure.height >= 150 && figure.bottom <= innerHeight";
        ensure!(page.execute(sees_both, &[])? == json!(true), "the figure over time is out of sight");
        page.execute("document.querySelector('[data-card=\"5\"]').scrollIntoView()", &[])?;
        page.click("[data-card='5'] .choices button:nth-child(2)")?;
        says("2.34 GiB")?;
        page.check_accessible()?;
        // A run of a few steps has none.
        page.execute("document.querySelector('[data-card=\"6\"]').scrollIntoView()", &[])?;
        page.wait_until("document.querySelector('.chapter-curve').hidden").map(drop)
    })
}
