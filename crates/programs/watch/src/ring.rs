//! A bounded queue from one thread to one other, whose writer never waits: a full queue counts what it loses.
#![expect(unsafe_code, reason = "places are written by one thread and read by another")]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The shared part.
struct Shared<T> {
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// How many values were written.
    written: AtomicU64,
    /// How many values were read.
    read: AtomicU64,
    /// How many values found no place.
    lost: AtomicU64,
}

// SAFETY: a place is written only between `read + capacity` and `written`, by the one writer, and read only
// between `read` and `written`, by the one reader. `T: Copy` has nothing to drop.
unsafe impl<T: Copy + Send> Sync for Shared<T> {}

/// The writing end.
pub(crate) struct Writer<T>(Arc<Shared<T>>);

/// The reading end.
pub(crate) struct Reader<T>(Arc<Shared<T>>);

/// Counts what was written, from any thread.
pub(crate) struct Counter<T>(Arc<Shared<T>>);

/// A queue with places for so many values, or for the next power of two.
pub(crate) fn ring<T: Copy + Send>(capacity: usize) -> (Writer<T>, Reader<T>) {
    let places = (0..capacity.next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
    let [written, read, lost] = [0; 3].map(AtomicU64::new);
    let shared = Arc::new(Shared { places, written, read, lost });
    (Writer(shared.clone()), Reader(shared))
}

impl<T> Shared<T> {
    fn place(&self, position: u64) -> *mut MaybeUninit<T> {
        // A power of two: a division would cost as much as all the rest.
        let index = usize::try_from(position).unwrap_or(0) & (self.places.len() - 1);
        self.places.get(index).map_or(std::ptr::null_mut(), UnsafeCell::get)
    }
}

impl<T: Copy> Writer<T> {
    /// Adds a value, or counts it as lost.
    pub(crate) fn push(&mut self, value: T) {
        let shared = &*self.0;
        let written = shared.written.load(Ordering::Relaxed);
        if written - shared.read.load(Ordering::Acquire) >= shared.places.len() as u64 {
            shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // SAFETY: the place is free, and only this writer writes (`&mut self`).
        unsafe { (*shared.place(written)).write(value) };
        shared.written.store(written + 1, Ordering::Release);
    }

    /// Counts what this end writes.
    pub(crate) fn counter(&self) -> Counter<T> {
        Counter(self.0.clone())
    }
}

impl<T> Counter<T> {
    /// How many values were written so far.
    pub(crate) fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    /// How many values were lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Counts a value as lost.
    pub(crate) fn lose(&self) {
        self.0.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl<T: Copy> Reader<T> {
    /// How many values were written so far.
    pub(crate) fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    /// How many values were lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Moves values up to the position `end` to `out`, at most `count`.
    pub(crate) fn take(&mut self, end: u64, count: usize, out: &mut Vec<T>) {
        let shared = &*self.0;
        let read = shared.read.load(Ordering::Relaxed);
        let end = end.min(self.written()).min(read + count as u64);
        for position in read..end {
            // SAFETY: the place was written before `written` was raised, and is not written again before `read`
            // is raised.
            out.push(unsafe { (*shared.place(position)).assume_init() });
        }
        shared.read.store(end.max(read), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_counts_what_it_loses_and_goes_on() {
        let (mut writer, mut reader) = ring(4);
        (0..6).for_each(|value| writer.push(value));
        let mut out = Vec::new();
        reader.take(3, 10, &mut out);
        assert_eq!((out.as_slice(), reader.lost()), (&[0, 1, 2][..], 2));
        writer.push(9);
        reader.take(u64::MAX, 10, &mut out);
        assert_eq!((out.as_slice(), reader.written()), (&[0, 1, 2, 3, 9][..], 5));
    }

    #[test]
    fn two_threads_see_each_value_once_in_order() {
        const COUNT: u64 = 200_000;
        let (mut writer, mut reader) = ring(64);
        let thread = std::thread::spawn(move || (0..COUNT).for_each(|value| writer.push(value)));
        let mut out = Vec::new();
        while !thread.is_finished() || reader.written() > out.len() as u64 {
            reader.take(u64::MAX, 16, &mut out);
        }
        thread.join().unwrap();
        assert_eq!(out.len() as u64 + reader.lost(), COUNT);
        assert!(out.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
