//! Processes that confine themselves and then try what a program of somebody else might try.
//!
//! This program is the test and, started by itself with the name of a scenario, the process that is tested:
//! a process with threads cannot confine itself, and the usual harness starts a thread for each test. A word
//! on the command line chooses the tests whose names hold it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test, which clippy knows by the usual harness"
)]

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod attacks {
    pub(crate) mod attempts;
    pub(crate) mod ordinary;
    pub(crate) mod scenarios;
    pub(crate) mod tests;
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn main() -> std::process::ExitCode {
    if let Some(scenario) = std::env::var_os(attacks::scenarios::SCENARIO) {
        return attacks::scenarios::run(&scenario.to_string_lossy());
    }
    attacks::tests::run()
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn main() {
    let error = blockyard_confine::check_system().unwrap_err().to_string();
    assert!(error.contains("on the page for teachers"), "{error}");
}
