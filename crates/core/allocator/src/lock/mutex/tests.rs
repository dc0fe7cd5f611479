//! The lock with threads of the system: these run under Miri too.

use super::*;

/// Two numbers that are equal whenever no thread holds the lock.
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

/// A [`step`] that holds the lock for long, so that a second thread holding the lock would be seen.
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
    // Two turns in a row make a thread the owner.
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
    let are_inside =
        || mutex.inside.iter().map(|place| place.load(Ordering::Relaxed) != inside::NO).collect::<Vec<_>>();
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
