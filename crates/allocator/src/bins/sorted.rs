//! Entries in order, in pieces that are short enough to move.

use super::list::Entry;
use crate::block::BlockIndex;

/// The most entries of a piece. Measured; tests get more than one with fewer.
const MOST: usize = if cfg!(test) { 8 } else { 128 };

/// Entries by their rank.
///
/// The lowest are in a piece of their own that is there at once, since best fit takes from the low end and most lists have no
/// other. The pieces are in descending order each, so that the lowest is at the end.
#[derive(Clone, Debug)]
pub(super) struct Sorted<E: Entry> {
    /// Empty only where there is nothing else.
    lowest: Vec<E>,
    /// The others, lowest first.
    higher: Vec<Piece<E>>,
    count: usize,
}

#[derive(Clone, Debug)]
struct Piece<E: Entry> {
    /// No entry of it has a lower rank, and none of those before has this rank or a higher one.
    from: E::Rank,
    /// At least one.
    entries: Vec<E>,
}

impl<E: Entry> Default for Sorted<E> {
    fn default() -> Self {
        Self { lowest: Vec::new(), higher: Vec::new(), count: 0 }
    }
}

/// How many of a piece's entries have this rank or a higher one.
#[inline]
fn not_below<E: Entry>(entries: &[E], rank: E::Rank) -> usize {
    entries.partition_point(|entry| entry.rank() >= rank)
}

impl<E: Entry> Sorted<E> {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Takes all of them out, and keeps the memory that most lists need.
    pub(super) fn clear(&mut self) {
        self.lowest.clear();
        self.higher.clear();
        self.count = 0;
    }

    /// Which of the higher pieces the rank belongs into, counted from 1 on; 0 for the lowest.
    #[inline]
    fn piece_of(&self, rank: E::Rank) -> usize {
        if self.higher.is_empty() { 0 } else { self.higher.partition_point(|piece| piece.from <= rank) }
    }

    #[inline]
    fn entries(&self, piece: usize) -> &[E] {
        match piece.checked_sub(1) {
            None => &self.lowest,
            Some(place) => self.higher.get(place).map_or(&[], |piece| &piece.entries),
        }
    }

    /// Of a piece that is there.
    #[inline]
    fn entries_mut(&mut self, piece: usize) -> &mut Vec<E> {
        match piece.checked_sub(1) {
            None => &mut self.lowest,
            Some(place) => &mut self.higher[place].entries,
        }
    }

    /// The piece and the place in it, if it is there.
    #[inline]
    fn find(&self, entry: E) -> Option<(usize, usize)> {
        let piece = self.piece_of(entry.rank());
        let entries = self.entries(piece);
        let place = not_below(entries, entry.rank()).checked_sub(1)?;
        (entries[place].index() == entry.index()).then_some((piece, place))
    }

    pub(super) fn contains(&self, entry: E) -> bool {
        self.find(entry).is_some()
    }

    /// Adds an entry that is not there.
    #[inline]
    pub(super) fn insert(&mut self, entry: E) {
        let piece = self.piece_of(entry.rank());
        let entries = self.entries_mut(piece);
        entries.insert(not_below(entries, entry.rank()), entry);
        let is_long = entries.len() > MOST;
        self.count += 1;
        if is_long {
            self.divide(piece);
        }
    }

    #[cold]
    #[inline(never)]
    fn divide(&mut self, piece: usize) {
        let entries = self.entries_mut(piece);
        let low = entries.split_off(entries.len() / 2);
        let high = std::mem::replace(entries, low);
        if let Some(from) = high.last().map(|entry| entry.rank()) {
            self.higher.insert(piece, Piece { from, entries: high });
        }
    }

    /// Takes an entry out, if it is there.
    #[inline]
    pub(super) fn remove(&mut self, entry: E) {
        // Most often the lowest is taken.
        let (piece, place) = match self.lowest.last() {
            Some(last) if last.index() == entry.index() => (0, self.lowest.len() - 1),
            _ => match self.find(entry) {
                Some(found) => found,
                None => return,
            },
        };
        self.count -= 1;
        let entries = self.entries_mut(piece);
        entries.remove(place);
        if entries.is_empty() {
            self.drop_piece(piece);
        }
    }

    #[cold]
    #[inline(never)]
    fn drop_piece(&mut self, piece: usize) {
        match piece.checked_sub(1) {
            Some(place) => {
                self.higher.remove(place);
            }
            None if self.higher.is_empty() => {}
            None => self.lowest = self.higher.remove(0).entries,
        }
    }

    pub(super) fn first(&self) -> Option<BlockIndex> {
        self.lowest.last().map(|entry| entry.index())
    }

    /// The first with this rank or a higher one.
    pub(super) fn first_from(&self, rank: E::Rank) -> Option<BlockIndex> {
        self.last_of(rank, |entries| not_below(entries, rank))
    }

    /// The first with a higher rank.
    pub(super) fn first_behind(&self, rank: E::Rank) -> Option<BlockIndex> {
        self.last_of(rank, |entries| entries.partition_point(|entry| entry.rank() > rank))
    }

    /// The lowest of those that count, in the piece of the rank or, where none of it does, in the next.
    fn last_of(&self, rank: E::Rank, count: impl Fn(&[E]) -> usize) -> Option<BlockIndex> {
        let piece = self.piece_of(rank);
        let entries = self.entries(piece);
        let within = entries[..count(entries)].last();
        within.or_else(|| self.entries(piece + 1).last()).map(|entry| entry.index())
    }

    /// In ascending order.
    pub(super) fn ascending(&self) -> impl Iterator<Item = BlockIndex> {
        let higher = self.higher.iter().flat_map(|piece| piece.entries.iter().rev());
        self.lowest.iter().rev().chain(higher).map(|entry| entry.index())
    }
}
