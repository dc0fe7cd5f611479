//! The addresses of one device: ranges that are taken and given back, in the order in which NVIDIA's driver
//! gives them.
//!
//! Best fit takes the lower of two free blocks of one size, so that what PyTorch reserves depends on where
//! segments lie. The driver's rule, found in recorded calls of `cudaMalloc` and `cudaFree` on an H200
//! (`docs/dry-run-driver.md`, "Addresses"):
//!
//! - A request goes into the newest chunk that has room, there into the smallest hole that is long enough,
//!   and of two such holes into the lower.
//! - Where no chunk has room, a chunk is made: the request rounded up to 32 MiB, at the upper end of the
//!   highest gap between chunks that is 32 MiB longer.
//! - A chunk whose last range is given back becomes a gap again at once.
//! - Addresses without memory lie in separate chunks, which rise from the lowest addresses.
//!
//! `blockyard_device::VirtualDevice` never gives an address twice. Here host code reads and writes at these
//! addresses, of which a process has 47 bits, so that addresses must be used again.

use std::collections::BTreeMap;
use std::ops::Range;

use blockyard_gpus::DriverAddressOrder;
use rangemap::RangeSet;

use crate::non_pytorch::NonPytorchAddresses;

/// A request of more than [`SMALL`] bytes starts at a multiple of this many bytes.
pub(crate) const ALIGNMENT: u64 = 2 << 20;
/// A request of up to this many bytes starts at any multiple of [`PAGE`].
const SMALL: u64 = 1 << 20;
/// Lengths are rounded up to a multiple of this many bytes, a page of the host, since pages are given back by
/// range. The driver rounds to 512 bytes.
const PAGE: u64 = 4096;
/// Chunks of the driver are multiples of this, in length and place.
const CHUNK: u64 = 32 << 20;

/// What a range of addresses is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Addresses for memory that is allocated together with them.
    Memory,
    /// Addresses without memory, into which memory is mapped later.
    Reserved,
}

/// Addresses that ranges of one use lie in.
#[derive(Debug)]
struct Chunk {
    addresses: Range<u64>,
    used_for: Use,
    /// The free addresses of the chunk.
    holes: RangeSet<u64>,
}

impl Chunk {
    /// Where in the chunk a request would start: in the smallest hole that is long enough, of several such
    /// holes in the lowest. `None` where no hole is long enough.
    fn place(&self, length: u64, alignment: u64) -> Option<u64> {
        let fitting = self.holes.iter().filter_map(|hole| {
            let base = hole.start.checked_next_multiple_of(alignment)?;
            (base.checked_add(length)? <= hole.end).then_some((length_of(hole), base))
        });
        fitting.min().map(|(_, base)| base)
    }

    fn is_empty(&self) -> bool {
        self.holes.iter().next() == Some(&self.addresses)
    }
}

fn length_of(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// The `length` addresses from `base` on; `None` for no addresses, since a set of ranges takes no empty
/// range.
fn range(base: u64, length: u64) -> Option<Range<u64>> {
    Some(base..base.checked_add(length)?).filter(|range| !range.is_empty())
}

/// A range that is taken.
#[derive(Clone, Copy, Debug)]
struct TakenRange {
    /// Bytes that were asked for; `None` for a range that no program may touch.
    asked: Option<u64>,
    length: u64,
    /// The number of its chunk.
    chunk: u64,
}

/// Ranges of addresses that are taken, and those that are free.
#[derive(Debug)]
pub(crate) struct Addresses {
    order: DriverAddressOrder,
    /// The addresses that are in no chunk.
    gaps: RangeSet<u64>,
    /// Chunks by number: a newer chunk has a higher one.
    chunks: BTreeMap<u64, Chunk>,
    /// The taken ranges by their first address.
    taken: BTreeMap<u64, TakenRange>,
    /// How many chunks were made so far, which is the number of the next.
    made: u64,
    pub(crate) non_pytorch: NonPytorchAddresses,
}

impl Addresses {
    /// Addresses of a device, from `first` on.
    pub(crate) fn new(first: u64, length: u64, order: DriverAddressOrder) -> Self {
        let unit = if order == DriverAddressOrder::Driver { CHUNK } else { ALIGNMENT };
        let end = first.saturating_add(length) / unit * unit;
        let start = first.checked_next_multiple_of(unit).map_or(end, |start| start.min(end));
        let mut new = Self {
            order,
            gaps: Some(start..end).filter(|all| !all.is_empty()).into_iter().collect(),
            chunks: BTreeMap::new(),
            taken: BTreeMap::new(),
            made: 0,
            non_pytorch: NonPytorchAddresses::default(),
        };
        if order == DriverAddressOrder::Driver {
            new.start();
        }
        new
    }

    /// Whether the addresses are given as NVIDIA's driver gives them.
    pub(crate) fn is_driver(&self) -> bool {
        self.order == DriverAddressOrder::Driver
    }

    /// Addresses for memory; `None` where no range is long enough.
    pub(crate) fn allocate(&mut self, size: u64) -> Option<u64> {
        self.take_for(size, Some(size), Use::Memory)
    }

    /// Addresses without memory; `None` where no range is long enough.
    pub(crate) fn reserve(&mut self, size: u64) -> Option<u64> {
        self.take_for(size, Some(size), Use::Reserved)
    }

    /// Addresses for what the driver or a library of CUDA keeps for itself.
    pub(crate) fn allocate_for_driver(&mut self, size: u64) -> Option<u64> {
        self.take_for(size, None, Use::Memory)
    }

    fn take_for(&mut self, size: u64, asked: Option<u64>, used_for: Use) -> Option<u64> {
        let size = size.max(1);
        let alignment = if self.is_driver() && size <= SMALL { PAGE } else { ALIGNMENT };
        let length = if self.is_driver() { size.checked_next_multiple_of(PAGE)? } else { rounded(size)? };
        let mut chunks = self.chunks.iter().rev().filter(|(_, chunk)| chunk.used_for == used_for);
        let found = chunks.find_map(|(number, chunk)| Some((*number, chunk.place(length, alignment)?)));
        let (number, base) = match found {
            Some(found) => found,
            None => self.add_chunk(length, used_for)?,
        };
        self.chunks.get_mut(&number)?.holes.remove(range(base, length)?);
        self.taken.insert(base, TakenRange { asked, length, chunk: number });
        Some(base)
    }

    /// A new chunk for a request: its number and its first address.
    fn add_chunk(&mut self, length: u64, used_for: Use) -> Option<(u64, u64)> {
        let unit = if self.is_driver() { CHUNK } else { length };
        let length = length.checked_next_multiple_of(unit)?;
        let is_highest = match self.order {
            DriverAddressOrder::Driver => used_for == Use::Memory,
            DriverAddressOrder::Rising => false,
            DriverAddressOrder::Falling => true,
        };
        // The driver asks the host for addresses, for enough to choose a multiple of 32 MiB among them.
        let needed = if self.is_driver() && is_highest { length.checked_add(CHUNK)? } else { length };
        let mut gaps = self.gaps.iter();
        let fits = |gap: &&Range<u64>| length_of(gap) >= needed;
        let gap = if is_highest { gaps.rfind(fits) } else { gaps.find(fits) }?;
        let start = if is_highest { gap.end.checked_sub(length)? } else { gap.start };
        self.gaps.remove(range(start, length)?);
        self.insert_chunk(start, length, used_for);
        Some((self.made, start))
    }

    fn insert_chunk(&mut self, start: u64, length: u64, used_for: Use) {
        self.made = self.made.saturating_add(1);
        let addresses = start..start.saturating_add(length);
        let holes = range(start, length).into_iter().collect();
        self.chunks.insert(self.made, Chunk { addresses, used_for, holes });
    }

    /// A separate chunk for what a process has from its start, at a given place.
    pub(crate) fn start_chunk(&mut self, start: u64, length: u64, own: u64) {
        self.insert_chunk(start, length, Use::Memory);
        if let Some(chunk) = self.chunks.get_mut(&self.made) {
            if let Some(own) = range(start, own) {
                chunk.holes.remove(own);
            }
            self.taken.insert(start, TakenRange { asked: None, length: own, chunk: self.made });
        }
    }

    /// Takes the highest `length` addresses away and returns where they start; `None` where the device has no
    /// more than these.
    pub(crate) fn cut(&mut self, length: u64) -> Option<u64> {
        let last = self.gaps.iter().next_back()?.clone();
        let start = last.end.checked_sub(length).filter(|start| *start > last.start)?;
        self.gaps.remove(range(start, length)?);
        Some(start)
    }

    /// Gives a range back and says how many bytes were asked for; `None` where no range of a program starts
    /// at the address.
    pub(crate) fn release(&mut self, base: u64) -> Option<u64> {
        let size = self.taken.get(&base)?.asked?;
        self.give_range(base);
        Some(size)
    }

    /// Gives a range back that the driver kept for itself.
    pub(crate) fn release_for_driver(&mut self, base: u64) {
        if self.taken.get(&base).is_some_and(|taken| taken.asked.is_none()) {
            self.give_range(base);
        }
    }

    fn give_range(&mut self, base: u64) {
        let Some(taken) = self.taken.remove(&base) else { return };
        let Some(chunk) = self.chunks.get_mut(&taken.chunk) else { return };
        chunk.holes.extend(range(base, taken.length));
        if chunk.is_empty()
            && let Some(chunk) = self.chunks.remove(&taken.chunk)
        {
            self.gaps.extend(Some(chunk.addresses));
        }
    }

    /// The taken range that holds the address: where the range starts, and its length in bytes.
    pub(crate) fn holding(&self, address: u64) -> Option<(u64, u64)> {
        let (base, taken) = self.taken.range(..=address).next_back()?;
        let size = taken.asked?;
        (address - base < size.max(1)).then_some((*base, size))
    }
}

fn rounded(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT, Addresses, CHUNK, DriverAddressOrder};
    use crate::non_pytorch::NonPytorchUse;

    const MIB: u64 = 1 << 20;
    const FIRST: u64 = 1 << 40;
    const LENGTH: u64 = 1 << 38;
    /// The chunk of the context.
    const CONTEXT: u64 = FIRST + LENGTH - CHUNK;

    fn driver() -> Addresses {
        Addresses::new(FIRST, LENGTH, DriverAddressOrder::Driver)
    }

    /// Where ranges of this many MiB lie, in MiB from the chunk of the context.
    fn places<const COUNT: usize>(addresses: &mut Addresses, sizes: [u64; COUNT]) -> [i64; COUNT] {
        sizes.map(|size| relative(addresses.allocate(size * MIB).expect("room")))
    }

    fn relative(base: u64) -> i64 {
        base.cast_signed().wrapping_sub(CONTEXT.cast_signed()).div_euclid(MIB.cast_signed())
    }

    /// Replays recorded calls, and checks each address.
    fn check(recorded: &str) -> usize {
        let mut addresses = driver();
        let calls = recorded.lines().skip(1).flat_map(str::split_whitespace);
        let mut requests = 0;
        for (number, call) in calls.enumerate() {
            let (size, place) = call.split_once('@').expect("a call");
            let place: i64 = place.parse().expect("an address");
            if size == "-" {
                let base = CONTEXT.checked_add_signed(place * MIB.cast_signed()).expect("an address");
                assert!(addresses.release(base).is_some(), "call {number}: {call}");
            } else {
                let size: u64 = size.parse().expect("a size");
                assert_eq!(places(&mut addresses, [size]), [place], "call {number}: {call}");
                requests += 1;
            }
        }
        requests
    }

    #[test]
    fn recorded_calls_of_an_h200_get_the_recorded_addresses() {
        assert_eq!(check(include_str!("../tests/addresses/h200_18.txt")), 359);
        assert_eq!(check(include_str!("../tests/addresses/h200_22.txt")), 366);
    }

    #[test]
    fn small_requests_share_pages_of_2_mib() {
        let mut addresses = driver();
        // As recorded on an H200.
        let sizes = [
            512,
            512,
            1000,
            65_536,
            MIB,
            MIB,
            MIB + 1,
            3 * MIB,
            512,
            5 * MIB,
            100,
            2 * MIB,
            700_000,
            400_000,
        ]
        .map(|size| (size, relative(addresses.allocate(size).expect("room"))));
        assert_eq!(
            sizes.map(|(_, place)| place),
            [-66, -66, -66, -66, -66, 8, 10, 12, -65, 16, -65, 22, -65, 11]
        );
        assert_eq!(places(&mut addresses, [33]), [-544]);
        let base = addresses.allocate(65_536).expect("room");
        assert_eq!(addresses.holding(base + 65_535), Some((base, 65_536)));
    }

    #[test]
    fn reservations_rise_apart_from_memory() {
        let mut addresses = driver();
        let mut reserve = |size| addresses.reserve(size * MIB).expect("room") - FIRST;
        assert_eq!([reserve(64), reserve(1 << 14), reserve(4)], [0, 64 * MIB, (64 + (1 << 14)) * MIB]);
        assert_eq!(addresses.release(FIRST), Some(64 * MIB));
        let mut reserve = |size| addresses.reserve(size * MIB).expect("room") - FIRST;
        // The third chunk has 28 MiB left; the first is free, and two chunks of 32 MiB fit there.
        assert_eq!([reserve(30), reserve(31), reserve(2)], [0, 32 * MIB, 30 * MIB]);
    }

    #[test]
    fn segments_lie_beside_what_the_driver_takes() {
        // `x = torch.zeros(64, 64, device="cuda"); x + 1; x @ x` took these on an H200.
        let mut addresses = driver();
        assert_eq!(places(&mut addresses, [2]), [-66]);
        addresses.note_use(NonPytorchUse::Kernel { needs_local_memory: true, has_assertion: false });
        addresses.note_use(NonPytorchUse::Blas);
        assert_eq!(places(&mut addresses, [32, 2, 2, 2, 34]), [-416, -484, -482, -384, -382]);
        // An embedding of `torch.randint`, a linear layer, and its backward pass on another thread.
        let mut addresses = driver();
        assert_eq!(places(&mut addresses, [2]), [-66]);
        addresses.note_use(NonPytorchUse::Kernel { needs_local_memory: false, has_assertion: false });
        addresses.note_use(NonPytorchUse::Kernel { needs_local_memory: true, has_assertion: true });
        addresses.note_use(NonPytorchUse::Blas);
        assert_eq!(places(&mut addresses, [32]), [-406]);
        addresses.note_use(NonPytorchUse::Blas);
        assert_eq!(places(&mut addresses, [32, 2, 2, 2]), [-310, -484, -482, -278]);
    }

    #[test]
    fn the_drivers_own_ranges_are_not_the_programs() {
        let mut addresses = driver();
        assert_eq!(addresses.holding(CONTEXT), None);
        assert_eq!(addresses.release(CONTEXT), None);
        let own = addresses.allocate_for_driver(CHUNK).expect("room");
        assert_eq!((addresses.release(own), addresses.holding(own)), (None, None));
        addresses.release_for_driver(own);
        assert_eq!(addresses.allocate(CHUNK), Some(own));
        addresses.release_for_driver(own);
        assert_eq!(addresses.holding(own), Some((own, CHUNK)));
    }

    #[test]
    fn a_device_with_few_addresses_has_no_context() {
        for length in [0, 1, CHUNK, 512 * MIB] {
            let mut addresses = Addresses::new(FIRST, length, DriverAddressOrder::Driver);
            addresses.note_use(NonPytorchUse::Blas);
            assert_eq!(addresses.allocate(u64::MAX), None);
            assert_eq!(addresses.reserve(CHUNK).is_some(), length >= CHUNK);
        }
    }

    #[test]
    fn rising_addresses_are_used_again_and_free_ranges_merge() {
        let mut addresses = Addresses::new(ALIGNMENT, 8 * ALIGNMENT, DriverAddressOrder::Rising);
        let first = addresses.allocate(1).expect("room");
        let second = addresses.allocate(ALIGNMENT + 1).expect("room");
        let third = addresses.allocate(ALIGNMENT).expect("room");
        assert_eq!([first, second, third], [ALIGNMENT, 2 * ALIGNMENT, 4 * ALIGNMENT]);
        assert_eq!(addresses.holding(second + ALIGNMENT), Some((second, ALIGNMENT + 1)));
        assert_eq!(addresses.holding(second + ALIGNMENT + 1), None);
        assert_eq!(addresses.release(second), Some(ALIGNMENT + 1));
        assert_eq!(addresses.release(second), None);
        assert_eq!(addresses.release(first), Some(1));
        assert_eq!(addresses.allocate(3 * ALIGNMENT), Some(ALIGNMENT));
        assert_eq!(addresses.allocate(5 * ALIGNMENT), None);
        assert_eq!(addresses.release(third), Some(ALIGNMENT));
        assert_eq!(addresses.allocate(5 * ALIGNMENT), Some(4 * ALIGNMENT));
        assert_eq!(addresses.allocate(u64::MAX), None);
    }

    #[test]
    fn falling_addresses_start_at_the_end() {
        let mut addresses = Addresses::new(ALIGNMENT, 4 * ALIGNMENT, DriverAddressOrder::Falling);
        let first = addresses.allocate(1).expect("room");
        let second = addresses.allocate(2 * ALIGNMENT).expect("room");
        assert_eq!([first, second], [4 * ALIGNMENT, 2 * ALIGNMENT]);
        assert_eq!(addresses.release(first), Some(1));
        assert_eq!(addresses.allocate(1), Some(first));
        assert_eq!(addresses.allocate(2 * ALIGNMENT), None);
    }
}
