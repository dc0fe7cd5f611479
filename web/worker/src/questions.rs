//! Questions about runs, and reports about them. The worker keeps its runs from one question to the next.

use std::cell::RefCell;
use std::ops::ControlFlow;

use blockyard_lab::{
    Conditions, LabAnswer as Answer, LabError, Limit, Question, Row, Run, RunSource, SearchResult,
    candidates, replay_under,
};
use blockyard_record::Bytes;
use blockyard_replay::{OnProgress, Progress};
pub use blockyard_report::ReportOptions;
use blockyard_rules::Release;
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, Performance};

use crate::channel::{self, file_of, reply};
use crate::content::whole;

#[wasm_bindgen]
extern "C" {
    // The clock of a worker. A window has a clock of the same name.
    #[wasm_bindgen(thread_local_v2, js_name = performance)]
    static PERFORMANCE: Option<Performance>;
}

/// A message of the page. The file that a task names comes with the task.
#[derive(Debug, Serialize, Deserialize)]
pub enum LabTask {
    /// Reads runs. Later questions are about these runs.
    Take(RunSource),
    /// Answers a question about a run that was read.
    Ask {
        /// The index of the run; `None` for the first in [`Run::device_order`].
        run: Option<usize>,
        /// The question.
        question: Question,
    },
    /// Does a part of a search of settings, which the page divides among its workers.
    Search {
        /// The index of the run, as that of [`LabTask::Ask`].
        run: Option<usize>,
        /// The part.
        part: SearchPart,
    },
    /// Makes the report about a file or a workload. The runs that were read before stay.
    Report {
        /// The file or the workload.
        source: RunSource,
        /// The options of the report.
        options: ReportOptions,
    },
}

/// A part of a search of settings.
#[derive(Debug, Serialize, Deserialize)]
pub enum SearchPart {
    /// Says which settings are tried: [`candidates`].
    Candidates(Conditions),
    /// Replays the run under one of them: [`replay_under`].
    Replay(Conditions),
    /// Says which setting is best: [`SearchResult::of`].
    Recommend {
        /// The conditions of the run itself.
        conditions: Conditions,
        /// The run under its own settings.
        baseline: Box<Row>,
        /// The run under each setting.
        rows: Vec<Row>,
    },
}

/// The reply of the worker to a task.
#[derive(Debug, Serialize, Deserialize)]
pub enum LabReply {
    /// How much of the task is done.
    Progress(Progress),
    /// The runs that were read.
    Taken(Vec<RunSummary>),
    /// The answer.
    Answered(Box<Answer>),
    /// The settings that a search tries.
    Candidates(Vec<String>),
    /// The run under one of them.
    Row(Box<Row>),
    /// The result of a search.
    Recommended(Box<SearchResult>),
    /// The report, as HTML.
    Report(String),
    /// The task failed: the error message of the library.
    Failed(String),
}

/// The facts about a run that the page shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The name of the run.
    pub name: String,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// The capacity of the run's device.
    pub capacity: Bytes,
    /// How many requests the run has.
    pub requests: u64,
    /// The place of the run among those of other devices: [`Run::device_order`].
    pub device_order: (bool, Bytes, usize),
    /// The request that went out of memory in the recorded run, counted from 1.
    pub recorded_oom: Option<u64>,
    /// The limit that the file implies.
    pub limit: Option<Limit>,
    /// The release of PyTorch whose rules the run has.
    pub release: Release,
    /// Sentences about unknown facts of the run.
    pub notes: Vec<String>,
}

impl RunSummary {
    fn of(run: &Run) -> Self {
        Self {
            name: run.name.clone(),
            conf: run.conf.clone(),
            capacity: run.capacity,
            requests: run.request_count(),
            device_order: run.device_order(),
            limit: run.implied_limit(),
            release: run.release,
            recorded_oom: run.recorded_oom().map(|request| run.request_number(request)),
            notes: run.notes(),
        }
    }
}

thread_local! {
    static RUNS: RefCell<Vec<Run>> = const { RefCell::new(Vec::new()) };
}

/// How a report is made.
type MakeReport = fn(RunSource, &ReportOptions, OnProgress) -> Result<String, String>;

/// Receives messages of the page from now on, and answers questions.
pub fn listen() {
    listen_and_report(|_, _, _| Err("this worker makes no reports".to_owned()));
}

/// Receives messages of the page as [`listen`] does, and makes reports too. A separate program calls this
/// function, since the code that draws reports is a third of that program, and most readers never ask for a
/// report.
pub fn listen_for_reports() {
    listen_and_report(|source, options, on_progress| {
        blockyard_report::report(source, options, on_progress).map_err(|error| error.to_string())
    });
}

fn listen_and_report(make_report: MakeReport) {
    channel::listen(move |task, message| do_task(task, file_of(&message), make_report));
}

/// Does a task. `file` is the file that the task names.
fn do_task(task: LabTask, file: Option<Blob>, make_report: MakeReport) {
    let mut on_progress = |progress: Progress| {
        reply(&LabReply::Progress(progress));
        ControlFlow::Continue(())
    };
    let content = file.map(whole);
    let done = match task {
        LabTask::Take(source) => with_content(source, content).runs(&mut on_progress).map(|runs| {
            let summaries = runs.iter().map(RunSummary::of).collect();
            RUNS.set(runs);
            LabReply::Taken(summaries)
        }),
        LabTask::Report { source, options } => {
            let source = with_content(source, content);
            let made = make_report(source, &options, &mut on_progress);
            return reply(&made.map_or_else(LabReply::Failed, LabReply::Report));
        }
        LabTask::Ask { run, question } => with_run(run, |run| {
            let question = match question {
                Question::Diff(source) => Question::Diff(with_content(source, content)),
                other => other,
            };
            let answer = question.ask(run, &mut now_nanos, &mut on_progress)?;
            Ok(LabReply::Answered(Box::new(answer)))
        }),
        LabTask::Search { run, part } => with_run(run, |run| do_part(part, run)),
    };
    reply(&done.unwrap_or_else(|error| LabReply::Failed(error.to_string())));
}

/// Does a part of a search. It reports no progress, since the page counts the settings that were tried.
fn do_part(part: SearchPart, run: &Run) -> Result<LabReply, LabError> {
    let mut go_on = |_: usize| ControlFlow::Continue(());
    Ok(match part {
        SearchPart::Candidates(conditions) => LabReply::Candidates(candidates(run, &conditions)),
        SearchPart::Replay(conditions) => {
            LabReply::Row(Box::new(replay_under(run, &conditions, 0, &mut go_on)?))
        }
        SearchPart::Recommend { conditions, baseline, rows } => {
            let found = SearchResult::of(run, &conditions, *baseline, rows, &mut go_on)?;
            LabReply::Recommended(Box::new(found))
        }
    })
}

/// Asks about the run with this index; `None` for the first in [`Run::device_order`].
fn with_run(
    index: Option<usize>,
    ask: impl FnOnce(&Run) -> Result<LabReply, LabError>,
) -> Result<LabReply, LabError> {
    RUNS.with_borrow(|runs| {
        // Of equal ones the first.
        let first = || runs.iter().rev().max_by_key(|run| run.device_order());
        ask(index.map_or_else(first, |index| runs.get(index)).ok_or(LabError::NoTrace)?)
    })
}

fn with_content(source: RunSource, content: Option<Vec<u8>>) -> RunSource {
    match (source, content) {
        (RunSource::File { name, .. }, Some(bytes)) => RunSource::File { name, bytes },
        (RunSource::Simulated { name, simulation, .. }, Some(bytes)) => {
            RunSource::Simulated { name, bytes, simulation }
        }
        (source, _) => source,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a worker's clock starts at 0 and reaches 2^53 nanoseconds after three months"
)]
fn now_nanos() -> u64 {
    let millis = PERFORMANCE.with(|clock| clock.as_ref().map_or(0.0, Performance::now));
    (millis * 1e6) as u64
}
