//! The numbers of a run's requests for people, and which requests stand for memory from before the recording.

use std::sync::Arc;

use blockyard_record::grouped;
use blockyard_workload::Request;

/// The numbers of requests: those of their steps in the figures of the run, counted from 1.
///
/// A request that stands for memory from before the recording has the number 0, since no figure shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestNumbers {
    /// How many of the first requests stand for memory from before the recording.
    pub(crate) from_before: usize,
    /// The number of each request; empty where they count from 1.
    numbers: Arc<[u32]>,
}

impl RequestNumbers {
    /// The numbers where the requests after the first `from_before` have these steps.
    pub(crate) fn of_steps(from_before: usize, steps: &[u32]) -> Self {
        let is_counted_from_1 = from_before == 0 && steps.iter().zip(1..).all(|(step, place)| *step == place);
        let numbers = std::iter::repeat_n(0, from_before).chain(steps.iter().copied());
        Self { from_before, numbers: if is_counted_from_1 { Arc::default() } else { numbers.collect() } }
    }

    /// The numbers of `changed` requests, each that of the request of `own` that asks for the same memory.
    pub(crate) fn of_changed(&self, own: &[Request], changed: &[Request]) -> Self {
        if self.numbers.is_empty() {
            return Self::default();
        }
        let known = own.iter().zip(self.numbers.iter()).filter(|(request, _)| asks_for_memory(request));
        let mut known = known.map(|(_, number)| *number);
        let mut number = 0_u32;
        let numbers = changed.iter().map(|request| {
            if asks_for_memory(request) {
                number = known.next().unwrap_or(number.saturating_add(1));
            }
            number
        });
        Self { from_before: 0, numbers: numbers.collect() }
    }

    /// The number of a request.
    pub(crate) fn of(&self, index: usize) -> u64 {
        match (self.numbers.get(index), self.numbers.last()) {
            (Some(number), _) => u64::from(*number),
            (None, None) => (index as u64).saturating_add(1),
            // After the last request.
            (None, Some(last)) => u64::from(*last).saturating_add(1),
        }
    }

    /// The index of the request with a number: of several, the one that asks for memory.
    pub(crate) fn index(&self, number: u64, requests: &[Request]) -> Option<usize> {
        if self.numbers.is_empty() {
            return usize::try_from(number.checked_sub(1)?).ok();
        }
        let wanted = u32::try_from(number).ok().filter(|number| *number > 0)?;
        let first = self.numbers.partition_point(|number| *number < wanted);
        let of_number = self.numbers.get(first..)?.iter().take_while(|number| **number == wanted).count();
        let requests = requests.get(first..first.saturating_add(of_number))?;
        let asks = requests.iter().position(asks_for_memory);
        (of_number > 0).then(|| first.saturating_add(asks.unwrap_or_default()))
    }

    /// The place of a request among those that ask for memory from before the recording, counted from 1; `None`
    /// for later requests.
    pub(crate) fn earlier_block(&self, index: usize, requests: &[Request]) -> Option<u64> {
        let earlier = requests.iter().take(index.saturating_add(1));
        (index < self.from_before).then(|| earlier.filter(|request| asks_for_memory(request)).count() as u64)
    }

    /// The index of the request for a block from before the recording, counted from 1.
    pub(crate) fn earlier_request(&self, block: u64, requests: &[Request]) -> Option<usize> {
        let requests = requests.iter().enumerate().take(self.from_before);
        let mut asked = requests.filter(|(_, request)| asks_for_memory(request));
        asked.nth(usize::try_from(block.checked_sub(1)?).ok()?).map(|(index, _)| index)
    }
}

/// `request 5` in words; memory from before the recording has no number.
pub fn request_text(number: u64) -> String {
    match number {
        0 => "a block from before the recording".to_owned(),
        number => format!("request {}", grouped(number)),
    }
}

pub(crate) fn asks_for_memory(request: &Request) -> bool {
    matches!(request, Request::Allocate { .. })
}
