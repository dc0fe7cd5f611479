//! Workloads on the reader's GPU.

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{Page, drive, drive_on_gpu};
use serde_json::json;

use crate::{choose, id, write_workload};

/// Switches to the GPU, once the page knows that there is one.
fn switch_on(page: &Page) -> Result<()> {
    page.wait_for(&format!("{}:enabled", id("device-gpu")))?;
    page.click(&id("device-gpu"))
}

#[test]
fn a_preset_runs_on_the_gpu_and_its_contents_are_checked() -> Result<()> {
    drive_on_gpu(|page| {
        choose(page, "preset", "terms")?;
        page.click(&id("end"))?;
        let (position, summary) = (page.text(&id("position"))?, page.text(&id("segments-summary"))?);
        switch_on(page)?;
        page.wait_text(&id("gpu-status"), "swiftshader")?;
        page.wait_text(&id("gpu-found"), "Segments up to")?;
        page.wait_text(&id("gpu-found"), "all as written")?;
        ensure!(page.text(&id("position"))? == position, "another number of steps");
        ensure!(page.text(&id("segments-summary"))? == summary, "other segments than on the virtual device");
        // Each step names the data that was checked.
        page.click(&id("start"))?;
        page.wait_gone(&id("data-check"))?;
        page.click(&id("forward"))?;
        page.wait_text(&id("data-check"), "checked 1 block")?;
        page.wait_text(&id("data-check"), "all as written")?;
        page.check_accessible()?;
        // Requests by hand also run on the GPU.
        write_workload(page, "a = alloc 3 MiB")?;
        page.wait_text(&id("data-check"), "filled 3 MiB")?;
        page.click(&id("size-1-MiB"))?;
        page.wait_text(&id("data-check"), "checked 2 blocks, 4 MiB")?;
        page.click(&id("device-virtual"))?;
        page.wait_gone(&id("data-check"))
    })
}

#[test]
fn presets_run_on_the_gpu_as_on_the_virtual_device() -> Result<()> {
    drive_on_gpu(|page| {
        switch_on(page)?;
        for preset in ["fragmentation", "streams"] {
            choose(page, "preset", preset)?;
            page.wait_text(&id("gpu-found"), "all as written")?;
            page.click(&id("end"))?;
            let text = "return document.querySelector(arguments[0]).textContent";
            let ended = |page: &Page| page.execute(text, &[json!(id("segments-summary"))]);
            let on_gpu = ended(page)?;
            page.click(&id("device-virtual"))?;
            page.wait_gone(&id("data-check"))?;
            ensure!(ended(page)? == on_gpu, "{preset} ends otherwise on the GPU");
            page.click(&id("device-gpu"))?;
            page.wait_text(&id("gpu-found"), "all as written")?;
        }
        Ok(())
    })
}

#[test]
fn the_gpu_works_with_the_network_cut() -> Result<()> {
    drive_on_gpu(|page| {
        page.wait_until(
            "['blockyard-gpu_bg.wasm', 'blockyard-gpu.js'].every((file) => performance.getEntriesByType('resource')
                .some((it) => it.name.endsWith(file) && it.responseEnd > 0))",
        )?;
        page.cut_network()?;
        switch_on(page)?;
        page.wait_text(&id("gpu-found"), "all as written")
    })
}

#[test]
fn limits_and_errors_of_the_gpu_are_reported() -> Result<()> {
    drive_on_gpu(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        switch_on(page)?;
        page.wait_text(&id("gpu-found"), "all as written")?;
        page.fill(&id("capacity"), "1 TiB")?;
        page.wait_until("document.querySelector('#capacity').value === '1 TiB'")?;
        page.fill(&id("workload-text"), "a = alloc 3 MiB\nb = alloc 900 GiB\nc = alloc 1 MiB")?;
        page.wait_text(&id("position"), "of 3")?;
        page.click(&id("start"))?;
        page.click(&id("next-failed-step"))?;
        page.wait_text(&id("failure"), "more than the device gives at once")?;
        page.click(&id("end"))?;
        page.wait_text(&id("data-check"), "checked 2 blocks, 4 MiB")?;
        page.fill(&id("config"), "expandable_segments:True")?;
        page.wait_text(&id("failure"), "expandable")?;
        page.fill(&id("workload-text"), "a = alloc 3 MBB")?;
        page.wait_for(&id("text-error"))
    })
}

#[test]
fn a_long_run_on_the_gpu_shows_progress_and_can_be_cancelled() -> Result<()> {
    drive_on_gpu(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        switch_on(page)?;
        page.wait_text(&id("gpu-found"), "all as written")?;
        page.fill(&id("workload-text"), "repeat 500000 { t = alloc 1 MiB; free t }")?;
        page.wait_text(&id("progress"), "running on the GPU")?;
        page.click(&id("cancel"))?;
        page.wait_gone(&id("progress"))?;
        page.wait_text(&id("position"), "of 1")?;
        page.fill(&id("workload-text"), "a = alloc 2 MiB")?;
        page.wait_text(&id("data-check"), "checked 1 block, 2 MiB")
    })
}

#[test]
fn without_webgpu_the_switch_says_why() -> Result<()> {
    drive(|page| {
        page.wait_text(&id("gpu-status"), "This browser has no")?;
        ensure!(page.count(&format!("{}:disabled", id("device-gpu")))? == 1);
        page.check_accessible()
    })
}

#[test]
fn a_gpu_that_fails_hands_over_to_the_virtual_device() -> Result<()> {
    drive_on_gpu(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        switch_on(page)?;
        page.wait_text(&id("gpu-found"), "all as written")?;
        page.devtools("Browser.crashGpuProcess", &json!({})).context("the GPU's process ends")?;
        page.click(&id("size-1-MiB"))?;
        page.wait_text(&id("message"), "The GPU failed")?;
        page.wait_text(&id("message"), "The virtual device took over")?;
        page.wait_text(&id("position"), "of 2")?;
        ensure!(page.attribute(&id("device-virtual"), "aria-pressed")?.as_deref() == Some("true"));
        Ok(())
    })
}
