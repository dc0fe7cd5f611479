//! Large shared values. Two values are equal if they are the same object, so that a comparison costs nothing.

use std::ops::Deref;
use std::sync::Arc;

/// A shared value. Two values are equal if they point to the same object.
#[derive(Debug)]
pub(crate) struct PtrEq<T>(Arc<T>);

impl<T> PtrEq<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Clone for PtrEq<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for PtrEq<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Deref for PtrEq<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
