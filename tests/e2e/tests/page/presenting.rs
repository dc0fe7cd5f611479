//! A lesson in a lecture room: nothing is cut, the keys of a clicker, plans.

use anyhow::{Result, ensure};
use blockyard_e2e::{Key, Window};
use serde_json::json;

use crate::teaching::{LAPTOP, at, press};
use crate::{id, wait_long};

#[test]
fn a_presented_exercise_has_its_figure_once_it_ran_as_after_a_change_of_the_window() -> Result<()> {
    at("/#lesson=reserved&card=6", Window { width: 1920, height: 1080 }, |page| {
        let screen = |width: u32| {
            let screen = json!({ "width": width, "height": 1080, "deviceScaleFactor": 1, "mobile": false });
            page.devtools("Emulation.setDeviceMetricsOverride", &screen)
        };
        screen(1920)?;
        press(page, "present")?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        // The task has the screen until its lines have run.
        page.wait_until("document.querySelector('.stage-figure').getBoundingClientRect().height === 0")?;
        press(page, "check")?;
        wait_long(page, &id("verdict"), "Not yet")?;
        // The canvas is as wide and as high as its drawing, and has room for it.
        let fits = "(() => { const canvas = document.querySelector('.stage-figure canvas');
            const { width, height } = canvas.getBoundingClientRect();
            return Math.abs(width / height - canvas.width / canvas.height) < 0.02
                && canvas.parentElement.getBoundingClientRect().height >= height - 1; })()";
        page.wait_until(fits)?;
        let shape = "const { width, height } = document.querySelector('.stage-figure canvas').getBoundingClientRect();
            return [Math.round(width), Math.round(height)];";
        std::thread::sleep(std::time::Duration::from_millis(400));
        let first = page.execute(shape, &[])?;
        screen(1900)?;
        std::thread::sleep(std::time::Duration::from_millis(300));
        screen(1920)?;
        std::thread::sleep(std::time::Duration::from_millis(400));
        let again = page.execute(shape, &[])?;
        ensure!(first == again, "{first}, and after a change of the window {again}");
        page.wait_until(fits).map(drop)
    })
}

/// Presents the open lesson to its end, and returns the texts that are cut or too small, by card.
const PRESENTED: &str = "const wait = (millis) => new Promise((done) => setTimeout(done, millis));
    const lesson = location.hash.split('&')[0];
    const isEnd = () => location.hash.split('&')[0] !== lesson || !document.querySelector('[data-testid=end-slide]').hidden;
    const press = (key) => document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    document.querySelector('[data-testid=present]').click();
    await wait(150);
    const faults = [];
    let seen = null;
    for (let presses = 0; presses < 120; presses += 1) {
        const card = document.querySelector('.lesson-card');
        const name = document.querySelector('[data-testid=card-position]').textContent;
        const root = document.documentElement;
        if (root.scrollWidth > innerWidth || root.scrollHeight > innerHeight) faults.push(`${name}: the page is ${root.scrollWidth} x ${root.scrollHeight}`);
        // The clicker scrolls a card that is longer than the screen, down to its end.
        if (seen && seen.name !== name && seen.reach < seen.height - 2) faults.push(`${seen.name}: ${seen.height - seen.reach} px are never shown`);
        seen = { name, reach: card.scrollTop + card.clientHeight, height: card.scrollHeight };
        // Lines of code are cut where their box scrolls. The lines of an exercise scroll: they are worked on.
        for (const box of card.querySelectorAll('pre, textarea')) {
            if (!box.closest('.exercise') && box.offsetHeight > 0 && box.scrollHeight > box.clientHeight + 1) faults.push(`${name}: ${box.scrollHeight - box.clientHeight} px of code are cut`);
        }
        if (card.scrollWidth > card.clientWidth + 1) faults.push(`${name}: the card is ${card.scrollWidth} px wide`);
        const texts = document.createTreeWalker(document.querySelector('.lesson'), NodeFilter.SHOW_TEXT);
        const range = document.createRange();
        while (texts.nextNode()) {
            const text = texts.currentNode;
            if (!text.data.trim()) continue;
            range.selectNodeContents(text);
            const boxes = [...range.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
            const size = parseFloat(getComputedStyle(text.parentElement).fontSize);
            const least = text.parentElement.closest('.prose p, .prose li, .predict > p') && !text.parentElement.closest('code, button') ? arguments[1] : arguments[0];
            if (boxes.length > 0 && size < least) faults.push(`${name}: letters of ${size} px in ${text.data}`);
            if (boxes.some((box) => box.right > innerWidth)) faults.push(`${name}: ${text.data} is cut`);
        }
        if (isEnd()) break;
        press('PageDown');
        await wait(110);
    }
    if (!isEnd()) faults.push('the lesson has no end');
    press('Escape');
    return faults;";

#[test]
fn no_card_of_any_lesson_is_cut_when_it_is_presented() -> Result<()> {
    nothing_is_cut(1920, 1080, [24, 28])
}

#[test]
fn no_card_of_any_lesson_is_cut_on_a_small_projector() -> Result<()> {
    nothing_is_cut(1366, 768, [14, 14])
}

/// Presents all lessons on a screen of this size, where letters have at least `letters_px` pixels: all letters,
/// and those of sentences.
fn nothing_is_cut(width: u32, height: u32, letters_px: [u32; 2]) -> Result<()> {
    at("/#lessons", Window { width, height }, |page| {
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        page.devtools("Emulation.setDeviceMetricsOverride", &screen)?;
        page.reduced_motion(true)?;
        page.wait_for("[data-testid=lessons] a")?;
        let links = "return [...document.querySelectorAll('[data-testid=lessons] a')].map((a) => [a.getAttribute('href'), a.textContent])";
        let links: Vec<(String, String)> = serde_json::from_value(page.execute(links, &[])?)?;
        ensure!(links.len() >= 10, "{links:?}");
        let mut cut = Vec::new();
        for (link, title) in links {
            page.execute("location.hash = arguments[0]", &[json!(link)])?;
            page.wait_for(&id("present"))?;
            page.wait_until(&format!("location.hash === {}", json!(link)))?;
            page.wait_text("h1", &title)?;
            // A chapter has its cards below each other, and counts none.
            page.wait_until("[...document.querySelectorAll('[data-testid=card-position], [data-card=\\'0\\']')].some((it) => it.dataset.card || it.textContent.includes('Card 1 of'))")?;
            let faults = page.execute_async(PRESENTED, &[json!(letters_px[0]), json!(letters_px[1])])?;
            if faults != json!([]) {
                cut.push(format!("{link}: {faults}"));
            }
        }
        ensure!(cut.is_empty(), "{cut:#?}");
        Ok(())
    })
}

#[test]
fn a_clicker_ends_the_dark_leaves_a_text_field_and_goes_on_to_the_next_lesson() -> Result<()> {
    at("/#lesson=tensor&card=10", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.click(&id("present"))?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        page.press('b')?;
        page.wait_until("document.documentElement.classList.contains('is-blank')")?;
        page.press(Key::PageUp)?;
        page.wait_until("!document.documentElement.classList.contains('is-blank')")?;
        page.wait_text(&id("card-position"), "Card 10 of")?;
        page.click(&id("exercise-text"))?;
        page.press(Key::PageUp)?;
        page.wait_text(&id("card-position"), "Card 9 of")?;
        // From the last card one press leads on, as from every other card.
        for _ in 0..6 {
            page.press(Key::PageDown)?;
            std::thread::sleep(std::time::Duration::from_millis(300));
            let is_next = "return location.hash.startsWith('#lesson=nvidia-smi')";
            if page.execute(is_next, &[])?.as_bool() == Some(true) {
                break;
            }
        }
        page.wait_until("location.hash === '#lesson=nvidia-smi&card=1'")?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        // One press too many is taken back.
        page.press(Key::PageUp)?;
        page.wait_until("location.hash === '#lesson=tensor&card=10'")?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')").map(drop)
    })
}

#[test]
fn a_plan_is_presented_in_its_order_and_has_a_class_sheet() -> Result<()> {
    at("/#teachers", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.wait_for(&id("teachers"))?;
        page.click(&id("ninety-minutes"))?;
        page.click(&id("class-sheet"))?;
        page.wait_until("location.hash.startsWith('#handout=tensor:exercise,nvidia-smi:home,training,')")?;
        page.wait_text(".handout", "Where training's memory goes: answers")?;
        page.execute("history.back()", &[])?;
        page.wait_for(&id("teachers"))?;
        page.click(&id("present-class"))?;
        page.wait_until("location.hash === '#lesson=tensor&card=1'")?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        // The plan has no lesson about nvidia-smi, which is before the lesson about training in the course.
        page.execute("location.hash = '#lesson=training&card=1'", &[])?;
        page.wait_text(".lesson-card", "the whole small GPT")?;
        page.press(Key::PageUp)?;
        page.wait_until("location.hash.startsWith('#lesson=tensor&card=10')")?;
        // After the last lesson of the plan a slide stays, however often the clicker is pressed. The plan makes
        // its exercise homework, so card 10 is the last.
        page.execute("location.hash = '#lesson=what-to-change&card=10'", &[])?;
        page.wait_text(&id("card-position"), "Card 10 of 10")?;
        for _ in 0..6 {
            page.press(Key::PageDown)?;
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        page.wait_text(&id("end-slide"), "Where training's memory goes")?;
        page.wait_text(&id("end-slide"), "#plan=tensor:exercise,nvidia-smi:home,training,")?;
        page.wait_text(&id("end-slide"), "Homework: exercises of \"Where training's memory goes\"")?;
        page.wait_until("document.querySelector('[data-testid=end-slide] svg').clientHeight > 200")?;
        page.check_accessible()?;
        page.wait_until("location.hash.startsWith('#lesson=what-to-change&card=10')")?;
        page.press(Key::PageUp)?;
        page.wait_until("document.querySelector('[data-testid=end-slide]').hidden").map(drop)
    })
}

/// Gives the page a frame in place of the second window. Its text is returned.
const SECOND: &str = "const frame = document.body.appendChild(document.createElement('iframe'));
    frame.title = 'speaker';
    window.open = () => frame.contentWindow;
    window.said = () => frame.contentDocument.body.innerText;";

#[test]
fn the_speaker_sees_answer_next_card_and_clock_and_the_class_a_code() -> Result<()> {
    at("/#teachers=present", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.wait_text(&id("in-the-room"), "Count hands")?;
        page.click(&id("present-class"))?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        page.wait_text(&id("clock"), "of 45 min, this lesson to 15")?;
        page.execute("location.hash = '#lesson=reserved&card=2'", &[])?;
        page.wait_text(&id("card-position"), "Card 2 of")?;
        page.execute(SECOND, &[])?;
        page.press('n')?;
        page.wait_until(
            "window.said().includes('Answer: 20 MiB') && window.said().includes('Next\\n\\nThe answer.')",
        )?;
        page.wait_until("window.said().includes('On the card')")?;
        page.press('t')?;
        page.wait_until("document.querySelector('[data-testid=clock]').hidden")?;
        // A short list of the keys, and not the help of the whole page. The next key closes it.
        page.press('?')?;
        page.wait_text(&id("present-keys"), "whole screen")?;
        ensure!(page.count("dialog[open]")? == 0, "the help of the page is closed");
        page.check_accessible()?;
        page.press('q')?;
        page.wait_text(&id("room-code"), "#lesson=reserved&card=2")?;
        page.wait_text(&id("room-code"), "Phones cannot open this address")?;
        page.wait_until("document.querySelector('[data-testid=room-code] svg').clientHeight > 200")?;
        page.check_accessible()?;
        // Escape closes the code, and the presentation goes on.
        page.press(Key::Escape)?;
        page.wait_until("document.querySelector('[data-testid=room-code]').hidden")?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        page.press('q')?;
        page.wait_text(&id("room-code"), "#lesson=reserved&card=2")?;
        // Another key closes the code, and shows the answer as it does without one.
        page.press(Key::PageDown)?;
        page.wait_until("document.querySelector('[data-testid=room-code]').hidden")?;
        page.wait_until("location.hash === '#lesson=reserved&card=2&revealed=2'")?;
        page.wait_until("!window.said().includes('The answer.')")?;
        // The exercise has its hints and a solution.
        page.execute("location.hash = '#lesson=reserved&card=6'", &[])?;
        page.wait_until("window.said().includes('Hint: ') && window.said().includes('A solution:')").map(drop)
    })
}

#[test]
fn a_reload_goes_on_with_the_presentation_of_a_plan() -> Result<()> {
    at("/#teachers", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.wait_for(&id("copy-plan"))?;
        page.click(&id("copy-plan"))?;
        page.wait_text(&id("message"), "is copied")?;
        page.click(&id("present-class"))?;
        page.wait_text(&id("clock"), "of 45 min, this lesson to 15")?;
        // No message of the page lies over the slide.
        ensure!(page.count(&id("message"))? == 0, "a message is over the slide");
        page.wait_until("!document.querySelector('[data-testid=clock]').textContent.startsWith('0:00')")?;
        page.execute("window.isOld = true; location.reload()", &[])?;
        page.wait_until("!window.isOld && document.documentElement.classList.contains('is-presenting')")?;
        page.wait_text(&id("clock"), "of 45 min, this lesson to 15")?;
        page.wait_until("!document.querySelector('[data-testid=clock]').textContent.startsWith('0:00')")?;
        page.wait_until("location.hash === '#lesson=tensor&card=1'")?;
        // After the end a reload shows the lesson as a page.
        page.press(Key::Escape)?;
        page.wait_until("!document.documentElement.classList.contains('is-presenting')")?;
        page.execute("window.isOld = true; location.reload()", &[])?;
        page.wait_until("!window.isOld && document.querySelector('[data-card=\\'0\\']')")?;
        page.wait_until("!document.documentElement.classList.contains('is-presenting')").map(drop)
    })
}

#[test]
fn a_presented_chapter_has_its_sliders_and_keeps_their_places() -> Result<()> {
    at("/#lesson=training&card=2&sliders=batch:8", Window { width: 1920, height: 1080 }, |page| {
        page.reduced_motion(true)?;
        page.wait_text(".lesson-card", "batch of 8 ")?;
        page.click(&id("present"))?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        page.wait_text(&id("card-body"), "batch of 8 ")?;
        let reserved = "document.querySelector('[data-testid=stage]').ariaLabel";
        let before = page.execute(&format!("return {reserved}"), &[])?;
        // By keyboard alone: S is the way to the slider, and the arrow keys are its own.
        page.press('s')?;
        page.wait_until("document.activeElement.type === 'range'")?;
        // What the key shows is in sight.
        page.wait_until(
            "(() => { const edges = (css) => document.querySelector(css).getBoundingClientRect();
                const [sliders, card] = [edges('.card-sliders'), edges('.lesson-card')];
                return sliders.top >= card.top && sliders.bottom <= card.bottom + 1; })()",
        )?;
        page.press(Key::Right)?;
        page.wait_until(
            "!document.querySelector('[data-testid=card-body]').textContent.includes('batch of 8 ')",
        )?;
        page.wait_until("document.activeElement.type === 'range'")?;
        page.wait_until(&format!("{reserved} !== {before}"))?;
        page.wait_until("/^#lesson=training&card=2&sliders=batch:9$/.test(location.hash)")?;
        page.check_accessible()?;
        // The next card has the same memory, and the chapter, too.
        page.press(Key::PageDown)?;
        page.wait_until("location.hash === '#lesson=training&card=3&sliders=batch:9'")?;
        page.press(Key::Escape)?;
        page.wait_until("!document.documentElement.classList.contains('is-presenting')")?;
        page.wait_text("[data-card='1']", "batch of 9 ").map(drop)
    })
}

#[test]
fn a_class_is_asked_what_the_teacher_has_answered() -> Result<()> {
    at("/#lesson=reserved&card=2", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.click(&id("choice-2"))?;
        page.wait_text(&id("answer"), "The answer is")?;
        page.click(&id("present"))?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        page.wait_text(&id("card-title"), "What will happen?").map(drop)
    })
}

#[test]
fn a_link_holds_the_step_and_the_answers_that_were_shown() -> Result<()> {
    at("/#lesson=reserved&card=4&revealed=2,4", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.wait_text(&id("answer"), "The answer is")?;
        page.wait_until("location.hash === '#lesson=reserved&card=4&revealed=4'")?;
        page.click(&id("step-back"))?;
        page.wait_until("/^#lesson=reserved&card=4&revealed=4&step=\\d$/.test(location.hash)")?;
        let steps = page.execute("return document.querySelector('[data-testid=steps]').textContent", &[])?;
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("steps"), steps.as_str().unwrap_or_default())?;
        // A chapter shows each answer of the link.
        page.goto("/?f#lesson=fragmentation&card=1&revealed=2,3,4,5,6,7,8,9,10,11")?;
        page.wait_for("[data-card='1']")?;
        page.wait_until("[...document.querySelectorAll('.predict')].every((box) => box.querySelector('[data-testid=answer]'))").map(drop)
    })
}
