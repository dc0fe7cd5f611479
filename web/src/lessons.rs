//! The lessons: the open lesson with its card, and the reader's progress and answers in all lessons.

mod categories;
mod class;
mod exercise;
mod linked;
mod open;
mod presenting;
mod progress;
mod question;

pub(crate) use categories::{category_of, color_training, has_category, training_groups, training_sums};
pub(crate) use class::{ClassFile, ClassFileState, ClassLesson, ClassSignals, HandedIn, has_plan_before};
pub(crate) use exercise::{ExerciseRun, GradedExercise, grade_answer, region};
pub(crate) use open::{LessonModule, OpenLesson, OpenLessonError};
pub(crate) use presenting::{OverCard, Presentation, PresentationExtras, card, show_last_line};
pub(crate) use progress::CardProgress;
pub(crate) use question::{GivenAnswer, drawn_bytes};

use std::collections::{BTreeMap, BTreeSet};

use blockyard_figure::{Player, PlayerAction};
use blockyard_lessons::{MeasuredMemory, Plan, PlannedLesson};
use leptos::prelude::*;

use self::exercise::recall_draft;
use self::progress::LessonProgress;
use self::question::GivenAnswers;
use crate::browser;
use crate::frames;
use crate::link::{Link, unpacked};
use crate::navigation::{CardPlace, Embed, Place};
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::{Feature, Source};
use crate::surface::pixels;

/// The card of the open lesson, with the reader's answer and exercise on the card.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LessonState {
    /// The index of the card.
    pub(crate) card: usize,
    /// The index of the card whose exercise `text` belongs to: in a chapter that of its only exercise.
    pub(crate) exercise_card: usize,
    /// Whether the answer to the card's question is shown, because the reader answered or gave up.
    pub(crate) is_revealed: bool,
    /// The reader's answer.
    pub(crate) answer: Option<GivenAnswer>,
    /// Why the typed answer cannot be read.
    pub(crate) problem: Option<String>,
    /// The lines of the exercise: the reader's lines, or the lines of a link.
    pub(crate) text: String,
    /// The lines of the exercise that came in a link. The reader's own lines are kept beside them.
    pub(crate) given: Option<String>,
    /// The reader's lines of all exercises, by lesson and card.
    drafts: BTreeMap<(String, usize), String>,
    /// How many hints are shown.
    pub(crate) hints: usize,
    pub(crate) graded: Option<GradedExercise>,
    /// The run of the reader's exercise before the present one.
    pub(crate) run_before: Option<PtrEq<Run>>,
    /// The reader's program, where the exercise is in Python.
    pub(crate) exercise_run: ExerciseRun,
}

impl LessonState {
    /// Whether the stage shows the run of the reader's exercise.
    pub(crate) fn has_run(&self) -> bool {
        self.graded.as_ref().is_some_and(|graded| graded.run.is_some())
    }

    /// What the solution does in the place of the reader's mistake, as the hint after those of the exercise.
    pub(crate) fn last_hint(&self) -> Option<&str> {
        let mistake = self.graded.as_ref()?.mistake.as_ref()?;
        Some(mistake.hint.as_str()).filter(|hint| !hint.is_empty())
    }

    /// Takes the run of the exercise from the stage.
    pub(crate) fn forget_run(&mut self) {
        (self.graded, self.run_before) = (None, None);
        self.exercise_run = ExerciseRun::default();
    }

    /// The state at the beginning of a card. The reader's exercises are kept.
    fn at(lesson: &OpenLesson, card: usize, drafts: BTreeMap<(String, usize), String>) -> Self {
        let exercise_card = lesson.exercise_card(card);
        let exercise = lesson.cards.get(exercise_card).and_then(|card| card.exercise.as_ref());
        let draft = drafts.get(&(lesson.id.clone(), exercise_card)).cloned();
        let draft = draft.or_else(|| exercise.and_then(|_| recall_draft(&lesson.id, exercise_card)));
        let text = draft.or_else(|| exercise.map(region)).unwrap_or_default();
        Self { card, exercise_card, text, drafts, ..Self::default() }
    }
}

/// The open lesson, and the reader's progress and answers in all lessons.
#[derive(Default)]
pub(crate) struct LessonSignals {
    /// The card of the open lesson, and the reader's answers.
    pub(crate) state: RwSignal<LessonState>,
    /// The positions of the open chapter's sliders, in the order of the lesson.
    pub(crate) positions: RwSignal<Vec<usize>>,
    /// The cards of the open chapter whose answers were shown on this visit.
    pub(crate) revealed: RwSignal<BTreeSet<usize>>,
    /// The lesson of the reader's own that was opened last. It stays open while another source is shown.
    pub(crate) own: RwSignal<Option<PtrEq<OpenLesson>>>,
    /// The text of the lesson in the lesson editor, or of the lesson of a link. `None` for a lesson that was
    /// opened from a file.
    pub(crate) own_text: RwSignal<Option<String>>,
    /// Whether that text came in a link for a class, which does not edit it.
    pub(crate) is_for_class: RwSignal<bool>,
    /// The text of the lesson that was opened from a file last, to be edited; the address of such a lesson
    /// names the file's copy.
    pub(crate) file_text: RwSignal<Option<String>>,
    /// Whether the open lesson is presented to a class.
    pub(crate) presenting: RwSignal<Presentation>,
    /// The clock, the code and the speaker's window of the presentation.
    pub(crate) extras: RwSignal<PresentationExtras>,
    /// The cards that the reader has seen and the exercises that are passed, on this visit and earlier ones.
    pub(crate) progress: RwSignal<LessonProgress>,
    /// The reader's answers to questions, on this visit and earlier ones.
    given_answers: RwSignal<GivenAnswers>,
    /// The lesson and the card, from 0, that the reader saw last.
    pub(crate) last_card: RwSignal<Option<(String, usize)>>,
    /// The plan whose lessons follow each other; empty in the order of the course.
    pub(crate) plan: RwSignal<Plan>,
    /// The plan on the pages for teachers, as its text; empty before one was chosen.
    pub(crate) class_plan: RwSignal<String>,
    /// The files of a class, on the page for teachers.
    pub(crate) class: ClassSignals,
}

impl LessonSignals {
    pub(crate) fn new() -> Self {
        Self {
            progress: RwSignal::new(progress::recall()),
            given_answers: RwSignal::new(question::recall()),
            last_card: RwSignal::new(progress::recall_last()),
            class_plan: RwSignal::new(class::recall_plan().unwrap_or_default()),
            ..Self::default()
        }
    }
}

/// Steps a second while a card plays.
const CARD_SPEED: f32 = 0.9;
/// The longest time in which a card plays, however many steps it has.
const CARD_SECONDS: f64 = 5.0;
/// That time before a class, which waits for the end.
const SLIDE_SECONDS: f64 = 1.5;

impl Feature<LessonSignals> {
    /// The non-PyTorch memory of the process at the moment that the open lesson shows; `None` where the
    /// lesson does not state it. Reads signals.
    pub(crate) fn non_pytorch(self) -> Option<MeasuredMemory> {
        let lesson = self.session.open_lesson()?;
        let (card, is_revealed) = self.state.with(|state| (state.card, state.is_revealed));
        let shown = lesson.cards.get(card)?;
        // Until it is answered, a question is about the moment before the card.
        let before = card.checked_sub(1).filter(|_| shown.question.is_some() && !is_revealed);
        let before = before.and_then(|before| lesson.cards.get(before)).filter(|card| card.run == shown.run);
        before.unwrap_or(shown).non_pytorch.clone()
    }

    /// Whether the card has a question that the reader has not answered. Reads signals.
    pub(crate) fn is_asked(self) -> bool {
        let (card, is_revealed) = self.state.with(|state| (state.card, state.is_revealed));
        let lesson = self.session.open_lesson();
        let card = lesson.as_ref().and_then(|lesson| lesson.cards.get(card));
        !is_revealed && card.is_some_and(|card| card.question.is_some())
    }

    /// The number of steps after which the run is hidden: the moment of the first question that the reader
    /// has not answered, on this card or a later one. `None` where everything may be seen. Reads signals.
    pub(crate) fn hidden_after(self) -> Option<usize> {
        let lesson = self.session.open_lesson()?;
        let (card, is_revealed, has_run) =
            self.state.with(|state| (state.card, state.is_revealed, state.has_run()));
        let run = lesson.cards.get(card).filter(|_| !has_run)?.run;
        let is_open = |place: usize| {
            let is_answered =
                || self.given_answers.with(|answers| answers.contains_key(&(lesson.id.clone(), place)));
            if place == card { !is_revealed } else { !is_answered() }
        };
        let asking = lesson.cards.iter().enumerate().skip(card);
        let mut asking = asking.filter(|(_, card)| card.run == run && card.question.is_some());
        asking.find(|(place, _)| is_open(*place)).map(|(_, card)| card.steps.start)
    }

    /// Opens a lesson of the page at a card.
    pub(crate) fn start(
        self,
        id: &str,
        card: CardPlace,
        module: LessonModule,
    ) -> Result<(), OpenLessonError> {
        let is_open = untrack(|| self.session.open_lesson()).is_some_and(|lesson| lesson.id == id);
        if !is_open {
            let lesson = OpenLesson::bundled(id, module)?;
            self.positions.set(lesson.positions(None));
            self.revealed.set(BTreeSet::new());
            self.session.show(Source::Lesson(PtrEq::new(lesson)));
        }
        self.show_card(match card {
            CardPlace::At(card) => card,
            CardPlace::Last => {
                untrack(|| self.session.open_lesson()).map_or(0, |lesson| self.last_card_of(&lesson))
            }
        });
        Ok(())
    }

    /// Opens a lesson of the reader's own.
    pub(crate) fn open_own(self, lesson: OpenLesson) {
        let lesson = PtrEq::new(lesson);
        self.positions.set(lesson.positions(None));
        self.own.set(Some(lesson.clone()));
        self.show_own(lesson, 0);
    }

    /// Shows a card of a lesson of the reader's own, counted from 0.
    pub(crate) fn show_own(self, lesson: PtrEq<OpenLesson>, card: usize) {
        if untrack(|| self.session.open_lesson()).as_ref() != Some(&lesson) {
            self.positions.set(lesson.positions(None));
            self.revealed.set(BTreeSet::new());
        }
        self.session.show(Source::Lesson(lesson));
        self.show_card(card);
        self.session.navigation().place.set(Place::OwnLesson);
    }

    /// Moves the sliders of the open chapter to the places of a link: those that it does not name to where
    /// the chapter opens.
    pub(crate) fn move_sliders(self, named: Option<&str>) {
        if let Some(lesson) = untrack(|| self.session.open_lesson()) {
            self.positions.set(lesson.positions(named));
            self.play_at_sliders();
        }
    }

    /// Moves a slider of the open chapter.
    pub(crate) fn move_slider(self, index: usize, position: usize) {
        self.positions.update(|positions| {
            if let Some(place) = positions.get_mut(index) {
                *place = position;
            }
        });
        self.play_at_sliders();
    }

    /// Plays the lesson with its sliders where they stand, if its cards are shown one by one. A page that scrolls
    /// plays it for its figure alone. The figure shows where the card leads to, or the moment of its question.
    fn play_at_sliders(self) {
        let Some(lesson) = untrack(|| self.session.open_lesson().filter(|_| !self.is_chapter())) else {
            return;
        };
        let Some(moved) = self.positions.with_untracked(|positions| lesson.at(positions)) else { return };
        let moved = PtrEq::new(moved);
        if self.own.with_untracked(|own| own.as_ref() == Some(&lesson)) {
            self.own.set(Some(moved.clone()));
        }
        let card = self.state.with_untracked(|state| state.card);
        let moments =
            moved.cards.get(card).map(|card| [true, false].map(|is_asked| card.shown_step(is_asked)));
        let [start, end] = moments.unwrap_or_default();
        self.session.source.set(Source::Lesson(moved));
        self.session.stop_at.set(Some(end));
        let is_asked = untrack(|| self.is_asked());
        self.session.seek_moment(if is_asked { start } else { end });
    }

    /// The sliders of the open chapter that were moved, for a link. Reads signals.
    pub(crate) fn moved_sliders(self) -> Option<String> {
        let lesson = self.session.open_lesson()?;
        let moved = self.positions.with(|positions| lesson.moved_sliders(positions));
        Some(moved).filter(|moved| !moved.is_empty())
    }

    /// Goes to the beginning of a card, and plays its steps unless the card asks a question.
    pub(crate) fn show_card(self, card: usize) {
        let Some(lesson) = untrack(|| self.session.open_lesson()) else { return };
        // A lesson has at least one card: a text without cards is refused. An address may name a card after
        // the last one.
        let card = if card < lesson.cards.len() { card } else { self.last_card_of(&lesson) };
        let before = self.state.get_untracked().card;
        let drafts = self.state.with_untracked(|state| state.drafts.clone());
        let mut state = LessonState::at(&lesson, card, drafts);
        let Some(played) = lesson.cards.get(card) else { return };
        // A class has not given the answers that the teacher gave before.
        let is_presented = self.is_presented();
        let question = played.question.as_ref().filter(|_| !is_presented);
        state.answer = question.and_then(|question| self.answer_to(&lesson.id, card, question));
        // A frame with a figure alone asks no question and shows the same moment to each reader.
        let is_figure = matches!(self.session.navigation().embed, Some(Embed::Figure | Embed::Stage));
        state.is_revealed = state.answer.is_some() || is_figure;
        let is_asked = played.question.is_some() && !state.is_revealed;
        self.state.set(state);
        let is_same_run = lesson.cards.get(before).is_some_and(|before| before.run == played.run);
        self.session.figures().select(None);
        self.session.stop_at.set(Some(played.shown_step(false)));
        if !is_same_run || !self.session.player.with_untracked(|player| player.steps == played.steps.start) {
            self.session.player.set(Player { speed: CARD_SPEED, ..Player::default() });
            self.session.dispatch(PlayerAction::SeekStep(played.steps.start));
        }
        self.session.player.update(|player| player.speed = CARD_SPEED);
        if !is_asked {
            self.play_card();
        }
        if let Some(id) = untrack(|| self.session.open_lesson()).map(|lesson| lesson.id.clone()) {
            self.remember_card(&id, card);
            self.add_progress(&id, card, false);
        }
    }

    /// Whether the open lesson is shown as a chapter, which scrolls; a presentation and a frame show its cards
    /// one by one. Reads signals.
    pub(crate) fn is_chapter(self) -> bool {
        self.session.open_lesson().is_some_and(|lesson| lesson.is_chapter())
            && self.presenting.get() == Presentation::No
            && self.session.navigation().embed.is_none()
    }

    /// Takes the card of a chapter that the reader has scrolled to.
    pub(crate) fn see_card(self, card: usize) {
        self.state.update(|state| state.card = card);
        if let Some(id) = untrack(|| self.session.open_lesson()).map(|lesson| lesson.id.clone()) {
            self.remember_card(&id, card);
            self.add_progress(&id, card, false);
        }
    }

    /// Plays the card's steps, up to the peak if the card is about it. If the reader's system asks for
    /// reduced motion, goes to their end instead.
    pub(crate) fn play_card(self) {
        let Some(lesson) = untrack(|| self.session.open_lesson()) else { return };
        let card = self.state.with_untracked(|state| state.card);
        let Some(card) = lesson.cards.get(card) else { return };
        let (start, end) = (card.steps.start, card.shown_step(false));
        self.session.stop_at.set(Some(end));
        let is_there = self.session.player.with_untracked(|player| (start..end).contains(&player.steps));
        if !is_there {
            self.session.dispatch(PlayerAction::SeekStep(start));
        }
        if start >= end {
            return;
        }
        if browser::is_motion_reduced() {
            self.session.dispatch(PlayerAction::SeekStep(end));
        } else {
            let seconds = if self.is_presented() { SLIDE_SECONDS } else { CARD_SECONDS };
            let speed = pixels(frames::count(end - start) / seconds).max(CARD_SPEED);
            self.session.player.update(|player| player.speed = speed);
            self.session.dispatch(PlayerAction::Forward);
            if start + 1 < end {
                self.session.dispatch(PlayerAction::Play);
            }
        }
    }

    /// Opens the lesson after the open one, or the list of lessons after the last. An embedded lesson begins
    /// again.
    pub(crate) fn show_next(self) {
        if self.session.navigation().embed.is_some() {
            return self.show_card(0);
        }
        match self.neighbor(true) {
            Some(next) => {
                let first = CardPlace::At(if self.is_presented() { next.first_card() } else { 0 });
                self.open_planned(next, first, !self.is_presented());
            }
            None => self.session.navigation().go_to(Place::Lessons),
        }
    }

    /// Opens the last card of the lesson before the open one, if there is one.
    pub(crate) fn show_previous(self) {
        if let Some(before) = self.neighbor(false).filter(|_| self.session.navigation().embed.is_none()) {
            self.open_planned(before, CardPlace::Last, !self.is_presented());
        }
    }

    /// The lesson after the open one, or before it, in the plan or else in the course. A presentation leaves out
    /// what the class reads at home.
    pub(crate) fn neighbor(self, is_after: bool) -> Option<PlannedLesson> {
        let open = untrack(|| self.session.open_lesson())?;
        let is_presented = self.is_presented();
        let plan = self.plan.get_untracked();
        let mut lessons: Vec<PlannedLesson> = if plan.lesson(&open.id).is_some() {
            plan.lessons.into_iter().filter(|lesson| !is_presented || !lesson.is_at_home).collect()
        } else {
            blockyard_lessons::course().filter_map(|lesson| PlannedLesson::of_course(lesson.id)).collect()
        };
        let place = lessons.iter().position(|lesson| lesson.id == open.id)?;
        let place = if is_after { place.checked_add(1) } else { place.checked_sub(1) };
        place.filter(|place| *place < lessons.len()).map(|place| lessons.swap_remove(place))
    }

    /// Opens a lesson of a plan at a card. A class is not asked to edit it.
    fn open_planned(self, planned: PlannedLesson, card: CardPlace, is_for_class: bool) {
        let navigation = self.session.navigation();
        let Some(own) = planned.own else {
            return navigation.go_to(Place::Lesson { id: planned.id, card });
        };
        // A lesson has fewer cards, and the last one is shown.
        let card = if let CardPlace::At(card) = card { card } else { usize::MAX };
        match unpacked(&own.source) {
            Ok(text) => {
                self.is_for_class.set(is_for_class);
                navigation.follow_lesson_text(text, card, Link::default());
            }
            Err(why) => self.session.show_error(format!("\"{}\" cannot be read: {why}.", own.title)),
        }
    }

    /// Presents the lessons of a plan, one after the other.
    pub(crate) fn present_plan(self, plan: Plan) {
        let first = plan.presented().next().cloned();
        if let Some(first) = first {
            self.plan.set(plan);
            let card = CardPlace::At(first.first_card());
            self.open_planned(first, card, false);
            self.present();
        }
    }
}
