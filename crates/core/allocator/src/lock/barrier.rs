//! An asymmetric pair of barriers: [`light`] costs nothing, and [`heavy`] makes up for it on every processor.
//!
//! The guarantee that the lock is built on: where one thread stores A, passes [`light`] and loads B, and
//! another stores B, passes [`heavy`] and loads A, at least one of them sees the other's store. Two ordinary
//! fences (`SeqCst`) give the same, at about 20 cycles in either thread.
//!
//! How that can be: a processor may carry out a load before a store that the program has first. [`light`]
//! only keeps the compiler from doing so. [`heavy`] is a call of Linux (`membarrier`) that interrupts every
//! processor on which a thread of this program runs, and an interrupt ends with all earlier stores visible.
//! If the other thread's store comes before its interrupt, this thread's load sees that store; if not, the
//! other thread's load comes after the interrupt too, and sees ours.

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod system {
    use std::sync::OnceLock;
    use std::sync::atomic::{Ordering, compiler_fence};

    use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

    /// Whether the system has a heavy barrier.
    pub(crate) fn is_available() -> bool {
        static IS_AVAILABLE: OnceLock<bool> = OnceLock::new();
        *IS_AVAILABLE.get_or_init(|| {
            membarrier_query().contains_command(MembarrierCommand::PrivateExpedited) && register()
        })
    }

    fn register() -> bool {
        membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    }

    #[inline]
    pub(crate) fn light() {
        compiler_fence(Ordering::SeqCst);
    }

    pub(crate) fn heavy() {
        // The call worked when the process was registered; a forked child process may have to register again.
        while membarrier(MembarrierCommand::PrivateExpedited).is_err() {
            register();
            std::thread::yield_now();
        }
    }
}

#[cfg(any(not(target_os = "linux"), miri, loom))]
mod system {
    use std::sync::atomic::Ordering;

    #[cfg(loom)]
    use loom::sync::atomic::fence;
    #[cfg(not(loom))]
    use std::sync::atomic::fence;

    /// Without a heavy barrier, the light barrier would cost as much as the exchange that it saves. Under
    /// Miri and loom the answer is yes, so that both check the whole protocol.
    pub(crate) fn is_available() -> bool {
        cfg!(any(miri, loom))
    }

    #[inline]
    pub(crate) fn light() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn heavy() {
        fence(Ordering::SeqCst);
    }
}

pub(crate) use system::{heavy, is_available, light};
