//! Devices that fail when they should.

use std::cell::Cell;

use blockyard_device::{
    DeviceError, DeviceMemory, HostMemory, MemoryInfo, PinnedAllocation, Pinning, StreamEvent, VirtualDevice,
    VirtualHostMemory, VirtualMemory,
};
use blockyard_record::{Bytes, DeviceAddr, HostAddr, StreamId};

use crate::input::Input;

/// The planned failure, and the number of failures so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailureInjector {
    armed: Cell<Option<PlannedFailure>>,
    failed: Cell<u32>,
}

/// A virtual device whose calls fail when they should; a call that fails does nothing.
#[derive(Clone, Debug)]
pub(crate) struct FailingDevice {
    pub(crate) inner: VirtualDevice,
    pub(crate) failures: FailureInjector,
    /// Whether the device has virtual memory.
    has_pages: bool,
}

/// A host whose calls for pinned memory fail when they should; a call that fails does nothing.
#[derive(Clone, Debug)]
pub(crate) struct FailingHost {
    pub(crate) inner: VirtualHostMemory,
    pub(crate) failures: FailureInjector,
}

/// A planned failure, after a number of calls of its kind that work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedFailure {
    pub(crate) call: Call,
    pub(crate) working: u8,
    pub(crate) failure: InjectedFailure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
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
    pub(crate) const ALL: [Self; 11] = [
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
pub(crate) enum InjectedFailure {
    OutOfMemory,
    Unknown,
    Lost,
    Sticky,
    Driver,
}

impl InjectedFailure {
    pub(crate) const ALL: [Self; 5] =
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

impl FailureInjector {
    /// Plans a failure in place of the one that was planned.
    pub(crate) fn arm(&self, armed: Option<PlannedFailure>) {
        self.armed.set(armed);
    }

    /// Plans a failure as the input says, or none.
    pub(crate) fn arm_by(&self, input: &mut Input<'_>) {
        self.arm(input.flag().then(|| PlannedFailure {
            call: input.of(&Call::ALL),
            working: input.byte() % 4,
            failure: input.of(&InjectedFailure::ALL),
        }));
    }

    /// How many calls have failed.
    pub(crate) fn count(&self) -> u32 {
        self.failed.get()
    }

    fn pass(&self, call: Call) -> Result<(), DeviceError> {
        let Some(armed) = self.armed.get().filter(|armed| armed.call == call || armed.call == Call::Any)
        else {
            return Ok(());
        };
        if let Some(working) = armed.working.checked_sub(1) {
            self.armed.set(Some(PlannedFailure { working, ..armed }));
            return Ok(());
        }
        // After a failure that breaks the device, its later calls fail too.
        if !matches!(armed.failure, InjectedFailure::Sticky) {
            self.armed.set(None);
        }
        self.failed.set(self.failed.get() + 1);
        Err(armed.failure.error())
    }
}

impl FailingDevice {
    pub(crate) fn new(total: Bytes, has_pages: bool) -> Self {
        Self { inner: VirtualDevice::new(total), failures: FailureInjector::default(), has_pages }
    }
}

impl HostMemory for FailingHost {
    type Event = StreamEvent;

    fn allocate(&mut self, size: Bytes, pinning: Pinning) -> Result<PinnedAllocation, DeviceError> {
        self.failures.pass(Call::Allocate)?;
        self.inner.allocate(size, pinning)
    }

    fn release(&mut self, addr: HostAddr, pinning: Pinning) -> Result<i64, DeviceError> {
        self.failures.pass(Call::Release)?;
        self.inner.release(addr, pinning)
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        self.failures.pass(Call::RecordEvent)?;
        self.inner.record_event(stream)
    }

    fn is_complete(&self, event: &StreamEvent) -> Result<bool, DeviceError> {
        self.failures.pass(Call::IsComplete)?;
        self.inner.is_complete(event)
    }
}

impl DeviceMemory for FailingDevice {
    type Event = StreamEvent;

    fn total_memory(&self) -> Bytes {
        self.inner.total_memory()
    }

    fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        self.failures.pass(Call::MemoryInfo)?;
        self.inner.memory_info()
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.failures.pass(Call::Allocate)?;
        self.inner.allocate_segment(size)
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.failures.pass(Call::Release)?;
        self.inner.release_segment(base)
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        self.failures.pass(Call::RecordEvent)?;
        self.inner.record_event(stream)
    }

    fn is_complete(&self, event: &StreamEvent) -> Result<bool, DeviceError> {
        self.failures.pass(Call::IsComplete)?;
        self.inner.is_complete(event)
    }

    fn wait(&mut self, event: &StreamEvent) -> Result<(), DeviceError> {
        self.failures.pass(Call::Wait)?;
        self.inner.wait(event)
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        if self.has_pages { Some(self) } else { None }
    }
}

impl VirtualMemory for FailingDevice {
    fn reserve(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.failures.pass(Call::Reserve)?;
        self.inner.reserve(size)
    }

    fn release(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.failures.pass(Call::ReleaseRange)?;
        VirtualMemory::release(&mut self.inner, base)
    }

    fn map(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        self.failures.pass(Call::Map)?;
        self.inner.map(addr, size, page)
    }

    fn unmap(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        self.failures.pass(Call::Unmap)?;
        self.inner.unmap(addr, size, page)
    }
}
