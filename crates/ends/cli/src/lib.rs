//! The `blockyard` command. Its subcommands:
//!
//! - show what happened in a file: `verdict` (or the file alone), `snapshot`, `play`, `report`, `export`,
//!   `open`;
//! - replay it: `run`, `verify`, and the questions (`what-if`, `search`, `autopsy`, `bound`,
//!   `compare-allocators`, `diff`, `leaks`);
//! - run PyTorch programs without a GPU: `python`, `dry-run`, `fit`, `guard`; watch one that runs: `watch`;
//! - teach: `lesson`, `site`; measure: `bench`;
//! - answer the questions of another program, by the Model Context Protocol: `mcp`.
//!
//! The crate is a library, so that `python -m blockyard` is the same command as the program. `options` has
//! the subcommands, and each is a module with its options. An answer is text for people, or JSON
//! through a type of `blockyard_answers`.
//!
//! # Example
//!
//! ```no_run
//! let arguments = ["blockyard", "verify", "run.jsonl.gz"];
//! let code = blockyard_cli::run_command(arguments.map(Into::into));
//! ```
//!
//! # Decisions
//!
//! **A page can be one file** (`page.rs`; `export OUT.html` and a notebook's cell are such pages). The file
//! contains the page's program, its style and one opened file, packed; a short script answers the page's
//! `fetch` from them, and the attribute `data-address` of the root element has the part of the address that
//! names the view. Such a page has no origin, so its workers load scripts from `data:` addresses. `blockyard
//! open` serves the built page with the file beside it, which the page finds by `#open=NAME`; the address has
//! `?once`, so that the browser does not keep a page for one file.

mod bench;
mod device;
mod dry_run;
mod exit_status;
mod export;
mod fit;
mod guard;
mod lesson;
#[cfg(feature = "mcp")]
mod mcp;
mod options;
mod output;
mod page;
mod play;
mod progress;
#[cfg(feature = "python")]
mod python;
mod questions;
mod report;
mod run;
mod site;
mod snapshot;
mod typeface;
mod verify;
#[cfg(unix)]
mod watch;

pub use export::{Export, export_bytes};
pub use page::{BuiltPage, PageFile, frame, one_page};
#[cfg(feature = "python")]
pub use python::{PlayedProgram, ProgramCall, play_program};
pub use questions::{ask, ask_diff, ask_diff_iterations, json_line};
pub use snapshot::{certify_device, describe_device};
pub use typeface::font_faces;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::exit_status::ExitStatus;
use crate::options::{Command, Options};
use crate::questions::{ask_files, autopsy, bound, compare, diff, leaks, search, verdict, what_if};

/// Runs the command with these arguments, of which the first is the program's name.
pub fn run_command(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match Options::try_parse_from(arguments) {
        Ok(options) => options,
        // The help and the version are such an error of clap too.
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitStatus::Failed } else { ExitStatus::Positive }.into();
        }
    };
    let result = match &options.into_command() {
        Command::Verdict(options) => verdict::verdict(options),
        Command::Run(options) => run::run(options),
        Command::Verify(options) => verify::verify(options),
        Command::Play(options) => play::play(options),
        Command::Snapshot(options) => snapshot::snapshot(options),
        Command::Export(options) => export::export(options),
        Command::Report(options) => report::report(options),
        Command::Open(options) => page::open(options),
        Command::Site(options) => site::site(options),
        Command::Bench(options) => bench::bench(options),
        Command::WhatIf(options) => what_if::what_if(options),
        Command::Search(options) => ask_files(options, search::answer),
        Command::Autopsy(options) => ask_files(options, autopsy::answer),
        Command::Bound(options) => bound::bound(options),
        Command::CompareAllocators(options) => ask_files(options, compare::answer),
        Command::Diff(options) => diff::diff(options),
        Command::Leaks(options) => ask_files(options, leaks::answer),
        Command::Lesson(options) => lesson::lesson(options),
        #[cfg(feature = "python")]
        Command::Python(options) => python::python(options),
        Command::DryRun(options) => dry_run::dry_run(options),
        #[cfg(unix)]
        Command::Watch(options) => watch::watch(options),
        Command::Fit(options) => fit::fit(options),
        Command::Guard(options) => guard::guard(options),
        #[cfg(feature = "mcp")]
        Command::Mcp(options) => mcp::mcp(options),
    };
    match result {
        Ok(code) => code,
        // A reader that stops early (`| head`) causes no error.
        Err(error) if output::is_closed_pipe(&error) => ExitStatus::Positive.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitStatus::Failed.into()
        }
    }
}
