//! The interpreter of this process, if there is one: calls of its functions, and the line of the program that
//! the calling thread runs.
#![expect(unsafe_code, reason = "Python's C API is called")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) use blockyard_record::is_library_file as is_library;

pub(crate) use blockyard_hooks::python_api::Pending;
use blockyard_hooks::python_api::{Api, Object, api};
use blockyard_hooks::variables;

/// A line of a file; empty and 0 where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PythonLine {
    pub(crate) file: String,
    pub(crate) line: i32,
}

/// An argument of a Python function.
#[derive(Debug)]
pub(crate) enum Value {
    None,
    Integer(i64),
    Number(f64),
    Boolean(bool),
    Text(String),
    Tuple(Vec<Value>),
    List(Vec<Value>),
    /// An object that exists already.
    Object(NonNull<c_void>),
}

/// How many threads use Python through this library now.
static USERS: AtomicUsize = AtomicUsize::new(0);
/// Whether Python is about to end: no thread may begin to use it.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// How long the end waits for threads that use Python, in milliseconds.
const MAX_WAIT: u64 = 2_000;

/// One thread that uses Python. Python ends a thread that asks for its lock while Python itself ends, which
/// C++ does not survive.
struct PythonUse;

impl PythonUse {
    fn new() -> Option<Self> {
        USERS.fetch_add(1, Ordering::SeqCst);
        let user = Self;
        (!IS_ENDING.load(Ordering::SeqCst)).then_some(user)
    }
}

impl Drop for PythonUse {
    fn drop(&mut self) {
        USERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Python is about to end: waits until no thread uses it. The caller does not hold Python's lock.
#[unsafe(no_mangle)]
extern "C" fn blockyard_python_ends() {
    IS_ENDING.store(true, Ordering::SeqCst);
    for _ in 0..MAX_WAIT {
        if USERS.load(Ordering::SeqCst) == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The process's Python, whose C API is known.
#[derive(Clone, Copy)]
pub(crate) struct Interpreter(&'static Api);

/// The process's Python, if it runs.
pub(crate) fn interpreter() -> Option<Interpreter> {
    let api = api()?;
    // SAFETY: the function may be called from any thread.
    (unsafe { (api.is_initialized)() } != 0).then_some(Interpreter(api))
}

// Each function but `locked` is for a thread that has Python's lock.
impl Interpreter {
    /// Acts with Python's lock; not at all once Python is about to end. No lock of this library may be held.
    ///
    /// The exception that the thread has pending is set aside and put back after: an operator may end because
    /// a hook in Python raised (activation checkpointing stops this way), and PyTorch leaves the exception
    /// with the thread while observers see the operator end.
    ///
    /// Python's garbage collector does not begin meanwhile: what we make for a moment counts for its
    /// threshold, and tensors in cycles would be freed sooner than on a GPU.
    pub(crate) fn locked<T>(self, act: impl FnOnce() -> T) -> Option<T> {
        let _user = PythonUse::new()?;
        let [mut kind, mut value, mut traceback] = [std::ptr::null_mut(); 3];
        // SAFETY: Python is initialized; the places are those of three references, which are ours until they
        // are given back.
        let state = unsafe {
            let state = (self.0.ensure)();
            (self.0.take_error)(&raw mut kind, &raw mut value, &raw mut traceback);
            state
        };
        // SAFETY: the calling thread has Python's lock.
        let collects = unsafe { (self.0.stop_collector)() } != 0;
        let result = act();
        if collects {
            // SAFETY: as above.
            unsafe { (self.0.start_collector)() };
        }
        // SAFETY: the references are given back, and the state is the one that was just given.
        unsafe {
            (self.0.set_error)(kind, value, traceback);
            (self.0.release)(state);
        }
        Some(result)
    }

    /// Has Python call a function on its main thread, between two operations. Python's lock is not needed.
    pub(crate) fn call_soon(self, function: Pending) {
        // SAFETY: the function may be called from any thread. Where too many calls wait, this one is left out.
        unsafe { (self.0.pending)(function, std::ptr::null_mut()) };
    }

    /// Adds a reference to an object.
    pub(crate) fn add(self, object: NonNull<c_void>) {
        // SAFETY: the object is alive.
        unsafe { (self.0.add_reference)(object.as_ptr()) };
    }

    /// Drops a reference of the caller's to an object.
    pub(crate) fn drop(self, object: NonNull<c_void>) {
        // SAFETY: the caller gives a reference that it owns.
        unsafe { (self.0.drop_reference)(object.as_ptr()) };
    }

    /// A new reference to an object of this value.
    fn object(self, value: &Value) -> Option<NonNull<c_void>> {
        let api = self.0;
        // SAFETY: the functions make new objects of plain values; the two that fill take the reference over.
        let made = unsafe {
            match value {
                Value::None => {
                    let none = api.none as Object;
                    (api.add_reference)(none);
                    none
                }
                Value::Integer(value) => (api.integer)(*value),
                Value::Number(value) => (api.number)(*value),
                Value::Boolean(value) => (api.boolean)((*value).into()),
                Value::Text(text) => (api.new_text)(text.as_ptr().cast(), isize::try_from(text.len()).ok()?),
                Value::Object(object) => {
                    (api.add_reference)(object.as_ptr());
                    object.as_ptr()
                }
                Value::Tuple(items) => {
                    return self.filled(items, (api.tuple)(items.len().cast_signed()), api.set_in_tuple);
                }
                Value::List(items) => {
                    return self.filled(items, (api.list)(items.len().cast_signed()), api.set_in_list);
                }
            }
        };
        NonNull::new(made)
    }

    fn filled(
        self,
        items: &[Value],
        made: Object,
        set: unsafe extern "C" fn(Object, isize, Object) -> c_int,
    ) -> Option<NonNull<c_void>> {
        let made = NonNull::new(made)?;
        for (place, item) in items.iter().enumerate() {
            let Some(item) = self.object(item) else {
                self.drop(made);
                return None;
            };
            // SAFETY: the list has this place; the reference is handed over.
            unsafe { set(made.as_ptr(), place.cast_signed(), item.as_ptr()) };
        }
        Some(made)
    }

    /// Calls a function and returns its result. `None` where the function returns Python's `None` or fails; a
    /// failure is printed where `STANDIN_DEBUG` is set.
    pub(crate) fn call(self, function: NonNull<c_void>, arguments: &[Value]) -> Option<NonNull<c_void>> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(Value::Object(self.object(argument)?));
        }
        // SAFETY: a new tuple of as many places.
        let tuple =
            self.filled(&values, unsafe { (self.0.tuple)(values.len().cast_signed()) }, self.0.set_in_tuple);
        for value in values {
            if let Value::Object(object) = value {
                self.drop(object);
            }
        }
        let tuple = tuple?;
        // SAFETY: both are alive.
        let result = unsafe { (self.0.call)(function.as_ptr(), tuple.as_ptr()) };
        self.drop(tuple);
        let Some(result) = NonNull::new(result) else {
            self.clear_error();
            return None;
        };
        if result.as_ptr() as usize == self.0.none {
            self.drop(result);
            return None;
        }
        Some(result)
    }

    fn clear_error(self) {
        // SAFETY: the calling thread has Python's lock.
        unsafe {
            if (self.0.error)().is_null() {
                return;
            }
            if std::env::var_os(variables::DEBUG).is_some() {
                (self.0.print_error)();
            }
            (self.0.clear_error)();
        }
    }

    /// A new reference to an item of a sequence.
    pub(crate) fn item(self, sequence: NonNull<c_void>, place: usize) -> Option<NonNull<c_void>> {
        // SAFETY: the sequence is alive.
        let found = NonNull::new(unsafe { (self.0.item)(sequence.as_ptr(), place.cast_signed()) });
        if found.is_none() {
            self.clear_error();
        }
        found
    }

    /// An item of a sequence as an integer; `None` where the item is missing or is not one.
    pub(crate) fn item_integer(self, sequence: NonNull<c_void>, place: usize) -> Option<i64> {
        let item = self.item(sequence, place)?;
        if item.as_ptr() as usize == self.0.none {
            self.drop(item);
            return None;
        }
        // SAFETY: the item is alive.
        let value = unsafe { (self.0.as_integer)(item.as_ptr()) };
        self.drop(item);
        // SAFETY: the calling thread has Python's lock.
        let has_failed = value == -1 && !unsafe { (self.0.error)() }.is_null();
        if has_failed {
            self.clear_error();
            return None;
        }
        Some(value)
    }

    /// The characters of a text.
    pub(crate) fn text(self, object: NonNull<c_void>) -> Option<String> {
        // SAFETY: the object is alive, and the characters live as long.
        unsafe {
            let characters = (self.0.text)(object.as_ptr());
            if characters.is_null() {
                self.clear_error();
                return None;
            }
            Some(CStr::from_ptr(characters).to_string_lossy().into_owned())
        }
    }
}

/// The innermost line of the program's own files, or the innermost of all where a library runs alone. No lock
/// of this library may be held.
pub(crate) fn place() -> PythonLine {
    let Some(python) = interpreter() else { return PythonLine::default() };
    // SAFETY: the function may be called from any thread. A thread that Python does not know has no frames.
    if unsafe { (python.0.thread)() }.is_null() {
        return PythonLine::default();
    }
    python.locked(|| innermost(python.0)).unwrap_or_default()
}

fn innermost(api: &Api) -> PythonLine {
    let mut first = None;
    // SAFETY: the calling thread has Python's lock; the frame is borrowed and gets a reference.
    let mut frame = unsafe {
        let frame = (api.frame)();
        if !frame.is_null() {
            (api.add_reference)(frame);
        }
        frame
    };
    while !frame.is_null() {
        let place = place_of(api, frame);
        if !is_library(&place.file) {
            // SAFETY: the frame has a reference of ours.
            unsafe { (api.drop_reference)(frame) };
            return place;
        }
        first.get_or_insert(place);
        // SAFETY: as above; the function gives a new reference or null.
        frame = unsafe {
            let back = (api.back)(frame);
            (api.drop_reference)(frame);
            back
        };
    }
    first.unwrap_or_default()
}

fn place_of(api: &Api, frame: Object) -> PythonLine {
    // SAFETY: the frame is alive and the lock is held; each new reference is dropped once.
    unsafe {
        let line = (api.line)(frame);
        let code = (api.code)(frame);
        let file = api.text_of(code, c"co_filename");
        (api.drop_reference)(code);
        PythonLine { file, line }
    }
}
