//! The grades of a class for an exercise: a line for each answer, or a table.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use blockyard_lessons::{Exercise, ExerciseLanguage, Grade, GradeResult, GradeRow, grades_csv, student_name};

#[cfg(feature = "python")]
use super::program;
use crate::exit_status::ExitStatus;
use crate::output;

/// Grades each file. The line of a file that cannot be graded has the reason, and the other files are graded.
/// A table on standard output replaces the lines.
pub(super) fn check_all(
    lesson: &str,
    exercise: &Exercise,
    paths: &[PathBuf],
    csv: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let mut out = output::stdout();
    let is_table = csv == Some(Path::new("-"));
    let mut rows = Vec::new();
    for path in paths {
        let file = path.display().to_string();
        let mut row = match grade(exercise, path) {
            Ok(grade) => GradeRow::of(&file, lesson, exercise, &grade),
            Err(why) => GradeRow::failed(&file, lesson, &why.to_string()),
        };
        // The folder of a file is the teacher's, so that only the file's name can name the student.
        row.name = path.file_name().map(|name| student_name(&name.to_string_lossy())).unwrap_or_default();
        if !is_table {
            let message = if row.message.is_empty() { String::new() } else { format!(": {}", row.message) };
            output::line(&mut out, &format!("{:<10} {file}{message}", row.result.word()))?;
        }
        rows.push(row);
    }
    let count = |result: GradeResult| rows.iter().filter(|row| row.result == result).count();
    let passed = count(GradeResult::Passed);
    if is_table {
        out.write_all(grades_csv(&rows).as_bytes())?;
    } else {
        output::line(&mut out, &format!("{passed} of {} passed.", paths.len()))?;
    }
    out.flush()?;
    if let Some(path) = csv.filter(|_| !is_table) {
        std::fs::write(path, grades_csv(&rows)).with_context(|| path.display().to_string())?;
    }
    Ok(match (count(GradeResult::NotGraded), passed == paths.len()) {
        (0, true) => ExitStatus::Positive,
        (0, false) => ExitStatus::Negative,
        _ => ExitStatus::Failed,
    }
    .into())
}

fn grade(exercise: &Exercise, path: &Path) -> anyhow::Result<Grade> {
    let text = String::from_utf8(output::read(path)?).map_err(|_| anyhow!("not UTF-8"))?;
    let text = exercise.whole_answer(&text)?;
    match exercise.language {
        ExerciseLanguage::Workload => Ok(exercise.grade(&text)?),
        #[cfg(feature = "python")]
        ExerciseLanguage::Python => {
            let name = path.display().to_string();
            let grade = program::grade(exercise, &name, &text, program::Output::Hidden);
            // The line begins with the file's name already.
            grade.map_err(|why| anyhow!(why.to_string().trim_start_matches(&format!("{name}: ")).to_owned()))
        }
        #[cfg(not(feature = "python"))]
        ExerciseLanguage::Python => anyhow::bail!(super::NO_PYTHON),
    }
}
