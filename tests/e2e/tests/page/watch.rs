//! A program that runs under `blockyard watch --page`.
//!
//! The watched program plays the trace of a sample: it writes the frames that the library in a program of PyTorch
//! writes. The command and the program are this test program again, in other roles.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, ensure};
use blockyard_e2e::{Page, Window, built_page, repository_file};
use blockyard_pytorch::snapshot::{SnapshotFile, read};
use blockyard_record::{StackId, TraceAction};
use blockyard_watch::{DeviceMemory, Event, FORMAT, Frame, Hello, StackFrame, StackText};
use tempfile::TempDir;

use crate::id;
use crate::opened::{MOST_CONTROLS, controls};

/// Names the arguments of the command, one a line, in the process that is the command.
const ARGUMENTS: &str = "BLOCKYARD_TEST_WATCH";
/// How many processes the watched program stands for.
const PROCESSES: &str = "BLOCKYARD_TEST_PROCESSES";
/// The file for the id of the watched program.
const ID_FILE: &str = "BLOCKYARD_TEST_ID_FILE";

/// A command that watches a program, which plays steps on request.
struct Watching {
    command: Child,
    program: Option<ChildStdin>,
    url: String,
    folder: TempDir,
}

impl Watching {
    fn start(processes: usize) -> Result<Self> {
        let this = std::env::current_exe()?;
        let folder = tempfile::tempdir()?;
        let arguments: Vec<OsString> = vec![
            "blockyard".into(),
            "watch".into(),
            "--page".into(),
            "--no-browser".into(),
            "--".into(),
            this.clone().into(),
            "watch::the_watched_program".into(),
            "--exact".into(),
            "--nocapture".into(),
        ];
        let arguments = arguments.join(OsString::from("\n").as_os_str());
        let mut command = Command::new(&this)
            .args(["watch::the_command", "--exact", "--nocapture"])
            .current_dir(folder.path())
            .env(ARGUMENTS, arguments)
            .env("BLOCKYARD_PAGE", built_page()?.canonicalize()?)
            .env(PROCESSES, processes.to_string())
            .env(ID_FILE, folder.path().join("id"))
            // No Python runs that would load the library.
            .env("BLOCKYARD_WATCH", &this)
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

#[test]
fn the_command() {
    if let Ok(arguments) = std::env::var(ARGUMENTS) {
        let _ = blockyard_cli::run_command(arguments.lines().map(OsString::from));
    }
}

#[test]
fn the_watched_program() -> Result<()> {
    let (Ok(socket), Ok(id)) = (std::env::var("BLOCKYARD_WATCH_SOCKET"), std::env::var(ID_FILE)) else {
        return Ok(());
    };
    fs::write(id, std::process::id().to_string())?;
    let processes: usize = std::env::var(PROCESSES)?.parse()?;
    let sample = Sample::read()?;
    // The processes of a program begin in any order.
    let players = (0..processes).rev().map(|rank| {
        let rank = (processes > 1).then(|| rank.to_string());
        Player::start(Path::new(&socket), &sample, rank)
    });
    let mut players = players.collect::<Result<Vec<_>>>()?;
    for line in std::io::stdin().lines() {
        for _ in 0..line?.parse()? {
            players.iter_mut().try_for_each(Player::play_step)?;
        }
    }
    Ok(())
}

/// A recorded training that keeps its losses, until it runs out of memory.
struct Sample {
    file: SnapshotFile,
    /// When the optimizer had stepped.
    ends_us: Vec<u64>,
    /// What the GPU had for PyTorch: what was reserved when the request failed, and what the driver had left.
    memory: DeviceMemory,
}

impl Sample {
    fn read() -> Result<Self> {
        let path = repository_file("web/samples/kept_losses.pickle.gz")?;
        let file = read(fs::File::open(path)?, &mut |_| std::ops::ControlFlow::Continue(()))?;
        let is_end = |name: &str| name.starts_with("Optimizer.step");
        let marks =
            file.annotations.iter().filter(|mark| mark.is_end && is_end(file.stacks.texts().get(mark.name)));
        let ends_us = marks.map(|mark| mark.time_us).collect();
        let device = file.devices.first().context("a device")?;
        let failed = device.trace.iter().find(|entry| entry.entry.action == TraceAction::OutOfMemory);
        let free = failed.context("a failed request")?.entry.addr;
        let total = free + device.segments.iter().map(|segment| segment.size.get()).sum::<u64>();
        let memory = DeviceMemory { available: total, total, limit: 0 };
        Ok(Self { file, ends_us, memory })
    }
}

/// Writes what a process of PyTorch would send.
struct Player<'a> {
    sample: &'a Sample,
    socket: UnixStream,
    stacks: HashMap<StackId, u32>,
    step: usize,
    done: usize,
}

impl<'a> Player<'a> {
    fn start(socket: &Path, sample: &'a Sample, rank: Option<String>) -> Result<Self> {
        let socket = UnixStream::connect(socket)?;
        let mut player = Self { sample, socket, stacks: HashMap::new(), step: 0, done: 0 };
        let devices = vec!["a GPU".to_owned()];
        let torch = "2.11.0".to_owned();
        player.send(&Frame::Hello(Hello { format: FORMAT, rank, devices, torch, ..Hello::default() }))?;
        let mut empty = Vec::new();
        SnapshotFile::default().write_pickle(&mut empty)?;
        player.send(&Frame::Snapshot(empty))?;
        Ok(player)
    }

    fn send(&mut self, frame: &Frame) -> Result<()> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        Ok(self.socket.write_all(&bytes)?)
    }

    /// The number of a stack, which is sent before it is used for the first time.
    fn stack(&mut self, stack: StackId) -> Result<u32> {
        if let Some(number) = self.stacks.get(&stack) {
            return Ok(*number);
        }
        let stacks = &self.sample.file.stacks;
        let frames: Vec<StackFrame> = stacks
            .frames(stack)
            .map(|frame| stacks.frame(frame))
            .map(|frame| StackFrame {
                file: frame.filename.to_owned(),
                name: frame.name.to_owned(),
                line: frame.line,
            })
            .collect();
        if frames.is_empty() {
            return Ok(0);
        }
        let number = u32::try_from(self.stacks.len() + 1)?;
        self.stacks.insert(stack, number);
        self.send(&Frame::Stack { device: 0, stack: StackText { number, frames } })?;
        Ok(number)
    }

    /// Plays the events up to the end of the next step; after the last step, all that are left.
    fn play_step(&mut self) -> Result<()> {
        let trace = &self.sample.file.devices.first().context("a device")?.trace;
        let end_us = self.sample.ends_us.get(self.step).copied();
        while let Some(entry) =
            trace.get(self.done).filter(|entry| end_us.is_none_or(|end| entry.time_us <= end))
        {
            self.done += 1;
            let action = TraceAction::all().position(|action| action == entry.entry.action);
            let event = Event {
                action: u8::try_from(action.context("an action")?)?,
                addr: entry.entry.addr,
                size: entry.entry.size.get(),
                time_us: entry.time_us,
                stream: entry.entry.stream.get(),
                stack: self.stack(entry.stack)?,
                ..Event::default()
            };
            self.send(&Frame::Events { device: 0, events: vec![event] })?;
            if entry.entry.action == TraceAction::OutOfMemory {
                self.send(&Frame::OutOfMemory { device: 0, size: event.size })?;
            }
        }
        if end_us.is_some() {
            self.step += 1;
            let memory = vec![self.sample.memory];
            self.send(&Frame::Step { number: self.step as u64, memory })?;
        }
        Ok(())
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
    ensure!(found.len() <= MOST_CONTROLS, "{} controls: {found:?}", found.len());
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
