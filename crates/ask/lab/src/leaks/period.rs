//! Loops whose allocations cannot be told apart by their lines and sizes: the same requests again and again.

use std::collections::HashMap;

use blockyard_workload::{Request, TensorId};

use super::gives_back;
use crate::Run;
use crate::lifetimes::Lifetime;
use crate::sites::Sites;

/// Loops with more requests than this are found by the allocations that come once in each iteration.
const MAX_PERIOD: usize = 128;

/// The fewest repetitions that count: a short pattern repeats a few times by chance.
const MIN_REPETITIONS: usize = 8;

/// A request as far as a repetition must repeat it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    /// The call site and the size.
    Allocate(u32, u64),
    /// How many requests earlier the freed memory was allocated.
    Free(usize),
    Other,
}

/// The requests after which the iterations end, if most of the run is one loop that does exactly the same
/// again and again: each iteration allocates the same sizes at the same lines, and frees allocations of the
/// same age in requests.
pub(super) fn period(run: &Run, sites: &Sites, lifetimes: &[Lifetime]) -> Option<Vec<usize>> {
    let tokens = tokens(run, sites);
    let total = tokens.len();
    (1..=MAX_PERIOD.min(total / MIN_REPETITIONS)).find_map(|period| {
        let (from, to) = longest_repetition(&tokens, period)?;
        let length = to.saturating_sub(from);
        let is_most = length.saturating_mul(2) >= total.saturating_sub(run.requests_from_before());
        if length < period.saturating_mul(MIN_REPETITIONS) || !is_most || !gives_back(lifetimes, from, to) {
            return None;
        }
        let mut ends: Vec<usize> = (from..=to).step_by(period).skip(1).take_while(|end| *end <= to).collect();
        // A few requests after the loop belong to its last iteration, mostly because that iteration fails.
        if ends.last().is_some_and(|last| total.saturating_sub(*last) < period.max(2)) {
            ends.pop();
        }
        ends.push(total);
        Some(ends)
    })
}

fn tokens(run: &Run, sites: &Sites) -> Vec<Token> {
    let mut asked: HashMap<TensorId, usize> = HashMap::new();
    let requests = run.requests().iter().enumerate();
    let tokens = requests.map(|(index, request)| match request {
        Request::Allocate { tensor, size, .. } => {
            asked.insert(*tensor, index);
            Token::Allocate(sites.at(index), size.get())
        }
        Request::Free { tensor } => {
            Token::Free(asked.remove(tensor).map_or(0, |asked| index.saturating_sub(asked)))
        }
        _ => Token::Other,
    });
    tokens.collect()
}

/// The longest part of a list in which each token is the one that came `period` tokens before: where it
/// begins and ends.
fn longest_repetition(tokens: &[Token], period: usize) -> Option<(usize, usize)> {
    let mut longest = (0, 0);
    let mut length = 0_usize;
    for (end, (one, other)) in tokens.iter().zip(tokens.get(period..)?).enumerate() {
        length = if one == other { length.saturating_add(1) } else { 0 };
        if length > longest.0 {
            longest = (length, end.saturating_add(period).saturating_add(1));
        }
    }
    let (length, to) = longest;
    (length > 0).then(|| (to.saturating_sub(length).saturating_sub(period), to))
}
