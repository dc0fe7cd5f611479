//! The answer of `blockyard verdict`.

use blockyard_record::{Bytes, OomCause};
use serde::{Deserialize, Serialize};

use crate::{CodeFix, Gap};

/// The verdict about a run, in the order in which a reader asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerdictAnswer {
    /// The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them.
    pub conf: String,
    /// The verdict in a word.
    pub kind: VerdictKind,
    /// The verdict in a sentence.
    pub headline: String,
    /// The cause of the autopsy; null where the run fits.
    pub cause: Option<OomCause>,
    /// The sentences, in the order in which a reader asks.
    pub findings: Vec<Finding>,
    /// The lines of the program that held live blocks at the failure, or at the peak of a run that fits,
    /// those first that held most.
    pub held: Vec<HoldingLine>,
    /// The request at the moment of `held`, counted from 1: the request that failed, or the one that reaches
    /// the peak; 0 where the run has no such request.
    pub moment: u64,
    /// Settings that help, or null.
    pub setting: Option<String>,
    /// What becomes of a run that grows and has not failed, if its iterations go on: `finishes`, or an object
    /// with the field `fails` or `passes`; null for other runs, and where the last whole iterations are not equal.
    pub forecast: Option<Forecast>,
    /// The bytes that are reserved and that no live tensor asked for; null where no request is replayed and
    /// no memory is known.
    pub gap: Option<Gap>,
    /// At most three changes of a run that failed: of a setting, of the code and of the memory. First those after
    /// which no later iteration is known to fail, of these the one that costs least; a tensor to free is last.
    /// Empty where no request failed.
    pub fixes: Vec<String>,
    /// The changes of the program's code that lower the peak of allocated bytes, at most one of each kind, the
    /// one that takes most first. All are estimates. Empty where no stacks of a training were recorded.
    pub code_fixes: Vec<CodeFix>,
    /// The devices of the file, in its order; empty where it has one.
    #[serde(default)]
    pub devices: Vec<DeviceOfFile>,
}

/// One of several devices of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceOfFile {
    /// The device, as PyTorch numbers it.
    pub device: u64,
    /// Whether a request of the device failed.
    pub is_out_of_memory: bool,
    /// The bytes that blocks hold at the end of the file.
    pub held: Bytes,
}

impl VerdictAnswer {
    /// The verdict with these sentences and nothing else.
    #[must_use]
    pub fn new(conf: &str, kind: VerdictKind, headline: String, findings: Vec<Finding>) -> Self {
        Self {
            conf: conf.to_owned(),
            kind,
            headline,
            cause: None,
            findings,
            held: Vec::new(),
            moment: 0,
            setting: None,
            forecast: None,
            gap: None,
            fixes: Vec::new(),
            code_fixes: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// The sentences by question, in the order in which a reader asks, without those of `fixes`, which come
    /// before all others. A question may have no sentence.
    pub fn sections(&self) -> impl Iterator<Item = (FindingTopic, Vec<&Finding>)> {
        FindingTopic::ALL.into_iter().map(|about| {
            let of_this = |found: &&Finding| found.about == about && !self.fixes.contains(&found.text);
            (about, self.findings.iter().filter(of_this).collect())
        })
    }
}

/// A verdict in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// No request failed, to the end of the run.
    Fits,
    /// No request failed, and each iteration holds more than the one before.
    Grows,
    /// A request failed because iterations held more and more: it passes without what earlier iterations kept,
    /// or the iterations before it are equal but for their growth, and lead to this failure.
    Leak,
    /// A request failed.
    OutOfMemory,
    /// There is a memory and no request: the snapshot has no trace.
    StateOnly,
    /// The requests cannot be replayed, or the replay passes where the recorded run failed.
    NotReplayed,
}

/// A sentence of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What the sentence is about.
    pub about: FindingTopic,
    /// The sentence.
    pub text: String,
    /// The request that the sentence is about, counted from 1, or null.
    pub request: Option<u64>,
    /// The line of the program that the sentence is about, as in `held`; null in sentences that are not about
    /// growth.
    pub line: Option<String>,
    /// The moments that the sentence is about, in their order.
    pub moments: Vec<VerdictMoment>,
    /// The settings that the sentence is about; each is a row of `what-if`.
    pub settings: Vec<String>,
    /// The release of PyTorch that the sentence is about, as `--release` names it, or null.
    pub release: Option<String>,
}

impl Finding {
    /// A sentence, without a full stop; lines of the program are between backticks.
    #[must_use]
    pub fn new(about: FindingTopic, text: impl Into<String>) -> Self {
        Self {
            about,
            text: text.into(),
            request: None,
            line: None,
            moments: Vec::new(),
            settings: Vec::new(),
            release: None,
        }
    }

    /// The sentence with the request that it is about, counted from 1.
    #[must_use]
    pub fn at(self, request: u64) -> Self {
        Self { request: Some(request), ..self }
    }

    /// The sentence with the settings that it is about.
    #[must_use]
    pub fn with_settings(self, settings: &[&str]) -> Self {
        Self { settings: settings.iter().map(|conf| (*conf).to_owned()).collect(), ..self }
    }
}

/// The questions that a verdict answers, in their order: what a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingTopic {
    /// What happened.
    Happened,
    /// What grows from iteration to iteration.
    Grows,
    /// Why more is reserved than live tensors asked for.
    Gap,
    /// How sure the verdict is.
    #[serde(rename = "sure")]
    Certainty,
    /// What lets the run pass, or takes less memory.
    #[serde(rename = "passes")]
    Helps,
    /// What a change of the program's code would take: estimates.
    Code,
    /// What was replayed and helps at one bound of the limit alone. JSON has the word
    /// `fails`, and the sentence says at which bound the request fails.
    #[serde(rename(serialize = "fails"))]
    #[cfg_attr(feature = "schema", schemars(skip))]
    DependsOnLimit,
    /// What was replayed and does not help.
    #[serde(rename = "fails")]
    DoesNotHelp,
    /// How much less memory would be enough.
    #[serde(rename = "less")]
    Shortfall,
    /// Which GPUs hold the run.
    Gpus,
    /// What another release of PyTorch changes.
    Releases,
}

impl FindingTopic {
    /// All questions, in their order.
    pub const ALL: [Self; 11] = [
        Self::Happened,
        Self::Grows,
        Self::Gap,
        Self::Certainty,
        Self::Helps,
        Self::Code,
        Self::DependsOnLimit,
        Self::DoesNotHelp,
        Self::Shortfall,
        Self::Gpus,
        Self::Releases,
    ];

    /// The question as a heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Happened => "What happened",
            Self::Grows => "What grows",
            Self::Gap => "Why more is reserved than requested",
            Self::Certainty => "How sure that is",
            Self::Helps => "What helps",
            Self::Code => "What changes of the code would take",
            Self::DependsOnLimit => "What helps at one end of the limit",
            Self::DoesNotHelp => "What does not help",
            Self::Shortfall => "What would be enough",
            Self::Gpus => "Which GPUs hold it",
            Self::Releases => "What another PyTorch changes",
        }
    }
}

/// A moment of a run: just after one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerdictMoment {
    /// What happens at the moment.
    pub name: MomentName,
    /// The request, counted from 1.
    pub request: u64,
    /// How many requests for memory follow in the run. A recording of the same run has this moment where as
    /// many follow.
    pub allocations_after: u64,
    /// The step of the program, counted from 1; null where steps are not known.
    pub step: Option<u64>,
}

/// What happens at a moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MomentName {
    /// The request fails.
    Failure,
    /// Most bytes are allocated.
    Peak,
    /// The first allocation that is part of a growth.
    FirstKept,
    /// The last allocation that is part of a growth.
    LastKept,
    /// The first allocation of a line that holds memory.
    FirstHeld,
    /// The last allocation of a line that holds memory.
    LastHeld,
}

impl MomentName {
    /// The name in words, `the failure`.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Failure => "the failure",
            Self::Peak => "the peak",
            Self::FirstKept => "the first that stays",
            Self::LastKept => "the last that stays",
            Self::FirstHeld => "the first block",
            Self::LastHeld => "the last block",
        }
    }
}

/// The live bytes of one line of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldingLine {
    /// The line, with its function and its file; where no stack was recorded, the name of the tensor or the size
    /// of the block.
    pub line: String,
    /// The lines that called this line, those first that hold most: a line of a helper function says little
    /// without them.
    pub callers: Vec<String>,
    /// The bytes of the line's live blocks.
    pub bytes: Bytes,
    /// How many live blocks the line has.
    pub blocks: u64,
    /// The first request of the line that is live then, counted from 1; 0 where all blocks are from before the
    /// recording.
    pub first_request: u64,
    /// The last request of the line that is live then, counted from 1.
    pub last_request: u64,
    /// The first and the last block of the line.
    pub moments: Vec<VerdictMoment>,
}

impl HoldingLine {
    /// A line that holds nothing yet.
    #[must_use]
    pub fn new(line: String) -> Self {
        Self { line, ..Self::default() }
    }

    /// The line with its callers: `buf train.py:12, called at keep train.py:33`.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}", self.line, called_at(&self.callers, ""))
    }
}

/// The callers of a line in words, the most important first: `, called at f train.py:33`. Each caller is between
/// two of `quote`.
#[must_use]
pub fn called_at(callers: &[String], quote: &str) -> String {
    match callers {
        [] => String::new(),
        [one] => format!(", called at {quote}{one}{quote}"),
        [one, other] => format!(", called at {quote}{one}{quote} and {quote}{other}{quote}"),
        [one, others @ ..] => {
            format!(", called at {quote}{one}{quote} and {} other lines", others.len())
        }
    }
}

/// What becomes of a run if its iterations go on as the last whole ones did: these are replayed again and
/// again, with what each of them keeps and with the steps by which their sizes grow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Forecast {
    /// The memory after one iteration is the memory after an earlier one, so that no later iteration fails.
    Finishes,
    /// An iteration runs out of memory.
    Fails {
        /// The iteration that fails at the lower bound of the limit, counted from 1.
        iteration: u64,
        /// The iteration that fails at the upper bound of the limit; null where none fails there. Equal to
        /// `iteration` where the limit is known exactly.
        at_upper_bound: Option<u64>,
        /// The bytes that the failing request asks for; null in an estimate.
        size: Option<Bytes>,
        /// The line of the program that asks for them; null where no stack was recorded.
        line: Option<String>,
        /// Whether growth was continued in a straight line from the last iteration that was replayed.
        is_estimate: bool,
    },
    /// No iteration up to this one fails, and the memory does not repeat: what comes later is not known.
    Passes {
        /// The last iteration that was replayed, counted from 1.
        iteration: u64,
    },
}

impl Forecast {
    /// The same forecast with iterations that count so many more before the first of them.
    #[must_use]
    pub fn counted_after(mut self, before: u64) -> Self {
        match &mut self {
            Self::Fails { iteration, at_upper_bound, .. } => {
                *iteration = iteration.saturating_add(before);
                *at_upper_bound = at_upper_bound.map(|upper| upper.saturating_add(before));
            }
            Self::Passes { iteration } => *iteration = iteration.saturating_add(before),
            Self::Finishes => {}
        }
        self
    }
}
