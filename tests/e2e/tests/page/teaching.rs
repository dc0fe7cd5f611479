//! Lessons in a class: answers and figures stay in sight, and a teacher makes a lesson.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Page, Window, drive_at};
use serde_json::json;

use crate::{id, wait_long};

pub(crate) const LAPTOP: Window = Window { width: 1366, height: 768 };
const PHONE: Window = Window { width: 390, height: 844 };

pub(crate) fn at(path: &str, window: Window, test: impl Fn(&mut Page) -> Result<()>) -> Result<()> {
    drive_at(path, window, GpuChoice::None, test)
}

/// The upper and the lower edge of an element in the window, without scrolling it into view.
fn edges(page: &Page, css: &str) -> Result<(f64, f64)> {
    page.wait_for(css)?;
    let script = "const { top, bottom } = document.querySelector(arguments[0]).getBoundingClientRect();
        return [top, bottom];";
    Ok(serde_json::from_value(page.execute(script, &[json!(css)])?)?)
}

/// Clicks without scrolling first.
pub(crate) fn press(page: &Page, name: &str) -> Result<()> {
    page.wait_for(&id(name))?;
    page.execute("document.querySelector(arguments[0]).click()", &[json!(id(name))]).map(drop)
}

#[test]
fn what_is_said_of_an_exercise_comes_into_sight() -> Result<()> {
    for (address, words) in
        [("/#lesson=nvidia-smi&card=11", "Not yet"), ("/#lesson=tensor&card=10", "Not yet")]
    {
        at(address, LAPTOP, |page| {
            press(page, "check")?;
            wait_long(page, &id("verdict"), words)?;
            page.wait_until(
                "(() => { const said = document.querySelector('[data-testid=verdict]').getBoundingClientRect();
                    const bar = document.querySelector('.turn')?.getBoundingClientRect() ?? { top: innerHeight };
                    return said.top >= 0 && said.bottom <= bar.top + 1; })()",
            )
            .map(drop)
        })?;
    }
    Ok(())
}

#[test]
fn the_lesson_about_nvidia_smi_draws_the_process() -> Result<()> {
    at("/#lesson=nvidia-smi&card=1", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.wait_text(&id("card-body"), "518 MiB")?;
        let label = |words: &str| {
            page.wait_until(&format!(
                "document.querySelector('[data-testid=chapter-figure]').getAttribute('aria-label').includes({})",
                json!(words)
            ))
        };
        let read = |card: usize| {
            let script = "document.querySelector(`[data-card='${arguments[0]}']`).scrollIntoView()";
            page.execute(script, &[json!(card)]).map(drop)
        };
        label("nvidia-smi shows 518 MiB")?;
        label("139.29 GiB are free in fact")?;
        read(1)?;
        page.click("[data-card='1'] .choices button:nth-child(2)")?;
        label("nvidia-smi shows 538 MiB")?;
        read(2)?;
        label("nvidia-smi shows 630 MiB, with 610 MiB outside of PyTorch's memory")?;
        page.check_accessible()
    })
}

#[test]
fn nothing_is_shown_beyond_the_first_unanswered_question() -> Result<()> {
    at("/#lesson=reserved&card=1", LAPTOP, |page| {
        page.reduced_motion(true)?;
        let steps = |words: &str| page.wait_text(&id("steps"), words);
        let is_off = "document.querySelector('[data-testid=step-forward]').disabled";
        // Card 1 asks nothing, and card 2 asks about the first step.
        page.wait_until(is_off)?;
        page.execute("document.querySelector('[data-testid=scrub]').value = 4; document.querySelector('[data-testid=scrub]').dispatchEvent(new Event('input', { bubbles: true }))", &[])?;
        std::thread::sleep(std::time::Duration::from_millis(200));
        steps("0/4")?;
        page.click(&id("card-next"))?;
        page.wait_until(is_off)?;
        page.click(&id("choice-3"))?;
        steps("1/4")?;
        page.wait_until(is_off).map(drop)
    })
}

#[test]
fn figure_and_question_are_in_sight_together_in_a_small_window() -> Result<()> {
    for (width, height) in [(390, 844), (640, 400), (683, 384)] {
        at("/#lesson=reserved&card=1", Window { width, height }, |page| {
            let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": true });
            page.devtools("Emulation.setDeviceMetricsOverride", &screen)?;
            page.reduced_motion(true)?;
            page.wait_for(&id("card-next"))?;
            page.execute("scrollTo(0, 100000)", &[])?;
            press(page, "card-next")?;
            page.wait_text(&id("card-position"), "Card 2 of")?;
            let in_sight =
                "(() => { const edges = css => document.querySelector(css).getBoundingClientRect();
                const [figure, title, question, bar] =
                    ['[data-testid=stage]', '[data-testid=card-title]', '.predict p', '.turn'].map(edges);
                const isApart = figure.bottom <= title.top + 1 || figure.right <= title.left + 1;
                return figure.top >= 0 && figure.bottom <= bar.top + 1 && title.top >= 0
                    && question.bottom <= bar.top + 1 && isApart; })()";
            page.wait_until(in_sight).map(drop)
        })?;
    }
    Ok(())
}

#[test]
fn an_exercise_has_its_button_and_its_figure_in_sight() -> Result<()> {
    at("/#lesson=reserved&card=6", LAPTOP, |page| {
        let in_sight = "(() => { const edges = css => document.querySelector(css).getBoundingClientRect();
            const [run, figure, bar] = ['[data-testid=check]', '[data-testid=stage]', '.turn'].map(edges);
            return run.bottom <= bar.top + 1 && figure.top >= 0 && figure.bottom <= innerHeight; })()";
        page.wait_for(&id("check"))?;
        page.wait_until(in_sight)?;
        press(page, "check")?;
        page.wait_until("document.querySelector('[data-testid=answer-status]').textContent !== ''")?;
        page.wait_until(in_sight)?;
        wait_long(page, &id("verdict"), "Not yet")?;
        let figure = "(() => { const { top, bottom } = document.querySelector('[data-testid=stage]').getBoundingClientRect();
            return top >= 0 && bottom <= innerHeight; })()";
        page.wait_until(figure).map(drop)
    })?;
    at("/#lesson=pools&card=8", LAPTOP, |page| {
        page.wait_text(&id("exercise-language"), "makes a memory pool").map(drop)
    })
}

#[test]
fn a_title_that_says_the_answer_waits_for_it() -> Result<()> {
    at("/#lesson=reserved&card=5", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.wait_text(&id("card-title"), "What will happen?")?;
        page.click(&id("choice-2"))?;
        page.wait_text(&id("card-title"), "A free changes allocated, not reserved")
    })
}

#[test]
fn on_a_phone_the_next_card_begins_at_its_top() -> Result<()> {
    at("/#lesson=reserved&card=1", PHONE, |page| {
        let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
        page.devtools("Emulation.setDeviceMetricsOverride", &phone)?;
        page.reduced_motion(true)?;
        for number in 2..=6 {
            page.wait_for(&id("card-next"))?;
            page.execute("scrollTo(0, 100000)", &[])?;
            press(page, "card-next")?;
            page.wait_text(&id("card-position"), &format!("Card {number} of"))?;
            page.wait_until("document.querySelector('.lesson-card').getBoundingClientRect().top >= -1")?;
            let (top, foot) = edges(page, &id("card-title"))?;
            ensure!(top >= 0.0 && foot <= 844.0, "card {number}: its title is from {top} to {foot}");
        }
        Ok(())
    })
}

#[test]
fn a_stage_fits_a_frame_of_640_by_400() -> Result<()> {
    at("/?embed=stage#preset=terms&step=3", Window { width: 640, height: 400 }, |page| {
        let screen = json!({ "width": 640, "height": 400, "deviceScaleFactor": 1, "mobile": false });
        page.devtools("Emulation.setDeviceMetricsOverride", &screen)?;
        page.wait_for(&id("forward"))?;
        page.wait_until("document.documentElement.scrollHeight <= innerHeight + 1").map(drop)
    })
}

#[test]
fn the_first_screen_leads_to_its_answer_and_to_the_page_for_teachers() -> Result<()> {
    at("/", LAPTOP, |page| {
        // A newcomer is sent to the first lesson, which has the words of the others.
        page.wait_text(&id("door-learn"), "Chapter 1: what a tensor costs")?;
        page.wait_text(&id("door-answer"), "Chapter 2: why nvidia-smi did not fall")?;
        page.click(&id("door-learn"))?;
        page.wait_until("location.hash === '#lesson=tensor&card=1'")?;
        page.goto("/")?;
        page.wait_text(&id("continue"), "What a tensor costs")?;
        page.click(&id("door-answer"))?;
        page.wait_until("location.hash === '#lesson=nvidia-smi&card=1'")?;
        page.goto("/")?;
        page.click(&id("door-teachers"))?;
        page.wait_for(&id("teachers"))?;
        page.click(&id("ninety-minutes"))?;
        page.wait_text(&id("plan-sum"), "80 min, 90 min with questions.")?;
        page.wait_text(&id("plan-sum"), "; lesson \"Why nvidia-smi did not fall\".")?;
        page.check_accessible()?;
        // Four short pages: only the cards of a plan are folded away, and each fits one and a half screens.
        for page_of in ["present", "hand-out", "host", ""] {
            page.click(&format!(
                ".teachers-pages [href='#teachers{}{page_of}']",
                if page_of.is_empty() { "" } else { "=" }
            ))?;
            page.wait_until(&format!(
                "location.hash.split('&')[0].replace(/#teachers=?/, '') === '{page_of}'"
            ))?;
            page.wait_until("document.documentElement.scrollHeight <= 1152")?;
            ensure!(
                page.count(".teachers details:not(.plan-cards)")? == 0,
                "{page_of}: a part is folded away"
            );
            page.check_accessible()?;
        }
        Ok(())
    })
}

#[test]
fn an_author_sees_all_errors_and_prints_the_lesson() -> Result<()> {
    at("/#make-lesson", LAPTOP, |page| {
        let write = |from: &str, to: &str| {
            let script = "const field = document.querySelector('[data-testid=lesson-text]');
                field.value = field.value.replace(arguments[0], arguments[1]);
                field.dispatchEvent(new Event('input', { bubbles: true }));";
            page.execute(script, &[json!(from), json!(to)])
        };
        page.wait_text(&id("lesson-verdict"), "It plays")?;
        write("title: My lesson", "title: Two tensors")?;
        write("more than size a => more", "less than size a => less")?;
        write("goal: most_allocated", "goal: most_allocatd")?;
        page.wait_text(&id("lesson-verdict"), "This is not a lesson yet: 2 errors.")?;
        page.wait_text(&id("lesson-findings"), "Line 10")?;
        page.wait_text(&id("lesson-findings"), "Line 33")?;
        ensure!(page.attribute(&id("print-lesson"), "disabled")?.is_some(), "no lesson, no sheet");
        write("less than size a => less", "more than size a => more")?;
        write("goal: most_allocatd", "goal: most_allocated")?;
        page.wait_text(&id("lesson-verdict"), "It plays, and every number")?;
        page.click("[data-testid=lesson-forms] summary")?;
        page.wait_text(&id("lesson-forms"), "{largest_cached}")?;
        page.check_accessible()?;
        page.click(&id("print-lesson"))?;
        page.wait_text(".handout", "Two tensors, page 1 of 2")?;
        // The text is remembered, so a reload prints the same.
        page.execute("location.reload()", &[])?;
        page.wait_text(".handout", "Two tensors: answers")
    })
}

#[test]
fn the_address_is_that_of_the_card_while_the_card_plays() -> Result<()> {
    at("/#lessons", LAPTOP, |page| {
        page.wait_for("[data-testid=lessons] a")?;
        let open = "document.querySelector('[data-testid=lessons] a[href*=reserved]').click()";
        page.execute(open, &[])?;
        page.wait_text(&id("card-position"), "Card 1 of")?;
        // The card plays for many seconds.
        page.wait_until("location.hash === '#lesson=reserved&card=1'").map(drop)
    })
}

#[test]
fn a_class_gets_a_lesson_without_solutions_and_without_edit() -> Result<()> {
    at("/#make-lesson", LAPTOP, |page| {
        page.wait_text(&id("lesson-verdict"), "It plays")?;
        page.execute(
            "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }",
            &[],
        )?;
        page.click(&id("copy-lesson-class"))?;
        page.wait_until("window.copied?.includes('#class-text=')")?;
        page.execute("location.hash = window.copied.split('#')[1]", &[])?;
        page.wait_text(&id("card-position"), "Card 1 of 2")?;
        page.wait_until("document.querySelector('[data-testid=edit-lesson]').parentElement.hidden")?;
        page.wait_until("location.hash.startsWith('#class-text=')")?;
        // An unknown block is refused with its line.
        page.goto("/#make-lesson")?;
        page.wait_text(&id("lesson-verdict"), "It plays")?;
        let write = "const field = document.querySelector('[data-testid=lesson-text]');
            field.value = field.value.replace('```predict', '```question');
            field.dispatchEvent(new Event('input', { bubbles: true }));";
        page.execute(write, &[])?;
        page.wait_text(&id("lesson-findings"), "near it is \"predict\"")
    })
}

#[test]
fn a_lesson_file_is_opened_to_be_edited() -> Result<()> {
    at("/#make-lesson", LAPTOP, |page| {
        page.wait_text(&id("lesson-verdict"), "It plays")?;
        let file = "---\nid: mine\ntitle: From a file\nsummary: Week 7.\ncapacity: 64 MiB\n---\n\n## One\nIn 17 MiB.\n";
        let open = "const [text] = arguments;
            const input = document.querySelector('[data-testid=lesson-file]');
            const files = new DataTransfer();
            files.items.add(new File([text], 'mine.md'));
            input.files = files.files;
            input.dispatchEvent(new Event('change', { bubbles: true }));";
        let draft = "const field = document.querySelector('[data-testid=lesson-text]');
            field.value = field.value.replace('title: My lesson', 'title: My draft');
            field.dispatchEvent(new Event('input', { bubbles: true }));";
        page.execute(draft, &[])?;
        page.execute(open, &[json!(file)])?;
        let holds = |words: &str| {
            page.wait_until(&format!(
                "document.querySelector('[data-testid=lesson-text]').value.includes({})",
                json!(words)
            ))
        };
        holds("title: From a file")?;
        // The number of a week makes no note, and a number without a proof is no mistake.
        page.wait_text(&id("lesson-verdict"), "its run contradicts nothing in it")?;
        ensure!(page.count(".headline.differs")? == 0, "only what is false is red");
        page.wait_text(&id("lesson-findings"), "1 place without a proof")?;
        page.wait_text(&id("lesson-findings"), "Line 9")?;
        page.click(&id("bring-back"))?;
        holds("title: My draft")?;
        // From the page for teachers, a file is played, and can be edited.
        page.goto("/#teachers")?;
        page.wait_for(&id("teachers"))?;
        page.execute(open, &[json!(file)])?;
        page.wait_text(&id("card-position"), "Card 1 of 1")?;
        page.click(&id("edit-lesson"))?;
        holds("title: From a file").map(drop)
    })
}

#[test]
fn students_get_a_plan_as_a_link_and_a_course_page_as_an_index() -> Result<()> {
    at("/#teachers", LAPTOP, |page| {
        page.wait_for(&id("teachers"))?;
        page.execute(
            "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }",
            &[],
        )?;
        // A lecture is changed: without its last lesson, and with another one.
        page.click(&id("ninety-minutes"))?;
        crate::choose(page, "use-what-to-change", "")?;
        crate::choose(page, "use-streams", "home")?;
        crate::choose(page, "exercise-training", "class")?;
        page.wait_text(&id("plan-sum"), "73 min, 85 min with questions.")?;
        page.wait_until(
            "location.hash === '#teachers&class=tensor:exercise,nvidia-smi:home,training:exercise,fragmentation:exercise,streams:home'",
        )?;
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("plan-sum"), "73 min, 85 min with questions.")?;
        page.execute(
            "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }",
            &[],
        )?;
        page.execute("location.hash = '#teachers=host'", &[])?;
        page.wait_for(&id("copy-index-markdown"))?;
        page.click(&id("copy-index-markdown"))?;
        page.wait_until("window.copied?.startsWith('1. [What a tensor costs](http')")?;
        page.wait_until("window.copied?.includes('#lesson=streams&card=1) (5 min), [exercise](')")?;
        page.wait_until(
            "window.copied?.includes('Homework: lessons \"Why nvidia-smi did not fall\", \"Streams')",
        )?;
        crate::choose(page, "embed-lesson", "pools")?;
        page.click(&id("copy-embed"))?;
        page.wait_until("window.copied?.startsWith('<iframe src=') && window.copied.includes('?embed=lesson#lesson=pools&card=1')")?;
        page.execute("location.hash = '#teachers'", &[])?;
        page.click(&id("copy-plan"))?;
        page.wait_until("window.copied?.includes('#plan=tensor:exercise,nvidia-smi:home,training:')")?;
        page.execute("location.hash = window.copied.split('#')[1]", &[])?;
        page.wait_text(&id("plan"), "Why it fails with memory free")?;
        page.wait_text(&id("homework"), "Homework: lessons \"Why nvidia-smi did not fall\"")?;
        ensure!(page.count("[data-testid=plan] li")? == 5, "the lessons of the plan and its homework");
        page.check_accessible()?;
        let row = |number: usize| format!("[data-testid=plan] li:nth-child({number})");
        page.wait_text(&row(1), "In class, with the exercise")?;
        page.wait_text(&row(2), "Homework: the lesson and its exercise")?;
        // The exercise of a lesson is its last card.
        page.click(&format!("{} p a", row(3)))?;
        page.wait_until("/^#lesson=training&card=1\\d/.test(location.hash)")?;
        page.execute("history.back()", &[])?;
        page.wait_for(&row(2))?;
        page.click(&format!("{} a", row(2)))?;
        page.wait_until("location.hash.startsWith('#lesson=nvidia-smi&card=1')")?;
        // An exercise is nobody's, and a lesson at home has none in class.
        page.goto("/#teachers&class=tensor:exercise")?;
        crate::choose(page, "exercise-tensor", "none")?;
        page.wait_until("location.hash === '#teachers&class=tensor:only'")?;
        page.wait_until(
            "!document.querySelector('[data-testid=plan-sum]').textContent.includes('Homework')",
        )?;
        crate::choose(page, "use-tensor", "home")?;
        page.wait_text(&id("plan-sum"), "lesson \"What a tensor costs\" without exercise.")?;
        page.wait_until(
            "[...document.querySelectorAll('[data-testid=exercise-tensor] option')].every((it) => it.value !== 'class')",
        )
        .map(drop)
    })
}

#[test]
fn a_plan_leaves_cards_out_and_the_browser_offers_it_again() -> Result<()> {
    at("/#teachers&class=tensor", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.wait_text(&id("plan-sum"), "15 min,")?;
        page.click("[data-testid=plan-rows] li:first-child summary")?;
        page.wait_for(&id("plan-card"))?;
        page.check_accessible()?;
        page.click(&id("plan-card"))?;
        page.wait_until("location.hash.startsWith('#teachers&class=tensor:without-1')")?;
        page.goto("/?again#teachers")?;
        page.wait_text("[data-testid=plan-rows] li:first-child summary", "Without 1 card")?;
        // A lecture, or a plan in an address, takes the place of the plan, which can be brought back.
        for other in [
            "document.querySelector('[data-testid=ninety-minutes]').click()",
            "location.hash = '#teachers&class=ranks'",
        ] {
            page.wait_until("document.querySelector('[data-testid=undo-plan]').parentElement.hidden")?;
            page.execute(other, &[])?;
            page.wait_until("!location.hash.includes('without-1')")?;
            page.click(&id("undo-plan"))?;
            page.wait_until("location.hash.startsWith('#teachers&class=tensor:without-1')")?;
        }
        page.goto("/?opened#teachers&class=pools")?;
        page.wait_text(&id("plan-sum"), "9 min,")?;
        page.goto("/?kept#teachers")?;
        page.wait_text(&id("plan-sum"), "9 min,")?;
        page.click(&id("undo-plan"))?;
        page.wait_until("location.hash.startsWith('#teachers&class=tensor:without-1')")?;
        page.click(&id("present-class"))?;
        page.wait_until("location.hash.startsWith('#lesson=tensor&card=2')")?;
        page.wait_text(&id("card-position"), "Card 1 of")?;
        // There is no card before it.
        page.press(Key::PageUp)?;
        page.wait_until("location.hash.startsWith('#lesson=tensor&card=2')").map(drop)
    })
}

#[test]
fn a_teacher_sets_minutes_breaks_and_the_order_of_lessons() -> Result<()> {
    at("/#teachers&class=tensor,training,fragmentation", LAPTOP, |page| {
        page.wait_text(&id("plan-sum"), "49 min, 55 min with questions.")?;
        crate::choose(page, "minutes-training", "30")?;
        page.wait_text(&id("plan-sum"), "61 min, 70 min with questions.")?;
        crate::choose(page, "break-tensor", "15")?;
        page.wait_text(&id("plan-sum"), "and a break of 15 min after \"What a tensor costs\".")?;
        page.click(&id("earlier-fragmentation"))?;
        let changed = "#teachers&class=tensor:break-15,fragmentation,training:min-30";
        page.wait_until(&format!("location.hash === '{changed}'"))?;
        page.wait_until("document.activeElement.dataset.testid === 'earlier-fragmentation'")?;
        page.check_accessible()?;
        // No break follows the last lesson, and the first does not move further.
        page.wait_until("document.querySelector('[data-testid=break-training]').closest('p').hidden")?;
        ensure!(page.attribute(&id("earlier-tensor"), "disabled")?.is_some(), "the first lesson moves");
        let empty = "const field = document.querySelector('[data-testid=minutes-training]');
            field.value = '';
            field.dispatchEvent(new Event('change', { bubbles: true }));";
        page.execute(empty, &[])?;
        page.wait_until("document.querySelector('[data-testid=minutes-training]').value === '18'")?;
        crate::choose(page, "break-tensor", "0")?;
        page.wait_text(&id("plan-sum"), "49 min, 55 min with questions.").map(drop)
    })
}

#[test]
fn a_plan_has_the_teacher_s_own_lesson() -> Result<()> {
    at("/#make-lesson", LAPTOP, |page| {
        page.reduced_motion(true)?;
        page.wait_text(&id("lesson-verdict"), "It plays")?;
        page.wait_text(&id("lesson-link"), "too long for a QR code")?;
        let write = "const field = document.querySelector('[data-testid=lesson-text]');
            field.value = field.value.replace('title: My lesson', 'title: Ours');
            field.dispatchEvent(new Event('input', { bubbles: true }));
            navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }";
        page.execute(write, &[])?;
        page.execute("location.hash = '#teachers&class=tensor'", &[])?;
        page.wait_for(&id("use-my-lesson"))?;
        crate::choose(page, "use-my-lesson", "present")?;
        page.wait_text(&id("plan-sum"), "17 min, 20 min with questions.")?;
        page.wait_text(&id("plan-sum"), "exercises of \"What a tensor costs\", \"Ours\".")?;
        page.check_accessible()?;
        page.click(&id("copy-plan"))?;
        page.wait_until("window.copied?.includes('#plan=tensor,my-lesson/2/1.')")?;
        page.click(&id("present-class"))?;
        page.wait_until("document.documentElement.classList.contains('is-presenting')")?;
        page.execute("location.hash = '#lesson=tensor&card=9'", &[])?;
        page.wait_text(&id("card-position"), "Card 9 of")?;
        for _ in 0..6 {
            page.press(Key::PageDown)?;
            std::thread::sleep(std::time::Duration::from_millis(300));
            let is_own = "return location.hash.startsWith('#lesson-text=')";
            if page.execute(is_own, &[])?.as_bool() == Some(true) {
                break;
            }
        }
        page.wait_text(&id("clock"), "of 20 min, this lesson to 17")?;
        page.press(Key::Escape)?;
        // Students get it without its solutions.
        page.execute("location.hash = window.copied.split('#')[1]", &[])?;
        page.wait_text(&id("plan"), "Ours")?;
        page.wait_text("[data-testid=plan] li:nth-child(2)", "3 min")?;
        page.click("[data-testid=plan] li:nth-child(2) h3 a")?;
        page.wait_until("location.hash.startsWith('#class-text=')")?;
        page.wait_text(&id("card-position"), "Card 1 of 2").map(drop)
    })
}

#[test]
fn an_author_writes_python_and_sees_the_figure_of_its_run() -> Result<()> {
    at("/#make-lesson", LAPTOP, |page| {
        page.wait_text(&id("lesson-verdict"), "every number and comparison in it is proved by its run")?;
        page.wait_until(
            "document.querySelector('[data-testid=card-figure]').ariaLabel.includes('llocated 3 MiB')",
        )?;
        // The requests of the run are not in the text that the author sees.
        let text = "document.querySelector('[data-testid=lesson-text]').value";
        page.wait_until(&format!("!{text}.includes('alloc 3145728') && {text}.includes('python run')"))?;
        let write = "const field = document.querySelector('[data-testid=lesson-text]');
            field.value = field.value.replace(arguments[0], arguments[1]);
            field.dispatchEvent(new Event('input', { bubbles: true }));";
        page.execute(
            write,
            &[
                json!("a = torch.empty(3 * 2**18, device=\"cuda\")\n```\n\n```predict"),
                json!("a = torch.empty(5 * 2**18, device=\"cuda\")\nb = a + 1\n```\n\n```predict"),
            ],
        )?;
        page.wait_text(&id("lesson-verdict"), "This is not a lesson yet")?;
        wait_long(page, &id("lesson-verdict"), "It plays")?;
        page.wait_until(
            "document.querySelector('[data-testid=card-figure]').ariaLabel.includes('llocated 10 MiB')",
        )?;
        page.execute(write, &[json!("b = a + 1"), json!("b = nothing + 1")])?;
        wait_long(page, &id("lesson-findings"), ": NameError: name 'nothing' is not defined")?;
        page.click(&format!("{} button", id("lesson-findings")))?;
        page.wait_until(
            "document.activeElement.value.slice(document.activeElement.selectionStart).startsWith('b = nothing')",
        )?;
        page.execute(write, &[json!("b = nothing + 1"), json!("b = a + 1")])?;
        wait_long(page, &id("lesson-verdict"), "It plays")?;
        // The solution is tried, too.
        page.execute(write, &[json!("dtype=torch.float16"), json!("dtype=torch.float64")])?;
        wait_long(page, &id("lesson-verdict"), "its solution does not solve the exercise")?;
        page.wait_text(&id("lesson-findings"), "the most allocated is")?;
        page.execute(write, &[json!("dtype=torch.float64"), json!("dtype=torch.float16")])?;
        wait_long(page, &id("lesson-verdict"), "It plays, and")?;
        page.check_accessible()?;
        page.click(&id("play-lesson"))?;
        page.wait_text(&id("card-position"), "Card 1 of 2")?;
        page.click(&id("reveal"))?;
        page.wait_text(&id("card-body"), "5 MiB")?;
        page.wait_text(&id("card-body"), "b = a + 1")
    })
}
