//! The state of a watched program, by the frames that it sends.

mod device;

pub use self::device::DeviceStep;

use std::collections::BTreeMap;
use std::sync::Arc;

use blockyard_pytorch::snapshot::{
    Annotation, DeviceSnapshot, DeviceTrace, EntryContext, FollowedDevice, SnapshotFile, SnapshotSettings,
    read,
};
use blockyard_record::{
    BlockState, Bytes, PoolId, StackId, Stacks, StreamId, TraceAction, TraceEntry, frame_text, own_line,
};
use blockyard_rules::{AllocatorConfig, Release, known_config};

use self::device::{WatchedDevice, is_request};
use crate::WatchedError;
use crate::frames::{DeviceMemory, Event, FORMAT, Frame, Hello, MAX_DEVICES, StackText};

/// The last steps of a program as a snapshot, for all questions.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// PyTorch's snapshot: the memory at the end, and the entries of the steps as its trace.
    pub file: SnapshotFile,
    /// For each device of the file: how many allocations and frees come after the beginning of the first step,
    /// and after the end of each step.
    pub later: Vec<Vec<usize>>,
}

/// A watched program.
#[derive(Debug, Default)]
pub struct Watched {
    /// Which program this is.
    pub hello: Hello,
    /// The number of the last step that ended.
    pub step: u64,
    /// Each request that found no memory: device and bytes.
    pub out_of_memory: Vec<(usize, u64)>,
    /// How many snapshots of PyTorch's were compared with the state, and how many were different.
    pub compared: (u64, u64),
    settings: SnapshotSettings,
    devices: Vec<WatchedDevice>,
    stacks: Stacks,
    /// The program's own line of each stack, as a number of `lines`.
    line_of: BTreeMap<StackId, usize>,
    lines: Vec<String>,
}

impl Watched {
    /// Applies a frame. Returns the steps that ended with it, one for each device that is used.
    ///
    /// # Errors
    ///
    /// [`WatchedError`], where the frames cannot be those of this release.
    pub fn apply(&mut self, frame: Frame) -> Result<Vec<DeviceStep>, WatchedError> {
        match frame {
            Frame::Hello(hello) if hello.format != FORMAT => {
                return Err(WatchedError::Format(hello.format));
            }
            Frame::Hello(hello) => {
                let count = hello.devices.len().clamp(1, MAX_DEVICES);
                self.devices.resize_with(count, WatchedDevice::default);
                for device in &mut self.devices {
                    device.current.number = 1;
                }
                self.hello = hello;
            }
            Frame::Snapshot(pickle) => self.start_from(&pickle)?,
            Frame::Stack { device, stack } => self.add_stack(device, &stack),
            Frame::Events { device, events } => {
                for event in &events {
                    self.add_event(device, event);
                }
            }
            Frame::Step { number, memory } => return Ok(self.end_step(number, &memory)),
            Frame::Gap { device, .. } => {
                if let Some(device) = self.devices.get_mut(device) {
                    device.lose();
                }
            }
            Frame::OutOfMemory { device, size } => self.out_of_memory.push((device, size)),
            Frame::Note(_) => {}
        }
        Ok(Vec::new())
    }

    fn start_from(&mut self, pickle: &[u8]) -> Result<(), WatchedError> {
        let go_on = &mut |_done| std::ops::ControlFlow::Continue(());
        let file = read(pickle, go_on)?;
        self.settings = file.settings;
        let release = Release::nearest(&self.hello.torch);
        let (conf, _left_out) = known_config(&self.settings.conf, release);
        let config = AllocatorConfig::parse(&conf, release).unwrap_or_default();
        for index in 0..self.devices.len() {
            let here = file.devices.iter().find(|device| device.index as usize == index);
            let found = here.cloned().unwrap_or_else(|| DeviceSnapshot {
                index: u32::try_from(index).unwrap_or_default(),
                ..DeviceSnapshot::default()
            });
            let Some(device) = self.devices.get_mut(index) else { continue };
            if let Some(followed) = device.followed.as_ref() {
                // What is followed has stacks, which this snapshot does not have.
                self.compared.0 += 1;
                if is_equal(&followed.snapshot(DeviceTrace::default()), &found) {
                    continue;
                }
                self.compared.1 += 1;
            }
            device.followed = Some(FollowedDevice::of(&found, config.clone()));
            device.restart();
        }
        Ok(())
    }

    fn add_stack(&mut self, device: usize, text: &StackText) {
        let frames = text.frames.iter().map(|frame| {
            let (name, file) = (self.stacks.intern_text(&frame.name)?, self.stacks.intern_text(&frame.file)?);
            self.stacks.intern_frame(name, file, frame.line).map(blockyard_record::FrameId::get)
        });
        let frames: Option<Vec<u32>> = frames.collect();
        let stack = frames.and_then(|frames| self.stacks.intern_stack(&frames)).unwrap_or_default();
        let texts: Vec<String> = text
            .frames
            .iter()
            .map(|frame| format!("{} ({}:{})", frame.name, frame.file, frame.line))
            .collect();
        if let Some(line) = own_line(&texts).map(frame_text) {
            let index = self.lines.iter().position(|known| *known == line).unwrap_or_else(|| {
                self.lines.push(line);
                self.lines.len() - 1
            });
            self.line_of.insert(stack, index);
        }
        if let Some(device) = self.devices.get_mut(device) {
            device.stacks.push(stack);
        }
    }

    fn add_event(&mut self, device: usize, event: &Event) {
        let Some(device) = self.devices.get_mut(device) else { return };
        let Some(action) = TraceAction::from_number(event.action.into()) else { return };
        let place = (event.stack as usize).checked_sub(1);
        let stack = place.and_then(|place| device.stacks.get(place)).copied().unwrap_or_default();
        let [capture, user] = event.pool.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let entry = TraceEntry {
            action,
            addr: event.addr,
            size: Bytes::new(event.size),
            stream: StreamId::new(event.stream),
        };
        device.add(&entry, PoolId { capture, user }, stack, event.time_us, &self.line_of);
    }

    fn end_step(&mut self, number: u64, memory: &[DeviceMemory]) -> Vec<DeviceStep> {
        self.step = number;
        let mut steps = Vec::new();
        for (index, device) in self.devices.iter_mut().enumerate() {
            device.memory = memory.get(index).copied().unwrap_or_default();
            let step = device.end_step(index, number, &self.lines);
            if !step.peak_reserved.is_zero() || step.has_gap {
                steps.push(step);
            }
        }
        steps
    }

    /// The kept steps from this number on, with the entries after them.
    pub fn steps(&self, from: u64) -> Steps {
        let mut steps = Steps::default();
        let mut stacks = self.stacks.clone();
        for (index, device) in self.devices.iter().enumerate() {
            let Some(followed) = &device.followed else { continue };
            let kept = device.kept.iter().filter(|step| step.number >= from);
            let mut trace = DeviceTrace::default();
            let mut places = Vec::new();
            let mut done = 0;
            for step in kept.chain([&device.current]) {
                places.push(done);
                if let Some(name) = stacks.intern_text(&format!("step {}", step.number)) {
                    steps.file.annotations.push(Annotation {
                        name,
                        is_end: false,
                        device: u32::try_from(index).ok(),
                        time_us: step.begins_us,
                    });
                }
                for entry in &step.entries {
                    trace.push(entry);
                    done += usize::from(is_request(entry.entry.action));
                }
            }
            steps.later.push(places.into_iter().map(|place| done - place).collect());
            steps.file.devices.push(followed.snapshot(trace));
        }
        steps.file.settings = self.settings.clone();
        steps.file.stacks = Arc::new(stacks);
        steps.file.contexts = vec![EntryContext::default()];
        steps
    }

    /// How many entries did not fit the memory that is followed.
    pub fn misfits(&self) -> u64 {
        self.devices.iter().filter_map(|device| device.followed.as_ref()).map(FollowedDevice::misfits).sum()
    }
}

/// Whether two snapshots have the same segments and blocks.
fn is_equal(one: &DeviceSnapshot, other: &DeviceSnapshot) -> bool {
    let of = |device: &DeviceSnapshot| {
        let mut segments: Vec<_> = device
            .segments
            .iter()
            .map(|segment| {
                let blocks: Vec<_> = segment
                    .blocks
                    .iter()
                    .map(|block| {
                        let is_active = block.state != BlockState::Inactive;
                        (block.addr(), block.size, block.state, block.requested.filter(|_| is_active))
                    })
                    .collect();
                let kind = (segment.pool, segment.pool_id, segment.is_expandable);
                (segment.addr, segment.size, segment.stream, kind, blocks)
            })
            .collect();
        segments.sort_by_key(|segment| segment.0);
        segments
    };
    of(one) == of(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::StackFrame;

    const MIB: u64 = 1 << 20;

    /// A program on one device: what it sends.
    struct Program {
        watched: Watched,
        time: u64,
    }

    impl Program {
        fn new() -> Self {
            let mut watched = Watched::default();
            let hello = Hello { format: FORMAT, devices: vec!["a GPU".into()], ..Hello::default() };
            watched.apply(Frame::Hello(hello)).unwrap();
            let mut program = Self { watched, time: 1_000 };
            program.snapshot(&SnapshotFile::default());
            for (number, line) in [(1, 10), (2, 45)] {
                let frames = vec![StackFrame { file: "train.py".into(), name: "main".into(), line }];
                let stack = StackText { number, frames };
                program.watched.apply(Frame::Stack { device: 0, stack }).unwrap();
            }
            program
        }

        fn snapshot(&mut self, file: &SnapshotFile) {
            let mut pickle = Vec::new();
            file.write_pickle(&mut pickle).unwrap();
            self.watched.apply(Frame::Snapshot(pickle)).unwrap();
        }

        fn event(&mut self, action: u8, addr: u64, size: u64, stack: u32) {
            self.time += 1;
            let event = Event { action, addr, size, time_us: self.time, stack, ..Event::default() };
            self.watched.apply(Frame::Events { device: 0, events: vec![event] }).unwrap();
        }

        fn step(&mut self, number: u64) -> DeviceStep {
            let memory = vec![DeviceMemory { available: 200 * MIB, total: 1 << 40, limit: 0 }];
            self.watched.apply(Frame::Step { number, memory }).unwrap().remove(0)
        }

        /// A step that works in 20 MiB and keeps 20 MiB.
        fn leaking_step(&mut self, number: u64) -> DeviceStep {
            let kept = (number + 1) * 100 * MIB;
            if number == 1 {
                self.event(3, MIB, 20 * MIB, 0);
            }
            self.event(0, MIB, 20 * MIB, 1);
            self.event(3, kept, 20 * MIB, 2);
            self.event(0, kept, 20 * MIB, 2);
            self.event(1, MIB, 20 * MIB, 0);
            self.event(2, MIB, 20 * MIB, 0);
            self.step(number)
        }
    }

    #[test]
    fn a_step_has_its_own_peak_and_the_line_that_grew() {
        let mut program = Program::new();
        let first = program.leaking_step(1);
        assert_eq!((first.peak_allocated, first.peak_reserved), (Bytes::mib(40), Bytes::mib(40)));
        assert_eq!((first.growth, first.is_like_before), (None, false));
        let second = program.leaking_step(2);
        assert_eq!((second.peak_allocated, second.allocated), (Bytes::mib(60), Bytes::mib(40)));
        assert_eq!(second.growth, Some(20 << 20));
        assert_eq!(second.growing_line, Some(("main train.py:45".to_owned(), 20 << 20)));
        let quiet = program.step(3);
        assert_eq!((quiet.peak_allocated, quiet.growth, quiet.growing_line), (Bytes::mib(40), Some(0), None));
    }

    #[test]
    fn kept_steps_are_a_snapshot_that_is_read_again() {
        let mut program = Program::new();
        (1..=3).for_each(|number| drop(program.leaking_step(number)));
        let steps = program.watched.steps(0);
        // Each step has two allocations and a free.
        assert_eq!(steps.later, [[9, 6, 3, 0]]);
        let mut pickle = Vec::new();
        steps.file.write_pickle(&mut pickle).unwrap();
        let file = read(pickle.as_slice(), &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
        let names: Vec<&str> =
            file.annotations.iter().map(|mark| file.stacks.texts().get(mark.name)).collect();
        assert_eq!(names, ["step 1", "step 2", "step 3", "step 4"]);
        assert_eq!(file.devices[0].trace.len(), 3 * 5 + 1);
        assert!(is_equal(&file.devices[0], &steps.file.devices[0]));
        assert_eq!(program.watched.steps(3).later, [[3, 0]]);
    }

    #[test]
    fn snapshots_are_compared_and_count_where_they_differ() {
        let mut program = Program::new();
        program.leaking_step(1);
        let file = program.watched.steps(0).file;
        program.snapshot(&file);
        assert_eq!(program.watched.compared, (1, 0));
        program.snapshot(&SnapshotFile::default());
        assert_eq!(program.watched.compared, (2, 1));
        // The device is empty, and such a device has no line.
        assert_eq!(program.watched.apply(Frame::Step { number: 2, memory: Vec::new() }).unwrap(), []);
    }

    #[test]
    fn after_lost_events_the_next_snapshot_begins_anew() {
        let mut program = Program::new();
        program.leaking_step(1);
        let file = program.watched.steps(0).file;
        program.watched.apply(Frame::Gap { device: 0, lost: 3 }).unwrap();
        program.event(0, 7, 512, 0);
        assert!(program.step(2).has_gap);
        program.snapshot(&file);
        assert_eq!(program.watched.compared, (0, 0));
        let step = program.step(3);
        assert_eq!((step.has_gap, step.allocated, step.growth), (false, Bytes::mib(20), None));
        assert_eq!(program.watched.misfits(), 0);
    }

    #[test]
    fn an_event_that_does_not_fit_changes_nothing() {
        let mut program = Program::new();
        program.leaking_step(1);
        let before = program.watched.steps(0).file.devices[0].segments.clone();
        for (action, addr, size) in [
            (0, 5, 512),
            (0, 200 * MIB, 512),
            (1, MIB, 0),
            (2, MIB, 0),
            (4, 9, 9),
            (6, MIB, 0),
            (3, MIB, MIB),
        ] {
            program.event(action, addr, size, 0);
        }
        assert_eq!(program.watched.misfits(), 7);
        assert_eq!(program.watched.steps(0).file.devices[0].segments, before);
    }
}
