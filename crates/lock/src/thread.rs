//! Which thread this is.

/// A number that no other running thread has, a multiple of 8; never 0. It may come back once the thread has ended.
#[inline]
pub(crate) fn current() -> usize {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
    {
        let pointer: usize;
        // In a shared library the address of a thread's variable takes a call.
        //
        // SAFETY: on this platform the first word of a thread's control block, which `fs` points to, is its own address
        // (System V ABI, thread-local storage).
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
        }
        pointer
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
    {
        thread_local! {
            static PLACE: u64 = const { 0 };
        }
        let mask = !7;
        PLACE.with(|place| std::ptr::from_ref(place).addr() & mask)
    }
}
