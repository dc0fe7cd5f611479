//! Python objects that native code needs: the classes that `lib/torch` registers, and one object for each
//! type.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rustpython_vm::PyObjectRef;

thread_local! {
    static OBJECTS: RefCell<BTreeMap<String, PyObjectRef>> = const { RefCell::new(BTreeMap::new()) };
}

/// Keeps an object under a name.
pub(crate) fn set(name: &str, object: PyObjectRef) {
    OBJECTS.with(|objects| objects.borrow_mut().insert(name.to_owned(), object));
}

/// The object of that name; `None` if none was registered.
pub(crate) fn get(name: &str) -> Option<PyObjectRef> {
    OBJECTS.with(|objects| objects.borrow().get(name).cloned())
}

/// Drops all objects, before the interpreter ends.
pub(crate) fn forget() {
    let objects = OBJECTS.with(RefCell::take);
    drop(objects);
}
