//! Playing by hand.

use anyhow::{Result, ensure};
use blockyard_e2e::{PATIENCE, Page, drive, repository_file, wait_for_answer};
use serde_json::json;

use crate::{FIRST_BLOCK, choose, id, workload, write_workload};

#[test]
fn two_tensors_take_764_mebibytes_and_382_stay() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "two-tensors")?;
        page.click(&id("end"))?;
        page.click("#tab-numbers")?;
        page.wait_text(&id("numbers"), "382 MiB")?;
        page.click(&id("summary-toggle"))?;
        page.wait_text(&id("memory-summary"), "| Allocated memory      | 391168 KiB | 782336 KiB |")?;
        page.wait_text(&id("memory-summary"), "| GPU reserved memory   | 391168 KiB | 782336 KiB |")
    })
}

#[test]
fn a_chosen_block_is_freed_and_the_text_follows() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        page.wait_text(&id("segments-summary"), "1 segment, 20 MiB")?;
        page.hover_at(&id("map"), FIRST_BLOCK.0, FIRST_BLOCK.1)?;
        page.wait_text(".map [data-testid='tooltip']", "a, allocated: 3 MiB")?;
        for fact in ["requested", "stream: default", "allocated by request: 1"] {
            page.wait_text(".map [data-testid='tooltip']", fact)?;
        }
        page.click_at(&id("map"), FIRST_BLOCK.0, FIRST_BLOCK.1)?;
        // The panel of the chosen block has the facts for which a note beside the pointer has no room.
        for fact in ["3 MiB", "0x7f0000000000", "offset in segment"] {
            page.wait_text(&id("block"), fact)?;
        }
        ensure!(workload(page)? == "a = alloc 3 MiB", "looking changed the text");
        page.click(&id("free-block"))?;
        page.wait_text(&id("step-sentence"), "cached")?;
        ensure!(workload(page)?.lines().any(|line| line.trim() == "free a"), "{}", workload(page)?);
        page.click(&id("undo"))?;
        page.wait_until("!document.querySelector('#workload-text').value.includes('free a')")?;
        page.click(&id("redo"))?;
        page.wait_until("document.querySelector('#workload-text').value.includes('free a')")?;
        Ok(())
    })
}

#[test]
fn the_buttons_stay_under_the_hand_while_the_words_of_the_step_change() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "empty")?;
        let before = page.rect(&id("allocate"))?.y;
        for size in ["size-3-MiB", "size-10-MiB", "size-512-KiB", "size-20-MiB"] {
            page.click(&id(size))?;
            page.wait_until(
                "document.querySelector('[data-testid=step-title]').textContent.includes('alloc')",
            )?;
            let now = page.rect(&id("allocate"))?.y;
            ensure!((now - before).abs() < 0.5, "after {size} the button is at {now}, not at {before}");
        }
        Ok(())
    })
}

#[test]
fn memory_is_allocated_by_form_and_given_back_by_button() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "empty")?;
        page.fill(&id("size"), "10000 x 10000 float32")?;
        page.click(&id("allocate"))?;
        page.wait_text(&id("segments-summary"), "1 segment, 382 MiB")?;
        page.click_at(&id("map"), FIRST_BLOCK.0, FIRST_BLOCK.1)?;
        page.click(&id("free-block"))?;
        page.wait_text(&id("step-sentence"), "cached")?;
        page.click(&id("empty-cache"))?;
        page.wait_text(&id("segments-summary"), "0 segments")?;
        let text = workload(page)?;
        ensure!(text.contains("empty_cache"), "{text}");
        page.fill(&id("size"), "3 MBB")?;
        page.click(&id("allocate"))?;
        page.wait_for(&id("size-error"))?;
        ensure!(workload(page)? == text, "a bad size changed the text");
        Ok(())
    })
}

#[test]
fn running_out_of_memory_is_reported_in_pytorchs_words() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "fragmentation")?;
        page.click(&id("start"))?;
        page.click(&id("next-failed-step"))?;
        page.wait_text(&id("failure"), "CUDA out of memory. Tried to allocate")?;
        page.wait_text(&id("failure"), "is reserved by PyTorch but unallocated")
    })
}

#[test]
fn the_player_steps_jumps_and_plays() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "training")?;
        page.click(&id("start"))?;
        page.wait_text(&id("position"), "request 0 of")?;
        page.click(&id("forward"))?;
        page.wait_text(&id("position"), "request 1 of")?;
        page.click(&id("back"))?;
        page.wait_text(&id("position"), "request 0 of")?;
        page.click(&id("play"))?;
        page.wait_until(
            "!document.querySelector(\"[data-testid='position']\").textContent.startsWith('request 0 ')",
        )?;
        page.click(&id("play"))?;
        page.click(&id("end"))?;
        let position = page.text(&id("position"))?;
        let count = position.rsplit(' ').next().unwrap_or_default();
        ensure!(position == format!("request {count} of {count}"), "{position}");
        Ok(())
    })
}

#[test]
fn errors_say_where_and_lose_no_text() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB\nfree b")?;
        page.wait_text(&id("text-error"), "ine 2, column 6")?;
        ensure!(workload(page)? == "a = alloc 3 MiB\nfree b", "the text was lost");
        page.fill(&id("workload-text"), "a = alloc 3 MiB\nfree a")?;
        page.wait_gone(&id("text-error"))?;
        page.wait_text(&id("verdict"), "2 requests")?;
        for hostile in [
            "a = alloc 0",
            "a = alloc 1152921504606846976",
            "a = alloc 18446744073709551615",
            "a = alloc 18446744073709551616",
            "repeat 1000000000 { repeat 1000000000 { a = alloc 1; free a } }",
            "}}}} \u{0} \u{1F600} = alloc",
        ] {
            page.execute(
                "const area = document.querySelector('#workload-text'); area.value = arguments[0];
                 area.dispatchEvent(new Event('input', { bubbles: true }))",
                &[serde_json::json!(hostile)],
            )?;
        }
        page.fill(&id("workload-text"), "x = alloc 1 MiB")?;
        page.click(&id("end"))?;
        page.wait_text(&id("segments-summary"), "1 segment, 2 MiB")
    })
}

#[test]
fn a_million_steps_run_beside_the_page_and_can_be_cancelled() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        page.fill(&id("workload-text"), "repeat 500000 { t = alloc 1 MiB; free t }")?;
        page.wait_text(&id("position"), "of 1,000,000")?;
        page.click(&id("end"))?;
        page.wait_text(&id("position"), "request 1,000,000 of 1,000,000")?;
        // The run is long enough that the button is shown in time.
        page.fill(&id("workload-text"), "repeat 2500000 { t = alloc 1 MiB; free t }")?;
        page.click(&id("cancel"))?;
        page.wait_gone(&id("progress"))?;
        // The workload that was open is still shown.
        page.wait_text(&id("position"), "of 1,000,000")
    })
}

#[test]
fn settings_change_the_run_and_bad_ones_are_reported() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB\nb = alloc 30 MiB\nfree b\nc = alloc 3 MiB")?;
        page.wait_text(&id("segments-summary"), "2 segments, 50 MiB")?;
        page.fill(&id("config"), "expandable_segments:True")?;
        page.press(blockyard_e2e::Key::Enter)?;
        page.wait_text(&id("segments-summary"), "40 MiB")?;
        page.fill(&id("config"), "max_split_size_mb:2")?;
        page.press(blockyard_e2e::Key::Enter)?;
        page.wait_text(&id("device-error"), "must be >= 20")?;
        page.fill(&id("config"), " ")?;
        page.press(blockyard_e2e::Key::Enter)?;
        page.wait_text(&id("segments-summary"), "2 segments, 50 MiB")
    })
}

#[test]
fn undo_brings_the_device_of_the_text_back() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "terms")?;
        choose(page, "preset", "fragmentation")?;
        ensure!(page.value(&id("capacity"))? == "128 MiB");
        page.click(&id("undo"))?;
        page.wait_until("document.querySelector('#capacity').value === '64 MiB'")?;
        Ok(())
    })
}

#[test]
fn a_workload_comes_from_a_file_and_goes_into_one() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "empty")?;
        page.fill(&id("capacity"), "2 GiB")?;
        // A typed capacity takes effect after a pause.
        wait_remembered(page, "2 GiB")?;
        page.drop_file("body", "lesson 1.workload", b"kept = alloc 5 MiB\nfree kept\n")?;
        page.wait_text(&id("position"), "request 1 of 2")?;
        ensure!(workload(page)?.starts_with("kept = alloc 5 MiB"), "{}", workload(page)?);
        ensure!(page.value(&id("capacity"))? == "2 GiB", "the device is another one");
        let folder = repository_file("Cargo.toml")?.with_file_name("target").join("e2e/saved");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        let allowed = json!({ "behavior": "allow", "downloadPath": folder });
        page.devtools("Browser.setDownloadBehavior", &allowed)?;
        page.click(&id("save"))?;
        let saved = folder.join("lesson-1.workload");
        wait_for_answer("the saved file", PATIENCE, || Ok(saved.exists().then_some(())))?;
        ensure!(std::fs::read_to_string(saved)? == "capacity 2 GiB\n\nkept = alloc 5 MiB\nfree kept\n");
        page.click(&id("undo"))?;
        page.wait_until("document.querySelector('#workload-text').value === ''")?;
        Ok(())
    })
}

fn wait_remembered(page: &Page, words: &str) -> Result<()> {
    page.wait_until(&format!("localStorage.getItem('blockyard.workload').includes('{words}')")).map(drop)
}

#[test]
fn a_reload_loses_nothing_that_was_typed() -> Result<()> {
    drive(|page| {
        write_workload(page, "mine = alloc 7 MiB")?;
        page.fill(&id("capacity"), "3 GiB")?;
        page.fill(&id("config"), "max_split_size_mb:64")?;
        wait_remembered(page, "max_split_size_mb:64\\n3 GiB")?;
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("segments-summary"), "1 segment, 20 MiB")?;
        ensure!(workload(page)? == "mine = alloc 7 MiB", "{}", workload(page)?);
        ensure!(page.value(&id("capacity"))? == "3 GiB", "the capacity is another one");
        ensure!(page.value(&id("config"))? == "max_split_size_mb:64", "the settings are others");
        choose(page, "preset", "two-tensors")?;
        page.wait_text(&id("position"), "request 1 of")?;
        page.execute("location.reload()", &[])?;
        page.wait_until("document.querySelector('[data-testid=preset]')?.value === 'two-tensors'")?;
        Ok(())
    })
}

#[test]
fn keys_go_from_label_to_label() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB\nstep \"one\"\nb = alloc 3 MiB\nfree a\nstep \"two\"\nfree b")?;
        page.click(&id("start"))?;
        for (key, position) in [(">", "request 1 of 4"), (">", "request 3 of 4"), ("<", "request 1 of 4")] {
            page.press(key)?;
            page.wait_text(&id("position"), position)?;
        }
        Ok(())
    })
}

#[test]
fn a_new_stream_is_written_chosen_and_said() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "terms")?;
        let before = workload(page)?;
        page.click(&id("new-stream"))?;
        page.wait_text(&id("message"), "The text has a stream side now")?;
        let after = workload(page)?;
        ensure!(after.contains("\n\nstream side\n\n"), "{after}");
        ensure!(after.replace("stream side\n\n", "") == before, "{after}");
        let chosen =
            "const select = document.querySelector('#stream'); return select.selectedOptions[0].textContent";
        ensure!(page.execute(chosen, &[])? == json!("on side"), "{}", page.execute(chosen, &[])?);
        // The new line of the text is in sight.
        page.wait_until(
            "(() => {
                const sheet = document.querySelector('.editor .sheet').getBoundingClientRect();
                const row = [...document.querySelectorAll('.editor .row')].find((it) => it.textContent === 'stream side');
                const { top, bottom } = row.getBoundingClientRect();
                return top >= sheet.top && bottom <= sheet.bottom;
            })()",
        )?;
        page.click(&id("size-3-MiB"))?;
        page.wait_text(&id("step-title"), "on side")
    })
}
