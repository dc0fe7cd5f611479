//! The calls that a device passes on to another device.

/// Writes methods of [`DeviceMemory`](crate::DeviceMemory) or [`Advance`](crate::Advance) that pass the call
/// on to another device: first the device and how the other one is reached from it, then the methods.
///
/// ```
/// use blockyard_device::{DeviceError, DeviceMemory, StreamEvent, VirtualDevice, forward_device};
/// use blockyard_record::{Bytes, DeviceAddr, StreamId};
///
/// /// A device whose segments have at least 2 MiB.
/// struct Coarse(VirtualDevice);
///
/// impl DeviceMemory for Coarse {
///     type Event = StreamEvent;
///
///     forward_device!(|device| device.0 => total_memory, memory_info, release_segment);
///     forward_device!(|device| device.0 => record_event, is_complete, wait, virtual_memory);
///
///     fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
///         self.0.allocate_segment(size.max(Bytes::mib(2)))
///     }
/// }
///
/// let mut device = Coarse(VirtualDevice::new(Bytes::mib(32)));
/// device.allocate_segment(Bytes::new(512))?;
/// assert_eq!(device.memory_info()?.free, Bytes::mib(30));
/// # Ok::<(), DeviceError>(())
/// ```
#[macro_export]
macro_rules! forward_device {
    (|$device:ident| $inner:expr => $($method:ident),+ $(,)?) => {
        $($crate::forward_device!(@$method $device $inner);)+
    };
    (@total_memory $device:ident $inner:expr) => {
        fn total_memory(&self) -> ::blockyard_record::Bytes {
            let $device = self;
            $inner.total_memory()
        }
    };
    (@memory_info $device:ident $inner:expr) => {
        fn memory_info(&self) -> Result<$crate::MemoryInfo, $crate::DeviceError> {
            let $device = self;
            $inner.memory_info()
        }
    };
    (@allocate_segment $device:ident $inner:expr) => {
        fn allocate_segment(
            &mut self,
            size: ::blockyard_record::Bytes,
        ) -> Result<::blockyard_record::DeviceAddr, $crate::DeviceError> {
            let $device = self;
            $inner.allocate_segment(size)
        }
    };
    (@release_segment $device:ident $inner:expr) => {
        fn release_segment(
            &mut self,
            base: ::blockyard_record::DeviceAddr,
        ) -> Result<(), $crate::DeviceError> {
            let $device = self;
            $inner.release_segment(base)
        }
    };
    (@record_event $device:ident $inner:expr) => {
        fn record_event(
            &mut self,
            stream: ::blockyard_record::StreamId,
        ) -> Result<Self::Event, $crate::DeviceError> {
            let $device = self;
            $inner.record_event(stream)
        }
    };
    (@is_complete $device:ident $inner:expr) => {
        fn is_complete(&self, event: &Self::Event) -> Result<bool, $crate::DeviceError> {
            let $device = self;
            $inner.is_complete(event)
        }
    };
    (@wait $device:ident $inner:expr) => {
        fn wait(&mut self, event: &Self::Event) -> Result<(), $crate::DeviceError> {
            let $device = self;
            $inner.wait(event)
        }
    };
    (@virtual_memory $device:ident $inner:expr) => {
        fn virtual_memory(&mut self) -> Option<&mut dyn $crate::VirtualMemory> {
            let $device = self;
            $inner.virtual_memory()
        }
    };
    (@advance_streams $device:ident $inner:expr) => {
        fn advance_streams(&mut self, stream: Option<::blockyard_record::StreamId>) {
            let $device = self;
            $inner.advance_streams(stream);
        }
    };
    (@end_failed_request $device:ident $inner:expr) => {
        fn end_failed_request(&mut self) {
            let $device = self;
            $inner.end_failed_request();
        }
    };
}
