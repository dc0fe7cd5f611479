//! A lock that costs the thread that takes it again and again next to nothing.
//!
//! A lock is usually taken with an exchange that the processor carries out alone, about 20 cycles in which nothing else goes on,
//! and an allocation of cached memory takes not many more. Here the thread that took the lock often in a row becomes its
//! *owner*: it says with a plain store that it is inside, and looks whether it is the owner still. A processor may let the
//! look pass before the store; so another thread that wants the lock ends the ownership, makes every processor that runs this
//! program carry out a barrier (`membarrier` of Linux), and only then looks whether the owner is inside. Where the system has no such
//! barrier, nobody becomes the owner, and the lock is a usual one.
#![expect(unsafe_code, reason = "a lock hands out what the compiler cannot see to be exclusive")]

mod barrier;
mod mutex;
mod thread;

pub use mutex::BiasedMutex;
