//! The harness of every benchmark of this project: `blockyard bench` (a device), `cargo xtask bench`
//! (everything else), and the measurements that Python makes inside PyTorch.
//!
//! * [`OperationList`]: a list of allocations and frees that every contender replays.
//! * [`Contender`]: an allocator that is measured.
//! * [`alternate`]: contenders take turns for some rounds, so that a slow moment of the machine meets all of
//!   them.
//! * [`Measurement`]: the median of the rounds, and their range.
//! * [`BenchReport`], [`Section`], [`ReportRow`]: the results, as a table, as Markdown, as JSON and as a
//!   chart.
//!
//! A section that times a few functions needs no contender: [`Section::time`] takes closures. Further parts:
//! [`Machine`] (the machine that a measurement ran on), [`Loop`] and [`write_long`] (long snapshots from
//! short ones).
//!
//! # Example
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use blockyard_measure::Section;
//!
//! let text = "7".repeat(100);
//! let mut section = Section::new("numbers", "Two ways to count digits", "ns a text", ["bytes", "chars"]);
//! section.time::<std::convert::Infallible>("100 digits", 3, &mut [
//!     &mut |times| {
//!         let begun = Instant::now();
//!         (0..times).for_each(|_| assert_eq!(std::hint::black_box(&text).bytes().count(), 100));
//!         Ok(begun.elapsed())
//!     },
//!     &mut |times| {
//!         let begun = Instant::now();
//!         (0..times).for_each(|_| assert_eq!(std::hint::black_box(&text).chars().count(), 100));
//!         Ok(begun.elapsed())
//!     },
//! ])?;
//! assert_eq!(section.rows.len(), 1);
//! assert!(blockyard_measure::table(&section).contains("100 digits"));
//! # Ok::<(), std::convert::Infallible>(())
//! ```

#![forbid(unsafe_code)]

mod contender;
mod long;
mod machine;
mod report;
mod trace;
mod turns;

pub use contender::Contender;
pub use long::{Loop, write_long};
pub use machine::Machine;
pub use report::{
    BenchReport, BenchReportError, RatioGoal, ReportRow, Section, Summary, chart, digits, markdown,
    summary_sentence, table,
};
pub use trace::{
    DecodeError, Opcode, Operation, OperationList, OperationListError, Replay, fold, stream_handle,
};
pub use turns::{Measurement, alternate, count_for_turn, geometric_mean, per_unit, take_turns};
