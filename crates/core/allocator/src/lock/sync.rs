//! The standard library's types, or those of loom, which runs a test in every order that the threads of it
//! allow.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU8, AtomicUsize},
    sync::{Condvar, Mutex, MutexGuard},
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU8, AtomicUsize},
    sync::{Condvar, Mutex, MutexGuard},
    thread::yield_now,
};

#[cfg(not(loom))]
pub(crate) use cell::UnsafeCell;

#[cfg(not(loom))]
mod cell {
    /// The standard library's cell in the words of loom's, which sees two threads inside at once.
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, act: impl FnOnce(*mut T) -> R) -> R {
            act(self.0.get())
        }
    }
}
