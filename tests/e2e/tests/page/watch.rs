//! A program that runs under `blockyard watch --page`.
//!
//! The command and the program are the program `watched` of this package.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{Page, Window, built_page};
use tempfile::TempDir;

use crate::id;
use crate::opened::{MAX_CONTROLS, controls};

/// A command that watches a program, which plays steps on request.
struct Watching {
    command: Child,
    program: Option<ChildStdin>,
    url: String,
    folder: TempDir,
}

impl Watching {
    fn start(processes: usize) -> Result<Self> {
        let watched = env!("CARGO_BIN_EXE_watched");
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(watched)
            .args(["watch", "--page", "--no-browser", "--", watched, &processes.to_string(), "id"])
            .current_dir(folder.path())
            .env("BLOCKYARD_PAGE", built_page()?.canonicalize()?)
            // No Python runs that would load the library.
            .env("BLOCKYARD_WATCH", watched)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let program = command.stdin.take();
        let mut lines = BufReader::new(command.stderr.take().context("no output")?).lines();
        let url = lines.find_map(|line| Some(line.ok()?.split_once("shown at ")?.1.to_owned()));
        // The command must never wait for a reader of its lines.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { command, program, url: url.context("the command shows no address")?, folder })
    }

    /// Lets the program play so many steps more.
    fn play(&mut self, steps: usize) -> Result<()> {
        Ok(writeln!(self.program.as_mut().context("the program has ended")?, "{steps}")?)
    }

    fn kill_program(&self) -> Result<()> {
        let id = fs::read_to_string(self.folder.path().join("id"))?;
        ensure!(Command::new("kill").args(["-9", &id]).status()?.success(), "the program is not killed");
        Ok(())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // A program without an input ends, and the command with it.
        self.program = None;
        let _ = self.command.wait();
    }
}

fn open(watching: &Watching) -> Result<Page> {
    Page::elsewhere(&watching.url, Window { width: 1366, height: 768 })
}

/// The number of requests that the figures show.
fn shown_requests(page: &Page) -> Result<u64> {
    let text = page.text(&id("position"))?;
    let count = text.rsplit(' ').next().unwrap_or_default().replace(',', "");
    count.parse().with_context(|| format!("{text} has no count"))
}

#[test]
fn a_program_is_seen_growing_its_forecast_is_read_and_its_death_opens_the_recording() -> Result<()> {
    let mut watching = Watching::start(1)?;
    let mut page = open(&watching)?;
    watching.play(4)?;
    page.wait_text(&id("live-state"), "Running: 4 steps so far")?;
    page.wait_for(&id("position"))?;
    let before = shown_requests(&page)?;
    watching.play(8)?;
    page.wait_text(&id("live-state"), "Running: 12 steps so far")?;
    let has_grown = format!(
        "+document.querySelector({:?}).textContent.split(' ').at(-1).replace(',', '') > {before}",
        id("position")
    );
    page.wait_until(&has_grown)?;
    // The sample failed in its step 22, for 32 MiB of a backward pass.
    page.wait_text(&id("live-forecast"), "At this growth step 22 fails: 32 MiB.")?;
    let steps = page.text(&id("live-steps"))?;
    ensure!(steps.contains("12 ") && steps.contains("train_step kept_losses.py:14"), "{steps}");
    let found = controls(&page)?;
    ensure!(found.len() <= MAX_CONTROLS, "{} controls: {found:?}", found.len());
    for is_dark in [false, true] {
        page.dark(is_dark)?;
        page.check_accessible()?;
    }

    // A paused figure stays, and its steps can be looked at, while the program goes on.
    page.click(&id("live-pause"))?;
    let paused = shown_requests(&page)?;
    watching.play(2)?;
    page.wait_text(&id("live-state"), "Paused; the program runs on: 14 steps so far")?;
    page.click(&id("back"))?;
    page.wait_until(&format!(
        "document.querySelector({:?}).textContent.replaceAll(',', '') === 'request {} of {paused}'",
        id("position"),
        paused - 1
    ))?;
    page.click(&id("live-go-on"))?;
    page.wait_text(&id("live-state"), "Running: 14 steps so far")?;

    page.click(&id("live-keep"))?;
    page.wait_for(&id("verdict-headline"))?;
    page.wait_text(&id("document-title"), "watch.pickle")?;
    page.wait_text(&id("live-state"), "A recording; the program runs on: 14 steps so far")?;
    watching.play(1)?;
    page.click(&id("live-go-on"))?;
    page.wait_text(&id("live-state"), "Running: 15 steps so far")?;
    page.wait_gone(&id("verdict-headline"))?;

    watching.kill_program()?;
    page.wait_text(&id("live-state"), "Ended after 15 steps")?;
    page.wait_text(&id("verdict-headline"), "train_step kept_losses.py:14")?;
    page.wait_gone(&id("live-keep"))?;
    // The page has the recording, so that the command ends.
    watching.command.wait()?;
    page.wait_gone(&id("lab-work"))?;
    page.check_console()
}

#[test]
fn a_program_that_runs_out_of_memory_opens_its_verdict() -> Result<()> {
    let mut watching = Watching::start(1)?;
    let page = open(&watching)?;
    watching.play(40)?;
    page.wait_text(&id("verdict-headline"), "Out of memory by a leak at train_step kept_losses.py:14")?;
    page.wait_text(&id("live-state"), "A recording; the program runs on: 21 steps so far")?;
    watching.program = None;
    page.wait_text(&id("live-state"), "Ended after 21 steps")?;
    page.wait_text(&id("verdict-headline"), "Out of memory by a leak at train_step kept_losses.py:14")?;
    page.check_console()
}

#[test]
fn the_processes_of_a_program_stand_beside_each_other() -> Result<()> {
    let mut watching = Watching::start(2)?;
    let page = open(&watching)?;
    watching.play(8)?;
    page.wait_text(&id("live-programs"), "watch.rank1")?;
    page.wait_text(&id("live-programs"), "step 8: at this growth step 22 fails")?;
    page.wait_text(&id("document-title"), "watch.rank0.live")?;
    page.click(&format!("{} button:nth-child(2)", id("live-programs")))?;
    page.wait_text(&id("document-title"), "watch.rank1.live")?;
    page.check_accessible()?;
    watching.program = None;
    page.wait_text(&id("document-title"), "watch.rank1.pickle")?;
    page.click(&format!("{} button:nth-child(1)", id("live-programs")))?;
    page.wait_text(&id("document-title"), "watch.rank0.pickle")?;
    page.check_console()
}
