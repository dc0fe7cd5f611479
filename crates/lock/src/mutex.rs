//! The lock.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use spin::mutex::{SpinMutex, SpinMutexGuard};
use spin::relax::Yield;

use crate::{barrier, thread};

/// So often in a row one thread takes the lock before it becomes the owner.
const ENOUGH: u32 = 64;
/// After many ownerships that were ended: a barrier costs about as much as a hundred exchanges.
const ENOUGH_AT_MOST: u32 = 8192;
const NOBODY: usize = 0;
/// So many threads may become owners in the life of a lock. Numbers of threads are multiples of this.
const PLACES: usize = 8;

/// Holds a value for one thread at a time.
///
/// Who waits gives the processor away between tries. A thread that takes the lock while it holds it waits forever. A panic while it
/// is held gives it back.
pub struct BiasedMutex<T> {
    /// The number of the thread that may go in without asking the others, and in its low bits the number of its place.
    owner: AtomicUsize,
    /// Whether the owner is inside, with a place for each thread that is or was the owner: one that was may be about to go in
    /// and find out only then, and must not meddle with the place of another.
    is_inside: [AtomicBool; PLACES],
    /// Everybody else holds this while inside.
    others: SpinMutex<Others, Yield>,
    value: UnsafeCell<T>,
}

/// What is known of the threads that took the lock the usual way.
#[derive(Debug)]
struct Others {
    last: usize,
    /// So often the last one took it in a row.
    streak: u32,
    /// That often makes it the owner.
    enough: u32,
    /// The most that `enough` grows to.
    enough_at_most: u32,
    /// Whose the places are.
    places: [usize; PLACES],
}

/// The value in the hands of one thread, until this is dropped.
#[must_use = "the lock is given back when this is dropped"]
pub struct BiasedGuard<'a, T> {
    entry: Entry<'a>,
    mutex: &'a BiasedMutex<T>,
    /// It stays with its thread, which may become the owner when it is dropped.
    _stays: PhantomData<*const ()>,
}

// SAFETY: the lock lets one thread at a time reach the value, so that threads only ever hand it to each other.
unsafe impl<T: Send> Sync for BiasedMutex<T> {}

// SAFETY: what is shared through a shared guard is a shared value.
unsafe impl<T: Sync> Sync for BiasedGuard<'_, T> {}

impl<T> BiasedMutex<T> {
    /// A lock that nobody holds.
    pub fn new(value: T) -> Self {
        Self::with_patience(value, ENOUGH, ENOUGH_AT_MOST)
    }

    fn with_patience(value: T, enough: u32, enough_at_most: u32) -> Self {
        let places = [NOBODY; PLACES];
        let others = SpinMutex::new(Others { last: NOBODY, streak: 0, enough, enough_at_most, places });
        let is_inside = [const { AtomicBool::new(false) }; PLACES];
        Self { owner: AtomicUsize::new(NOBODY), is_inside, others, value: UnsafeCell::new(value) }
    }

    /// Waits until no other thread holds the value.
    #[inline]
    pub fn lock(&self) -> BiasedGuard<'_, T> {
        let me = thread::current();
        match self.enter_as_owner(me) {
            Some(leaves) => BiasedGuard { entry: Entry::Owner(leaves), mutex: self, _stays: PhantomData },
            None => self.lock_among_others(me),
        }
    }

    /// Does something with the value once no other thread holds it.
    ///
    /// The same as with [`BiasedMutex::lock`], in fewer steps for the owner.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let me = thread::current();
        let Some(_leaves) = self.enter_as_owner(me) else {
            return self.act_among_others(me, act);
        };
        // SAFETY: the owner is inside, so nobody else is.
        act(unsafe { &mut *self.value.get() })
    }

    #[cold]
    #[inline(never)]
    fn act_among_others<R>(&self, me: usize, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.lock_among_others(me))
    }

    #[inline]
    fn enter_as_owner(&self, me: usize) -> Option<Leaves<'_>> {
        let owner = self.owner.load(Ordering::Relaxed);
        let is_inside = &self.is_inside[owner % PLACES];
        // The second load says that this thread does not hold the lock already; and should a thread that ended have had this
        // thread's number, that what it did comes before.
        if owner & !(PLACES - 1) != me || is_inside.load(Ordering::Acquire) {
            return None;
        }
        is_inside.store(true, Ordering::Relaxed);
        let leaves = Leaves(is_inside);
        barrier::light();
        (self.owner.load(Ordering::Relaxed) == owner).then_some(leaves)
    }

    #[inline(never)]
    fn lock_among_others(&self, me: usize) -> BiasedGuard<'_, T> {
        let mut others = self.others.lock();
        // Only who holds `others` changes the owner.
        let owner = self.owner.load(Ordering::Relaxed);
        if owner != NOBODY {
            self.owner.store(NOBODY, Ordering::Relaxed);
            barrier::heavy();
            while self.is_inside[owner % PLACES].load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            others.enough = (others.enough * 2).min(others.enough_at_most);
        }
        if others.last == me {
            others.streak = others.streak.saturating_add(1);
        } else {
            others.last = me;
            others.streak = 0;
        }
        BiasedGuard { entry: Entry::Other(others), mutex: self, _stays: PhantomData }
    }
}

/// How a thread came in.
enum Entry<'a> {
    Owner(#[expect(dead_code, reason = "it is dropped")] Leaves<'a>),
    Other(SpinMutexGuard<'a, Others>),
}

/// Lets the owner out, also by a panic.
struct Leaves<'a>(&'a AtomicBool);

impl Drop for Leaves<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T> Deref for BiasedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for BiasedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one, and is not shared.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for BiasedGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Entry::Other(others) = &mut self.entry {
            self.mutex.choose_owner(others);
        }
    }
}

impl<T> BiasedMutex<T> {
    /// Makes the thread that holds the lock the owner, if it took it often enough.
    #[cold]
    #[inline(never)]
    fn choose_owner(&self, others: &mut Others) {
        if others.streak < others.enough || !others.last.is_multiple_of(PLACES) || !barrier::is_available() {
            return;
        }
        others.streak = 0;
        let mut places = others.places.iter().enumerate();
        if let Some((number, _)) = places.find(|(_, owner)| **owner == others.last || **owner == NOBODY) {
            others.places[number] = others.last;
            self.owner.store(others.last | number, Ordering::Relaxed);
        }
    }
}

impl<T> fmt::Debug for BiasedMutex<T> {
    /// Without the value, which somebody may hold.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BiasedMutex").finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for BiasedGuard<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two numbers that are equal whenever nobody is inside.
    #[derive(Debug, Default)]
    struct Pair {
        first: u64,
        second: u64,
    }

    fn step(mutex: &BiasedMutex<Pair>) {
        mutex.with(|pair| {
            assert_eq!(pair.first, pair.second, "somebody else is inside");
            pair.first += 1;
            std::hint::black_box(&mut *pair);
            pair.second += 1;
        });
    }

    fn is_owned(mutex: &BiasedMutex<Pair>) -> bool {
        mutex.owner.load(Ordering::Relaxed) & !(PLACES - 1) == thread::current()
    }

    #[test]
    fn who_takes_it_again_and_again_becomes_the_owner_until_another_comes() {
        let mutex = BiasedMutex::new(Pair::default());
        for _ in 0..=ENOUGH + 1 {
            step(&mutex);
        }
        assert_eq!(is_owned(&mutex), barrier::is_available());
        step(&mutex);
        std::thread::scope(|scope| {
            scope.spawn(|| step(&mutex));
        });
        assert!(!is_owned(&mutex));
        step(&mutex);
        assert_eq!(mutex.lock().second, u64::from(ENOUGH) + 5);
    }

    /// As [`step`], and long inside: another thread that came in would be seen.
    fn long_step(mutex: &BiasedMutex<Pair>, turns: u64) {
        let mut pair = mutex.lock();
        assert_eq!(pair.first, pair.second, "somebody else is inside");
        pair.first += 1;
        for turn in 0..turns {
            std::hint::black_box(turn);
        }
        pair.second += 1;
        drop(pair);
        step(mutex);
    }

    #[test]
    fn one_thread_at_a_time_is_inside_however_often_the_owner_changes() {
        let (threads, rounds) = if cfg!(miri) { (2, 30) } else { (3, 600_000) };
        // Who came twice is the owner.
        let mutex = BiasedMutex::with_patience(Pair::default(), 1, 1);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let mutex = &mutex;
                scope.spawn(move || {
                    for round in 0..rounds {
                        long_step(mutex, if cfg!(miri) { 0 } else { (round + thread) % 64 });
                        for turn in 0..round % 7 * 8 {
                            std::hint::black_box(turn);
                        }
                    }
                });
            }
        });
        assert_eq!(mutex.lock().second, 2 * threads * rounds);
    }

    #[test]
    fn patience_grows_with_every_owner_that_was_disturbed() {
        let mutex = BiasedMutex::with_patience(Pair::default(), 1, 4);
        for patience in [1, 2, 4, 4] {
            assert_eq!(mutex.others.lock().enough, patience);
            for _ in 0..=patience + 1 {
                step(&mutex);
            }
            assert_eq!(is_owned(&mutex), barrier::is_available());
            std::thread::scope(|scope| {
                scope.spawn(|| step(&mutex));
            });
        }
    }

    #[test]
    fn a_panic_inside_gives_it_back() {
        let mutex = BiasedMutex::new(Pair::default());
        for _ in 0..2 {
            for _ in 0..=ENOUGH + 1 {
                step(&mutex);
            }
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _guard = mutex.lock();
                std::panic::resume_unwind(Box::new("for the test"));
            }));
            assert!(panicked.is_err());
        }
        step(&mutex);
    }
}
