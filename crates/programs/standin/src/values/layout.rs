//! Where PyTorch keeps an operator's arguments and results, found by calling operators whose arguments are
//! known.
//!
//! Each offset counts bytes.
#![expect(unsafe_code, reason = "PyTorch's objects are read")]
#![expect(clippy::cast_possible_truncation, reason = "addresses have as many bits as the process")]

use std::sync::{Mutex, OnceLock, PoisonError};

/// The offsets of members in PyTorch's objects, and the tags of boxed arguments by their type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectLayout {
    /// From a `RecordFunction` to its arguments: an address and a count.
    pub(super) inputs: usize,
    /// From a `RecordFunction` to the results: three addresses of a `std::vector`.
    pub(super) outputs: usize,
    /// From a list to its items: three addresses of a `std::vector`.
    pub(super) items: usize,
    /// From a text to its characters: an address and a count.
    pub(super) text: usize,
    /// From a tensor to its storage.
    pub(super) storage: usize,
    /// From a storage to the address of its bytes.
    pub(super) data: usize,
    /// From a storage to the count of its bytes.
    pub(super) bytes: usize,
    pub(super) tensor: u32,
    pub(super) integer: u32,
    pub(super) number: u32,
    pub(super) boolean: u32,
}

/// An argument as PyTorch boxes it (`IValue`): eight bytes of payload, then a tag.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct IValue {
    pub(super) payload: u64,
    pub(super) tag: u32,
    _padding: u32,
}

/// An operator that is called to find the layout, and what it shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Probe {
    /// `add(first, second, alpha=7)`: where arguments and results are, the tags of tensors and integers.
    Add,
    /// `add(first, second, alpha=1.5)`: the tag of numbers.
    Number,
    /// `full_like(first, True)`: the tag of truth values.
    Boolean,
    /// `stack([first, second])`: where a list's items are.
    List,
    /// `div(first, second, rounding_mode="floor")`: where a text's characters are.
    Text,
    #[default]
    None,
}

impl Probe {
    /// The trial of a number that the helper in Python gives; `None` for a number without one.
    pub(super) fn of(number: i32) -> Self {
        [Self::Add, Self::Number, Self::Boolean, Self::List, Self::Text]
            .get(usize::try_from(number).unwrap_or(usize::MAX))
            .copied()
            .unwrap_or_default()
    }

    /// The operator, and how many arguments it has at least.
    fn operator(self) -> (&'static [u8], usize) {
        match self {
            Self::Add | Self::Number => (b"aten::add", 3),
            Self::Boolean => (b"aten::full_like", 2),
            Self::List => (b"aten::stack", 2),
            Self::Text => (b"aten::div", 3),
            Self::None => (b"", 0),
        }
    }
}

/// The search for the layout, while it goes through the probes.
#[derive(Debug, Default)]
struct Search {
    /// The operator that is called next.
    probe: Probe,
    /// The `TensorImpl` of the operator's first two tensors.
    tensors: [u64; 2],
    /// The offsets and tags that were found so far.
    layout: ObjectLayout,
    /// Whether everything that the arguments should show was found.
    is_found: bool,
    /// Offsets that may be those of the results, with the result that lies there.
    results: Vec<(usize, u64)>,
}

static SEARCH: Mutex<Option<Search>> = Mutex::new(None);
static LAYOUT: OnceLock<ObjectLayout> = OnceLock::new();

/// How many bytes of an object are searched.
const MAX: usize = 512;

/// The layout, once it is known.
pub(super) fn layout() -> Option<&'static ObjectLayout> {
    LAYOUT.get()
}

/// Ends the search; returns whether the layout is complete.
pub(super) fn finish() -> bool {
    let mut search = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(found) = search.take() else { return false };
    let layout = found.layout;
    let offsets =
        [layout.inputs, layout.outputs, layout.items, layout.text, layout.storage, layout.data, layout.bytes];
    offsets.iter().all(|offset| *offset > 0) && LAYOUT.set(layout).is_ok()
}

/// A word of an object of PyTorch's.
///
/// # Safety
///
/// Eight bytes at `address + offset` must be readable.
pub(super) unsafe fn word(address: u64, offset: usize) -> u64 {
    // SAFETY: as the caller says.
    unsafe { ((address as usize).wrapping_add(offset) as *const u64).read_unaligned() }
}

/// Whether the number can be the address of an object.
fn is_address(value: u64) -> bool {
    value > 0x1_0000 && value < 1 << 47 && value.is_multiple_of(8)
}

/// Whether the three words at the offset can be a `std::vector` of this many bytes.
///
/// # Safety
///
/// As for [`word`], for 24 bytes.
unsafe fn is_vector(address: u64, offset: usize, bytes: u64) -> bool {
    // SAFETY: as the caller says.
    let [begin, end, room] = [0, 8, 16].map(|more| unsafe { word(address, offset + more) });
    is_address(begin) && end.wrapping_sub(begin) == bytes && room >= end && room.wrapping_sub(begin) <= 4096
}

/// Begins a probe, whose operator gets these two tensors.
pub(super) fn expect(probe: Probe, tensors: [u64; 2]) {
    let mut search = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
    let layout = search.as_ref().map(|search| search.layout).unwrap_or_default();
    *search = Some(Search { probe, tensors, layout, is_found: false, results: Vec::new() });
}

/// Searches the arguments of an operator that starts; `object` is its `RecordFunction`.
pub(super) fn look_at_arguments(name: &[u8], object: u64) {
    let mut search = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(search) = search.as_mut() else { return };
    let (wanted, count) = search.probe.operator();
    if search.is_found || wanted.is_empty() || name != wanted {
        return;
    }
    if search.probe == Probe::Add {
        find_inputs(search, object, count);
        return;
    }
    if search.layout.inputs == 0 {
        return;
    }
    // SAFETY: the offset was found for objects of this type; the arguments are as many as the operator has.
    let argument = |index: usize| unsafe {
        let list = word(object, search.layout.inputs);
        ((list as usize).wrapping_add(index * 16) as *const IValue).read()
    };
    let [first, _] = search.tensors;
    match search.probe {
        Probe::Number => search.layout.number = argument(2).tag,
        Probe::Boolean => search.layout.boolean = argument(1).tag,
        Probe::List => {
            let list = argument(0).payload;
            // SAFETY: the argument is a list, an object of more than 64 bytes, whose vectors hold what they
            // say.
            let offset = (8..64_usize).step_by(8).find(|offset| unsafe {
                is_vector(list, *offset, 32) && word(word(list, *offset), 0) == first
            });
            search.layout.items = offset.unwrap_or(0);
            search.is_found = offset.is_some();
            return;
        }
        Probe::Text => {
            let text = argument(2).payload;
            // SAFETY: the argument is a text; "floor" is short, so that its characters are within the object.
            let offset = (8..48_usize).step_by(8).find(|offset| unsafe {
                word(text, *offset) == text.wrapping_add(*offset as u64 + 16) && word(text, offset + 8) == 5
            });
            search.layout.text = offset.unwrap_or(0);
            search.is_found = offset.is_some();
            return;
        }
        Probe::Add | Probe::None => return,
    }
    search.is_found = true;
}

fn find_inputs(search: &mut Search, object: u64, count: usize) {
    let [first, second] = search.tensors;
    for offset in (0..MAX).step_by(8) {
        // SAFETY: the object lies on the calling thread's stack, of which more than this is above it.
        let (list, length) = unsafe { (word(object, offset), word(object, offset + 8)) };
        // The arguments lie on the same stack.
        if length != count as u64 || !is_address(list) || list.abs_diff(object) > 1 << 16 {
            continue;
        }
        // SAFETY: the address is on this thread's stack, within what is in use.
        let arguments = [0, 1, 2].map(|index: usize| unsafe {
            ((list as usize).wrapping_add(index * 16) as *const IValue).read()
        });
        let [one, two, three] = arguments;
        if one.payload == first && two.payload == second && one.tag == two.tag && three.payload == 7 {
            search.layout.inputs = offset;
            search.layout.tensor = one.tag;
            search.layout.integer = three.tag;
            search.is_found = true;
            return;
        }
    }
}

/// Searches the results of an operator that ends; `object` is its `RecordFunction`.
pub(super) fn look_at_results(name: &[u8], object: u64) {
    let mut search = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(search) = search.as_mut() else { return };
    if search.probe != Probe::Add || name != b"aten::add" {
        return;
    }
    for offset in (0..MAX).step_by(8) {
        // SAFETY: as for the arguments; a vector of one item holds sixteen bytes.
        unsafe {
            if is_vector(object, offset, 16) {
                search.results.push((offset, word(word(object, offset), 0)));
            }
        }
    }
}

/// Whether everything that the operator should show was found; `result` is the tensor that the operator
/// returned.
pub(super) fn found(result: u64) -> bool {
    let mut search = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(search) = search.as_mut() else { return false };
    if search.probe == Probe::Add {
        let Some((offset, _)) = search.results.iter().find(|(_, there)| *there == result) else {
            return false;
        };
        search.layout.outputs = *offset;
    }
    search.is_found
}

/// Finds a tensor's storage, and there the address and the count of its bytes.
pub(super) fn find_storage(tensor: u64, storage: u64, data: u64, bytes: u64) -> bool {
    let find = |object: u64, value: u64, most: usize| {
        // SAFETY: both objects are larger than this.
        (8..most).step_by(8).find(|offset| unsafe { word(object, *offset) } == value)
    };
    let found = (find(tensor, storage, 64), find(storage, data, 64), find(storage, bytes, 96));
    let mut search = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
    let (Some(search), (Some(storage), Some(data), Some(bytes))) = (search.as_mut(), found) else {
        return false;
    };
    search.layout.storage = storage;
    search.layout.data = data;
    search.layout.bytes = bytes;
    true
}
