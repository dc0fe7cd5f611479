use std::cell::Cell;

use blockyard_device::{DeviceError, DeviceMemory, MemoryInfo, StreamEvent, VirtualDevice, VirtualMemory};
use blockyard_record::{Bytes, DeviceAddr, StreamId};

/// A virtual device whose calls fail when they should; a call that fails does nothing.
#[derive(Clone, Debug)]
pub(super) struct FailingDevice {
    pub(super) inner: VirtualDevice,
    /// Whether it has memory that comes page by page.
    pub(super) has_pages: bool,
    /// Calls of the kind that still work, while a failure is to come.
    armed: Cell<Option<Armed>>,
    /// Failures so far.
    failed: Cell<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    pub(super) call: Call,
    pub(super) working: u8,
    pub(super) failure: Failure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    MemoryInfo,
    Allocate,
    Release,
    RecordEvent,
    IsComplete,
    Wait,
    Reserve,
    ReleaseRange,
    Map,
    Unmap,
    Any,
}

impl Call {
    pub(super) const ALL: [Self; 11] = [
        Self::MemoryInfo,
        Self::Allocate,
        Self::Release,
        Self::RecordEvent,
        Self::IsComplete,
        Self::Wait,
        Self::Reserve,
        Self::ReleaseRange,
        Self::Map,
        Self::Unmap,
        Self::Any,
    ];
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Failure {
    OutOfMemory,
    Unknown,
    Lost,
    Sticky,
    Driver,
}

impl Failure {
    pub(super) const ALL: [Self; 5] =
        [Self::OutOfMemory, Self::Unknown, Self::Lost, Self::Sticky, Self::Driver];

    fn error(self) -> DeviceError {
        let (operation, source) = ("call", || "planned".into());
        match self {
            Self::OutOfMemory => DeviceError::OutOfMemory { requested: Bytes::new(1) },
            Self::Unknown => DeviceError::UnknownSegment(DeviceAddr::new(1)),
            Self::Lost => DeviceError::Lost { source: source() },
            Self::Sticky => DeviceError::Sticky { operation, source: source() },
            Self::Driver => DeviceError::Driver { operation, source: source() },
        }
    }
}

impl FailingDevice {
    pub(super) fn new(total: Bytes, has_pages: bool) -> Self {
        Self { inner: VirtualDevice::new(total), has_pages, armed: Cell::new(None), failed: Cell::new(0) }
    }

    pub(super) fn arm(&self, armed: Option<Armed>) {
        self.armed.set(armed);
    }

    pub(super) fn failed(&self) -> u32 {
        self.failed.get()
    }

    fn pass(&self, call: Call) -> Result<(), DeviceError> {
        let Some(armed) = self.armed.get().filter(|armed| armed.call == call || armed.call == Call::Any)
        else {
            return Ok(());
        };
        if let Some(working) = armed.working.checked_sub(1) {
            self.armed.set(Some(Armed { working, ..armed }));
            return Ok(());
        }
        // What broke a device breaks its later calls too.
        if !matches!(armed.failure, Failure::Sticky) {
            self.armed.set(None);
        }
        self.failed.set(self.failed.get() + 1);
        Err(armed.failure.error())
    }
}

impl DeviceMemory for FailingDevice {
    type Event = StreamEvent;

    fn total_memory(&self) -> Bytes {
        self.inner.total_memory()
    }

    fn memory_info(&mut self) -> Result<MemoryInfo, DeviceError> {
        self.pass(Call::MemoryInfo)?;
        self.inner.memory_info()
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.pass(Call::Allocate)?;
        self.inner.allocate_segment(size)
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.pass(Call::Release)?;
        self.inner.release_segment(base)
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        self.pass(Call::RecordEvent)?;
        self.inner.record_event(stream)
    }

    fn is_complete(&self, event: &StreamEvent) -> Result<bool, DeviceError> {
        self.pass(Call::IsComplete)?;
        self.inner.is_complete(event)
    }

    fn wait(&mut self, event: &StreamEvent) -> Result<(), DeviceError> {
        self.pass(Call::Wait)?;
        self.inner.wait(event)
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        if self.has_pages { Some(self) } else { None }
    }
}

impl VirtualMemory for FailingDevice {
    fn reserve(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.pass(Call::Reserve)?;
        self.inner.reserve(size)
    }

    fn release(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.pass(Call::ReleaseRange)?;
        VirtualMemory::release(&mut self.inner, base)
    }

    fn map(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        self.pass(Call::Map)?;
        self.inner.map(addr, size, page)
    }

    fn unmap(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        self.pass(Call::Unmap)?;
        self.inner.unmap(addr, size, page)
    }
}
