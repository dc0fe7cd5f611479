//! The course: its lessons and parts, and plans for a class.

use crate::error::LessonError;
use crate::glossary::Glossary;

/// A lesson without its text, as lists and links need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CourseLesson {
    /// The lesson's id.
    pub id: &'static str,
    /// The name that people see.
    pub title: &'static str,
    /// The ids of the lessons whose words and figures this lesson builds on, all of which are earlier in the
    /// course.
    pub needs: &'static [&'static str],
}

/// A part of the course: lessons that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoursePart {
    /// The name that people see.
    pub title: &'static str,
    /// The lessons of the part, in the order in which to learn from them.
    pub lessons: &'static [CourseLesson],
}

const fn named(id: &'static str, title: &'static str, needs: &'static [&'static str]) -> CourseLesson {
    CourseLesson { id, title, needs }
}

/// The parts of the course in their order. The texts are in [`lessons`].
pub const PARTS: [CoursePart; 2] = [
    CoursePart {
        title: "One small GPT, in six chapters",
        lessons: &[
            named("tensor", "What a tensor costs", &[]),
            named("nvidia-smi", "Why nvidia-smi did not fall", &["tensor"]),
            named("training", "Where training's memory goes", &["tensor"]),
            named("fragmentation", "Why it fails with memory free", &["tensor"]),
            named("what-to-change", "What to change, and how one knows", &["training", "fragmentation"]),
            named("ranks", "Many GPUs", &["training"]),
        ],
    },
    CoursePart {
        title: "Appendix",
        lessons: &[
            named("reserved", "Allocated and reserved", &["tensor"]),
            named("workspaces", "Workspaces of cuBLAS", &["tensor"]),
            named("streams", "Streams and frees that wait", &["fragmentation"]),
            named("pools", "Private pools and CUDA graphs", &["fragmentation"]),
        ],
    },
];

/// Where the exercise of a planned lesson is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExerciseUse {
    /// The class solves it together, while the lesson is presented.
    InClass,
    /// Each student solves it at home.
    #[default]
    Homework,
    /// Nobody solves it.
    LeftOut,
}

/// A lesson of a teacher's own in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnLesson {
    /// The name that people see.
    pub title: String,
    /// The minutes with a class, without the exercise.
    pub minutes: u32,
    /// The lesson's text as an address has it, or the name of its file beside the page. The plan passes it on.
    pub source: String,
}

/// A lesson in a plan. Prints as [`Plan::from_text`] reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedLesson {
    /// The lesson's id.
    pub id: String,
    /// The lesson, if it is not one of the course.
    pub own: Option<OwnLesson>,
    /// Whether the class reads the lesson at home; else it is presented.
    pub is_at_home: bool,
    /// Where the exercise is solved; never in class if the lesson is read at home.
    pub exercise: ExerciseUse,
    /// The cards that a presentation leaves out, in their order.
    pub without: Vec<UnpresentedCard>,
}

/// A card that a plan leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnpresentedCard {
    /// The index of the card, from 0.
    pub card: usize,
    /// Whether the card has a question, which takes a class a minute more.
    pub is_asking: bool,
}

/// The word of a plan before the cards that a presentation leaves out, counted from 1: `without-3-5q`.
const WITHOUT: &str = "without-";
/// The letter after the number of a card with a question.
const ASKING: char = 'q';

/// How many minutes a class needs to solve an exercise.
pub const EXERCISE_MINUTES: u32 = 8;
/// How many minutes the break of a long plan takes.
pub const BREAK_MINUTES: u32 = 10;
/// A plan whose lessons take longer has a break.
const MAX_MINUTES_WITHOUT_BREAK: u32 = 90;

impl PlannedLesson {
    /// The lesson of the course with this id, or with the former id of its matter, presented.
    pub fn of_course(id: &str) -> Option<Self> {
        let known = course().find(|lesson| lesson.id == current_id(id))?;
        Some(Self { id: known.id.to_owned(), ..Self::default() })
    }

    /// Reads a part of a plan's text.
    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(':');
        let head = words.next()?;
        let mut own = head.splitn(4, '/');
        let id = own.next()?;
        let mut planned = match (own.next().and_then(|minutes| minutes.parse().ok()), own.next(), own.next())
        {
            (Some(minutes), Some(source), Some(title)) => {
                let own = OwnLesson { title: title.to_owned(), minutes, source: source.to_owned() };
                Self { id: id.to_owned(), own: Some(own), ..Self::default() }
            }
            _ => Self::of_course(id)?,
        };
        for word in words {
            let is_at_home = planned.is_at_home;
            planned = match word {
                "home" => planned.used(true, None),
                "exercise" => planned.used(is_at_home, Some(ExerciseUse::InClass)),
                "only" => planned.used(is_at_home, Some(ExerciseUse::LeftOut)),
                // The word of former plans, which are in links.
                "read" => planned.used(true, Some(ExerciseUse::LeftOut)),
                other => {
                    let cards = other.strip_prefix(WITHOUT).unwrap_or_default().split('-');
                    let without = cards.filter_map(UnpresentedCard::from_text);
                    Self { without: planned.without.iter().copied().chain(without).collect(), ..planned }
                }
            };
        }
        Some(planned)
    }

    /// The lesson in class or at home, with its exercise elsewhere if one is given. An exercise of the class is
    /// homework if the lesson is read at home.
    #[must_use]
    pub fn used(self, is_at_home: bool, exercise: Option<ExerciseUse>) -> Self {
        let exercise = match exercise.unwrap_or(self.exercise) {
            ExerciseUse::InClass if is_at_home => ExerciseUse::Homework,
            exercise => exercise,
        };
        Self { is_at_home, exercise, ..self }
    }

    /// Whether a presentation leaves a card out, counted from 0.
    pub fn leaves_out(&self, card: usize) -> bool {
        self.without.iter().any(|left| left.card == card)
    }

    /// The first card, from 0, that is presented.
    pub fn first_card(&self) -> usize {
        (0..=self.without.len()).find(|card| !self.leaves_out(*card)).unwrap_or(0)
    }

    /// The name that people see.
    pub fn title(&self) -> &str {
        self.own.as_ref().map_or_else(|| title_of(&self.id), |own| own.title.as_str())
    }

    /// How many minutes the lesson takes with a class, which talks: more than for a reader alone. None at home.
    pub fn minutes(&self) -> u32 {
        if self.is_at_home {
            return 0;
        }
        let minutes = self.own.as_ref().map_or_else(|| class_minutes(&self.id), |own| own.minutes);
        let left_out: u32 = self.without.iter().map(|left| 1 + u32::from(left.is_asking)).sum();
        let minutes = minutes.saturating_sub(left_out).max(1);
        if self.exercise == ExerciseUse::InClass { minutes.saturating_add(EXERCISE_MINUTES) } else { minutes }
    }
}

impl std::fmt::Display for PlannedLesson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.id)?;
        if let Some(OwnLesson { title, minutes, source }) = &self.own {
            // These letters part the text of a plan.
            write!(f, "/{minutes}/{source}/{}", title.replace([',', ':'], " "))?;
        }
        f.write_str(if self.is_at_home { ":home" } else { "" })?;
        f.write_str(match self.exercise {
            ExerciseUse::InClass => ":exercise",
            ExerciseUse::Homework => "",
            ExerciseUse::LeftOut => ":only",
        })?;
        for (place, left) in self.without.iter().enumerate() {
            let before = if place == 0 { format!(":{WITHOUT}") } else { "-".to_owned() };
            let asking = if left.is_asking { ASKING.to_string() } else { String::new() };
            write!(f, "{before}{}{asking}", left.card + 1)?;
        }
        Ok(())
    }
}

impl UnpresentedCard {
    /// Reads `5`, or `5q` for a card with a question.
    fn from_text(text: &str) -> Option<Self> {
        let card = text.trim_end_matches(ASKING).parse::<usize>().ok()?.checked_sub(1)?;
        Some(Self { card, is_asking: text.ends_with(ASKING) })
    }
}

/// How many minutes a lesson takes with a class, without its exercise.
pub fn class_minutes(id: &str) -> u32 {
    match id {
        "training" => 18,
        "nvidia-smi" | "fragmentation" => 16,
        "tensor" | "what-to-change" => 15,
        "ranks" => 13,
        "workspaces" | "streams" => 11,
        _ => 9,
    }
}

/// What a class does while a lesson is presented, in words.
pub fn class_task(id: &str) -> &'static str {
    match id {
        "tensor" => {
            "The class answers before each figure is shown. Move the rows: the class says where the segment changes."
        }
        "nvidia-smi" => "The class says what nvidia-smi shows before each figure.",
        "training" => "The class says what the second step needs and what a weight costs. Move the batch.",
        "fragmentation" => "The class says how large the hole is, and votes before the request that fails.",
        "what-to-change" => {
            "The class reads an out-of-memory message aloud, number by number, and says what a list of losses keeps."
        }
        "ranks" => "The class says what a rank holds. Move the number of ranks.",
        _ => "The class answers before each figure is shown.",
    }
}

/// A way through the course with a class: the lessons that are presented, and those for home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The lessons, in their order.
    pub lessons: Vec<PlannedLesson>,
}

/// A plan that comes with the course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lecture {
    /// The name for programs.
    pub id: &'static str,
    /// The name that people see.
    pub title: &'static str,
    /// The plan, as [`Plan::from_text`] reads it.
    pub plan: &'static str,
}

/// The lectures, the shortest first.
pub const LECTURES: [Lecture; 3] = [
    Lecture {
        id: "forty-five-minutes",
        title: "A lecture of 45 minutes",
        plan: "tensor,nvidia-smi:home,fragmentation:exercise,what-to-change:home",
    },
    Lecture {
        id: "ninety-minutes",
        title: "A lecture of 90 minutes",
        plan: "tensor:exercise,nvidia-smi:home,training,fragmentation:exercise,what-to-change",
    },
    Lecture {
        id: "two-hours",
        title: "A course of two hours",
        plan: "tensor,nvidia-smi,training:exercise,fragmentation:exercise,what-to-change",
    },
];

impl Plan {
    /// The plan of a text such as `tensor,fragmentation:exercise,nvidia-smi:home`. After the id of a lesson, the
    /// word `home` has it read at home; `exercise` has its exercise solved in class, and `only` by nobody;
    /// `without-3-5q` presents it without the cards 3 and 5, the second of which asks a question. A
    /// lesson of a teacher's own is `id/minutes/source/title`. Lessons that are not known, and those that come
    /// again, are left out.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let mut plan = Self::default();
        for planned in text.split(',').filter_map(PlannedLesson::from_text) {
            if plan.lesson(&planned.id).is_none() {
                plan.lessons.push(planned);
            }
        }
        plan
    }

    /// The lesson with this id; `None` if the plan leaves it out.
    pub fn lesson(&self, id: &str) -> Option<&PlannedLesson> {
        self.lessons.iter().find(|planned| planned.id == id)
    }

    /// The plan with another use of a lesson, in the order of the course and with lessons of the teacher's own
    /// at the end; `None` leaves the lesson out.
    #[must_use]
    pub fn with_lesson(&self, id: &str, planned: Option<PlannedLesson>) -> Self {
        let others = self.lessons.iter().filter(|other| other.id != id).cloned();
        let mut lessons: Vec<PlannedLesson> = others.chain(planned).collect();
        lessons
            .sort_by_key(|planned| course().position(|known| known.id == planned.id).unwrap_or(usize::MAX));
        Self { lessons }
    }

    /// The lessons that are presented, in order.
    pub fn presented(&self) -> impl Iterator<Item = &PlannedLesson> {
        self.lessons.iter().filter(|planned| !planned.is_at_home)
    }

    /// The minutes of the lessons that are presented.
    pub fn lesson_minutes(&self) -> u32 {
        self.lessons.iter().map(PlannedLesson::minutes).sum()
    }

    /// The presented lesson after which a long plan has its break: the one that ends nearest to half of the
    /// time.
    pub fn break_after(&self) -> Option<&PlannedLesson> {
        let all = self.lesson_minutes();
        let mut end = 0;
        let ends = self.presented().map(|planned| {
            end += planned.minutes();
            (planned, end)
        });
        let inner = ends.filter(|(_, end)| all > MAX_MINUTES_WITHOUT_BREAK && *end < all);
        inner.min_by_key(|(_, end)| end.abs_diff(all / 2)).map(|(planned, _)| planned)
    }

    /// How many minutes the plan takes with its break: a tenth of the lessons' time is left because a class asks
    /// questions, and a vote takes longer than planned. A multiple of five.
    pub fn minutes(&self) -> u32 {
        let pause = if self.break_after().is_some() { BREAK_MINUTES } else { 0 };
        ((self.lesson_minutes() * 10).div_ceil(9) + pause).next_multiple_of(5)
    }

    /// The minute, from the beginning of the plan, at which a lesson is to end; `None` for a lesson that is not
    /// presented.
    pub fn end_of(&self, id: &str) -> Option<u32> {
        let place = self.presented().position(|planned| planned.id == id)?;
        let pause = self.break_after().and_then(|last| self.presented().position(|planned| planned == last));
        let pause = if pause.is_some_and(|last| last < place) { BREAK_MINUTES } else { 0 };
        Some(pause + self.presented().take(place + 1).map(PlannedLesson::minutes).sum::<u32>())
    }

    /// What the class does at home, in a sentence: exercises that it has not solved, and lessons. `None` without
    /// homework.
    pub fn homework_sentence(&self) -> Option<String> {
        let of = |is_at_home: bool, is_left_out: bool, [one, several]: [&str; 2], after: &str| {
            let wanted = self.lessons.iter().filter(|planned| {
                planned.is_at_home == is_at_home
                    && (planned.exercise == ExerciseUse::LeftOut) == is_left_out
                    && planned.exercise != ExerciseUse::InClass
            });
            let titles: Vec<String> = wanted.map(|planned| format!("\"{}\"", planned.title())).collect();
            let what = if titles.len() > 1 { several } else { one };
            (!titles.is_empty()).then(|| format!("{what} {}{after}", titles.join(", ")))
        };
        let all = [
            of(false, false, ["exercise of", "exercises of"], ""),
            of(true, false, ["lesson", "lessons"], ""),
            of(true, true, ["lesson", "lessons"], " without exercise"),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("Homework: {}.", all.join("; ")))
    }
}

/// As [`Plan::from_text`] reads it.
impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, planned) in self.lessons.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{planned}")?;
        }
        Ok(())
    }
}

/// The title of a lesson; empty for an id that no lesson has.
pub fn title_of(id: &str) -> &'static str {
    course().find(|lesson| lesson.id == id).map_or("", |lesson| lesson.title)
}

/// All lessons, in the order in which to learn from them, without their texts.
pub fn course() -> impl Iterator<Item = &'static CourseLesson> {
    PARTS.iter().flat_map(|part| part.lessons)
}

/// The file of a lesson that Blockyard brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LessonFile {
    /// The lesson's id.
    pub id: &'static str,
    /// The file's text.
    pub text: &'static str,
}

/// All lessons, in the order of [`PARTS`].
///
/// The texts become a part of every program that calls this function. The page calls it only in a module that
/// is fetched later.
pub fn lessons() -> &'static [LessonFile] {
    &LESSONS
}

macro_rules! lesson {
    ($number:literal, $id:literal) => {
        LessonFile {
            id: $id,
            text: include_str!(concat!("../../../../web/lessons/", $number, "-", $id, ".md")),
        }
    };
}

const LESSONS: [LessonFile; 10] = [
    lesson!("01", "tensor"),
    lesson!("02", "nvidia-smi"),
    lesson!("03", "training"),
    lesson!("04", "fragmentation"),
    lesson!("05", "what-to-change"),
    lesson!("06", "ranks"),
    lesson!("07", "reserved"),
    lesson!("08", "workspaces"),
    lesson!("09", "streams"),
    lesson!("10", "pools"),
];

/// The lesson that has the matter of the lesson with this id: of a former lesson, the chapter that replaced
/// it. Links to former lessons are in courses and in browsers.
pub fn current_id(id: &str) -> &str {
    match id {
        "rounding" => "tensor",
        "cache" => "nvidia-smi",
        "peaks" | "optimizer" | "checkpointing" | "mixed-precision" | "accumulation" => "training",
        "splits" | "settings" => "fragmentation",
        "oom-message" | "snapshot" => "what-to-change",
        id => id,
    }
}

/// The glossary of all lessons.
///
/// # Errors
///
/// Where its file is wrong, which a test rules out.
pub fn glossary() -> Result<Glossary, LessonError> {
    Glossary::parse(include_str!("../../../../web/lessons/glossary.md"))
}
