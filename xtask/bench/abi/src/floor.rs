//! The floor of the comparison: an allocator that neither follows PyTorch nor keeps statistics. It has the
//! same lock and the same C ABI.

use blockyard_allocator::lock::BiasedMutex;
use offset_allocator::{Allocation, Allocator};

/// The unit of its sizes, 512 bytes as our smallest block: the allocator counts to 2^32 units.
const UNIT: u64 = 512;
/// The most blocks and gaps at once.
const NODES: u32 = 1 << 18;

/// The floor allocator. The caller gets numbers instead of addresses, so that a free needs no search.
#[derive(Debug)]
pub struct Floor {
    inner: BiasedMutex<Inner>,
}

struct Inner {
    allocator: Allocator<u32>,
    /// The allocations; the caller's number is the index plus one.
    live: Vec<Option<Allocation<u32>>>,
    vacant: Vec<usize>,
}

impl Inner {
    fn allocate(&mut self, size: usize) -> Option<usize> {
        let units = u32::try_from((size as u64).div_ceil(UNIT)).ok()?;
        let allocation = self.allocator.allocate(units)?;
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.live.push(None);
            self.live.len() - 1
        });
        self.live[place] = Some(allocation);
        Some(place + 1)
    }

    fn free(&mut self, number: usize) {
        let place = number.wrapping_sub(1);
        if let Some(allocation) = self.live.get_mut(place).and_then(Option::take) {
            self.allocator.free(allocation);
            self.vacant.push(place);
        }
    }
}

/// Makes a floor allocator for a device of `capacity` bytes, less than 2 TiB.
#[unsafe(no_mangle)]
pub extern "C" fn floor_create(capacity: u64) -> *mut Floor {
    let units = u32::try_from(capacity / UNIT).unwrap_or(u32::MAX);
    let allocator = Allocator::with_max_allocs(units, NODES);
    let inner = BiasedMutex::new(Inner { allocator, live: Vec::new(), vacant: Vec::new() });
    Box::into_raw(Box::new(Floor { inner }))
}

/// Allocates `size` bytes and returns their number; 0 if no memory is left. The stream has no effect.
///
/// # Safety
///
/// `floor` was returned by [`floor_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn floor_allocate(floor: &Floor, size: usize, _stream: usize) -> usize {
    let allocate = |inner: &mut Inner| inner.allocate(size);
    let number = floor.inner.with_as_owner(allocate).unwrap_or_else(|| floor.inner.with(allocate));
    number.unwrap_or(0)
}

/// Frees an allocation of [`floor_allocate`].
///
/// # Safety
///
/// `floor` was returned by [`floor_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn floor_free(floor: &Floor, number: usize) {
    let free = |inner: &mut Inner| inner.free(number);
    if floor.inner.with_as_owner(free).is_none() {
        floor.inner.with(free);
    }
}
