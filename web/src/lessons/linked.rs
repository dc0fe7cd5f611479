//! What a link to a card holds beside the card: the step, the sliders, the answers that are shown, and the
//! lines of an exercise.

use std::collections::BTreeSet;

use blockyard_figure::{MoveUnit, PlayerAction};
use leptos::prelude::*;

use super::LessonSignals;
use crate::link::{Link, LinkTarget};
use crate::session::Feature;

impl Feature<LessonSignals> {
    /// The link to the shown card of the lesson that `target` names. Reads signals.
    pub(crate) fn link_to(self, target: impl FnOnce(usize) -> LinkTarget) -> Link {
        let (card, solution) = self.state.with(|state| (state.card + 1, state.given.clone()));
        Link {
            target: target(card),
            sliders: self.moved_sliders(),
            revealed: self.revealed_cards(),
            step: self.other_step(),
            solution,
            ..Link::default()
        }
    }

    /// Shows what a link holds beside the card that it has opened.
    pub(crate) fn follow_parts(self, link: &Link) {
        self.move_sliders(link.sliders.as_deref());
        let numbers = link.revealed.iter().flat_map(|numbers| numbers.split(','));
        let cards: BTreeSet<usize> =
            numbers.filter_map(|number| number.parse::<usize>().ok()?.checked_sub(1)).collect();
        let is_shown = self.state.with_untracked(|state| cards.contains(&state.card) && !state.is_revealed);
        if is_shown && untrack(|| self.is_asked() && !self.is_chapter()) {
            self.reveal();
        }
        self.revealed.set(cards);
        if let Some(step) = link.step {
            self.session.dispatch(PlayerAction::SetUnit(MoveUnit::Step));
            self.session.dispatch(PlayerAction::SeekStep(step));
        }
        if let Some(lines) = &link.solution {
            self.show_given(lines.clone());
        }
    }

    /// Shows the exercise of the open lesson with the lines of a link, which names no card.
    pub(crate) fn show_answer(self, link: &Link) {
        let lesson = untrack(|| self.session.open_lesson());
        let exercise = lesson.and_then(|lesson| lesson.cards.iter().position(|card| card.exercise.is_some()));
        if let Some(card) = exercise {
            self.show_card(card);
            self.follow_parts(link);
        }
    }

    /// The cards, counted from 1, whose questions are answered for everybody who opens the link: in a chapter
    /// those that the reader has seen answered, else the shown card.
    fn revealed_cards(self) -> Option<String> {
        let lesson = self.session.open_lesson().filter(|_| self.session.navigation().embed.is_none())?;
        let has_question = |card: usize| lesson.cards.get(card).is_some_and(|card| card.question.is_some());
        let (card, is_revealed) = self.state.with(|state| (state.card, state.is_revealed));
        let cards = if self.is_chapter() {
            self.revealed.get()
        } else {
            [card].into_iter().filter(|_| is_revealed).collect()
        };
        let numbers: Vec<_> =
            cards.into_iter().filter(|card| has_question(*card)).map(|card| (card + 1).to_string()).collect();
        (!numbers.is_empty()).then(|| numbers.join(","))
    }

    /// The step of the figure, where it rests elsewhere than the card leads to.
    fn other_step(self) -> Option<usize> {
        let lesson = self.session.open_lesson().filter(|_| !self.is_chapter())?;
        let (card, has_run) = self.state.with(|state| (state.card, state.has_run()));
        let steps = lesson.cards.get(card).filter(|_| !has_run)?.steps.clone();
        let rest = if self.is_asked() { steps.start } else { steps.end };
        let (now, is_playing) = self.session.player.with(|player| (player.steps, player.is_playing));
        (now != rest && !is_playing).then_some(now)
    }
}
