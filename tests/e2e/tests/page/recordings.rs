//! Recordings of real runs.

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{GpuChoice, Key, Window, drive, drive_at};
use serde_json::json;

use crate::{choose, fixture, id, write_workload};

const GPT2: &str = "52,141 of 52,141 events identical";

#[test]
fn gpt2_opens_identically_and_each_move_of_the_scrubber_is_drawn() -> Result<()> {
    drive(|page| {
        page.upload(&id("file"), &fixture("programs/gpt2_varlen"))?;
        page.wait_text(&id("headline"), GPT2)?;
        let script = "
            const slider = document.querySelector(arguments[0]);
            const most = Number(slider.max);
            performance.clearMeasures('frame');
            for (let moves = 0; moves < 240; moves += 1) {
                // Back and forth, near and far: no order that a cache would like.
                slider.value = String(Math.round(most * ((moves * 0.618034) % 1)));
                slider.dispatchEvent(new Event('input', { bubbles: true }));
                await new Promise(requestAnimationFrame);
            }
            return performance.getEntriesByName('frame').length;";
        let frames = page.execute_async(script, &[json!(id("scrub"))])?;
        // How long a frame takes is measured by `cargo xtask bench page`.
        ensure!(frames.as_u64().context("a number")? >= 200, "only {frames} frames were drawn");
        page.wait_text(&id("position"), "of 34,659")
    })
}

#[test]
fn recordings_of_every_kind_open_from_files() -> Result<()> {
    drive(|page| {
        for (name, headline) in [
            ("programs/resnet50_amp", "13,101 of 13,101 events identical"),
            ("programs/multistream", "4,369 of 4,369 events identical"),
            ("programs/gnn_random.expandable_segments", "8,961 of 8,961 events identical"),
            ("programs/cudagraph_mlp", "234 of 234 events identical"),
            ("synthetic/default-tight", "1,771 of 1,771 events identical"),
            ("synthetic/expand-streams", "1,717 of 1,717 events identical"),
            ("synthetic/pools-mix", "1,785 of 1,785 events identical"),
        ] {
            page.upload(&id("file"), &fixture(name))?;
            let file = name.rsplit('/').next().unwrap_or(name);
            page.wait_text(&id("recording-card"), &format!("{file}.jsonl.gz"))?;
            page.wait_text(&id("headline"), headline)?;
            ensure!(page.count(".headline.differs")? == 0, "{name} differs");
        }
        Ok(())
    })
}

#[test]
fn memory_snapshots_of_pytorch_open_as_they_are() -> Result<()> {
    drive(|page| {
        let folder = fixture("x").with_file_name("snapshots");
        page.upload(&id("file"), &folder.join("resnet50_amp.pickle.gz"))?;
        page.wait_text(&id("document-title"), "resnet50_amp.pickle.gz")?;
        page.wait_text(&id("headline"), "placements identical")?;
        page.wait_text(&id("position"), "request ")?;
        page.wait_for(&id("stage"))?;
        // The file does not have the free bytes of the device.
        page.wait_until("document.querySelector('[data-testid=term-free]').closest('li').hidden")?;
        Ok(())
    })
}

#[test]
fn a_reload_opens_the_readers_own_file_again() -> Result<()> {
    drive(|page| {
        let folder = fixture("x").with_file_name("snapshots");
        page.upload(&id("file"), &folder.join("checkerboard_default_100.pickle.gz"))?;
        page.wait_text(&id("position"), "request 81 of 81")?;
        // The failure has the free bytes of the device; for another moment this number is the least.
        page.wait_text(&id("term-free"), "133.48 GiB")?;
        page.press(Key::Left)?;
        page.wait_text(&id("position"), "request 80 of 81")?;
        page.wait_text(&id("term-free"), "at least 133.48 GiB")?;
        page.wait_until("location.hash.startsWith('#own-file&step=80')")?;
        page.wait_until("sessionStorage.getItem('blockyard.opened')")?;
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("document-title"), "checkerboard_default_100.pickle.gz")?;
        page.wait_text(&id("position"), "request 80 of 81")?;
        // Another tab has no such file, and says so.
        page.execute("sessionStorage.clear(); location.reload()", &[])?;
        page.wait_text(&id("message"), "Choose it again with")
    })
}

#[test]
fn space_plays_behind_the_list_that_opened_a_sample() -> Result<()> {
    drive(|page| {
        page.goto("#workbench")?;
        choose(page, "sample", "kept_losses")?;
        page.wait_text(&id("verdict-headline"), "kept_losses.py")?;
        let opened = page.text(&id("position"))?;
        page.press(Key::Home)?;
        page.wait_text(&id("position"), "request 0 of")?;
        page.press(" ")?;
        page.wait_until(
            "!document.querySelector(\"[data-testid='position']\").textContent.startsWith('request 0 ')",
        )?;
        page.press(" ")?;
        let position = page.text(&id("position"))?;
        ensure!(position != opened, "the sample was opened again: {position}");
        Ok(())
    })
}

#[test]
fn the_readers_file_is_forgotten_when_asked() -> Result<()> {
    drive(|page| {
        let folder = fixture("x").with_file_name("snapshots");
        page.wait_gone(&id("forget-home"))?;
        page.upload(&id("file"), &folder.join("checkerboard_default_100.pickle.gz"))?;
        page.wait_text(&id("position"), "request 81 of 81")?;
        page.click("#tab-source")?;
        page.wait_text(&id("recording-card"), "in this browser's cache, on this machine only")?;
        let is_kept = "return caches.has('blockyard.opened')";
        ensure!(page.execute(is_kept, &[])? == json!(true), "nothing is kept");
        page.check_accessible()?;
        page.click(&id("forget"))?;
        page.wait_text(&id("message"), "What is open stays open")?;
        page.wait_gone(&id("forget"))?;
        ensure!(page.execute(is_kept, &[])? == json!(false), "the copy is still there");
        page.wait_text(&id("position"), "request 81 of 81")?;
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("message"), "Choose it again with")
    })
}

#[test]
fn a_message_goes_away_when_the_reader_goes_elsewhere() -> Result<()> {
    drive(|page| {
        let folder = fixture("x").with_file_name("snapshots");
        page.upload(&id("file"), &folder.join("checkerboard_default_100.pickle.gz"))?;
        page.wait_text(&id("position"), "request 81 of 81")?;
        page.click("#tab-source")?;
        page.click(&id("forget"))?;
        page.wait_text(&id("message"), "What is open stays open")?;
        // A step is not another place, so the message stays for the reader.
        page.click(&id("back"))?;
        ensure!(page.count(&id("message"))? == 1, "a step took the message away");
        page.click(&id("nav-learn"))?;
        page.wait_gone(&id("message"))?;
        page.click(&id("nav-workbench"))?;
        page.wait_text(&id("position"), "request 80 of 81")?;
        ensure!(page.count(&id("message"))? == 0, "the message came back");
        Ok(())
    })
}

#[test]
fn a_reload_opens_the_readers_own_lesson_at_its_card() -> Result<()> {
    drive(|page| {
        let lesson = "---\nid: mine\ntitle: My lesson\nsummary: Mine.\ncapacity: 64 MiB\nminutes: 1\n---\n\n## One\n\nFirst.\n\n```workload\na = alloc 3 MiB\n```\n\n## Two\n\nSecond.\n\n```workload\nfree a\n```\n";
        page.drop_file("body", "mine.md", lesson.as_bytes())?;
        page.wait_text(&id("card-position"), "Card 1 of 2")?;
        page.click(&id("card-next"))?;
        page.wait_text(&id("card-position"), "Card 2 of 2")?;
        page.wait_until("location.hash === '#own-lesson=2' && sessionStorage.getItem('blockyard.opened')")?;
        page.execute("location.reload()", &[])?;
        page.wait_text(&id("card-position"), "Card 2 of 2")?;
        page.wait_text("main", "My lesson")
    })
}

#[test]
fn a_difference_is_shown_and_jumped_to() -> Result<()> {
    drive(|page| {
        // A recording in which PyTorch would have answered otherwise: one address is moved.
        let text = r#"{"meta":{"name":"moved","torch":"2.11.0","conf":"","total_memory":1073741824}}
{"trace":[["segment_alloc",2097152,20971520,0],["alloc",2097152,3145728,0],["alloc",7340032,3145728,0],["free_requested",2097152,3145728,0],["free_completed",2097152,3145728,0]]}"#;
        page.drop_file("body", "moved.jsonl", text.as_bytes())?;
        page.wait_text(&id("headline"), "differs: 4 of 5 events identical")?;
        page.wait_text(&id("position"), "request 2 of 3")?;
        page.press(Key::End)?;
        page.click(&id("first-difference"))?;
        page.wait_text(&id("position"), "request 2 of 3")
    })
}

#[test]
fn bad_files_are_reported_and_lose_nothing() -> Result<()> {
    drive(|page| {
        write_workload(page, "a = alloc 3 MiB")?;
        let real = std::fs::read(fixture("programs/gnn_random")).context("the fixture")?;
        for (name, bytes, words) in [
            ("empty.jsonl.gz", &b""[..], "empty"),
            ("cut.jsonl.gz", &real[..real.len() / 2], "cut off"),
            ("snapshot.pickle", b"\x80\x04\x95rest", "pickle"),
            (
                "shell.pickle",
                b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02ls\x94\x85\x94R\x94.",
                "would run code, which this program never does",
            ),
            ("number.pickle", b"\x80\x04K\x07.", "a pickle of the number 7"),
            (
                "model.pt",
                b"PK\x03\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\x04\0\0\0\x10\0\0\0archive/data.pkl\x80\x02N.",
                "a file of torch.save (a model, a checkpoint)",
            ),
            ("cut.pickle", b"\x80\x04}\x94(\x8c\x08segments", "cut short"),
            ("picture.png", b"\x89PNG\r\n\x1a\n", "PNG"),
            ("notes.txt", b"hello", "not a recording"),
            ("draft.workload", b"a = alloc 3 MiB\nfree b", "Line 2"),
            ("nothing.jsonl", br#"{"meta":{"name":"n","total_memory":1}}"#, "empty"),
            (
                "late.jsonl",
                b"{\"meta\":{\"name\":\"n\",\"total_memory\":1073741824}}\n{\"trace\":[[\"free_requested\",512,3,0]]}",
                "begins late",
            ),
        ] {
            page.drop_file("body", name, bytes)?;
            page.wait_text(&id("message"), name)?;
            page.wait_text(&id("message"), words)?;
            page.click(&id("dismiss"))?;
            page.wait_gone(&id("message"))?;
        }
        page.wait_text(&id("segments-summary"), "1 segment, 20 MiB")
    })
}

#[test]
fn the_page_works_with_the_network_cut() -> Result<()> {
    // Without the service worker, whose registration would fail aloud where the network is cut just then.
    drive_at("/?once#workbench", Window::default(), GpuChoice::None, |page| {
        page.wait_until(
            "performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('.pickle.gz')).length >= 5",
        )?;
        page.cut_network()?;
        choose(page, "sample", "growing_sizes")?;
        page.wait_text(&id("headline"), "placements identical")?;
        page.click("#tab-source")?;
        page.click(&id("back-to-workload"))?;
        page.click(&id("end"))?;
        page.fill(&id("size"), "3 MiB")?;
        page.click(&id("allocate"))?;
        page.wait_text(&id("step-sentence"), "3 MiB")
    })
}
