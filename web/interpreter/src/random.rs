//! Random numbers for the interpreter's hash tables: the same numbers in every run.
//!
//! The hash seed of programs is fixed, so that a program does the same in every run. For the same reason,
//! code that asks the system for random numbers gets constant bytes.

#[cfg(target_arch = "wasm32")]
use getrandom::Error;

/// The crate `getrandom` calls the function of this name in place of the system.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "the crate getrandom finds its source of random numbers by an exported name")]
#[expect(clippy::unnecessary_wraps, reason = "the crate getrandom says what the function returns")]
#[unsafe(no_mangle)]
extern "Rust" fn __getrandom_v03_custom(destination: *mut u8, length: usize) -> Result<(), Error> {
    // SAFETY: the caller passes a writable range of `length` bytes.
    unsafe { destination.write_bytes(0x5A, length) };
    Ok(())
}
