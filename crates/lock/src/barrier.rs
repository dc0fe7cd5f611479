//! Two barriers: one that is nearly free, and one that makes up for it on every processor.
//!
//! A store, a [`light`] barrier and a load in one thread, and a store, a [`heavy`] barrier and a load in another: at least one of
//! the loads sees the other thread's store, as with two fences of sequential consistency.

#[cfg(all(target_os = "linux", not(miri)))]
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
        // It worked when it was registered; a process that was forked from that one may have to register again.
        while membarrier(MembarrierCommand::PrivateExpedited).is_err() {
            register();
            std::thread::yield_now();
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use std::sync::atomic::{Ordering, fence};

    /// Where there is no heavy barrier a light one would cost as much as the exchange that it saves. Miri, which sees what
    /// threads may do to each other, is to see the whole of it.
    pub(crate) fn is_available() -> bool {
        cfg!(miri)
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
