//! Random sequences on both allocators, until a number of operations or a time is reached.

use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::Result;
use blockyard_record::{TraceAction, grouped};
use blockyard_rules::Release;

use crate::answer::{AnswerDifference, Paths, ReturnValue, SequenceResult, first_difference};
use crate::generate::settings::CHOSEN;
use crate::library::Library;
use crate::ours::{self, InnerCounts};
use crate::sequence::{Operation, Sequence};
use crate::{generate, shrink};

/// The bounds of a run, which ends when the first of them is reached.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most operations in all sequences.
    pub operations: u64,
    /// The longest time.
    pub time: Duration,
}

/// Counts of the operations so far, by kind.
#[derive(Clone, Debug, Default)]
pub struct FuzzSummary {
    /// The seed of all sequences.
    pub seed: u64,
    /// How many sequences were run.
    pub sequences: u64,
    /// How many operations the sequences have.
    pub operations: u64,
    /// The time of the run.
    pub elapsed: Duration,
    /// Sequences by setting, in the order of [`CHOSEN`], from the start or at run time; a pair for each.
    options: [u64; CHOSEN.len()],
    plain: u64,
    streams: u64,
    pools: u64,
    changes: u64,
    settings_read: u64,
    trace: [u64; 9],
    paths: Paths,
    collected: u64,
    oversize: u64,
    inside: InnerCounts,
    /// Sequences with a difference.
    pub differences: u64,
}

/// A sequence with different results on the two allocators.
#[derive(Clone, Debug)]
pub struct FailedSequence {
    /// The seed of the sequence.
    pub seed: u64,
    /// The smallest sequence with a difference that was found.
    pub sequence: Sequence,
    /// PyTorch's results for the sequence, with digests; `None` if PyTorch's library ends over it.
    pub expected: Option<SequenceResult>,
    /// The difference, or another failure.
    pub description: String,
}

/// Runs random sequences on `library`, the library of `release`. Stops at the bounds, or when `on_progress`
/// cancels, which is called after each sequence.
///
/// `on_failure` gets each sequence with a difference, shrunk.
///
/// # Errors
///
/// When the driver of PyTorch's library ended, or `on_failure` returns an error.
pub fn fuzz(
    library: &mut Library,
    release: Release,
    seed: u64,
    bounds: Bounds,
    mut on_progress: impl FnMut(&FuzzSummary) -> ControlFlow<()>,
    mut on_failure: impl FnMut(FailedSequence) -> Result<()>,
) -> Result<FuzzSummary> {
    let begun = Instant::now();
    let mut summary = FuzzSummary { seed, ..FuzzSummary::default() };
    while summary.operations < bounds.operations && begun.elapsed() < bounds.time {
        let seed = sequence_seed(seed, summary.sequences);
        let sequence = generate::sequence(seed, release);
        summary.begin(&sequence);
        let asked = library.ask(&sequence, false)?;
        let found = ours::answer(&sequence, false);
        let expected = library.answer(asked);
        let is_same = match (&expected, &found) {
            (Ok((expected, paths)), Ok((found, inside))) => {
                summary.end(&sequence, expected, *paths, *inside);
                first_difference(expected, found).is_none()
            }
            _ => false,
        };
        if !is_same {
            summary.differences += 1;
            on_failure(reduce(library, seed, &sequence)?)?;
        }
        summary.elapsed = begun.elapsed();
        if on_progress(&summary) == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(summary)
}

/// The seed of the sequence with this index in a run.
pub fn sequence_seed(seed: u64, index: u64) -> u64 {
    fastrand::Rng::with_seed(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u64(..)
}

/// The first difference between the two allocators; `None` if all results are equal.
///
/// # Errors
///
/// When PyTorch's library ends over the sequence, or our allocator is not valid after it.
pub fn compare(
    library: &mut Library,
    sequence: &Sequence,
    wants_all: bool,
) -> Result<Option<AnswerDifference>> {
    let expected = library.run(sequence, wants_all)?;
    let (found, _) = ours::answer(sequence, wants_all)?;
    Ok(first_difference(&expected, &found))
}

fn reduce(library: &mut Library, seed: u64, sequence: &Sequence) -> Result<FailedSequence> {
    // A sequence that ends the library is shrunk to one that still ends it, and not to one with a different
    // answer.
    let dies = compare(library, sequence, false).is_err();
    let small = shrink::shrink(sequence, |candidate| {
        Ok(match compare(library, candidate, false) {
            Ok(difference) => !dies && difference.is_some(),
            Err(_) => dies,
        })
    })?;
    let description = match compare(library, &small, true) {
        Ok(Some(difference)) => difference.to_string(),
        Ok(None) => "no difference when it was asked again".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    let expected = library.run(&small, false).ok();
    Ok(FailedSequence { seed, sequence: small, expected, description })
}

impl FuzzSummary {
    fn begin(&mut self, sequence: &Sequence) {
        self.sequences += 1;
        self.operations += sequence.operations.len() as u64;
        let mut settings = vec![sequence.conf.as_str()];
        let (mut streams, mut pools, mut changes) = (false, false, false);
        for operation in &sequence.operations {
            match operation {
                Operation::ApplySettings { text } => {
                    settings.push(text);
                    changes = true;
                }
                Operation::TellSettings => self.settings_read += 1,
                Operation::RecordStream { .. } => streams = true,
                Operation::EnterPool { .. } => pools = true,
                _ => {}
            }
        }
        let mut is_plain = true;
        for (count, option) in self.options.iter_mut().zip(CHOSEN) {
            let is_set = settings.iter().any(|text| text.contains(option));
            *count += u64::from(is_set);
            is_plain &= !is_set;
        }
        self.plain += u64::from(is_plain);
        self.streams += u64::from(streams);
        self.pools += u64::from(pools);
        self.changes += u64::from(changes);
    }

    fn end(&mut self, sequence: &Sequence, answer: &SequenceResult, paths: Paths, inside: InnerCounts) {
        for entry in &answer.trace {
            self.trace[entry.action as usize] += 1;
        }
        self.paths.retries += paths.retries;
        self.paths.failures += paths.failures;
        self.paths.waits += paths.waits;
        let may = |option: &str| sequence.conf.contains(option);
        match (may("garbage_collection_threshold"), may("max_split_size_mb")) {
            (true, false) => self.collected += paths.chosen_releases,
            (false, true) => self.oversize += paths.chosen_releases,
            _ => self.paths.chosen_releases += paths.chosen_releases,
        }
        self.inside.splits += inside.splits;
        self.inside.merges += inside.merges;
        self.inside.in_pools += inside.in_pools;
        self.inside.served_by_pool += inside.served_by_pool;
        debug_assert!(
            answer
                .steps
                .iter()
                .all(|step| !matches!(&step.reply, ReturnValue::Failed(text) if text.is_empty()))
        );
    }

    /// Operations a second.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "for a person to read"
    )]
    pub fn rate(&self) -> u64 {
        (self.operations as f64 / self.elapsed.as_secs_f64().max(0.001)) as u64
    }
}

impl fmt::Display for FuzzSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} operations in {} sequences, {:.0} s, {} operations a second, seed {}",
            grouped(self.operations),
            grouped(self.sequences),
            self.elapsed.as_secs_f64(),
            grouped(self.rate()),
            self.seed,
        )?;
        writeln!(f, "sequences with")?;
        let mut row = |name: &str, count: u64| writeln!(f, "  {name:<36} {:>14}", grouped(count));
        row("default settings", self.plain)?;
        for (option, count) in CHOSEN.iter().zip(self.options) {
            row(option, count)?;
        }
        row("settings changed at run time", self.changes)?;
        row("record_stream", self.streams)?;
        row("memory pools", self.pools)?;
        writeln!(f, "settings read, good and bad: {}", grouped(self.settings_read))?;
        writeln!(f, "what PyTorch did")?;
        let mut row = |name: &str, count: u64| writeln!(f, "  {name:<36} {:>14}", grouped(count));
        let actions = [
            (TraceAction::Alloc, "allocations"),
            (TraceAction::FreeCompleted, "frees completed"),
            (TraceAction::SegmentAlloc, "segments taken"),
            (TraceAction::SegmentFree, "segments released"),
            (TraceAction::SegmentMap, "runs of pages mapped"),
            (TraceAction::SegmentUnmap, "runs of pages unmapped"),
        ];
        for (action, name) in actions {
            row(name, self.trace[action as usize])?;
        }
        row("out of memory", self.paths.failures)?;
        row("retries after a full release", self.paths.retries)?;
        row("waits for all streams", self.paths.waits)?;
        row("releases by garbage collection", self.collected)?;
        row("releases of oversize segments", self.oversize)?;
        row("releases by one of both", self.paths.chosen_releases)?;
        writeln!(f, "what our events say beside")?;
        let mut row = |name: &str, count: u64| writeln!(f, "  {name:<36} {:>14}", grouped(count));
        row("splits", self.inside.splits)?;
        row("merges", self.inside.merges)?;
        row("requests served in memory pools", self.inside.in_pools)?;
        row("requests served by use_on_oom pools", self.inside.served_by_pool)?;
        write!(f, "sequences with a difference: {}", grouped(self.differences))
    }
}
