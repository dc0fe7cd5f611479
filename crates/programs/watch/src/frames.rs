//! What a watched program sends: frames, each after its length.

use serde::{Deserialize, Serialize};

/// The number of this format. A reader of another number says so and stops.
pub const FORMAT: u32 = 1;

/// The longest body that a reader accepts: a snapshot of millions of blocks.
const MAX_BODY: usize = 1 << 31;

/// The most devices of one program.
pub const MAX_DEVICES: usize = 16;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// PyTorch's number of the action.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackText {
    /// The number of the stack on its device.
    pub number: u32,
    /// The frames, innermost first.
    pub frames: Vec<StackFrame>,
}

/// A frame of a [`StackText`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// The file of the code.
    pub file: String,
    /// The name of the function.
    pub name: String,
    /// The line; 0 where it is not known.
    pub line: u32,
}

/// What a device reported at a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// Which program this is.
    Hello(Hello),
    /// PyTorch's snapshot, which holds after the events before it: what
    /// `pickle.dumps(torch.cuda.memory._snapshot())` gives, without traces.
    Snapshot(Vec<u8>),
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
    /// The frame is too long.
    #[error("a frame of {0} bytes")]
    Length(usize),
    /// The bytes are not a frame of this release.
    #[error("a frame is damaged, or that of another release")]
    Body,
}

impl Frame {
    /// Appends the frame to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; LENGTH]);
        // Bytes can always be appended.
        if let Ok(mut written) = postcard::to_extend(self, std::mem::take(out)) {
            let length = u32::try_from(written.len() - start - LENGTH).unwrap_or(u32::MAX);
            if let Some(head) = written.get_mut(start..start + LENGTH) {
                head.copy_from_slice(&length.to_le_bytes());
            }
            *out = written;
        }
    }
}

/// The bytes of a length.
const LENGTH: usize = 4;

/// Reads frames from bytes that come in pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    done: usize,
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
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_BODY {
            return Err(FrameError::Length(length));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = postcard::from_bytes(body).map_err(|_| FrameError::Body)?;
        self.done += LENGTH + length;
        Ok(Some(frame))
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
            Frame::Snapshot(vec![1, 2, 3]),
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
        let mut bytes = Vec::new();
        for frame in frames() {
            frame.write(&mut bytes);
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
        let mut bytes = Vec::new();
        for frame in frames() {
            frame.write(&mut bytes);
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
        decoder.add(&[1, 0, 0, 0, 99]);
        assert_eq!(decoder.next(), Err(FrameError::Body));
        let mut decoder = Decoder::default();
        decoder.add(&[255; 4]);
        assert_eq!(decoder.next(), Err(FrameError::Length(0xffff_ffff)));
    }
}
