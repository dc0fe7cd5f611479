//! The grades of a class as a table: a row for each handed-in file, the same in the page and in the command.

use crate::exercise::{Exercise, Grade};
use crate::handed_in::student_name;

/// The heads of the columns.
pub const GRADE_COLUMNS: [&str; 7] =
    ["File", "Name", "Lesson", "Result", "Goals met", "Goals missed", "Message"];

/// The outcome of grading a handed-in file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GradeResult {
    /// All goals are met.
    Passed,
    /// A goal is missed.
    NotYet,
    /// The file could not be graded; the message says why.
    NotGraded,
}

impl GradeResult {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::NotYet => "not yet",
            Self::NotGraded => "not graded",
        }
    }
}

/// The grade of one handed-in file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradeRow {
    /// The name of the file.
    pub file: String,
    /// The student, as the name of the file says.
    pub name: String,
    /// The id of the lesson whose exercise the file answers; empty where the lesson is not known.
    pub lesson: String,
    /// The result.
    pub result: GradeResult,
    /// How many goals are met, and how many the exercise has; `None` for a file that was not graded.
    pub met: Option<(usize, usize)>,
    /// The goals that are missed.
    pub missed: Vec<String>,
    /// Why goals are missed, or why the file was not graded; empty where all is well.
    pub message: String,
}

impl GradeRow {
    /// The row of a file that was graded.
    #[must_use]
    pub fn of(file: &str, lesson: &str, exercise: &Exercise, grade: &Grade) -> Self {
        let missed = grade.goals.iter().filter(|goal| !goal.is_met).map(|goal| goal.goal.clone());
        let is_met = |goal: &&crate::exercise::GoalResult| goal.is_met;
        let (result, message) = match &grade.why_missed {
            None => (GradeResult::Passed, String::new()),
            Some(why) => (GradeResult::NotYet, why.clone()),
        };
        Self {
            file: file.to_owned(),
            name: student_name(file),
            lesson: lesson.to_owned(),
            result,
            met: Some((grade.goals.iter().filter(is_met).count(), exercise.goals.len())),
            missed: missed.collect(),
            message,
        }
    }

    /// The row of a file that was not graded.
    #[must_use]
    pub fn failed(file: &str, lesson: &str, why: &str) -> Self {
        Self {
            file: file.to_owned(),
            name: student_name(file),
            lesson: lesson.to_owned(),
            result: GradeResult::NotGraded,
            met: None,
            missed: Vec::new(),
            message: why.to_owned(),
        }
    }

    /// The cells, in the order of [`GRADE_COLUMNS`].
    pub fn cells(&self) -> [String; 7] {
        let met = self.met.map(|(met, count)| format!("{met} of {count}")).unwrap_or_default();
        let [file, name, lesson] = [&self.file, &self.name, &self.lesson].map(String::clone);
        [file, name, lesson, self.result.word().to_owned(), met, self.missed.join("; "), self.message.clone()]
    }
}

/// The table in comma-separated values, with its heads.
pub fn grades_csv<'a>(rows: impl IntoIterator<Item = &'a GradeRow>) -> String {
    let line =
        |cells: &[String]| cells.iter().map(|cell| csv_cell(cell)).collect::<Vec<_>>().join(",") + "\r\n";
    let mut csv = line(&GRADE_COLUMNS.map(str::to_owned));
    for row in rows {
        csv.push_str(&line(&row.cells()));
    }
    csv
}

/// A cell in quotes, which no program for tables reads as a formula: students choose the names of files.
fn csv_cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

/// The exercise that a handed-in file answers: the exercise whose lines of the task the file has. If several
/// exercises have these lines, the exercise whose id is in the name of the file. If none has them, the one
/// exercise whose own lines the file is most like. `None` if there is no such exercise.
pub fn exercise_of<'a>(
    file: &str,
    text: &str,
    exercises: &'a [(String, Exercise)],
) -> Option<&'a (String, Exercise)> {
    let has_lines = |known: &&(String, Exercise)| known.1.check_locked(text).is_ok() && !is_open(&known.1);
    let mut known = exercises.iter().filter(has_lines);
    let first = known.next();
    let is_named = |known: &&(String, Exercise)| names(file, &known.0);
    // If the name of the file says the exercise, a student who changed a line of the task learns which line.
    let named = || exercises.iter().filter(is_named).max_by_key(|known| known.0.len());
    match (first, known.next()) {
        (Some(only), None) => Some(only),
        (Some(first), Some(_)) => exercises.iter().filter(has_lines).find(is_named).or(Some(first)),
        (None, _) => named().or_else(|| most_like(text, exercises)),
    }
}

/// The exercise that the text is like, and more than all others.
fn most_like<'a>(text: &str, exercises: &'a [(String, Exercise)]) -> Option<&'a (String, Exercise)> {
    let (mut best, mut most, mut is_alone) = (None, 0, false);
    for known in exercises.iter().filter(|known| known.1.whole_answer(text).is_ok()) {
        let likeness = known.1.likeness(text);
        if likeness > most {
            (best, most, is_alone) = (Some(known), likeness, true);
        } else if likeness == most {
            is_alone = false;
        }
    }
    best.filter(|_| is_alone)
}

/// Whether any text is an answer: an exercise whose lines are all the reader's.
fn is_open(exercise: &Exercise) -> bool {
    exercise.region().len() == exercise.start().lines().count()
}

/// Whether a file is named after a lesson: `meyer_pools (1).txt`.
fn names(file: &str, id: &str) -> bool {
    let file = file.to_lowercase();
    file.match_indices(id).any(|(at, _)| {
        let before = file.get(..at).and_then(|before| before.chars().next_back());
        let after = file.get(at + id.len()..).and_then(|after| after.chars().next());
        [before, after].into_iter().flatten().all(|letter| !letter.is_alphanumeric() && letter != '-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_and_no_formula() {
        let row = GradeRow::failed("=1+1,\"x\"_a.py", "", "not UTF-8");
        let csv = grades_csv([&row]);
        assert_eq!(
            csv,
            "\"File\",\"Name\",\"Lesson\",\"Result\",\"Goals met\",\"Goals missed\",\"Message\"\r\n\
             \"'=1+1,\"\"x\"\"_a.py\",\"'=1+1,\"\"x\"\"\",\"\",\"not graded\",\"\",\"\",\"not UTF-8\"\r\n"
        );
    }

    #[test]
    fn a_name_has_the_id_as_a_word() {
        for name in ["pools.workload", "meyer_pools (1).txt", "Week 3 Pools.txt"] {
            assert!(names(name, "pools"), "{name}");
        }
        for name in ["whirlpools.py", "pools2.py", "oom-message.py"] {
            assert!(!names(name, "pools") && !names(name, "message"), "{name}");
        }
    }
}
