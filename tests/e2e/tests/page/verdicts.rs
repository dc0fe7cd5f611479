//! The verdict above the questions: answers to questions below the verdict, and a reload.

use anyhow::{Result, ensure};
use blockyard_e2e::drive;
use serde_json::json;

use crate::{id, scroll_and_click, snapshot, write_workload};

#[test]
fn what_was_asked_stands_beside_the_headline_which_is_about_the_runs_own_settings() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &snapshot("oom/loss_history_100"))?;
        page.wait_text(&id("verdict-headline"), "Out of memory by a leak")?;
        ensure!(page.count("[data-testid=verdict-asked]:not([hidden])")? == 0, "nothing was asked yet");
        scroll_and_click(page, "verdict-setting")?;
        page.wait_text(&id("answer-what-if"), "expandable_segments:True")?;
        let asked = "[data-testid=verdict-asked]:not([hidden])";
        page.wait_text(asked, "As asked in “What if”, with expandable_segments:True: depends on the limit")?;
        page.wait_text(asked, "The headline is about the run with its own settings.")?;
        page.check_accessible()
    })
}

/// The error of a refused question is shown once.
#[test]
fn a_refused_setting_has_one_error() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        page.click(&id("tab-lab"))?;
        page.click(&id("lab-details"))?;
        page.click(&id("lab-what-if"))?;
        page.fill(&id("lab-conf"), "max_split_size_mb:1")?;
        scroll_and_click(page, "lab-ask")?;
        page.wait_text(&id("lab-conf-error"), "must be >= 20")?;
        let shown =
            "return [...document.querySelectorAll('.question-body .error, .question-body [role=alert]')]
            .filter((error) => !error.hidden && error.textContent.includes('must be >= 20')).length";
        let count = page.execute(shown, &[])?;
        ensure!(count == json!(1), "the error is said {count} times");
        // With another setting in the field, the error is removed.
        page.fill(&id("lab-conf"), "max_split_size_mb:32")?;
        page.wait_gone("[data-testid=lab-error]:not([hidden])")?;
        scroll_and_click(page, "lab-ask")?;
        page.wait_for(&id("answer-what-if"))
    })
}

/// The address of an earlier version asks why the run failed, which the verdict says.
#[test]
fn a_reload_keeps_the_verdict() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &snapshot("oom/loss_history_100"))?;
        page.wait_text(&id("verdict-headline"), "Out of memory by a leak")?;
        page.wait_until("location.hash.startsWith('#own-file')")?;
        page.execute("location.hash += '&lab=autopsy'; location.reload()", &[])?;
        page.wait_until("document.readyState === 'complete'")?;
        page.wait_text(&id("verdict-headline"), "Out of memory by a leak")?;
        page.wait_gone(&id("lab-work"))?;
        page.wait_text(&id("verdict-headline"), "Out of memory by a leak")?;
        // Where the browser has no copy any more, the page says which file it was and what to do.
        page.execute_async("await caches.delete('blockyard.opened'); return true;", &[])?;
        page.execute("location.reload()", &[])?;
        page.wait_text("body", "loss_history_100.pickle.gz was open here")?;
        page.wait_text("body", "Choose the file again with “Open file”; its verdict comes with it.")
    })
}
