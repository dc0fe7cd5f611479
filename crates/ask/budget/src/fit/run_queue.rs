//! How many runs are open at one time: as many as the caller asks for, as far as the host's memory allows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use blockyard_dry_run::available_memory;

/// Lets as many runs begin at a time as memory allows.
#[derive(Debug)]
pub struct RunQueue {
    most: u64,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: u64,
    /// The most bytes of the host that the processes of one run took; 0 while this is not known.
    host_peak: u64,
    /// The free bytes of the host when nothing ran.
    available: Option<u64>,
}

impl State {
    fn most_now(&self, most: u64) -> u64 {
        // The first run is alone: the memory that a run takes is known after it.
        if self.host_peak == 0 {
            return 1;
        }
        match self.available.and_then(|available| available.checked_div(self.host_peak)) {
            Some(fitting) => most.min(fitting).max(1),
            None => most.max(1),
        }
    }
}

/// The permission for one run, which ends when this value is dropped.
pub(super) struct Permit<'a>(&'a RunQueue);

impl RunQueue {
    /// A queue of at most this many runs at one time.
    #[must_use]
    pub fn new(most: u8) -> Self {
        Self { most: u64::from(most), state: Mutex::new(State::default()), ended: Condvar::new() }
    }

    /// The most runs that may be open at one time, at least 1.
    pub(super) fn most(&self) -> usize {
        usize::try_from(self.most).unwrap_or(1)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state has only numbers, each of which is written as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more run may begin.
    pub(super) fn wait(&self) -> Permit<'_> {
        let mut state = self.state();
        loop {
            if state.running == 0 {
                state.available = available_memory();
            }
            if state.running < state.most_now(self.most) {
                break;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.running = state.running.saturating_add(1);
        Permit(self)
    }
}

impl Permit<'_> {
    /// Notes the bytes of the host that the processes of the run took.
    pub(super) fn took(&self, bytes: u64) {
        let mut state = self.0.state();
        state.host_peak = state.host_peak.max(bytes);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running = state.running.saturating_sub(1);
        drop(state);
        self.0.ended.notify_all();
    }
}

/// Asks for each item, `at_once` items side by side, until an answer ends the question; returns the answers
/// in the order of the items.
///
/// `ask` gets the answers that are known when it begins, in the order of the items.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    at_once: usize,
    ask: impl Fn(&T, &AnswerQueue<R>) -> R + Sync,
    is_ended: impl Fn(&R) -> bool + Sync,
) -> Vec<R> {
    let answers = AnswerQueue(Mutex::new(items.iter().map(|_item| None).collect()));
    let next = AtomicUsize::new(0);
    let step = || -> bool {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(at) else { return false };
        let answer = ask(item, &answers);
        let is_ended = is_ended(&answer);
        if let Some(place) = answers.lock().get_mut(at) {
            *place = Some(answer);
        }
        if is_ended {
            // No further item is begun.
            next.store(items.len(), Ordering::Relaxed);
        }
        !is_ended
    };
    thread::scope(|scope| {
        for _ in 1..at_once.min(items.len()) {
            scope.spawn(|| while step() {});
        }
        while step() {}
    });
    let answers = answers.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    answers.into_iter().flatten().collect()
}

/// The answers so far, by item.
pub(super) struct AnswerQueue<R>(Mutex<Vec<Option<R>>>);

impl<R> AnswerQueue<R> {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<R>>> {
        // The list is consistent after a panic, because each answer is stored as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the answers that are known.
    pub(super) fn read<O>(&self, of: impl FnOnce(Vec<&R>) -> O) -> O {
        of(self.lock().iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_asked_side_by_side_and_answered_in_order() {
        let items: Vec<u64> = (0..40).collect();
        for at_once in [1, 3, 64] {
            let doubled = each(&items, at_once, |item, _before| item * 2, |_answer| false);
            assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        }
        let until =
            each(&items, 1, |item, before| (*item, before.read(|all| all.len())), |(item, _)| *item == 5);
        assert_eq!(until.last(), Some(&(5, 5)));
        assert_eq!(each(&[0_u64; 0], 4, |item, _| *item, |_| false), Vec::<u64>::new());
    }

    #[test]
    fn the_first_run_is_alone_and_memory_bounds_the_others() {
        let mut state = State::default();
        assert_eq!(state.most_now(8), 1);
        state.host_peak = 10;
        assert_eq!(state.most_now(8), 8);
        state.available = Some(35);
        assert_eq!((state.most_now(8), state.most_now(2)), (3, 2));
        state.available = Some(5);
        assert_eq!(state.most_now(8), 1);
    }

    #[test]
    fn permits_are_given_back() {
        let queue = RunQueue::new(2);
        queue.wait().took(1);
        let (one, other) = (queue.wait(), queue.wait());
        assert_eq!(queue.state().running, 2);
        thread::scope(|scope| {
            let third = scope.spawn(|| queue.wait().took(1));
            drop(one);
            assert!(third.join().is_ok());
        });
        drop(other);
        assert_eq!(queue.state().running, 0);
    }
}
