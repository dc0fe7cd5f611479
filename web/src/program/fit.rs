//! The search for the largest batch with which a program that ran out of memory fits: the program runs with
//! smaller batches until the answer is known.

use blockyard_budget::{BatchSize, BatchStep, Probe, may_take_amp, next_batch};
use blockyard_record::Bytes;
use leptos::prelude::*;

use super::{ProgramEnd, ProgramInput, ProgramResult, ProgramSignals, job};
use crate::browser;
use crate::interpreter;
use crate::ptr_eq::PtrEq;
use crate::session::Feature;

/// A search for the largest batch of one run of the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BatchSearch {
    /// The run that failed.
    of: PtrEq<ProgramResult>,
    /// The batch of that run.
    size: BatchSize,
    /// The program as it is and, where it has such an option, with `--amp`.
    pub(crate) variants: Vec<BatchVariant>,
    /// The size that runs, and for how many seconds.
    pub(crate) running: Option<(u64, u32)>,
}

/// The search for one form of the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BatchVariant {
    /// The option that the variant adds: `--amp`, or none (empty).
    pub(crate) option: &'static str,
    input: ProgramInput,
    /// The smallest size that is known not to fit.
    too_large: u64,
    probes: Vec<Probe>,
    /// The answer, or why the search failed; `None` until the search ends.
    pub(crate) found: Option<Result<Option<Probe>, String>>,
}

impl BatchSearch {
    /// The search for a run that went out of memory; `None` where the program does not say how large its
    /// batch is, or no batch is smaller.
    fn of(shown: &PtrEq<ProgramResult>) -> Option<Self> {
        let ProgramInput { text, arguments, .. } = &shown.input;
        let is_out_of_memory = matches!(shown.end(), ProgramEnd::OutOfMemory(_));
        let size = BatchSize::of(text, arguments).filter(|size| is_out_of_memory && size.value > 1)?;
        let variant = |option, input, too_large| BatchVariant {
            option,
            input,
            too_large,
            probes: Vec::new(),
            found: None,
        };
        let mut variants = vec![variant("", shown.input.clone(), size.value)];
        if may_take_amp(text, arguments) {
            let arguments = format!("{arguments} --amp").trim_start().to_owned();
            // The batch that failed without the option may fit with the option.
            let input = ProgramInput { arguments, ..shown.input.clone() };
            variants.push(variant("--amp", input, size.value.saturating_add(1)));
        }
        Some(Self { of: shown.clone(), size, variants, running: None })
    }

    /// The most bytes of the GPU that PyTorch may reserve.
    fn limit(&self) -> Bytes {
        self.of.run.recording.capacity()
    }

    /// The program of a variant with a batch of this size.
    pub(crate) fn input(&self, variant: &BatchVariant, size: u64) -> ProgramInput {
        let (text, arguments) = self.size.with(&variant.input.text, &variant.input.arguments, size);
        ProgramInput { text, arguments, ..variant.input.clone() }
    }

    /// The answer in words, without a full stop: `the largest --batch-size that fits the NVIDIA H200 is 24:
    /// peak
    /// 13.2 GiB reserved; 25 runs out of memory`.
    pub(crate) fn text(&self, variant: &BatchVariant) -> Option<String> {
        let with = match variant.option {
            "" => String::new(),
            option => format!("with {option} "),
        };
        let (name, gpu) = (&self.size.name, self.of.simulation().gpu);
        Some(match variant.found.as_ref()? {
            Err(why) => format!("{with}the search ended: {why}"),
            Ok(None) => format!("{with}not even {name} 1 fits the {gpu}"),
            Ok(Some(probe)) if probe.value.saturating_add(1) == variant.too_large && !with.is_empty() => {
                let reserved = probe.peak_reserved();
                format!(
                    "{with}the batch of {} fits the {gpu} as it is: peak {reserved} reserved",
                    probe.value
                )
            }
            Ok(Some(probe)) => {
                let (reserved, more) = (probe.peak_reserved(), probe.value.saturating_add(1));
                format!(
                    "{with}the largest {name} that fits the {gpu} is {}: peak {reserved} reserved; {more} runs out of memory",
                    probe.value
                )
            }
        })
    }
}

impl Feature<ProgramSignals> {
    /// The search for the shown run, begun or not; `None` where no search is possible. Reads signals.
    pub(crate) fn batch_of_shown(self) -> Option<BatchSearch> {
        let shown = self.session.shown_program()?;
        let begun = self.batch.get().filter(|search| search.of == shown);
        begun.or_else(|| BatchSearch::of(&shown))
    }

    /// Begins the search for the shown run, or continues a search that was cancelled.
    pub(crate) fn find_batch(self) {
        let Some(search) = untrack(|| self.batch_of_shown()) else { return };
        self.cancel_trial();
        self.batch.set(Some(search));
        self.run_next_batch();
    }

    /// Ends the present run of the search. The results so far stay.
    pub(crate) fn cancel_batch(self) {
        self.trials.update(|trials| trials.running = None);
        interpreter::cancel_trial();
        self.give_up_batch();
    }

    /// Marks the search as not running, since the run that it waited for was ended.
    pub(super) fn give_up_batch(self) {
        self.batch.update(|batch| {
            if let Some(search) = batch {
                search.running = None;
            }
        });
    }

    fn run_next_batch(self) {
        let Some(mut search) = self.batch.get_untracked() else { return };
        let limit = search.limit();
        let mut next = None;
        for variant in search.variants.iter_mut().filter(|variant| variant.found.is_none()) {
            match next_batch_of(variant, limit) {
                BatchStep::Try(size) => {
                    next = Some((size, variant.clone()));
                    break;
                }
                BatchStep::Found(found) => variant.found = Some(Ok(found.map(|probe| *probe))),
            }
        }
        search.running = next.as_ref().map(|(size, _)| (*size, 0));
        let input = next.map(|(size, variant)| (size, search.input(&variant, size)));
        let of = search.of.clone();
        self.batch.set(Some(search));
        let Some((size, input)) = input else { return };
        let Ok(job) = job(&input) else { return };
        self.count_batch_seconds(size);
        interpreter::try_out(&job, move |end| {
            let end = end.map(|run| {
                let result = ProgramResult::new(input.clone(), run);
                let (allocated, reserved) = result.run.series.peak_bytes(&result.run.recording);
                (result.end(), allocated, reserved)
            });
            let is_of = |search: &BatchSearch| search.of == of && search.running.is_some();
            if self.batch.with_untracked(|batch| batch.as_ref().is_some_and(is_of)) {
                self.batch.update(|batch| {
                    let variant = batch.as_mut().and_then(|search| {
                        search.variants.iter_mut().find(|variant| variant.found.is_none())
                    });
                    if let Some(variant) = variant {
                        variant.take(size, end.clone());
                    }
                });
                self.run_next_batch();
            }
        });
    }

    fn count_batch_seconds(self, size: u64) {
        browser::each_second(move |seconds| {
            let mut is_same = false;
            self.batch.maybe_update(|batch| {
                let running = batch.as_mut().and_then(|search| search.running.as_mut());
                if let Some(running) = running.filter(|running| **running == (size, seconds - 1)) {
                    *running = (size, seconds);
                    is_same = true;
                }
                is_same
            });
            is_same
        });
    }
}

/// The next step of the search. With an added option, the batch that failed is tried first.
fn next_batch_of(variant: &BatchVariant, limit: Bytes) -> BatchStep {
    let failed = variant.too_large.saturating_sub(1);
    if variant.option.is_empty() {
        return next_batch(variant.too_large, limit, &variant.probes);
    }
    match variant.probes.iter().find(|probe| probe.value == failed) {
        None => BatchStep::Try(failed),
        Some(probe) if probe.run.fits => BatchStep::Found(Some(Box::new(probe.clone()))),
        Some(_) => next_batch(failed, limit, &variant.probes),
    }
}

impl BatchVariant {
    /// Takes the end of a run with a batch of this size.
    fn take(&mut self, size: u64, end: Result<(ProgramEnd, Bytes, Bytes), String>) {
        match end {
            Ok((ProgramEnd::Finished, allocated, reserved)) => {
                self.probes.push(Probe::of(size, true, allocated, reserved));
            }
            Ok((ProgramEnd::OutOfMemory(_), allocated, reserved)) => {
                self.probes.push(Probe::of(size, false, allocated, reserved));
            }
            Ok((ProgramEnd::Exception(line), ..)) => {
                self.found = Some(Err(format!("with a batch of {size} line {line} has an exception")));
            }
            Ok((ProgramEnd::Status(status), ..)) => {
                self.found =
                    Some(Err(format!("with a batch of {size} the program ends with status {status}")));
            }
            Err(why) => self.found = Some(Err(why)),
        }
    }
}
