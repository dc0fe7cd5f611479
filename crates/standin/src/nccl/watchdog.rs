//! When PyTorch's watchdog of NCCL finds that work is done.
//!
//! PyTorch keeps the tensors of collectives that nobody waits for (those of DDP) until its watchdog, which
//! looks ten times a second, finds them done. On a GPU some steps of a small program pass meanwhile. Nothing
//! takes time here, and steps of a dry run take longer: so the watchdog finds work undone for a while.
#![expect(unsafe_code, reason = "the name of the calling thread is asked for")]

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long.
const PENDING: Duration = Duration::from_secs(2);
/// What PyTorch names this thread.
const NAME: &[u8] = b"pt_nccl_watchdg";

static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// A group ends, which waits for the watchdog.
pub(super) fn hurry() {
    IS_ENDING.store(true, Ordering::Relaxed);
}

/// The program has ended: all work is done. The runner of a dry run calls this.
#[unsafe(no_mangle)]
extern "C" fn blockyard_nccl_finish() {
    hurry();
}

/// Whether the caller is the watchdog, and an event that was recorded then is undone for it.
pub(crate) fn is_pending(at: Instant) -> bool {
    is_watchdog() && !IS_ENDING.load(Ordering::Relaxed) && at.elapsed() < PENDING
}

fn is_watchdog() -> bool {
    thread_local! {
        static IS: OnceCell<bool> = const { OnceCell::new() };
    }
    IS.with(|is| *is.get_or_init(|| name().starts_with(NAME)))
}

/// The name of the calling thread, and zeros after it.
fn name() -> [u8; 16] {
    let mut name = [0_u8; 16];
    // SAFETY: the call writes at most 16 bytes.
    let _ = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::is_pending;

    #[test]
    fn only_the_watchdog_waits() {
        let now = Instant::now();
        assert!(!is_pending(now));
        let named = |name: &str| thread::Builder::new().name(name.to_owned()).spawn(move || is_pending(now));
        assert!(named("pt_nccl_watchdg").unwrap().join().unwrap());
        assert!(!named("pt_nccl_heartbt").unwrap().join().unwrap());
    }
}
