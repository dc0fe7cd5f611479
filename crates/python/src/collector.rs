//! Python's garbage collector: frees objects that only cycles of references hold.
//!
//! The interpreter's collector goes through objects in the order of their addresses: two runs of one program
//! would free in different orders. This collector goes through objects from the oldest to the newest, as
//! CPython's does, and the interpreter's is switched off. Objects that the package `torch` made before the
//! program began are never collected.
//!
//! CPython collects when 700 more container objects were made than died. So does this collector, at the next
//! operator; but CPython counts objects that do not exist here, so the moment is not that of a real run. A
//! note says so where GPU memory is freed.

use std::cell::Cell;
use std::collections::HashMap;

use rustpython_vm::builtins::{PyFunction, PyList, PyTuple};
use rustpython_vm::gc_state::gc_state;
use rustpython_vm::{AsObject, PyObject, PyObjectRef, VirtualMachine};

use crate::modules::torch::is_gpu_tensor;
use crate::{host, position};

/// CPython 3.12's threshold of its youngest generation.
const THRESHOLD: u32 = 700;

thread_local! {
    static IS_ENABLED: Cell<bool> = const { Cell::new(true) };
    static THRESHOLDS: Cell<(u32, u32, u32)> = const { Cell::new((THRESHOLD, 10, 10)) };
    /// How many containers were alive after the last collection.
    static ALIVE: Cell<usize> = const { Cell::new(0) };
    static IS_COLLECTING: Cell<bool> = const { Cell::new(false) };
}

/// Switches the interpreter's own collector off.
pub(crate) fn take_over() {
    gc_state().disable();
    IS_ENABLED.set(true);
    THRESHOLDS.set((THRESHOLD, 10, 10));
}

/// Called before the program begins: objects that exist now are never collected.
pub(crate) fn begin() {
    gc_state().freeze();
    ALIVE.set(count());
}

fn count() -> usize {
    gc_state().get_count().0
}

/// `gc.enable` and `gc.disable`.
pub(crate) fn set_enabled(is_enabled: bool) {
    IS_ENABLED.set(is_enabled);
}

/// `gc.isenabled`.
pub(crate) fn is_enabled() -> bool {
    IS_ENABLED.get()
}

/// `gc.get_threshold`.
pub(crate) fn thresholds() -> (u32, u32, u32) {
    THRESHOLDS.get()
}

/// `gc.set_threshold`.
pub(crate) fn set_thresholds(thresholds: (u32, u32, u32)) {
    THRESHOLDS.set(thresholds);
}

/// How many containers were made since the last collection and are alive.
pub(crate) fn made_since() -> usize {
    // Containers that were alive at the last collection may have died since.
    count().saturating_sub(ALIVE.get())
}

/// Collects if enough containers were made since the last time.
pub(crate) fn maybe_collect(vm: &VirtualMachine) {
    let threshold = usize::try_from(THRESHOLDS.get().0).unwrap_or(usize::MAX);
    // CPython looks at all objects only when a quarter of them is new.
    if !IS_ENABLED.get() || threshold == 0 || made_since() < threshold.max(ALIVE.get() / 4) {
        return;
    }
    let garbage = collect(vm);
    if garbage.gpu_tensors > 0 {
        let line = position::current_line(vm);
        host::note(
            line,
            "Python's garbage collector ran here and freed GPU tensors that only a cycle of references held; in a real run the \
             moment differs, since it depends on every object of every package",
        );
    }
}

/// What a collection freed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Garbage {
    /// How many objects were freed, without the dictionaries of instances.
    pub(crate) objects: usize,
    /// How many of these objects were tensors of a GPU.
    pub(crate) gpu_tensors: usize,
}

/// Frees all objects that nothing but each other holds, oldest first.
pub(crate) fn collect(vm: &VirtualMachine) -> Garbage {
    if IS_COLLECTING.replace(true) {
        return Garbage::default();
    }
    let garbage = collect_once(vm);
    IS_COLLECTING.set(false);
    ALIVE.set(count());
    garbage
}

fn collect_once(vm: &VirtualMachine) -> Garbage {
    let mut objects = gc_state().get_objects(Some(0));
    objects.reverse();
    let unreachable = unreachable(objects, vm);
    for object in &unreachable {
        for (weak, callback) in object.gc_clear_weakrefs_collect_callbacks() {
            // No caller can get an exception of a callback, as in CPython.
            drop(callback.call((weak,), vm));
        }
    }
    let mut is_any_finalized = false;
    for object in &unreachable {
        // The finalizers of lists and tuples are this crate's, and only free the elements in CPython's order.
        let is_plain =
            object.downcast_ref::<PyList>().is_some() || object.downcast_ref::<PyTuple>().is_some();
        if !is_plain && object.class().slots.del.load().is_some() {
            object.try_call_finalizer();
            is_any_finalized = true;
        }
    }
    let dead = if is_any_finalized { self::unreachable(unreachable, vm) } else { unreachable };
    let garbage = Garbage {
        objects: dead.iter().filter(|object| !object.class().is(vm.ctx.types.dict_type)).count(),
        gpu_tensors: dead.iter().filter(|object| is_gpu_tensor(object)).count(),
    };
    clear(dead);
    garbage
}

fn places(objects: &[PyObjectRef]) -> HashMap<*const PyObject, usize> {
    objects.iter().enumerate().map(|(place, object)| (object.as_raw(), place)).collect()
}

/// The objects that an object refers to.
fn referents(object: &PyObjectRef, vm: &VirtualMachine) -> Vec<PyObjectRef> {
    let mut referents = object.gc_get_referents();
    let closure = object.downcast_ref::<PyFunction>().and_then(|_| object.get_attr("__closure__", vm).ok());
    if let Some(closure) = closure
        && let Some(cells) = closure.downcast_ref::<PyTuple>()
    {
        // The interpreter names the cells of a function's closure and leaves out the tuple that holds them.
        referents.retain(|referent| !cells.as_slice().iter().any(|cell| cell.is(referent)));
        referents.push(closure);
    }
    referents
}

/// Those of the given objects to which no object outside of them leads, in the given order.
pub(crate) fn unreachable(objects: Vec<PyObjectRef>, vm: &VirtualMachine) -> Vec<PyObjectRef> {
    let places = places(&objects);
    // One reference is that of `objects`.
    let mut outside: Vec<usize> =
        objects.iter().map(|object| object.strong_count().saturating_sub(1)).collect();
    let children: Vec<Vec<usize>> = objects
        .iter()
        .map(|object| {
            let referents = referents(object, vm);
            referents.iter().filter_map(|child| places.get(&child.as_raw()).copied()).collect()
        })
        .collect();
    for &child in children.iter().flatten() {
        if let Some(count) = outside.get_mut(child) {
            // Each of these is one of the counted references.
            *count = count.saturating_sub(1);
        }
    }
    let mut is_reachable: Vec<bool> = outside.iter().map(|&count| count > 0).collect();
    let mut left: Vec<usize> =
        is_reachable.iter().enumerate().filter(|(_, reached)| **reached).map(|(place, _)| place).collect();
    while let Some(place) = left.pop() {
        for &child in children.get(place).into_iter().flatten() {
            if let Some(reached) = is_reachable.get_mut(child)
                && !*reached
            {
                *reached = true;
                left.push(child);
            }
        }
    }
    objects.into_iter().zip(is_reachable).filter(|(_, reached)| !reached).map(|(object, _)| object).collect()
}

/// Breaks the cycles of dead objects, oldest first.
fn clear(dead: Vec<PyObjectRef>) {
    let places = places(&dead);
    let mut dead: Vec<Option<PyObjectRef>> = dead.into_iter().map(Some).collect();
    for place in 0..dead.len() {
        let Some(object) = dead.get_mut(place).and_then(Option::take) else { continue };
        if !object.gc_has_clear() {
            continue;
        }
        #[expect(unsafe_code, reason = "the interpreter's own way to break a cycle")]
        // SAFETY: only dead objects refer to this one, and no code of theirs runs any more: finalizers ran
        // before.
        let edges = unsafe { object.gc_clear() };
        for edge in edges {
            // An object that nothing else holds dies now, as in CPython, and not later in the order of
            // `dead`.
            let slot = places.get(&edge.as_raw()).and_then(|&place| dead.get_mut(place));
            if let Some(slot) = slot
                && edge.strong_count() == 2
            {
                *slot = None;
            }
            drop(edge);
        }
    }
}
