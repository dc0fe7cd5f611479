//! Layouts: allocations are put one after the other at the lowest place that is free during their whole life.

use std::cmp::Reverse;

use blockyard_record::OnDone;

use crate::lifetimes::Lifetime;

/// After each group of this many allocations, a list has the allocations that are live at this point.
const STRIDE: usize = 256;
/// How often cancelling is possible: once in this many allocations, each of which searches the gaps between
/// the placed ones.
const ALLOCATIONS_BETWEEN_REPORTS: usize = 1024;

/// The placed allocations, found by their lifetimes.
struct PlacedAllocations<'a> {
    lifetimes: &'a [Lifetime],
    offsets: Vec<u64>,
    /// A bit for each allocation that is placed, in the order of their requests.
    bits: Vec<u64>,
    /// For every `STRIDE`th allocation, the placed allocations that begin earlier and are live at its
    /// beginning.
    lists: Vec<Vec<u32>>,
}

impl<'a> PlacedAllocations<'a> {
    fn new(lifetimes: &'a [Lifetime]) -> Self {
        let count = lifetimes.len();
        Self {
            lifetimes,
            offsets: vec![0; count],
            bits: vec![0; count.div_ceil(64)],
            lists: vec![Vec::new(); count / STRIDE + 1],
        }
    }

    /// The first allocation that begins at or after a request.
    fn first_from(&self, request: usize) -> usize {
        self.lifetimes.partition_point(|lifetime| lifetime.request < request)
    }

    /// The places of all placed allocations whose lifetimes overlap that of the allocation with this index.
    fn in_the_way(&self, index: usize, found: &mut Vec<(u64, u64)>) {
        found.clear();
        let Some(own) = self.lifetimes.get(index) else { return };
        let end = self.first_from(own.done);
        let list = index / STRIDE;
        let mut take = |place: usize| {
            if let (Some(other), Some(offset)) = (self.lifetimes.get(place), self.offsets.get(place))
                && other.done > own.request
            {
                found.push((*offset, offset.saturating_add(other.size.get())));
            }
        };
        for place in self.lists.get(list).into_iter().flatten() {
            take(*place as usize);
        }
        let from = list * STRIDE;
        let mut word = from / 64;
        while word * 64 < end {
            let mut bits = self.bits.get(word).copied().unwrap_or_default();
            while bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
                if place < end {
                    take(place);
                }
            }
            word += 1;
        }
    }

    fn put(&mut self, index: usize, offset: u64) {
        let Some(own) = self.lifetimes.get(index) else { return };
        if let (Some(place), Some(bits)) = (self.offsets.get_mut(index), self.bits.get_mut(index / 64)) {
            *place = offset;
            *bits |= 1 << (index % 64);
        }
        // The allocation is in all lists between its beginning and its end.
        let last = self.first_from(own.done);
        let first = index / STRIDE + 1;
        // A run has no more allocations than `TensorId` can count; another one would be in no list.
        let Ok(number) = u32::try_from(index) else { return };
        for list in self.lists.iter_mut().take(last.saturating_sub(1) / STRIDE + 1).skip(first) {
            list.push(number);
        }
    }
}

/// Places the allocations in this order. Returns the height of the layout in bytes and the offset of each
/// allocation; `None` when `on_done` cancels.
pub(super) fn place(lifetimes: &[Lifetime], order: &[u32], on_done: OnDone) -> Option<(u64, Vec<u64>)> {
    let mut placed = PlacedAllocations::new(lifetimes);
    let mut in_the_way = Vec::new();
    let mut height = 0;
    for (done, index) in order.iter().enumerate() {
        if done.is_multiple_of(ALLOCATIONS_BETWEEN_REPORTS) && on_done(done).is_break() {
            return None;
        }
        let index = *index as usize;
        let Some(size) = lifetimes.get(index).map(|lifetime| lifetime.size.get()) else { continue };
        placed.in_the_way(index, &mut in_the_way);
        in_the_way.sort_unstable();
        let mut offset = 0;
        for (start, end) in &in_the_way {
            if start.saturating_sub(offset) >= size && *start >= offset {
                break;
            }
            offset = offset.max(*end);
        }
        height = height.max(offset.saturating_add(size));
        placed.put(index, offset);
    }
    Some((height, placed.offsets))
}

/// The orders to try: a few that are known to be good, and then the best order so far with the highest
/// allocations moved to the front.
pub(super) struct Orders<'a> {
    lifetimes: &'a [Lifetime],
    tried: usize,
    most: usize,
    best: Option<(u64, Vec<u32>)>,
}

/// About how many pairs of allocations that live together are compared in all orders.
const MAX_PAIRS: u64 = 150_000_000;
const MAX_ORDERS: u64 = 24;

impl<'a> Orders<'a> {
    pub(super) fn new(lifetimes: &'a [Lifetime]) -> Self {
        let mut ends: Vec<usize> = lifetimes.iter().map(|lifetime| lifetime.done).collect();
        ends.sort_unstable();
        let mut pairs = 0_u64;
        let mut gone = 0;
        for (index, lifetime) in lifetimes.iter().enumerate() {
            while ends.get(gone).is_some_and(|end| *end < lifetime.request) {
                gone += 1;
            }
            let together = index.saturating_sub(gone) as u64;
            pairs = together.saturating_mul(2).saturating_add(pairs).saturating_add(16);
        }
        let most = usize::try_from((MAX_PAIRS.checked_div(pairs).unwrap_or(MAX_ORDERS)).clamp(1, MAX_ORDERS))
            .unwrap_or(1);
        Self { lifetimes, tried: 0, most, best: None }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The next order, after the best layout so far.
    pub(super) fn next(&mut self, best: Option<&[u64]>) -> Option<Vec<u32>> {
        if self.tried >= self.most || self.lifetimes.is_empty() {
            return None;
        }
        let mut order: Vec<u32> = (0..u32::try_from(self.lifetimes.len()).ok()?).collect();
        let of = |index: &u32| self.lifetimes.get(*index as usize);
        let size = |index: &u32| of(index).map_or(0, |lifetime| lifetime.size.get());
        let life = |index: &u32| of(index).map_or(0, |lifetime| (lifetime.done - lifetime.request) as u64);
        match self.tried {
            0 => order.sort_by_key(|index| (Reverse(size(index)), Reverse(life(index)))),
            1 => order.sort_by_key(|index| {
                Reverse(u128::from(size(index)).saturating_mul(u128::from(life(index))))
            }),
            2 => order.sort_by_key(|index| (Reverse(life(index)), Reverse(size(index)))),
            3 => {}
            _ => {
                let (height, last) = self.best.as_ref()?;
                let reaches = |index: &u32| {
                    let offset = best.and_then(|best| best.get(*index as usize)).copied().unwrap_or_default();
                    // The allocations that reach into the highest part of the layout are moved; the part
                    // grows with each attempt.
                    let part = (height / 256).saturating_mul(self.tried.saturating_sub(3) as u64);
                    offset.saturating_add(size(index)) > height.saturating_sub(part)
                };
                order.clone_from(last);
                order.sort_by_key(|index| !reaches(index));
            }
        }
        self.tried += 1;
        Some(order)
    }

    /// Notes the height of the layout that an order gave.
    pub(super) fn placed(&mut self, order: Vec<u32>, height: u64) {
        if self.best.as_ref().is_none_or(|(least, _)| height < *least) {
            self.best = Some((height, order));
        }
    }
}
