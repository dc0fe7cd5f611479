//! The first page, lessons, links and embeds.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Page, Window, drive, drive_at};
use serde_json::json;

use crate::{choose, fixture, id, workload, write_workload};

fn at(path: &str, test: impl Fn(&mut Page) -> Result<()>) -> Result<()> {
    drive_at(path, Window::default(), GpuChoice::None, test)
}

/// The hash of the page's address, without `#`.
fn hash(page: &Page) -> Result<String> {
    Ok(page.execute("return location.hash", &[])?.as_str().unwrap_or_default().to_owned())
}

#[test]
fn the_first_page_has_three_doors_and_a_story() -> Result<()> {
    at("/", |page| {
        page.wait_text("h1", "more GPU memory than your tensors use")?;
        page.wait_for(&id("stage"))?;
        page.wait_text(&id("answer"), "CUDA context")?;
        page.check_accessible()?;
        page.click(&id("nav-workbench"))?;
        page.wait_for(&id("map"))?;
        ensure!(page.execute("return document.title", &[])? == json!("The terms · Blockyard"));
        page.execute("history.back()", &[])?;
        page.wait_for(&id("door-learn"))?;
        page.click(&id("door-learn"))?;
        page.wait_for(&id("card-title"))?;
        page.check_accessible()
    })
}

#[test]
fn a_question_is_answered_by_the_allocator_and_progress_is_remembered() -> Result<()> {
    at("/#lesson=reserved&card=2", |page| {
        page.reduced_motion(true)?;
        page.wait_text(&id("card-position"), "Card 2 of")?;
        // The answer is not given away.
        page.wait_gone(&id("card-body"))?;
        page.click(&id("choice-1"))?;
        page.wait_text(&id("answer"), "The answer is: 20 MiB")?;
        page.wait_text(&id("card-body"), "20 MiB")?;
        page.wait_text(&id("term-reserved"), "20 MiB")?;
        page.check_accessible()?;
        page.click(&id("card-next"))?;
        page.wait_text(&id("card-position"), "Card 3 of")?;
        page.wait_until("location.hash === '#lesson=reserved&card=3'")?;
        page.click(&id("nav-learn"))?;
        page.wait_text(&id("lessons"), "2 of")?;
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("lessons"), "2 of")?;
        page.check_accessible()
    })
}

#[test]
fn the_readers_answer_and_the_right_one_are_marked_and_survive_a_reload() -> Result<()> {
    at("/#lesson=reserved&card=2", |page| {
        page.reduced_motion(true)?;
        page.click(&id("choice-1"))?;
        let is_marked = |page: &Page| {
            page.wait_text(&id("answer"), "You said: 3 MiB. The answer is: 20 MiB.")?;
            page.wait_text(&id("choice-1"), "✗ your answer")?;
            page.wait_text(&id("choice-3"), "✓ right")?;
            ensure!(!page.text(&id("choice-2"))?.contains(['✓', '✗']));
            page.check_accessible()
        };
        is_marked(page)?;
        page.execute("location.reload()", &[])?;
        is_marked(page)?;
        page.click(&id("ask-again"))?;
        page.wait_gone(&id("answer"))?;
        page.wait_gone(&id("card-body"))?;
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("card-position"), "Card 2 of")?;
        page.wait_gone(&id("card-body"))
    })
}

#[test]
fn a_lesson_is_made_checked_played_and_linked() -> Result<()> {
    at("/#teachers", |page| {
        page.click(&id("to-make-lesson"))?;
        page.wait_until("location.hash === '#make-lesson'")?;
        page.wait_text(&id("lesson-verdict"), "every number and comparison in it is proved by its run")?;
        page.wait_text(&id("lesson-cards"), "A small tensor: a question")?;
        page.check_accessible()?;
        let write = "const field = document.querySelector('[data-testid=lesson-text]');
            field.value = field.value.replace(arguments[0], arguments[1]);
            field.dispatchEvent(new Event('input', { bubbles: true }));";
        // A statement that the run does not prove is named with its line, and a click chooses the line.
        page.execute(write, &[json!("than it needs."), json!("than it needs, by 17 MiB.")])?;
        page.wait_text(&id("lesson-verdict"), "its run contradicts nothing in it")?;
        page.wait_text(&id("lesson-findings"), "Line 10")?;
        page.click("[data-testid=lesson-findings] button")?;
        let chosen = "const field = document.querySelector('[data-testid=lesson-text]');
            return field.value.slice(field.selectionStart, field.selectionEnd).startsWith('The tensor asked for')";
        ensure!(page.execute(chosen, &[])?.as_bool() == Some(true), "another line is chosen");
        page.execute(write, &[json!("=> more}"), json!("=> less")])?;
        page.wait_text(&id("lesson-verdict"), "This is not a lesson yet: 1 error.")?;
        ensure!(page.attribute(&id("play-lesson"), "disabled")?.is_some());
        page.execute(write, &[json!("=> less"), json!("=> more}")])?;
        page.execute(write, &[json!("than it needs, by 17 MiB."), json!("than it needs.")])?;
        page.execute(write, &[json!("title: My lesson"), json!("title: Made here")])?;
        page.wait_text(&id("lesson-verdict"), "It plays, and every number")?;
        page.click(&id("play-lesson"))?;
        page.wait_text("h1", "Made here")?;
        page.wait_until("location.hash.startsWith('#lesson-text=1.') && location.hash.endsWith('card=1')")?;
        // The address alone has the lesson, at its card.
        page.click(&id("card-next"))?;
        let address = hash(page)?;
        page.execute("localStorage.clear()", &[])?;
        page.goto(&format!("/?again{address}"))?;
        page.wait_text("h1", "Made here")?;
        page.wait_text(&id("card-position"), "Card 2 of 2")?;
        page.click(&id("edit-lesson"))?;
        page.wait_for(&id("lesson-text"))?;
        page.wait_until(
            "document.querySelector('[data-testid=lesson-text]').value.includes('title: Made here')",
        )
        .map(drop)
    })
}

#[test]
fn the_next_lesson_opens_while_the_figure_of_the_last_card_moves() -> Result<()> {
    // The next frame was to draw a figure that had been removed, and the page stopped.
    at("/#lesson=reserved&card=6", |page| {
        page.wait_for(&id("card-next"))?;
        page.wait_text(&id("card-next"), "Next lesson")?;
        page.click(&id("card-next"))?;
        page.wait_until("document.querySelector('h1').textContent.includes('Workspaces of cuBLAS')")?;
        page.wait_text("[data-card='0']", "torch.randn")
    })
}

#[test]
fn the_focus_goes_from_an_answer_to_what_is_said_of_it() -> Result<()> {
    at("/#lesson=reserved&card=2", |page| {
        page.wait_for(&id("choice-1"))?;
        page.click(&id("choice-1"))?;
        page.wait_until("document.activeElement?.dataset?.testid === 'answer'").map(drop)
    })
}

#[test]
fn a_lesson_that_the_sample_replaced_comes_back() -> Result<()> {
    at("/#make-lesson", |page| {
        let write = "const field = document.querySelector('[data-testid=lesson-text]');
            field.value = field.value.replace('title: My lesson', 'title: Hours of work');
            field.dispatchEvent(new Event('input', { bubbles: true }));";
        page.wait_for(&id("lesson-text"))?;
        page.execute(write, &[])?;
        page.click(&id("renew-lesson"))?;
        let has = |words: &str| {
            format!("document.querySelector('[data-testid=lesson-text]').value.includes('{words}')")
        };
        page.wait_until(&has("title: My lesson"))?;
        page.click(&id("bring-back"))?;
        page.wait_until(&has("title: Hours of work"))?;
        page.goto("/?again#make-lesson")?;
        page.wait_until(&has("title: Hours of work")).map(drop)
    })
}

#[test]
fn a_lesson_is_presented_with_the_keys_of_a_clicker() -> Result<()> {
    at("/#lesson=reserved&card=3", |page| {
        page.reduced_motion(true)?;
        let letters = "return parseFloat(getComputedStyle(document.documentElement).fontSize)";
        let before = page.execute(letters, &[])?.as_f64().unwrap_or_default();
        page.click(&id("present"))?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        let large = page.execute(letters, &[])?.as_f64().unwrap_or_default();
        ensure!(large > 1.25 * before, "letters of {large} px after {before} px");
        page.wait_until("document.querySelector('header.top').getBoundingClientRect().height === 0")?;
        page.check_accessible()?;
        // First the answer, then the next card.
        page.press(Key::PageDown)?;
        page.wait_text(&id("answer"), "The answer is")?;
        ensure!(hash(page)?.contains("card=3"));
        page.press(' ')?;
        page.wait_until("location.hash.includes('card=4')")?;
        page.press(Key::PageUp)?;
        page.wait_until("location.hash.includes('card=3')")?;
        page.press('b')?;
        page.wait_until("getComputedStyle(document.body).visibility === 'hidden'")?;
        page.press('b')?;
        page.wait_until("getComputedStyle(document.body).visibility === 'visible'")?;
        page.click(&id("present-end"))?;
        page.wait_until("!document.documentElement.classList.contains('is-presenting')").map(drop)
    })
}

#[test]
fn a_word_of_the_glossary_opens_in_the_lesson() -> Result<()> {
    at("/#lesson=nvidia-smi&card=1", |page| {
        page.reduced_motion(true)?;
        page.wait_text(&id("card-body"), "518 MiB")?;
        page.click("[data-testid='card-body'] .glossary-link")?;
        page.wait_text(".word-popup:popover-open", "What the driver takes on a GPU for each process")?;
        ensure!(hash(page)? == "#lesson=nvidia-smi&card=1");
        let popup = page.rect(".word-popup:popover-open")?;
        ensure!(popup.x >= 0.0 && popup.y >= 0.0 && popup.width <= 362.0, "{popup:?}");
        page.check_accessible()?;
        page.press(Key::Escape)?;
        page.wait_until("!document.querySelector(':popover-open')")?;
        page.wait_text("[data-card='0']", "CUDA context")?;
        page.click("[data-testid='card-body'] .glossary-link")?;
        page.click(".word-popup:popover-open a")?;
        page.wait_until("location.hash === '#glossary=cuda-context'")?;
        page.execute("history.back()", &[])?;
        page.wait_text("[data-card='0']", "CUDA context")
    })
}

#[test]
fn lessons_stand_in_parts_and_their_texts_come_after_the_first_screen() -> Result<()> {
    at("/#lessons", |page| {
        page.wait_text(&id("lessons"), "Why nvidia-smi did not fall")?;
        let parts = page.execute(
            "return [...document.querySelectorAll('[data-testid=lessons] > section')].map((part) => [part.querySelector('h2').textContent, part.querySelectorAll('li').length])",
            &[],
        )?;
        let expected = json!([["One small GPT, in six chapters", 6], ["Appendix", 4]]);
        ensure!(parts == expected, "{parts}");
        page.check_accessible()?;
        // A sentence of the first lesson is not in the module of the first screen, but in one that the list has
        // fetched.
        let found = page.execute_async(
            "const has = async (file) => new TextDecoder('latin1').decode(await (await fetch(file)).arrayBuffer()).includes('Each number takes four bytes');
            const fetched = performance.getEntriesByType('resource').map((file) => file.name).filter((name) => /blockyard-web-.*wasm$/.test(name));
            return [await has('blockyard-web_bg.wasm'), (await Promise.all(fetched.map(has))).some((it) => it)]",
            &[],
        )?;
        ensure!(found == json!([false, true]), "{found}");
        Ok(())
    })
}

#[test]
fn links_open_what_they_say_and_back_leads_back() -> Result<()> {
    at("/#preset=terms&step=5", |page| {
        page.wait_text(&id("position"), "request 5 of")?;
        page.click(&id("forward"))?;
        page.wait_until("location.hash === '#preset=terms&step=6'")?;
        choose(page, "preset", "streams")?;
        page.wait_until("location.hash.startsWith('#preset=streams')")?;
        page.execute("history.back()", &[])?;
        page.wait_text(&id("document-title"), "The terms")?;
        page.wait_text(&id("position"), "request 6 of")?;
        // A text of the reader's own is in the address, with its device and its settings.
        write_workload(page, "mine = alloc 7 MiB")?;
        page.fill(&id("capacity"), "3 GiB")?;
        page.wait_until("location.hash.includes('capacity=3+GiB')")?;
        let own = hash(page)?;
        page.execute("localStorage.clear(); location.hash = '#lessons'", &[])?;
        page.wait_for(&id("lessons"))?;
        page.goto(&format!("/{own}"))?;
        page.wait_text(&id("segments-summary"), "1 segment, 20 MiB")?;
        ensure!(workload(page)? == "mine = alloc 7 MiB", "{}", workload(page)?);
        ensure!(page.value(&id("capacity"))? == "3 GiB", "another device");
        Ok(())
    })
}

#[test]
fn a_broken_link_says_so_and_loses_nothing() -> Result<()> {
    at("/#preset=terms&step=five&shoes=2", |page| {
        page.wait_text(&id("message"), "\"five\", is not a number")?;
        page.wait_text(&id("message"), "newer Blockyard")?;
        page.wait_text(&id("document-title"), "The terms")?;
        page.goto("/#lesson=no-such-lesson")?;
        page.wait_text(&id("message"), "no lesson")?;
        page.wait_for(&id("lessons"))
    })
}

#[test]
fn what_is_shown_is_shared_as_link_frame_and_files() -> Result<()> {
    at("/#preset=terms&step=5", |page| {
        page.click(&id("share"))?;
        let link = page.value(&id("share-link"))?;
        ensure!(link.ends_with("#preset=terms&step=5"), "{link}");
        let frame = page.value(&id("share-embed"))?;
        ensure!(frame.contains("?embed=stage&amp;theme=auto#preset=terms&amp;step=5"), "{frame}");
        page.check_accessible()?;
        page.click(&id("share-close"))?;
        page.wait_gone(&id("share-dialog"))
    })
}

#[test]
fn an_embedded_figure_has_nothing_around_it_and_tells_its_height() -> Result<()> {
    at("/#lessons", |page| {
        let script = "
            window.heights = [];
            addEventListener('message', (event) => {
                if (event.data?.type === 'blockyard:height') heights.push(event.data.height);
            });
            const frame = document.createElement('iframe');
            frame.src = './?embed=stage&theme=dark#preset=terms&step=5';
            frame.style = 'width: 760px; height: 420px';
            document.body.append(frame);";
        page.execute(script, &[])?;
        page.wait_until("window.heights.some((height) => height > 250 && height < 700)")?;
        let inside = "const inside = document.querySelector('iframe').contentDocument;
            return [inside.querySelectorAll('header').length, inside.querySelectorAll('[data-testid=stage]').length,
                inside.documentElement.dataset.theme, inside.documentElement.scrollWidth <= 760]";
        ensure!(page.execute(inside, &[])? == json!([0, 1, "dark", true]), "{}", page.execute(inside, &[])?);
        Ok(())
    })
}

#[test]
fn a_recording_opens_at_its_peak() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &fixture("programs/gnn_random"))?;
        page.wait_text(&id("document-title"), "gnn_random")?;
        page.wait_for(&id("headline"))?;
        let peak = page.text(&id("position"))?;
        page.press(Key::End)?;
        page.press("k")?;
        page.wait_text(&id("position"), &peak)?;
        page.press("K")?;
        page.wait_until("location.hash.startsWith('#own-file')")?;
        Ok(())
    })
}

#[test]
fn the_words_are_filtered_and_their_figure_follows_the_theme() -> Result<()> {
    drive_at("/#glossary", Window::default(), GpuChoice::None, |page| {
        page.wait_for(&id("glossary"))?;
        let all = page.count("[data-testid=glossary] > div")?;
        page.wait_text(&id("word-count"), &format!("{all} words"))?;
        page.fill(&id("word-filter"), "memory_reserved")?;
        page.wait_text(&id("word-count"), &format!(" of {all} words"))?;
        let shown = page.count("[data-testid=glossary] > div:not([hidden])")?;
        ensure!(0 < shown && shown < all / 2, "{shown} of {all} words");
        page.wait_text("[data-testid=glossary] > div:not([hidden])", "memory_reserved")?;
        page.check_accessible()?;
        page.fill(&id("word-filter"), "zebra")?;
        page.wait_text(&id("word-count"), &format!("none of {all} words has this"))?;
        page.fill(&id("word-filter"), "")?;
        page.wait_text(&id("word-count"), &format!("{all} words"))?;
        // The ground of the figure is that of the page.
        let ground = "return document.querySelector('.drawn svg rect').getAttribute('fill')";
        let light = page.execute(ground, &[])?;
        page.dark(true)?;
        page.wait_until("document.querySelector('.drawn svg rect').getAttribute('fill') === '#161b22'")?;
        ensure!(light == json!("#ffffff"), "{light}");
        page.check_accessible()
    })
}
