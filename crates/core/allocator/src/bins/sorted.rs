//! Sorted entries, stored in short pieces so that an insert moves few of them.

use super::list::Entry;
use crate::block::BlockIndex;

/// The most entries of a piece, found by measuring. Tests use fewer, so that lists have several pieces.
const MAX_SORTED_BLOCKS: usize = if cfg!(test) { 8 } else { 128 };

/// Entries sorted by rank.
///
/// The piece with the lowest entries is a separate field, because best fit takes the lowest entry and most
/// lists have only one piece. Each piece is in descending order, so that its lowest entry is at the end.
#[derive(Clone, Debug)]
pub(super) struct SortedList<E: Entry> {
    /// Empty only if the whole list is empty.
    lowest: Vec<E>,
    /// The other pieces, lowest first.
    higher: Vec<Piece<E>>,
    count: usize,
}

#[derive(Clone, Debug)]
struct Piece<E: Entry> {
    /// Entries of this piece have at least this rank; entries of the pieces before have a lower rank.
    from: E::Rank,
    /// Never empty.
    entries: Vec<E>,
}

impl<E: Entry> Default for SortedList<E> {
    fn default() -> Self {
        Self { lowest: Vec::new(), higher: Vec::new(), count: 0 }
    }
}

/// How many entries of a piece have this rank or a higher one.
#[inline]
fn not_below<E: Entry>(entries: &[E], rank: E::Rank) -> usize {
    entries.partition_point(|entry| entry.rank() >= rank)
}

impl<E: Entry> SortedList<E> {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Removes all entries, and keeps the memory that most lists need.
    pub(super) fn clear(&mut self) {
        self.lowest.clear();
        self.higher.clear();
        self.count = 0;
    }

    /// The piece for the rank: 0 for the lowest piece, from 1 on for the others.
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

    /// The entries of a piece that exists.
    #[inline]
    fn entries_mut(&mut self, piece: usize) -> &mut Vec<E> {
        match piece.checked_sub(1) {
            None => &mut self.lowest,
            Some(place) => &mut self.higher[place].entries,
        }
    }

    /// The piece of the entry and the place in the piece, if the entry is in the list.
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

    /// Adds an entry that is not in the list.
    #[inline]
    pub(super) fn insert(&mut self, entry: E) {
        let piece = self.piece_of(entry.rank());
        let entries = self.entries_mut(piece);
        entries.insert(not_below(entries, entry.rank()), entry);
        let is_long = entries.len() > MAX_SORTED_BLOCKS;
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

    /// Removes an entry, if it is in the list.
    #[inline]
    pub(super) fn remove(&mut self, entry: E) {
        // Most often the lowest entry is removed.
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

    /// The first entry with this rank or a higher one.
    pub(super) fn first_from(&self, rank: E::Rank) -> Option<BlockIndex> {
        self.last_of(rank, |entries| not_below(entries, rank))
    }

    /// The first entry with a higher rank.
    pub(super) fn first_after(&self, rank: E::Rank) -> Option<BlockIndex> {
        self.last_of(rank, |entries| entries.partition_point(|entry| entry.rank() > rank))
    }

    /// The lowest entry among those that `count` counts, in the piece of the rank or else in the next piece.
    fn last_of(&self, rank: E::Rank, count: impl Fn(&[E]) -> usize) -> Option<BlockIndex> {
        let piece = self.piece_of(rank);
        let entries = self.entries(piece);
        let within = entries[..count(entries)].last();
        within.or_else(|| self.entries(piece + 1).last()).map(|entry| entry.index())
    }

    /// All entries in ascending order.
    pub(super) fn ascending(&self) -> impl Iterator<Item = BlockIndex> {
        let higher = self.higher.iter().flat_map(|piece| piece.entries.iter().rev());
        self.lowest.iter().rev().chain(higher).map(|entry| entry.index())
    }
}
