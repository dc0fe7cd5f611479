//! Snapshots that no program should have written, made for the test: each opens or is refused in a sentence,
//! and the open run stays.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Result, ensure};
use blockyard_e2e::{PATIENCE_WITH_LARGE_FILES, Page, drive, wait_for_answer};
use blockyard_pytorch::snapshot::{DeviceTrace, read};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::{fixture, id, write_workload};

/// Stacks of the large file.
const STACKS: u32 = 1_000_000;

/// Each byte of the content is a separate list: 150 MB of lists in a file of 150 kB.
fn bomb() -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"\x80\x04")?;
    let lists = vec![b']'; 1 << 20];
    for _ in 0..150 {
        packed.write_all(&lists)?;
    }
    Ok(packed.finish()?)
}

#[test]
fn a_gzip_bomb_is_refused_and_what_is_open_stays() -> Result<()> {
    let bomb = bomb()?;
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        page.drop_file("body", "bomb.pickle.gz", &bomb)?;
        page.wait_text(&id("message"), "takes too much memory")?;
        page.wait_text(&id("message"), "bomb.pickle.gz was not opened")?;
        page.click(&id("dismiss"))?;
        page.wait_text(&id("segments-summary"), "1 segment, 20 MiB")
    })
}

#[test]
fn a_snapshot_without_traces_shows_its_moment_and_says_so() -> Result<()> {
    let file = fixture("x").with_file_name("snapshots").join("resnet50_amp.pickle.gz");
    let mut snapshot = read(File::open(file)?, &mut |_| std::ops::ControlFlow::Continue(()))?;
    for device in &mut snapshot.devices {
        device.trace = DeviceTrace::default();
    }
    let mut bytes = Vec::new();
    snapshot.write_pickle(&mut bytes)?;
    drive(|page| {
        page.drop_file("body", "no-trace.pickle", &bytes)?;
        page.wait_text(&id("document-title"), "no-trace.pickle")?;
        page.wait_until("document.body.textContent.includes('memory history was not recorded')")?;
        page.wait_text(&id("segments-summary"), "segments")
    })
}

#[test]
fn fields_and_actions_of_another_vendor_are_passed_over_and_counted() -> Result<()> {
    let entry = |action: &str, size: u64| json!({"action": action, "addr": 0x7f00_0000_0000_u64, "size": size, "stream": 0, "time_us": 5, "xpu_queue": 3});
    let snapshot = json!({
        "segments": [],
        "xpu_driver": {"version": [1, 2]},
        "device_traces": [[entry("segment_alloc", 2 << 20), entry("alloc", 512), entry("xpu_prefetch", 512)]],
    });
    drive(|page| {
        page.drop_file("body", "vendor.json", snapshot.to_string().as_bytes())?;
        page.wait_text(&id("document-title"), "vendor.json")?;
        page.wait_until("document.body.textContent.includes('xpu_queue (3 times)')")?;
        page.wait_until("document.body.textContent.includes('xpu_prefetch (1 time)')")?;
        page.wait_text(&id("segments-summary"), "1 segment, 2 MiB")
    })
}

/// Writes a pickle of a trace in which each allocation has its own stack.
fn write_many_stacks(path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(b"\x80\x04")?;
    // The texts, each in the memo under its number.
    for text in [
        "segments",
        "device_traces",
        "action",
        "alloc",
        "addr",
        "size",
        "frames",
        "name",
        "f",
        "filename",
        "x.py",
        "line",
    ] {
        let length = u8::try_from(text.len())?;
        out.write_all(&[0x8c, length])?;
        out.write_all(text.as_bytes())?;
        out.write_all(b"\x940")?;
    }
    out.write_all(b"}(h\0]h\x01]]")?;
    for line in 0..STACKS {
        if line % 1000 == 0 {
            out.write_all(b"(")?;
        }
        out.write_all(b"}(h\x02h\x03h\x04K\x07h\x05K\x08h\x06]}(h\x07h\x08h\x09h\x0ah\x0bJ")?;
        out.write_all(&line.to_le_bytes())?;
        out.write_all(b"uau")?;
        if line % 1000 == 999 {
            out.write_all(b"e")?;
        }
    }
    out.write_all(b"au.")?;
    out.flush()?;
    Ok(())
}

fn wait_for_end(page: &Page, name: &str) -> Result<()> {
    // The file has 37 MB, which may take longer than a test waits for one thing.
    wait_for_answer("the file, open or refused", PATIENCE_WITH_LARGE_FILES, || {
        ensure!(page.count(&id("message"))? == 0, "{}", page.text(&id("message"))?);
        Ok((page.text(&id("document-title"))? == name).then_some(()))
    })
}

#[test]
fn a_million_stacks_open() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (name, file) = ("stacks.pickle", folder.path().join("stacks.pickle"));
    write_many_stacks(&file)?;
    drive(|page| {
        page.upload(&id("file"), &file)?;
        wait_for_end(page, name)?;
        // No segment of the file has the memory of its allocations. The page says so in place of the figures,
        // with the facts of the trace.
        page.wait_text(&id("unplaced"), "1,000,000 allocations of 7.63 MiB in all")?;
        page.wait_text(&id("unplaced"), "in memory that no segment of the file has")?;
        page.wait_text(&id("unplaced"), "The 10 of 1,000,000 stacks that asked for most in all")?;
        page.wait_text(&id("unplaced"), "f x.py:1")?;
        page.wait_gone(&id("lifetimes"))?;
        page.wait_until(
            "document.body.textContent.includes('1,000,000 allocations in memory that no segment')",
        )?;
        page.click(&id("unplaced-back"))?;
        page.wait_gone(&id("unplaced"))?;
        page.wait_for(&id("lifetimes"))
    })
}
