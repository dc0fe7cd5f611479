//! The `blockyard` command.
fn main() {}
