//! When PyTorch's watchdog of NCCL finds that work is done.
//!
//! PyTorch keeps the tensors of collectives that nobody waits for (those of DDP) until its watchdog, which
//! looks ten times a second, finds them done. On a GPU some iterations of a small program pass meanwhile. In
//! a dry run the GPU's work takes no time, and iterations take longer, so the watchdog is told for a while
//! that work is not done.
#![expect(unsafe_code, reason = "the name of the calling thread is asked for")]

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long work is not done for the watchdog.
const PENDING: Duration = Duration::from_secs(2);
/// PyTorch's name of the watchdog's thread.
const NAME: &[u8] = b"pt_nccl_watchdg";

static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Makes all work done for the watchdog: a group ends, and its end waits for the watchdog.
pub(super) fn hurry() {
    IS_ENDING.store(true, Ordering::Relaxed);
}

/// The program has ended: all work is done. The runner of a dry run calls this.
#[unsafe(no_mangle)]
extern "C" fn blockyard_nccl_finish() {
    hurry();
}

/// Whether the caller is the watchdog, and an event that was recorded at this moment is not done for the
/// watchdog yet.
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
