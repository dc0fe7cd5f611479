//! What `blockyard watch` tells the page about programs that run.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

/// How the address ends at which the page asks for the programs: a list of [`RunningProgram`]s, as postcard.
pub const RUNNING: &str = ".live";
/// How the address ends of the last [`MAX_RUNNING_STEPS`] steps of a program, after its name.
pub const LAST_STEPS: &str = ".steps";
/// How the address ends of all that is kept of a program, after its name.
pub const WHOLE_RECORDING: &str = ".pickle";
/// The most steps that a page shows of a program while it runs.
pub const MAX_RUNNING_STEPS: usize = 20;

/// One process of a program that runs, as far as the page shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningProgram {
    /// The name of the process and of its recording.
    pub name: String,
    /// Another number means that the memory may have changed.
    pub moment: u64,
    /// The number of the last step that ended.
    pub step: u64,
    /// The last steps, one for each device that is used, the newest last.
    pub steps: Vec<RunningStep>,
    /// The forecast as a sentence, and whether a step fails in it; `None` before the first forecast.
    pub forecast: Option<(String, bool)>,
    /// What else was noted, the newest last: lost events, failed requests.
    pub notes: Vec<String>,
    /// How many requests found no memory.
    pub failures: u64,
    /// Whether the process has ended.
    pub is_over: bool,
}

/// One device at the end of a step of a program that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningStep {
    /// The number of the step.
    pub number: u64,
    /// The index of the device, where the program uses several.
    pub device: Option<usize>,
    /// The most bytes that were allocated and that were reserved at once within the step; `None` where events
    /// were lost.
    pub peaks: Option<[Bytes; 2]>,
    /// By how many bytes more is allocated than at the end of the step before.
    pub growth: Option<i64>,
    /// The line whose live bytes became more by the most, and by how many.
    pub line: Option<(String, Bytes)>,
}
