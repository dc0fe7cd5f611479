//! The rest of an iteration that failed, from an earlier equal iteration or from another device.
//!
//! A recording that ends at a failure does not have the requests that come next. An iteration that asked for the
//! same up to there shows them: the same stacks, sizes and streams in the same order, freed at the same places.
//! Blocks that the earlier iteration made besides and that live on do not count: libraries make their workspaces in the
//! first iteration. Of the rest, what backward passes, optimizers and libraries made once and keep is not made again.

use std::collections::HashMap;

use blockyard_record::{Bytes, OnDone, StackCategory, StackHolder, StackId, StreamId, frame_text, own_line};
use blockyard_rules::size;
use blockyard_workload::{Request, TensorId};

use crate::autopsy::{ChangedRun, open_pool};
use crate::code_fixes::iteration_starts;
use crate::lifetimes::lifetimes;
use crate::limited_run::FixedConditions;
use crate::outcome::outcome;
use crate::request_numbers::asks_for_memory;
use crate::{Change, Conditions, LabError, LaterFailure, Leaks, RestOfIteration, RestSource, Run};

/// A run that failed, with the requests that come after the failed one.
#[derive(Clone, Debug)]
pub(crate) struct CompletedRun {
    pub(crate) run: Run,
    /// The index of the request that failed.
    failed: usize,
    pub(crate) from: RestSource,
    /// Whether the requests of `run` reach the end of the iteration.
    pub(crate) is_whole: bool,
}

impl CompletedRun {
    /// `cut` is the run up to the request that fails under the conditions, and `leaks` what grows in it; `None` if
    /// nothing shows what comes after the request.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`].
    pub(crate) fn of(
        run: &Run,
        cut: &Run,
        leaks: &Leaks,
        failed: usize,
        on_done: OnDone,
    ) -> Result<Option<Self>, LabError> {
        // A program that goes on after a failure does something else.
        if run.continues_after_oom() {
            return Ok(None);
        }
        let Some(last) = run.recorded_oom() else {
            let run = run.with_rest(run.requests().len(), []);
            return Ok(Some(Self { run, failed, from: RestSource::Recording, is_whole: true }));
        };
        let mut leaks_of = |run: &Run| {
            crate::leaks(run, &mut |progress| on_done(usize::try_from(progress.done).unwrap_or_default()))
        };
        // Under other conditions a run fails earlier than it did.
        let until_last = if last > failed { Some(run.until(last.saturating_add(1))) } else { None };
        let grows_until_last = until_last.as_deref().map(&mut leaks_of).transpose()?;
        let (cut, leaks) = (until_last.as_deref().unwrap_or(cut), grows_until_last.as_ref().unwrap_or(leaks));
        let own = Iterations::of(cut, leaks, Some(last));
        let with = |rest: Vec<(Request, StackId)>, from, is_whole| {
            let run = run.with_rest(last.saturating_add(1), rest);
            Ok(Some(Self { run, failed, from, is_whole }))
        };
        if let Some((number, rest)) = own.iter().find_map(Iterations::rest) {
            return with(rest, RestSource::Iteration(number), true);
        }
        for (device, other) in run.recorded.others.iter() {
            let leaks = leaks_of(other)?;
            let others = Iterations::of(other, &leaks, other.recorded_oom());
            let mut pairs = own.iter().flat_map(|own| others.iter().map(move |other| (own, other)));
            if let Some((rest, is_whole)) = pairs.find_map(|(own, other)| own.rest_of(other)) {
                return with(rest, RestSource::Device(u64::from(*device)), is_whole);
            }
        }
        if last > failed { with(Vec::new(), RestSource::Recording, false) } else { Ok(None) }
    }

    /// Adds to a change that lets the failed request pass what becomes of the iteration, in its field and at the end of
    /// its sentence.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`].
    pub(crate) fn add_rest(
        &self,
        conditions: &Conditions,
        change: &mut Change,
        on_done: OnDone,
    ) -> Result<(), LabError> {
        let changed = ChangedRun::of(&self.run, conditions, &change.kind, self.failed);
        let bounds = changed.run.fixed_conditions(&changed.conditions);
        change.rest = self.of_changed(&changed.run, &bounds, on_done)?;
        if let Some(rest) = &change.rest {
            change.sentence.push_str(", ");
            change.sentence.push_str(&rest.end_text());
        }
        Ok(())
    }

    /// What becomes of the iteration in a changed run, at the lowest of the bounds where a request fails; `None` where
    /// the failed request or one before it fails.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`].
    pub(crate) fn of_changed(
        &self,
        changed: &Run,
        bounds: &[FixedConditions],
        on_done: OnDone,
    ) -> Result<Option<RestOfIteration>, LabError> {
        let mut fails = None;
        for fixed in bounds {
            let failed = match outcome(changed, fixed, 0, on_done) {
                Ok(outcome) => outcome.failed,
                // Requests that were put together and cannot be replayed say nothing.
                Err(LabError::Config(_) | LabError::Run(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            let Some(failed) = failed else { continue };
            let Some(later) = self.later(changed, failed) else { return Ok(None) };
            fails.get_or_insert(later);
        }
        Ok(Some(RestOfIteration { from: self.from, is_whole: self.is_whole, fails }))
    }

    /// A request of a changed run that fails, if it comes after the one that failed without the change.
    fn later(&self, changed: &Run, failed: usize) -> Option<LaterFailure> {
        let Some(Request::Allocate { size, .. }) = changed.requests().get(failed) else { return None };
        // A request that the change adds comes after one of the run itself.
        let mut before = changed.requests().get(..=failed)?.iter().rev();
        let place = before.find_map(|request| {
            let Request::Allocate { tensor, .. } = request else { return None };
            let is_same =
                |own: &Request| matches!(own, Request::Allocate { tensor: other, .. } if other == tensor);
            self.run.requests().iter().rposition(is_same)
        })?;
        let between = self.run.requests().get(self.failed.saturating_add(1)..=place)?;
        let requests_later = between.iter().filter(|request| asks_for_memory(request)).count() as u64;
        let line = own_line(&self.run.stack(place)).map(frame_text);
        (requests_later > 0).then_some(LaterFailure { requests_later, size: *size, line })
    }
}

/// A request for memory, as far as an equal iteration has it: its stack, its bytes after rounding and its stream.
type Asked = (StackId, Bytes, StreamId);

/// The iterations of a run.
struct Iterations<'a> {
    run: &'a Run,
    /// Where each begins; the last one fails or is the last of the run.
    starts: Vec<usize>,
    /// How many requests are known, and the last one if it failed.
    end: usize,
    failed: Option<usize>,
    /// The indices of the requests for memory.
    asked: Vec<usize>,
    /// Where the block of each request for memory is freed.
    freed: HashMap<usize, usize>,
    /// The request for the memory that each free gives back.
    of_free: HashMap<usize, usize>,
}

/// An iteration that asks for the same as the failed one: the indices of its requests for memory, one for each request
/// of the failed iteration up to the failure.
#[derive(Clone)]
struct Equal(Vec<usize>);

impl Equal {
    fn first(&self) -> usize {
        self.0.first().copied().unwrap_or_default()
    }

    fn last(&self) -> usize {
        self.0.last().copied().unwrap_or_default()
    }
}

impl<'a> Iterations<'a> {
    /// The iterations as they are known, and as forward and backward passes show them.
    fn of(run: &'a Run, leaks: &Leaks, failed: Option<usize>) -> Vec<Self> {
        let known = leaks.has_known_iterations.then(|| {
            let ends = leaks.ends.split_last().map(|(_, ends)| ends).unwrap_or_default();
            std::iter::once(0).chain(ends.iter().copied()).collect::<Vec<usize>>()
        });
        let all = [known, iteration_starts(run, failed)];
        all.into_iter().flatten().map(|starts| Self::new(run, starts, failed)).collect()
    }

    fn new(run: &'a Run, starts: Vec<usize>, failed: Option<usize>) -> Self {
        let asks = |(_, request): &(usize, &Request)| asks_for_memory(request);
        let asked = run.requests().iter().enumerate().filter(asks).map(|(index, _)| index).collect();
        let lives = lifetimes(run);
        Self {
            run,
            starts,
            end: failed.map_or(run.requests().len(), |failed| failed.saturating_add(1)),
            failed,
            asked,
            freed: lives.iter().map(|life| (life.request, life.freed)).collect(),
            of_free: lives.iter().map(|life| (life.freed, life.request)).collect(),
        }
    }

    /// The number of the last iteration that is equal to the failed one up to the failure, counted from 1,
    /// and its rest.
    fn rest(&self) -> Option<(u64, Vec<(Request, StackId)>)> {
        let (last, earlier) = self.starts.split_last()?;
        let own = self.failed_head(*last)?;
        let equal = |number: usize| self.equal(number, self, &own);
        let (number, other) = (0..earlier.len()).rev().find_map(|number| Some((number, equal(number)?)))?;
        let before = number.checked_sub(1).and_then(equal);
        // What the iteration before the failed one made is known by its place there.
        let own_before = (number.saturating_add(1) == earlier.len()).then(|| other.clone());
        let rest = Rest { own: self, other: self, head: (own, other), before: (own_before, before) };
        let end = *self.starts.get(number.saturating_add(1))?;
        Some(((number as u64).saturating_add(1), rest.requests(end)))
    }

    /// The rest of the failed iteration as another device has it, and whether it is known to its end.
    fn rest_of(&self, other: &Self) -> Option<(Vec<(Request, StackId)>, bool)> {
        let number = self.starts.len().checked_sub(1)?;
        let own = self.failed_head(*self.starts.get(number)?)?;
        let equal = |of: &Self, number: usize| of.equal(number, self, &own);
        let before = number.checked_sub(1).map(|number| (equal(self, number), equal(other, number)));
        let found = equal(other, number)?;
        let rest = Rest { own: self, other, head: (own, found), before: before.unwrap_or_default() };
        let end = other.starts.get(number.saturating_add(1));
        // The request that failed on the other device is not one that it made.
        let known = other.failed.unwrap_or(other.end);
        let requests = rest.requests(end.copied().unwrap_or(known));
        (!requests.is_empty()).then_some((requests, end.is_some()))
    }

    /// The requests of the failed iteration.
    fn failed_head(&self, start: usize) -> Option<Equal> {
        let head = self.asked.get(self.place(start)..self.place(self.end))?;
        (head.last() == self.failed.as_ref()).then(|| Equal(head.to_vec())).filter(|head| !head.0.is_empty())
    }

    /// An iteration of this run, if it is equal to the failed one of `failed` up to the failure.
    fn equal(&self, number: usize, failed: &Self, head: &Equal) -> Option<Equal> {
        // The first iteration may begin with what sets the program up.
        const MAX_BEGINNINGS: usize = 64;
        let start = *self.starts.get(number)?;
        let end = self.starts.get(number.saturating_add(1)).copied().unwrap_or(self.end);
        let asked = self.asked.get(self.place(start)..self.place(end))?;
        let wanted = failed.asked_at(head.first());
        let begins =
            (0..asked.len()).filter(|place| asked.get(*place).is_some_and(|at| self.asked_at(*at) == wanted));
        begins.take(MAX_BEGINNINGS).find_map(|begin| {
            let mut asked = asked.iter().skip(begin).copied();
            let one_of = |own: &usize| {
                let wanted = failed.asked_at(*own);
                asked
                    .by_ref()
                    .find(|at| self.asked_at(*at) == wanted || !self.is_live_at_end(*at))
                    .filter(|at| self.asked_at(*at) == wanted)
            };
            let equal = Equal(head.0.iter().map(one_of).collect::<Option<_>>()?);
            let pools =
                |of: &Self, head: &Equal| open_pool(of.run.requests().get(..head.last()).unwrap_or_default());
            let frees_same = equal
                .0
                .iter()
                .zip(&head.0)
                .all(|(one, other)| self.freed_within(*one, &equal) == failed.freed_within(*other, head));
            (frees_same && pools(self, &equal) == pools(failed, head)).then_some(equal)
        })
    }

    /// How many requests for memory come before an index.
    fn place(&self, index: usize) -> usize {
        self.asked.partition_point(|asked| *asked < index)
    }

    fn asked_at(&self, index: usize) -> Option<Asked> {
        match self.run.requests().get(index)? {
            // A trace has the size of a failed request after rounding.
            Request::Allocate { size, stream, .. } => {
                Some((self.run.stack_id(index), size::least(*size).unwrap_or(*size), *stream))
            }
            _ => None,
        }
    }

    /// After how many requests of an iteration a block is freed.
    fn freed_within(&self, index: usize, head: &Equal) -> usize {
        let freed = self.freed.get(&index).copied().unwrap_or(usize::MAX);
        head.0.partition_point(|asked| *asked < freed)
    }

    /// The request of an iteration of this run that asks for the same, at the same place, as a request of an iteration
    /// of `other`.
    fn counterpart(&self, own: &Equal, other: &Self, (iteration, index): (&Equal, usize)) -> Option<usize> {
        let found = if let Ok(place) = iteration.0.binary_search(&index) {
            own.0.get(place).copied()?
        } else {
            let after = other.place(index).checked_sub(other.place(iteration.last()))?;
            *self.asked.get(self.place(own.last()).checked_add(after)?)?
        };
        (self.asked_at(found) == other.asked_at(index)).then_some(found)
    }

    fn is_live_at_end(&self, index: usize) -> bool {
        self.freed.get(&index).is_none_or(|freed| *freed >= self.end)
    }

    fn tensor(&self, index: usize) -> Option<TensorId> {
        match self.run.requests().get(index)? {
            Request::Allocate { tensor, .. } => Some(*tensor),
            _ => None,
        }
    }
}

/// The requests after the failed one, as an equal iteration has them.
struct Rest<'a> {
    own: &'a Iterations<'a>,
    /// The run of the equal iteration.
    other: &'a Iterations<'a>,
    /// The failed iteration, and the equal one.
    head: (Equal, Equal),
    /// The iterations before these two, where they are equal, too.
    before: (Option<Equal>, Option<Equal>),
}

impl Rest<'_> {
    /// The requests of the equal iteration before index `end`, for the tensors of the failed one.
    fn requests(&self, end: usize) -> Vec<(Request, StackId)> {
        let all = self.own.run.requests().iter();
        let used = all.filter_map(|request| match request {
            Request::Allocate { tensor, .. } => Some(tensor.get().saturating_add(1)),
            _ => None,
        });
        let mut next = used.max().unwrap_or_default();
        let mut made: HashMap<usize, TensorId> = HashMap::new();
        let mut tensors: HashMap<TensorId, usize> = HashMap::new();
        for index in &self.other.asked {
            tensors.extend(self.other.tensor(*index).map(|tensor| (tensor, *index)));
        }
        let mut rest = Vec::new();
        let first = self.head.1.last().saturating_add(1);
        let requests = self.other.run.requests().iter().enumerate().take(end).skip(first);
        for (index, request) in requests {
            let request = match *request {
                Request::Allocate { size, stream, .. } => {
                    if self.is_made_once(index) {
                        continue;
                    }
                    let tensor = TensorId::new(next);
                    next = next.saturating_add(1);
                    made.insert(index, tensor);
                    Some(Request::Allocate { tensor, size, stream })
                }
                Request::Free { .. } => {
                    let asked = self.other.of_free.get(&index);
                    let tensor =
                        asked.and_then(|asked| made.remove(asked).or_else(|| self.own_tensor(*asked)));
                    tensor.map(|tensor| Request::Free { tensor })
                }
                Request::RecordStream { tensor, stream } => {
                    let asked = tensors.get(&tensor);
                    let tensor =
                        asked.and_then(|asked| made.get(asked).copied().or_else(|| self.own_tensor(*asked)));
                    tensor.map(|tensor| Request::RecordStream { tensor, stream })
                }
                Request::ResetPeak | Request::ResetAccumulated => None,
                other => Some(other),
            };
            rest.extend(request.map(|request| (request, self.other.run.stack_id(index))));
        }
        rest
    }

    /// The tensor of the failed run that takes the part of one that was made before its failed request.
    fn own_tensor(&self, asked: usize) -> Option<TensorId> {
        let (own, other) = &self.head;
        let index = match &self.before {
            _ if asked >= other.first() => self.own.counterpart(own, self.other, (other, asked)),
            (Some(own), Some(other)) => self.own.counterpart(own, self.other, (other, asked)),
            _ => None,
        };
        let index = index.filter(|index| self.own.is_live_at_end(*index))?;
        self.own.tensor(index)
    }

    /// Whether a block is kept that an iteration does not make again: the first one made it, and the failed run still
    /// has it.
    fn is_made_once(&self, index: usize) -> bool {
        let is_own = std::ptr::eq(self.own, self.other) && self.own.run.has_stacks();
        if !is_own || !self.own.is_live_at_end(index) {
            return false;
        }
        let stack = self.own.run.stack(index);
        let is_kept = matches!(
            StackCategory::from_texts(&stack),
            StackCategory::Optimizer | StackCategory::Gradients | StackCategory::Unknown
        );
        if !is_kept && StackHolder::from_texts(&stack) != StackHolder::Workspace {
            return false;
        }
        // The iteration before made one that this iteration freed, and made again.
        let other = &self.head.1;
        let was_replaced = self.before.1.as_ref().is_some_and(|before| {
            let earlier = self.own.counterpart(before, self.own, (other, index));
            let freed = earlier.and_then(|earlier| self.own.freed.get(&earlier).copied());
            freed.is_some_and(|freed| freed >= other.first() && freed < self.own.end)
        });
        !was_replaced
    }
}
