//! The Python program in the editor, with its settings: edit, open, run, stop.

mod examples;
mod fit;
mod result;
mod trials;

pub(crate) use examples::{DEFAULT_GPU, DERIVED_NUMBERS, EXAMPLES, Example};
pub(crate) use fit::{FitSearch, FitVariant, dry_run_command, fit_command};
pub(crate) use result::{AliveBytes, CATEGORIES, ProgramEnd, ProgramResult};
pub(crate) use trials::{ProgramTrial, Trials};

use blockyard_figure::PlayerAction;
use blockyard_gpus::GpuProfile;
use blockyard_program::{PrintedText, ProgramJob, ProgramRun, Referrers};
use blockyard_rules::Release;
use blockyard_workload::{ParseErrorKind, parse_rounded_size};
use leptos::prelude::*;
use leptos::task::spawn_local;
use thiserror::Error;

use self::examples::FIRST_PROGRAM;
use crate::browser;
use crate::interpreter::{self, ProgramReport};
use crate::link::{Link, LinkTarget};
use crate::messages::sentence;
use crate::navigation::Place;
use crate::ptr_eq::PtrEq;
use crate::python_program::PYTHON;
use crate::session::{Feature, Source};

/// What is said while Python is fetched; this many bytes have arrived.
pub(crate) fn loading_sentence(bytes: f64) -> String {
    format!("Loading {PYTHON}, once: {:.1} MB so far.", bytes / 1e6)
}

/// What is said while `cargo xtask play` makes Python's files.
const BUILDING: &str = "Python is still being built by cargo xtask play, which takes minutes the first time. The \
                        program starts when it is built; everything else of the page works.";

/// The state of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum ProgramStatus {
    /// Nothing runs.
    #[default]
    Idle,
    /// Python is being fetched; this many bytes have arrived.
    Loading(f64),
    /// Python is still being fetched and built by `cargo xtask play`.
    Building,
    /// Python starts.
    Starting,
    /// The program runs.
    Running,
    /// The last run has no result, for this reason.
    Failed(String),
}

impl ProgramStatus {
    /// The status as a sentence; empty while nothing runs.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Idle => String::new(),
            Self::Loading(bytes) => loading_sentence(*bytes),
            Self::Building => BUILDING.to_owned(),
            Self::Starting => format!("{PYTHON} starts."),
            Self::Running => "The program runs.".to_owned(),
            Self::Failed(why) => sentence(why),
        }
    }

    /// Whether the program runs, or waits for Python.
    pub(crate) const fn is_busy(&self) -> bool {
        !matches!(self, Self::Idle | Self::Failed(_))
    }
}

/// A program with its GPU and its settings, as the reader typed them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgramInput {
    pub(crate) text: String,
    /// The id of the GPU.
    pub(crate) gpu: String,
    /// The release of PyTorch that runs the program.
    pub(crate) release: Release,
    /// The memory of the GPU; empty for all memory that this GPU has.
    pub(crate) capacity: String,
    pub(crate) conf: String,
    /// The arguments of the program, as typed after its name in a shell.
    pub(crate) arguments: String,
}

impl Default for ProgramInput {
    fn default() -> Self {
        Self {
            text: String::new(),
            gpu: DEFAULT_GPU.to_owned(),
            release: Release::OF_RECORDED_OPERATORS,
            capacity: String::new(),
            conf: String::new(),
            arguments: String::new(),
        }
    }
}

/// The program in the editor, and its last run.
#[derive(Default)]
pub(crate) struct ProgramSignals {
    pub(crate) input: RwSignal<ProgramInput>,
    pub(crate) status: RwSignal<ProgramStatus>,
    /// The seconds since the program began.
    pub(crate) seconds: RwSignal<u32>,
    /// The output of the running program, or of the last one.
    pub(crate) printed: RwSignal<Vec<PrintedText>>,
    /// The last finished run.
    pub(crate) result: RwSignal<Option<PtrEq<ProgramResult>>>,
    /// The id of the example in the editor, if its text is unchanged.
    pub(crate) example: RwSignal<Option<String>>,
    /// Why memory is alive, at the step that was asked for last.
    pub(crate) why_alive: RwSignal<WhyAlive>,
    /// The result before the last one, where it is of the same text on another device or with other settings.
    pub(crate) before: RwSignal<Option<PtrEq<ProgramResult>>>,
    /// The moment with which the figures of the last run opened, until the reader goes to another one.
    pub(crate) opened_at: RwSignal<Option<usize>>,
    /// The output of PyTorch on an H200 for the example in the editor, for each text of settings.
    pub(crate) recorded_texts: RwSignal<Vec<(&'static str, String)>>,
    /// The last run, run again with changes.
    pub(crate) trials: RwSignal<Trials>,
    /// The search for the largest value that fits, if one has begun.
    pub(crate) fit: RwSignal<Option<FitSearch>>,
    /// The name of the number that the search varies; empty for the first of the program's numbers.
    pub(crate) varied: RwSignal<String>,
    /// Whether the search begins when the program has run.
    pub(crate) wants_fit: RwSignal<bool>,
}

/// The answer to the question why memory is alive.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum WhyAlive {
    /// The question was not asked.
    #[default]
    Unknown,
    /// The program runs again up to this step.
    Asked(usize),
    Known(PtrEq<Referrers>),
    /// The program, run again, ended before this step.
    Missing(usize),
}

impl WhyAlive {
    /// The step that the answer is about.
    pub(crate) fn step(&self) -> Option<usize> {
        match self {
            Self::Unknown => None,
            Self::Asked(step) | Self::Missing(step) => Some(*step),
            Self::Known(referrers) => Some(referrers.step),
        }
    }
}

/// The key under which the browser keeps the text.
const KEY: &str = "blockyard.program";

impl ProgramSignals {
    pub(crate) fn new() -> Self {
        let text = browser::recall(KEY).unwrap_or_else(|| FIRST_PROGRAM.to_owned());
        let input = RwSignal::new(ProgramInput { text, ..ProgramInput::default() });
        Self { input, ..Self::default() }
    }

    /// Remembers the text for the next visit.
    fn remember(&self) {
        self.input.with_untracked(|input| browser::remember(KEY, &input.text));
    }
}

impl Feature<ProgramSignals> {
    /// The example in the editor, if its text is unchanged. Reads signals.
    pub(crate) fn shown_example(self) -> Option<Example> {
        let id = self.example.get()?;
        EXAMPLES.iter().copied().find(|example| example.id == id)
    }

    /// Makes a typed text the program.
    pub(crate) fn type_text(self, text: String) {
        self.example.set(None);
        self.recorded_texts.set(Vec::new());
        self.wants_fit.set(false);
        self.input.update(|input| input.text = text);
        self.remember();
    }

    /// Opens a program and searches the largest value of its number of this name once it has run. The view of
    /// the search begins it, whose code is not in the first load.
    pub(crate) fn open_and_fit(self, input: ProgramInput, varied: String) {
        self.session.navigation().go_to(Place::Program);
        let text = input.text.clone();
        self.input.set(input);
        self.type_text(text);
        self.varied.set(varied);
        self.run();
        self.wants_fit.set(true);
    }

    /// Puts a program into the editor and runs it.
    pub(crate) fn open(self, text: String) {
        self.type_text(text);
        self.run();
    }

    /// Fetches an example and runs it.
    pub(crate) fn open_example(self, id: &str) {
        let Some(example) = EXAMPLES.iter().find(|example| example.id == id) else { return };
        spawn_local(async move {
            let text = browser::fetch_text(&format!("programs/{}.py", example.id)).await;
            let mut recorded = Vec::new();
            for (conf, ending) in example.recordings {
                let text = browser::fetch_text(&format!("programs/{}.{ending}", example.id)).await;
                recorded.extend(text.map(|text| (*conf, text)));
            }
            let Some(text) = text else {
                return self.session.show_error(format!("The example {} could not be fetched.", example.id));
            };
            self.input.set(ProgramInput { text, ..ProgramInput::default() });
            self.example.set(Some(example.id.to_owned()));
            self.recorded_texts.set(recorded);
            self.run();
        });
    }

    /// Runs the program in the editor. A program that still runs is stopped first.
    pub(crate) fn run(self) {
        let input = self.input.get_untracked();
        let job = match job(&input) {
            Ok(job) => job,
            Err(error) => return self.session.show_error(error.to_string()),
        };
        self.printed.set(Vec::new());
        self.status.set(ProgramStatus::Starting);
        self.seconds.set(0);
        interpreter::run(job, move |progress| self.follow(&input, progress));
    }

    /// Runs the program again if its device or its settings differ from those of the shown run.
    pub(crate) fn run_with_other_settings(self) {
        let input = self.input.get_untracked();
        let is_other = |shown: &PtrEq<ProgramResult>| shown.input.text == input.text && shown.input != input;
        if untrack(|| self.session.shown_program()).is_some_and(|shown| is_other(&shown)) {
            self.run();
        }
    }

    /// Asks why memory is alive at the step under the cursor, unless that is known or asked.
    pub(crate) fn ask_why_alive(self) {
        let Some(result) = untrack(|| self.session.shown_program()) else { return };
        let step = self.session.player.with_untracked(|player| player.steps);
        let why_alive = self.why_alive;
        if why_alive.with_untracked(WhyAlive::step) == Some(step) {
            return;
        }
        // The program ran before, so its settings and arguments can be read.
        let Ok(job) = job(&result.input) else { return };
        why_alive.set(WhyAlive::Asked(step));
        interpreter::ask(&ProgramJob { referrers_at: Some(step), ..job }, move |answer| {
            why_alive.set(match answer {
                Some(found) => WhyAlive::Known(PtrEq::new(found)),
                None => WhyAlive::Missing(step),
            });
        });
    }

    fn follow(self, input: &ProgramInput, progress: ProgramReport) {
        match progress {
            ProgramReport::Status(status) => {
                if status == ProgramStatus::Running {
                    self.seconds.set(0);
                }
                self.status.set(status.clone());
                if status == ProgramStatus::Running {
                    self.count_seconds();
                }
            }
            ProgramReport::Printed(pieces) => self.printed.update(|printed| printed.extend(pieces)),
            ProgramReport::Done(run) => self.take_result(input, *run),
        }
    }

    /// Counts the seconds of the running program.
    fn count_seconds(self) {
        browser::each_second(move |seconds| {
            let is_running = self.status.with_untracked(|status| *status == ProgramStatus::Running);
            // Another program that runs by now counts its own seconds.
            let is_same = is_running && self.seconds.get_untracked() + 1 == seconds;
            if is_same {
                self.seconds.set(seconds);
            }
            is_same
        });
    }

    fn take_result(self, input: &ProgramInput, run: ProgramRun) {
        let result = PtrEq::new(ProgramResult::new(input.clone(), run));
        let before = self.result.get_untracked();
        let is_other =
            |before: &PtrEq<ProgramResult>| before.input.text == input.text && before.input != *input;
        self.before.set(before.filter(is_other));
        self.why_alive.set(WhyAlive::Unknown);
        self.result.set(Some(result.clone()));
        // The reader may have gone to another part of the page while the program ran.
        if self.session.navigation().place.get_untracked() == Place::Program {
            self.session.show(Source::Program(result));
            self.session.seek_opening_moment();
            self.opened_at.set(Some(self.session.player.with_untracked(|player| player.steps)));
        }
        self.status.set(ProgramStatus::Idle);
    }

    /// Ends the running program.
    pub(crate) fn stop(self) {
        interpreter::stop();
        self.wants_fit.set(false);
        let kept = if self.result.with_untracked(Option::is_some) {
            "; the output stays, and the figures are those of the last run that ended"
        } else {
            "; the output stays"
        };
        self.status.set(ProgramStatus::Failed(format!("stopped{kept}")));
    }

    /// Shows the last run of the program, if there is one.
    pub(crate) fn show(self) {
        self.session.dispatch(PlayerAction::Pause);
        if let Some(result) = self.result.get_untracked() {
            self.session.show(Source::Program(result));
        }
    }

    /// The heading of the page while it shows the program.
    pub(crate) fn title(self) -> String {
        self.shown_example()
            .map_or_else(|| "A PyTorch program".to_owned(), |example| example.title.to_owned())
    }

    /// The address of the program. Reads signals.
    pub(crate) fn link(self) -> Link {
        if let Some(example) = self.shown_example() {
            return LinkTarget::ProgramExample(example.id.to_owned()).into();
        }
        let ProgramInput { text, capacity, conf, gpu, release, arguments } = self.input.get();
        if text == FIRST_PROGRAM {
            return LinkTarget::ProgramExample(String::new()).into();
        }
        let typed = |text: String| (!text.trim().is_empty()).then_some(text);
        let gpu = (gpu != DEFAULT_GPU).then_some(gpu);
        Link {
            conf: typed(conf),
            capacity: typed(capacity),
            arguments: typed(arguments),
            gpu,
            release: (release != Release::OF_RECORDED_OPERATORS).then(|| release.name().to_owned()),
            ..LinkTarget::ProgramText(text).into()
        }
    }

    /// Shows the program editor, with an example unless `id` is empty.
    pub(crate) fn follow_example(self, id: &str) {
        self.session.navigation().go_to(Place::Program);
        if id.is_empty() || untrack(|| self.shown_example()).is_some_and(|example| example.id == id) {
            return;
        }
        if EXAMPLES.iter().any(|example| example.id == id) {
            self.open_example(id);
        } else {
            self.session.show_error(format!("This link names the program \"{id}\", which does not exist."));
        }
    }

    /// Puts the program of a link into the editor. The program runs only when the reader starts it.
    pub(crate) fn follow_text(self, text: String, link: &Link) {
        self.session.navigation().go_to(Place::Program);
        let is_kept = self.input.with_untracked(|input| input.text == text);
        // After a reload the text is kept and the settings come from the address; settings that the reader
        // typed since then stay.
        let is_untouched = self
            .input
            .with_untracked(|input| *input == ProgramInput { text: text.clone(), ..ProgramInput::default() });
        if is_kept && !is_untouched {
            return;
        }
        if !is_kept {
            self.type_text(text);
            self.session.show_note("The program of this link has not run yet: Run starts it.");
        }
        self.input.update(|input| {
            input.conf = link.conf.clone().unwrap_or_default();
            input.capacity = link.capacity.clone().unwrap_or_default();
            input.arguments = link.arguments.clone().unwrap_or_default();
            input.release = release_of(link.release.as_deref().unwrap_or_default());
            input.gpu = link.gpu.clone().unwrap_or_else(|| DEFAULT_GPU.to_owned());
        });
        if self.input.with_untracked(|input| GpuProfile::from_id(&input.gpu).is_none()) {
            let gpu = link.gpu.clone().unwrap_or_default();
            self.session.show_error(format!("This link names the GPU \"{gpu}\", which the page does not have. The program runs on the H200."));
            self.input.update(|input| DEFAULT_GPU.clone_into(&mut input.gpu));
        }
        if let Some(name) = link.release.as_deref().filter(|name| release_of(name).name() != *name) {
            let taken = Release::OF_RECORDED_OPERATORS;
            self.session.show_error(format!(
                "This link names PyTorch \"{name}\", which the page does not have. The program runs on {taken}."
            ));
        }
    }

    /// Goes to the next step of a line of the program.
    pub(crate) fn go_to_line(self, line: u32) {
        let Some(result) = untrack(|| self.session.shown_program()) else { return };
        let after = self.session.player.with_untracked(|player| player.steps);
        if let Some(step) = result.next_step_of(line, after) {
            self.go_to_step(step);
        }
    }

    /// Goes to the end of a step.
    pub(crate) fn go_to_step(self, step: usize) {
        self.session.dispatch(PlayerAction::Pause);
        self.session.dispatch(PlayerAction::SeekStep(step + 1));
    }
}

/// The release of that name, as a link and the page's choice have it; the default for another name.
pub(crate) fn release_of(name: &str) -> Release {
    Release::ALL.into_iter().find(|release| release.name() == name).unwrap_or(Release::OF_RECORDED_OPERATORS)
}

/// Why a program cannot be run as it was typed.
#[derive(Debug, Error)]
enum InputError {
    #[error("The memory of the GPU is wrong: {0}.")]
    Capacity(#[from] ParseErrorKind),
    #[error("The memory of the GPU needs a unit: {0} GiB?")]
    Unit(String),
    #[error("The arguments are wrong: a quotation mark is not closed.")]
    Arguments,
}

/// The job for Python.
fn job(input: &ProgramInput) -> Result<ProgramJob, InputError> {
    let capacity = match input.capacity.trim() {
        "" => None,
        typed if typed.bytes().all(|letter| letter.is_ascii_digit()) => {
            return Err(InputError::Unit(typed.to_owned()));
        }
        typed => Some(parse_rounded_size(typed)?),
    };
    Ok(ProgramJob {
        source: input.text.clone(),
        arguments: shlex::split(&input.arguments).ok_or(InputError::Arguments)?,
        gpu: input.gpu.clone(),
        release: input.release,
        capacity,
        counts_non_pytorch: true,
        conf: input.conf.trim().to_owned(),
        referrers_at: None,
        own_lines: None,
    })
}
