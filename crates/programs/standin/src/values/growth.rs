//! Whether the blocks of the program become more and more, and the lines that made the live ones.
//!
//! A program whose blocks do not grow pays for an entry a block. While blocks grow, the line of the program is
//! asked for after operators that took a block, a few thousand times after each look, and the function in
//! Python that looks for keepers is called at each doubling of the count of allocations.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::json;

use crate::memory::device_of;
use crate::python::{self, PythonLine, interpreter};
use crate::values::frames::unobserved;
use crate::values::python::Object;

/// The count of allocations at which growth is looked for first; then at each doubling.
const FIRST_LOOK: u64 = 64;

/// How often the line of the program is asked for after a look, so that a long run pays for few lines.
const MAX_LINES: u32 = 4096;

/// A block that the allocator handed out and did not take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LiveBlock {
    bytes: u64,
    /// How many allocations the device had had before, as the trace of PyTorch's allocator counts them.
    number: u64,
    /// The line that made the block: a place in `lines`, counted from 1; 0 where it is not known.
    line: u32,
}

/// The blocks by their addresses.
#[derive(Debug)]
struct LiveBlocks {
    blocks: BTreeMap<u64, LiveBlock>,
    /// How many allocations each device has had.
    made: BTreeMap<i32, u64>,
    count: u64,
    next_look: u64,
    /// The fewest blocks at a time since the last look, and between the two looks before.
    fewest: usize,
    fewest_before: usize,
    lines: Vec<PythonLine>,
    numbers: BTreeMap<(String, i32), u32>,
}

impl LiveBlocks {
    const fn none() -> Self {
        Self {
            blocks: BTreeMap::new(),
            made: BTreeMap::new(),
            count: 0,
            next_look: FIRST_LOOK,
            fewest: usize::MAX,
            fewest_before: usize::MAX,
            lines: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// Adds a block. At a look returns whether there were more blocks at all times since the last look than at
    /// some time before it.
    fn add(&mut self, address: u64, bytes: u64, device: i32) -> Option<bool> {
        let number = self.made.entry(device).or_default();
        self.blocks.insert(address, LiveBlock { bytes, number: *number, line: 0 });
        *number += 1;
        self.count += 1;
        if self.count < self.next_look {
            return None;
        }
        let is_more = self.fewest != usize::MAX && self.fewest > self.fewest_before;
        self.fewest_before = self.fewest;
        self.fewest = self.blocks.len();
        self.next_look = self.next_look.saturating_mul(2);
        Some(is_more)
    }

    fn remove(&mut self, address: u64) {
        self.blocks.remove(&address);
        self.fewest = self.fewest.min(self.blocks.len());
    }

    /// Whether one of the blocks is live and its line is not known.
    fn wants_line(&self, blocks: &[(u64, u64)]) -> bool {
        blocks.iter().any(|(start, _)| self.blocks.get(start).is_some_and(|block| block.line == 0))
    }

    fn set_line(&mut self, blocks: &[(u64, u64)], line: PythonLine) {
        let next = u32::try_from(self.lines.len() + 1).unwrap_or(0);
        let number = *self.numbers.entry((line.file.clone(), line.line)).or_insert(next);
        if number == next {
            self.lines.push(line);
        }
        for (start, _) in blocks {
            if let Some(block) = self.blocks.get_mut(start)
                && block.line == 0
            {
                block.line = number;
            }
        }
    }

    /// The blocks for the search in Python: `[address, bytes, device, number, line]` each.
    fn text(&self) -> String {
        let blocks = self.blocks.iter().map(|(address, block)| {
            json!([address, block.bytes, device_of(*address).unwrap_or(0), block.number, block.line])
        });
        let lines = self.lines.iter().map(|line| json!({"file": line.file, "line": line.line}));
        let made = self.made.iter().map(|(device, made)| json!([device, made]));
        json!({
            "blocks": blocks.collect::<Vec<_>>(),
            "lines": lines.collect::<Vec<_>>(),
            "made": made.collect::<Vec<_>>(),
        })
        .to_string()
    }
}

static BLOCKS: Mutex<LiveBlocks> = Mutex::new(LiveBlocks::none());
static IS_GROWING: AtomicBool = AtomicBool::new(false);
/// How often the line was asked for since the last look.
static ASKED: AtomicU32 = AtomicU32::new(0);
static SEARCH: OnceLock<Object> = OnceLock::new();

fn blocks() -> MutexGuard<'static, LiveBlocks> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a block that is handed out or taken back. PyTorch's allocator holds its own lock meanwhile: Python is
/// only asked to call later.
pub(super) fn note_block(address: u64, bytes: u64, is_new: bool, device: i32) {
    if !is_new {
        return blocks().remove(address);
    }
    let look = blocks().add(address, bytes, device);
    if let Some(is_growing) = look {
        IS_GROWING.store(is_growing, Ordering::Relaxed);
        ASKED.store(0, Ordering::Relaxed);
        if is_growing
            && SEARCH.get().is_some()
            && let Some(python) = interpreter()
        {
            python.call_soon(search);
        }
    }
}

/// Calls the search. Python calls this function on its main thread, between two operations.
extern "C" fn search(_argument: *mut c_void) -> c_int {
    if let (Some(python), Some(search)) = (interpreter(), SEARCH.get()) {
        python.locked(|| {
            if let Some(found) = unobserved(|| python.call(search.get(), &[])) {
                python.drop(found);
            }
        });
    }
    0
}

/// Notes the line of the program for the blocks that an operator took, while blocks grow. No lock of
/// PyTorch's allocator is held.
pub(super) fn note_line(taken: &[(u64, u64)]) {
    if taken.is_empty() || !IS_GROWING.load(Ordering::Relaxed) || ASKED.load(Ordering::Relaxed) >= MAX_LINES {
        return;
    }
    if !blocks().wants_line(taken) {
        return;
    }
    ASKED.fetch_add(1, Ordering::Relaxed);
    let line = python::place();
    if line.line > 0 && !python::is_library(&line.file) {
        blocks().set_line(taken, line);
    }
}

/// Calls a function of Python without arguments whenever blocks were seen to grow, on the main thread.
#[unsafe(no_mangle)]
extern "C" fn blockyard_growth_watch(function: *mut c_void) {
    let Some(python) = interpreter() else { return };
    if let Some(function) = NonNull::new(function) {
        python.locked(|| python.add(function));
        // A second function is of no use: the first one is kept.
        let _ = SEARCH.set(Object::of(function));
    }
}

/// Whether blocks grew when this was looked at last.
#[unsafe(no_mangle)]
extern "C" fn blockyard_growth_seen() -> c_int {
    c_int::from(IS_GROWING.load(Ordering::Relaxed))
}

/// The live blocks as JSON; the text is valid until the next call.
#[unsafe(no_mangle)]
extern "C" fn blockyard_growth_blocks() -> *const c_char {
    static TEXT: Mutex<Option<CString>> = Mutex::new(None);
    let text = CString::new(blocks().text()).unwrap_or_default();
    TEXT.lock().unwrap_or_else(PoisonError::into_inner).insert(text).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::{FIRST_LOOK, LiveBlocks};
    use crate::python::PythonLine;

    /// The looks of a program that takes `taken` blocks an iteration and frees all but `kept`.
    fn looks(taken: u64, kept: u64) -> Vec<bool> {
        let (mut blocks, mut found) = (LiveBlocks::none(), Vec::new());
        for iteration in 0..200 {
            let first = iteration * taken;
            found.extend((first..first + taken).filter_map(|address| blocks.add(address, 512, 0)));
            (first + kept..first + taken).for_each(|address| blocks.remove(address));
        }
        found
    }

    #[test]
    fn blocks_that_iterations_keep_are_growth_and_others_are_not() {
        assert!(looks(10, 0).iter().all(|is_growing| !is_growing));
        let growing = looks(10, 1);
        assert!(growing.len() > 4 && growing.iter().skip(1).all(|is_growing| *is_growing), "{growing:?}");
    }

    #[test]
    fn a_block_has_its_number_and_its_line() {
        let mut blocks = LiveBlocks::none();
        for address in 0..FIRST_LOOK - 1 {
            assert_eq!(blocks.add(address, 512, 0), None);
        }
        blocks.remove(3);
        blocks.set_line(&[(3, 4), (4, 5)], PythonLine { file: "a.py".to_owned(), line: 7 });
        blocks.set_line(&[(4, 5), (5, 6)], PythonLine { file: "a.py".to_owned(), line: 8 });
        assert!(!blocks.wants_line(&[(3, 4), (4, 5)]) && blocks.wants_line(&[(6, 7)]));
        let found = |address: u64| blocks.blocks.get(&address).map(|block| (block.number, block.line));
        assert_eq!([3, 4, 5, 6].map(found), [None, Some((4, 1)), Some((5, 2)), Some((6, 0))]);
    }
}
