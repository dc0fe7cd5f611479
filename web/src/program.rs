//! The commands for Python programs: edit, open, run, stop.

use blockyard_figure::PlayerAction;
use blockyard_lab::Simulation;
use blockyard_program::{ProgramJob, ProgramRun};
use blockyard_rules::Release;
use blockyard_workload::{ParseErrorKind, parse_rounded_size};
use leptos::prelude::*;
use leptos::task::spawn_local;
use thiserror::Error;

use crate::browser;
use crate::interpreter::{self, ProgramReport};
use crate::link::{Link, Target};
use crate::ptr_eq::PtrEq;
use crate::session::{HoldersAnswer, Place, ProgramInput, ProgramResult, ProgramStatus, Session, Source};

/// A program that comes with the page. A text file beside it has the output of PyTorch on an H200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Example {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
}

pub(crate) static EXAMPLES: [Example; 5] = [
    Example { id: "mlp_adam", title: "An MLP with Adam" },
    Example { id: "language_model", title: "A small language model" },
    Example { id: "autoencoder", title: "An autoencoder with BatchNorm" },
    Example { id: "checkpoint_and_autocast", title: "Checkpointing and autocast" },
    Example { id: "memory_of_operators", title: "What operators allocate" },
];

/// The GPU whose numbers were compared with recordings.
pub(crate) const DEFAULT_GPU: &str = "h200";

/// The GPUs to choose from, as `blockyard_torch::GpuProfile::ALL` has them.
pub(crate) static GPUS: [(&str, &str); 7] = [
    ("h200", "NVIDIA H200"),
    ("h100", "NVIDIA H100 80 GB"),
    ("a100", "NVIDIA A100 80 GB"),
    ("a100-40g", "NVIDIA A100 40 GB"),
    ("l4", "NVIDIA L4"),
    ("t4", "Tesla T4"),
    ("rtx4090", "GeForce RTX 4090"),
];

/// The program in the editor on the first visit.
pub(crate) const FIRST_PROGRAM: &str = r#"import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
print("parameters:", torch.cuda.memory_allocated(), "bytes")

for step in range(3):
    inputs = torch.randn(256, 1024, device="cuda")
    targets = torch.randint(0, 10, (256,), device="cuda")
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item(), "allocated", torch.cuda.memory_allocated())

print("peak:", torch.cuda.max_memory_allocated(), "reserved:", torch.cuda.memory_reserved())
"#;

impl Session {
    /// The result that the figures show, if they show a program. Reads signals.
    pub(crate) fn shown_program(self) -> Option<PtrEq<ProgramResult>> {
        self.source.with(|source| match source {
            Source::Program(result) => Some(result.clone()),
            _ => None,
        })
    }

    /// The example in the editor, if its text is unchanged. Reads signals.
    pub(crate) fn program_example(self) -> Option<Example> {
        let id = self.program.example.get()?;
        EXAMPLES.iter().copied().find(|example| example.id == id)
    }

    /// Makes a typed text the program.
    pub(crate) fn type_program(self, text: String) {
        self.program.example.set(None);
        self.program.recorded_text.set(None);
        self.program.input.update(|input| input.text = text);
        self.program.remember();
    }

    /// Puts a program into the editor and runs it.
    pub(crate) fn open_program(self, text: String) {
        self.type_program(text);
        self.run_program();
    }

    /// Fetches an example and runs it.
    pub(crate) fn open_example(self, id: &str) {
        let Some(example) = EXAMPLES.iter().find(|example| example.id == id) else { return };
        spawn_local(async move {
            let text = browser::fetch_text(&format!("programs/{}.py", example.id)).await;
            let recorded = browser::fetch_text(&format!("programs/{}.txt", example.id)).await;
            let Some(text) = text else {
                return self.show_error(format!("The example {} could not be fetched.", example.id));
            };
            self.program.input.set(ProgramInput { text, ..ProgramInput::default() });
            self.program.example.set(Some(example.id.to_owned()));
            self.program.recorded_text.set(recorded);
            self.run_program();
        });
    }

    /// Runs the program in the editor. A program that still runs is stopped first.
    pub(crate) fn run_program(self) {
        let input = self.program.input.get_untracked();
        let job = match job(&input) {
            Ok(job) => job,
            Err(error) => return self.show_error(error.to_string()),
        };
        self.program.printed.set(Vec::new());
        self.program.status.set(ProgramStatus::Running);
        self.program.seconds.set(0);
        interpreter::run(job, move |progress| self.follow_program(&input, progress));
    }

    /// Runs the program again where its device or its settings are others than those of the run that is shown.
    pub(crate) fn run_with_other_settings(self) {
        let input = self.program.input.get_untracked();
        let is_other = |shown: &PtrEq<ProgramResult>| shown.input.text == input.text && shown.input != input;
        if untrack(|| self.shown_program()).is_some_and(|shown| is_other(&shown)) {
            self.run_program();
        }
    }

    /// Asks why memory is alive at the step under the cursor, unless that is known or asked.
    pub(crate) fn ask_holders(self) {
        let Some(result) = untrack(|| self.shown_program()) else { return };
        let step = self.player.with_untracked(|player| player.steps);
        let holders = self.program.holders;
        if holders.with_untracked(HoldersAnswer::step) == Some(step) {
            return;
        }
        // It ran before, so its settings and arguments can be read.
        let Ok(job) = job(&result.input) else { return };
        holders.set(HoldersAnswer::Asked(step));
        interpreter::ask(&ProgramJob { holders_at: Some(step), ..job }, move |answer| {
            holders.set(match answer {
                Some(found) => HoldersAnswer::Known(PtrEq::new(found)),
                None => HoldersAnswer::Missing(step),
            });
        });
    }

    fn follow_program(self, input: &ProgramInput, progress: ProgramReport) {
        let status = self.program.status;
        match progress {
            ProgramReport::Loading(bytes) => status.set(ProgramStatus::Loading(bytes)),
            ProgramReport::Building => status.set(ProgramStatus::Building),
            ProgramReport::Started => {
                status.set(ProgramStatus::Running);
                self.program.seconds.set(0);
                self.count_seconds(0);
            }
            ProgramReport::Printed(pieces) => self.program.printed.update(|printed| printed.extend(pieces)),
            ProgramReport::Done(done) => match *done {
                Ok(run) => self.take_result(input, run),
                Err(error) => status.set(ProgramStatus::Failed(error.to_string())),
            },
            ProgramReport::Failed(why) => status.set(ProgramStatus::Failed(why.to_string())),
        }
    }

    /// Counts the seconds of the running program, of which `seconds` are over.
    fn count_seconds(self, seconds: u32) {
        let _ = browser::after_millis(1000, move || {
            let is_running = self.program.status.with_untracked(|status| *status == ProgramStatus::Running);
            // Another program, which runs by now, counts its own.
            if is_running && self.program.seconds.get_untracked() == seconds {
                self.program.seconds.set(seconds + 1);
                self.count_seconds(seconds + 1);
            }
        });
    }

    fn take_result(self, input: &ProgramInput, run: ProgramRun) {
        let result = PtrEq::new(ProgramResult::new(input.clone(), run));
        let before = self.program.result.get_untracked();
        let is_other =
            |before: &PtrEq<ProgramResult>| before.input.text == input.text && before.input != *input;
        self.program.before.set(before.filter(is_other));
        self.program.holders.set(HoldersAnswer::Unknown);
        self.program.result.set(Some(result.clone()));
        // The reader may have gone to another part of the page while the program ran.
        if self.place.get_untracked() == Place::Program {
            self.show(Source::Program(result));
            self.seek_opening_moment();
        }
        self.program.status.set(ProgramStatus::Idle);
    }

    /// Ends the running program.
    pub(crate) fn stop_program(self) {
        interpreter::stop();
        let kept = if self.program.result.with_untracked(Option::is_some) {
            "; the output stays, and the figures are those of the last run that ended"
        } else {
            "; the output stays"
        };
        self.program.status.set(ProgramStatus::Failed(format!("stopped{kept}")));
    }

    /// Shows the last run of the program, if there is one.
    pub(crate) fn show_program(self) {
        self.dispatch(PlayerAction::Pause);
        if let Some(result) = self.program.result.get_untracked() {
            self.show(Source::Program(result));
        }
    }

    /// The heading of the page while it shows the program.
    pub(crate) fn program_title(self) -> String {
        self.program_example()
            .map_or_else(|| "A PyTorch program".to_owned(), |example| example.title.to_owned())
    }

    /// The address of the program. Reads signals.
    pub(crate) fn program_link(self) -> Link {
        if let Some(example) = self.program_example() {
            return Target::Python(example.id.to_owned()).into();
        }
        let ProgramInput { text, capacity, config, gpu, release, arguments } = self.program.input.get();
        if text == FIRST_PROGRAM {
            return Target::Python(String::new()).into();
        }
        let typed = |text: String| (!text.trim().is_empty()).then_some(text);
        let gpu = (gpu != DEFAULT_GPU).then_some(gpu);
        Link {
            config: typed(config),
            capacity: typed(capacity),
            arguments: typed(arguments),
            gpu,
            release: (release != Release::OF_RECORDED_OPERATORS).then(|| release.name().to_owned()),
            ..Target::Program(text).into()
        }
    }

    /// Shows the program editor, with an example unless `id` is empty.
    pub(crate) fn follow_example(self, id: &str) {
        self.go_to(Place::Program);
        if id.is_empty() || untrack(|| self.program_example()).is_some_and(|example| example.id == id) {
            return;
        }
        if EXAMPLES.iter().any(|example| example.id == id) {
            self.open_example(id);
        } else {
            self.show_error(format!("This link names a program, \"{id}\", that is not here."));
        }
    }

    /// Puts the program of a link into the editor. The program runs only when the reader starts it.
    pub(crate) fn follow_program_text(self, text: String, link: &Link) {
        self.go_to(Place::Program);
        if self.program.input.with_untracked(|input| input.text == text) {
            return;
        }
        self.type_program(text);
        self.program.input.update(|input| {
            input.config = link.config.clone().unwrap_or_default();
            input.capacity = link.capacity.clone().unwrap_or_default();
            input.arguments = link.arguments.clone().unwrap_or_default();
            input.release = release_of(link.release.as_deref().unwrap_or_default());
            input.gpu = link.gpu.clone().unwrap_or_else(|| DEFAULT_GPU.to_owned());
        });
        if GPUS.iter().all(|(id, _)| self.program.input.with_untracked(|input| input.gpu != *id)) {
            let gpu = link.gpu.clone().unwrap_or_default();
            self.show_error(format!("This link names a GPU, \"{gpu}\", that is not here: the H200 it is."));
            self.program.input.update(|input| DEFAULT_GPU.clone_into(&mut input.gpu));
        }
        if let Some(name) = link.release.as_deref().filter(|name| release_of(name).name() != *name) {
            let taken = Release::OF_RECORDED_OPERATORS;
            self.show_error(format!(
                "This link names a PyTorch, \"{name}\", that is not here: it is {taken}."
            ));
        }
    }

    /// Goes to the next step of a line of the program.
    pub(crate) fn go_to_line(self, line: u32) {
        let Some(result) = untrack(|| self.shown_program()) else { return };
        let after = self.player.with_untracked(|player| player.steps);
        if let Some(step) = result.next_step_of(line, after) {
            self.go_to_step(step);
        }
    }

    /// Goes to the end of a step.
    pub(crate) fn go_to_step(self, step: usize) {
        self.dispatch(PlayerAction::Pause);
        self.dispatch(PlayerAction::SeekStep(step + 1));
    }
}

impl ProgramResult {
    /// What is known of the run beside its requests.
    pub(crate) fn simulation(&self) -> Simulation {
        let input = &self.input;
        let gpu = GPUS.iter().find(|(id, _)| *id == input.gpu).map_or(input.gpu.as_str(), |(_, name)| name);
        let capacity = self.run.recording.info().capacity;
        let at = |line: u32| if line == 0 { String::new() } else { format!("line {line}: ") };
        let derived = (input.gpu != DEFAULT_GPU).then(|| DERIVED_NUMBERS.to_owned());
        let notes = self.details.notes.iter().map(|note| format!("{}{}", at(note.line), note.text));
        let estimates = self.details.estimates.iter().map(|estimate| {
            format!("{}estimated, {}: {}", at(estimate.line), estimate.operator, estimate.reason)
        });
        Simulation {
            program: input.text.clone(),
            arguments: input.arguments.clone(),
            gpu: gpu.to_owned(),
            total: capacity.saturating_add(self.details.outside),
            capacity,
            release: input.release,
            caveats: derived.into_iter().chain(notes).chain(estimates).collect(),
        }
    }
}

/// What is said of every GPU but the H200.
pub(crate) const DERIVED_NUMBERS: &str =
    "the numbers of this GPU are derived; those of the H200 were checked against recordings";

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
    #[error("The arguments are wrong: a quotation mark has no other.")]
    Arguments,
}

/// What the interpreter is to run.
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
        is_shared: true,
        config: input.config.trim().to_owned(),
        holders_at: None,
    })
}
