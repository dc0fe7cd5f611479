//! A lesson that is open: its cards, and the runs that the stage shows for them.

use std::sync::{Arc, OnceLock};

use blockyard_lessons::{
    Handout, Lesson, LessonError, LessonFile, Plan, PlannedLesson, PlayedCard, PlayedLesson, Slider,
};
use blockyard_record::Bytes;
use thiserror::Error;

use crate::link::unpacked;
use crate::ptr_eq::PtrEq;
use crate::run::Run;

/// Plays the text of a lesson with its sliders at these positions, or where they open.
type Play = fn(&str, Option<&[usize]>) -> Result<PlayedLesson, LessonError>;

/// What the lessons' module has for the rest of the page: the first load is without these texts and this code.
#[derive(Clone, Copy)]
pub(crate) struct LessonModule {
    files: &'static [LessonFile],
    play: Play,
}

impl LessonModule {
    /// Only the lessons' module may call this, or its code would be in the first load.
    pub(crate) fn get() -> Self {
        Self { files: blockyard_lessons::lessons(), play }
    }
}

/// See [`Play`].
fn play(text: &str, positions: Option<&[usize]>) -> Result<PlayedLesson, LessonError> {
    let lesson = positions.map_or_else(|| Lesson::parse(text), |at| Lesson::parse_at(text, at));
    lesson.and_then(|lesson| lesson.play())
}

/// A lesson with its runs, ready to be drawn.
#[derive(Debug)]
pub(crate) struct OpenLesson {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) cards: Vec<PlayedCard>,
    pub(crate) runs: Vec<PtrEq<Run>>,
    /// The values that the reader moves, and the drawn values after them.
    pub(crate) sliders: Vec<Slider>,
    /// The positions of these values in the runs.
    positions: Vec<usize>,
    /// The text of a lesson with such values, which is played again under other values; else empty.
    pub(crate) text: Arc<str>,
    play: Play,
    /// What [`OpenLesson::peak`] needs, once it is asked for.
    peaks: Arc<OnceLock<Vec<Vec<Bytes>>>>,
}

/// Why a lesson cannot be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenLessonError {
    #[error("there is no lesson \"{0}\" here")]
    Unknown(String),
    #[error(transparent)]
    Lesson(#[from] LessonError),
}

impl OpenLesson {
    /// The lesson that comes with the page under this id.
    pub(super) fn bundled(id: &str, module: LessonModule) -> Result<Self, OpenLessonError> {
        let file = module.files.iter().find(|file| file.id == id);
        let file = file.ok_or_else(|| OpenLessonError::Unknown(id.to_owned()))?;
        Ok(Self::read(file.text, module)?)
    }

    /// The lessons of a plan as HTML for paper, without the cards that the plan leaves out; or why not. A plan
    /// without lessons stands for the lesson with the text `own`. Only the module with the texts calls this.
    pub(crate) fn handout(plan: &Plan, own: Option<&str>) -> Result<Handout, String> {
        let text_of = |planned: &PlannedLesson| {
            if let Some(lesson) = &planned.own {
                return unpacked(&lesson.source).ok();
            }
            let file = blockyard_lessons::lessons().iter().find(|file| file.id == planned.id);
            file.map(|file| file.text).or(own).map(str::to_owned)
        };
        let mut all = Handout::default();
        let only = plan.lessons.is_empty().then(PlannedLesson::default);
        for planned in plan.lessons.iter().chain(&only) {
            let text = text_of(planned);
            let text =
                text.ok_or_else(|| OpenLessonError::Unknown(planned.title().to_owned()).to_string())?;
            let played = play(&text, None).map_err(|error| error.to_string())?.planned(planned);
            let one = blockyard_lessons::handout(&played).map_err(|error| error.to_string())?;
            all.cards.push_str(&one.cards);
            all.asked.push_str(&one.asked);
            all.key.push_str(&one.key);
            all.answers.push_str(&one.answers);
        }
        Ok(all)
    }

    /// The lesson in a file.
    pub(crate) fn read(text: &str, module: LessonModule) -> Result<Self, LessonError> {
        (module.play)(text, None).map(|played| Self::of(played, text, module.play))
    }

    /// The positions of the sliders under these values, such as `batch:8,layers:12`; those without a value
    /// are where the lesson opens.
    pub(crate) fn positions(&self, named: Option<&str>) -> Vec<usize> {
        let value_of = |slider: &Slider| {
            let mut pairs = named?.split(',').filter_map(|pair| pair.split_once(':'));
            pairs.find(|(name, _)| *name == slider.name()).and_then(|(_, value)| slider.position(value))
        };
        let position = |slider: &Slider| value_of(slider).unwrap_or_else(|| slider.start());
        self.sliders.iter().map(position).collect()
    }

    /// The sliders that are elsewhere than where the lesson opens, as [`OpenLesson::positions`] reads them.
    pub(crate) fn moved_sliders(&self, positions: &[usize]) -> String {
        let moved = self.sliders.iter().zip(positions).filter(|(slider, at)| slider.start() != **at);
        let pairs = moved.map(|(slider, at)| format!("{}:{}", slider.name(), slider.value(*at)));
        pairs.collect::<Vec<_>>().join(",")
    }

    /// The lesson with its sliders at these positions, in their order.
    pub(crate) fn moved(&self, positions: &[usize]) -> Result<PlayedLesson, LessonError> {
        (self.play)(&self.text, Some(positions))
    }

    /// The open lesson with its sliders at these positions; `None` if they have these positions already, or if the
    /// text of a reader's own lesson is wrong with them.
    pub(super) fn at(&self, positions: &[usize]) -> Option<Self> {
        let is_other = !self.text.is_empty() && self.positions != positions;
        let played = is_other.then(|| self.moved(positions).ok())??;
        let peaks = self.peaks.clone();
        Some(Self { positions: positions.to_vec(), peaks, ..Self::of(played, &self.text, self.play) })
    }

    /// Whether both are the same lesson, perhaps with its sliders elsewhere.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        !self.text.is_empty() && self.text == other.text
    }

    /// The most that the run of a card reserves, with one slider at its first or last value and the others
    /// where they open: figures with moved sliders have one ruler. With `is_of_card`, only the sliders of the
    /// card count.
    pub(crate) fn peak(&self, card: usize, is_of_card: bool) -> Bytes {
        let peaks = self.peaks.get_or_init(|| self.peaks());
        let counted = peaks.iter().zip(&self.sliders);
        let counted = counted.filter(|(_, slider)| !is_of_card || slider.cards().contains(&card));
        counted.filter_map(|(peaks, _)| peaks.get(card).copied()).max().unwrap_or_default()
    }

    /// For each slider the most that the run of each card reserves, with this slider at its first or last value.
    fn peaks(&self) -> Vec<Vec<Bytes>> {
        let of_slider = |(index, slider): (usize, &Slider)| {
            let mut most = vec![Bytes::ZERO; self.cards.len()];
            for position in [0, slider.stop_count().saturating_sub(1)] {
                let mut positions = self.positions(None);
                if let Some(place) = positions.get_mut(index) {
                    *place = position;
                }
                let peaks = self.moved(&positions).map(|played| played.peaks()).unwrap_or_default();
                for (most, peak) in most.iter_mut().zip(peaks) {
                    *most = peak.max(*most);
                }
            }
            most
        };
        self.sliders.iter().enumerate().map(of_slider).collect()
    }

    /// The card whose exercise the reader's lines belong to: in a chapter that of the only exercise.
    pub(super) fn exercise_card(&self, card: usize) -> usize {
        let only = self.cards.iter().position(|card| card.exercise.is_some());
        only.filter(|_| self.is_chapter()).unwrap_or(card)
    }

    /// Whether the lesson has a value that the reader moves: such a lesson is a page that scrolls.
    pub(crate) fn is_chapter(&self) -> bool {
        !self.sliders.iter().all(Slider::is_drawn)
    }

    fn of(played: PlayedLesson, text: &str, play: Play) -> Self {
        let PlayedLesson { id, title, cards, runs, sliders, .. } = played;
        let text = if sliders.is_empty() { "" } else { text };
        let positions = sliders.iter().map(Slider::start).collect();
        let runs = runs.into_iter().map(|run| PtrEq::new(Run::of(run.workload, run.recording))).collect();
        Self { id, title, cards, runs, sliders, positions, text: text.into(), play, peaks: Arc::default() }
    }

    /// The run that the stage shows for a card.
    pub(crate) fn run(&self, card: usize) -> Option<PtrEq<Run>> {
        self.runs.get(self.cards.get(card)?.run).cloned()
    }
}
