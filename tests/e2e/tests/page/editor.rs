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
        page.wait_text(&id("verdict"), "2 steps")
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
        page.wait_text(&id("verdict"), "3 steps")?;
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
        page.wait_for(".editor .row.is-wrong .flaw span")?;
        page.press(Key::Escape)?;
        page.click(&id("to-error"))?;
        ensure!(page.focused()? == "textarea#workload-text", "{}", page.focused()?);
        let caret = page.execute("return document.activeElement.selectionStart", &[])?;
        ensure!(caret == json!(26), "the caret is at {caret}");
        Ok(())
    })
}

#[test]
fn a_hundred_thousand_lines_type_smoothly() -> Result<()> {
    drive(|page| {
        let lines: Vec<_> = (0..100_000).map(|index| format!("a{index} = alloc 512")).collect();
        page.drop_file("main", "long.txt", lines.join("\n").as_bytes())?;
        page.wait_text(&id("document-title"), "long")?;
        page.wait_until("document.querySelector('.editor .sheet.is-long') !== null")?;
        // Far down, and the caret goes where the pointer is.
        let script = "
            const sheet = document.querySelector('.editor .sheet');
            sheet.scrollTop = sheet.scrollHeight / 2;
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            const area = sheet.querySelector('textarea');
            area.focus();
            const at = area.value.indexOf('\\n', area.value.length / 2);
            area.setSelectionRange(at, at);
            const line = area.value.slice(0, at).split('\\n').pop();
            const worst = [];
            for (const letter of ' # so') {
                const begun = performance.now();
                document.execCommand('insertText', false, letter);
                sheet.offsetHeight;
                worst.push(performance.now() - begun);
                await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            }
            return [line, Math.max(...worst), area.value.split('\\n').length]";
        let found = page.execute_async(script, &[])?;
        let (line, worst) = (found[0].as_str().context("no line")?.to_owned(), found[1].as_f64());
        println!("the slowest key of {} lines took {worst:?} ms", lines.len());
        ensure!(found[2] == json!(100_000), "lines are missing: {found}");
        page.wait_until(&format!(
            "document.querySelector('.editor textarea').value.includes({})",
            json!(format!("\n{line} # so\n"))
        ))?;
        page.wait_text(&id("verdict"), "100,000 steps")
    })
}
