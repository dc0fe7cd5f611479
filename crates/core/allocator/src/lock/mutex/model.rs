//! Every order of the steps of two or three threads, in loom: `cargo xtask model`.

use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::thread::{JoinHandle, spawn};

use super::*;

/// A count behind the lock, and a flag that is set while a thread is inside. Loom's cell reports two threads
/// that use the value at the same time. Loom also switches threads at each use of the flag, so the flag shows
/// two threads that are inside at once, and that the next thread sees what the thread before it did.
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

/// Runs `act` in every order; two turns in a row make the owner. Loom itself reports when all threads sleep.
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
