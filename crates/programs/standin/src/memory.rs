//! The memory of the devices: ranges of the host's addresses, of which only written pages take memory of the
//! host.
#![expect(unsafe_code, reason = "addresses are reserved, and bytes are copied at them")]

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::addresses::{ALIGNMENT, Addresses};
use crate::known_ranges::KnownRanges;
use crate::report;
use crate::settings::settings;

/// Where the addresses of the first device start: far from what a system gives out by itself.
const FIRST_ADDRESS: u64 = 0x2000_0000_0000;
/// Addresses of all devices together: three quarters of what a process has.
const ALL_ADDRESSES: u64 = 0x4000_0000_0000;
/// The most bytes of a copy or a fill that is always kept: its bytes are known afterwards.
const MAX_KEPT: u64 = 1 << 20;
/// The most bytes of a larger copy that is kept: the numbers of the largest operator that is computed.
const MAX_LARGE: u64 = 1 << 26;
/// The known bytes of larger copies that a run keeps: about a third of a second of a processor.
const MAX_LARGE_TOGETHER: u64 = 1 << 30;

/// How many addresses one device has.
fn span() -> u64 {
    static SPAN: OnceLock<u64> = OnceLock::new();
    *SPAN.get_or_init(|| {
        let devices = u64::from(settings().devices.unsigned_abs()).max(16);
        ALL_ADDRESSES / devices / ALIGNMENT * ALIGNMENT
    })
}

/// The device whose addresses hold this one.
pub(crate) fn device_of(address: u64) -> Option<i32> {
    let device = i32::try_from(address.checked_sub(FIRST_ADDRESS)? / span()).ok()?;
    (device < settings().devices).then_some(device)
}

/// Why memory was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryError {
    Full,
    NoSuchAddress,
}

/// How sure bytes are, from the surest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    /// The bytes are those of a GPU.
    #[default]
    Exact,
    /// The bytes were computed by a processor: sums and functions may differ from a GPU's in the last digits.
    Rounded,
    /// The bytes follow from a value that was assumed.
    Assumed,
    Unknown,
}

/// A copy to the host: how well its bytes are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostRead {
    /// Bytes that are not known, for which the host got zeros.
    pub(crate) unknown: u64,
    /// How sure the least sure of the known bytes is.
    pub(crate) known: Certainty,
}

/// The memory of one device.
#[derive(Debug)]
pub(crate) struct Device {
    addresses: Addresses,
    /// Bytes that are taken of the device's memory.
    used: u64,
    /// The most bytes that were ever taken at a time.
    most_used: u64,
    /// The device's number.
    index: i32,
    /// Bytes that are known, however they became so.
    known: KnownRanges,
    /// The known bytes that a processor computed, which may differ from a GPU's in the last digits.
    rounded: KnownRanges,
    /// The known bytes that follow from an assumption.
    assumed: KnownRanges,
    /// Ranges whose bytes did not change since they were watched.
    watched: Vec<(u64, u64)>,
    /// Where the next variable of a kernel lies.
    next_symbol: u64,
}

impl Device {
    /// Reserves the device's addresses; `None` where the system does not give them.
    pub(crate) fn new(index: i32) -> Option<Self> {
        let base = FIRST_ADDRESS.checked_add(span().checked_mul(u64::from(index.unsigned_abs()))?)?;
        if !map(base, span()) {
            return None;
        }
        let mut addresses = Addresses::new(base, span(), settings().addresses);
        // Variables of kernels.
        let symbols = addresses.reserve(ALIGNMENT)?;
        let (known, rounded, assumed) = Default::default();
        let watched = Vec::new();
        let (used, most_used, next_symbol) = (0, 0, symbols);
        Some(Self { addresses, used, most_used, index, known, rounded, assumed, watched, next_symbol })
    }

    /// The device's addresses, of which the driver takes some for itself.
    pub(crate) fn addresses(&mut self) -> &mut Addresses {
        &mut self.addresses
    }

    /// Counts bytes that are taken. A process that the program started reports each new peak, since it may
    /// end at any moment.
    fn count(&mut self, size: u64) {
        self.used = self.used.saturating_add(size);
        if self.used > self.most_used {
            self.most_used = self.used;
            report::report_use(self.index, self.used);
        }
    }

    /// Bytes of the device's memory that are not taken.
    pub(crate) fn free_bytes(&self) -> u64 {
        let non_pytorch = if settings().counts_non_pytorch { self.addresses.non_pytorch.bytes() } else { 0 };
        settings().memory().saturating_sub(self.used).saturating_sub(non_pytorch)
    }

    /// Allocates memory: bytes of the device, and addresses for these bytes.
    pub(crate) fn allocate(&mut self, size: u64) -> Result<u64, MemoryError> {
        if size > self.free_bytes() {
            return Err(MemoryError::Full);
        }
        let base = self.addresses.allocate(size).ok_or(MemoryError::Full)?;
        self.count(size);
        Ok(base)
    }

    /// Frees memory that [`Device::allocate`] allocated: its bytes and its addresses.
    pub(crate) fn free(&mut self, base: u64) -> Result<(), MemoryError> {
        let size = self.release(base)?;
        self.used = self.used.saturating_sub(size);
        Ok(())
    }

    /// Reserves addresses without memory, for expandable segments.
    pub(crate) fn reserve(&mut self, size: u64) -> Result<u64, MemoryError> {
        self.addresses.reserve(size).ok_or(MemoryError::Full)
    }

    /// Releases addresses and returns how many they were.
    pub(crate) fn release(&mut self, base: u64) -> Result<u64, MemoryError> {
        let size = self.addresses.release(base).ok_or(MemoryError::NoSuchAddress)?;
        self.discard(base, size);
        Ok(size)
    }

    /// Counts memory that is mapped into reserved addresses.
    pub(crate) fn map(&mut self, size: u64) -> Result<(), MemoryError> {
        if size > self.free_bytes() {
            return Err(MemoryError::Full);
        }
        self.count(size);
        Ok(())
    }

    /// Counts memory that is unmapped again.
    pub(crate) fn unmap(&mut self, size: u64) {
        self.used = self.used.saturating_sub(size);
    }

    /// Discards bytes: they are unknown from now on, and the host's pages under them are given back.
    pub(crate) fn discard(&mut self, base: u64, size: u64) {
        self.mark(base, base.saturating_add(size), Certainty::Unknown);
        let Some(size) = size.checked_next_multiple_of(4096).and_then(|size| usize::try_from(size).ok())
        else {
            return;
        };
        // SAFETY: the range was reserved by this library for this device, and has nobody else's data. A
        // failure keeps the pages.
        let _ = unsafe { libc::madvise(base as *mut c_void, size, libc::MADV_DONTNEED) };
    }

    /// Sets how sure these bytes are from now on.
    fn mark(&mut self, start: u64, end: u64, certainty: Certainty) {
        self.watched.retain(|(first, last)| end <= *first || *last <= start);
        let sets = [
            (&mut self.known, Certainty::Exact),
            (&mut self.rounded, Certainty::Rounded),
            (&mut self.assumed, Certainty::Assumed),
        ];
        for (set, from) in sets {
            // Assumed bytes are in `known` and in `assumed`, rounded ones in `known` and in `rounded`.
            let belongs = certainty != Certainty::Unknown && (from == Certainty::Exact || from == certainty);
            if belongs { set.add(start, end) } else { set.remove(start, end) }
        }
    }

    /// How sure the least sure of these bytes is.
    fn certainty(&self, start: u64, end: u64) -> Certainty {
        if !self.known.covers(start, end) {
            Certainty::Unknown
        } else if self.assumed.overlaps(start, end) {
            Certainty::Assumed
        } else if self.rounded.overlaps(start, end) {
            Certainty::Rounded
        } else {
            Certainty::Exact
        }
    }

    /// The known parts of these bytes, each with the sureness of its least sure byte.
    fn parts(&self, start: u64, end: u64) -> Vec<(u64, u64, Certainty)> {
        let parts = self.known.parts(start, end).into_iter();
        parts.map(|(start, end)| (start, end, self.certainty(start, end))).collect()
    }

    /// The taken range that holds the address.
    pub(crate) fn holding(&self, address: u64) -> Option<(u64, u64)> {
        self.addresses.holding(address)
    }

    /// Addresses for a variable of a kernel.
    pub(crate) fn symbol(&mut self, size: u64) -> u64 {
        let base = self.next_symbol;
        self.next_symbol = base.saturating_add(size.next_multiple_of(256).max(256));
        base
    }
}

/// Reserves addresses that may be written: pages are taken where bytes are written.
fn map(base: u64, length: u64) -> bool {
    let Ok(length) = usize::try_from(length) else { return false };
    // SAFETY: with `MAP_FIXED_NOREPLACE` the call fails where anything is at the addresses.
    let found = unsafe {
        libc::mmap(
            base as *mut c_void,
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if found as u64 != base {
        return false;
    }
    // SAFETY: the range was just reserved. A core file would hold all of it, and one byte would take 2 MiB in
    // large pages.
    unsafe {
        let _ = libc::madvise(found, length, libc::MADV_DONTDUMP);
        let _ = libc::madvise(found, length, libc::MADV_NOHUGEPAGE);
    }
    true
}

/// Copies bytes; the ranges may overlap.
fn move_bytes(to: u64, from: u64, count: u64) {
    let Ok(count) = usize::try_from(count) else { return };
    // SAFETY: a range of a device was checked to be taken, and the caller of CUDA promises a range of the
    // host.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, count) };
}

/// Sets bytes of the host or of a device to a value.
fn fill_bytes(to: u64, value: u8, count: u64) {
    let Ok(count) = usize::try_from(count) else { return };
    // SAFETY: as for `move_bytes`.
    unsafe { std::ptr::write_bytes(to as *mut u8, value, count) };
}

/// The devices that are in use, by number.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    devices: Vec<Option<Device>>,
    /// The known bytes of larger copies that were kept.
    large: u64,
}

impl Devices {
    /// No device yet: each is reserved at its first use.
    pub(crate) const fn none() -> Self {
        Self { devices: Vec::new(), large: 0 }
    }

    /// The device of this number, reserved at first use.
    pub(crate) fn get(&mut self, index: i32) -> Option<&mut Device> {
        let place = usize::try_from(index).ok().filter(|_| index < settings().devices)?;
        if self.devices.len() <= place {
            self.devices.resize_with(place + 1, || None);
        }
        let slot = self.devices.get_mut(place)?;
        if slot.is_none() {
            *slot = Device::new(index);
            if slot.is_none() {
                eprintln!(
                    "blockyard: the system does not reserve {} bytes of addresses for device {index}",
                    span()
                );
            }
        }
        slot.as_mut()
    }

    /// The device that the range of addresses is on; `None` for memory of the host, an error where a device
    /// has not given out the whole range.
    fn checked(&mut self, address: u64, count: u64) -> Result<Option<i32>, MemoryError> {
        let Some(index) = device_of(address) else { return Ok(None) };
        let device = self.get(index).ok_or(MemoryError::NoSuchAddress)?;
        let (base, size) = device.holding(address).ok_or(MemoryError::NoSuchAddress)?;
        // The allocator rounds what it takes, so that a copy never goes beyond a range.
        if address.saturating_add(count) > base.saturating_add(size) {
            return Err(MemoryError::NoSuchAddress);
        }
        Ok(Some(index))
    }

    /// Whether a copy is kept of which so many bytes are known. The bytes of a larger one are counted then.
    fn keeps(&mut self, count: u64, known: u64, keeps_large: bool) -> bool {
        if count <= MAX_KEPT {
            return true;
        }
        let together = self.large.saturating_add(known);
        let is_kept = keeps_large && count <= MAX_LARGE && together <= MAX_LARGE_TOGETHER;
        if is_kept {
            self.large = together;
        }
        is_kept
    }

    /// Copies bytes as far as they are known; returns how well the bytes that the host read are known.
    /// `keeps_large`: whether the bytes of a copy of more than [`MAX_KEPT`] may be wanted.
    pub(crate) fn copy(
        &mut self,
        to: u64,
        from: u64,
        count: u64,
        keeps_large: bool,
    ) -> Result<HostRead, MemoryError> {
        if count == 0 {
            return Ok(HostRead::default());
        }
        let (target, source) = (self.checked(to, count)?, self.checked(from, count)?);
        let parts = match source {
            None => vec![(from, from.saturating_add(count), Certainty::Exact)],
            Some(source) => {
                let device = self.get(source).ok_or(MemoryError::NoSuchAddress)?;
                device.parts(from, from.saturating_add(count))
            }
        };
        let known: u64 = parts.iter().map(|(start, end, _)| end - start).sum();
        match target {
            None => {
                if known < count {
                    fill_bytes(to, 0, count);
                }
                for (start, end, _) in &parts {
                    move_bytes(to.saturating_add(start - from), *start, end - start);
                }
                let certainty = parts.iter().map(|(_, _, certainty)| *certainty).max().unwrap_or_default();
                Ok(HostRead { unknown: count.saturating_sub(known), known: certainty })
            }
            Some(target) => {
                let is_kept = self.keeps(count, known, keeps_large);
                let device = self.get(target).ok_or(MemoryError::NoSuchAddress)?;
                device.mark(to, to.saturating_add(count), Certainty::Unknown);
                if is_kept {
                    for (start, end, certainty) in parts {
                        let place = to.saturating_add(start - from);
                        move_bytes(place, start, end - start);
                        device.mark(place, place.saturating_add(end - start), certainty);
                    }
                }
                Ok(HostRead::default())
            }
        }
    }

    /// Sets bytes of a device or of the host to a value. Up to [`MAX_KEPT`] bytes of a device are known then;
    /// more are unknown.
    pub(crate) fn fill(&mut self, to: u64, value: u8, count: u64) -> Result<(), MemoryError> {
        match self.checked(to, count)? {
            None => fill_bytes(to, value, count),
            Some(target) => {
                let device = self.get(target).ok_or(MemoryError::NoSuchAddress)?;
                device.mark(to, to.saturating_add(count), Certainty::Unknown);
                if count <= MAX_KEPT {
                    fill_bytes(to, value, count);
                    device.mark(to, to.saturating_add(count), Certainty::Exact);
                }
            }
        }
        Ok(())
    }

    /// The end of the taken range that holds the address, or the address.
    pub(crate) fn end_of(&self, address: u64) -> u64 {
        let held = self.at(address).and_then(|device| device.holding(address));
        held.map_or(address, |(base, size)| base.saturating_add(size))
    }

    /// The bytes from here, and how sure they are; `None` where one of them is unknown.
    pub(crate) fn known_bytes(&mut self, from: u64, count: u64) -> Option<(Vec<u8>, Certainty)> {
        self.checked(from, count).ok()??;
        let certainty = Some(self.certainty(from, from.saturating_add(count)))
            .filter(|certainty| *certainty != Certainty::Unknown)?;
        let mut bytes = vec![0; usize::try_from(count).ok()?];
        move_bytes(bytes.as_mut_ptr() as u64, from, count);
        Some((bytes, certainty))
    }

    /// Writes bytes to the device, and sets how sure they are.
    pub(crate) fn put(&mut self, to: u64, bytes: &[u8], certainty: Certainty) {
        let count = bytes.len() as u64;
        if let Ok(Some(_device)) = self.checked(to, count) {
            move_bytes(to, bytes.as_ptr() as u64, count);
            self.mark(to, to.saturating_add(count), certainty);
        }
    }

    /// Makes all bytes of all devices unknown, after a kernel that may have written anywhere.
    pub(crate) fn forget(&mut self) {
        for device in self.devices.iter_mut().flatten() {
            device.watched.clear();
            device.known.clear();
            device.rounded.clear();
            device.assumed.clear();
        }
    }

    /// The device of an address that is in use.
    fn at(&self, address: u64) -> Option<&Device> {
        self.devices.get(usize::try_from(device_of(address)?).ok()?)?.as_ref()
    }

    /// Sets how sure these bytes are from now on.
    pub(crate) fn mark(&mut self, start: u64, end: u64, certainty: Certainty) {
        let device =
            device_of(start).and_then(|index| self.devices.get_mut(usize::try_from(index).ok()?)?.as_mut());
        if let Some(device) = device {
            device.mark(start, end, certainty);
        }
    }

    /// Watches these bytes: [`Devices::is_unchanged`] says from now on whether something may have written them.
    pub(crate) fn watch(&mut self, start: u64, end: u64) {
        let device = device_of(start).and_then(|index| self.get(index));
        if let Some(device) = device.filter(|device| !device.watched.contains(&(start, end))) {
            device.watched.push((start, end));
        }
    }

    /// Whether nothing has written these bytes since they were watched.
    pub(crate) fn is_unchanged(&self, start: u64, end: u64) -> bool {
        self.at(start).is_some_and(|device| device.watched.contains(&(start, end)))
    }

    /// How sure the least sure of these bytes is.
    pub(crate) fn certainty(&self, start: u64, end: u64) -> Certainty {
        if start == end {
            return Certainty::Exact;
        }
        self.at(start).map_or(Certainty::Unknown, |device| device.certainty(start, end))
    }

    /// Whether any of these bytes is known.
    pub(crate) fn is_partly_known(&self, start: u64, end: u64) -> bool {
        self.at(start).is_some_and(|device| device.known.overlaps(start, end))
    }
}
