//! What a watched program sends: frames of a kind, a length and a body.
//!
//! A body has numbers of 7 bits a byte, lowest first. Addresses and times of events are differences to those of
//! the event before on the same device, so that an event takes about 7 bytes.

use blockyard_record::TraceAction;
use serde::{Deserialize, Serialize};

/// The number of this format. A reader of another number says so and stops.
pub const FORMAT: u32 = 1;

/// The longest body that a reader accepts: a snapshot of millions of blocks.
const MAX_BODY: usize = 1 << 31;

/// The most devices of one program.
pub const MAX_DEVICES: usize = 16;

/// The actions, by PyTorch's numbers.
pub const ACTIONS: [TraceAction; 9] = [
    TraceAction::Alloc,
    TraceAction::FreeRequested,
    TraceAction::FreeCompleted,
    TraceAction::SegmentAlloc,
    TraceAction::SegmentFree,
    TraceAction::SegmentMap,
    TraceAction::SegmentUnmap,
    TraceAction::Snapshot,
    TraceAction::OutOfMemory,
];

/// The first frame: which program this is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// [`FORMAT`] of the sender.
    pub format: u32,
    /// The id of the process.
    pub pid: u32,
    /// `RANK` of the process, if it has one.
    pub rank: Option<String>,
    /// The version of PyTorch.
    pub torch: String,
    /// The names of the devices.
    pub devices: Vec<String>,
    /// Why no stack is sent; `None` where stacks are sent.
    pub no_stacks: Option<String>,
}

/// An event of the allocator, as PyTorch's trace tracker gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// PyTorch's number of the action, an index of [`ACTIONS`].
    pub action: u8,
    /// The address; for an out of memory the bytes that the device reported free.
    pub addr: u64,
    /// The requested bytes, or those of a segment.
    pub size: u64,
    /// When, in microseconds since 1970.
    pub time_us: u64,
    /// The stream.
    pub stream: u64,
    /// The two numbers of the memory pool.
    pub pool: [u64; 2],
    /// The stack by its number, counted from 1 for each device; 0 for none.
    pub stack: u32,
}

/// A stack, sent once before the first event that has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackText {
    /// The number of the stack on its device.
    pub number: u32,
    /// The frames, innermost first.
    pub frames: Vec<StackFrame>,
}

/// A frame of a [`StackText`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackFrame {
    /// The file of the code.
    pub file: String,
    /// The name of the function.
    pub name: String,
    /// The line; 0 where it is not known.
    pub line: u32,
}

/// What a device reported at a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// The bytes that PyTorch can reserve in all: those that the driver reported free, and those that are reserved
    /// at that moment; 0 where they are not known.
    pub available: u64,
    /// All bytes of the device.
    pub total: u64,
    /// The most bytes that the program may reserve by its memory fraction; 0 where it set none.
    pub limit: u64,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Which program this is.
    Hello(Hello),
    /// PyTorch's snapshot as a pickle. It holds after so many events of each device.
    Snapshot {
        /// For each device, how many events come before.
        positions: Vec<u64>,
        /// What `pickle.dumps(torch.cuda.memory._snapshot())` gives, without traces.
        pickle: Vec<u8>,
    },
    /// A stack of a device.
    Stack {
        /// The device.
        device: usize,
        /// The stack.
        stack: StackText,
    },
    /// Events of a device, in order.
    Events {
        /// The device.
        device: usize,
        /// The events.
        events: Vec<Event>,
    },
    /// The end of a step: all earlier frames belong to it.
    Step {
        /// The number of the step, counted from 1.
        number: u64,
        /// What each device reported.
        memory: Vec<DeviceMemory>,
    },
    /// So many events of a device were lost, because the program was faster than the reader.
    Gap {
        /// The device.
        device: usize,
        /// The number of lost events.
        lost: u64,
    },
    /// A request found no memory.
    OutOfMemory {
        /// The device.
        device: usize,
        /// The bytes of the request.
        size: u64,
    },
    /// A sentence for the reader.
    Note(String),
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The kind is not known.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// The body is too long.
    #[error("a frame of {0} bytes")]
    Length(usize),
    /// The body is not that of its kind.
    #[error("the body of a frame of the kind {0} is damaged")]
    Body(u8),
}

const HELLO: u8 = 1;
const SNAPSHOT: u8 = 2;
const STACK: u8 = 3;
const EVENTS: u8 = 4;
const STEP: u8 = 5;
const GAP: u8 = 6;
const OUT_OF_MEMORY: u8 = 7;
const NOTE: u8 = 8;

/// The event before, to whose values the next one is a difference.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    addr: u64,
    time_us: u64,
}

/// Writes frames.
#[derive(Debug, Default)]
pub struct Encoder {
    before: [Before; MAX_DEVICES],
}

impl Encoder {
    /// Appends a frame to `out`.
    pub fn write(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; 5]);
        let kind = self.body(frame, out);
        let length = u32::try_from(out.len() - start - 5).unwrap_or(u32::MAX);
        if let Some(head) = out.get_mut(start..start + 5) {
            let [a, b, c, d] = length.to_le_bytes();
            head.copy_from_slice(&[kind, a, b, c, d]);
        }
    }

    fn body(&mut self, frame: &Frame, out: &mut Vec<u8>) -> u8 {
        match frame {
            Frame::Hello(hello) => {
                out.extend(serde_json::to_vec(hello).unwrap_or_default());
                HELLO
            }
            Frame::Snapshot { positions, pickle } => {
                write_list(out, positions, |out, position| write_number(out, *position));
                out.extend(pickle);
                SNAPSHOT
            }
            Frame::Stack { device, stack } => {
                write_number(out, *device as u64);
                write_number(out, stack.number.into());
                write_list(out, &stack.frames, |out, frame| {
                    write_text(out, &frame.file);
                    write_text(out, &frame.name);
                    write_number(out, frame.line.into());
                });
                STACK
            }
            Frame::Events { device, events } => {
                write_number(out, *device as u64);
                if let Some(before) = self.before.get_mut(*device) {
                    for event in events {
                        write_event(out, event, before);
                    }
                }
                EVENTS
            }
            Frame::Step { number, memory } => {
                write_number(out, *number);
                write_list(out, memory, |out, memory| {
                    for value in [memory.available, memory.total, memory.limit] {
                        write_number(out, value);
                    }
                });
                STEP
            }
            Frame::Gap { device, lost } => {
                write_number(out, *device as u64);
                write_number(out, *lost);
                GAP
            }
            Frame::OutOfMemory { device, size } => {
                write_number(out, *device as u64);
                write_number(out, *size);
                OUT_OF_MEMORY
            }
            Frame::Note(text) => {
                out.extend(text.as_bytes());
                NOTE
            }
        }
    }
}

/// Whether a stack, a stream or a pool follows, in the byte with the action.
const HAS_STREAM: u8 = 1 << 4;
const HAS_POOL: u8 = 1 << 5;
const HAS_STACK: u8 = 1 << 6;

fn write_event(out: &mut Vec<u8>, event: &Event, before: &mut Before) {
    let mut head = event.action & 15;
    head |= if event.stream == 0 { 0 } else { HAS_STREAM };
    head |= if event.pool == [0; 2] { 0 } else { HAS_POOL };
    head |= if event.stack == 0 { 0 } else { HAS_STACK };
    out.push(head);
    write_number(out, zigzag(event.addr.wrapping_sub(before.addr).cast_signed()));
    write_number(out, event.size);
    write_number(out, zigzag(event.time_us.wrapping_sub(before.time_us).cast_signed()));
    *before = Before { addr: event.addr, time_us: event.time_us };
    if head & HAS_STREAM != 0 {
        write_number(out, event.stream);
    }
    if head & HAS_POOL != 0 {
        write_number(out, event.pool[0]);
        write_number(out, event.pool[1]);
    }
    if head & HAS_STACK != 0 {
        write_number(out, event.stack.into());
    }
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

fn write_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(value.to_le_bytes()[0] | 128);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    write_number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn write_list<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    write_number(out, items.len() as u64);
    for item in items {
        write(out, item);
    }
}

/// Reads frames from bytes that come in pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    done: usize,
    before: [Before; MAX_DEVICES],
}

impl Decoder {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.done);
        self.done = 0;
        self.bytes.extend(bytes);
    }

    /// The next whole frame; `None` until more bytes are added.
    ///
    /// # Errors
    ///
    /// [`FrameError`] where the bytes are not frames; nothing can be read after.
    #[expect(clippy::should_implement_trait, reason = "an iterator would end at each pause")]
    pub fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let bytes = self.bytes.get(self.done..).unwrap_or_default();
        let Some((&[kind, a, b, c, d], rest)) = bytes.split_first_chunk::<5>() else { return Ok(None) };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_BODY {
            return Err(FrameError::Length(length));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        self.done += 5 + length;
        let mut body = Body(body);
        let frame = match kind {
            HELLO => serde_json::from_slice(body.0).ok().map(Frame::Hello),
            SNAPSHOT => body
                .list(Body::number)
                .map(|positions| Frame::Snapshot { positions, pickle: body.0.to_vec() }),
            STACK => stack(&mut body),
            EVENTS => events(&mut body, &mut self.before),
            STEP => step(&mut body),
            GAP => body.pair().map(|(device, lost)| Frame::Gap { device, lost }),
            OUT_OF_MEMORY => body.pair().map(|(device, size)| Frame::OutOfMemory { device, size }),
            NOTE => Some(Frame::Note(String::from_utf8_lossy(body.0).into_owned())),
            _ => return Err(FrameError::Kind(kind)),
        };
        frame.map(Some).ok_or(FrameError::Body(kind))
    }
}

fn stack(body: &mut Body<'_>) -> Option<Frame> {
    let (device, number) = body.pair()?;
    let frame = |body: &mut Body<'_>| {
        Some(StackFrame { file: body.text()?, name: body.text()?, line: body.number()?.try_into().ok()? })
    };
    let frames = body.list(frame)?;
    Some(Frame::Stack { device, stack: StackText { number: number.try_into().ok()?, frames } })
}

fn events(body: &mut Body<'_>, all: &mut [Before; MAX_DEVICES]) -> Option<Frame> {
    let device = usize::try_from(body.number()?).ok()?;
    let before = all.get_mut(device)?;
    let mut events = Vec::new();
    while let Some((&head, rest)) = body.0.split_first() {
        body.0 = rest;
        let addr = before.addr.wrapping_add(unzigzag(body.number()?));
        let size = body.number()?;
        let time_us = before.time_us.wrapping_add(unzigzag(body.number()?));
        *before = Before { addr, time_us };
        let stream = if head & HAS_STREAM == 0 { 0 } else { body.number()? };
        let pool = if head & HAS_POOL == 0 { [0; 2] } else { [body.number()?, body.number()?] };
        let stack = if head & HAS_STACK == 0 { 0 } else { body.number()?.try_into().ok()? };
        events.push(Event { action: head & 15, addr, size, time_us, stream, pool, stack });
    }
    Some(Frame::Events { device, events })
}

fn step(body: &mut Body<'_>) -> Option<Frame> {
    let number = body.number()?;
    let memory = |body: &mut Body<'_>| {
        Some(DeviceMemory { available: body.number()?, total: body.number()?, limit: body.number()? })
    };
    Some(Frame::Step { number, memory: body.list(memory)? })
}

/// What is left of a body.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 127) << shift;
            if *byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn pair(&mut self) -> Option<(usize, u64)> {
        let device = usize::try_from(self.number()?).ok().filter(|device| *device < MAX_DEVICES)?;
        Some((device, self.number()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= self.0.len())?;
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let event = Event { addr: 0x7f00_0000_0000, size: 512, time_us: 1 << 50, ..Event::default() };
        let other =
            Event { action: 8, addr: 3, size: u64::MAX, time_us: 7, stream: 9, pool: [0, 4], stack: 70_000 };
        vec![
            Frame::Hello(Hello { format: FORMAT, rank: Some("1".into()), ..Hello::default() }),
            Frame::Snapshot { positions: vec![0, 300], pickle: vec![1, 2, 3] },
            Frame::Stack {
                device: 1,
                stack: StackText {
                    number: 70_000,
                    frames: vec![StackFrame { file: "träin.py".into(), name: "f".into(), line: 45 }],
                },
            },
            Frame::Events { device: 1, events: vec![event, other, event] },
            Frame::Events { device: 0, events: vec![event] },
            Frame::Events { device: 1, events: vec![other] },
            Frame::Step {
                number: 200,
                memory: vec![DeviceMemory { available: 1, total: 1 << 40, limit: 0 }],
            },
            Frame::Gap { device: 0, lost: 1 << 33 },
            Frame::OutOfMemory { device: 0, size: 192 << 20 },
            Frame::Note("a sentence".into()),
        ]
    }

    #[test]
    fn what_is_written_is_read_however_it_is_cut() {
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        for frame in frames() {
            encoder.write(&frame, &mut bytes);
        }
        for piece in [1, 7, bytes.len()] {
            let (mut decoder, mut read) = (Decoder::default(), Vec::new());
            for bytes in bytes.chunks(piece) {
                decoder.add(bytes);
                while let Some(frame) = decoder.next().unwrap() {
                    read.push(frame);
                }
            }
            assert_eq!(read, frames(), "in pieces of {piece}");
        }
    }

    #[test]
    fn damaged_bytes_are_an_error_or_another_frame() {
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        for frame in frames() {
            encoder.write(&frame, &mut bytes);
        }
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1 << bit;
                let mut decoder = Decoder::default();
                decoder.add(&damaged);
                while let Ok(Some(_)) = decoder.next() {}
            }
        }
        let mut decoder = Decoder::default();
        decoder.add(&[99, 0, 0, 0, 0]);
        assert_eq!(decoder.next(), Err(FrameError::Kind(99)));
    }
}
