//! The interpreter's integers. RustPython names the crate `malachite-bigint`, which calls itself a drop-in
//! for `num-bigint` and is LGPL; this crate puts `num-bigint` itself (MIT or Apache-2.0) in that place.

pub use num_bigint::{BigInt, BigUint, ParseBigIntError, Sign, ToBigInt, ToBigUint, TryFromBigIntError};
