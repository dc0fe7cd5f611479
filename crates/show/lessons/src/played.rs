//! A lesson whose workloads have run.

use std::ops::{ControlFlow, Range};

use blockyard_record::{Breakdown, Bytes, Recording};
use blockyard_replay::{RunSettings, run};
use blockyard_workload::Workload;

use crate::asked::EarlierQuestions;
use crate::error::{Errors, KnownNames, LessonError, LessonErrorKind, MeasureError, Position};
use crate::exercise::Exercise;
use crate::lesson::{Lesson, LessonRun, ParsedCard};
use crate::markdown::{fill, fill_part};
use crate::measure::{CardEnd, QuantityValue, RunStretch};
use crate::measured::MeasuredSize;
use crate::plan::{ExerciseUse, PlannedLesson};
use crate::proof::{UnprovedWord, forgive, unproved, unproved_part};
use crate::question::LessonQuestion;
use crate::slider::Slider;
use crate::text::{Inline, TextBlock, plain};

/// A lesson whose workloads have run, with every value and every answer.
#[derive(Clone, Debug)]
pub struct PlayedLesson {
    /// The short name for addresses and commands.
    pub id: String,
    /// The name that people see.
    pub title: String,
    /// One sentence about what the lesson teaches.
    pub summary: String,
    /// The values that the reader moves, and the drawn values after them.
    pub sliders: Vec<Slider>,
    /// The runs, in order; at least one.
    pub runs: Vec<PlayedRun>,
    /// The cards, in order; at least one.
    pub cards: Vec<PlayedCard>,
    /// The sizes that no run can say, each with its source.
    pub measured: Vec<MeasuredSize>,
    /// The numbers and comparing words of its texts that nothing proves, in the order of the file; none in a
    /// sound lesson.
    pub notes: Vec<UnprovedWord>,
}

/// One run of a lesson.
#[derive(Clone, Debug)]
pub struct PlayedRun {
    /// The workload's text, with a label for each card.
    pub text: String,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// All bytes of the device.
    pub capacity: Bytes,
    /// The requests.
    pub workload: Workload,
    /// The run of the requests.
    pub recording: Recording,
}

/// A card of a lesson.
#[derive(Clone, Debug)]
pub struct PlayedCard {
    /// The card's title, without values.
    pub title: Vec<Inline>,
    /// The card's text, which is about the moment after the card's steps.
    pub body: Vec<TextBlock>,
    /// Which of the lesson's runs the figures show.
    pub run: usize,
    /// The steps that the card plays, as numbers of complete steps: from `start` to `end`. Both are equal if
    /// the card plays nothing.
    pub steps: Range<usize>,
    /// The number of complete steps at the peak that the card's text is about; `None` where the text is about
    /// the end of its steps.
    pub peak: Option<usize>,
    /// The non-PyTorch memory of the process, where the lesson says so.
    pub non_pytorch: Option<MeasuredMemory>,
    /// The bars below the figure, each the memory of a run at a moment; empty for most cards.
    pub beside: Vec<MemoryBar>,
    /// A question, to be asked at the moment `steps.start` and answered at `steps.end`.
    pub question: Option<LessonQuestion>,
    /// An exercise, whose task is the card's text.
    pub exercise: Option<Exercise>,
    /// What the speaker says, which no reader sees; may be empty.
    pub notes: Vec<Inline>,
}

/// A bar below a card's figure: one rank of several, or the same program without a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryBar {
    /// The words beside the bar.
    pub name: String,
    /// The index of the run.
    pub run: usize,
    /// The number of complete steps at the moment.
    pub step: usize,
}

/// The non-PyTorch memory of a process, which no run of the allocator can say: a sum of measured sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredMemory {
    /// The sum of the parts.
    pub size: Bytes,
    /// The parts, with the names that the lesson gives them.
    pub parts: Vec<(String, Bytes)>,
}

impl PlayedCard {
    /// The number of complete steps at the moment that a figure shows: before the card's steps while its
    /// question `is_asked`, or else at their end, or at their peak.
    pub fn shown_step(&self, is_asked: bool) -> usize {
        if is_asked { self.steps.start } else { self.peak.unwrap_or(self.steps.end) }
    }
}

impl MeasuredMemory {
    /// What `nvidia-smi` shows of the process, in a sentence, where PyTorch's memory on the device is this.
    pub fn process_sentence(&self, memory: &Breakdown) -> String {
        let size = self.size;
        let (shown, free) = (size.saturating_add(memory.reserved()), memory.free.saturating_sub(size));
        format!("nvidia-smi shows {shown}, with {size} outside of PyTorch's memory; {free} are free in fact.")
    }
}

impl Lesson {
    /// Runs the lesson's workloads and answers everything that its text asks.
    ///
    /// # Errors
    ///
    /// A value that has no answer, a question that has none or several right choices, with the place in the
    /// file.
    pub fn play(&self) -> Result<PlayedLesson, LessonError> {
        let mut errors = Errors::default();
        let played = self.play_all(&mut errors);
        errors.first_or(played)
    }

    /// Runs the lesson and adds all errors to `errors`. `None` where a workload cannot be run.
    pub(crate) fn play_all(&self, errors: &mut Errors) -> Option<PlayedLesson> {
        let runs = self.runs.iter().map(|script| play(&self.title, script)).collect::<Result<Vec<_>, _>>();
        let runs = errors.keep(runs)?;
        let ends: Vec<CardEnd<'_>> = self.cards.iter().filter_map(|card| card_end(card, &runs)).collect();
        let mut cards = Vec::new();
        let mut notes = self.front_notes.clone();
        let (mut non_pytorch, mut last_run) = (None, 0);
        let mut earlier = EarlierQuestions::default();
        for card in &self.cards {
            let Some(run) = runs.get(card.run) else { continue };
            // Another run may be on another device.
            non_pytorch = non_pytorch.filter(|_| card.run == last_run);
            last_run = card.run;
            let stretch = RunStretch {
                from: card.steps.start,
                to: card.steps.end,
                cards: &ends,
                measured: &self.measured,
                ..RunStretch::of(&run.workload, &run.recording)
            };
            non_pytorch = non_pytorch_of(card, &stretch, errors).or(non_pytorch);
            let size =
                non_pytorch.as_ref().map_or(Bytes::ZERO, |non_pytorch: &MeasuredMemory| non_pytorch.size);
            let played = play_card(
                card,
                &RunStretch { non_pytorch: size, ..stretch },
                &mut earlier,
                &mut notes,
                errors,
            );
            cards.extend(played.map(|played| PlayedCard { non_pytorch: non_pytorch.clone(), ..played }));
        }
        self.place_bars(&mut cards, errors);
        notes.sort_by_key(|note| (note.line, note.column));
        Some(PlayedLesson {
            id: self.id.clone(),
            title: self.title.clone(),
            summary: self.summary.clone(),
            sliders: self.sliders.clone(),
            runs,
            cards,
            measured: self.measured.clone(),
            notes,
        })
    }
}

impl Lesson {
    /// Gives the bars of all cards their runs and moments. A card of an unplayed lesson has no bars.
    fn place_bars(&self, cards: &mut [PlayedCard], errors: &mut Errors) {
        if cards.len() != self.cards.len() {
            return;
        }
        let ends: Vec<(String, usize, usize)> =
            cards.iter().map(|card| (plain(&card.title), card.run, card.shown_step(false))).collect();
        for ((card, parsed), (own, ..)) in cards.iter_mut().zip(&self.cards).zip(&ends) {
            for (name, title, at) in &parsed.beside {
                let title = title.as_ref().unwrap_or(own);
                let found = ends.iter().find(|(known, ..)| known == title);
                let unknown = || {
                    let known = KnownNames::of(title, ends.iter().map(|(known, ..)| known.as_str()));
                    at.at(LessonErrorKind::Measure(MeasureError::NoCard { title: title.clone(), known }))
                };
                if let Some((_, run, step)) = errors.keep(found.ok_or_else(unknown)) {
                    card.beside.push(MemoryBar { name: name.clone(), run: *run, step: *step });
                }
            }
        }
    }
}

impl PlayedLesson {
    /// The lesson with the cards that a plan presents, and without an exercise that the plan leaves out. At home a
    /// class reads all cards.
    #[must_use]
    pub fn planned(mut self, planned: &PlannedLesson) -> Self {
        let is_out = |place: usize, card: &PlayedCard| {
            let is_left_out = !planned.is_at_home && planned.leaves_out(place);
            is_left_out || (card.exercise.is_some() && planned.exercise == ExerciseUse::LeftOut)
        };
        let cards = self.cards.into_iter().enumerate().filter(|(place, card)| !is_out(*place, card));
        self.cards = cards.map(|(_, card)| card).collect();
        self
    }

    /// The most that the run of each card reserves, in the order of the cards.
    pub fn peaks(&self) -> Vec<Bytes> {
        let peak = |run: &PlayedRun| {
            let breakdowns = run.recording.breakdowns_from(0);
            breakdowns.map(|breakdown| breakdown.reserved()).max().unwrap_or_default()
        };
        self.cards.iter().map(|card| self.runs.get(card.run).map(peak).unwrap_or_default()).collect()
    }
}

/// The non-PyTorch memory that a card's block `outside` states.
fn non_pytorch_of(
    card: &ParsedCard,
    stretch: &RunStretch<'_>,
    errors: &mut Errors,
) -> Option<MeasuredMemory> {
    let (measure, at) = card.non_pytorch.as_ref()?;
    let answer = measure.answer(stretch).map_err(|error| at.at(LessonErrorKind::Measure(error)));
    match errors.keep(answer)? {
        QuantityValue::Bytes(size) => Some(MeasuredMemory { size, parts: measure.parts(stretch) }),
        other => {
            let (expected, found) = ("measured sizes, such as \"measured context\"", other.to_string());
            errors.push(at.at(LessonErrorKind::Unexpected { expected, found }));
            None
        }
    }
}

/// Fills in the values of a card's texts from the card's stretch of the run. The texts of an exercise are
/// about the workload that the reader begins with; for a program, which is not run here, they are about the
/// card's run.
fn play_card<'a>(
    card: &ParsedCard,
    stretch: &RunStretch<'a>,
    earlier: &mut EarlierQuestions<'a>,
    notes: &mut Vec<UnprovedWord>,
    errors: &mut Errors,
) -> Option<PlayedCard> {
    let question = card.question.as_ref().and_then(|question| question.ask(stretch, earlier, errors));
    if let Some(question) = &card.question {
        question.unproved(stretch, notes);
    }
    let mut exercise = card.exercise.clone();
    errors.keep(exercise.as_ref().map_or(Ok(()), Exercise::check_solution));
    let start = exercise.as_ref().and_then(Exercise::play_start).transpose();
    let start = start.map_err(|error| Position { line: 1, column: 1 }.at(LessonErrorKind::Run(error)));
    let start = errors.keep(start)?;
    let in_exercise = match (&exercise, &start) {
        (Some(exercise), Some(recording)) => Some(RunStretch {
            workload: exercise.start_workload(),
            recording,
            from: 0,
            to: recording.step_count(),
            ..*stretch
        }),
        _ => None,
    };
    let of_text = in_exercise.as_ref().unwrap_or(stretch);
    let speaker = fill(&card.notes, of_text, errors);
    unproved(&card.notes, of_text, notes);
    let first_note = notes.len();
    fill(&card.title_pieces, of_text, errors);
    unproved(&card.title_pieces, of_text, notes);
    let body = card.body.iter().map(|part| fill_part(part, of_text, errors)).collect();
    card.body.iter().for_each(|part| unproved_part(part, of_text, notes));
    let hints = exercise.as_ref().map(|exercise| exercise.ask_hints(of_text, notes, errors));
    if let (Some(exercise), Some(hints)) = (&mut exercise, hints) {
        exercise.hints = hints;
    }
    if let Some(exercise) = &exercise {
        forgive(notes, first_note, &exercise.said_by_goals());
    }
    let (run, steps, title) = (card.run, card.steps.clone(), card.title.clone());
    let peak = card.is_at_peak.then(|| step_at_peak(stretch.recording, &steps)).flatten();
    let (non_pytorch, beside) = (None, Vec::new());
    Some(PlayedCard {
        title,
        body,
        run,
        steps,
        peak,
        non_pytorch,
        beside,
        question,
        exercise,
        notes: speaker,
    })
}

/// The number of complete steps after the one of `steps` that leaves the most allocated bytes.
fn step_at_peak(recording: &Recording, steps: &Range<usize>) -> Option<usize> {
    let after = (steps.start + 1..).zip(recording.breakdowns_from(steps.start)).take(steps.len());
    after.max_by_key(|(_, breakdown)| breakdown.allocated()).map(|(done, _)| done)
}

fn card_end<'a>(card: &ParsedCard, runs: &'a [PlayedRun]) -> Option<CardEnd<'a>> {
    let run = runs.get(card.run)?;
    let (workload, recording) = (&run.workload, &run.recording);
    Some(CardEnd { title: plain(&card.title), workload, recording, step: card.steps.end })
}

fn play(title: &str, script: &LessonRun) -> Result<PlayedRun, LessonError> {
    let settings =
        RunSettings { title: title.to_owned(), config: script.config.clone(), capacity: script.capacity };
    let recording = run(&script.workload, &settings, &mut |_| ControlFlow::Continue(()))
        .map_err(|error| Position { line: 1, column: 1 }.at(LessonErrorKind::Run(error)))?;
    Ok(PlayedRun {
        text: script.text.clone(),
        conf: script.conf.clone(),
        capacity: script.capacity,
        workload: script.workload.clone(),
        recording,
    })
}
