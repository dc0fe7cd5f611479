//! PyTorch's observers: an operator starts, an operator ends, the allocator hands out a block.
#![expect(unsafe_code, reason = "PyTorch calls back, and its objects are read")]

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use libloading::os::unix::{Library, RTLD_LAZY};

use crate::memory::{Certainty, device_of};
use crate::report;
use crate::runtime::work::{self, OTHER_STREAM};
use crate::state::state;
use crate::values::assumptions::BOOL;
use crate::values::call::{ArgumentSummary, OperatorCall};
use crate::values::frames::{self, RunningOperator, is_busy, unobserved};
use crate::values::growth;
use crate::values::layout::{self, IValue, ObjectLayout, layout, word};
use crate::values::python::{Helper, Operator};
use crate::values::searches;
use crate::values::tensors::{Functions, MemoryKind, Storage, Tensor, items};

/// The most bytes of all tensors of an operator that is computed, whatever it does.
const MAX_BYTES: u64 = 1 << 21;
/// The most elements of a larger operator that is computed: one that takes or finds integers and truth values.
const MAX_ELEMENTS: u64 = 1 << 24;
/// The work of a run for larger operators, in elements: about five seconds of a processor.
const MAX_WORK: u64 = 1 << 29;
/// The work of a sort, a search or a count of equal elements, for each element.
const SORT_WORK: u64 = 32;
/// The share of unknown numbers that are assumed to be equal to a number, where equal ones are counted.
const SHARE_OF_EQUAL: f64 = 0.125;
/// The operator that adds up the numbers of a sparse tensor's equal places.
const COALESCE: &CStr = c"aten::_coalesce";
/// The operator that copies its second argument into its first.
const COPY: &CStr = c"aten::copy_";
/// `RTLD_NOLOAD`: `dlopen` gives a library that is loaded already, and loads none.
const NOT_LOADED: i32 = 4;

type Record = *const u8;
type Name = unsafe extern "C" fn(Record) -> *const c_char;

/// A callback as PyTorch keeps it (`RecordFunctionCallback`).
#[repr(C)]
struct Callback {
    start: unsafe extern "C" fn(*mut *mut c_void, Record) -> *mut *mut c_void,
    end: unsafe extern "C" fn(Record, *mut c_void),
    share: f64,
    /// Whether to call for each scope (operators are the first), then whether arguments, results and numbers
    /// are wanted. Between two releases the count of scopes may grow: the scopes that are left out here are
    /// those of the first release that has all of them.
    flags: [bool; 40],
}

impl Callback {
    /// The callback of this library: for operators alone, with arguments and results.
    fn ours() -> Self {
        let mut flags = [true; 40];
        for scope in flags.iter_mut().take(9).skip(1) {
            *scope = false;
        }
        Self { start, end, share: 1.0, flags }
    }
}

/// The functions of PyTorch that the observers call.
struct TorchFunctions {
    add: unsafe extern "C" fn(Callback) -> u64,
    name: Name,
    overload: Name,
    remove: unsafe extern "C" fn(u64),
    tensors: Functions,
    /// Keeps the library loaded.
    _library: Library,
}

static TORCH: OnceLock<TorchFunctions> = OnceLock::new();
static IS_ON: AtomicBool = AtomicBool::new(false);
/// The work that larger operators took so far.
static WORK: AtomicU64 = AtomicU64::new(0);
/// How many blocks the allocator reported.
static BLOCKS: AtomicU64 = AtomicU64::new(0);

/// A library that the process has loaded.
fn find_loaded_library(path: &Path) -> Option<Library> {
    // SAFETY: nothing is loaded, so that no code runs.
    unsafe { Library::open(Some(path), RTLD_LAZY | NOT_LOADED) }.ok()
}

/// A function of a library of PyTorch, which stays loaded.
///
/// # Safety
/// `T` is the type of the function.
unsafe fn find_function<T: Copy>(library: &str, name: &[u8]) -> Option<T> {
    let library = find_loaded_library(Path::new(library))?;
    // SAFETY: the caller's promise.
    let found = unsafe { library.get::<T>(name) }.ok().map(|found| *found);
    std::mem::forget(library);
    found
}

/// Finds PyTorch's functions and adds the callback; false where this PyTorch cannot be observed.
pub(super) fn begin(path: &CStr) -> bool {
    if TORCH.get().is_some() {
        return false;
    }
    let Ok(path) = path.to_str() else { return false };
    let Some(library) = find_loaded_library(Path::new(path)) else { return false };
    let Some(tensors) = Functions::of(&library) else { return false };
    // SAFETY: the types are those of `ATen/record_function.h`; a callback is passed in memory, where a longer
    // one does no harm.
    let found = unsafe {
        let add = library.get::<unsafe extern "C" fn(Callback) -> u64>(
            b"_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE\0",
        );
        let remove = library.get::<unsafe extern "C" fn(u64)>(b"_ZN2at14removeCallbackEm\0");
        let name = library.get::<Name>(b"_ZNK2at14RecordFunction4nameEv\0");
        let overload = library.get::<Name>(b"_ZNK2at14RecordFunction13overload_nameEv\0");
        match (add, remove, name, overload) {
            (Ok(add), Ok(remove), Ok(name), Ok(overload)) => (*add, *remove, *name, *overload),
            _ => return false,
        }
    };
    let (add, remove, name, overload) = found;
    let torch = TorchFunctions { add, name, overload, remove, tensors, _library: library };
    if TORCH.set(torch).is_err() {
        return false;
    }
    add_callback();
    true
}

fn add_callback() {
    if let Some(torch) = TORCH.get() {
        // SAFETY: the callback has the type that PyTorch asks for, and its functions live as long as the
        // process.
        let handle = unsafe { (torch.add)(Callback::ours()) };
        HANDLE.store(handle, Ordering::Relaxed);
    }
}

static HANDLE: AtomicU64 = AtomicU64::new(0);

/// Begins to follow values, after the layout and the helper are known; returns whether PyTorch is observed.
pub(super) fn start_following() -> bool {
    let is_ready = layout::finish();
    IS_ON.store(is_ready, Ordering::Relaxed);
    is_ready
}

/// Whether operators are observed.
pub(super) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Stops observing: PyTorch calls no more.
pub(super) fn stop() {
    IS_ON.store(false, Ordering::Relaxed);
    let handle = HANDLE.swap(0, Ordering::Relaxed);
    if let Some(torch) = TORCH.get()
        && handle != 0
    {
        // SAFETY: the number is the one that PyTorch gave for the callback.
        unsafe { (torch.remove)(handle) };
    }
}

/// Observes again after [`stop`]. All bytes are unknown, since kernels ran meanwhile.
pub(super) fn resume() -> bool {
    if layout().is_none() || HANDLE.load(Ordering::Relaxed) != 0 {
        return false;
    }
    state().devices.forget();
    IS_ON.store(true, Ordering::Relaxed);
    add_callback();
    true
}

/// How many blocks were handed out and taken back.
pub(super) fn block_events() -> u64 {
    BLOCKS.load(Ordering::Relaxed)
}

/// Counts a block that is handed out or taken back, and makes its bytes unknown.
pub(super) fn note_block(address: u64, bytes: u64, is_new: bool) {
    let Some(device) = device_of(address) else { return };
    BLOCKS.fetch_add(1, Ordering::Relaxed);
    growth::note_block(address, bytes, is_new, device);
    let end = address.saturating_add(bytes);
    state().devices.mark(address, end, Certainty::Unknown);
    if is_new && IS_ON.load(Ordering::Relaxed) && !is_busy() {
        frames::add_block(address, end);
    }
}

type OwnGenerator = unsafe extern "C" fn(i8) -> *const u64;

/// Whether the object is the generator of the calling thread's device, which PyTorch's own code passes to
/// some operators (a recurrent layer's dropout).
pub(super) fn is_own_generator(object: u64) -> bool {
    static OWN: OnceLock<Option<OwnGenerator>> = OnceLock::new();
    // SAFETY: the type is that of `ATen/cuda/CUDAGeneratorImpl.h`: a device gives a reference to a place that holds
    // the generator.
    let own = OWN.get_or_init(|| unsafe {
        find_function("libtorch_cuda.so", b"_ZN2at4cuda6detail23getDefaultCUDAGeneratorEa\0")
    });
    // SAFETY: -1 is the current device, whose generator lives as long as the process.
    own.is_some_and(|own| unsafe { own(-1).read() } == object)
}

type Forward = unsafe extern "C" fn(u64, i64, usize, usize, u16);

/// Reports the block to PyTorch's profiler, whose function this library answers first.
pub(super) fn forward_block(address: u64, bytes: i64, allocated: usize, reserved: usize, device: u16) {
    static FORWARD: OnceLock<Option<Forward>> = OnceLock::new();
    // SAFETY: the type is that of `c10/core/Allocator.h`.
    let forward = FORWARD.get_or_init(|| unsafe {
        find_function("libc10.so", b"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE\0")
    });
    if let Some(forward) = forward {
        // SAFETY: these are the arguments of the call that came in.
        unsafe { forward(address, bytes, allocated, reserved, device) };
    }
}

unsafe extern "C" fn start(context: *mut *mut c_void, record: Record) -> *mut *mut c_void {
    // SAFETY: PyTorch wants its context there: none.
    unsafe { context.write(ptr::null_mut()) };
    if !is_busy()
        && let Some(torch) = TORCH.get()
    {
        // SAFETY: the object is alive, and its name lives as long as it does.
        let name = unsafe { CStr::from_ptr((torch.name)(record)) };
        match layout() {
            Some(layout) if IS_ON.load(Ordering::Relaxed) => {
                frames::push(start_operator(torch, layout, record, name));
            }
            Some(_) => {}
            None => layout::look_at_arguments(name.to_bytes(), record as u64),
        }
    }
    context
}

unsafe extern "C" fn end(record: Record, _context: *mut c_void) {
    if is_busy() {
        return;
    }
    work::report_unsaid();
    let Some(torch) = TORCH.get() else { return };
    match layout() {
        Some(layout) if IS_ON.load(Ordering::Relaxed) => {
            if let Some(mut frame) = frames::pop() {
                // The blocks of an inner operator are noted with those of the outer one.
                let taken = if frames::is_outside() { std::mem::take(&mut frame.blocks) } else { Vec::new() };
                end_operator(torch, layout, record, frame);
                growth::note_line(&taken);
            }
        }
        Some(_) => {}
        None => {
            // SAFETY: as at the start.
            let name = unsafe { CStr::from_ptr((torch.name)(record)) };
            layout::look_at_results(name.to_bytes(), record as u64);
        }
    }
}

/// `Tensor.record_stream`.
const RECORD_STREAM: &[u8] = b"aten::record_stream";

fn start_operator(
    torch: &TorchFunctions,
    layout: &ObjectLayout,
    record: Record,
    name: &CStr,
) -> RunningOperator {
    if name.to_bytes() == RECORD_STREAM {
        report::report_estimate(OTHER_STREAM);
    }
    // SAFETY: the object is alive; its overload's name lives as long.
    let overload = unsafe { CStr::from_ptr((torch.overload)(record)) };
    let Some(operator) = Helper::operator(name, overload) else { return RunningOperator::default() };
    let mut frame = RunningOperator { operator: Some(operator), ..RunningOperator::default() };
    if !operator.traits.is_leaf {
        return frame;
    }
    // SAFETY: the offset was found for objects of this type; the arguments live until this function returns.
    let arguments = unsafe {
        let (list, count) = (word(record as u64, layout.inputs), word(record as u64, layout.inputs + 8));
        if list == 0 || count != operator.kinds.len() as u64 {
            return frame;
        }
        std::slice::from_raw_parts(list as *const IValue, operator.kinds.len())
    };
    if name == COALESCE {
        // All places are assumed to be different: most programs make a sparse tensor without doubles.
        let places = arguments.first().and_then(|boxed| unobserved(|| torch.tensors.places(boxed)));
        frame.count = places.map(|places| (places, true));
        return frame;
    }
    let given = OperatorCall { arguments, layout, functions: &torch.tensors };
    frame.is_of_parameter = name == COPY && given.is_of_parameter();
    let look = given.summarize(operator);
    if !look.is_on_device {
        crate::nccl::note_host_collective(name);
        return frame;
    }
    if operator.traits.reads_value {
        frame.value = given.first_tensor(operator).map(|tensor| tensor.dtype);
        return frame;
    }
    if operator.traits.fills
        && let Some(fill) = given.fill()
    {
        frame.written = vec![fill.tensor.clone()];
        frame.fill = Some(fill);
        return frame;
    }
    compute(&given, operator, look, &mut frame);
    frame.written = given.written(operator, frame.computed.is_some());
    frame
}

/// Has the helper compute the results, where the values are known or assumed, and notes how many are found.
fn compute(
    given: &OperatorCall,
    operator: &Operator,
    mut look: ArgumentSummary,
    frame: &mut RunningOperator,
) {
    let is_small = look.bytes <= MAX_BYTES;
    let searched = (!is_small && look.worst != Certainty::Unknown && searches::is_search(operator))
        .then(|| given.first_tensor(operator))
        .flatten();
    let again = searched.as_ref().and_then(|tensor| searches::found(operator, tensor));
    let is_known = if operator.traits.is_random {
        is_small
    } else {
        look.worst != Certainty::Unknown && (is_small || again.is_some() || begin_large(given, operator))
    };
    // An assumption does not look at the arguments, however many bytes they have.
    let is_assumed = operator.traits.assumes
        && !operator.traits.is_random
        && !is_known
        && (!operator.traits.assumes_truths
            || given.first_tensor(operator).is_some_and(|tensor| tensor.dtype == BOOL));
    let is_computed = operator.traits.is_computed && (is_known || is_assumed) && !look.has_no_bytes;
    if is_assumed {
        look.worst = Certainty::Unknown;
    }
    if is_computed
        && given.gives_to_device(operator)
        && let Some(arguments) = given.arguments(operator)
        && let Some(found) = again.or_else(|| {
            unobserved(|| Helper::begin(operator, &arguments, look.worst))
                .map(|(computed, count)| (Arc::new(computed), count))
        })
    {
        if let Some(tensor) = searched {
            searches::keep(operator, &tensor, &found);
        }
        let (computed, count) = found;
        frame.count = count.map(|count| (count, look.worst == Certainty::Assumed));
        frame.computed = Some(computed);
    }
    let is_none_found = look.worst == Certainty::Assumed && frame.count.is_some_and(|(count, _)| count == 0);
    if operator.assumed_count > 0.0 && (is_none_found || frame.computed.is_none()) {
        // A comparison with an unknown number is assumed to be false, but a search over many numbers is
        // assumed to find some.
        frame.computed = None;
        let of_all = if is_none_found { SHARE_OF_EQUAL } else { operator.assumed_count };
        frame.count = given.first_tensor(operator).map(|tensor| (share(&tensor, of_all), true));
    }
}

/// Whether a large operator over known values is computed: one that takes or finds integers and truth values,
/// which costs milliseconds, while the run has work left. The work is counted then.
fn begin_large(given: &OperatorCall, operator: &Operator) -> bool {
    if !operator.traits.is_computed || !given.gives_to_device(operator) {
        return false;
    }
    let Some(elements) = given.elements(operator).filter(|elements| *elements <= MAX_ELEMENTS) else {
        return false;
    };
    let work = elements.saturating_mul(if operator.traits.sorts { SORT_WORK } else { 1 });
    let add = |done: u64| done.checked_add(work).filter(|done| *done <= MAX_WORK);
    WORK.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
}

/// The number of elements that are a share of a tensor's, at least 1 for a tensor with elements.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "an assumed count need not be exact"
)]
fn share(tensor: &Tensor, share: f64) -> i64 {
    let count = tensor.count() as f64;
    ((count * share).round() as i64).clamp(i64::from(count > 0.0), count as i64)
}

fn end_operator(torch: &TorchFunctions, layout: &ObjectLayout, record: Record, frame: RunningOperator) {
    let Some(operator) = frame.operator else { return };
    if let Some(fill) = frame.fill
        && check_blocks()
    {
        // An operator that hands the work on, as `zero_` does, fills nothing itself.
        if frame.has_launched {
            fill.write();
        }
        return;
    }
    let computed = frame.computed.filter(|_| check_blocks());
    let results = if computed.is_some() { results(torch, layout, record, operator) } else { Vec::new() };
    if let Some(marks) =
        computed.and_then(|computed| unobserved(|| Helper::end(&computed, &results, &frame.written)))
    {
        for (tensor, certainty) in results.iter().chain(&frame.written).zip(marks) {
            if tensor.data != 0 {
                tensor.mark(certainty);
            }
        }
    } else if frame.has_launched {
        for tensor in &frame.written {
            tensor.mark(Certainty::Unknown);
        }
    }
}

/// The tensors that an operator returned; an empty tensor in the place of each that is not on a device.
fn results(
    torch: &TorchFunctions,
    layout: &ObjectLayout,
    record: Record,
    operator: &Operator,
) -> Vec<Tensor> {
    // SAFETY: the offset was found for objects of this type; the results live until the operator has ended.
    let results: &[IValue] = unsafe {
        let (begin, end) = (word(record as u64, layout.outputs), word(record as u64, layout.outputs + 8));
        let count = usize::try_from(end.wrapping_sub(begin) / 16).unwrap_or(0);
        if begin == 0 || count > 64 { &[] } else { std::slice::from_raw_parts(begin as *const IValue, count) }
    };
    let mut call: Vec<Tensor> = Vec::new();
    for boxed in results {
        let list: Vec<&IValue> = if boxed.tag == layout.tensor {
            vec![boxed]
        } else if operator.traits.gives_list && boxed.tag != 0 {
            items(boxed, layout).iter().filter(|item| item.tag == layout.tensor).collect()
        } else {
            Vec::new()
        };
        for boxed in list {
            let is_there =
                Storage::of(boxed, layout).is_some_and(|storage| storage.home() == MemoryKind::Device);
            call.push(if is_there {
                torch.tensors.tensor(boxed).unwrap_or_default()
            } else {
                Tensor::default()
            });
        }
    }
    call
}

/// Whether the allocator reports its blocks. If it does not, the bytes of a block would stay known after the
/// block is freed.
fn check_blocks() -> bool {
    let has = BLOCKS.load(Ordering::Relaxed) > 0;
    if !has {
        give_up("the allocator of this PyTorch does not report its blocks");
    }
    has
}

/// Reports once that values cannot be followed in this release of PyTorch.
pub(super) fn give_up(why: &str) {
    IS_ON.store(false, Ordering::Relaxed);
    report::report_estimate(&format!(
        "values that the program computes on the device are not followed: {why}"
    ));
}
