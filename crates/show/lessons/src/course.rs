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

/// What a class does with a lesson of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassUse {
    /// The lesson is presented; its exercise is homework.
    Presented,
    /// The lesson is presented, and the class solves its exercise.
    WithExercise,
    /// The lesson is presented, and nobody solves its exercise.
    WithoutExercise,
    /// The class reads the lesson at home, and solves its exercise.
    AtHome,
    /// The class reads the lesson at home without its exercise.
    AtHomeWithoutExercise,
}

/// The uses with their words in the text of a plan.
const USES: [(ClassUse, &str); 5] = [
    (ClassUse::Presented, ""),
    (ClassUse::WithExercise, "exercise"),
    (ClassUse::WithoutExercise, "only"),
    (ClassUse::AtHome, "home"),
    (ClassUse::AtHomeWithoutExercise, "read"),
];

impl ClassUse {
    /// Whether the lesson is presented; else it is for home.
    pub const fn is_presented(self) -> bool {
        matches!(self, Self::Presented | Self::WithExercise | Self::WithoutExercise)
    }

    /// Whether the class solves the exercise, in class or at home.
    pub const fn has_exercise(self) -> bool {
        !matches!(self, Self::WithoutExercise | Self::AtHomeWithoutExercise)
    }
}

/// A lesson in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedLesson {
    /// The lesson's id.
    pub id: &'static str,
    /// What the class does with it.
    pub class_use: ClassUse,
}

/// How many minutes a class needs to solve an exercise.
pub const EXERCISE_MINUTES: u32 = 8;

impl PlannedLesson {
    /// How many minutes the lesson takes with a class, which talks: more than for a reader alone. None at home.
    pub fn minutes(&self) -> u32 {
        match self.class_use {
            ClassUse::Presented | ClassUse::WithoutExercise => class_minutes(self.id),
            ClassUse::WithExercise => class_minutes(self.id) + EXERCISE_MINUTES,
            ClassUse::AtHome | ClassUse::AtHomeWithoutExercise => 0,
        }
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
    /// The plan of a text such as `tensor,fragmentation:exercise,nvidia-smi:home`. The words `only` and `read`
    /// are for a lesson in class and at home without its exercise. Lessons that are not known, and those that
    /// come again, are left out.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let mut plan = Self::default();
        for part in text.split(',') {
            let (id, word) = part.split_once(':').unwrap_or((part, ""));
            let Some(known) = course().find(|lesson| lesson.id == current_id(id)) else { continue };
            let named = USES.iter().find(|(_, known)| *known == word);
            let class_use = named.map_or(ClassUse::Presented, |(class_use, _)| *class_use);
            if plan.use_of(known.id).is_none() {
                plan.lessons.push(PlannedLesson { id: known.id, class_use });
            }
        }
        plan
    }

    /// What the class does with a lesson; `None` for a lesson that is not in the plan.
    pub fn use_of(&self, id: &str) -> Option<ClassUse> {
        self.lessons.iter().find(|planned| planned.id == id).map(|planned| planned.class_use)
    }

    /// The plan with another use of a lesson, in the order of the course; `None` leaves the lesson out.
    #[must_use]
    pub fn with_use(&self, id: &str, class_use: Option<ClassUse>) -> Self {
        let use_of = |lesson: &'static CourseLesson| {
            let class_use = if lesson.id == id { class_use } else { self.use_of(lesson.id) };
            Some(PlannedLesson { id: lesson.id, class_use: class_use? })
        };
        Self { lessons: course().filter_map(use_of).collect() }
    }

    /// The lessons that are presented, in order.
    pub fn presented(&self) -> impl Iterator<Item = &PlannedLesson> {
        self.lessons.iter().filter(|planned| planned.class_use.is_presented())
    }

    /// The minutes of the lessons that are presented.
    pub fn lesson_minutes(&self) -> u32 {
        self.lessons.iter().map(PlannedLesson::minutes).sum()
    }

    /// How many minutes the plan takes: a tenth is left because a class asks questions, and a vote takes longer
    /// than planned. A multiple of five.
    pub fn minutes(&self) -> u32 {
        (self.lesson_minutes() * 10).div_ceil(9).next_multiple_of(5)
    }

    /// The minute, from the beginning of the plan, at which a lesson is to end; `None` for a lesson that is not
    /// presented.
    pub fn end_of(&self, id: &str) -> Option<u32> {
        let place = self.presented().position(|planned| planned.id == id)?;
        Some(self.presented().take(place + 1).map(PlannedLesson::minutes).sum())
    }

    /// What the class does at home, in a sentence: exercises that it has not solved, and lessons. `None` without
    /// homework.
    pub fn homework_sentence(&self) -> Option<String> {
        let of = |wanted: ClassUse, [one, several]: [&str; 2], after: &str| {
            let of_use = self.lessons.iter().filter(|planned| planned.class_use == wanted);
            let titles: Vec<String> = of_use.map(|planned| format!("\"{}\"", title_of(planned.id))).collect();
            let what = if titles.len() > 1 { several } else { one };
            (!titles.is_empty()).then(|| format!("{what} {}{after}", titles.join(", ")))
        };
        let all = [
            of(ClassUse::Presented, ["exercise of", "exercises of"], ""),
            of(ClassUse::AtHome, ["lesson", "lessons"], ""),
            of(ClassUse::AtHomeWithoutExercise, ["lesson", "lessons"], " without exercise"),
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
            write!(f, "{comma}{}", planned.id)?;
            let word = USES.iter().find(|(class_use, _)| *class_use == planned.class_use);
            if let Some((_, word)) = word.filter(|(_, word)| !word.is_empty()) {
                write!(f, ":{word}")?;
            }
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
