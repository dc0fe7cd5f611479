//! The GPU memory that programs may take: `blockyard guard`.
//!
//! A repository has a file `memory.toml` that a person reads and reviews: [`GuardFile`]. Its
//! [`ProgramEntry`]s name a program, its arguments and a GPU, perhaps a budget, and the [`Baseline`] of an
//! earlier run. [`compare`] compares a [`MeasuredRun`] with an entry: the result says what failed, and which
//! lines of the program change the peak, as rows that add up to the byte; [`report`] puts it into sentences.
//! This crate runs nothing.
//!
//! # Example
//!
//! ```
//! use blockyard_guard::{GuardFile, MeasuredRun, compare};
//! use blockyard_record::Bytes;
//!
//! let file = GuardFile::parse("[[program]]\nprogram = \"train.py\"\ngpu = \"h100\"\nbudget = \"60 GiB\"\n")?;
//! let run = MeasuredRun { peak_reserved: Bytes::gib(61), ..MeasuredRun::default() };
//! let found = compare(&file.entries()[0], &run);
//! assert!(!found.failures.is_empty());
//! # Ok::<(), blockyard_guard::GuardFileError>(())
//! ```

mod compare;
mod entry;
mod file;
mod lines;
mod text;
mod tolerance;
mod write;

pub use compare::{ChangeRow, Failure, GuardComparison, IterationChange, PeakGrowth, compare};
pub use entry::{Baseline, EntryLine, LineHolder, MeasuredRun, ProgramEntry, RunFailure};
pub use file::{GuardFile, GuardFileError};
pub use text::{report, signed};
pub use tolerance::{Tolerance, ToleranceError};
