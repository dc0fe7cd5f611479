//! Reads the cards of a lesson.

use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, Release};

use super::{LessonRun, Lines, ParsedCard, config, size_of};
use crate::document::{
    AT_PEAK, BESIDE, Fence, Field, HIDDEN, Item, NOTES, OUTSIDE, PYTHON, SOLUTION, Section,
};
use crate::error::{Errors, KnownNames, LessonError, LessonErrorKind, Position};
use crate::exercise::{Exercise, ExerciseDefaults};
use crate::markdown::{Part, without_values};
use crate::measure::Measure;
use crate::question::ParsedQuestion;
use crate::recorded::RECORDED;
use crate::slider::SLIDER;
use crate::text::plain;

/// The fenced blocks of a card, one of each kind.
#[derive(Default)]
struct CardFences<'f, 't> {
    workload: Option<&'f Fence<'t>>,
    predict: Option<&'f Fence<'t>>,
    exercise: Option<&'f Fence<'t>>,
    start: Option<&'f Fence<'t>>,
    solution: Option<&'f Fence<'t>>,
    outside: Option<&'f Fence<'t>>,
    beside: Option<&'f Fence<'t>>,
    notes: Option<&'f Fence<'t>>,
}

impl<'f, 't> CardFences<'f, 't> {
    /// Adds a block; returns its kind if the card had one of this kind.
    fn add(&mut self, fence: &'f Fence<'t>) -> Option<&'static str> {
        let (place, kind) = match fence.language {
            "predict" => (&mut self.predict, "predict"),
            "exercise" => (&mut self.exercise, "exercise"),
            _ if fence.is_solution() => (&mut self.solution, SOLUTION),
            _ if fence.is_program() => (&mut self.workload, "workload"),
            "start" | PYTHON => (&mut self.start, "start"),
            OUTSIDE => (&mut self.outside, OUTSIDE),
            BESIDE => (&mut self.beside, BESIDE),
            NOTES => (&mut self.notes, NOTES),
            _ => (&mut self.workload, "workload"),
        };
        place.replace(fence).map(|_| kind)
    }
}

/// Reads the cards of a lesson, and the runs that they play.
pub(super) struct Reader {
    pub(super) settings: Option<Field>,
    pub(super) profile: Option<String>,
    pub(super) capacity: Bytes,
    pub(super) runs: Vec<LessonRun>,
    pub(super) cards: Vec<ParsedCard>,
    /// Whether the workloads are known with their settings and devices, so that they can be run.
    pub(super) is_playable: bool,
    /// Whether the lesson has sliders, so that the lines of each card are shown.
    pub(super) is_chapter: bool,
}

impl Reader {
    /// Adds a card; `requests` are those of its lines of Python, once they ran.
    pub(super) fn add_card(
        &mut self,
        section: &Section<'_>,
        requests: Option<Vec<&str>>,
        errors: &mut Errors,
    ) {
        let title = errors.keep(without_values(&section.title)).unwrap_or_default();
        let mut fences = CardFences::default();
        let mut body = Vec::new();
        for item in &section.items {
            let fence = match item {
                Item::Part(part) => {
                    body.push(part.clone());
                    continue;
                }
                // Sliders have been read before the values of the text were known.
                Item::Fence(fence) if [SLIDER, RECORDED].contains(&fence.language) => continue,
                Item::Fence(fence) => fence,
            };
            if fence.is_program() {
                body.push(Part::Code { language: PYTHON.to_owned(), text: fence.lines.join("\n") });
            }
            if let Some(block) = fences.add(fence) {
                errors.push(fence.at.at(LessonErrorKind::SecondBlock { block }));
            }
        }
        let CardFences { workload, predict, exercise, start, solution, outside, beside, notes } = fences;
        let recorded = workload.filter(|fence| fence.is_program()).map(|fence| {
            if requests.is_none() {
                errors.push(fence.at.at(LessonErrorKind::NotRecorded));
                self.is_playable = false;
            }
            let lines = requests.unwrap_or_default();
            Fence { at: fence.at, language: "workload", options: HIDDEN, lines }
        });
        let workload = recorded.as_ref().or(workload);
        if let Some(fence) =
            workload.filter(|fence| self.is_chapter && !fence.is_hidden() && !fence.lines.is_empty())
        {
            body.push(Part::Code { language: PYTHON.to_owned(), text: fence.lines.join("\n") });
        }
        let lines = self.add_workload(&plain(&title), workload, section.at);
        let Some(lines) = errors.keep(lines) else {
            self.is_playable = false;
            return;
        };
        let exercise = match (exercise, start, solution) {
            (None, None, None) => None,
            (Some(exercise), Some(start), solution) => {
                let defaults = ExerciseDefaults {
                    settings: self.settings.as_ref(),
                    capacity: self.capacity,
                    profile: self.profile.as_deref(),
                };
                let exercise = Exercise::parse(exercise, start, solution, &defaults, errors);
                errors.keep(exercise)
            }
            (Some(fence), None, _) | (None, Some(fence), _) | (None, None, Some(fence)) => {
                errors.push(fence.at.at(LessonErrorKind::HalfExercise));
                None
            }
        };
        let question = predict.map(|fence| ParsedQuestion::parse(fence, errors));
        let non_pytorch = outside.map(|fence| {
            let measure = Measure::parse(&fence.lines.join(" "));
            let measure = measure.map_err(|error| fence.at.at(LessonErrorKind::Measure(error)));
            measure.map(|measure| (measure, fence.at))
        });
        self.cards.push(ParsedCard {
            title,
            title_pieces: section.title.clone(),
            body,
            run: self.runs.len() - 1,
            lines,
            steps: 0..0,
            is_at_peak: workload.is_some_and(Fence::is_at_peak),
            non_pytorch: non_pytorch.and_then(|non_pytorch| errors.keep(non_pytorch)),
            beside: beside.map(bars).unwrap_or_default(),
            question: question.and_then(|question| errors.keep(question)),
            exercise,
            notes: notes.map(|fence| fence.prose().parse(errors)).unwrap_or_default(),
        });
    }

    /// Adds a card's block to its run, and begins a run where one is needed.
    fn add_workload(
        &mut self,
        title: &str,
        fence: Option<&Fence<'_>>,
        card: Position,
    ) -> Result<Lines, LessonError> {
        let options = fence.map(|fence| Options::parse(fence)).transpose()?.unwrap_or_default();
        if let Some(fence) = fence.filter(|fence| fence.language == "rerun") {
            let Some(last) = self.runs.last() else {
                return Err(fence.at.at(LessonErrorKind::NothingToRerun));
            };
            let (settings, config) = match options.settings {
                Some(settings) => settings,
                None => (last.conf.clone(), last.config.clone()),
            };
            let capacity = options.capacity.unwrap_or(last.capacity);
            self.runs.push(LessonRun { conf: settings, config, capacity, ..last.clone() });
            return Ok(Lines::All);
        }
        if self.runs.is_empty() || options.is_new {
            let (settings, config) = match options.settings {
                Some(settings) => settings,
                None => self.lesson_settings()?,
            };
            let capacity = options.capacity.unwrap_or(self.capacity);
            self.runs.push(LessonRun::new(&settings, config, capacity));
        }
        let Some(run) = self.runs.last_mut() else {
            return Err(card.at(LessonErrorKind::NothingToRerun));
        };
        Ok(match fence {
            Some(fence) => {
                let (from, to) = run.push(title, fence);
                Lines::Range(from, to)
            }
            None => Lines::Range(run.line_count + 1, run.line_count + 1),
        })
    }

    fn lesson_settings(&self) -> Result<(String, AllocatorConfig), LessonError> {
        match &self.settings {
            Some(field) => Ok((field.value.clone(), config(field.at, &field.value, Release::LATEST)?)),
            None => Ok((String::new(), AllocatorConfig::default())),
        }
    }
}

/// The words after a fence: `new`, `settings=...`, `capacity=...`. Other parts read `hidden` and `peak`.
#[derive(Default)]
struct Options {
    is_new: bool,
    settings: Option<(String, AllocatorConfig)>,
    capacity: Option<Bytes>,
}

impl Options {
    fn parse(fence: &Fence<'_>) -> Result<Self, LessonError> {
        let mut options = Self::default();
        for word in fence.options.split_whitespace().filter(|word| ![HIDDEN, AT_PEAK].contains(word)) {
            options.is_new = true;
            match word.split_once('=') {
                Some(("settings", text)) => {
                    options.settings = Some((text.to_owned(), config(fence.at, text, Release::LATEST)?));
                }
                Some(("capacity", text)) => options.capacity = Some(size_of(fence.at, text)?),
                None if word == "new" => {}
                _ => {
                    return Err(fence.at.at(LessonErrorKind::UnknownKey {
                        key: word.to_owned(),
                        known: KnownNames::of(
                            word,
                            ["new", "hidden", "peak", "settings=KEY:VALUE", "capacity=64MiB"],
                        ),
                    }));
                }
            }
        }
        Ok(options)
    }
}

/// The lines `NAME` and `NAME: TITLE` of a block `beside`.
fn bars(fence: &Fence<'_>) -> Vec<(String, Option<String>, Position)> {
    let lines = (fence.at.line.saturating_add(1)..).zip(&fence.lines);
    let bar = |(line, text): (u32, &&str)| {
        let (name, title) = match text.split_once(": ") {
            Some((name, title)) => (name, Some(title.trim().to_owned())),
            None => (*text, None),
        };
        (name.trim().to_owned(), title, Position { line, column: 1 })
    };
    lines.map(bar).filter(|(name, ..)| !name.is_empty()).collect()
}
