//! Handles that were given out, each with its object. A handle that was not given out has no object.

use std::collections::BTreeMap;

/// Objects by handle. A handle is a number that is not an address of the process, so that a caller that reads
/// through it fails at once.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    next: usize,
    objects: BTreeMap<usize, T>,
}

impl<T> Handles<T> {
    /// Handles above `first`, which no other kind of handle uses.
    pub(crate) const fn above(first: usize) -> Self {
        Self { next: first, objects: BTreeMap::new() }
    }

    /// Keeps an object and gives out a handle for it.
    pub(crate) fn add(&mut self, object: T) -> usize {
        self.next = self.next.saturating_add(16);
        self.objects.insert(self.next, object);
        self.next
    }

    /// The object of a handle; `None` for a handle that was not given out.
    pub(crate) fn get(&self, handle: usize) -> Option<&T> {
        self.objects.get(&handle)
    }

    /// The object of a handle, to be changed; `None` for a handle that was not given out.
    pub(crate) fn get_mut(&mut self, handle: usize) -> Option<&mut T> {
        self.objects.get_mut(&handle)
    }

    /// Removes the object of a handle; `None` for a handle that was not given out.
    pub(crate) fn remove(&mut self, handle: usize) -> Option<T> {
        self.objects.remove(&handle)
    }

    /// All objects, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.objects.values_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::Handles;

    #[test]
    fn a_handle_that_was_not_given_out_stands_for_nothing() {
        let mut handles = Handles::above(0x1000);
        let first = handles.add("first");
        let second = handles.add("second");
        assert_eq!(handles.get(first), Some(&"first"));
        assert_eq!(handles.remove(first), Some("first"));
        assert_eq!(handles.remove(first), None);
        assert_eq!(handles.get(first), None);
        assert_eq!(handles.get_mut(second), Some(&mut "second"));
        assert_ne!(handles.add("third"), first);
    }
}
