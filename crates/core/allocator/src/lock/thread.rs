//! The number of the running thread.

/// A number that no other running thread has, a multiple of 8; never 0. It may come back once the thread has
/// ended.
#[inline]
pub(crate) fn current() -> usize {
    #[cfg(loom)]
    {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(8);
        loom::thread_local! {
            static NUMBER: usize = NEXT.fetch_add(8, Ordering::Relaxed);
        }
        NUMBER.with(|number| *number)
    }
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
    {
        let pointer: usize;
        // In a shared library the address of a thread's variable takes a call.
        //
        // SAFETY: on this platform the first word of a thread's control block, which `fs` points to, is its
        // own address (System V ABI, thread-local storage).
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
        }
        pointer
    }
    #[cfg(all(not(loom), any(not(target_os = "linux"), not(target_arch = "x86_64"), miri)))]
    {
        thread_local! {
            static PLACE: u64 = const { 0 };
        }
        let mask = !7;
        PLACE.with(|place| std::ptr::from_ref(place).addr() & mask)
    }
}
