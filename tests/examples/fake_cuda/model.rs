//! The state of the driver: memory, streams with their work, handles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use blockyard_tests::{Extents, word_at};

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const INVALID_VALUE: u32 = 1;
pub(crate) const OUT_OF_MEMORY: u32 = 2;
pub(crate) const INVALID_CONTEXT: u32 = 201;
pub(crate) const INVALID_HANDLE: u32 = 400;
pub(crate) const NOT_READY: u32 = 600;
pub(crate) const ILLEGAL_ADDRESS: u32 = 700;

const MIB_2: u64 = 2 << 20;

pub(crate) type CudaResult<T = ()> = Result<T, u32>;

/// The one driver of the process. All devices share its memory, as far as this matters here.
#[derive(Debug, Default)]
pub(crate) struct Driver {
    pub(crate) devices: i32,
    pub(crate) total: u64,
    pub(crate) used: u64,
    pub(crate) retained: u32,
    next: u64,
    segments: BTreeMap<u64, u64>,
    ranges: BTreeMap<u64, u64>,
    pages: BTreeMap<u64, u64>,
    /// Page, and whether it may be reached; by address and with the size.
    mapped: BTreeMap<u64, (u64, u64)>,
    reachable: Extents<()>,
    data: Extents<Contents>,
    streams: BTreeMap<u64, VecDeque<StreamWork>>,
    events: BTreeMap<u64, (u64, u64)>,
    modules: BTreeSet<u64>,
    host: BTreeSet<u64>,
    /// The error that every call answers with from now on.
    pub(crate) sticky: Option<u32>,
}

/// The content of a range of addresses: a pattern that begins at `base`, or equal numbers of 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    Pattern { pattern: u32, base: u64 },
    Words(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum StreamWork {
    Fill { addr: u64, words: u64, pattern: u32 },
    Check { addr: u64, words: u64, pattern: u32, result: u64 },
    Gate { flag: u64, number: u32, longest: Duration, since: Option<Instant> },
    Words { addr: u64, words: u64, value: u32 },
    Event { event: u64, number: u64 },
}

impl Driver {
    pub(crate) fn new(devices: i32, total: u64) -> Self {
        Self {
            devices,
            total,
            next: 0x7e00_0000_0000,
            streams: BTreeMap::from([(0, VecDeque::new())]),
            ..Self::default()
        }
    }

    /// The kinds of resources that were made and not given back, each with its number; `None` if none is
    /// left.
    pub(crate) fn left(&self) -> Option<String> {
        let counts = [
            ("segments", self.segments.len()),
            ("ranges", self.ranges.len()),
            ("pages", self.pages.len()),
            ("mapped pages", self.mapped.len()),
            ("streams", self.streams.len() - 1),
            ("events", self.events.len()),
            ("modules", self.modules.len()),
            ("host allocations", self.host.len()),
        ];
        let left: Vec<String> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        (!left.is_empty()).then(|| left.join(", "))
    }

    /// A number for a new resource, which is far from all other numbers.
    fn mint(&mut self, size: u64) -> u64 {
        let number = self.next;
        self.next += size.next_multiple_of(MIB_2) + MIB_2;
        number
    }

    fn take(&mut self, size: u64) -> CudaResult {
        if size == 0 {
            return Err(INVALID_VALUE);
        }
        // Like the real driver, the fake driver allocates memory by pages.
        let used = self.used.checked_add(size.next_multiple_of(MIB_2)).filter(|used| *used <= self.total);
        self.used = used.ok_or(OUT_OF_MEMORY)?;
        Ok(())
    }

    pub(crate) fn allocate(&mut self, size: u64) -> CudaResult<u64> {
        self.take(size)?;
        let addr = self.mint(size);
        self.segments.insert(addr, size);
        self.reachable.set(addr, addr + size, ());
        Ok(addr)
    }

    pub(crate) fn free(&mut self, addr: u64) -> CudaResult {
        self.synchronize()?;
        let size = self.segments.remove(&addr).ok_or(INVALID_VALUE)?;
        self.used -= size.next_multiple_of(MIB_2);
        self.forget(addr, size);
        Ok(())
    }

    fn forget(&mut self, addr: u64, size: u64) {
        self.reachable.clear(addr, addr + size);
        self.data.clear(addr, addr + size);
    }

    pub(crate) fn reserve(&mut self, size: u64) -> CudaResult<u64> {
        if size == 0 || !size.is_multiple_of(MIB_2) {
            return Err(INVALID_VALUE);
        }
        let addr = self.mint(size);
        self.ranges.insert(addr, size);
        Ok(addr)
    }

    pub(crate) fn free_range(&mut self, addr: u64, size: u64) -> CudaResult {
        let has_memory = self.mapped.range(addr..addr.saturating_add(size)).next().is_some();
        if self.ranges.get(&addr) != Some(&size) || has_memory {
            return Err(INVALID_VALUE);
        }
        self.ranges.remove(&addr);
        Ok(())
    }

    pub(crate) fn create_page(&mut self, size: u64) -> CudaResult<u64> {
        if !size.is_multiple_of(MIB_2) {
            return Err(INVALID_VALUE);
        }
        self.take(size)?;
        let page = self.mint(0);
        self.pages.insert(page, size);
        Ok(page)
    }

    /// The memory of a page is freed once the page is neither held nor mapped.
    pub(crate) fn release_page(&mut self, page: u64) -> CudaResult {
        let size = self.pages.remove(&page).ok_or(INVALID_VALUE)?;
        if self.mapped.values().any(|(mapped, _)| *mapped == page) {
            // No caller releases a mapped page, so the fake driver does not support it.
            return Err(INVALID_VALUE);
        }
        self.used -= size;
        Ok(())
    }

    pub(crate) fn map(&mut self, addr: u64, size: u64, page: u64) -> CudaResult {
        let end = addr.checked_add(size).ok_or(INVALID_VALUE)?;
        let is_reserved =
            self.ranges.range(..=addr).next_back().is_some_and(|(base, length)| end <= base + length);
        let before = self.mapped.range(..end).next_back();
        let is_taken = before.is_some_and(|(start, (_, length))| start + length > addr);
        if !is_reserved || is_taken || self.pages.get(&page) != Some(&size) {
            return Err(INVALID_VALUE);
        }
        self.mapped.insert(addr, (page, size));
        Ok(())
    }

    pub(crate) fn allow_access(&mut self, addr: u64, size: u64) -> CudaResult {
        let mut at = addr;
        for (start, (_, length)) in self.mapped.range(addr..addr + size) {
            if *start == at {
                at += length;
            }
        }
        if at != addr + size {
            return Err(INVALID_VALUE);
        }
        self.reachable.set(addr, at, ());
        Ok(())
    }

    // Unlike `free`, this call waits for no work: work that still uses the memory breaks the device.
    pub(crate) fn unmap(&mut self, addr: u64, size: u64) -> CudaResult {
        if self.mapped.get(&addr).is_none_or(|(_, length)| *length != size) {
            return Err(INVALID_VALUE);
        }
        self.mapped.remove(&addr);
        self.forget(addr, size);
        Ok(())
    }

    pub(crate) fn create_stream(&mut self) -> u64 {
        let stream = self.mint(0);
        self.streams.insert(stream, VecDeque::new());
        stream
    }

    pub(crate) fn destroy_stream(&mut self, stream: u64) -> CudaResult {
        self.finish(stream)?;
        if stream == 0 || self.streams.remove(&stream).is_none() {
            return Err(INVALID_HANDLE);
        }
        Ok(())
    }

    pub(crate) fn give(&mut self, stream: u64, work: StreamWork) -> CudaResult {
        self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)?.push_back(work);
        Ok(())
    }

    pub(crate) fn create_event(&mut self) -> u64 {
        let event = self.mint(0);
        self.events.insert(event, (0, 0));
        event
    }

    pub(crate) fn destroy_event(&mut self, event: u64) -> CudaResult {
        self.events.remove(&event).map(|_| ()).ok_or(INVALID_HANDLE)
    }

    pub(crate) fn record(&mut self, event: u64, stream: u64) -> CudaResult {
        let (recorded, _) = self.events.get_mut(&event).ok_or(INVALID_HANDLE)?;
        *recorded += 1;
        let number = *recorded;
        self.give(stream, StreamWork::Event { event, number })
    }

    pub(crate) fn query(&mut self, event: u64) -> CudaResult {
        let streams: Vec<u64> = self.streams.keys().copied().collect();
        for stream in streams {
            self.go_on(stream)?;
        }
        let (recorded, done) = self.events.get(&event).ok_or(INVALID_HANDLE)?;
        if done < recorded { Err(NOT_READY) } else { Ok(()) }
    }

    pub(crate) fn wait(&mut self, event: u64) -> CudaResult {
        loop {
            match self.query(event) {
                Err(NOT_READY) => std::thread::yield_now(),
                answer => return answer,
            }
        }
    }

    pub(crate) fn finish(&mut self, stream: u64) -> CudaResult {
        while !self.streams.get(&stream).ok_or(INVALID_HANDLE)?.is_empty() {
            self.go_on(stream)?;
            std::thread::yield_now();
        }
        Ok(())
    }

    pub(crate) fn synchronize(&mut self) -> CudaResult {
        let streams: Vec<u64> = self.streams.keys().copied().collect();
        streams.into_iter().try_for_each(|stream| self.finish(stream))
    }

    /// Does the work of a stream up to a gate that is closed.
    fn go_on(&mut self, stream: u64) -> CudaResult {
        while let Some(work) = self.streams.get(&stream).and_then(|queue| queue.front()).copied() {
            if let StreamWork::Gate { flag, number, longest, since } = work {
                let begun = since.unwrap_or_else(Instant::now);
                if super::calls::read(flag) < number && begun.elapsed() < longest {
                    if let Some(first) = self.streams.get_mut(&stream).and_then(VecDeque::front_mut) {
                        *first = StreamWork::Gate { flag, number, longest, since: Some(begun) };
                    }
                    return Ok(());
                }
            }
            if let Some(queue) = self.streams.get_mut(&stream) {
                queue.pop_front();
            }
            if let Err(code) = self.perform(work) {
                self.sticky = Some(code);
                return Err(code);
            }
        }
        Ok(())
    }

    fn perform(&mut self, work: StreamWork) -> CudaResult {
        match work {
            StreamWork::Gate { .. } => {}
            StreamWork::Event { event, number } => {
                if let Some((_, done)) = self.events.get_mut(&event) {
                    *done = (*done).max(number);
                }
            }
            StreamWork::Fill { addr, words, pattern } => {
                self.reach(addr, words)?;
                self.data.set(addr, addr + words * 4, Contents::Pattern { pattern, base: addr });
            }
            StreamWork::Words { addr, words, value } => {
                self.reach(addr, words)?;
                self.data.set(addr, addr + words * 4, Contents::Words(value));
            }
            StreamWork::Check { addr, words, pattern, result } => {
                self.reach(addr, words)?;
                self.reach(result, 4)?;
                self.check(addr, words, pattern, result);
            }
        }
        Ok(())
    }

    fn reach(&self, addr: u64, words: u64) -> CudaResult {
        let pieces = self.reachable.pieces(addr, addr + words * 4);
        if pieces.iter().any(|(.., reachable)| reachable.is_none()) { Err(ILLEGAL_ADDRESS) } else { Ok(()) }
    }

    fn check(&mut self, addr: u64, words: u64, pattern: u32, result: u64) {
        let (mut wrong, mut first) = (0, None);
        for (from, to, written) in self.data.pieces(addr, addr + words * 4) {
            let is_same = |at: u64| value(written, at) == word_at(pattern, low((at - addr) / 4));
            // A pattern is right everywhere or nowhere, and equal numbers match a pattern hardly twice.
            let same = match written {
                Some(Contents::Words(_)) => (from..to).step_by(4).filter(|at| is_same(*at)).count() as u64,
                _ if is_same(from) => (to - from) / 4,
                _ => 0,
            };
            if same < (to - from) / 4 {
                first = first.or(Some((from, value(written, from))));
            }
            wrong += (to - from) / 4 - same;
        }
        if let Some((at, found)) = first {
            let words = [low(wrong), found, low(at), low(at >> 32)];
            for (index, word) in words.into_iter().enumerate() {
                let place = result + 4 * index as u64;
                self.data.set(place, place + 4, Contents::Words(word));
            }
        }
    }

    pub(crate) fn read_words(&mut self, addr: u64, count: usize) -> CudaResult<Vec<u32>> {
        self.finish(0)?;
        self.reach(addr, count as u64)?;
        let words = self.data.pieces(addr, addr + count as u64 * 4).into_iter();
        Ok(words
            .flat_map(|(from, to, written)| (from..to).step_by(4).map(move |at| (written, at)))
            .map(|(written, at)| value(written, at))
            .collect())
    }

    pub(crate) fn load_module(&mut self) -> u64 {
        let module = self.mint(0);
        self.modules.insert(module);
        module
    }

    pub(crate) fn has_module(&self, module: u64) -> bool {
        self.modules.contains(&module)
    }

    pub(crate) fn unload_module(&mut self, module: u64) -> CudaResult {
        if self.modules.remove(&module) { Ok(()) } else { Err(INVALID_HANDLE) }
    }

    pub(crate) fn add_host(&mut self, addr: u64) {
        self.host.insert(addr);
    }

    pub(crate) fn remove_host(&mut self, addr: u64) -> CudaResult {
        if self.host.remove(&addr) { Ok(()) } else { Err(INVALID_VALUE) }
    }
}

pub(crate) fn low(number: u64) -> u32 {
    u32::try_from(number & 0xffff_ffff).unwrap_or_default()
}

/// The word at an address; memory that was never written has a special value.
fn value(written: Option<Contents>, at: u64) -> u32 {
    match written {
        None => 0xdead_beef,
        Some(Contents::Words(value)) => value,
        Some(Contents::Pattern { pattern, base }) => word_at(pattern, low((at - base) / 4)),
    }
}
