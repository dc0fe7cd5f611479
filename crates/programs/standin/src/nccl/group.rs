//! A group of ranks, and the bytes that they exchange: those that are known and few. Many or unknown bytes
//! are unknown for the receiver.
//!
//! Ranks that run exchange their bytes over the store. A rank that does not run is assumed to have the bytes
//! of this rank.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};

use super::store::with_store;
use crate::memory::Certainty;
use crate::state::state;

/// The most bytes of a rank that ranks exchange.
const MAX_EXCHANGED: u64 = 1 << 16;
/// The most bytes of this rank that are assumed for ranks that do not run.
const MAX_COPIED: u64 = 1 << 20;

/// Bytes that a rank has; `None` where they are not known.
pub(super) type Part = Option<(Vec<u8>, Certainty)>;

/// What one rank knows of its group.
#[derive(Clone, Debug, Default)]
pub(super) struct Communicator {
    /// The id of the group, equal in all members.
    id: u64,
    /// How many ranks the group has; `None` where that is not known.
    pub(super) ranks: Option<u64>,
    pub(super) rank: u64,
    /// Other members that run, by their numbers in the group.
    others: Vec<u64>,
    /// How many exchanges the group had so far, equal in all members.
    exchanges: u64,
    /// Messages so far, by the sender and the receiver.
    messages: BTreeMap<(u64, u64), u64>,
    /// How many splits the group had so far, equal in all members.
    splits: u64,
    /// Whether the group had a collective: NCCL takes buffers for the first.
    pub(super) has_collectives: bool,
    /// Whether this rank sent and received a message: NCCL takes buffers for the first of each.
    pub(super) has_sent: bool,
    pub(super) has_received: bool,
}

impl Communicator {
    /// A group after its members met: each waits until all others that run have come, as in NCCL.
    pub(super) fn meet(id: &impl std::hash::Hash, ranks: Option<u64>, rank: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let mut group = Self { id: hasher.finish(), ranks, rank, ..Self::default() };
        let key = |rank: u64| format!("blockyard/member/{:016x}/{rank}", group.id);
        let keys: Vec<String> = (0..ranks.unwrap_or(0)).map(key).collect();
        let found = with_store(|store| {
            store.set(&key(rank), b"runs")?;
            store.wait(&keys)
        });
        let runs = found.unwrap_or_default().into_iter().zip(0..).filter(|(value, _)| value == b"runs");
        group.others = runs.map(|(_, member)| member).filter(|member| *member != rank).collect();
        group
    }

    /// A group whose other members do not run.
    pub(super) fn alone(ranks: u64, rank: u64) -> Self {
        Self { ranks: Some(ranks), rank, ..Self::default() }
    }

    /// Whether a member is this rank or runs beside it.
    pub(super) fn has(&self, rank: u64) -> bool {
        rank == self.rank || self.others.contains(&rank)
    }

    /// The bytes of each member, where this member has `own`. All members call with the same number of bytes.
    pub(super) fn exchange(&mut self, own: &Part, bytes: u64) -> Vec<Part> {
        let mut parts: Vec<Part> =
            (0..self.ranks.unwrap_or(0)).map(|rank| self.of_absent(rank, own)).collect();
        if self.others.is_empty() || bytes > MAX_EXCHANGED {
            for rank in &self.others {
                put(&mut parts, *rank, None);
            }
            return parts;
        }
        let number = self.exchanges;
        self.exchanges += 1;
        let key = |number: u64, rank: u64| format!("blockyard/given/{:016x}/{number}/{rank}", self.id);
        let keys: Vec<String> = self.others.iter().map(|rank| key(number, *rank)).collect();
        let found = with_store(|store| {
            store.set(&key(number, self.rank), &packed(own))?;
            let found = store.wait(&keys)?;
            // A member that is in this exchange has read the values of the exchange before the last.
            if let Some(old) = number.checked_sub(2) {
                store.remove(&key(old, self.rank))?;
            }
            Ok(found)
        });
        let found = found.unwrap_or_default();
        for (place, rank) in self.others.iter().enumerate() {
            put(&mut parts, *rank, found.get(place).and_then(|value| unpacked(value)));
        }
        parts
    }

    /// The bytes that a member which does not run is assumed to have.
    fn of_absent(&self, rank: u64, own: &Part) -> Part {
        let (bytes, certainty) = own.as_ref().filter(|(bytes, _)| bytes.len() as u64 <= MAX_COPIED)?;
        let certainty = if rank == self.rank { *certainty } else { Certainty::Assumed };
        Some((bytes.clone(), certainty))
    }

    /// Sends bytes to a member that runs.
    pub(super) fn send(&mut self, to: u64, own: &Part, bytes: u64) {
        let key = self.message(self.rank, to);
        if self.others.contains(&to) && bytes <= MAX_EXCHANGED {
            with_store(|store| store.set(&key, &packed(own)));
        }
    }

    /// Receives from a member that runs.
    pub(super) fn receive(&mut self, from: u64, bytes: u64) -> Part {
        let key = self.message(from, self.rank);
        if !self.others.contains(&from) || bytes > MAX_EXCHANGED {
            return None;
        }
        let found = with_store(|store| {
            let found = store.wait(std::slice::from_ref(&key))?;
            store.remove(&key)?;
            Ok(found)
        });
        unpacked(found?.first()?)
    }

    fn message(&mut self, from: u64, to: u64) -> String {
        let number = self.messages.entry((from, to)).or_default();
        *number += 1;
        format!("blockyard/sent/{:016x}/{from}/{to}/{number}", self.id)
    }

    /// The part of this group whose members name this color, in the order of their keys (`ncclCommSplit`).
    pub(super) fn split(&mut self, color: i32, key: i32) -> Self {
        self.splits += 1;
        let own: Vec<u8> = color.to_le_bytes().into_iter().chain(key.to_le_bytes()).collect();
        let parts = self.exchange(&Some((own, Certainty::Exact)), 8);
        let is_whole = self.others.len() as u64 + 1 == parts.len() as u64;
        let mut members: Vec<(i32, u64)> = Vec::new();
        for (part, rank) in parts.iter().zip(0..) {
            let Some((bytes, _)) = part.as_ref().filter(|_| self.has(rank)) else { continue };
            let number =
                |place: usize| Some(i32::from_le_bytes(bytes.get(place..place + 4)?.try_into().ok()?));
            if let (Some(found), Some(key)) = (number(0), number(4))
                && found == color
            {
                members.push((key, rank));
            }
        }
        members.sort_unstable();
        let rank = members.iter().zip(0..).find(|((_, rank), _)| *rank == self.rank).map_or(0, |(_, at)| at);
        let ranks = is_whole.then_some(members.len() as u64);
        Self::meet(&(self.id, self.splits, color), ranks, rank)
    }
}

fn put(parts: &mut [Part], rank: u64, part: Part) {
    if let Some(place) = usize::try_from(rank).ok().and_then(|rank| parts.get_mut(rank)) {
        *place = part;
    }
}

/// The bytes of the device from here, as they are known.
pub(super) fn known(from: u64, bytes: u64) -> Part {
    if bytes > MAX_COPIED { None } else { state().devices.known_bytes(from, bytes) }
}

/// Writes the bytes of a part to the device; unknown bytes make the device's bytes unknown.
pub(super) fn write(to: u64, bytes: u64, part: &Part) {
    let mut state = state();
    match part {
        Some((part, certainty)) if part.len() as u64 == bytes => state.devices.put(to, part, *certainty),
        _ => state.devices.mark(to, to.saturating_add(bytes), Certainty::Unknown),
    }
}

const UNKNOWN: u8 = 3;

fn packed(part: &Part) -> Vec<u8> {
    let Some((bytes, certainty)) = part else { return vec![UNKNOWN] };
    let mut all = vec![*certainty as u8];
    all.extend(bytes);
    all
}

fn unpacked(value: &[u8]) -> Part {
    let (first, bytes) = value.split_first()?;
    let certainty = match first {
        0 => Certainty::Exact,
        1 => Certainty::Rounded,
        2 => Certainty::Assumed,
        _ => return None,
    };
    Some((bytes.to_vec(), certainty))
}

#[cfg(test)]
mod tests {
    use super::{Communicator, packed, unpacked};
    use crate::memory::Certainty;

    #[test]
    fn a_rank_alone_stands_for_the_others() {
        let mut group = Communicator::alone(3, 1);
        let parts = group.exchange(&Some((vec![7], Certainty::Exact)), 1);
        let sure: Vec<Certainty> = parts.iter().flatten().map(|(_, certainty)| *certainty).collect();
        assert_eq!(sure, [Certainty::Assumed, Certainty::Exact, Certainty::Assumed]);
        assert_eq!(group.exchange(&None, 1), [None, None, None]);
        assert_eq!(group.receive(0, 1), None);
    }

    #[test]
    fn parts_are_what_they_were_after_the_store() {
        for part in [None, Some((vec![1, 2], Certainty::Rounded)), Some((Vec::new(), Certainty::Assumed))] {
            assert_eq!(unpacked(&packed(&part)), part);
        }
    }
}
