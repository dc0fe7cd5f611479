//! Which value, settings or layout of a program fits a GPU, by runs of the program without a GPU.
//!
//! [`Question`] is the question, [`ask`] makes the runs that answer it, [`text()`] puts the answer
//! into sentences, and [`end`] says whether there is one. The answer's type is its JSON.

mod cache;
mod largest;
mod layouts;
mod map;
mod run_queue;
mod runs;
mod settings;
mod text;
mod vary;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use blockyard_answers::{
    FitAnswer, FitBy, FitCall, FitLargestAnswer, FitLayoutsAnswer, FitMapRow, FitResult, FitRunEnd,
    FitSettingsAnswer, VERSION,
};
use blockyard_rules::conf_text;
use thiserror::Error;

pub use self::cache::{RunCache, kept_file};
pub use self::layouts::{RunRanks, RunRanksError};
pub use self::run_queue::RunQueue;
pub use self::runs::{FitProgram, ImportsProcess, RunCaller, RunConditions, RunCounts, Runs};
pub use self::text::{largest_sentence, text};
pub use self::vary::{Vary, VaryError, VaryOption};
use crate::Mesh;

/// Why a question of `fit` cannot be asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FitError {
    /// The question is about no GPU, a limit that the GPU does not have, or ranks that do not exist.
    #[error("{0}")]
    Question(String),
    /// A file of kept runs cannot be written or deleted.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        error: io::Error,
    },
}

impl FitError {
    fn no_gpu() -> Self {
        Self::Question("no GPU is named: name one with --gpu".to_owned())
    }

    fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        |error| Self::File { path: path.into().display().to_string(), error }
    }
}

/// A question about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The largest value that fits.
    Largest(Vary),
    /// The largest value for each value of another option.
    ByOther(Vary, Vary),
    /// The largest value under each of these settings.
    BySettings(Vary, Vec<String>),
    /// Which settings fit.
    Settings(Vec<String>),
    /// Which layouts of this number of ranks fit.
    Layouts(Mesh, u32),
    /// The largest value for each layout of this number of ranks.
    ByLayouts(Vary, Mesh, u32),
}

impl Question {
    /// The option or variable whose largest value is searched.
    pub fn vary(&self) -> Option<&Vary> {
        match self {
            Self::Largest(vary)
            | Self::ByOther(vary, _)
            | Self::BySettings(vary, _)
            | Self::ByLayouts(vary, ..) => Some(vary),
            Self::Settings(_) | Self::Layouts(..) => None,
        }
    }

    /// The name of the option, settings or layouts that the rows of a map differ in; empty without a map.
    pub fn by_name(&self) -> &str {
        match self {
            Self::ByOther(_, other) => &other.name,
            Self::BySettings(..) => "settings",
            Self::ByLayouts(..) => "layout",
            Self::Largest(_) | Self::Settings(_) | Self::Layouts(..) => "",
        }
    }

    /// The name of a row of a map: the value of the other option, the settings, or the layout.
    pub fn row_name(&self, row: &FitMapRow) -> String {
        match (self, &row.layout, &row.conf) {
            (Self::ByLayouts(_, mesh, _), Some(layout), _) => layouts::layout_text(mesh.names(), layout),
            (_, _, Some(conf)) => conf_text(conf).to_owned(),
            _ => row.value.unwrap_or_default().to_string(),
        }
    }
}

/// Runs the program until the question has an answer for each GPU.
///
/// # Errors
///
/// [`FitError`] if the question names no GPU or ranks that do not exist. A run that fails is in the answer.
pub fn ask(
    runs: &Runs<'_>,
    conditions: &[RunConditions],
    question: &Question,
) -> Result<FitAnswer, FitError> {
    let result = match question {
        Question::Largest(vary) => {
            let (first, others) = first_and_others(largest::largest(runs, conditions, vary))?;
            FitResult::Largest(Box::new(FitLargestAnswer { vary: vary.answer(), first, others }))
        }
        Question::ByOther(vary, other) => map::by_values(runs, conditions, vary, other)?,
        Question::BySettings(vary, settings) => map::by_settings(runs, conditions, vary, settings)?,
        Question::ByLayouts(vary, mesh, ranks) => map::by_layouts(runs, conditions, vary, mesh, *ranks)?,
        Question::Settings(settings) => {
            let (first, others) = first_and_others(settings::settings(runs, conditions, settings))?;
            FitResult::Settings(Box::new(FitSettingsAnswer { first, others }))
        }
        Question::Layouts(mesh, ranks) => {
            let (first, others) = first_and_others(layouts::layouts(runs, conditions, mesh, *ranks)?)?;
            FitResult::Layouts(Box::new(FitLayoutsAnswer { first, others }))
        }
    };
    let program = runs.program;
    let call = FitCall {
        version: VERSION,
        program: program.file.display().to_string(),
        arguments: program.arguments.clone(),
        steps: program.steps,
        torch: runs.torch.version.clone(),
        kept: runs.cache.path().display().to_string(),
        runs: runs.counts.made.load(Ordering::Relaxed) as u64,
        known: runs.counts.known.load(Ordering::Relaxed) as u64,
    };
    Ok(FitAnswer { call, result })
}

/// The answer about the first GPU, and those about further GPUs.
fn first_and_others<A>(answers: Vec<A>) -> Result<(A, Vec<A>), FitError> {
    let mut answers = answers.into_iter();
    let first = answers.next().ok_or_else(FitError::no_gpu)?;
    Ok((first, answers.collect()))
}

/// The answers about all GPUs.
fn on_gpus<'a, A>(first: &'a A, others: &'a [A]) -> impl Iterator<Item = &'a A> {
    std::iter::once(first).chain(others)
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Something fits each GPU.
    Found,
    /// Nothing fits one of the GPUs.
    NotFound,
    /// A run failed for another reason than memory.
    Failed,
    /// The runs were stopped.
    Stopped,
}

/// How the question of an answer ended.
pub fn end(result: &FitResult) -> End {
    let (ended, is_found) = match result {
        FitResult::Largest(found) => {
            let all = || on_gpus(&found.first, &found.others);
            (all().find_map(|on_gpu| on_gpu.error.as_ref()), all().all(|on_gpu| on_gpu.largest.is_some()))
        }
        FitResult::Map(found) => {
            let all = || on_gpus(&found.first, &found.others);
            let is_found = all().all(|on_gpu| on_gpu.rows.iter().any(|row| row.largest.is_some()));
            // A layout that the program does not take has no answer; other layouts do.
            let counts_failures = !is_found || !matches!(found.by, FitBy::Layouts { .. });
            (all().find_map(|on_gpu| map::error(on_gpu, counts_failures)), is_found)
        }
        FitResult::Settings(found) => {
            let all = || on_gpus(&found.first, &found.others);
            (all().find_map(|on_gpu| on_gpu.error.as_ref()), all().all(|on_gpu| on_gpu.best.is_some()))
        }
        FitResult::Layouts(found) => {
            let all = || on_gpus(&found.first, &found.others);
            let is_found = all().all(|on_gpu| on_gpu.best.is_some());
            let stopped = all().find_map(|on_gpu| on_gpu.error.as_ref());
            let has_failed = all().flat_map(|on_gpu| &on_gpu.layouts).any(|row| row.error.is_some());
            if stopped.is_none() && !is_found && has_failed {
                return End::Failed;
            }
            (stopped, is_found)
        }
    };
    match ended {
        Some(FitRunEnd::Stopped) => End::Stopped,
        Some(FitRunEnd::Failed(_)) => End::Failed,
        None if is_found => End::Found,
        None => End::NotFound,
    }
}

/// The program's own settings first, then the named settings, each once.
fn all_settings(conditions: &RunConditions, named: &[String]) -> Vec<String> {
    let mut all = vec![own_settings(conditions)];
    for conf in named {
        if !all.contains(conf) {
            all.push(conf.clone());
        }
    }
    all
}

/// The allocator's settings of a run: those of the call, or else those of the first variable of the
/// environment that PyTorch reads.
fn own_settings(conditions: &RunConditions) -> String {
    let environment =
        || ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"].iter().find_map(|name| std::env::var(name).ok());
    conditions.terms.conf.clone().or_else(environment).unwrap_or_default()
}
