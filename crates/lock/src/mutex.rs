//! The lock.

use std::cell::UnsafeCell;
use std::fmt;
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

// SAFETY: the lock lets one thread at a time reach the value, so that threads only ever hand it to each other.
unsafe impl<T: Send> Sync for BiasedMutex<T> {}

impl<T> BiasedMutex<T> {
    /// A lock that nobody holds.
    pub fn new(value: T) -> Self {
        Self::with_thresholds(value, ENOUGH, ENOUGH_AT_MOST)
    }

    fn with_thresholds(value: T, enough: u32, enough_at_most: u32) -> Self {
        let places = [NOBODY; PLACES];
        let others = SpinMutex::new(Others { last: NOBODY, streak: 0, enough, enough_at_most, places });
        let is_inside = [const { AtomicBool::new(false) }; PLACES];
        Self { owner: AtomicUsize::new(NOBODY), is_inside, others, value: UnsafeCell::new(value) }
    }

    /// Does something with the value once no other thread holds it.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let me = thread::current();
        let Some(_leaves) = self.enter_as_owner(me) else {
            return self.act_among_others(me, act);
        };
        // SAFETY: the owner is inside, so nobody else is.
        act(unsafe { &mut *self.value.get() })
    }

    /// Does something with the value if this thread owns the lock, which is the short way in; `None` says that nothing was done.
    ///
    /// For what is worth a second form that is part of its caller; [`BiasedMutex::with`] does the same for every thread.
    #[inline]
    pub fn with_as_owner<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _leaves = self.enter_as_owner(thread::current())?;
        // SAFETY: the owner is inside, so nobody else is.
        Some(act(unsafe { &mut *self.value.get() }))
    }

    #[cold]
    #[inline(never)]
    fn act_among_others<R>(&self, me: usize, act: impl FnOnce(&mut T) -> R) -> R {
        let _others = self.lock_among_others(me);
        // SAFETY: there is no owner while this thread holds `others`, so nobody else is inside.
        act(unsafe { &mut *self.value.get() })
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
    fn lock_among_others(&self, me: usize) -> MayOwn<'_> {
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
        MayOwn { owner: &self.owner, others }
    }
}

/// Lets the owner out, also by a panic.
struct Leaves<'a>(&'a AtomicBool);

impl Drop for Leaves<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Lets another thread out, also by a panic, and makes it the owner if it came often enough.
struct MayOwn<'a> {
    owner: &'a AtomicUsize,
    others: SpinMutexGuard<'a, Others>,
}

impl Drop for MayOwn<'_> {
    fn drop(&mut self) {
        let Others { last, streak, enough, ref mut places, .. } = *self.others;
        if streak < enough || !last.is_multiple_of(PLACES) || !barrier::is_available() {
            return;
        }
        let place = places.iter().position(|thread| *thread == last || *thread == NOBODY);
        if let Some(place) = place {
            places[place] = last;
            self.owner.store(last | place, Ordering::Relaxed);
        }
        self.others.streak = 0;
    }
}

impl<T> fmt::Debug for BiasedMutex<T> {
    /// Without the value, which somebody may hold.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BiasedMutex").finish_non_exhaustive()
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
        let act = |pair: &mut Pair| {
            assert_eq!(pair.first, pair.second, "somebody else is inside");
            pair.first += 1;
            std::hint::black_box(&mut *pair);
            pair.second += 1;
        };
        if mutex.with_as_owner(act).is_none() {
            mutex.with(act);
        }
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
        assert_eq!(mutex.with_as_owner(|_| ()).is_some(), barrier::is_available());
        step(&mutex);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(mutex.with_as_owner(|_| ()), None);
                step(&mutex);
            });
        });
        assert!(!is_owned(&mutex));
        assert_eq!(mutex.with_as_owner(|_| ()), None);
        step(&mutex);
        assert_eq!(mutex.with(|pair| pair.second), u64::from(ENOUGH) + 5);
    }

    /// As [`step`], and long inside: another thread that came in would be seen.
    fn long_step(mutex: &BiasedMutex<Pair>, turns: u64) {
        mutex.with(|pair| {
            assert_eq!(pair.first, pair.second, "somebody else is inside");
            pair.first += 1;
            for turn in 0..turns {
                std::hint::black_box(turn);
            }
            pair.second += 1;
        });
        step(mutex);
    }

    #[test]
    fn one_thread_at_a_time_is_inside_however_often_the_owner_changes() {
        let (threads, rounds) = if cfg!(miri) { (2, 30) } else { (3, 150_000) };
        // Who came twice is the owner.
        let mutex = BiasedMutex::with_thresholds(Pair::default(), 1, 1);
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
        assert_eq!(mutex.with(|pair| pair.second), 2 * threads * rounds);
    }

    #[test]
    fn each_owner_has_a_place_of_its_own() {
        let mutex = BiasedMutex::with_thresholds(Pair::default(), 1, 1);
        let is_inside =
            || mutex.is_inside.iter().map(|place| place.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let own = |place: usize| {
            (0..3).for_each(|_| step(&mutex));
            if barrier::is_available() {
                assert!(is_owned(&mutex));
                let inside = mutex.with(|_| is_inside());
                assert_eq!(inside, (0..PLACES).map(|other| other == place).collect::<Vec<_>>());
            }
            assert_eq!(is_inside(), [false; PLACES]);
        };
        own(0);
        std::thread::scope(|scope| {
            scope.spawn(|| own(1));
        });
        own(0);
    }

    #[test]
    fn thresholds_grow_with_every_owner_that_was_disturbed() {
        let mutex = BiasedMutex::with_thresholds(Pair::default(), 1, 4);
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
                mutex.with(|_| std::panic::resume_unwind(Box::new("for the test")));
            }));
            assert!(panicked.is_err());
        }
        step(&mutex);
    }
}
