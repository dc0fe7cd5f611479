//! The answers of a class to an exercise, a line each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use blockyard_lessons::{Exercise, ExerciseLanguage, Grade};

#[cfg(feature = "python")]
use super::program;
use crate::output;

/// The exit status where an answer could not be graded.
const NOT_GRADED: u8 = 2;

/// Grades each file. One that cannot be graded says why, and the others are graded.
pub(super) fn check_all(exercise: &Exercise, paths: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let mut out = output::stdout();
    let (mut passed, mut failures) = (0_usize, 0_usize);
    for path in paths {
        let line = match grade(exercise, path) {
            Ok(grade) if grade.is_passed => {
                passed += 1;
                format!("passed     {}", path.display())
            }
            Ok(grade) => {
                let why = grade.sentence.trim_start_matches("Not yet: ").to_owned();
                format!("not yet    {}: {why}", path.display())
            }
            Err(why) => {
                failures += 1;
                format!("not graded {}: {why}", path.display())
            }
        };
        output::line(&mut out, &line)?;
    }
    output::line(&mut out, &format!("{passed} of {} passed.", paths.len()))?;
    std::io::Write::flush(&mut out)?;
    Ok(match (failures, passed == paths.len()) {
        (0, true) => ExitCode::SUCCESS,
        (0, false) => ExitCode::FAILURE,
        _ => ExitCode::from(NOT_GRADED),
    })
}

fn grade(exercise: &Exercise, path: &Path) -> anyhow::Result<Grade> {
    let text = String::from_utf8(output::read(path)?).map_err(|_| anyhow!("not UTF-8"))?;
    match exercise.language {
        ExerciseLanguage::Workload => Ok(exercise.grade(&text)?),
        #[cfg(feature = "python")]
        ExerciseLanguage::Python => {
            let name = path.display().to_string();
            let grade = program::grade(exercise, &name, &text, program::Output::Hidden);
            // The line begins with the file's name.
            grade.map_err(|why| anyhow!(why.to_string().trim_start_matches(&format!("{name}: ")).to_owned()))
        }
        #[cfg(not(feature = "python"))]
        ExerciseLanguage::Python => anyhow::bail!(super::NO_PYTHON),
    }
}
