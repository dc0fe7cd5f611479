//! Room for the longest words of a card that sliders change, so that the slider below them stays where it is.

use blockyard_lessons::{Inline, Slider, TextBlock, plain};
use leptos::prelude::*;

use crate::browser;
use crate::lessons::OpenLesson;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::view::prose;

/// The longest words of each card at the places of its sliders that were tried; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(super) struct Rooms {
    lesson: StoredValue<PtrEq<OpenLesson>>,
    /// For each card; none without sliders.
    words: RwSignal<Vec<Vec<TextBlock>>>,
}

/// The places of a slider that are tried for the longest words of a card, in parts of its length.
const TRIED: [f64; 6] = [0.0, 0.03, 0.12, 0.3, 0.6, 1.0];

/// The stop at a part of a slider's length.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a slider has thousands of stops at most, and a part is from 0 to 1"
)]
fn place_at(part: f64, stops: usize) -> usize {
    (stops.saturating_sub(1) as f64 * part) as usize
}

/// These places of sliders, with another place of one of them.
fn with_place(tried: &[Vec<usize>], index: usize, stop: usize) -> Vec<Vec<usize>> {
    let mut tried = tried.to_vec();
    tried.iter_mut().filter_map(|places| places.get_mut(index)).for_each(|place| *place = stop);
    tried
}

/// How many letters the words have.
fn length_of(words: &[TextBlock]) -> usize {
    let length = |block: &TextBlock| match block {
        TextBlock::Paragraph(text) => plain(text).len(),
        TextBlock::List(items) => items.iter().map(|item| plain(item).len()).sum(),
        TextBlock::Code { text, .. } => text.len(),
    };
    words.iter().map(length).sum()
}

/// The words without links and values, which a reader could reach or point at.
fn unlinked(words: &[TextBlock]) -> Vec<TextBlock> {
    fn flat(text: &[Inline]) -> Vec<Inline> {
        let each = text.iter().flat_map(|inline| match inline {
            Inline::Link { text, .. } => flat(text),
            Inline::Value { text, .. } => vec![Inline::Text(text.clone())],
            Inline::Strong(text) => vec![Inline::Strong(flat(text))],
            Inline::Emphasis(text) => vec![Inline::Emphasis(flat(text))],
            Inline::Text(_) | Inline::Code(_) => vec![inline.clone()],
        });
        each.collect()
    }
    let block = |block: &TextBlock| match block {
        TextBlock::Paragraph(text) => TextBlock::Paragraph(flat(text)),
        TextBlock::List(items) => TextBlock::List(items.iter().map(|item| flat(item)).collect()),
        TextBlock::Code { .. } => block.clone(),
    };
    words.iter().map(block).collect()
}

impl Rooms {
    pub(super) fn new(lesson: StoredValue<PtrEq<OpenLesson>>) -> Self {
        let count = lesson.with_value(|lesson| lesson.cards.len());
        Self { lesson, words: RwSignal::new(vec![Vec::new(); count]) }
    }

    /// Makes room on the card that is read, and on the next card.
    pub(super) fn make(self, card: usize) {
        let of_card = |card| self.places(card).into_iter().map(move |places| (card, places));
        self.try_places([card + 1, card].into_iter().flat_map(of_card).collect());
    }

    /// The longest words of a card.
    pub(super) fn view(self, session: Session, card: usize) -> AnyView {
        let longest =
            Memo::new(move |_| self.words.with(|words| words.get(card).cloned().unwrap_or_default()));
        let words = move || longest.with(|words| prose::blocks(session, &unlinked(words)));
        view! { <div class="prose is-room" aria-hidden="true">{words}</div> }.into_any()
    }

    /// The places of all sliders at which the words of a card are tried: each stop of a choice with each of the
    /// places of the others. None where that was done.
    fn places(self, card: usize) -> Vec<Vec<usize>> {
        let is_done = self.words.with_untracked(|kept| kept.get(card).is_none_or(|words| !words.is_empty()));
        self.lesson.with_value(|lesson| {
            let is_here = |slider: &Slider| !is_done && slider.cards().contains(&card);
            let sliders: Vec<_> =
                lesson.sliders.iter().enumerate().filter(|(_, slider)| is_here(slider)).collect();
            let (choices, lengths): (Vec<_>, Vec<_>) =
                sliders.into_iter().partition(|(_, slider)| slider.stop_count() <= TRIED.len());
            let mut tried = Vec::new();
            if !lengths.is_empty() {
                tried.extend(TRIED.map(|part| {
                    let mut places = lesson.positions(None);
                    for (index, slider) in &lengths {
                        if let Some(place) = places.get_mut(*index) {
                            *place = place_at(part, slider.stop_count());
                        }
                    }
                    places
                }));
            } else if !choices.is_empty() {
                tried.push(lesson.positions(None));
            }
            for (index, slider) in choices {
                let stops = 0..slider.stop_count();
                tried = stops.flat_map(|stop| with_place(&tried, index, stop)).collect();
            }
            tried
        })
    }

    /// Plays the lesson at these places, the last first, and keeps the longest words of each card.
    fn try_places(self, mut tried: Vec<(usize, Vec<usize>)>) {
        let Some((card, places)) = tried.pop() else { return };
        let _ = browser::after_millis(20, move || {
            let Some(Ok(played)) = self.lesson.try_with_value(|lesson| lesson.moved(&places)) else { return };
            let words = played.cards.get(card).map(|shown| shown.body.as_slice()).unwrap_or_default();
            let is_longer = |kept: &Vec<Vec<TextBlock>>| {
                kept.get(card).is_some_and(|kept| length_of(kept) < length_of(words))
            };
            if self.words.try_with_untracked(is_longer) == Some(true) {
                let _ = self.words.try_update(|kept| {
                    if let Some(kept) = kept.get_mut(card) {
                        *kept = words.to_vec();
                    }
                });
            }
            self.try_places(tried);
        });
    }
}
