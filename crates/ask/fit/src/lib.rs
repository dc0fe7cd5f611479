//! Which value of a program's option fits a GPU: `blockyard fit`.
//!
//! A *probe* is one run of the program with one value. [`search`] asks for probes until one value fits and
//! the next value does not, [`SearchOutcome`] says what the probes prove and whether they contradict each
//! other, and [`Growth`] says how bytes grow with the value. [`search_guessed`] searches under several conditions,
//! such as the values of another option or the [`Layout`]s of a [`Mesh`], and begins where earlier searches
//! lead. [`memory_fraction`] turns a limit in bytes into PyTorch's fraction. This crate runs nothing: a
//! function of the caller makes each probe. [`BatchSize`] is the place at which the text of a program says
//! how large its batch is, and [`next_batch`] is a search for the largest batch, value by value, for a caller
//! that waits for each run.
//!
//! # Example
//!
//! ```
//! use blockyard_fit::{Probe, Values, search};
//! use blockyard_record::Bytes;
//!
//! let values: Values = "1..512".parse()?;
//! // A program that takes 2 GiB, and 400 MiB more for each sample.
//! let found = search(&values, Bytes::gib(16), |value| {
//!     let bytes = Bytes::mib(2048 + 400 * value);
//!     Ok::<_, String>(Probe::of(value, bytes <= Bytes::gib(16), bytes, bytes))
//! });
//! assert_eq!(found.largest(&values), Some(35));
//! assert_eq!(found.probes.len(), 4);
//! # Ok::<(), blockyard_fit::ValuesError>(())
//! ```

mod batch;
mod conditions;
mod fraction;
mod growth;
mod largest;
mod mesh;
mod probe;
mod values;

pub use batch::{BatchSize, BatchStep, may_take_amp, next_batch};
pub use conditions::{ConditionsSearch, guess, search_guessed};
pub use fraction::memory_fraction;
pub use growth::{Growth, GrowthKind, fit_growth};
pub use largest::{Contradiction, Guess, SearchOutcome, search, search_from};
pub use mesh::{Layout, Mesh, MeshError};
pub use probe::{HolderBytes, Probe, ProbeOom};
pub use values::{Values, ValuesError};
