//! The pointers that C callers hand over, as types. Each type says once what its caller promises, so that
//! entry points are plain functions.
#![expect(unsafe_code, reason = "pointers of C callers are read and written")]

use std::ffi::{CStr, c_char, c_int, c_void};

/// The place where a C caller wants a value; null where the caller wants none.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Writes the value where the caller wants it; false where the caller wants none.
    pub(crate) fn put(self, value: T) -> bool {
        if self.0.is_null() {
            return false;
        }
        // SAFETY: the caller of the entry point hands over null or a place for a `T`, which need not be
        // aligned to more than C does.
        unsafe { self.0.write_unaligned(value) };
        true
    }

    /// Writes the value at a place of the caller's array.
    pub(crate) fn put_at(self, place: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: the entry point has checked the place against the length that its caller gave.
            unsafe { self.0.add(place).write_unaligned(value) };
        }
    }

    /// Whether the caller gave no place for the value.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The place at an address that the caller gave as a number.
    ///
    /// # Safety
    ///
    /// The address is 0, or that of as many values as are written and read.
    pub(crate) unsafe fn at(address: u64) -> Self {
        Self(address as *mut T)
    }

    /// The places of a test's list, in the form of a caller's place.
    #[cfg(test)]
    pub(crate) fn of_list(places: &mut [T]) -> Self {
        Self(places.as_mut_ptr())
    }

    /// A place of this library, in the form of a caller's place.
    pub(crate) fn of(place: &mut T) -> Self {
        Self(place)
    }

    /// The place that the caller gave as bytes.
    pub(crate) fn from_bytes(bytes: Out<u8>) -> Self {
        Self(bytes.0.cast())
    }
}

impl<T: Copy> Out<T> {
    /// The value that the caller has at the place; `None` for null.
    pub(crate) fn get(self) -> Option<T> {
        // SAFETY: as for `put`; where a value is read, the caller has set it.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// The value that the caller has at a place of its array; `None` for null.
    pub(crate) fn get_at(self, place: usize) -> Option<T> {
        // SAFETY: as for `put_at`; where a value is read, the caller has set it.
        (!self.0.is_null()).then(|| unsafe { self.0.add(place).read_unaligned() })
    }
}

/// Values of a caller, or null.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}

#[cfg(test)]
impl<T> In<T> {
    /// The values of a test, in the form of a caller's values.
    pub(crate) fn of(values: &[T]) -> Self {
        Self(values.as_ptr())
    }

    /// No values.
    pub(crate) fn null() -> Self {
        Self(std::ptr::null())
    }
}

impl<T: Copy> In<T> {
    /// The first value of the caller's array; `None` for null.
    pub(crate) fn get(self) -> Option<T> {
        self.at(0)
    }

    /// The value at a place of the caller's array; `None` for null.
    pub(crate) fn at(self, place: usize) -> Option<T> {
        // SAFETY: the entry point asks for places within the length that its caller gave.
        (!self.0.is_null()).then(|| unsafe { self.0.add(place).read_unaligned() })
    }

    /// All values of the caller's array.
    pub(crate) fn list(self, count: usize) -> Vec<T> {
        (0..count).map_while(|place| self.at(place)).collect()
    }
}

/// A text of a caller, or null.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The text; `None` for null.
    pub(crate) fn get(self) -> Option<&'static CStr> {
        // SAFETY: callers hand over names that are constants of their library, or that are read before the
        // call ends.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}

/// A constant text for a caller.
pub(crate) fn text(value: &'static CStr) -> *const c_char {
    value.as_ptr()
}

/// Writes as much of the text as the caller has room for, and a zero.
pub(crate) fn put_text(to: Out<u8>, room: usize, value: &str) {
    let Some(room) = room.checked_sub(1) else { return };
    let bytes = value.as_bytes();
    let count = bytes.len().min(room);
    for (place, byte) in bytes.iter().take(count).enumerate() {
        to.put_at(place, *byte);
    }
    to.put_at(count, 0);
}

/// The argument with which a caller wants its function to be called.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Argument(*mut c_void);

/// A function of a caller with its own argument, or null.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct HostFunction(Option<unsafe extern "C" fn(Argument)>);

impl HostFunction {
    pub(crate) fn call(self, argument: Argument) {
        // SAFETY: the caller wants this call with this argument.
        self.0.into_iter().for_each(|function| unsafe { function(argument) });
    }
}

/// A function of a caller that is called when a stream's work is done (`cudaStreamCallback_t`), or null.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct StreamCallback(Option<unsafe extern "C" fn(usize, c_int, Argument)>);

impl StreamCallback {
    /// Calls back with the stream and no error.
    pub(crate) fn call(self, stream: usize, argument: Argument) {
        // SAFETY: the caller wants this call with these arguments.
        self.0.into_iter().for_each(|function| unsafe { function(stream, 0, argument) });
    }
}

/// The three sizes of a grid or a block (`dim3`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Dim3 {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

/// Entry points: exported under their own names, each call listed in the trace. `find` gives an entry point's
/// address by its name.
macro_rules! entries {
    ($( $(#[$meta:meta])* fn $name:ident ( $($arg:ident : $type:ty),* $(,)? ) -> $result:ty $body:block )*) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            extern "C" fn $name($($arg: $type),*) -> $result {
                $crate::report::report_call(stringify!($name));
                $body
            }
        )*

        /// The address of an entry point; `None` where the library has none of this name.
        #[allow(dead_code, reason = "only some libraries are asked by name")]
        pub(crate) fn find(name: &str) -> Option<*const std::ffi::c_void> {
            match name {
                $( stringify!($name) => Some($name as *const std::ffi::c_void), )*
                _ => None,
            }
        }
    };
}

/// Entry points that differ in the type of the elements alone: one body, the same arguments, and a status as
/// the result.
macro_rules! typed_entries {
    ($( [$($name:ident)*] $arguments:tt $body:block )*) => {
        $( typed_entries!(@each [$($name)*] $arguments $body); )*
    };
    (@each [] $arguments:tt $body:block) => {};
    (@each [$name:ident $($rest:ident)*] ($($argument:ident : $type:ty),* $(,)?) $body:block) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            $crate::report::report_call(stringify!($name));
            $body
        }
        typed_entries!(@each [$($rest)*] ($($argument: $type),*) $body);
    };
}

/// Entry points that only compute on the device, or only set values on which no size depends. They succeed,
/// and the bytes that they would write are unknown. A caller's arguments are not read, which both ABIs of the
/// supported hosts (System V x86-64, AAPCS64) allow.
macro_rules! computing {
    ($( $name:ident )*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> std::ffi::c_int {
                $crate::report::report_call(stringify!($name));
                $crate::values::note_computation();
                0
            }
        )*
    };
}

/// Entry points that create and destroy objects, in pairs, over the module's functions that give out a handle
/// and that remove it. As for `computing`, a caller's further arguments are not read.
macro_rules! objects {
    ($( $add:ident($object:expr), $remove:ident($($kind:expr)?): $($create:ident $destroy:ident)*; )*) => {
        $( objects!(@each $add($object), $remove($($kind)?): $($create $destroy)*); )*
    };
    (@each $add:ident($object:expr), $remove:ident($($kind:expr)?):) => {};
    (@each $add:ident($object:expr), $remove:ident($($kind:expr)?): $create:ident $destroy:ident $($rest:ident)*) => {
        #[unsafe(no_mangle)]
        extern "C" fn $create(to: $crate::abi::Out<usize>) -> std::ffi::c_int {
            $crate::report::report_call(stringify!($create));
            $add(to, $object)
        }

        #[unsafe(no_mangle)]
        extern "C" fn $destroy(handle: usize) -> std::ffi::c_int {
            $crate::report::report_call(stringify!($destroy));
            $remove(handle $(, $kind)?)
        }

        objects!(@each $add($object), $remove($($kind)?): $($rest)*);
    };
}

/// Entry points that set a value of a handle or descriptor on which no size depends.
macro_rules! setting {
    ($( $name:ident )*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> std::ffi::c_int {
                $crate::report::report_call(stringify!($name));
                0
            }
        )*
    };
}
