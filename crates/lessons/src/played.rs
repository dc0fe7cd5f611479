use std::ops::{ControlFlow, Range};

use blockyard_record::{Bytes, Recording};
use blockyard_replay::{RunSettings, run};
use blockyard_workload::Workload;

use crate::error::{LessonError, LessonErrorKind, Position};
use crate::exercise::Exercise;
use crate::lesson::{CardText, Lesson, Script};
use crate::markdown::fill_part;
use crate::measure::{CardEnd, Stretch};
use crate::question::LessonQuestion;
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
    /// The runs, in order; at least one.
    pub runs: Vec<PlayedRun>,
    /// The cards, in order; at least one.
    pub cards: Vec<PlayedCard>,
}

/// One run of a lesson.
#[derive(Clone, Debug)]
pub struct PlayedRun {
    /// The workload's text, with a label for each card.
    pub text: String,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub settings: String,
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
    /// Its title, without values.
    pub title: Vec<Inline>,
    /// The card's text, which is about the moment after the card's steps.
    pub body: Vec<TextBlock>,
    /// Which of the lesson's runs the figures show.
    pub run: usize,
    /// The steps that the card plays, as numbers of complete steps: from `start` to `end`. Both are equal if the card plays nothing.
    pub steps: Range<usize>,
    /// A question, to be asked at the moment `steps.start` and answered at `steps.end`.
    pub question: Option<LessonQuestion>,
    /// An exercise, whose task is the card's text.
    pub exercise: Option<Exercise>,
}

impl Lesson {
    /// Runs the lesson's workloads and answers everything that its text asks.
    ///
    /// # Errors
    /// A value that has no answer, a question that has none or several right choices, with the place in the file.
    pub fn play(&self) -> Result<PlayedLesson, LessonError> {
        let runs = self.runs.iter().map(|script| play(&self.title, script)).collect::<Result<Vec<_>, _>>()?;
        let ends: Vec<CardEnd<'_>> = self.cards.iter().filter_map(|card| card_end(card, &runs)).collect();
        let mut cards = Vec::new();
        for card in &self.cards {
            let Some(run) = runs.get(card.run) else { continue };
            let stretch = Stretch {
                workload: &run.workload,
                recording: &run.recording,
                from: card.steps.start,
                to: card.steps.end,
                cards: &ends,
            };
            cards.push(PlayedCard {
                title: card.title.clone(),
                body: card.body.iter().map(|part| fill_part(part, &stretch)).collect::<Result<_, _>>()?,
                run: card.run,
                steps: card.steps.clone(),
                question: card.question.as_ref().map(|question| question.ask(&stretch)).transpose()?,
                exercise: card.exercise.clone(),
            });
        }
        Ok(PlayedLesson {
            id: self.id.clone(),
            title: self.title.clone(),
            summary: self.summary.clone(),
            runs,
            cards,
        })
    }
}

fn card_end<'a>(card: &CardText, runs: &'a [PlayedRun]) -> Option<CardEnd<'a>> {
    let run = runs.get(card.run)?;
    let (workload, recording) = (&run.workload, &run.recording);
    Some(CardEnd { title: plain(&card.title), workload, recording, step: card.steps.end })
}

fn play(title: &str, script: &Script) -> Result<PlayedRun, LessonError> {
    let settings =
        RunSettings { title: title.to_owned(), config: script.config.clone(), capacity: script.capacity };
    let recording = run(&script.workload, &settings, &mut |_| ControlFlow::Continue(()))
        .map_err(|error| Position { line: 1, column: 1 }.at(LessonErrorKind::Run(error)))?;
    Ok(PlayedRun {
        text: script.text.clone(),
        settings: script.settings.clone(),
        capacity: script.capacity,
        workload: script.workload.clone(),
        recording,
    })
}
