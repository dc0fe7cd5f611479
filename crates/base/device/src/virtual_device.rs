//! A device without memory: it counts bytes and gives out addresses.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::mapped::MappedAddresses;
use crate::random::{STEP, mixed};
use crate::streams::Streams;
use crate::{
    Advance, DeviceError, DeviceMemory, InitialMemory, MemoryInfo, ProcessMemory, StreamEvent, VirtualMemory,
};

/// The order of the addresses that a [`VirtualDevice`] gives to segments.
///
/// The addresses of a driver depend on everything else that the process has mapped, so nobody can know them
/// beforehand. Best fit breaks ties by address. A result that differs between two orders therefore depends on
/// the driver's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressOrder {
    /// Each segment is above all earlier ones.
    #[default]
    Rising,
    /// Each segment is below all earlier ones.
    Falling,
    /// Addresses are pseudo-random. The number is the seed: equal seeds give equal addresses.
    Scattered(u64),
}

impl AddressOrder {
    /// How many orders [`AddressOrder::others`] gives.
    pub const OTHER_ORDERS: usize = 8;

    /// The orders to try beside that of a run: growing and falling addresses decide each tie of two segments
    /// in both ways, and the scattered ones tell more than two segments apart. `own` is the order of the run,
    /// which is left out; `None` for recorded addresses.
    #[must_use]
    pub fn others(own: Option<Self>) -> [Self; Self::OTHER_ORDERS] {
        let scattered = |seed: usize| Self::Scattered(seed as u64);
        let all = |place: usize| match place {
            0 => Self::Rising,
            1 => Self::Falling,
            _ => scattered(place - 1),
        };
        let skipped = own.and_then(|own| (0..=Self::OTHER_ORDERS).find(|place| all(*place) == own));
        std::array::from_fn(|place| all(place + usize::from(skipped.is_some_and(|skipped| skipped <= place))))
    }
}

/// A device without hardware: a model of a device with a given number of bytes.
///
/// Addresses grow and are never reused, unless [`VirtualDevice::with_order`] was called. The first segment
/// starts at [`VirtualDevice::FIRST_ADDR`], each later segment at the next multiple of 2 MiB after the one
/// before. Best fit breaks ties by address, so that a tie goes to the older segment. Work on a stream is done
/// after [`VirtualDevice::advance`], or when a caller waits for it.
#[derive(Clone, Debug)]
pub struct VirtualDevice {
    total: Bytes,
    /// The bytes of `total` that are non-PyTorch memory.
    non_pytorch: Bytes,
    used: Bytes,
    next: DeviceAddr,
    order: AddressOrder,
    /// How many slots were taken by [`AddressOrder::Scattered`].
    slots_taken: u64,
    segments: BTreeMap<DeviceAddr, Bytes>,
    ranges: BTreeMap<DeviceAddr, ReservedRange>,
    streams: Streams,
}

/// Reserved addresses, and which of them are mapped.
#[derive(Clone, Debug)]
struct ReservedRange {
    size: Bytes,
    mapped: MappedAddresses,
}

impl VirtualDevice {
    /// The address of the first segment.
    pub const FIRST_ADDR: DeviceAddr = DeviceAddr::new(0x7f00_0000_0000);
    /// The end of all addresses that the orders `Falling` and `Scattered` use.
    const END_OF_ADDRESSES: DeviceAddr = DeviceAddr::new(1 << 62);
    /// Every segment starts at a multiple of this, as segments of `cudaMalloc` of 2 MiB and more do.
    pub const ALIGNMENT: Bytes = Bytes::mib(2);

    /// A device of `total` bytes, all free.
    #[must_use]
    pub fn new(total: Bytes) -> Self {
        Self::starting_at(total, Self::FIRST_ADDR)
    }

    pub(crate) fn starting_at(total: Bytes, next: DeviceAddr) -> Self {
        Self {
            total,
            non_pytorch: Bytes::ZERO,
            used: Bytes::ZERO,
            next,
            order: AddressOrder::Rising,
            slots_taken: 0,
            segments: BTreeMap::new(),
            ranges: BTreeMap::new(),
            streams: Streams::default(),
        }
    }

    /// The same device with this many bytes of non-PyTorch memory, such as the CUDA context of the process.
    /// These bytes are neither free nor in segments.
    #[must_use]
    pub const fn with_non_pytorch(mut self, non_pytorch: Bytes) -> Self {
        self.non_pytorch = non_pytorch;
        self
    }

    /// The use of memory that a driver would report for this process; `None` without non-PyTorch memory.
    fn process(&self) -> Option<ProcessMemory> {
        let used = self.non_pytorch.saturating_add(self.used);
        (!self.non_pytorch.is_zero()).then_some(ProcessMemory { process: None, used })
    }

    /// The same device with addresses in another order. Call this before the first segment is taken.
    #[must_use]
    pub fn with_order(mut self, order: AddressOrder) -> Self {
        self.order = order;
        if order == AddressOrder::Falling {
            self.next = Self::END_OF_ADDRESSES;
        }
        self
    }

    /// Makes the next segment start at `next`, a multiple of [`VirtualDevice::ALIGNMENT`]. If addresses grow,
    /// later segments follow.
    ///
    /// No segment may have had addresses from `next` on, because addresses are never reused.
    pub fn set_next_address(&mut self, next: DeviceAddr) {
        self.next = next;
    }

    /// Completes all work that the stream has so far.
    pub fn advance(&mut self, stream: StreamId) {
        self.streams.advance(stream);
    }

    /// Completes all work of all streams.
    pub fn advance_all(&mut self) {
        self.streams.advance_all();
    }

    /// Marks memory as allocated before the recording begins.
    pub(crate) fn add_initial_memory(&mut self, memory: InitialMemory) {
        let (end, taken) = match memory {
            InitialMemory::Segment { base, size } => {
                self.segments.insert(base, size);
                (base.offset(size), size)
            }
            InitialMemory::ReservedRange { base, size, mapped } => {
                let mut range = ReservedRange { size, mapped: MappedAddresses::default() };
                for (start, size) in &mapped {
                    range.mapped.add(start.get(), start.offset(*size).get());
                }
                self.ranges.insert(base, range);
                (base.offset(size), mapped.iter().map(|(_, size)| *size).sum())
            }
        };
        self.used = self.used.saturating_add(taken);
        // Nothing starts above memory that reaches to the end of 64 bits, which only a damaged recording has.
        let above = end.get().checked_next_multiple_of(Self::ALIGNMENT.get()).map(DeviceAddr::new);
        self.next = self.next.max(above.unwrap_or(self.next));
    }

    /// Whether no segment and no range overlaps the addresses.
    pub(crate) fn is_free(&self, base: DeviceAddr, size: Bytes) -> bool {
        let end = base.offset(size);
        let segment = self.segments.range(..end).next_back();
        let range = self.ranges.range(..end).next_back();
        segment.is_none_or(|(other, taken)| other.offset(*taken) <= base)
            && range.is_none_or(|(other, range)| other.offset(range.size) <= base)
    }

    pub(crate) fn reserve_at(&mut self, base: DeviceAddr, size: Bytes) -> DeviceAddr {
        self.ranges.insert(base, ReservedRange { size, mapped: MappedAddresses::default() });
        base
    }

    /// Takes the next `size` bytes of addresses and returns the first one.
    fn take_addresses(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        match self.order {
            AddressOrder::Rising => self.take_above(size),
            AddressOrder::Falling => {
                let base = self.next.get().checked_sub(size.get());
                let base = base.ok_or(DeviceError::OutOfMemory { requested: size })?;
                self.next = DeviceAddr::new(base - base % Self::ALIGNMENT.get());
                Ok(self.next)
            }
            AddressOrder::Scattered(seed) => self.take_slot(seed, size),
        }
    }

    /// Takes the addresses of a segment in a slot that no segment uses. Slots are equal parts of all
    /// addresses, and the largest possible segment of the device fits in one.
    fn take_slot(&mut self, seed: u64, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        /// A search ends after this many tries, so that it is not endless when nearly all slots are taken.
        const MAX_TRIES: u64 = 1 << 16;
        let full = DeviceError::OutOfMemory { requested: size };
        let room = self.total.max(size).get().checked_mul(2).and_then(u64::checked_next_power_of_two);
        let slots = room.and_then(|room| Self::END_OF_ADDRESSES.get().checked_div(room));
        let (Some(room), Some(slots)) = (room, slots.filter(|slots| *slots > 1)) else { return Err(full) };
        for _ in 0..MAX_TRIES {
            let index = seed.wrapping_shl(32).wrapping_add(self.slots_taken);
            self.slots_taken = self.slots_taken.wrapping_add(1);
            let slot = mixed(index.wrapping_mul(STEP)) % slots;
            let base = DeviceAddr::new(slot * room);
            if slot != 0 && self.is_free(base, size) {
                return Ok(base);
            }
        }
        Err(full)
    }

    fn take_above(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let base = self.next;
        let end = base.get().checked_add(size.get());
        let end = end.and_then(|end| end.checked_next_multiple_of(Self::ALIGNMENT.get()));
        self.next = DeviceAddr::new(end.ok_or(DeviceError::OutOfMemory { requested: size })?);
        Ok(base)
    }

    /// The range that contains all of `size` bytes from `addr` on.
    fn range_of(&mut self, addr: DeviceAddr, size: Bytes) -> Result<&mut ReservedRange, DeviceError> {
        let (base, range) =
            self.ranges.range_mut(..=addr).next_back().ok_or(DeviceError::UnknownSegment(addr))?;
        let end = addr.offset_from(*base).checked_add(size);
        if end.is_some_and(|end| end <= range.size) {
            Ok(range)
        } else {
            Err(DeviceError::UnknownSegment(addr))
        }
    }

    pub(crate) fn allocate_at(&mut self, base: DeviceAddr, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.used = self.used_with(size)?;
        self.segments.insert(base, size);
        Ok(base)
    }

    /// The bytes in use after `size` more bytes are allocated.
    fn used_with(&self, size: Bytes) -> Result<Bytes, DeviceError> {
        // PyTorch's statistics are signed numbers of 64 bits, so that no more than 8 EiB are allocated.
        let most = self.total.saturating_sub(self.non_pytorch).min(Bytes::new(i64::MAX.unsigned_abs()));
        let used = self.used.checked_add(size).filter(|used| *used <= most);
        used.ok_or(DeviceError::OutOfMemory { requested: size })
    }
}

impl Advance for VirtualDevice {
    fn advance_streams(&mut self, stream: Option<StreamId>) {
        match stream {
            Some(stream) => self.advance(stream),
            None => self.advance_all(),
        }
    }
}

impl DeviceMemory for VirtualDevice {
    type Event = StreamEvent;

    fn total_memory(&self) -> Bytes {
        self.total
    }

    fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        Ok(MemoryInfo {
            index: 0,
            free: self.total.saturating_sub(self.non_pytorch).saturating_sub(self.used),
            total: self.total,
            processes: self.process().into_iter().collect(),
        })
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        // A size that does not fit must not take addresses.
        self.used_with(size)?;
        let base = self.take_addresses(size)?;
        self.allocate_at(base, size)
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        let size = self.segments.remove(&base).ok_or(DeviceError::UnknownSegment(base))?;
        self.used -= size;
        Ok(())
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        Ok(self.streams.record(stream))
    }

    fn is_complete(&self, event: &StreamEvent) -> Result<bool, DeviceError> {
        Ok(self.streams.is_complete(*event))
    }

    fn wait(&mut self, event: &StreamEvent) -> Result<(), DeviceError> {
        self.streams.wait(*event);
        Ok(())
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        Some(self)
    }
}

impl VirtualMemory for VirtualDevice {
    fn reserve(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let base = self.take_addresses(size)?;
        Ok(self.reserve_at(base, size))
    }

    fn release(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        match self.ranges.get(&base) {
            Some(range) if range.mapped.is_empty() => {
                self.ranges.remove(&base);
                Ok(())
            }
            _ => Err(DeviceError::UnknownSegment(base)),
        }
    }

    fn map(&mut self, addr: DeviceAddr, size: Bytes, _page: Bytes) -> Result<(), DeviceError> {
        let used = self.used_with(size);
        let range = self.range_of(addr, size)?;
        let (start, end) = (addr.get(), addr.offset(size).get());
        if range.mapped.touches(start, end) {
            return Err(DeviceError::UnknownSegment(addr));
        }
        let used = used?;
        range.mapped.add(start, end);
        self.used = used;
        Ok(())
    }

    fn unmap(&mut self, addr: DeviceAddr, size: Bytes, _page: Bytes) -> Result<(), DeviceError> {
        let range = self.range_of(addr, size)?;
        let (start, end) = (addr.get(), addr.offset(size).get());
        if !range.mapped.covers(start, end) {
            return Err(DeviceError::UnknownSegment(addr));
        }
        range.mapped.remove(start, end);
        self.used -= size;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orders_to_try_leave_out_the_run_s_own() {
        use AddressOrder::{Falling, Rising, Scattered};
        let recorded = AddressOrder::others(None);
        assert_eq!(recorded[..3], [Rising, Falling, Scattered(1)]);
        assert_eq!(recorded[7], Scattered(6));
        let growing = AddressOrder::others(Some(Rising));
        assert_eq!((growing[0], growing[1], growing[7]), (Falling, Scattered(1), Scattered(7)));
        let scattered = AddressOrder::others(Some(Scattered(2)));
        assert_eq!((scattered[1], scattered[2], scattered[3]), (Falling, Scattered(1), Scattered(3)));
    }

    #[test]
    fn a_process_has_what_others_take_in_it_and_its_segments() {
        let mut device = VirtualDevice::new(Bytes::mib(64));
        device.allocate_segment(Bytes::mib(20)).unwrap();
        assert!(device.memory_info().unwrap().processes.is_empty());
        let mut device = VirtualDevice::new(Bytes::mib(64)).with_non_pytorch(Bytes::mib(10));
        device.allocate_segment(Bytes::mib(20)).unwrap();
        let info = device.memory_info().unwrap();
        assert_eq!(info.free, Bytes::mib(34));
        assert_eq!(info.processes, [ProcessMemory { process: None, used: Bytes::mib(30) }]);
    }

    #[test]
    fn addresses_grow_by_the_documented_rule() {
        let mut device = VirtualDevice::new(Bytes::mib(64));
        let first = device.allocate_segment(Bytes::mib(20)).unwrap();
        let second = device.allocate_segment(Bytes::new(512)).unwrap();
        device.release_segment(first).unwrap();
        let third = device.allocate_segment(Bytes::mib(2)).unwrap();
        assert_eq!(first, VirtualDevice::FIRST_ADDR);
        assert_eq!(second, first.offset(Bytes::mib(20)));
        assert_eq!(third, second.offset(Bytes::mib(2)));
    }

    #[test]
    fn other_orders_put_segments_elsewhere_and_never_twice() {
        let bases = |order| {
            let mut device = VirtualDevice::new(Bytes::gib(1)).with_order(order);
            let take = |_| device.allocate_segment(Bytes::mib(2)).unwrap();
            (0..64).map(take).collect::<Vec<_>>()
        };
        assert!(bases(AddressOrder::Rising).is_sorted());
        assert!(bases(AddressOrder::Falling).iter().rev().is_sorted());
        let scattered = bases(AddressOrder::Scattered(1));
        let rises = scattered.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((16..48).contains(&rises), "{rises} of 63 are above the one before");
        assert_ne!(scattered, bases(AddressOrder::Scattered(2)));
        let distinct: std::collections::BTreeSet<_> = scattered.iter().collect();
        assert_eq!(distinct.len(), 64);
    }

    #[test]
    fn a_device_gives_no_more_than_it_has_and_takes_back_only_what_it_gave() {
        let mut device = VirtualDevice::new(Bytes::mib(64));
        let base = device.allocate_segment(Bytes::mib(64)).unwrap();
        assert!(matches!(device.allocate_segment(Bytes::new(1)), Err(DeviceError::OutOfMemory { .. })));
        assert!(matches!(
            device.allocate_segment(Bytes::new(u64::MAX)),
            Err(DeviceError::OutOfMemory { .. })
        ));
        device.release_segment(base).unwrap();
        assert!(matches!(device.release_segment(base), Err(DeviceError::UnknownSegment(_))));
        assert_eq!(device.memory_info().unwrap().free, Bytes::mib(64));
    }

    #[test]
    fn work_is_done_when_its_stream_is_advanced() {
        let mut device = VirtualDevice::new(Bytes::mib(64));
        let side = StreamId::new(1);
        let first = device.record_event(side).unwrap();
        let other = device.record_event(StreamId::DEFAULT).unwrap();
        assert!(!device.is_complete(&first).unwrap());
        device.advance(side);
        let later = device.record_event(side).unwrap();
        assert!(device.is_complete(&first).unwrap());
        assert!(!device.is_complete(&later).unwrap());
        assert!(!device.is_complete(&other).unwrap());
        device.advance_all();
        assert!(device.is_complete(&other).unwrap());
    }
}
