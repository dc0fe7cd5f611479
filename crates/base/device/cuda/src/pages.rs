//! Reserved addresses and the pages that give them memory.

use std::collections::BTreeMap;

use blockyard_device::DeviceError;
use blockyard_record::{Bytes, DeviceAddr};

use crate::driver::{self, ContextGuard, Device, Page};
use crate::error::DriverError;

#[derive(Debug, Default)]
pub(crate) struct ReservedRanges {
    ranges: BTreeMap<DeviceAddr, ReservedRange>,
}

#[derive(Debug)]
struct ReservedRange {
    size: Bytes,
    /// Pages by their address; none overlap.
    pages: BTreeMap<DeviceAddr, (Bytes, Page)>,
}

impl ReservedRanges {
    pub(crate) fn reserve(&mut self, current: &ContextGuard, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let base = driver::reserve(current, size).map_err(|failure| failure.of_request(size))?;
        self.ranges.insert(base, ReservedRange { size, pages: BTreeMap::new() });
        Ok(base)
    }

    pub(crate) fn release(&mut self, current: &ContextGuard, base: DeviceAddr) -> Result<(), DeviceError> {
        match self.ranges.get(&base) {
            Some(range) if range.pages.is_empty() => {
                driver::free_range(current, base, range.size)?;
                self.ranges.remove(&base);
                Ok(())
            }
            _ => Err(DeviceError::UnknownSegment(base)),
        }
    }

    /// Maps all pages or none.
    pub(crate) fn map(
        &mut self,
        current: &ContextGuard,
        device: Device,
        addr: DeviceAddr,
        size: Bytes,
        page: Bytes,
    ) -> Result<(), DeviceError> {
        let range = self.range_of(addr, size)?;
        let end = addr.offset(size);
        let is_taken = range
            .pages
            .range(..end)
            .next_back()
            .is_some_and(|(start, (length, _))| start.offset(*length) > addr);
        if is_taken {
            return Err(DeviceError::UnknownSegment(addr));
        }
        let mut mapped = Vec::new();
        let made = map_pages(current, device, addr..end, page, &mut mapped)
            .and_then(|()| driver::allow_access(current, device, addr, size));
        if let Err(failure) = made {
            for (at, length, page) in mapped {
                // The first error is the one that is reported; the other calls are still tried.
                let _ = driver::unmap(current, at, length);
                let _ = driver::release_page(current, page);
            }
            return Err(failure.of_request(size));
        }
        range.pages.extend(mapped.into_iter().map(|(at, length, page)| (at, (length, page))));
        Ok(())
    }

    /// Unmaps whole pages, when no work uses them any more.
    pub(crate) fn unmap(
        &mut self,
        current: &ContextGuard,
        addr: DeviceAddr,
        size: Bytes,
    ) -> Result<(), DeviceError> {
        let range = self.range_of(addr, size)?;
        let end = addr.offset(size);
        let mut at = addr;
        for (start, (length, _)) in range.pages.range(addr..end) {
            if *start != at {
                break;
            }
            at = at.offset(*length);
        }
        if at != end {
            return Err(DeviceError::UnknownSegment(addr));
        }
        // Unlike the release of a segment this does not wait for work that uses the memory. PyTorch waits for
        // the stream that the memory was first used on; but a graph's memory is used on whichever stream the
        // graph is launched, so that only the whole context is enough.
        driver::synchronize(current)?;
        while let Some((start, length)) =
            range.pages.range(addr..end).next().map(|(start, (length, _))| (*start, *length))
        {
            driver::unmap(current, start, length)?;
            if let Some((_, page)) = range.pages.remove(&start) {
                driver::release_page(current, page)?;
            }
        }
        Ok(())
    }

    /// Releases all pages and ranges. No work may use them any more.
    pub(crate) fn clear(&mut self, current: &ContextGuard) {
        for (base, range) in std::mem::take(&mut self.ranges) {
            for (addr, (length, page)) in range.pages {
                let _ = driver::unmap(current, addr, length);
                let _ = driver::release_page(current, page);
            }
            let _ = driver::free_range(current, base, range.size);
        }
    }

    /// Whether all of the `size` bytes from `addr` on are in one range, with memory or without.
    pub(crate) fn hold(&self, addr: DeviceAddr, size: Bytes) -> bool {
        self.ranges
            .range(..=addr)
            .next_back()
            .is_some_and(|(base, range)| is_within(*base, range.size, addr, size))
    }

    fn range_of(&mut self, addr: DeviceAddr, size: Bytes) -> Result<&mut ReservedRange, DeviceError> {
        let before = self.ranges.range_mut(..=addr).next_back();
        let range = before.filter(|(base, range)| is_within(**base, range.size, addr, size));
        range.map(|(_, range)| range).ok_or(DeviceError::UnknownSegment(addr))
    }
}

/// Whether `size` bytes from `addr` on are within `length` bytes from `base` on; `base` is at most `addr`.
pub(crate) fn is_within(base: DeviceAddr, length: Bytes, addr: DeviceAddr, size: Bytes) -> bool {
    addr.offset_from(base).checked_add(size).is_some_and(|end| end <= length)
}

fn map_pages(
    current: &ContextGuard,
    device: Device,
    addrs: std::ops::Range<DeviceAddr>,
    page: Bytes,
    mapped: &mut Vec<(DeviceAddr, Bytes, Page)>,
) -> Result<(), DriverError> {
    let mut at = addrs.start;
    while at < addrs.end {
        let length = page.min(addrs.end.offset_from(at));
        let memory = driver::create_page(current, device, length)?;
        if let Err(failure) = driver::map(current, at, length, &memory) {
            let _ = driver::release_page(current, memory);
            return Err(failure);
        }
        mapped.push((at, length, memory));
        at = at.offset(length);
    }
    Ok(())
}
