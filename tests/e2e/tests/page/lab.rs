//! Every question of the lab, asked in the page.

use anyhow::{Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Page, Window, drive, drive_at};
use serde_json::json;

use crate::{choose, fixture, id, snapshot, workload, write_workload};

/// Unfolds a question.
fn unfold(page: &Page, question: &str) -> Result<()> {
    page.click(&id("tab-lab"))?;
    if page.attribute(&id("lab-details"), "aria-expanded")?.as_deref() != Some("true") {
        page.click(&id("lab-details"))?;
    }
    let heading = id(&format!("lab-{question}"));
    if page.attribute(&heading, "aria-expanded")?.as_deref() != Some("true") {
        page.click(&heading)?;
    }
    Ok(())
}

/// Asks a question about the shown run and waits for the answer.
fn ask(page: &Page, question: &str) -> Result<()> {
    unfold(page, question)?;
    page.wait_for(&id(&format!("answer-{question}")))?;
    page.wait_gone(&id("lab-work"))
}

/// The exact bytes of a cell, which its tooltip has.
fn has_bytes(page: &Page, question: &str, bytes: &str) -> Result<()> {
    let cell = format!("{} td[title='{bytes} bytes']", id(&format!("answer-{question}")));
    page.wait_for(&cell)
}

/// Asks for the effect of a setting.
fn try_setting(page: &Page, conf: &str) -> Result<()> {
    unfold(page, "what-if")?;
    page.fill(&id("lab-conf"), conf)?;
    page.click(&id("lab-ask"))
}

fn open_gnn(page: &Page) -> Result<()> {
    page.upload(&id("file"), &fixture("programs/gnn_random"))?;
    page.wait_text(&id("headline"), "identical")
}

#[test]
fn what_if_answers_to_the_byte_beside_what_was_recorded() -> Result<()> {
    drive(|page| {
        open_gnn(page)?;
        try_setting(page, "expandable_segments:True")?;
        page.wait_for(&id("answer-what-if"))?;
        has_bytes(page, "what-if", "6,589,251,584")?;
        has_bytes(page, "what-if", "2,545,942,528")?;
        page.wait_text(&id("lab-deltas"), "-3.77 GiB")?;
        page.wait_text(&id("lab-difference"), "First differs at request 1.")?;
        try_setting(page, "max_split_size_mb:128")?;
        has_bytes(page, "what-if", "19,706,937,344")?;
        has_bytes(page, "what-if", "2,545,942,528")?;
        page.check_accessible()
    })
}

#[test]
fn a_wrong_setting_has_pytorchs_own_error() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        try_setting(page, "max_split_size_mb:1")?;
        page.wait_text(&id("lab-conf-error"), "max_split_size_mb too small, must be >= 20")?;
        try_setting(page, "max_split_size_mb:32")?;
        page.wait_gone(&id("lab-conf-error"))?;
        page.wait_for(&id("answer-what-if"))
    })
}

#[test]
fn the_answer_before_is_hidden_while_a_question_is_refused() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        try_setting(page, "max_split_size_mb:32")?;
        page.wait_for(&id("answer-what-if"))?;
        // An answer below a wrong question would look like the question's own.
        try_setting(page, "max_split_size_mb:1")?;
        page.wait_text(&id("lab-conf-error"), "must be >= 20")?;
        page.wait_gone(&id("answer-what-if"))?;
        try_setting(page, "max_split_size_mb:64")?;
        page.wait_gone("[data-testid=lab-conf-error]:not([hidden])")?;
        page.wait_text(&id("answer-what-if"), "max_split_size_mb:64").map(drop)
    })
}

#[test]
fn a_search_says_which_setting_is_best_and_has_the_line_to_copy() -> Result<()> {
    drive(|page| {
        open_gnn(page)?;
        ask(page, "search")?;
        page.wait_text(&id("search-sentence"), "expandable_segments:True reserves 3.77 GiB less")?;
        ensure!(
            page.text(&id("search-line"))? == "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "another line: {}",
            page.text(&id("search-line"))?
        );
        let rows = format!("{} tbody tr", id("answer-search"));
        let front = page.count(&rows)?;
        page.click(&id("search-all"))?;
        page.wait_until(&format!("document.querySelectorAll({}).length > 40", json!(rows)))?;
        ensure!(front < 10, "the front has {front} rows");
        has_bytes(page, "search", "2,545,942,528")
    })
}

#[test]
fn what_a_fit_wrote_opens_with_its_curves() -> Result<()> {
    drive(|page| {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/fit/answers/largest.json");
        page.upload(&id("file"), &std::path::PathBuf::from(file))?;
        page.wait_for(&id("fit-close"))?;
        let title =
            "document.querySelector('.fit-page iframe').srcdoc.includes('Peak memory over batch-size')";
        page.wait_until(title)?;
        page.check_accessible()?;
        page.click(&id("fit-close"))?;
        page.wait_until("!document.querySelector('.fit-page')")?;
        // Layouts without a search have no curve, and the page says so.
        page.upload(&id("file"), &std::path::PathBuf::from(file.replace("largest", "layouts")))?;
        page.wait_text(&id("message"), "layouts.json has no curve")
    })
}

#[test]
fn a_file_opens_with_its_verdict() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &snapshot("oom/loss_history_100"))?;
        page.wait_text(
            &id("verdict-headline"),
            "Out of memory by a leak at loss_history train.py:26: each of 136 iterations kept 3 tensors (4 MiB).",
        )?;
        let verdict = id("run-verdict");
        page.wait_text(
            &verdict,
            "loss_history train.py:26 holds 589.07 MiB at the failure: 544.07 MiB in 408 tensors kept",
        )?;
        page.wait_text(
            &verdict,
            "With all 415 tensors freed that the growing lines kept from earlier iterations, those of the first two too (554 MiB), the request passes.",
        )?;
        page.wait_text(&verdict, "With expandable_segments:True it depends on the limit")?;
        page.wait_text(&id("verdict-held"), "589.07 MiB")?;
        // Each sentence about the failure leads to it.
        let position = page.text(&id("position"))?;
        page.press(Key::Home)?;
        page.wait_text(&id("position"), "request 0")?;
        page.click(&id("verdict-moment"))?;
        page.wait_text(&id("position"), &position)?;
        // The sentence about growth leads to the first and the last tensor that stays, and marks the blocks
        // of its line.
        let step = |link: &str| -> Result<u64> {
            page.click(&id(link))?;
            let position = page.text(&id("position"))?;
            let digits: String = position
                .split(" of ")
                .next()
                .unwrap_or_default()
                .chars()
                .filter(char::is_ascii_digit)
                .collect();
            Ok(digits.parse()?)
        };
        let (first, last) = (step("verdict-first-kept")?, step("verdict-last-kept")?);
        ensure!(0 < first && first < last, "steps {first} and {last}");
        page.click("#tab-holders")?;
        page.wait_text(&id("holders-summary"), &format!("after request {},{:03}", last / 1000, last % 1000))?;
        page.click("#tab-lab")?;
        let held = step("verdict-holder")?;
        ensure!(held >= last, "{held} is before {last}");
        page.wait_text(&id("picked"), "train.py:26")?;
        // A setting leads to the run under it.
        page.click(&id("verdict-setting"))?;
        page.wait_text(&id("answer-what-if"), "expandable_segments:True")?;
        page.check_accessible()?;
        open_gnn(page)?;
        page.wait_text(&id("verdict-headline"), "It fits: at most 2.24 GiB are allocated, and ")?;
        page.wait_text(&verdict, "3.77 GiB less")?;
        page.wait_text(&verdict, "and every larger GPU")?;
        let line = page.text(&id("verdict-line"))?;
        ensure!(line == "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "{line}");
        page.check_accessible()
    })
}

#[test]
fn the_verdict_is_made_anew_for_a_limit_that_is_given_and_names_the_setting_of_the_search() -> Result<()> {
    drive(|page| {
        let agree = |page: &Page| -> Result<()> {
            ask(page, "search")?;
            page.wait_for(&id("search-line"))?;
            let (said, best) = (page.text(&id("verdict-line"))?, page.text(&id("search-line"))?);
            ensure!(said == best, "the verdict has {said}, the search {best}");
            Ok(())
        };
        open_gnn(page)?;
        page.wait_text(&id("verdict-headline"), "It fits")?;
        agree(page)?;
        // Under 2 GiB the run does not fit, whichever question the limit was given for.
        unfold(page, "what-if")?;
        page.fill(&id("lab-limit"), "2 GiB")?;
        page.click(&id("lab-ask"))?;
        page.wait_text(&id("verdict-headline"), "With at most 2 GiB reserved: out of memory")?;
        page.wait_text(&id("run-verdict"), "This answer is for at most 2 GiB reserved, as you gave it")?;
        // A hypothesis is not shown as a failure of the run.
        page.wait_for(&format!("{}.is-doubtful", id("verdict-headline")))?;
        ensure!(page.count(&id("answer-what-if"))? == 1, "the answer that was asked for stays");
        // The driver's way of emptying a field sends the page no event, so keys are sent.
        page.send_keys(&id("lab-limit"), &"\u{e003}".repeat(5))?;
        page.click(&id("lab-ask"))?;
        page.wait_text(&id("verdict-headline"), "It fits")?;
        page.wait_gone(&id("lab-given"))?;
        // A limit that was given for one file does not apply to another file.
        page.fill(&id("lab-limit"), "2 GiB")?;
        page.click(&id("lab-ask"))?;
        page.wait_text(&id("verdict-headline"), "With at most 2 GiB reserved: out of memory")?;
        page.upload(&id("file"), &snapshot("snapshots/checkerboard_default_100"))?;
        page.wait_text(&id("verdict-headline"), "Out of memory")?;
        unfold(page, "what-if")?;
        page.wait_until("document.querySelector('[data-testid=lab-limit]').value === ''")?;
        page.wait_gone(&id("lab-given"))?;
        agree(page)
    })
}

#[test]
fn a_recording_that_runs_out_of_memory_says_why_by_itself() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &snapshot("snapshots/checkerboard_default_100"))?;
        page.wait_text(
            &id("run-verdict"),
            "are cached for this stream, but in 24 separate blocks, the largest 20 MiB",
        )?;
        ensure!(
            page.text(&id("verdict-line"))? == "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "another change: {}",
            page.text(&id("verdict-line"))?
        );
        page.click(&id("lab-details"))?;
        page.wait_for(&id("lab-pinned"))?;
        page.wait_text(&id("freed"), "With the dashed blocks freed before, the request passes.")?;
        page.click(&id("try-change-0"))?;
        page.wait_text(&id("trial"), "out of memory")?;
        // Where a setting helps, freeing tensors is no fix.
        ensure!(
            page.count("button.chip[title*='freed before']")? == 0,
            "a tensor to free is among the fixes"
        );
        // Freeing tensors is shown for files too: their requests are in the worker.
        page.upload(&id("file"), &snapshot("oom/rounding_80"))?;
        page.wait_for("button.chip[title*='freed before']")?;
        page.click("button.chip[title*='freed before']")?;
        page.wait_text(&id("trial"), "freed before (33 MiB), the request passes")?;
        // The recording ends at the failure: no replay says that the whole run fits.
        page.wait_text(
            &id("trial"),
            "This request passes; what the run would have asked for afterwards is not in the recording.",
        )?;
        page.check_accessible()
    })
}

#[test]
fn a_setting_shows_its_answer_and_sizes_are_typed_as_the_page_prints_them() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &snapshot("snapshots/checkerboard_default_100"))?;
        page.wait_for(&id("verdict-headline"))?;
        unfold(page, "what-if")?;
        page.click(&id("try-expandable_segments:True"))?;
        page.wait_for(&id("lab-deltas"))?;
        page.wait_until(
            "(box => box.top >= 0 && box.bottom < innerHeight)(document.querySelector('[data-testid=lab-deltas]').getBoundingClientRect())",
        )?;
        // A run that ends earlier saves nothing.
        page.click(&id("try-roundup_power2_divisions:4"))?;
        page.wait_text(&id("lab-ends"), "their peaks cannot be compared")?;
        ensure!(!page.text(&id("lab-deltas"))?.contains("-192 MiB"), "an earlier end is shown as a saving");
        page.fill(&id("lab-limit"), "1.23 GiB")?;
        page.click(&id("lab-ask"))?;
        page.wait_text(&id("answer-what-if"), "at most 1.23 GiB").map(drop)
    })
}

#[test]
fn every_answer_about_a_run_that_went_out_of_memory_is_for_the_limit_that_its_file_implies() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &snapshot("oom/loss_history_100"))?;
        page.wait_text(&id("run-verdict"), "the most that may be reserved is between 594 MiB and 614 MiB")?;
        page.click(&id("lab-details"))?;
        let limit = "The limit is between 594 MiB and 614 MiB";
        page.wait_text(&id("lab-implied-limit"), limit)?;
        // The verdict: expandable segments help only if the limit is high enough.
        page.wait_text(&id("run-verdict"), "With expandable_segments:True it depends on the limit")?;
        // What if: the run's own settings went out of memory, and the other row says the same as the verdict.
        try_setting(page, "expandable_segments:True")?;
        let own = format!("{} table[class='answer'] tr.is-own td:nth-child(2)", id("answer-what-if"));
        page.wait_text(&own, "request 1,525")?;
        let depends = "depends on the limit: between 594 MiB and 614 MiB";
        page.wait_text(&id("answer-what-if"), depends)?;
        page.wait_text(&id("lab-implied-limit"), limit)?;
        // Best setting: nothing is recommended that fits at one bound only.
        ask(page, "search")?;
        page.wait_text(
            &id("search-sentence"),
            "no setting is sure to let the run fit: it depends on the limit",
        )?;
        ensure!(page.count(&id("search-line"))? == 0, "a setting is recommended");
        let own = format!("{} tr.is-own td:nth-child(2)", id("answer-search"));
        page.wait_text(&own, "request 1,525")?;
        // Other allocators, under the same limit.
        ask(page, "compare-allocators")?;
        page.wait_text(&id("answer-compare-allocators"), depends)?;
        // A limit that the reader gives replaces the file's.
        unfold(page, "what-if")?;
        page.fill(&id("lab-limit"), "600 MiB")?;
        try_setting(page, "expandable_segments:True")?;
        page.wait_text(&id("answer-what-if"), "expandable_segments:True, at most 600 MiB")?;
        page.check_accessible()
    })
}

#[test]
fn how_good_it_could_be_is_a_bound_and_a_layout() -> Result<()> {
    drive(|page| {
        open_gnn(page)?;
        ask(page, "bound")?;
        has_bytes(page, "bound", "2,403,611,136")?;
        has_bytes(page, "bound", "6,589,251,584")?;
        let label = page.attribute(&id("lab-layout"), "aria-label")?.unwrap_or_default();
        ensure!(label.contains("2977 allocations"), "{label}");
        Ok(())
    })
}

#[test]
fn other_allocators_stand_side_by_side() -> Result<()> {
    drive(|page| {
        open_gnn(page)?;
        ask(page, "compare-allocators")?;
        for (name, bytes) in [
            ("TensorFlow's BFC", "4,640,997,376"),
            ("buddy", "3,892,314,112"),
            ("no caching", "2,403,611,136"),
        ] {
            page.wait_text(&id("answer-compare-allocators"), name)?;
            has_bytes(page, "compare-allocators", bytes)?;
        }
        Ok(())
    })
}

#[test]
fn what_grows_is_found_by_call_site() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &snapshot("oom/loss_history_100"))?;
        page.wait_text(&id("document-title"), "loss_history_100")?;
        ask(page, "leaks")?;
        page.wait_text(&id("answer-leaks"), "139 iterations, found by repetition: 2 call sites grow")?;
        page.wait_text(&id("answer-leaks"), "loss_history train.py:26, in 2 call sites:")
    })
}

#[test]
fn a_second_file_shows_what_changed() -> Result<()> {
    drive(|page| {
        open_gnn(page)?;
        unfold(page, "diff")?;
        page.upload(&id("lab-second"), &fixture("programs/gnn_random.expandable_segments"))?;
        page.wait_text(&id("answer-diff"), "2,977 allocations are the same, 0 are only here, 0 only there")?;
        page.wait_for("[data-testid='answer-diff'] td[title='-4,043,309,056 bytes']")
    })
}

#[test]
fn a_link_asks_its_question_again() -> Result<()> {
    let link = "/#preset=fragmentation&lab=what-if&with=expandable_segments:True&on=256+MiB";
    drive_at(link, Window::default(), GpuChoice::None, |page| {
        page.wait_text(&id("answer-what-if"), "expandable_segments:True, a device with 256 MiB for PyTorch")?;
        unfold(page, "search")?;
        page.wait_until("location.hash.includes('lab=search') && location.hash.includes('on=256+MiB')")?;
        page.goto("/#preset=fragmentation&lab=riddle")?;
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("message"), "\"riddle\"")
    })
}

#[test]
fn a_change_of_settings_shows_before_and_after_and_can_be_undone() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "fragmentation")?;
        page.click("[data-testid='config-settings'] summary")?;
        page.wait_for(&id("config-max_split_size_mb"))?;
        choose(page, "config-expandable_segments", "True")?;
        page.wait_text(&id("trial"), "Before and after")?;
        ensure!(page.value(&id("config"))? == "expandable_segments:True", "{}", page.value(&id("config"))?);
        page.click(&id("undo"))?;
        page.wait_until("document.querySelector(\"[data-testid='config']\").value === ''")?;
        page.click(&id("redo"))?;
        page.wait_until(
            "document.querySelector(\"[data-testid='config']\").value === 'expandable_segments:True'",
        )?;
        page.fill(&id("capacity"), "256 MiB")?;
        // The text of the field becomes the capacity of the device after a pause.
        page.wait_until("location.hash.includes('capacity=256+MiB')")?;
        page.click(&id("undo"))?;
        page.wait_until("document.querySelector(\"[data-testid='capacity']\").value === '128 MiB'").map(drop)
    })
}

#[test]
fn what_would_have_helped_is_shown_and_done() -> Result<()> {
    drive(|page| {
        choose(page, "preset", "fragmentation")?;
        page.click(&id("end"))?;
        page.wait_for(&id("failure"))?;
        page.click(&id("ask-helps"))?;
        page.wait_for(&id("try-change-0"))?;
        // Frees and sizes help here; each is a button.
        let labels = page.text(&id("helps"))?;
        ensure!(labels.contains("free") && labels.contains("of memory"), "{labels}");
        page.execute(
            "[...document.querySelectorAll(\"[data-testid='helps'] .chip\")].find((chip) => chip.textContent.includes('free')).click()",
            &[],
        )?;
        page.wait_text(&id("trial"), "Now the whole run fits.")?;
        let before = workload(page)?;
        page.click(&id("trial-apply"))?;
        page.wait_gone(&id("failure"))?;
        ensure!(workload(page)? != before, "the workload did not change");
        page.press_with(&Key::Control, "z")?;
        Ok(())
    })
}

#[test]
fn work_can_be_cancelled() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &fixture("programs/gpt2_varlen"))?;
        page.wait_text(&id("headline"), "identical")?;
        // Cancels as soon as the button is shown: on a quick machine the work ends before a pointer reaches
        // the button.
        page.execute(
            "new MutationObserver((_, observer) => {
                const cancel = document.querySelector(\"[data-testid='lab-search']\")
                    ?.closest('.question').querySelector(\"[data-testid='lab-cancel']\");
                if (!cancel?.checkVisibility()) return;
                observer.disconnect();
                document.body.dataset.cancelled = 'yes';
                cancel.click();
            }).observe(document.body, { attributes: true, childList: true, subtree: true })",
            &[],
        )?;
        unfold(page, "search")?;
        page.wait_for("body[data-cancelled]")?;
        page.wait_gone(&id("lab-work"))?;
        page.wait_gone(&id("answer-search"))?;
        // The next question has a worker again.
        try_setting(page, "expandable_segments:True")?;
        page.wait_for(&id("answer-what-if"))
    })
}
