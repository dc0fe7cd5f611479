//! A lock that is nearly free for the thread that takes it again and again.
//!
//! ```
//! use blockyard_allocator::lock::BiasedMutex;
//!
//! let counter = BiasedMutex::new(0);
//! std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| (0..1000).for_each(|_| counter.with(|count| *count += 1)));
//!     }
//! });
//! assert_eq!(counter.with(|count| *count), 2000);
//! ```
//!
//! # Why
//!
//! An ordinary lock is taken with one atomic exchange and given back with another. An exchange takes about 20
//! cycles in which the processor does nothing else, and a cached allocation takes not many more. Programs
//! that train or serve a model allocate almost always from one thread, so that nearly all these exchanges
//! keep out nobody. `cargo xtask bench lock` compares this lock with `parking_lot`.
//!
//! # How
//!
//! The lock is *biased* towards one thread, its **owner**: the thread that took the lock often in a row. Two
//! variables matter: `owner`, and for each thread that is or was the owner a flag `inside`. All other threads
//! take an ordinary mutex first, so that among them one at a time goes on.
//!
//! | the owner | another thread, with the ordinary mutex |
//! | --- | --- |
//! | 1. `inside = true` | 1. `owner = nobody` |
//! | 2. [light barrier](self#barriers) | 2. [heavy barrier](self#barriers) |
//! | 3. is `owner` still this thread? Then go in. If not, `inside = false`, and wait with the others | 3. while `inside`: wait. Then go in |
//! | 4. on leaving: `inside = false` | 4. on leaving: give the mutex back |
//!
//! Each thread first stores what it is about to do and then loads what the other thread does. If a load came
//! before the store, each thread could miss the other and both would go in. The barriers between the lines
//! prevent that. The owner's four steps are plain loads and stores of memory that is in its own cache.
//!
//! # Barriers
//!
//! An ordinary pair of barriers would cost both threads as much as the exchange that is saved. Here the pair
//! is *asymmetric*: the owner's costs nothing, and the other thread pays for both, with a call of Linux that
//! makes every processor of this program complete its stores. The module `barrier` says why that is enough. A
//! change of owner costs some microseconds; so after each the lock asks twice as many turns in a row of the
//! next owner. Where the system has no such call, nobody becomes the owner, and the lock is an ordinary one.
//!
//! # Waiting
//!
//! A thread that waits for the ordinary mutex sleeps. A thread that waits for the owner yields the processor
//! during the few nanoseconds of [`BiasedMutex::with_as_owner`]. It sleeps if the owner entered through
//! [`BiasedMutex::with`], which may call a device; when the owner leaves and is not the owner any more, it
//! wakes the waiting thread.
//!
//! # What is checked
//!
//! `cargo xtask model` runs this code in loom: all orders of the threads' steps, and all values that a load
//! may return under the rules of the language, with both barriers as fences (`SeqCst`), which give what the
//! asymmetric pair gives. `cargo xtask miri` runs the tests below in Miri, which looks for races in one order
//! at a time.
#![expect(unsafe_code, reason = "the compiler cannot see that the lock gives exclusive access")]

mod barrier;
mod mutex;
mod sync;
mod thread;

pub use mutex::BiasedMutex;
