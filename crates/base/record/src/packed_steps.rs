//! Steps as bytes: the number of events and the breakdown after each.

use serde::{Deserialize, Serialize};

use crate::encoding::EncodingError;
use crate::varint::{self, Reader};
use crate::{Breakdown, Bytes};

/// For each step, the number of events and the breakdown after it, encoded as differences from the step
/// before.
///
/// Steps are encoded in groups. A group begins with absolute numbers, so that decoding any step takes one
/// group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "UncheckedSteps")]
pub(crate) struct PackedSteps {
    count: usize,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    groups: Vec<Group>,
    /// The state after the last step.
    #[serde(skip)]
    last: StepEnd,
}

/// The encoded form, before it is checked.
#[derive(Deserialize)]
struct UncheckedSteps {
    count: usize,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    groups: Vec<Group>,
}

impl TryFrom<UncheckedSteps> for PackedSteps {
    type Error = EncodingError;

    fn try_from(UncheckedSteps { count, bytes, groups }: UncheckedSteps) -> Result<Self, Self::Error> {
        // A step takes at least one byte. Without this check, a damaged count would make a reader loop for
        // hours.
        if count > bytes.len() || groups.len() != count.div_ceil(GROUP) {
            return Err(EncodingError::Steps);
        }
        Ok(Self { count, bytes, groups, ..Self::default() })
    }
}

/// Steps in one group.
const GROUP: usize = 32;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Group {
    /// Where the group starts in the bytes.
    start: u64,
    /// The state before the group.
    before: StepEnd,
}

/// The state after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StepEnd {
    /// The number of events up to the end of the step.
    end: u32,
    /// Requested, rounding, pending and reserved bytes. Most steps change only some of the four.
    bytes: [u64; 4],
}

// The low half of a step's first byte is its number of events, or `MANY`. The high half has a bit for each of
// the four numbers that changed.
const MANY: u8 = 0x0f;

impl StepEnd {
    fn new(end: u32, breakdown: &Breakdown) -> Self {
        let Breakdown { requested, rounding, pending, cached, free: _ } = *breakdown;
        let parts = [requested, rounding, pending].map(Bytes::get);
        // Sums of a damaged recording may wrap around here. They wrap back when the breakdown is made.
        let reserved = parts.iter().fold(cached.get(), |sum, part| sum.wrapping_add(*part));
        Self { end, bytes: [parts[0], parts[1], parts[2], reserved] }
    }

    fn breakdown(&self, capacity: Bytes) -> Breakdown {
        let [requested, rounding, pending, reserved] = self.bytes;
        let cached = reserved.wrapping_sub(requested).wrapping_sub(rounding).wrapping_sub(pending);
        let [requested, rounding, pending, cached] = [requested, rounding, pending, cached].map(Bytes::new);
        let mut breakdown = Breakdown { requested, rounding, pending, cached, free: Bytes::ZERO };
        breakdown.free = capacity.saturating_sub(breakdown.reserved());
        breakdown
    }

    fn read(self, reader: &mut Reader<'_>) -> Option<Self> {
        let tag = reader.byte()?;
        let mut next = self;
        let events = match tag & MANY {
            MANY => reader.small()?,
            events => u32::from(events),
        };
        next.end = next.end.checked_add(events)?;
        for (place, bytes) in next.bytes.iter_mut().enumerate() {
            if tag & 0x10 << place != 0 {
                *bytes = reader.add_difference(*bytes)?;
            }
        }
        Some(next)
    }
}

impl PackedSteps {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of memory: for the ends of steps, and for breakdowns.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let all = self.bytes.capacity() + self.groups.capacity() * size_of::<Group>();
        let groups = (0..self.groups.len()).filter_map(|index| self.group(index));
        let steps: usize = groups.flat_map(StepEnds::end_sizes).sum();
        let steps = steps + self.groups.capacity() * (size_of::<Group>() - size_of::<[u64; 4]>());
        (steps, all.saturating_sub(steps))
    }

    /// Releases memory that was kept for more steps.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.groups.shrink_to_fit();
    }

    /// Adds a step that ends after `end` events. `end` is not below the end of the step before.
    pub(crate) fn push(&mut self, end: u32, breakdown: &Breakdown) {
        if self.count.is_multiple_of(GROUP) {
            self.groups.push(Group { start: self.bytes.len() as u64, before: self.last });
        }
        self.count += 1;
        let next = StepEnd::new(end, breakdown);
        let events = end.saturating_sub(self.last.end);
        let inline = u8::try_from(events).ok().filter(|events| *events < MANY);
        let tag = self.bytes.len();
        self.bytes.push(inline.unwrap_or(MANY));
        if inline.is_none() {
            varint::push(&mut self.bytes, events.into());
        }
        for (place, (old, new)) in self.last.bytes.iter().zip(next.bytes).enumerate() {
            if *old != new {
                self.bytes[tag] |= 0x10 << place;
                varint::push_difference(&mut self.bytes, *old, new);
            }
        }
        self.last = next;
    }

    /// The number of events before and after the step.
    pub(crate) fn span(&self, step: usize) -> Option<(usize, usize)> {
        let mut moments = self.group(step / GROUP)?;
        let before = moments.now.end;
        let (start, end) = match step % GROUP {
            0 => (before, moments.next()?.end),
            place => (moments.nth(place - 1)?.end, moments.next()?.end),
        };
        (step < self.count).then_some((start as usize, end as usize))
    }

    pub(crate) fn breakdown(&self, step: usize, capacity: Bytes) -> Option<Breakdown> {
        let moment = self.group(step / GROUP)?.nth(step % GROUP)?;
        (step < self.count).then(|| moment.breakdown(capacity))
    }

    /// The breakdowns after the steps from `step` on.
    pub(crate) fn breakdowns(&self, step: usize, capacity: Bytes) -> impl Iterator<Item = Breakdown> + '_ {
        let groups = step / GROUP..self.groups.len();
        let moments = groups.filter_map(|index| self.group(index)).flatten();
        moments.skip(step % GROUP).map(move |moment| moment.breakdown(capacity))
    }

    /// How many steps end at or before `events` events.
    pub(crate) fn done(&self, events: usize) -> usize {
        let group = self.groups.partition_point(|group| group.before.end as usize <= events);
        let Some(group) = group.checked_sub(1) else { return 0 };
        let moments = self.group(group).into_iter().flatten();
        group * GROUP + moments.take_while(|moment| moment.end as usize <= events).count()
    }

    fn group(&self, index: usize) -> Option<StepEnds<'_>> {
        let group = self.groups.get(index)?;
        let bytes = self.bytes.get(usize::try_from(group.start).ok()?..)?;
        let left = self.count.checked_sub(index * GROUP)?.min(GROUP);
        Some(StepEnds { reader: Reader(bytes), now: group.before, left })
    }
}

/// The states after the steps of one group.
struct StepEnds<'a> {
    reader: Reader<'a>,
    now: StepEnd,
    left: usize,
}

impl StepEnds<'_> {
    /// How many bytes the end of each step takes.
    fn end_sizes(mut self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || {
            let before = self.reader;
            self.next()?;
            let mut reader = before;
            let has_more = reader.byte()? & MANY == MANY;
            if has_more {
                reader.small()?;
            }
            Some(before.0.len() - reader.0.len())
        })
    }
}

impl Iterator for StepEnds<'_> {
    type Item = StepEnd;

    fn next(&mut self) -> Option<StepEnd> {
        self.left = self.left.checked_sub(1)?;
        self.now = self.now.read(&mut self.reader)?;
        Some(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Bytes = Bytes::gib(64);

    fn steps() -> Vec<(u32, Breakdown)> {
        let mut end = 0;
        let step = |index: u32| {
            end += [900, 0, 1, 3, 14, 15][index as usize % 6];
            let index = u64::from(index);
            let [requested, rounding, pending, cached] =
                [index * 700, index % 3 * 512, index / 50 * 4096, (200 - index) << 20].map(Bytes::new);
            let mut breakdown = Breakdown { requested, rounding, pending, cached, free: Bytes::ZERO };
            breakdown.free = CAPACITY - breakdown.reserved();
            (end, breakdown)
        };
        (0..200).map(step).collect()
    }

    fn packed() -> PackedSteps {
        let mut packed = PackedSteps::default();
        for (end, breakdown) in steps() {
            packed.push(end, &breakdown);
        }
        packed
    }

    #[test]
    fn every_step_comes_back() {
        let (packed, steps) = (packed(), steps());
        let mut before = 0;
        for (index, (end, breakdown)) in steps.iter().enumerate() {
            assert_eq!(packed.span(index), Some((before, *end as usize)), "step {index}");
            assert_eq!(packed.breakdown(index, CAPACITY), Some(*breakdown), "step {index}");
            before = *end as usize;
        }
        assert_eq!((packed.span(200), packed.breakdown(200, CAPACITY)), (None, None));
        for from in [0, 1, 31, 32, 33, 199, 200] {
            let breakdowns: Vec<_> = packed.breakdowns(from, CAPACITY).collect();
            let expected: Vec<_> = steps[from..].iter().map(|(_, breakdown)| *breakdown).collect();
            assert_eq!(breakdowns, expected, "from step {from}");
        }
    }

    #[test]
    fn memory_is_distinguished() {
        let mut packed = packed();
        packed.shrink();
        let (ends, breakdowns) = packed.sizes();
        // One byte for most steps, two for a third of the steps (those with many events), and three for a
        // few.
        let groups = packed.groups.len() * (size_of::<Group>() - size_of::<[u64; 4]>());
        assert!((250 + groups..350 + groups).contains(&ends), "{ends}");
        assert_eq!(ends + breakdowns, packed.bytes.len() + packed.groups.len() * size_of::<Group>());
        let again: PackedSteps = postcard::from_bytes(&postcard::to_allocvec(&packed).unwrap()).unwrap();
        assert_eq!(again.sizes(), (ends, breakdowns));
    }

    #[test]
    fn steps_are_counted_by_events() {
        let (packed, steps) = (packed(), steps());
        for events in 0..=steps[199].0 as usize + 1 {
            let done = steps.iter().filter(|(end, _)| *end as usize <= events).count();
            assert_eq!(packed.done(events), done, "{events} events");
        }
    }

    #[test]
    fn bytes_that_are_no_steps_do_no_harm() {
        let packed = packed();
        for place in 0..packed.bytes.len() {
            let mut damaged = packed.clone();
            damaged.bytes[place] = damaged.bytes[place].wrapping_add(0x8f);
            for step in [0, 40, 199, 200] {
                let _ = (damaged.span(step), damaged.breakdown(step, CAPACITY), damaged.done(step));
            }
        }
    }
}
