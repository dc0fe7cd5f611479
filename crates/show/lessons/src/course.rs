//! The course: its lessons, parts and plans of time.

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

/// A stretch of a course with a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanPart {
    /// How many minutes the stretch takes.
    pub minutes: u32,
    /// The lessons of the stretch; none in a break.
    pub lessons: &'static [PlannedLesson],
    /// The ids of the lessons that the class reads at home after it.
    pub homework: &'static [&'static str],
    /// The task of the class, in words.
    pub task: &'static str,
}

/// A lesson in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedLesson {
    /// The lesson's id.
    pub id: &'static str,
    /// How many minutes the lesson takes with a class, which talks: more than for a reader alone.
    pub minutes: u32,
    /// Whether the class solves the lesson's exercise, which else is homework.
    pub has_exercise: bool,
}

/// How many minutes a class needs to solve an exercise.
pub const EXERCISE_MINUTES: u32 = 8;

const fn without_exercise(id: &'static str, minutes: u32) -> PlannedLesson {
    PlannedLesson { id, minutes, has_exercise: false }
}

const fn with_exercise(id: &'static str, minutes: u32) -> PlannedLesson {
    PlannedLesson { id, minutes, has_exercise: true }
}

/// The task at the end of every plan. Its minutes belong to no lesson, because a class asks questions, and a
/// vote takes longer than planned.
const SLACK: &str = "For questions, and for what takes longer.";

const fn slack(minutes: u32) -> PlanPart {
    PlanPart { minutes, lessons: &[], homework: &[], task: SLACK }
}

/// A lecture of 45 minutes.
const FORTY_FIVE_MINUTES: [PlanPart; 3] = [
    PlanPart {
        minutes: 15,
        lessons: &[without_exercise("tensor", 15)],
        homework: &[],
        task: "The class answers before each figure is shown. After Escape the chapter has its sliders: the class says where one changes the segment.",
    },
    PlanPart {
        minutes: 24,
        lessons: &[with_exercise("fragmentation", 24)],
        homework: &["nvidia-smi", "what-to-change"],
        task: "The class says how large the hole is, votes before the request that fails, and solves the exercise in pairs.",
    },
    slack(6),
];

/// A lecture of 90 minutes.
const NINETY_MINUTES: [PlanPart; 4] = [
    PlanPart {
        minutes: 23,
        lessons: &[with_exercise("tensor", 23)],
        homework: &["nvidia-smi"],
        task: "The class answers before each figure is shown, and solves the exercise. After Escape the chapter has its sliders.",
    },
    PlanPart {
        minutes: 18,
        lessons: &[without_exercise("training", 18)],
        homework: &[],
        task: "The class says what the second step needs and what a weight costs. After Escape the batch is moved.",
    },
    PlanPart {
        minutes: 40,
        lessons: &[with_exercise("fragmentation", 25), without_exercise("what-to-change", 15)],
        homework: &[],
        task: "The class solves the exercise in pairs, reads an out-of-memory message aloud, number by number, and says what a list of losses keeps.",
    },
    slack(9),
];

/// A course of two hours.
const TWO_HOURS: [PlanPart; 5] = [
    PlanPart {
        minutes: 30,
        lessons: &[without_exercise("tensor", 14), without_exercise("nvidia-smi", 16)],
        homework: &[],
        task: "The class answers before each figure is shown.",
    },
    PlanPart { minutes: 10, lessons: &[], homework: &[], task: "A break." },
    PlanPart {
        minutes: 26,
        lessons: &[with_exercise("training", 26)],
        homework: &[],
        task: "The class says what the second step needs and what a weight costs, and solves the exercise. After Escape the batch is moved.",
    },
    PlanPart {
        minutes: 40,
        lessons: &[with_exercise("fragmentation", 25), without_exercise("what-to-change", 15)],
        homework: &[],
        task: "The class votes before the request that fails, solves the exercise in pairs, reads an out-of-memory message aloud, number by number, and says what a list of losses keeps.",
    },
    slack(14),
];

/// A way through the course with a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The name for programs.
    pub id: &'static str,
    /// The name that people see.
    pub title: &'static str,
    /// The stretches, in order.
    pub parts: &'static [PlanPart],
}

/// The plans, the shortest first.
pub const PLANS: [Plan; 3] = [
    Plan { id: "forty-five-minutes", title: "A lecture of 45 minutes", parts: &FORTY_FIVE_MINUTES },
    Plan { id: "ninety-minutes", title: "A lecture of 90 minutes", parts: &NINETY_MINUTES },
    Plan { id: "two-hours", title: "A course of two hours", parts: &TWO_HOURS },
];

impl Plan {
    /// The plan that has these lessons in this order.
    #[must_use]
    pub fn of(ids: &[String]) -> Option<&'static Self> {
        PLANS.iter().find(|plan| plan.lessons().map(|lesson| lesson.id).eq(ids))
    }

    /// The lessons, in order.
    pub fn lessons(&self) -> impl Iterator<Item = &'static PlannedLesson> {
        self.parts.iter().flat_map(|part| part.lessons)
    }

    /// The ids of the lessons, in order.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.lessons().map(|lesson| lesson.id.to_owned()).collect()
    }

    /// The lessons that students read, in the order of the course: those of the plan, and the homework.
    pub fn for_students(&self) -> impl Iterator<Item = &'static str> {
        let homework = self.parts.iter().flat_map(|part| part.homework).copied();
        let ids: Vec<&str> = self.lessons().map(|lesson| lesson.id).chain(homework).collect();
        course().map(|lesson| lesson.id).filter(move |id| ids.contains(id))
    }

    /// How many minutes the plan takes.
    #[must_use]
    pub fn minutes(&self) -> u32 {
        self.parts.iter().map(|part| part.minutes).sum()
    }

    /// The minute, from the beginning of the plan, at which a lesson is to end.
    #[must_use]
    pub fn end_of(&self, id: &str) -> Option<u32> {
        let mut minute = 0;
        for part in self.parts {
            // A break has no lessons.
            minute += if part.lessons.is_empty() { part.minutes } else { 0 };
            for lesson in part.lessons {
                minute += lesson.minutes;
                if lesson.id == id {
                    return Some(minute);
                }
            }
        }
        None
    }
}

impl PlanPart {
    /// What the class does at home after the stretch, in a sentence: exercises that it has not solved, and
    /// lessons. `None` without homework.
    #[must_use]
    pub fn homework_sentence(&self) -> Option<String> {
        let title = |id: &str| course().find(|lesson| lesson.id == id).map_or("", |lesson| lesson.title);
        let unsolved = self.lessons.iter().filter(|lesson| !lesson.has_exercise).map(|lesson| lesson.id);
        let exercises: Vec<&str> = unsolved.map(title).collect();
        let lessons: Vec<&str> = self.homework.iter().map(|id| title(id)).collect();
        let of = |what: &str, titles: &[&str]| {
            (!titles.is_empty()).then(|| format!("{what} \"{}\"", titles.join("\", \"")))
        };
        let all = [of("exercise of", &exercises), of("lesson", &lessons)];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("Homework: {}.", all.join("; ")))
    }
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
#[must_use]
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
#[must_use]
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
