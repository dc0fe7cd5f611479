//! A device without hardware whose memory has contents, for tests of block data.

use std::collections::{BTreeMap, VecDeque};

use blockyard_device::{
    Advance, DeviceError, DeviceMemory, StreamEvent, VirtualDevice, VirtualMemory, forward_device,
};
use blockyard_record::{Bytes, DeviceAddr, StreamId};
use blockyard_replay::PatternedBlock;

use crate::extents::Extents;
use crate::{Fault, PatternMemory, word_at};

/// A [`VirtualDevice`] with contents: a read of an address returns the last written value.
///
/// Work of a stream waits in a queue until the stream is advanced or waited for, so that it runs as late as
/// it may. Memory is kept as ranges of patterns, so that gigabytes cost nothing.
#[derive(Debug)]
pub struct SimulatedMemory {
    device: VirtualDevice,
    queues: BTreeMap<StreamId, VecDeque<StreamWork>>,
    /// Addresses that have memory.
    memory: Extents<()>,
    segments: BTreeMap<DeviceAddr, Bytes>,
    /// The pattern of each address, and the address at which the fill that wrote it began.
    data: Extents<(u32, u64)>,
    faults: Vec<Fault>,
}

#[derive(Clone, Copy, Debug)]
enum StreamWork {
    Fill(PatternedBlock),
    Check(PatternedBlock),
    Event(StreamEvent),
}

impl SimulatedMemory {
    /// A device of `total` bytes, all free.
    #[must_use]
    pub fn new(total: Bytes) -> Self {
        Self {
            device: VirtualDevice::new(total),
            queues: BTreeMap::new(),
            memory: Extents::default(),
            segments: BTreeMap::new(),
            data: Extents::default(),
            faults: Vec::new(),
        }
    }

    fn give(&mut self, stream: StreamId, work: StreamWork) {
        self.queues.entry(stream).or_default().push_back(work);
    }

    /// Does a stream's work up to an event, or all of it.
    fn work_off(&mut self, stream: StreamId, until: Option<StreamEvent>) {
        let mut queue = self.queues.remove(&stream).unwrap_or_default();
        while let Some(work) = queue.pop_front() {
            match work {
                StreamWork::Fill(block) => self.write(block),
                StreamWork::Check(block) => self.compare(block),
                StreamWork::Event(event) if until == Some(event) => break,
                StreamWork::Event(_) => {}
            }
        }
        self.queues.insert(stream, queue);
    }

    fn work_off_all(&mut self) {
        let streams: Vec<StreamId> = self.queues.keys().copied().collect();
        for stream in streams {
            self.work_off(stream, None);
        }
        self.device.advance_all();
    }

    fn write(&mut self, block: PatternedBlock) {
        let (start, end) = span(block.addr, block.size);
        let missing = self.memory.pieces(start, end).into_iter().filter(|(.., memory)| memory.is_none());
        if let Some(fault) = fault(block, missing.map(|(from, to, _)| (from, to, None))) {
            self.faults.push(fault);
        }
        self.data.set(start, end, (block.pattern, start));
    }

    fn compare(&mut self, block: PatternedBlock) {
        let (start, end) = span(block.addr, block.size);
        let pieces = self.data.pieces(start, end).into_iter().map(|(from, to, found)| {
            (from, to, found.map(|(pattern, base)| word_at(pattern, words(from - base))))
        });
        let wrong =
            pieces.filter(|(from, _, found)| *found != Some(word_at(block.pattern, words(from - start))));
        if let Some(fault) = fault(block, wrong) {
            self.faults.push(fault);
        }
    }

    fn drop_memory(&mut self, addr: DeviceAddr, size: Bytes) {
        let (start, end) = span(addr, size);
        self.memory.clear(start, end);
        self.data.clear(start, end);
    }
}

/// All wrong pieces of a check as one fault; a piece has its first address, the address after it, and the
/// word at the first. `None` without a wrong piece.
fn fault(block: PatternedBlock, wrong: impl Iterator<Item = (u64, u64, Option<u32>)>) -> Option<Fault> {
    wrong.fold(None, |fault, (from, to, found)| {
        let count = (to - from) / 4;
        let first = Fault { block, wrong: 0, first: DeviceAddr::new(from), found };
        let fault = fault.unwrap_or(first);
        Some(Fault { wrong: fault.wrong + count, ..fault })
    })
}

/// The first address, and the address after the last.
fn span(addr: DeviceAddr, size: Bytes) -> (u64, u64) {
    (addr.get(), addr.offset(size).get())
}

/// The number of words in these bytes. Patterns repeat, so the low half of the number is enough.
fn words(bytes: u64) -> u32 {
    u32::try_from((bytes / 4) & 0xffff_ffff).unwrap_or_default()
}

impl Advance for SimulatedMemory {
    fn advance_streams(&mut self, stream: Option<StreamId>) {
        match stream {
            Some(stream) => {
                self.work_off(stream, None);
                self.device.advance(stream);
            }
            None => self.work_off_all(),
        }
    }
}

impl PatternMemory for SimulatedMemory {
    fn fill(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError> {
        self.give(stream, StreamWork::Fill(block));
        Ok(())
    }

    fn check(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError> {
        self.give(stream, StreamWork::Check(block));
        Ok(())
    }

    fn faults(&mut self) -> Result<Vec<Fault>, DeviceError> {
        self.work_off_all();
        Ok(std::mem::take(&mut self.faults))
    }
}

impl DeviceMemory for SimulatedMemory {
    type Event = StreamEvent;

    forward_device!(|device| device.device => total_memory, memory_info, is_complete);

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let base = self.device.allocate_segment(size)?;
        self.segments.insert(base, size);
        self.memory.set(base.get(), base.offset(size).get(), ());
        Ok(base)
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.work_off_all();
        self.device.release_segment(base)?;
        let size = self.segments.remove(&base).unwrap_or_default();
        self.drop_memory(base, size);
        Ok(())
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        let event = self.device.record_event(stream)?;
        self.give(stream, StreamWork::Event(event));
        Ok(event)
    }

    fn wait(&mut self, event: &StreamEvent) -> Result<(), DeviceError> {
        if !self.device.is_complete(event)? {
            self.work_off(event.stream(), Some(*event));
        }
        self.device.wait(event)
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        Some(self)
    }
}

impl VirtualMemory for SimulatedMemory {
    fn reserve(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.device.reserve(size)
    }

    fn release(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        VirtualMemory::release(&mut self.device, base)
    }

    fn map(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        let (start, end) = span(addr, size);
        self.device.map(addr, size, page)?;
        self.memory.set(start, end, ());
        Ok(())
    }

    fn unmap(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        self.work_off_all();
        self.device.unmap(addr, size, page)?;
        self.drop_memory(addr, size);
        Ok(())
    }
}
