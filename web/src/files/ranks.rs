//! Files that are opened together, one for each rank of a program.

use std::rc::Rc;

use leptos::prelude::*;
use web_sys::File;

use super::{ComparisonState, FileSignals, OpenedFile};
use crate::lab;
use crate::navigation::Place;
use crate::ptr_eq::PtrEq;
use crate::session::Feature;

/// One of several recordings that were opened together.
#[derive(Clone, Debug)]
pub(crate) struct Rank {
    pub(crate) opened: PtrEq<OpenedFile>,
    pub(crate) file: File,
}

impl Rank {
    /// Whether a request of the rank ran out of memory.
    pub(crate) fn has_failed(&self) -> bool {
        self.opened.run.has_failed()
    }
}

impl Feature<FileSignals> {
    pub(super) fn open_ranks(self, files: Vec<File>, then: Box<dyn FnOnce()>) {
        self.beside.set(None);
        self.ranks.set(Vec::new());
        self.open_rank(Rc::new(files), 0, then);
    }

    fn open_rank(self, files: Rc<Vec<File>>, place: usize, then: Box<dyn FnOnce()>) {
        let Some(file) = files.get(place).cloned() else { return self.ranks_are_open() };
        let name = file.name();
        let work = format!("Opening {name} ({} of {})", place + 1, files.len());
        let content = lab::FileContent::of(&name, &file);
        let (rest, kept) = (files.clone(), file.clone());
        let on_done = move |result| {
            let Some(opened) = self.opened_or_error(result) else {
                return self.open_rank(files, place + 1, then);
            };
            let is_first = self.ranks.with_untracked(Vec::is_empty);
            self.ranks.update(|ranks| ranks.push(Rank { opened: opened.clone(), file: kept.clone() }));
            if is_first {
                self.session.navigation().place.set(Place::Workbench);
                content.keep();
                self.open(opened);
                then();
            }
            self.session.figures().compare_when_drawn();
        };
        let on_compared = move |_: &ComparisonState, is_over: bool| {
            if is_over {
                self.open_rank(rest.clone(), place + 1, Box::new(|| ()));
            }
        };
        self.read(&work, (&name, &file, None), on_done, on_compared);
    }

    /// Shows another of the files that were opened together, and the verdict about it.
    pub(crate) fn show_rank(self, rank: &Rank) {
        lab::FileContent::of(&rank.opened.name, &rank.file).keep();
        self.open(rank.opened.clone());
        self.session.lab().ask_verdict();
    }

    /// Goes to the rank that decides whether the program passes, unless the reader has chosen another rank in
    /// the meantime.
    fn ranks_are_open(self) {
        let ranks = self.ranks.get_untracked();
        let (Some(first), Some(decides)) = (ranks.first(), deciding_rank(&ranks)) else { return };
        let is_shown = |rank: &Rank| {
            let shown = untrack(|| self.session.shown_recording());
            shown.is_some_and(|shown| shown == rank.opened)
        };
        if is_shown(first) {
            self.show_rank(decides);
        }
    }
}

/// The rank that decides whether the program passes: of the ranks that ran out of memory, or else of all
/// ranks, the rank with the highest peak of allocated bytes.
pub(crate) fn deciding_rank(ranks: &[Rank]) -> Option<&Rank> {
    // The first of equal ranks is taken, since `max_by_key` returns the last maximum.
    ranks.iter().rev().max_by_key(|rank| (rank.has_failed(), rank.opened.run.series.peaks().0))
}

/// A key that orders names by the numbers in them: `rank2` before `rank10`.
pub(super) fn natural_key(name: &str) -> Vec<(u64, String)> {
    let parts = name.split_inclusive(|letter: char| !letter.is_ascii_digit());
    parts
        .map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            (digits.parse().unwrap_or(0), part.to_owned())
        })
        .collect()
}
