//! The call sites whose live bytes grow from iteration to iteration.

mod period;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use blockyard_record::{Bytes, grouped};
use blockyard_replay::{OnProgress, Progress};
use blockyard_workload::Request;
use serde::{Deserialize, Serialize};

use crate::lifetimes::{Lifetime, lifetimes};
use crate::sites::Sites;
use crate::{GrowingCallSite, IterationSource, LabError, LeaksAnswer, Run};

/// What grows from iteration to iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaks {
    /// The iterations, and the call sites that grow, by descending growth.
    pub answer: LeaksAnswer,
    /// How many requests are done at each boundary.
    pub ends: Vec<usize>,
    /// Whether the parts between the boundaries are iterations of the program: marked ones, or repetitions
    /// that each have a training step or are more than networks have layers.
    pub has_known_iterations: bool,
    /// Whether the parts between the boundaries are equal layers of a network in one forward pass. What they
    /// keep is kept for the backward pass: nothing leaks.
    pub are_layers: bool,
    /// For each call site that grows, how many more allocations are live at the last boundary; 0 if fewer and
    /// larger allocations are live.
    pub allocations: Vec<u64>,
}

impl Leaks {
    /// The call sites that grow, each with how many more allocations are live at the last boundary.
    pub fn growing(&self) -> impl Iterator<Item = (&GrowingCallSite, u64)> {
        self.answer.growing.iter().zip(self.allocations.iter().copied())
    }
}

/// The fewest iterations from which growth can be recognized.
pub(crate) const MIN_ITERATIONS: usize = 4;

/// The index of the first boundary that counts: that after the second iteration.
const SETUP: usize = 1;

/// More repetitions than this count as iterations; fewer may also be equal layers of a network.
const MAX_LAYERS: usize = 100;

/// Repetitions that free less than one in this many of their allocations are not iterations: they may be the
/// layers of a model that is being built.
const MIN_FREED_DIVISOR: usize = 4;

/// Functions that a training step calls, and its forward pass does not.
const TRAINING: [&str; 3] = ["backward", "step", "zero_grad"];

/// The function of a module in which a network's layers run.
const FORWARD: &str = "forward";

/// Looks for call sites whose live bytes never fall from one iteration to the next, and grow in most of them.
///
/// The first two iterations are left out, since programs set themselves up in them.
///
/// # Errors
///
/// [`LabError::Cancelled`].
pub fn leaks(run: &Run, on_progress: OnProgress) -> Result<Leaks, LabError> {
    run.require_requests()?;
    let total = run.requests().len();
    let mut report = |done: usize| {
        let progress = Progress::new("looking for growth", done, total);
        if on_progress(progress).is_break() { Err(LabError::Cancelled) } else { Ok(()) }
    };
    report(0)?;
    let sites = Sites::of(run);
    let (mut steps, mut boundaries) = iteration_ends(run, &sites);
    let lifetimes = lifetimes(run);
    let is_repetition = steps == IterationSource::Repetition;
    let are_training = is_repetition && are_training_iterations(run, &sites, &boundaries);
    let are_layers = is_repetition && !are_training && are_in_a_forward_pass(run, &sites, &boundaries);
    if is_repetition && !are_training && !are_layers && !reach_the_end(&boundaries) {
        (steps, boundaries) = equal_parts(run.requests().len());
    }
    let has_known_iterations = match steps {
        IterationSource::Markers => true,
        IterationSource::Repetition => are_training || (!are_layers && boundaries.len() > MAX_LAYERS),
        IterationSource::Parts => false,
    };
    let mut memory = vec![SiteGrowth::new(boundaries.len()); sites.names.len()];
    for (index, lifetime) in lifetimes.iter().enumerate() {
        if index.is_multiple_of(8192) {
            report(lifetime.request)?;
        }
        let from = boundaries.partition_point(|boundary| *boundary <= lifetime.request);
        let to = boundaries.partition_point(|boundary| *boundary <= lifetime.freed);
        if let Some(site) = memory.get_mut(sites.at(lifetime.request) as usize) {
            site.add(from..to, lifetime.size, run.request_number(lifetime.request));
        }
    }
    let sums = (0..boundaries.len())
        .map(|at| memory.iter().filter_map(|site| site.live.get(at)).copied().sum())
        .collect();
    let mut growing: Vec<(GrowingCallSite, u64)> = Vec::new();
    if boundaries.len() >= MIN_ITERATIONS {
        for (memory, name) in memory.into_iter().zip(&sites.names) {
            growing.extend(memory.growing(name));
        }
    }
    growing.sort_by(|(one, _), (other, _)| {
        other.growth.cmp(&one.growth).then_with(|| one.site.cmp(&other.site))
    });
    let (growing, allocations): (Vec<_>, Vec<_>) = growing.into_iter().unzip();
    let mut notes = run.notes();
    if boundaries.len() < MIN_ITERATIONS {
        notes.push(format!("{} iterations are too few to distinguish growth from set-up", boundaries.len()));
    } else if steps == IterationSource::Parts {
        notes.push(
            "the run has neither markers nor repetition: it was cut into parts with equal numbers of requests"
                .to_owned(),
        );
    }
    let numbers = boundaries.iter().map(|end| run.number_of_last(*end)).collect();
    let sentence = sentence(steps, boundaries.len(), growing.len());
    Ok(Leaks {
        answer: LeaksAnswer { sentence, steps, boundaries: numbers, live: sums, growing, notes },
        ends: boundaries,
        has_known_iterations,
        are_layers,
        allocations,
    })
}

/// How many iterations there are, how they were found, and how many call sites grow.
fn sentence(steps: IterationSource, iterations: usize, growing: usize) -> String {
    let from = match steps {
        IterationSource::Markers => "by its markers",
        IterationSource::Repetition => "by repetition",
        IterationSource::Parts => "by cutting it into parts",
    };
    let what = match growing {
        0 => "nothing grows".to_owned(),
        1 => "one call site grows".to_owned(),
        _ => format!("{} call sites grow", grouped(growing as u64)),
    };
    format!("{} iterations, found {from}: {what}", grouped(iterations as u64))
}

/// The memory of a call site over the iterations.
#[derive(Clone)]
struct SiteGrowth {
    /// The live bytes at each boundary.
    live: Vec<Bytes>,
    /// How many allocations are live at the first boundary that counts ([`SETUP`]).
    allocations_before: u64,
    /// How many allocations are live at the last boundary.
    allocations: u64,
    /// The first and the last request whose bytes are live at the last boundary, counted from 1. The first comes
    /// after the first boundary that counts, since bytes that are live there are not growth; 0 for none.
    requests: (u64, u64),
}

impl SiteGrowth {
    fn new(boundaries: usize) -> Self {
        let live = vec![Bytes::ZERO; boundaries];
        Self { live, allocations_before: 0, allocations: 0, requests: (0, 0) }
    }

    /// Adds an allocation that is live at these boundaries. `request` is counted from 1.
    fn add(&mut self, boundaries: Range<usize>, size: Bytes, request: u64) {
        let is_live_at_end = !boundaries.is_empty() && boundaries.end == self.live.len();
        self.allocations_before =
            self.allocations_before.saturating_add(u64::from(boundaries.contains(&SETUP)));
        self.allocations = self.allocations.saturating_add(u64::from(is_live_at_end));
        if is_live_at_end {
            let (first, last) = &mut self.requests;
            if *first == 0 && boundaries.start > SETUP {
                *first = request;
            }
            *last = request;
        }
        for live in self.live.get_mut(boundaries).into_iter().flatten() {
            *live = live.saturating_add(size);
        }
    }

    /// The answer about the site, and how many more allocations are live at the last boundary. `None` if the
    /// live bytes ever fall, or grow in at most half of the iterations.
    fn growing(self, site: &[String]) -> Option<(GrowingCallSite, u64)> {
        let later = self.live.get(SETUP..)?;
        let (first, last) = (later.first()?, later.last()?);
        let never_falls = later.windows(2).all(|pair| matches!(pair, [one, other] if one <= other));
        let rises = later.windows(2).filter(|pair| matches!(pair, [one, other] if one < other)).count();
        if !never_falls || rises * 2 < later.len() {
            return None;
        }
        let growth = last.saturating_sub(*first);
        let (first_request, last_request) = self.requests;
        let more = self.allocations.saturating_sub(self.allocations_before);
        let site = site.to_vec();
        Some((GrowingCallSite { site, live: self.live, growth, first_request, last_request }, more))
    }
}

/// The requests after which iterations end, as numbers of requests done.
pub(crate) fn iteration_ends(run: &Run, sites: &Sites) -> (IterationSource, Vec<usize>) {
    let total = run.requests().len();
    let mut marked = iteration_markers(run.workload().labels());
    // A marker before all requests of the program ends nothing.
    marked.retain(|at| *at > run.requests_from_before());
    marked.push(total);
    marked.dedup();
    if marked.len() >= MIN_ITERATIONS {
        return (IterationSource::Markers, marked);
    }
    let lifetimes = lifetimes(run);
    let found = repetition(run, sites, &lifetimes).or_else(|| period::period(run, sites, &lifetimes));
    if let Some(found) = found {
        return (IterationSource::Repetition, found);
    }
    equal_parts(total)
}

/// Parts with equal numbers of requests.
fn equal_parts(total: usize) -> (IterationSource, Vec<usize>) {
    let parts = 8.min(total.max(1));
    (IterationSource::Parts, (1..=parts).map(|part| total * part / parts).collect())
}

/// The requests at which the marked iterations begin.
///
/// Libraries place many markers within an iteration, such as one for each collective of each layer. If labels
/// count (`step 0`, `step 1`, ...), these mark the iterations. Otherwise it is the first of the labels with
/// the most common frequency. If no label is frequent, all labels mark iterations.
fn iteration_markers(labels: &[(u32, String)]) -> Vec<usize> {
    let places = |is_wanted: &dyn Fn(&str) -> bool| -> Vec<usize> {
        labels.iter().filter(|(_, label)| is_wanted(label)).map(|(at, _)| *at as usize).collect()
    };
    let mut counted: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut often: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, label) in labels {
        if let Some((name, number)) = counting(label) {
            counted.entry(name).or_default().push(number);
        }
        *often.entry(label).or_default() += 1;
    }
    let rises = |numbers: &[u64]| numbers.windows(2).all(|pair| matches!(pair, [one, other] if one < other));
    let iterations = counted.iter().filter(|(_, numbers)| numbers.len() >= MIN_ITERATIONS && rises(numbers));
    if let Some((name, _)) = iterations.max_by_key(|(_, numbers)| numbers.len()) {
        return places(&|label| counting(label).is_some_and(|(other, _)| other == *name));
    }
    let mut kinds: BTreeMap<usize, usize> = BTreeMap::new();
    for count in often.values().filter(|count| **count >= MIN_ITERATIONS) {
        *kinds.entry(*count).or_default() += 1;
    }
    let Some((count, _)) = kinds.into_iter().max_by_key(|(count, kinds)| (*kinds, *count)) else {
        return places(&|_| true);
    };
    let first = labels.iter().find(|(_, label)| often.get(label.as_str()) == Some(&count));
    first.map_or_else(Vec::new, |(_, first)| places(&|label| label == first))
}

/// A label that ends with a number, and the text before it.
fn counting(label: &str) -> Option<(&str, u64)> {
    let name = label.trim_end_matches(|letter: char| letter.is_ascii_digit());
    Some((name, label.get(name.len()..)?.parse().ok()?))
}

/// Whether each part has a training step, except the first and the last part, which may be cut off.
///
/// A part has a training step if a function of [`TRAINING`] made some of its allocations and not all: a function
/// `step` that calls the forward pass too is in every stack. A backward pass runs in threads without Python:
/// where other requests have stacks, its requests have none.
fn are_training_iterations(run: &Run, sites: &Sites, boundaries: &[usize]) -> bool {
    let has_stacks = (0..run.requests().len()).any(|request| !run.stack(request).is_empty());
    let mut known: BTreeMap<u32, [bool; 4]> = BTreeMap::new();
    let mut kinds_of = |request: usize| {
        *known.entry(sites.at(request)).or_insert_with(|| {
            let stack = run.stack(request);
            let calls = |name: &str| stack.iter().any(|frame| function(frame) == name);
            let [backward, step, zero_grad] = TRAINING.map(calls);
            [backward, step, zero_grad, stack.is_empty() && has_stacks]
        })
    };
    let mut has_training_step = |from: usize, to: usize| {
        let kinds: Vec<[bool; 4]> = allocations(run, from, to).map(&mut kinds_of).collect();
        (0..4).any(|kind| {
            let of_kind = kinds.iter().filter(|kinds| kinds.get(kind) == Some(&true)).count();
            (1..kinds.len()).contains(&of_kind)
        })
    };
    let within = boundaries.get(..boundaries.len().saturating_sub(1)).unwrap_or_default();
    within.len() >= 2
        && within.windows(2).all(|pair| matches!(pair, [from, to] if has_training_step(*from, *to)))
}

/// Whether the repetitions go on until the run ends: the part after the last one is at most as long as three of
/// them. A loop that ends before, such as one over the parameters of a network, is a part of an iteration.
fn reach_the_end(boundaries: &[usize]) -> bool {
    let lengths = boundaries.windows(2).filter_map(|pair| pair.get(1)?.checked_sub(*pair.first()?));
    let lengths: Vec<usize> = lengths.collect();
    let Some((last, others)) = lengths.split_last() else { return false };
    others.iter().max().is_some_and(|longest| *last <= longest.saturating_mul(3))
}

/// Whether all allocations of the whole parts are made below one line of a module's `forward`: the parts are
/// then repetitions inside one forward pass.
fn are_in_a_forward_pass(run: &Run, sites: &Sites, boundaries: &[usize]) -> bool {
    let [first, .., last, _] = boundaries else { return false };
    let sites_of_parts: BTreeSet<u32> =
        allocations(run, *first, *last).map(|request| sites.at(request)).collect();
    let mut common: Option<Vec<String>> = None;
    for site in sites_of_parts {
        // Outermost frame first. Frames of C++ lie between those of Python, and name no module.
        let frames: Vec<String> =
            sites.name(site).into_iter().rev().filter(|frame| frame.contains(".py:")).collect();
        common = Some(match common {
            None => frames,
            Some(common) => {
                let pairs = common.into_iter().zip(frames).take_while(|(one, other)| one == other);
                pairs.map(|(one, _)| one).collect()
            }
        });
    }
    common.is_some_and(|common| common.iter().any(|frame| function(frame) == FORWARD))
}

/// The requests from `from` to before `to` that ask for memory.
fn allocations(run: &Run, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
    let requests = run.requests().iter().enumerate().take(to).skip(from);
    requests.filter(|(_, request)| matches!(request, Request::Allocate { .. })).map(|(index, _)| index)
}

/// The function of a frame, `forward` of `forward (net.py:12)`.
fn function(frame: &str) -> &str {
    frame.split(' ').next().unwrap_or_default()
}

/// The ends of iterations that begin with the same allocation: an allocation with the most common frequency,
/// spread evenly.
fn repetition(run: &Run, sites: &Sites, lifetimes: &[Lifetime]) -> Option<Vec<usize>> {
    const MAX_ITERATIONS: usize = 4096;
    let mut places: HashMap<(u32, u64), Vec<usize>> = HashMap::new();
    for (index, request) in run.requests().iter().enumerate() {
        if let Request::Allocate { size, .. } = request {
            places.entry((sites.at(index), size.get())).or_default().push(index);
        }
    }
    // For each frequency, how many kinds of allocations have it.
    let mut often: HashMap<usize, usize> = HashMap::new();
    for places in places.values().filter(|places| (MIN_ITERATIONS..MAX_ITERATIONS).contains(&places.len())) {
        *often.entry(places.len()).or_default() += 1;
    }
    let mut often: Vec<(usize, usize)> = often.into_iter().collect();
    often.sort_by_key(|(count, kinds)| std::cmp::Reverse((*kinds, *count)));
    often.into_iter().find_map(|(count, kinds)| {
        let candidates = places.values().filter(|places| places.len() == count);
        let first = candidates.min_by_key(|places| places.first().copied())?;
        let gaps = first.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?));
        let (least, most) = (gaps.clone().min()?, gaps.max()?);
        // Only even iterations count: at least two kinds of allocations, and no iteration three times as long
        // as another.
        let is_even = kinds >= 2 && most <= least.saturating_mul(3);
        (is_even && gives_back(lifetimes, *first.first()?, *first.last()?))
            .then(|| first.iter().copied().skip(1).chain([run.requests().len()]).collect())
    })
}

/// Whether enough of the allocations of these requests are freed within these requests ([`MIN_FREED_DIVISOR`]).
fn gives_back(lifetimes: &[Lifetime], from: usize, to: usize) -> bool {
    let within = lifetimes.iter().filter(|lifetime| (from..to).contains(&lifetime.request));
    let (all, freed) = within.fold((0_usize, 0_usize), |(all, freed), lifetime| {
        (all.saturating_add(1), freed.saturating_add(usize::from(lifetime.freed < to)))
    });
    freed.saturating_mul(MIN_FREED_DIVISOR) >= all
}
