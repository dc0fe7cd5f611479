//! The course: its lessons and parts.

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
