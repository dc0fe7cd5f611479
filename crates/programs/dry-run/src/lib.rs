//! Runs a PyTorch program with the PyTorch that is installed, on a machine without a GPU:
//! `blockyard dry-run`.
//!
//! [`Torch`] finds the installed package. [`prepare`] makes a folder of libraries that replace CUDA's, once
//! for each installed package, and keeps the folder in the cache directory. [`run`] starts the program over
//! these libraries and returns a [`Report`] of the memory that the program took.

mod elf;
mod error;
mod extensions;
mod json;
mod non_pytorch;
mod note;
mod orders;
mod preloaded;
mod prepare;
mod ranks;
mod report;
mod run;
mod run_log;
mod symbols;
mod torch;

pub use elf::{Library, write_library};
pub use error::DryRunError;
pub use non_pytorch::{HolderCount, NonPytorchMemory};
pub use note::{EstimateNote, NoteKind};
pub use orders::{OtherOrders, ReplayedOrders, available_memory, run_other_orders};
pub use preloaded::PreloadedProcess;
pub use prepare::{
    LibraryFolder, cache_folder, find_library, find_standin, prepare, prepare_in, write_runner,
};
pub use ranks::{RankError, RankReport, Ranks, RanksReport, StoreServer, run_ranks};
pub use report::{CapacityCrossing, DeviceReport, EXACT, GpuFit, Report, RunOom};
pub use run::{Program, run, run_interruptible, run_until};
pub use run_log::{ChildCounts, ChildPeak, Iteration, IterationPeak, PrintedLine};
pub use symbols::{Imports, defined};
pub use torch::Torch;
