//! Properties of every run, tested on random runs.

mod follow;
mod recordings;
mod tally;

use proptest::test_runner::Config;

/// The number of random runs; a failure prints the smallest run that fails, which deserves a separate test.
fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_shrink_iters: 4096, ..Config::default() }
}
