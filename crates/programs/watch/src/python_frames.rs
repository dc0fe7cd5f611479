//! The Python frames of the calling thread, read from the interpreter's own memory.
//!
//! PyTorch's operators give Python's lock back before they allocate, and the callback runs under the allocator's
//! lock, so that Python's lock cannot be taken here: another thread may hold it and wait for the allocator. A
//! thread's own frames do not change while the thread is in an operator. They are read by offsets, which differ
//! between releases of Python; [`set_on`] reads one stack that is known and refuses where the text differs.
#![expect(unsafe_code, reason = "the interpreter's memory is read")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use libloading::os::unix::Library;

use crate::frames::StackFrame;

/// The most frames of a stack, from the innermost on; further frames are left out.
pub(crate) const MAX_FRAMES: usize = 64;
/// The longest text that is read of a name.
const MAX_TEXT: usize = 4096;

/// Offsets in bytes of what is read, in one release of Python.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// In a thread's state: where the current frame is, through a second pointer or not.
    cframe: Option<usize>,
    current: usize,
    /// In a frame.
    code: usize,
    previous: usize,
    instruction: usize,
    /// In a code object. `None` where a frame has the index of its instruction instead of the address.
    instructions: Option<usize>,
    file: usize,
    name: usize,
    line_table: usize,
    first_line: usize,
    /// In a text: where its characters begin, if all are ASCII.
    characters: usize,
}

const PYTHON_12: Layout = Layout {
    cframe: Some(56),
    current: 0,
    code: 0,
    previous: 8,
    instruction: 56,
    instructions: Some(192),
    file: 112,
    name: 120,
    line_table: 136,
    first_line: 68,
    characters: 40,
};

/// The releases of Python 3 whose offsets are known, of builds with Python's lock. From 3.13 on they are those of
/// `_Py_DebugOffsets`.
const LAYOUTS: [(u32, Layout); 5] = [
    (
        10,
        Layout {
            cframe: None,
            current: 24,
            code: 32,
            previous: 24,
            instruction: 96,
            instructions: None,
            file: 104,
            name: 112,
            line_table: 120,
            first_line: 40,
            characters: 48,
        },
    ),
    (
        11,
        Layout {
            current: 8,
            code: 32,
            previous: 48,
            instructions: Some(184),
            first_line: 72,
            characters: 48,
            ..PYTHON_12
        },
    ),
    (12, PYTHON_12),
    (13, Layout { cframe: None, current: 72, instructions: Some(200), ..PYTHON_12 }),
    (14, Layout { cframe: None, current: 72, instructions: Some(208), ..PYTHON_12 }),
];

/// In a text: the length, and the bits that say how the characters are stored.
const TEXT_LENGTH: usize = 16;
const TEXT_STATE: usize = 32;
/// The bits of a text whose characters follow the head, and of one that is ASCII.
const IS_COMPACT_ASCII: u32 = 0b110_0000;
/// In an object: its type.
const TYPE: usize = 8;
/// In an object of bytes: the length and the bytes.
const BYTES_LENGTH: usize = 16;
const BYTES_START: usize = 32;

/// One more than the index of the layout in use; 0 while no stack is read.
static LAYOUT: AtomicUsize = AtomicUsize::new(0);
/// The address of `PyGILState_GetThisThreadState`.
static THREAD: AtomicUsize = AtomicUsize::new(0);
/// The address of `PyCode_Type`.
static CODE: AtomicUsize = AtomicUsize::new(0);

/// A code object, and the place of the instruction in it, in bytes.
pub(crate) type Call = (usize, usize);

/// Reads stacks from now on, if the innermost frame of this thread is this one.
pub(crate) fn set_on(minor: u32, known: &StackFrame) -> Result<(), String> {
    let Some(index) = LAYOUTS.iter().position(|(release, _)| *release == minor) else {
        let which = if minor == 0 { " without its lock".to_owned() } else { format!(" 3.{minor}") };
        return Err(format!("the frames of Python{which} are not known yet"));
    };
    for (name, place) in [(c"PyGILState_GetThisThreadState", &THREAD), (c"PyCode_Type", &CODE)] {
        // SAFETY: only the address is taken.
        let found = unsafe { Library::this().get::<*mut c_void>(name.to_bytes_with_nul()) };
        match found.map(|found| *found as usize) {
            Ok(found) if found > 0 => place.store(found, Ordering::Relaxed),
            _ => return Err("this process has no Python".to_owned()),
        }
    }
    LAYOUT.store(index + 1, Ordering::Release);
    let mut calls = Calls::default();
    calls.take();
    let found = calls.all().first().map(|call| frame(*call));
    if found.as_ref() == Some(known) {
        return Ok(());
    }
    LAYOUT.store(0, Ordering::Release);
    Err(format!("this Python 3.{minor} has other frames than the known ones"))
}

fn layout() -> Option<&'static Layout> {
    let index = LAYOUT.load(Ordering::Acquire).checked_sub(1)?;
    LAYOUTS.get(index).map(|(_, layout)| layout)
}

/// No address below is one of a value.
const NULL_PAGE: usize = 4096;

/// The value at an address of the interpreter's.
///
/// # Safety
///
/// The address is that of a `T` in memory that is alive.
unsafe fn read<T: Copy>(address: usize) -> T {
    // SAFETY: as above.
    unsafe { (address as *const T).read_unaligned() }
}

/// The value in an object of the interpreter's, or 0 where the object's address is null.
///
/// # Safety
///
/// The address is that of an object that is alive, with a `T` at this offset, or its page is null.
unsafe fn at<T: Copy + Default>(base: usize, offset: usize) -> T {
    // SAFETY: as above.
    if base < NULL_PAGE { T::default() } else { unsafe { read(base + offset) } }
}

/// The frames of a thread, in places that are used again for each stack.
pub(crate) struct Calls {
    calls: [Call; MAX_FRAMES],
    count: usize,
}

impl Default for Calls {
    fn default() -> Self {
        Self { calls: [(0, 0); MAX_FRAMES], count: 0 }
    }
}

impl Calls {
    /// The frames, innermost first.
    pub(crate) fn all(&self) -> &[Call] {
        self.calls.get(..self.count).unwrap_or_default()
    }

    /// Takes the frames of this thread, none where it runs no Python. Returns their hash.
    pub(crate) fn take(&mut self) -> u64 {
        self.count = 0;
        let mut hash = 0;
        let Some(layout) = layout() else { return hash };
        let (thread, code_type) = (THREAD.load(Ordering::Relaxed), CODE.load(Ordering::Relaxed));
        // SAFETY: the address is that of Python's function, which may be called at any time without Python's lock.
        let state = unsafe { std::mem::transmute::<usize, extern "C" fn() -> usize>(thread) }();
        // SAFETY: the thread's own state, frames and code objects live while the thread is in this function, and
        // the offsets were tried on a stack that was known.
        unsafe {
            let holder = layout.cframe.map_or(state, |cframe| at(state, cframe));
            let mut frame: usize = at(holder, layout.current);
            // Each address is compared with the null page once: this is done for each frame of each stack.
            while frame >= NULL_PAGE
                && let Some(call) = self.calls.get_mut(self.count)
            {
                // 3.14 keeps marks in the lowest bits of the address. Where C calls Python, 3.13 and later have a
                // frame without code.
                let code = read::<usize>(frame + layout.code) & !7;
                if code >= NULL_PAGE && read::<usize>(code + TYPE) == code_type {
                    *call = (code, layout.place(frame, code));
                    hash = mix(hash, *call);
                    self.count += 1;
                }
                frame = read(frame + layout.previous);
            }
        }
        hash
    }
}

/// The hash of the frames up to this one: one product, since it is made for each frame of each stack.
#[expect(clippy::cast_possible_truncation, reason = "both halves of the product count")]
fn mix(hash: u64, (code, place): Call) -> u64 {
    let product = u128::from(hash ^ code as u64) * u128::from(0x9E37_79B9_7F4A_7C15 ^ place as u64);
    product as u64 ^ (product >> 64) as u64
}

impl Layout {
    /// Where in its code object a frame is, in bytes.
    ///
    /// # Safety
    ///
    /// The addresses are those of a frame that is alive and of its code object.
    unsafe fn place(&self, frame: usize, code: usize) -> usize {
        // SAFETY: by the caller.
        unsafe {
            match self.instructions {
                Some(instructions) => {
                    read::<usize>(frame + self.instruction).wrapping_sub(code + instructions)
                }
                None => usize::try_from(read::<i32>(frame + self.instruction)).unwrap_or(0) * 2,
            }
        }
    }
}

/// The texts of a frame that [`Calls::take`] found, while the thread is still in it.
pub(crate) fn frame((code, place): Call) -> StackFrame {
    let Some(layout) = layout() else { return StackFrame::default() };
    // SAFETY: the frame holds its code object, which holds its texts and its table of lines.
    unsafe {
        let table: usize = at(code, layout.line_table);
        let length: usize = at(table, BYTES_LENGTH);
        let bytes: &[u8] = if table == 0 || length > 1 << 24 {
            &[]
        } else {
            std::slice::from_raw_parts((table + BYTES_START) as *const u8, length)
        };
        let first: i32 = at(code, layout.first_line);
        let line_of = if layout.instructions.is_some() { line_of } else { line_of_pairs };
        StackFrame {
            file: text(at(code, layout.file), layout),
            name: text(at(code, layout.name), layout),
            line: line_of(bytes, first, place),
        }
    }
}

/// A text of Python's; `?` where its characters are not ASCII.
///
/// # Safety
///
/// The address is that of a text that is alive.
unsafe fn text(address: usize, layout: &Layout) -> String {
    // SAFETY: by the caller.
    let (length, state): (usize, u32) = unsafe { (at(address, TEXT_LENGTH), at(address, TEXT_STATE)) };
    if address == 0 || state & IS_COMPACT_ASCII != IS_COMPACT_ASCII || length > MAX_TEXT {
        return "?".to_owned();
    }
    // SAFETY: the characters of a compact ASCII text follow its head.
    let characters =
        unsafe { std::slice::from_raw_parts((address + layout.characters) as *const u8, length) };
    String::from_utf8_lossy(characters).into_owned()
}

/// The line of the instruction at this byte of a code object, by its table of pairs (3.10): so many bytes are so
/// many lines after those before.
fn line_of_pairs(table: &[u8], first: i32, place: usize) -> u32 {
    let (mut line, mut end) = (first, 0);
    for pair in table.chunks_exact(2) {
        let [bytes, lines] = *pair else { break };
        let has_line = lines != 0x80;
        line = line.saturating_add(if has_line { lines.cast_signed().into() } else { 0 });
        end += usize::from(bytes);
        if place < end {
            return if has_line { u32::try_from(line).unwrap_or(0) } else { 0 };
        }
    }
    0
}

/// The line of the instruction at this byte of a code object, by its table of locations (3.11 and later).
fn line_of(table: &[u8], first: i32, place: usize) -> u32 {
    let (mut line, mut start) = (first, 0);
    let mut bytes = table.iter().copied().peekable();
    while let Some(head) = bytes.next() {
        let (code, length) = (head >> 3 & 15, (usize::from(head & 7) + 1) * 2);
        match code {
            // The first number of a long entry, or of one without columns, is the step of the line.
            13 | 14 => {
                let (mut value, mut shift) = (0_u32, 0);
                for byte in bytes.by_ref() {
                    value |= u32::from(byte & 63).checked_shl(shift).unwrap_or(0);
                    shift += 6;
                    if byte & 64 == 0 {
                        break;
                    }
                }
                let step = (value >> 1).cast_signed();
                line = line.saturating_add(if value & 1 == 1 { -step } else { step });
            }
            10..=12 => line = line.saturating_add(i32::from(code) - 10),
            _ => {}
        }
        // Each entry begins with a byte of 128 and more.
        while bytes.next_if(|byte| byte & 128 == 0).is_some() {}
        if place < start + length {
            return if code == 15 { 0 } else { u32::try_from(line).unwrap_or(0) };
        }
        start += length;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::{line_of, line_of_pairs};

    #[test]
    fn a_table_of_pairs_gives_lines() {
        // From CPython 3.10: `def f(a):\n    b = a\n\n    return b + 1`, first line 1.
        let lines: Vec<u32> =
            (0..12).step_by(2).map(|place| line_of_pairs(&[4, 1, 8, 2], 1, place)).collect();
        assert_eq!(lines, [2, 2, 4, 4, 4, 4]);
        assert_eq!(line_of_pairs(&[4, 1, 8, 2], 1, 12), 0);
        // Back by two lines, and without a line.
        assert_eq!(line_of_pairs(&[2, 5, 2, 0xfe, 2, 0x80], 1, 2), 4);
        assert_eq!(line_of_pairs(&[2, 5, 2, 0xfe, 2, 0x80], 1, 4), 0);
    }

    #[test]
    fn a_table_of_locations_gives_lines() {
        // From CPython 3.11: `def f(a):\n    b = a\n\n    return b + 1`, first line 1.
        // 0x80: two bytes, short form, same line; 0xd8: one entry of the form 11 (a line later), 2 columns.
        let table = [0x80, 0x00, 0xd8, 0x08, 0x09, 0x80, 0x41, 0xe0, 0x0b, 0x0c];
        let lines: Vec<u32> = (0..8).map(|place| line_of(&table, 1, place)).collect();
        assert_eq!(lines, [1, 1, 2, 2, 2, 2, 4, 4]);
        assert_eq!(line_of(&table, 1, 99), 0);
        assert_eq!(line_of(&[], 1, 0), 0);
        // A long entry steps back by two lines; one without a location has no line.
        assert_eq!(line_of(&[0xf0, 0x05, 0x00, 0x00, 0x00], 10, 0), 8);
        assert_eq!(line_of(&[0xf8], 10, 0), 0);
    }
}
