//! The workload's text: colors, wrapping, completion, errors, long texts.

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{Key, drive};
use serde_json::json;

use crate::{choose, id, workload, write_workload};

#[test]
fn long_lines_wrap_and_words_have_colors() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "terms")?;
        page.wait_until("document.querySelectorAll('.editor .row').length > 40")?;
        let measure = "
            const sheet = document.querySelector('.editor .sheet');
            const rows = [...sheet.querySelectorAll('.row')];
            const line = parseFloat(getComputedStyle(sheet).lineHeight);
            const area = sheet.querySelector('textarea');
            return {
                wide: sheet.scrollWidth - sheet.clientWidth,
                wrapped: rows.some((row) => row.offsetHeight > line * 1.5),
                // The field breaks where the colored lines do, or the caret would stand elsewhere.
                heights: Math.abs(area.scrollHeight - sheet.querySelector('.text').offsetHeight),
                comment: getComputedStyle(sheet.querySelector('.comment')).color !== getComputedStyle(sheet).color,
            }";
        let found = page.execute(measure, &[])?;
        ensure!(found["wide"] == json!(0), "lines are cut off: {found}");
        ensure!(found["wrapped"] == json!(true) && found["comment"] == json!(true), "{found}");
        ensure!(found["heights"].as_f64().is_some_and(|pixels| pixels < 2.0), "{found}");
        Ok(())
    })
}

#[test]
fn what_may_be_typed_is_offered() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "empty")?;
        page.fill(&id("workload-text"), "stream side\nweights = alloc 3 MiB on s")?;
        page.wait_text(&id("suggestions"), "side")?;
        page.check_accessible()?;
        page.press(Key::Down)?;
        page.press(Key::Enter)?;
        page.wait_gone(&id("suggestions"))?;
        ensure!(workload(page)? == "stream side\nweights = alloc 3 MiB on side", "{}", workload(page)?);
        // Without a choice, Enter ends the line.
        page.press("\nfree w")?;
        page.wait_text(&id("suggestions"), "weights")?;
        page.press("\n")?;
        ensure!(workload(page)?.ends_with("free w\n"), "{}", workload(page)?);
        page.press(Key::Backspace)?;
        page.press_with(&Key::Control, " ")?;
        page.wait_text(&id("suggestions"), "weights")?;
        page.press(Key::Tab)?;
        ensure!(workload(page)?.ends_with("free weights"), "{}", workload(page)?);
        page.wait_text(&id("verdict"), "2 requests")
    })
}

#[test]
fn units_of_a_thousand_and_pytorch_are_understood() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 GB")?;
        page.wait_text(&id("decimal-hint"), "3 GB is 3,000,000,000 bytes, 2.79 GiB")?;
        write_workload(
            page,
            "x = torch.empty(1000, 1000, device=\"cuda\")\ndel x\ntorch.cuda.empty_cache()",
        )?;
        page.wait_text(&id("verdict"), "3 requests")?;
        page.wait_text(&id("step-title"), "empty_cache")?;
        page.fill(&id("config"), "expandable_segments:true")?;
        page.wait_text(&id("device-error"), "Did you mean True?")
    })
}

#[test]
fn an_error_stands_in_the_margin_and_is_one_click_away() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB\nb = alloc 3 MBB\nfree a")?;
        page.wait_text(".editor .row.is-wrong", "b = alloc 3 MBB")?;
        page.wait_for(".editor .row.is-wrong .error-overlay span")?;
        page.press(Key::Escape)?;
        page.click(&id("to-error"))?;
        ensure!(page.focused()? == "textarea#workload-text", "{}", page.focused()?);
        let caret = page.execute("return document.activeElement.selectionStart", &[])?;
        ensure!(caret == json!(26), "the caret is at {caret}");
        Ok(())
    })
}

#[test]
fn a_hundred_thousand_lines_are_typed_into() -> Result<()> {
    drive(|page| {
        let lines: Vec<_> = (0..100_000).map(|index| format!("a{index} = alloc 512")).collect();
        page.drop_file("main", "long.txt", lines.join("\n").as_bytes())?;
        page.wait_text(&id("document-title"), "long")?;
        page.wait_until("document.querySelector('.editor .sheet.is-long') !== null")?;
        // Until the run has ended, its explanation may still move the lines under the pointer.
        page.wait_text(&id("verdict"), "100,000 requests")?;
        // Far down, and the caret goes where the pointer is.
        let scroll = "
            const sheet = document.querySelector('.editor .sheet');
            sheet.scrollTop = sheet.scrollHeight * arguments[0];
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));";
        page.execute_async(scroll, &[json!(0.5)])?;
        // The click is in the middle of a row, which is 20 pixels high: at the border of two rows the pointer
        // and the caret may be in different rows.
        page.click_at(".editor .sheet", 120.0, 70.0)?;
        let line = page.execute(
            "const { left, top } = document.querySelector('.editor .sheet').getBoundingClientRect();
            return document.elementsFromPoint(left + 120, top + 70).find((it) => it.closest('.row'))?.closest('.row').textContent",
            &[],
        )?;
        let line = line.as_str().context("no line")?.to_owned();
        ensure!(line.starts_with("a4") || line.starts_with("a5"), "{line} is not in the middle");
        page.press(Key::End)?;
        page.press(" # so")?;
        let row = |text: &str| {
            format!(
                "[...document.querySelectorAll('.editor .row')].some((row) => row.textContent === {})",
                json!(text)
            )
        };
        page.wait_until(&row(&format!("{line} # so")))?;
        // After scrolling away, typing continues at the caret, which has not moved.
        page.execute_async(scroll, &[json!(0.1)])?;
        page.press(" on")?;
        page.wait_until(&row(&format!("{line} # so on")))?;
        // Keys move the caret beyond the lines that the field holds.
        for _ in 0..60 {
            page.press(Key::PageDown)?;
        }
        page.press(Key::Home)?;
        page.press("# here\n")?;
        page.wait_until(&row("# here"))?;
        page.press_with(&Key::Control, Key::End)?;
        page.press("\nlast = alloc 512")?;
        page.wait_until(&row("last = alloc 512"))?;
        page.wait_text(&id("verdict"), "100,001 requests")?;
        page.press_with(&Key::Control, Key::Home)?;
        page.press("first = alloc 512\n")?;
        page.wait_until(&row("first = alloc 512"))?;
        page.wait_text(&id("verdict"), "100,002 requests")?;
        page.press_with(&Key::Control, "z")?;
        page.wait_text(&id("verdict"), "100,001 requests")?;
        // The whole text is selected and deleted.
        page.click_at(".editor .sheet", 120.0, 60.0)?;
        page.press_with(&Key::Control, "a")?;
        page.press(Key::Delete)?;
        page.wait_until("document.querySelector('.editor .rows').textContent === ''")?;
        page.press_with(&Key::Control, "z")?;
        page.wait_text(&id("verdict"), "100,001 requests")
    })
}

/// The first and the last line that are selected in the field, and how many there are.
const SELECTED: &str = "
    const area = document.querySelector('.editor textarea');
    const lines = area.value.slice(area.selectionStart, area.selectionEnd).split('\\n');
    return [lines[0], lines.at(-1), lines.length];";

#[test]
fn a_selection_goes_beyond_what_the_field_holds() -> Result<()> {
    drive(|page| {
        let lines: Vec<_> = (0..6_000).map(|index| format!("a{index} = alloc 512")).collect();
        page.drop_file("main", "long.txt", lines.join("\n").as_bytes())?;
        page.wait_until("document.querySelector('.editor .sheet.is-long') !== null")?;
        page.wait_text(&id("verdict"), "6,000 requests")?;
        let scroll = "
            const sheet = document.querySelector('.editor .sheet');
            sheet.scrollTop = arguments[0] * parseFloat(getComputedStyle(sheet).lineHeight);
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));";
        let selected = |page: &blockyard_e2e::Page| page.execute(SELECTED, &[]);
        page.execute_async(scroll, &[json!(3_000)])?;
        page.click_at(".editor .sheet", 120.0, 60.0)?;
        page.press(Key::Home)?;
        let middle = selected(page)?[0].clone();
        ensure!(middle == json!(""), "nothing is selected yet: {middle}");
        // The selection is extended by keys to both ends of the text.
        page.press_with_both(&Key::Control, &Key::Shift, Key::End)?;
        let found = selected(page)?;
        ensure!(found[0].as_str().is_some_and(|line| line.starts_with("a300")), "{found}");
        ensure!(found[1] == json!("a5999 = alloc 512"), "{found}");
        page.press_with_both(&Key::Control, &Key::Shift, Key::Home)?;
        let found = selected(page)?;
        ensure!(found[0] == json!("a0 = alloc 512") && found[1] == json!(""), "{found}");
        // The selection grows by a page at a time, beyond the lines that the field held.
        page.execute_async(scroll, &[json!(3_000)])?;
        page.click_at(".editor .sheet", 120.0, 60.0)?;
        page.press(Key::Home)?;
        let page_down = char::from(Key::PageDown).to_string();
        page.press_with(&Key::Shift, page_down.repeat(200).as_str())?;
        let found = selected(page)?;
        ensure!(found[2].as_u64().is_some_and(|count| count > 640), "{found}");
        // A drag of the pointer continues while the text scrolls, after the long selection by keys.
        page.execute_async(scroll, &[json!(1_000)])?;
        page.begin_drag(".editor .sheet", (120.0, 60.0), (140.0, 80.0))?;
        page.execute_async(scroll, &[json!(4_000)])?;
        page.end_drag(".editor .sheet", (150.0, 70.0))?;
        let found = selected(page)?;
        ensure!(
            found[0].as_str().is_some_and(|line| found[2].as_u64() > Some(2_900) && !line.is_empty()),
            "{found}"
        );
        // Typed text replaces the whole selection.
        page.press("#")?;
        page.wait_until(
            "(() => {
                const sheet = document.querySelector('.editor .sheet');
                return sheet.scrollHeight / parseFloat(getComputedStyle(sheet).lineHeight) < 3110;
            })()",
        )?;
        Ok(())
    })
}
