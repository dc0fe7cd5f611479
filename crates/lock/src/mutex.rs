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

/// Holds a value for one thread at a time.
///
/// Who waits gives the processor away between tries. A thread that takes the lock while it holds it waits forever. A panic while it
/// is held gives it back.
pub struct BiasedMutex<T> {
    /// The thread that may go in without asking the others.
    owner: AtomicUsize,
    /// Whether the owner is inside.
    is_owner_inside: AtomicBool,
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
}

/// The value in the hands of one thread, until this is dropped.
#[must_use = "the lock is given back when this is dropped"]
pub struct BiasedGuard<'a, T> {
    mutex: &'a BiasedMutex<T>,
    /// `None` in the hands of the owner.
    others: Option<SpinMutexGuard<'a, Others>>,
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
        let others = SpinMutex::new(Others { last: NOBODY, streak: 0, enough, enough_at_most });
        let (owner, is_owner_inside) = (AtomicUsize::new(NOBODY), AtomicBool::new(false));
        Self { owner, is_owner_inside, others, value: UnsafeCell::new(value) }
    }

    /// Waits until no other thread holds the value.
    #[inline]
    pub fn lock(&self) -> BiasedGuard<'_, T> {
        let me = thread::current();
        // The load says that this thread does not hold the lock already; and should a thread that ended have had this
        // thread's number, that what it did comes before.
        if self.owner.load(Ordering::Relaxed) == me && !self.is_owner_inside.load(Ordering::Acquire) {
            self.is_owner_inside.store(true, Ordering::Relaxed);
            barrier::light();
            if self.owner.load(Ordering::Relaxed) == me {
                return BiasedGuard { mutex: self, others: None, _stays: PhantomData };
            }
            self.is_owner_inside.store(false, Ordering::Release);
        }
        self.lock_among_others(me)
    }

    #[cold]
    #[inline(never)]
    fn lock_among_others(&self, me: usize) -> BiasedGuard<'_, T> {
        let mut others = self.others.lock();
        // Only who holds `others` changes the owner.
        if self.owner.load(Ordering::Relaxed) != NOBODY {
            self.owner.store(NOBODY, Ordering::Relaxed);
            barrier::heavy();
            while self.is_owner_inside.load(Ordering::Acquire) {
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
        BiasedGuard { mutex: self, others: Some(others), _stays: PhantomData }
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
        match self.others.take() {
            None => self.mutex.is_owner_inside.store(false, Ordering::Release),
            Some(others) => self.mutex.give_back(others),
        }
    }
}

impl<T> BiasedMutex<T> {
    #[cold]
    #[inline(never)]
    fn give_back(&self, mut others: SpinMutexGuard<'_, Others>) {
        if others.streak >= others.enough && barrier::is_available() {
            others.streak = 0;
            self.owner.store(others.last, Ordering::Relaxed);
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
        let mut pair = mutex.lock();
        assert_eq!(pair.first, pair.second, "somebody else is inside");
        pair.first += 1;
        std::hint::black_box(&mut *pair);
        pair.second += 1;
    }

    fn is_owned(mutex: &BiasedMutex<Pair>) -> bool {
        mutex.owner.load(Ordering::Relaxed) == thread::current()
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
        assert_eq!(mutex.lock().second, threads * rounds);
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
