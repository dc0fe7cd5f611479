use crate::error::LessonError;
use crate::glossary::Glossary;
use crate::lesson::Lesson;
use crate::question::LessonQuestion;

/// The file of a lesson that Blockyard brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LessonFile {
    /// The lesson's id.
    pub id: &'static str,
    /// The file's text.
    pub text: &'static str,
}

/// All lessons, in the order in which to learn from them.
#[must_use]
pub fn lessons() -> &'static [LessonFile] {
    &LESSONS
}

macro_rules! lesson {
    ($number:literal, $id:literal) => {
        LessonFile { id: $id, text: include_str!(concat!("../../../web/lessons/", $number, "-", $id, ".md")) }
    };
}

const LESSONS: [LessonFile; 12] = [
    lesson!("01", "tensor"),
    lesson!("02", "reserved"),
    lesson!("03", "cache"),
    lesson!("04", "rounding"),
    lesson!("05", "splits"),
    lesson!("06", "peaks"),
    lesson!("07", "fragmentation"),
    lesson!("08", "settings"),
    lesson!("09", "streams"),
    lesson!("10", "pools"),
    lesson!("11", "training"),
    lesson!("12", "oom-message"),
];

/// The glossary of all lessons.
///
/// # Errors
/// Where its file is wrong, which a test rules out.
pub fn glossary() -> Result<Glossary, LessonError> {
    Glossary::parse(include_str!("../../../web/lessons/glossary.md"))
}

/// A question of a lesson, for a reader who wants all questions of the course.
#[derive(Clone, Debug)]
pub struct QuizItem {
    /// The lesson's id.
    pub lesson: String,
    /// The lesson's title.
    pub title: String,
    /// The card that asks it, from 0.
    pub card: usize,
    /// The question.
    pub question: LessonQuestion,
}

/// The questions of all lessons, in order.
///
/// # Errors
/// Where a lesson's file is wrong, which a test rules out.
pub fn quiz() -> Result<Vec<QuizItem>, LessonError> {
    let mut items = Vec::new();
    for file in lessons() {
        let lesson = Lesson::parse(file.text)?.play()?;
        for (card, played) in lesson.cards.into_iter().enumerate() {
            if let Some(question) = played.question {
                let (id, title) = (lesson.id.clone(), lesson.title.clone());
                items.push(QuizItem { lesson: id, title, card, question });
            }
        }
    }
    Ok(items)
}
