//! The GPU memory that programs may take: `blockyard guard`.
//!
//! A repository has a file `memory.toml` that a person reads and reviews: [`GuardFile`]. Its
//! [`ProgramEntry`]s name a program, its arguments and a GPU, perhaps a budget, and the [`Baseline`] of an
//! earlier run. [`compare`] compares a [`MeasuredRun`] with an entry: the result says what failed, and which
//! lines of the program change the peak, as rows that add up to the byte. [`GuardRuns`] runs a program for
//! this, and [`answer()`] is the answer, with its sentences.
//!
//! # Example
//!
//! ```
//! use blockyard_budget::guard::{GuardFile, MeasuredRun, compare};
//! use blockyard_record::Bytes;
//!
//! let file = GuardFile::parse("[[program]]\nprogram = \"train.py\"\ngpu = \"h100\"\nbudget = \"60 GiB\"\n")?;
//! let run = MeasuredRun { peak_reserved: Bytes::gib(61), ..MeasuredRun::default() };
//! let found = compare(&file.entries()[0], &run);
//! assert!(!found.failures.is_empty());
//! # Ok::<(), blockyard_budget::guard::GuardFileError>(())
//! ```

mod answer;
mod compare;
mod entry;
mod file;
mod lines;
mod runs;
mod text;
mod tolerance;
mod write;

pub use self::answer::{GuardedRun, answer};
pub use self::compare::{GuardComparison, compare};
pub use self::entry::{Baseline, MeasuredRun, ProgramEntry};
pub use self::file::{GuardFile, GuardFileError};
pub use self::runs::GuardRuns;
pub use self::tolerance::{Tolerance, ToleranceError};
