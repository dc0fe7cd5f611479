//! Streams over the one queue of wgpu: a list of work for each stream.

use std::collections::{BTreeMap, VecDeque};

use blockyard_device::{Advance, DeviceError, DeviceMemory, MemoryInfo, StreamEvent};
use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::{PatternRange, WgpuDevice, WgpuMismatch};

/// A [`WgpuDevice`] with streams that its user advances.
///
/// WebGPU has one queue and no streams. Here a stream is a list of work that goes to the queue when the
/// stream is advanced or waited for, and no sooner. The events of the stream are complete from then on, since
/// later work on the queue finds the earlier work done. So the same requests have the same outcome as on a
/// [`VirtualDevice`](blockyard_device::VirtualDevice), and a block that is handed out before its streams are
/// done loses its data for certain.
#[derive(Debug)]
pub struct StreamedWgpu {
    device: WgpuDevice,
    streams: BTreeMap<StreamId, Stream>,
    /// The error of a call that returns no error; the next call that can fail reports it.
    late: Option<DeviceError>,
}

#[derive(Debug, Default)]
struct Stream {
    work: VecDeque<Task>,
    recorded: u64,
    done: u64,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Fill(PatternRange),
    Check(PatternRange, u32),
    Event(u64),
}

impl StreamedWgpu {
    /// Streams over `device`.
    #[must_use]
    pub fn new(device: WgpuDevice) -> Self {
        Self { device, streams: BTreeMap::new(), late: None }
    }

    /// Writes a range's pattern ([`WgpuDevice::fill`]) in the order of the stream. A wrong range is reported
    /// when the stream's work is submitted.
    pub fn fill(&mut self, stream: StreamId, range: PatternRange) {
        self.queue_task(stream, Task::Fill(range));
    }

    /// Compares a range with its pattern ([`WgpuDevice::check`]) in the order of the stream. A wrong range is
    /// reported when the stream's work is submitted.
    pub fn check(&mut self, stream: StreamId, range: PatternRange, tag: u32) {
        self.queue_task(stream, Task::Check(range, tag));
    }

    /// Submits the work of each stream that has no incomplete event.
    ///
    /// # Errors
    ///
    /// The errors of [`WgpuDevice::fill`], for ranges of earlier calls.
    pub fn submit_work(&mut self) -> Result<(), DeviceError> {
        self.take_late_error()?;
        let free = self.streams.iter().filter(|(_, stream)| stream.done == stream.recorded);
        for stream in free.map(|(stream, _)| *stream).collect::<Vec<_>>() {
            self.submit_until(stream, u64::MAX)?;
        }
        Ok(())
    }

    /// The failed checks since the last call ([`WgpuDevice::mismatches`]), without the work of streams that
    /// were not advanced.
    ///
    /// # Errors
    ///
    /// The errors of [`WgpuDevice::mismatches`].
    pub async fn mismatches(&mut self) -> Result<Vec<WgpuMismatch>, DeviceError> {
        self.take_late_error()?;
        self.device.mismatches().await
    }

    /// The failed checks since the last call ([`WgpuDevice::mismatches_now`]), without the work of streams
    /// that were not advanced.
    ///
    /// # Errors
    ///
    /// The errors of [`WgpuDevice::mismatches_now`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn mismatches_now(&mut self) -> Result<Vec<WgpuMismatch>, DeviceError> {
        self.take_late_error()?;
        self.device.mismatches_now()
    }

    fn queue_task(&mut self, stream: StreamId, task: Task) {
        self.streams.entry(stream).or_default().work.push_back(task);
    }

    /// Submits a stream's work up to the event with this number.
    fn submit_until(&mut self, stream: StreamId, until: u64) -> Result<(), DeviceError> {
        let Some(stream) = self.streams.get_mut(&stream) else { return Ok(()) };
        while stream.done < until {
            match stream.work.pop_front() {
                Some(Task::Fill(range)) => self.device.fill(range)?,
                Some(Task::Check(range, tag)) => self.device.check(range, tag)?,
                Some(Task::Event(event)) => stream.done = event,
                None => break,
            }
        }
        Ok(())
    }

    fn advance(&mut self, stream: Option<StreamId>) -> Result<(), DeviceError> {
        let all: Vec<_> = match stream {
            Some(stream) => vec![stream],
            None => self.streams.keys().copied().collect(),
        };
        for stream in all {
            self.submit_until(stream, u64::MAX)?;
        }
        // Natively, waiting for an event means that the work is really done afterwards.
        let event = self.device.record_event(StreamId::DEFAULT)?;
        self.device.wait(&event)
    }

    fn take_late_error(&mut self) -> Result<(), DeviceError> {
        self.late.take().map_or(Ok(()), Err)
    }
}

impl Advance for StreamedWgpu {
    fn advance_streams(&mut self, stream: Option<StreamId>) {
        if let Err(error) = self.advance(stream) {
            self.late.get_or_insert(error);
        }
    }
}

impl DeviceMemory for StreamedWgpu {
    type Event = StreamEvent;

    fn total_memory(&self) -> Bytes {
        self.device.total_memory()
    }

    /// Does not report an earlier error: the next call that changes the device reports it.
    fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        self.device.memory_info()
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.take_late_error()?;
        self.device.allocate_segment(size)
    }

    /// Does all work of all streams first, as drivers do.
    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.take_late_error()?;
        let streams: Vec<_> = self.streams.keys().copied().collect();
        for stream in streams {
            self.submit_until(stream, u64::MAX)?;
        }
        self.device.release_segment(base)
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        self.take_late_error()?;
        let recorded = self.streams.entry(stream).or_default();
        recorded.recorded += 1;
        let number = recorded.recorded;
        recorded.work.push_back(Task::Event(number));
        Ok(StreamEvent::new(stream, number))
    }

    fn is_complete(&self, event: &StreamEvent) -> Result<bool, DeviceError> {
        Ok(self.streams.get(&event.stream()).is_some_and(|stream| stream.done >= event.number()))
    }

    fn wait(&mut self, event: &StreamEvent) -> Result<(), DeviceError> {
        self.take_late_error()?;
        if self.is_complete(event)? {
            return Ok(());
        }
        self.submit_until(event.stream(), event.number())?;
        let event = self.device.record_event(event.stream())?;
        self.device.wait(&event)
    }
}
