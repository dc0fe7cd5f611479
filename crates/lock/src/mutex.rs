//! The lock.

use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::sync::{AtomicU8, AtomicUsize, Condvar, Mutex, MutexGuard, UnsafeCell, yield_now};
use crate::{barrier, thread};

/// So many turns in a row make a thread the owner.
const TURNS_TO_OWN: u32 = 64;
/// The same after many changes of owner: a heavy barrier costs about as much as a hundred exchanges.
const TURNS_TO_OWN_AT_MOST: u32 = 8192;
const NOBODY: usize = 0;
/// So many threads may become owners in the life of a lock. Numbers of threads are multiples of this.
const PLACES: usize = 8;

/// What the flag `inside` of an owner says.
mod inside {
    pub(super) const NO: u8 = 0;
    /// Through `with_as_owner`: waiters give the processor away until the owner is out.
    pub(super) const BRIEFLY: u8 = 1;
    /// Through `with`: waiters sleep, and the owner wakes them.
    pub(super) const LONG: u8 = 2;
}

/// Holds a value for one thread at a time; cheap for the thread that takes the lock again and again.
///
/// Threads that wait sleep. A thread that takes the lock while it holds the lock waits forever. A panic while the lock is held gives
/// the lock back.
pub struct BiasedMutex<T> {
    /// The number of the owner, which may go in without an atomic exchange, and in the low bits the number of its place.
    owner: AtomicUsize,
    /// Whether the owner is inside, with a place for each thread that is or was the owner: a thread that was the owner may be
    /// about to go in and find out only then, and must not change the flag of the next owner.
    inside: [AtomicU8; PLACES],
    /// Every thread but the owner holds this while inside.
    others: Mutex<Others>,
    /// What a waiter sleeps on until the owner is out.
    owner_left: Condvar,
    owner_left_gate: Mutex<()>,
    value: UnsafeCell<T>,
}

/// What is known of the threads that took the ordinary mutex.
#[derive(Debug)]
struct Others {
    last: usize,
    /// How many turns in a row the last thread took.
    turns: u32,
    /// So many make it the owner.
    turns_to_own: u32,
    /// The most that `turns_to_own` grows to.
    turns_to_own_at_most: u32,
    /// The threads to which the places belong.
    places: [usize; PLACES],
}

// SAFETY: the lock lets one thread at a time reach the value, so that threads only ever hand the value to each other.
unsafe impl<T: Send> Sync for BiasedMutex<T> {}
// SAFETY: as above; what the lock has besides the value belongs to no thread.
unsafe impl<T: Send> Send for BiasedMutex<T> {}

impl<T> BiasedMutex<T> {
    /// A lock that nobody holds.
    pub fn new(value: T) -> Self {
        Self::with_turns_to_own(value, TURNS_TO_OWN, TURNS_TO_OWN_AT_MOST)
    }

    fn with_turns_to_own(value: T, turns_to_own: u32, turns_to_own_at_most: u32) -> Self {
        let places = [NOBODY; PLACES];
        Self {
            owner: AtomicUsize::new(NOBODY),
            inside: std::array::from_fn(|_| AtomicU8::new(inside::NO)),
            others: Mutex::new(Others { last: NOBODY, turns: 0, turns_to_own, turns_to_own_at_most, places }),
            owner_left: Condvar::new(),
            owner_left_gate: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Does something with the value once no other thread holds the lock.
    ///
    /// Threads that wait meanwhile sleep, so that it may take long.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let me = thread::current();
        let Some(owner) = self.enter_as_owner(me, inside::LONG) else {
            return self.act_as_another(me, act);
        };
        let _leaves = LeavesAndWakes { mutex: self, owner };
        // SAFETY: the owner is inside, so nobody else is.
        self.value.with_mut(|value| act(unsafe { &mut *value }))
    }

    /// Does something short with the value if this thread owns the lock; `None` says that nothing was done.
    ///
    /// For a fast path that is worth a second form, compiled into its caller; [`BiasedMutex::with`] does the same for every
    /// thread. Threads that wait meanwhile do not sleep, so that this must not call a device or the system.
    #[inline]
    pub fn with_as_owner<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let owner = self.enter_as_owner(thread::current(), inside::BRIEFLY)?;
        let _leaves = Leaves(self.inside_of(owner));
        // SAFETY: the owner is inside, so nobody else is.
        Some(self.value.with_mut(|value| act(unsafe { &mut *value })))
    }

    #[cold]
    #[inline(never)]
    fn act_as_another<R>(&self, me: usize, act: impl FnOnce(&mut T) -> R) -> R {
        let _others = self.lock_as_another(me);
        // SAFETY: there is no owner while this thread holds `others`, so nobody else is inside.
        self.value.with_mut(|value| act(unsafe { &mut *value }))
    }

    /// The flag of an owner.
    #[inline]
    fn inside_of(&self, owner: usize) -> &AtomicU8 {
        // Always within the array, which the compiler sees.
        &self.inside[owner % PLACES]
    }

    /// Goes in if this thread is the owner, and returns the value of `owner` then.
    #[inline]
    fn enter_as_owner(&self, me: usize, how: u8) -> Option<usize> {
        let owner = self.owner.load(Ordering::Relaxed);
        let inside = self.inside_of(owner);
        // The second load says that this thread does not hold the lock already. It acquires, since a thread that has ended may
        // have had this thread's number, and what that thread did comes before.
        if owner & !(PLACES - 1) != me || inside.load(Ordering::Acquire) != inside::NO {
            return None;
        }
        inside.store(how, Ordering::Relaxed);
        barrier::light();
        if self.owner.load(Ordering::Relaxed) == owner {
            return Some(owner);
        }
        self.leave_again(owner);
        None
    }

    /// For a thread that finds out on entering that it is not the owner any more.
    #[cold]
    fn leave_again(&self, owner: usize) {
        drop(LeavesAndWakes { mutex: self, owner });
    }

    #[inline(never)]
    fn lock_as_another(&self, me: usize) -> MayBecomeOwner<'_> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the thread that holds `others` changes the owner.
        let owner = self.owner.load(Ordering::Relaxed);
        if owner != NOBODY {
            self.owner.store(NOBODY, Ordering::Relaxed);
            barrier::heavy();
            self.wait_for_owner(owner);
            others.turns_to_own = (others.turns_to_own * 2).min(others.turns_to_own_at_most);
        }
        if others.last == me {
            others.turns = others.turns.saturating_add(1);
        } else {
            others.last = me;
            others.turns = 0;
        }
        MayBecomeOwner { owner: &self.owner, others }
    }

    /// Waits until the thread that was the owner is out.
    fn wait_for_owner(&self, owner: usize) {
        let inside = self.inside_of(owner);
        loop {
            match inside.load(Ordering::Acquire) {
                inside::NO => return,
                inside::BRIEFLY => yield_now(),
                _ => {
                    // The owner takes the gate before it wakes anybody: either this thread sees here that the owner is out, or
                    // the owner comes to the gate after this thread has fallen asleep.
                    let mut gate = self.owner_left_gate.lock().unwrap_or_else(PoisonError::into_inner);
                    while inside.load(Ordering::Acquire) == inside::LONG {
                        gate = self.owner_left.wait(gate).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            }
        }
    }

    #[cold]
    fn wake_waiter(&self) {
        drop(self.owner_left_gate.lock().unwrap_or_else(PoisonError::into_inner));
        self.owner_left.notify_all();
    }
}

/// Lets the owner out, also by a panic.
struct Leaves<'a>(&'a AtomicU8);

impl Drop for Leaves<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(inside::NO, Ordering::Release);
    }
}

/// Lets the owner out, also by a panic, and wakes the thread that sleeps until then.
struct LeavesAndWakes<'a, T> {
    mutex: &'a BiasedMutex<T>,
    owner: usize,
}

impl<T> Drop for LeavesAndWakes<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.inside_of(self.owner).store(inside::NO, Ordering::Release);
        // As on entering: either the waiter sees that the owner is out, or the owner sees here that there is a waiter.
        barrier::light();
        if self.mutex.owner.load(Ordering::Relaxed) != self.owner {
            self.mutex.wake_waiter();
        }
    }
}

/// Lets another thread out, also by a panic, and makes it the owner if it took enough turns in a row.
struct MayBecomeOwner<'a> {
    owner: &'a AtomicUsize,
    others: MutexGuard<'a, Others>,
}

impl Drop for MayBecomeOwner<'_> {
    fn drop(&mut self) {
        let Others { last, turns, turns_to_own, ref mut places, .. } = *self.others;
        if turns < turns_to_own || !last.is_multiple_of(PLACES) || !barrier::is_available() {
            return;
        }
        let place = places.iter().position(|thread| *thread == last || *thread == NOBODY);
        if let Some(place) = place {
            places[place] = last;
            self.owner.store(last | place, Ordering::Relaxed);
        }
        self.others.turns = 0;
    }
}

impl<T> fmt::Debug for BiasedMutex<T> {
    /// Without the value, which a thread may hold.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BiasedMutex").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
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
    fn a_thread_that_takes_the_lock_again_and_again_owns_it_until_another_comes() {
        let mutex = BiasedMutex::new(Pair::default());
        for _ in 0..=TURNS_TO_OWN + 1 {
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
        assert_eq!(mutex.with(|pair| pair.second), u64::from(TURNS_TO_OWN) + 5);
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
    fn one_thread_at_a_time_are_inside_however_often_the_owner_changes() {
        let (threads, rounds) = if cfg!(miri) { (2, 30) } else { (3, 150_000) };
        // Two turns in a row make the owner.
        let mutex = BiasedMutex::with_turns_to_own(Pair::default(), 1, 1);
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
        let mutex = BiasedMutex::with_turns_to_own(Pair::default(), 1, 1);
        let are_inside = || {
            mutex.inside.iter().map(|place| place.load(Ordering::Relaxed) != inside::NO).collect::<Vec<_>>()
        };
        let own = |place: usize| {
            (0..3).for_each(|_| step(&mutex));
            if barrier::is_available() {
                assert!(is_owned(&mutex));
                let inside = mutex.with(|_| are_inside());
                assert_eq!(inside, (0..PLACES).map(|other| other == place).collect::<Vec<_>>());
            }
            assert_eq!(are_inside(), [false; PLACES]);
        };
        own(0);
        std::thread::scope(|scope| {
            scope.spawn(|| own(1));
        });
        own(0);
    }

    #[test]
    fn each_change_of_owner_doubles_the_turns_that_the_next_one_takes() {
        let mutex = BiasedMutex::with_turns_to_own(Pair::default(), 1, 4);
        for turns in [1, 2, 4, 4] {
            assert_eq!(mutex.others.lock().unwrap().turns_to_own, turns);
            for _ in 0..=turns + 1 {
                step(&mutex);
            }
            assert_eq!(is_owned(&mutex), barrier::is_available());
            std::thread::scope(|scope| {
                scope.spawn(|| step(&mutex));
            });
        }
    }

    #[test]
    fn a_panic_inside_gives_the_lock_back() {
        let mutex = BiasedMutex::new(Pair::default());
        for _ in 0..2 {
            for _ in 0..=TURNS_TO_OWN + 1 {
                step(&mutex);
            }
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                mutex.with(|_| std::panic::resume_unwind(Box::new("for the test")));
            }));
            assert!(panicked.is_err());
        }
        step(&mutex);
    }

    #[test]
    fn a_thread_that_waits_for_a_long_turn_of_the_owner_sleeps_and_is_woken() {
        let mutex = BiasedMutex::with_turns_to_own(Pair::default(), 1, 1);
        (0..3).for_each(|_| step(&mutex));
        assert_eq!(is_owned(&mutex), barrier::is_available());
        std::thread::scope(|scope| {
            let waiter = mutex.with(|_| {
                let waiter = scope.spawn(|| step(&mutex));
                // Until the waiter has ended the ownership: from then on it waits for this turn.
                while barrier::is_available() && mutex.owner.load(Ordering::Relaxed) != NOBODY {
                    std::thread::yield_now();
                }
                for _ in 0..100 {
                    std::thread::yield_now();
                }
                waiter
            });
            assert!(waiter.join().is_ok());
        });
        assert_eq!(mutex.with(|pair| pair.second), 4);
    }
}

/// Every order of the steps of two or three threads, in loom: `cargo xtask model`.
#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;
    use loom::thread::{JoinHandle, spawn};

    use super::*;

    /// A count behind the lock. Loom's cell sees two threads inside at once where their steps touch; the flag, which loom
    /// switches threads at, sees them wherever they meet, and that what one thread did inside comes before the next.
    struct Counter {
        lock: BiasedMutex<u32>,
        is_busy: AtomicBool,
    }

    impl Counter {
        fn step(&self, count: &mut u32) {
            assert!(!self.is_busy.load(Ordering::Relaxed), "two threads are inside");
            self.is_busy.store(true, Ordering::Relaxed);
            *count += 1;
            self.is_busy.store(false, Ordering::Relaxed);
        }

        fn add(&self) {
            self.lock.with(|count| self.step(count));
        }

        fn add_briefly(&self) {
            if self.lock.with_as_owner(|count| self.step(count)).is_none() {
                self.add();
            }
        }

        fn own(&self) {
            self.add();
            self.add();
            assert_ne!(self.lock.owner.load(Ordering::Relaxed), NOBODY);
        }
    }

    /// Runs `act` in every order; two turns in a row make the owner. Loom itself sees where all threads sleep.
    fn model(act: impl Fn(&Arc<Counter>) + Send + Sync + 'static) {
        loom::model(move || {
            let lock = BiasedMutex::with_turns_to_own(0, 1, 1);
            act(&Arc::new(Counter { lock, is_busy: AtomicBool::new(false) }));
        });
    }

    fn another(counter: &Arc<Counter>, act: impl FnOnce(&Counter) + 'static) -> JoinHandle<()> {
        let counter = Arc::clone(counter);
        spawn(move || act(&counter))
    }

    #[test]
    fn another_thread_comes_while_the_owner_has_a_long_turn() {
        model(|counter| {
            counter.own();
            let other = another(counter, Counter::add);
            counter.add();
            other.join().unwrap();
            assert_eq!(counter.lock.with(|count| *count), 4);
        });
    }

    #[test]
    fn another_thread_comes_while_the_owner_has_a_brief_turn() {
        model(|counter| {
            counter.own();
            let other = another(counter, Counter::add);
            counter.add_briefly();
            other.join().unwrap();
            assert_eq!(counter.lock.with(|count| *count), 4);
        });
    }

    #[test]
    fn the_owner_changes_while_the_last_one_goes_in() {
        model(|counter| {
            counter.own();
            let other = another(counter, |counter| {
                counter.add();
                counter.add();
                counter.add_briefly();
            });
            counter.add_briefly();
            other.join().unwrap();
            assert_eq!(counter.lock.with(|count| *count), 6);
        });
    }

    #[test]
    fn two_threads_come_while_the_owner_is_inside() {
        model(|counter| {
            counter.own();
            let others = [(), ()].map(|()| another(counter, Counter::add));
            counter.add();
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(counter.lock.with(|count| *count), 5);
        });
    }
}
