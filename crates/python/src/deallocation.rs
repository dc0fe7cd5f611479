//! When objects die: in CPython 3.12's order, where the interpreter's order is another.
//!
//! CPython drops the elements of a list or a tuple last to first. A generator that is closed at a `yield`
//! outside of `try` keeps its locals until the generator dies. `enumerate`, `zip` and `dict.items` keep the
//! tuple of their last turn. A Python function's arguments belong to the function: the caller keeps none of
//! them, by keyword or not, and does not keep the object whose method is called, since classes of Python look
//! attributes up as `object` does.
//!
//! Differs: `zip` drops a turn's elements after it has all elements of the next turn.

#![expect(clippy::unnecessary_wraps, reason = "the forms that the interpreter's slots ask for")]
#![expect(clippy::needless_pass_by_value, reason = "the interpreter hands arguments over by value")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use rustpython_vm::builtins::{PyFunction, PyGenerator, PyList, PySlice, PyTuple, PyType, PyTypeRef};
use rustpython_vm::bytecode::{Instruction, find_exception_handler};
use rustpython_vm::function::{FuncArgs, PyMethodFlags};
use rustpython_vm::protocol::{PyIterReturn, PyMapping};
use rustpython_vm::sliceable::SaturatedSlice;
use rustpython_vm::types::PyTypeFlags;
use rustpython_vm::{AsObject as _, Py, PyObject, PyObjectRef, PyRef, PyResult, VirtualMachine};

/// How deep native calls may nest while nested lists and tuples die; deeper lists and tuples die in the
/// interpreter's order.
const MAX_DEPTH: u32 = 40;

type Assign = fn(PyMapping<'_>, &PyObject, Option<PyObjectRef>, &VirtualMachine) -> PyResult<()>;
type Call = fn(&PyObject, Vec<PyObjectRef>, usize, Option<&[PyObjectRef]>, &VirtualMachine) -> PyResult;
type Constructor = fn(PyTypeRef, FuncArgs, &VirtualMachine) -> PyResult;
type NextFunction = fn(&PyObject, &VirtualMachine) -> PyResult<PyIterReturn>;

/// The iterators that keep the tuple of their last turn.
#[derive(Clone, Copy)]
enum TupleIterator {
    Enumerate,
    Zip,
    Items,
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The interpreter's own functions for the next turn of an iterator, by [`TupleIterator`].
    static NEXT: Cell<[Option<NextFunction>; 3]> = const { Cell::new([None; 3]) };
    /// The interpreter's own function for assignments to elements of lists.
    static LIST_ASSIGN: Cell<Option<Assign>> = const { Cell::new(None) };
    /// The interpreter's own function for calls of Python functions.
    static CALL: Cell<Option<Call>> = const { Cell::new(None) };
    /// The interpreter's own function that makes classes.
    static NEW: Cell<Option<Constructor>> = const { Cell::new(None) };
    /// The tuple of the last turn, by the address of its iterator. An iterator that dies removes its entry.
    static LAST: RefCell<HashMap<usize, PyObjectRef>> = RefCell::new(HashMap::new());
}

/// Gives the interpreter's types CPython's order.
pub(crate) fn install(vm: &VirtualMachine) {
    let types = &vm.ctx.types;
    for class in [types.list_type, types.tuple_type] {
        class.slots.del.store(Some(free_last_to_first));
    }
    let clear = vm.ctx.new_method_def("clear", clear_list, PyMethodFlags::METHOD, None);
    types.list_type.set_attr(vm.ctx.intern_str("clear"), clear.build_method(types.list_type, vm).into());
    let close = vm.ctx.new_method_def("close", close_generator, PyMethodFlags::METHOD, None);
    types
        .generator_type
        .set_attr(vm.ctx.intern_str("close"), close.build_method(types.generator_type, vm).into());
    let assign = &types.list_type.slots.as_mapping.ass_subscript;
    if LIST_ASSIGN.get().is_none() {
        LIST_ASSIGN.set(assign.load());
    }
    assign.store(Some(assign_or_delete));
    let call = &types.function_type.slots.vectorcall;
    if CALL.get().is_none() {
        CALL.set(call.load());
    }
    call.store(Some(call_function));
    let new = &types.type_type.slots.new;
    if NEW.get().is_none() {
        NEW.set(new.load());
    }
    new.store(Some(new_class));
    keep_last(types.enumerate_type, TupleIterator::Enumerate, |object, vm| {
        next(object, TupleIterator::Enumerate, vm)
    });
    keep_last(types.zip_type, TupleIterator::Zip, |object, vm| next(object, TupleIterator::Zip, vm));
    keep_last(types.dict_itemiterator_type, TupleIterator::Items, |object, vm| {
        next(object, TupleIterator::Items, vm)
    });
}

/// Calls a Python function, which takes its arguments over. The interpreter would copy the arguments of a
/// call with keywords, and keep the originals until the function returns.
fn call_function(
    function: &PyObject,
    arguments: Vec<PyObjectRef>,
    positional: usize,
    keywords: Option<&[PyObjectRef]>,
    vm: &VirtualMachine,
) -> PyResult {
    if keywords.is_some_and(|keywords| !keywords.is_empty())
        && let Some(function) = function.downcast_ref::<PyFunction>()
    {
        keep_general_call(vm);
        return function.invoke(FuncArgs::from_vectorcall_owned(arguments, positional, keywords), vm);
    }
    match CALL.get() {
        Some(call) => call(function, arguments, positional, keywords, vm),
        None => function.call_with_args(FuncArgs::from_vectorcall_owned(arguments, positional, keywords), vm),
    }
}

/// Keeps the interpreter from specializing the call that runs. After two calls the interpreter replaces an
/// instruction that calls with keywords by one for this function alone, which does not call
/// [`call_function`], copies the arguments and keeps the originals until the function returns. A counter that
/// never reaches its end keeps the instruction.
fn keep_general_call(vm: &VirtualMachine) {
    const NEVER: u16 = 15;
    let Some(frame) = vm.current_frame() else { return };
    let code = &frame.code.instructions;
    // `lasti` is the next instruction: the counter of the call is kept there.
    let counter = usize::try_from(frame.lasti()).unwrap_or_default();
    let call = counter.checked_sub(1).filter(|_| counter < code.len()).map(|call| code.read_op(call));
    if matches!(call, Some(Instruction::CallKw { .. })) {
        #[expect(unsafe_code, reason = "the interpreter's counters are written in no other way")]
        // SAFETY: the place is one of the code's.
        unsafe {
            code.write_adaptive_counter(counter, NEVER);
        }
    }
}

/// `type.__new__`, whose classes look attributes up by the function of `object`. The interpreter would give a
/// new class a function that makes a bound method of each method that is called, and the bound method would
/// keep the object until the call is over.
fn new_class(metaclass: PyTypeRef, arguments: FuncArgs, vm: &VirtualMachine) -> PyResult {
    let Some(new) = NEW.get() else { return Err(vm.new_type_error("classes cannot be made")) };
    let made = new(metaclass, arguments, vm)?;
    if let Some(class) = made.downcast_ref::<PyType>()
        && looks_up_as_object(class, vm)
    {
        class.slots.getattro.store(vm.ctx.types.object_type.slots.getattro.load());
    }
    Ok(made)
}

/// Whether neither a class nor one of its base classes has a separate function for attributes.
fn looks_up_as_object(class: &Py<PyType>, vm: &VirtualMachine) -> bool {
    let object = vm.ctx.types.object_type;
    let plain = object.slots.getattro.load().map(|function| function as usize);
    let names = ["__getattr__", "__getattribute__"].map(|name| vm.ctx.intern_str(name));
    class.mro_collect().iter().filter(|class| !class.is(object)).all(|class| {
        let own = class.slots.getattro.load().map(|function| function as usize);
        let is_of_python = class.slots.flags.has_feature(PyTypeFlags::HEAPTYPE);
        let attributes = class.attributes.read();
        (is_of_python || own == plain) && !names.iter().any(|name| attributes.contains_key(*name))
    })
}

/// Drops the tuples that iterators still keep, before the interpreter ends.
pub(crate) fn clear() {
    drop(LAST.take());
}

/// Called when a list or a tuple dies.
fn free_last_to_first(object: &PyObject, vm: &VirtualMachine) -> PyResult<()> {
    let is_ordered =
        |items: &[PyObjectRef]| items.iter().filter(|item| item.strong_count() == 1).nth(1).is_some();
    // The caller that frees a dying object holds two references to it.
    if object.strong_count() != 2 || DEPTH.get() >= MAX_DEPTH {
        return Ok(());
    }
    let mut items = if let Some(list) = object.downcast_ref::<PyList>() {
        if !is_ordered(&list.borrow_vec()) {
            return Ok(());
        }
        std::mem::take(&mut *list.borrow_vec_mut())
    } else {
        if !object.downcast_ref::<PyTuple>().is_some_and(|tuple| is_ordered(tuple.as_slice())) {
            return Ok(());
        }
        #[expect(unsafe_code, reason = "a tuple gives its elements away in no other way")]
        // SAFETY: the object is dying, and both references that are left are the caller's, which does not
        // read elements.
        unsafe {
            object.gc_clear()
        }
    };
    // CPython's struct sequences, which say how many fields they have, drop the first element first.
    if object.class().has_attr(vm.ctx.intern_str("n_fields")) {
        items.reverse();
    }
    DEPTH.set(DEPTH.get() + 1);
    while items.pop().is_some() {}
    DEPTH.set(DEPTH.get().saturating_sub(1));
    Ok(())
}

/// `list.clear()`.
fn clear_list(list: PyRef<PyList>) {
    let mut items = std::mem::take(&mut *list.borrow_vec_mut());
    while items.pop().is_some() {}
}

/// `xs[index] = value` and `del xs[index]` of a list.
fn assign_or_delete(
    list: PyMapping<'_>,
    index: &PyObject,
    value: Option<PyObjectRef>,
    vm: &VirtualMachine,
) -> PyResult<()> {
    if value.is_none()
        && let (Some(list), Some(slice)) =
            (list.obj.downcast_ref::<PyList>(), index.downcast_ref::<PySlice>())
    {
        let slice = SaturatedSlice::with_slice(slice, vm)?;
        let mut removed = remove(&mut list.borrow_vec_mut(), slice);
        // CPython deletes a range from its end, and the items of a slice with a step other than 1 from the
        // beginning.
        if removed.is_adjacent {
            while removed.items.pop().is_some() {}
        }
        drop(removed.items);
        return Ok(());
    }
    match LIST_ASSIGN.get() {
        Some(assign) => assign(list, index, value, vm),
        None => Ok(()),
    }
}

/// The items that a slice removed from a list.
struct RemovedItems {
    items: Vec<PyObjectRef>,
    /// Whether the slice's step is 1.
    is_adjacent: bool,
}

/// Removes the items that a slice selects from a list; the removed items keep their order.
fn remove(items: &mut Vec<PyObjectRef>, slice: SaturatedSlice) -> RemovedItems {
    let (range, step, count) = slice.adjust_indices(items.len());
    let is_adjacent = step == 1;
    if is_adjacent {
        return RemovedItems { items: items.drain(range).collect(), is_adjacent };
    }
    let width = step.unsigned_abs();
    let first =
        if step < 0 { range.end.saturating_sub(1 + count.saturating_sub(1) * width) } else { range.start };
    let is_removed = |place: usize| {
        place >= first && (place - first).is_multiple_of(width) && (place - first) / width < count
    };
    let (mut removed, mut kept) = (Vec::with_capacity(count), Vec::with_capacity(items.len()));
    for (place, item) in std::mem::take(items).into_iter().enumerate() {
        if is_removed(place) { removed.push(item) } else { kept.push(item) }
    }
    *items = kept;
    RemovedItems { items: removed, is_adjacent }
}

/// `generator.close()`.
fn close_generator(generator: PyRef<PyGenerator>, vm: &VirtualMachine) -> PyResult {
    let coroutine = generator.as_coro();
    if coroutine.suspended() && !is_inside_try(&generator) {
        coroutine.closed.store(true);
        return Ok(vm.ctx.none());
    }
    coroutine.close(generator.as_ref(), vm)
}

/// Whether an exception at the `yield` where a generator waits would run any of the generator's code.
fn is_inside_try(generator: &PyGenerator) -> bool {
    let frame = generator.as_coro().frame();
    if frame.yield_from_target().is_some() {
        return true;
    }
    // `lasti` is the instruction that comes next.
    let Some(entry) = find_exception_handler(&frame.code.exceptiontable, frame.lasti().saturating_sub(1))
    else {
        return false;
    };
    let handler = usize::try_from(entry.target).ok().and_then(|target| frame.code.instructions.get(target));
    // The outermost handler of every generator turns StopIteration into RuntimeError.
    !handler.is_some_and(|unit| matches!(unit.op, Instruction::CallIntrinsic1 { .. }))
}

fn keep_last(class: &'static Py<PyType>, kind: TupleIterator, ours: NextFunction) {
    let mut all = NEXT.get();
    // Types live as long as the thread: an earlier run may have been here.
    if let Some(place) = all.get_mut(kind as usize)
        && place.is_none()
    {
        *place = class.slots.iternext.load();
        NEXT.set(all);
    }
    class.slots.iternext.store(Some(ours));
    class.slots.del.store(Some(forget_last));
}

fn forget_last(object: &PyObject, _vm: &VirtualMachine) -> PyResult<()> {
    let kept = LAST.with(|last| last.try_borrow_mut().ok()?.remove(&address(object)));
    drop(kept);
    Ok(())
}

fn address(object: &PyObject) -> usize {
    object.as_raw().addr()
}

/// A turn of an iterator. CPython uses the tuple of the turn before again if nothing else refers to it, so
/// the tuple and its items live until the next turn.
fn next(object: &PyObject, kind: TupleIterator, vm: &VirtualMachine) -> PyResult<PyIterReturn> {
    let Some(Some(next)) = NEXT.get().get(kind as usize).copied() else {
        return Ok(PyIterReturn::StopIteration(None));
    };
    let result = next(object, vm)?;
    if let PyIterReturn::Return(tuple) = &result {
        let before = LAST.with(|last| {
            let mut last = last.try_borrow_mut().ok()?;
            let place = last.entry(address(object));
            match place {
                std::collections::hash_map::Entry::Occupied(mut entry) if entry.get().strong_count() == 1 => {
                    Some(entry.insert(tuple.clone()))
                }
                std::collections::hash_map::Entry::Occupied(_) => None,
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(tuple.clone());
                    None
                }
            }
        });
        // Dropped outside of the borrow: an object that dies here may itself be an iterator.
        drop(before);
    }
    Ok(result)
}
