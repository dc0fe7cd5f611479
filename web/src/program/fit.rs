//! "Will it fit?": the program runs with other values of a number in it, as the size of its batch, until the
//! largest that fits is known, and a safe one beside it.

use std::borrow::Cow;

use blockyard_budget::{
    Probe, SearchStep, Values, VariedNumber, highest_tried, may_take_amp, next_safe, next_value, reserve,
    safe_text,
};
use blockyard_figure::{FitCurve, FitOutcome, FitPoint};
use blockyard_record::{Bytes, Event, grouped};
use leptos::prelude::*;

use super::{ProgramEnd, ProgramInput, ProgramResult, ProgramSignals, job};
use crate::browser;
use crate::interpreter;
use crate::ptr_eq::PtrEq;
use crate::session::Feature;

/// A search for the largest value of a number of the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FitSearch {
    /// The run that is shown.
    of: PtrEq<ProgramResult>,
    /// The number, with its value in that run.
    pub(crate) number: VariedNumber,
    /// The program as it is and, where it has such an option, with `--amp`.
    pub(crate) variants: Vec<FitVariant>,
    /// The value that runs, and for how many seconds.
    pub(crate) running: Option<(u64, u32)>,
}

/// The search for one form of the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FitVariant {
    /// The option that the variant adds: `--amp`, or none (empty).
    pub(crate) option: &'static str,
    input: ProgramInput,
    probes: Vec<Probe>,
    /// The answer, or why the search failed; `None` until the search ends.
    pub(crate) found: Option<Result<FitFound, String>>,
}

/// The answer for one form of the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FitFound {
    /// The run of the largest value that fits; `None` where not even 1 fits.
    pub(crate) largest: Option<Probe>,
    /// The run of a value that leaves a part of the GPU free, if there is one.
    safe: Option<Probe>,
}

impl FitSearch {
    /// The search for a run that fits or went out of memory; `None` where the program has no number to vary.
    fn of(shown: &PtrEq<ProgramResult>, name: &str) -> Option<Self> {
        let ProgramInput { text, arguments, .. } = &shown.input;
        let number = chosen_number(text, arguments, name)?;
        let variant = |option, input| FitVariant { option, input, probes: Vec::new(), found: None };
        let mut own = variant("", shown.input.clone());
        own.take(Ok((shown.end(), probe_of(shown, number.value))));
        if own.found.is_some() {
            return None;
        }
        let mut variants = vec![own];
        if may_take_amp(text, arguments) {
            let arguments = format!("{arguments} --amp").trim_start().to_owned();
            variants.push(variant("--amp", ProgramInput { arguments, ..shown.input.clone() }));
        }
        Some(Self { of: shown.clone(), number, variants, running: None })
    }

    /// The most bytes of the GPU that PyTorch may reserve.
    fn limit(&self) -> Bytes {
        self.of.run.recording.capacity()
    }

    /// All bytes of the GPU.
    fn total(&self) -> Bytes {
        self.limit().saturating_add(self.of.details.non_pytorch)
    }

    /// The next value that a variant runs with; `None` where its answer is known, which it then has.
    fn next(&self, variant: &mut FitVariant) -> Option<u64> {
        let largest = match next_value(self.number.value, self.limit(), &variant.probes) {
            SearchStep::Try(value) => return Some(value),
            SearchStep::Found(largest) => largest.map(|probe| *probe),
        };
        let most = self.limit().saturating_sub(reserve(self.total()));
        let values =
            largest.as_ref().and_then(|largest| format!("1..{}", largest.value).parse::<Values>().ok());
        let safe = match values.map(|values| next_safe(&values, most, &variant.probes)) {
            Some(SearchStep::Try(value)) => return Some(value),
            Some(SearchStep::Found(safe)) => safe.map(|probe| *probe),
            None => None,
        };
        variant.found = Some(Ok(FitFound { largest, safe }));
        None
    }

    /// The program of a variant with this value.
    pub(crate) fn input(&self, variant: &FitVariant, value: u64) -> ProgramInput {
        let (text, arguments) = self.number.with(&variant.input.text, &variant.input.arguments, value);
        ProgramInput { text, arguments, ..variant.input.clone() }
    }

    /// The GPU in words: its name, or else the memory that the reader typed.
    fn gpu_text(&self) -> String {
        match self.of.input.capacity.trim() {
            "" => format!("the {}", self.of.simulation().gpu),
            typed => format!("a GPU of {typed}"),
        }
    }

    /// The largest value in words, without a full stop: `the largest --batch-size that fits the NVIDIA H200
    /// is 24: peak 13.2 GiB reserved; 25 runs out of memory`.
    pub(crate) fn text(&self, variant: &FitVariant) -> Option<String> {
        let with = match variant.option {
            "" => String::new(),
            option => format!("with {option} "),
        };
        let (name, gpu) = (&self.number.name, self.gpu_text());
        let largest = match variant.found.as_ref()? {
            Err(why) => return Some(format!("{with}the search ended: {why}")),
            Ok(found) => found.largest.as_ref(),
        };
        let Some(largest) = largest else { return Some(format!("{with}not even {name} 1 fits {gpu}")) };
        let (value, reserved) = (grouped(largest.value), largest.peak_reserved());
        let is_highest = variant.probes.iter().all(|probe| probe.value <= largest.value);
        Some(if is_highest && largest.value >= highest_tried(self.number.value) {
            format!("{with}the highest {name} that was tried, {value}, fits {gpu}: peak {reserved} reserved")
        } else {
            let more = grouped(largest.value.saturating_add(1));
            format!(
                "{with}the largest {name} that fits {gpu} is {value}: peak {reserved} reserved; {more} runs out of memory"
            )
        })
    }

    /// The safe value in words, without a full stop; `None` where nothing fits.
    pub(crate) fn safe_text(&self, variant: &FitVariant) -> Option<String> {
        let Some(Ok(FitFound { largest: Some(_), safe })) = &variant.found else { return None };
        let safe = safe.as_ref().map(|probe| (probe.value, probe.peak_reserved()));
        Some(safe_text(&self.number.name, safe, self.limit(), self.total()))
    }

    /// From which value on the program fits alone because PyTorch gives cached segments back to the GPU, as a
    /// sentence.
    pub(crate) fn released_text(&self, variant: &FitVariant) -> Option<String> {
        let released = variant.probes.iter().filter(|probe| probe.run.fits && probe.has_released);
        let first = released.map(|probe| probe.value).min()?;
        let name = &self.number.name;
        Some(format!(
            "With {name} {} and more it fits only because PyTorch gives its cache back to the GPU during the run, which is slow.",
            grouped(first)
        ))
    }

    /// The curves of the variants: peaks over the value.
    pub(crate) fn curves(&self) -> Vec<FitCurve> {
        let point = |probe: &Probe| FitPoint {
            value: probe.value,
            allocated: probe.run.peak_allocated,
            reserved: probe.peak_reserved(),
            outcome: if probe.run.fits { FitOutcome::Fits } else { FitOutcome::RunsOut },
        };
        let curve = |variant: &FitVariant| {
            let found = variant.found.clone().and_then(Result::ok);
            FitCurve {
                name: variant.option.to_owned(),
                limit: self.limit(),
                gpu: self.gpu_text().trim_start_matches("the ").to_owned(),
                largest: found.and_then(|found| found.largest).map(|largest| largest.value),
                points: variant.probes.iter().map(point).collect(),
            }
        };
        let begun = self.variants.iter().filter(|variant| variant.probes.len() > 1);
        begun.map(curve).collect()
    }
}

/// The memory of a run with this value.
fn probe_of(result: &ProgramResult, value: u64) -> Probe {
    let recording = &result.run.recording;
    let (allocated, reserved) = result.run.series.peak_bytes(recording);
    let has_released = recording.events_from(0).any(|event| matches!(event, Event::RetryStarted));
    let fits = matches!(result.end(), ProgramEnd::Finished);
    Probe { has_released, ..Probe::of(value, fits, allocated, reserved) }
}

/// The number of this name; else the first of the program's numbers.
fn chosen_number(text: &str, arguments: &str, name: &str) -> Option<VariedNumber> {
    let all = VariedNumber::all(text, arguments);
    let chosen = all.iter().find(|number| number.name == name).or(all.first());
    chosen.cloned()
}

/// The command that asks the same about a program that this page cannot run. Without an option in the program,
/// it names the usual one.
pub(crate) fn fit_command(file: &str, option: Option<&str>, gpu: &str, arguments: &str) -> String {
    let name = option.unwrap_or("--batch-size").trim_start_matches('-');
    let rest = arguments.trim();
    let rest = if rest.is_empty() { String::new() } else { format!(" -- {rest}") };
    let file = quoted(file);
    format!("blockyard fit {file} --vary {name}=1..512 --gpu {gpu}{rest}")
}

/// The command that says whether a program fits as it is.
pub(crate) fn dry_run_command(file: &str, gpu: &str, arguments: &str) -> String {
    let file = quoted(file);
    format!("blockyard dry-run --gpu {gpu} {file} {arguments}").trim_end().to_owned()
}

/// A file as a word of the shell.
fn quoted(file: &str) -> Cow<'_, str> {
    shlex::try_quote(file).unwrap_or(Cow::Borrowed(file))
}

impl Feature<ProgramSignals> {
    /// The search for the shown run, begun or not; `None` where no search is possible. Reads signals.
    pub(crate) fn fit_of_shown(self) -> Option<FitSearch> {
        let shown = self.session.shown_program()?;
        let name = self.varied.get();
        let is_of_this =
            |search: &FitSearch| search.of == shown && (name.is_empty() || search.number.name == name);
        let begun = self.fit.get().filter(is_of_this);
        begun.or_else(|| FitSearch::of(&shown, &name))
    }

    /// Begins the search that was asked for before the program ran.
    pub(crate) fn find_wanted_fit(self) {
        if self.wants_fit.get_untracked() {
            self.wants_fit.set(false);
            self.find_fit();
            let _ = browser::after_millis(0, || browser::scroll_into_sight("[data-testid=fit]"));
        }
    }

    /// Begins the search for the shown run, or continues a search that was cancelled.
    pub(crate) fn find_fit(self) {
        let Some(search) = untrack(|| self.fit_of_shown()) else { return };
        self.cancel_trial();
        self.fit.set(Some(search));
        self.run_next_value();
    }

    /// Ends the present run of the search. The results so far stay.
    pub(crate) fn cancel_fit(self) {
        self.trials.update(|trials| trials.running = None);
        interpreter::cancel_trial();
        self.give_up_fit();
    }

    /// Marks the search as not running, since the run that it waited for was ended.
    pub(super) fn give_up_fit(self) {
        self.fit.update(|fit| {
            if let Some(search) = fit {
                search.running = None;
            }
        });
    }

    fn run_next_value(self) {
        let Some(mut search) = self.fit.get_untracked() else { return };
        let mut variants = std::mem::take(&mut search.variants);
        let mut open = variants.iter_mut().filter(|variant| variant.found.is_none());
        let next = open.find_map(|variant| Some((search.next(variant)?, variant.clone())));
        search.variants = variants;
        search.running = next.as_ref().map(|(value, _)| (*value, 0));
        let input = next.map(|(value, variant)| (value, search.input(&variant, value)));
        let of = search.of.clone();
        self.fit.set(Some(search));
        let Some((value, input)) = input else { return };
        let Ok(job) = job(&input) else { return };
        self.count_fit_seconds(value);
        interpreter::try_out(&job, move |end| {
            let end = end.map(|run| {
                let result = ProgramResult::new(input.clone(), run);
                (result.end(), probe_of(&result, value))
            });
            let is_of = |search: &FitSearch| search.of == of && search.running.is_some();
            if self.fit.with_untracked(|fit| fit.as_ref().is_some_and(is_of)) {
                self.fit.update(|fit| {
                    let variant = fit.as_mut().and_then(|search| {
                        search.variants.iter_mut().find(|variant| variant.found.is_none())
                    });
                    if let Some(variant) = variant {
                        variant.take(end.clone());
                    }
                });
                self.run_next_value();
            }
        });
    }

    fn count_fit_seconds(self, value: u64) {
        browser::each_second(move |seconds| {
            let mut is_same = false;
            self.fit.maybe_update(|fit| {
                let running = fit.as_mut().and_then(|search| search.running.as_mut());
                if let Some(running) = running.filter(|running| **running == (value, seconds - 1)) {
                    *running = (value, seconds);
                    is_same = true;
                }
                is_same
            });
            is_same
        });
    }
}

impl FitVariant {
    /// Takes the end of a run.
    fn take(&mut self, end: Result<(ProgramEnd, Probe), String>) {
        match end {
            Ok((ProgramEnd::Finished | ProgramEnd::OutOfMemory(_), probe)) => self.probes.push(probe),
            Ok((ProgramEnd::Exception(line), probe)) => {
                self.found = Some(Err(format!("with {} line {line} has an exception", probe.value)));
            }
            Ok((ProgramEnd::Status(status), probe)) => {
                self.found = Some(Err(format!("with {} the program ends with status {status}", probe.value)));
            }
            Err(why) => self.found = Some(Err(why)),
        }
    }
}
