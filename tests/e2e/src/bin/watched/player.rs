//! The watched program plays the trace of a sample: it writes the frames that the library in a program of PyTorch
//! writes.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result};
use blockyard_e2e::repository_file;
use blockyard_pytorch::snapshot::{SnapshotFile, read};
use blockyard_record::{StackId, TraceAction};
use blockyard_watch::{DeviceMemory, Event, FORMAT, Frame, Hello, StackFrame, StackText};

/// Plays as many steps as each line of the input says. The arguments are the number of processes that send, and
/// a file for the id of this process.
pub(crate) fn play(socket: &Path) -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let processes: usize = arguments.next().context("no number of processes")?.parse()?;
    fs::write(arguments.next().context("no file for the id")?, std::process::id().to_string())?;
    let sample = Sample::read()?;
    // The processes of a program begin in any order.
    let players = (0..processes).rev().map(|rank| {
        let rank = (processes > 1).then(|| rank.to_string());
        Player::start(socket, &sample, rank)
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
