//! One suite for every device, and proof that the suite can fail.

mod broken;
mod simulated;
