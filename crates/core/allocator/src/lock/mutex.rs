//! The lock.

use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::lock::sync::{AtomicU8, AtomicUsize, Condvar, Mutex, MutexGuard, UnsafeCell, yield_now};
use crate::lock::{barrier, thread};

/// How many turns in a row make a thread the owner.
const TURNS_TO_OWN: u32 = 64;
/// How many turns in a row make a thread the owner after many changes of owner: a heavy barrier costs about
/// as much as a hundred exchanges.
const MAX_TURNS_TO_OWN: u32 = 8192;
const NOBODY: usize = 0;
/// How many threads may become owners in the life of a lock. Numbers of threads are multiples of this.
const PLACES: usize = 8;

/// The values of the flag `inside` of an owner.
mod inside {
    pub(super) const NO: u8 = 0;
    /// Through `with_as_owner`: waiters give the processor away until the owner is out.
    pub(super) const BRIEFLY: u8 = 1;
    /// Through `with`: waiters sleep, and the owner wakes them.
    pub(super) const LONG: u8 = 2;
}

/// Holds a value for one thread at a time; cheap for the thread that takes the lock again and again.
///
/// Threads that wait sleep. A thread that takes the lock while it holds the lock waits forever. A panic while
/// the lock is held gives the lock back.
pub struct BiasedMutex<T> {
    /// The number of the owner, which may go in without an atomic exchange, and in the low bits the number of
    /// its place.
    owner: AtomicUsize,
    /// Whether the owner is inside, with a place for each thread that is or was the owner: a thread that was
    /// the owner may be about to go in and find out only then, and must not change the flag of the next
    /// owner.
    inside: [AtomicU8; PLACES],
    /// Every thread but the owner holds this while inside.
    others: Mutex<OtherThreads>,
    /// The condition on which a waiter sleeps until the owner is out.
    owner_left: Condvar,
    owner_left_gate: Mutex<()>,
    value: UnsafeCell<T>,
}

/// The counts of turns of the threads that took the ordinary mutex.
#[derive(Debug)]
struct OtherThreads {
    /// The thread that took the ordinary mutex last.
    last: usize,
    /// How many turns in a row the last thread took.
    turns: u32,
    /// How many turns in a row make a thread the owner.
    turns_to_own: u32,
    /// The most that `turns_to_own` grows to.
    max_turns_to_own: u32,
    /// The threads to which the places belong.
    threads: [usize; PLACES],
}

// SAFETY: the lock lets one thread at a time reach the value, so that threads only ever hand the value to
// each other.
unsafe impl<T: Send> Sync for BiasedMutex<T> {}
// SAFETY: as above; what the lock has besides the value belongs to no thread.
unsafe impl<T: Send> Send for BiasedMutex<T> {}

impl<T> BiasedMutex<T> {
    /// A lock that nobody holds.
    pub fn new(value: T) -> Self {
        Self::with_turns_to_own(value, TURNS_TO_OWN, MAX_TURNS_TO_OWN)
    }

    fn with_turns_to_own(value: T, turns_to_own: u32, turns_to_own_at_most: u32) -> Self {
        let indices = [NOBODY; PLACES];
        Self {
            owner: AtomicUsize::new(NOBODY),
            inside: std::array::from_fn(|_| AtomicU8::new(inside::NO)),
            others: Mutex::new(OtherThreads {
                last: NOBODY,
                turns: 0,
                turns_to_own,
                max_turns_to_own: turns_to_own_at_most,
                threads: indices,
            }),
            owner_left: Condvar::new(),
            owner_left_gate: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Calls `act` with the value once no other thread holds the lock.
    ///
    /// Threads that wait meanwhile sleep, so `act` may take long.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let me = thread::current();
        let Some(owner) = self.enter_as_owner(me, inside::LONG) else {
            return self.act_as_other(me, act);
        };
        let _leaves = OwnerExit { mutex: self, owner };
        // SAFETY: the owner is inside, so nobody else is.
        self.value.with_mut(|value| act(unsafe { &mut *value }))
    }

    /// Calls `act` with the value if this thread owns the lock; otherwise returns `None` without a call.
    ///
    /// This is for a fast path that is compiled into its caller; [`BiasedMutex::with`] serves every thread.
    /// Threads that wait meanwhile do not sleep, so `act` must be short and must not call a device or the
    /// system.
    #[inline]
    pub fn with_as_owner<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let owner = self.enter_as_owner(thread::current(), inside::BRIEFLY)?;
        let _leaves = BriefOwnerExit(self.inside_of(owner));
        // SAFETY: the owner is inside, so nobody else is.
        Some(self.value.with_mut(|value| act(unsafe { &mut *value })))
    }

    #[cold]
    #[inline(never)]
    fn act_as_other<R>(&self, me: usize, act: impl FnOnce(&mut T) -> R) -> R {
        let _others = self.lock_as_other(me);
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
        // The second load says that this thread does not hold the lock already. It acquires, since a thread
        // that has ended may have had this thread's number, and what that thread did comes before.
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

    /// Undoes [`BiasedMutex::enter_as_owner`] for a thread that finds out on entering that it is not the
    /// owner any more.
    #[cold]
    fn leave_again(&self, owner: usize) {
        drop(OwnerExit { mutex: self, owner });
    }

    #[inline(never)]
    fn lock_as_other(&self, me: usize) -> OtherExit<'_> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the thread that holds `others` changes the owner.
        let owner = self.owner.load(Ordering::Relaxed);
        if owner != NOBODY {
            self.owner.store(NOBODY, Ordering::Relaxed);
            barrier::heavy();
            self.wait_for_owner(owner);
            others.turns_to_own = (others.turns_to_own * 2).min(others.max_turns_to_own);
        }
        if others.last == me {
            others.turns = others.turns.saturating_add(1);
        } else {
            others.last = me;
            others.turns = 0;
        }
        OtherExit { owner: &self.owner, others }
    }

    /// Waits until the thread that was the owner is out.
    fn wait_for_owner(&self, owner: usize) {
        let inside = self.inside_of(owner);
        loop {
            match inside.load(Ordering::Acquire) {
                inside::NO => return,
                inside::BRIEFLY => yield_now(),
                _ => {
                    // The owner locks the gate before it wakes other threads: either this thread reads here that the
                    // owner has left, or the owner locks the gate after this thread has begun to wait.
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
struct BriefOwnerExit<'a>(&'a AtomicU8);

impl Drop for BriefOwnerExit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(inside::NO, Ordering::Release);
    }
}

/// Lets the owner out, also by a panic, and wakes the thread that sleeps until then.
struct OwnerExit<'a, T> {
    mutex: &'a BiasedMutex<T>,
    owner: usize,
}

impl<T> Drop for OwnerExit<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.inside_of(self.owner).store(inside::NO, Ordering::Release);
        // As on entering: either the waiter sees that the owner is out, or the owner sees here that there is
        // a waiter.
        barrier::light();
        if self.mutex.owner.load(Ordering::Relaxed) != self.owner {
            self.mutex.wake_waiter();
        }
    }
}

/// Lets another thread out, also by a panic, and makes it the owner if it took enough turns in a row.
struct OtherExit<'a> {
    owner: &'a AtomicUsize,
    others: MutexGuard<'a, OtherThreads>,
}

impl Drop for OtherExit<'_> {
    fn drop(&mut self) {
        let OtherThreads { last, turns, turns_to_own, threads: ref mut indices, .. } = *self.others;
        if turns < turns_to_own || !last.is_multiple_of(PLACES) || !barrier::is_available() {
            return;
        }
        let index = indices.iter().position(|thread| *thread == last || *thread == NOBODY);
        if let Some(index) = index {
            indices[index] = last;
            self.owner.store(last | index, Ordering::Relaxed);
        }
        self.others.turns = 0;
    }
}

impl<T> fmt::Debug for BiasedMutex<T> {
    /// Without the value, which a thread may hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BiasedMutex").finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;
