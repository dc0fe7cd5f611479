//! How much of a GPU's memory programs take: `blockyard fit` and `blockyard guard`.
//!
//! A *probe* is one run of a program with one value of an option. [`search`] asks for probes until one value
//! fits and the next value does not, and [`SearchOutcome`] says what the probes prove and whether they
//! contradict each other. [`fit_growth`] says how bytes grow with the value. [`search_from`] begins at a
//! [`guess`], which searches under other conditions allow, such as the values of another option or the
//! [`Layout`]s of a [`Mesh`]. [`memory_fraction`] turns a limit in bytes into PyTorch's fraction.
//! [`VariedNumber`] is a number in the text of a program that a search may vary. [`next_value`] is a search
//! for the largest, value by value, for a caller that waits for each run. [`next_safe`] finds a value that
//! leaves a part of the GPU free.
//!
//! With the feature `programs`, `fit` has the questions about a program that dry runs of the program answer,
//! and `guard` compares programs with the file `memory.toml`. Answers are the types of `blockyard-answers`.
//!
//! # Example
//!
//! ```
//! use blockyard_budget::{Probe, Values, search};
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
//! # Ok::<(), blockyard_budget::ValuesError>(())
//! ```

#[cfg(feature = "programs")]
pub mod fit;
mod fraction;
mod growth;
#[cfg(feature = "programs")]
pub mod guard;
mod guess;
mod mesh;
mod next;
mod probe;
#[cfg(feature = "programs")]
mod program_end;
mod search;
mod values;
mod varied;

pub use fraction::memory_fraction;
pub use growth::fit_growth;
pub use guess::guess;
pub use mesh::{Layout, Mesh, MeshError};
pub use next::{RESERVE_PERCENT, SearchStep, highest_tried, next_safe, next_value, reserve, safe_text};
pub use probe::Probe;
pub use search::{Guess, SearchOutcome, search, search_from};
pub use values::{Values, ValuesError};
pub use varied::{VariedNumber, may_take_amp};
