//! Iterations that are equal but for steps of their sizes.

use std::collections::HashMap;

use blockyard_record::{Bytes, StreamId};
use blockyard_workload::{Request, TensorId};

use crate::Run;

/// A program may do something in every n-th iteration alone, such as a step of the optimizer: so many
/// iterations may be one group.
const MAX_PERIOD: usize = 16;

/// A request as far as a group of iterations repeats it. Tensors are named by how many requests earlier they
/// were asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// `stack` is the number of the stack, where stacks were recorded.
    Allocate {
        stack: Option<u32>,
        stream: StreamId,
    },
    Free {
        distance: usize,
    },
    RecordStream {
        distance: usize,
        stream: StreamId,
    },
    Other(Request),
}

/// A step of the last group, its bytes if it is an allocation, and by how many bytes it grows in each group.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    step: Step,
    size: u64,
    growth: i64,
}

/// The last whole iterations of a run, which are equal but for steps of their sizes.
#[derive(Debug)]
pub(super) struct Periodic {
    /// How many whole iterations the run has.
    pub(super) iterations: u64,
    /// How many iterations are one group.
    pub(super) period: usize,
    /// How many requests a group has, at least 1.
    pub(super) group: usize,
    /// Whether no size grows from group to group.
    pub(super) has_equal_sizes: bool,
    /// The requests until the end of the last whole iteration, each allocation with a separate tensor: the
    /// number of its request.
    whole: Vec<Request>,
    /// The requests of the run that are those of `whole`.
    sources: Vec<usize>,
    /// The last group.
    steps: Vec<Repeated>,
    /// Where the iterations of a group end, in requests of the group.
    group_ends: Vec<usize>,
    /// Where the whole iterations of the run end.
    whole_ends: Vec<usize>,
}

impl Periodic {
    /// `None` if the last whole iterations are not equal but for steps of their sizes. `ends` are the ends of
    /// the iterations; the first has the set-up of the program, and the last may be cut off.
    pub(super) fn of(run: &Run, ends: &[usize]) -> Option<Self> {
        let (_, ends) = ends.split_last()?;
        let total = *ends.last()?;
        // An allocator that found the device full released its cache where it was full, and not in every
        // iteration: a replay forward does that by itself.
        let is_release = |index: &usize| matches!(run.requests().get(*index), Some(Request::EmptyCache));
        let all: Vec<usize> = (0..total).collect();
        Self::of_requests(run, &all, ends).or_else(|| {
            let kept: Vec<usize> = all.into_iter().filter(|index| !is_release(index)).collect();
            let ends: Vec<usize> = ends.iter().map(|end| kept.partition_point(|index| index < end)).collect();
            Self::of_requests(run, &kept, &ends)
        })
    }

    /// The iterations of some of a run's requests, which are at these places and end at these places of the list.
    fn of_requests(run: &Run, sources: &[usize], ends: &[usize]) -> Option<Self> {
        let total = *ends.last()?;
        let (whole, steps) = steps(run, sources);
        (1..=MAX_PERIOD).find_map(|period| {
            // Where the last groups end and begin, the last end first. The first iteration is in no group.
            let places = ends.iter().rev().step_by(period).take(4).copied().collect::<Vec<usize>>();
            let groups: Vec<&[(Step, u64)]> =
                places.windows(2).map_while(|pair| steps.get(*pair.get(1)?..*pair.first()?)).collect();
            let last = grown(&groups)?;
            let from = total.checked_sub(last.len()).filter(|from| *from < total)?;
            let mut group_ends: Vec<usize> =
                ends.iter().rev().take(period).filter_map(|end| end.checked_sub(from)).collect();
            group_ends.reverse();
            Some(Self {
                iterations: ends.len() as u64,
                period,
                group: last.len(),
                has_equal_sizes: last.iter().all(|repeated| repeated.growth == 0),
                whole: whole.clone(),
                sources: sources.to_vec(),
                steps: last,
                group_ends,
                whole_ends: ends.to_vec(),
            })
        })
    }

    /// The requests of the whole iterations and of so many more groups; `None` if a size would fall below
    /// zero, or a tensor is freed that no allocation made.
    pub(super) fn requests(&self, groups: usize) -> Option<Vec<Request>> {
        let mut requests = self.whole.clone();
        requests.reserve(groups.saturating_mul(self.group));
        for number in 1..=groups {
            for repeated in &self.steps {
                let place = requests.len();
                let tensor = |distance: usize| {
                    let asked = place.checked_sub(distance)?;
                    let is_allocation = matches!(requests.get(asked)?, Request::Allocate { .. });
                    if is_allocation { tensor_of(asked) } else { None }
                };
                requests.push(match repeated.step {
                    Step::Allocate { stream, .. } => {
                        Request::Allocate { tensor: tensor_of(place)?, size: repeated.after(number)?, stream }
                    }
                    Step::Free { distance } => Request::Free { tensor: tensor(distance)? },
                    Step::RecordStream { distance, stream } => {
                        Request::RecordStream { tensor: tensor(distance)?, stream }
                    }
                    Step::Other(request) => request,
                });
            }
        }
        Some(requests)
    }

    /// The ends of the last whole iteration and of those of so many more groups.
    pub(super) fn ends(&self, groups: usize) -> impl Iterator<Item = usize> + '_ {
        let whole = self.whole.len();
        let of_group = move |number: usize| {
            let begin = whole.saturating_add(number.saturating_mul(self.group));
            self.group_ends.iter().map(move |end| begin.saturating_add(*end))
        };
        std::iter::once(whole).chain((0..groups).flat_map(of_group))
    }

    /// The iteration of a request of the whole iterations, counted from 1.
    pub(super) fn whole_iteration(&self, request: usize) -> u64 {
        (self.whole_ends.partition_point(|end| *end <= request) as u64).saturating_add(1)
    }

    /// The request of the run that a request of a longer one repeats.
    pub(super) fn source(&self, request: usize) -> Option<usize> {
        let place = match self.place(request) {
            None => request,
            Some((_, place)) => self.whole.len().checked_sub(self.group)?.checked_add(place)?,
        };
        self.sources.get(place).copied()
    }

    /// The requests of the last group that grow from group to group, and by how many bytes.
    pub(super) fn growing(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let begin = self.whole.len().saturating_sub(self.group);
        let requests = self.steps.iter().zip(begin..);
        requests.filter_map(|(repeated, request)| Some((request, u64::try_from(repeated.growth).ok()?)))
    }

    /// The bytes that a request asks for that comes after the whole iterations.
    pub(super) fn size(&self, request: usize) -> Option<Bytes> {
        let (number, place) = self.place(request)?;
        self.steps.get(place)?.after(number)
    }

    /// The group of a request that comes after the whole iterations, counted from 1, and its place there.
    fn place(&self, request: usize) -> Option<(usize, usize)> {
        let after = request.checked_sub(self.whole.len())?;
        Some((after.checked_div(self.group)?.checked_add(1)?, after.checked_rem(self.group)?))
    }
}

impl Repeated {
    /// The bytes of an allocation so many groups later.
    fn after(&self, groups: usize) -> Option<Bytes> {
        let growth = self.growth.checked_mul(i64::try_from(groups).ok()?)?;
        self.size.checked_add_signed(growth).map(Bytes::new)
    }
}

fn tensor_of(request: usize) -> Option<TensorId> {
    u32::try_from(request).ok().map(TensorId::new)
}

/// The requests, each allocation with a separate tensor, and their steps with the bytes of allocations.
fn steps(run: &Run, sources: &[usize]) -> (Vec<Request>, Vec<(Step, u64)>) {
    let mut asked: HashMap<TensorId, usize> = HashMap::new();
    let requests = sources.iter().filter_map(|source| Some((*source, *run.requests().get(*source)?)));
    let steps = requests.enumerate().map(|(index, (source, request))| match request {
        Request::Allocate { tensor, size, stream } => {
            asked.insert(tensor, index);
            let own = Request::Allocate { tensor: tensor_of(index).unwrap_or(tensor), size, stream };
            (own, (Step::Allocate { stack: run.stack_number(source), stream }, size.get()))
        }
        Request::Free { tensor } => {
            let place = asked.remove(&tensor).unwrap_or(index);
            let own = Request::Free { tensor: tensor_of(place).unwrap_or(tensor) };
            (own, (Step::Free { distance: index.saturating_sub(place) }, 0))
        }
        Request::RecordStream { tensor, stream } => {
            let place = asked.get(&tensor).copied().unwrap_or(index);
            let own = Request::RecordStream { tensor: tensor_of(place).unwrap_or(tensor), stream };
            (own, (Step::RecordStream { distance: index.saturating_sub(place), stream }, 0))
        }
        other => (other, (Step::Other(other), 0)),
    });
    steps.unzip()
}

/// The last group with its growth, from the last three groups or two, the last one first; `None` if they are
/// not equal but for steps of their sizes. Two groups do not show a step.
fn grown(groups: &[&[(Step, u64)]]) -> Option<Vec<Repeated>> {
    let [last, before, earlier @ ..] = groups else { return None };
    let is_equal = groups.iter().all(|group| {
        group.len() == last.len() && group.iter().zip(*last).all(|((one, _), (other, _))| one == other)
    });
    if !is_equal {
        return None;
    }
    let growth =
        |later: u64, sooner: u64| i64::try_from(later).ok()?.checked_sub(i64::try_from(sooner).ok()?);
    let repeated = last.iter().zip(*before).enumerate().map(|(place, ((step, size), (_, size_before)))| {
        let now = growth(*size, *size_before)?;
        let then = match earlier.first() {
            Some(earlier) => growth(*size_before, earlier.get(place)?.1)?,
            None => 0,
        };
        (now == then).then_some(Repeated { step: *step, size: *size, growth: now })
    });
    repeated.collect()
}
