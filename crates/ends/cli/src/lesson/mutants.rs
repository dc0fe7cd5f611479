//! Small changes of an exercise's lines as answers, and which of them pass.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::anyhow;
use blockyard_lessons::{Exercise, ExerciseLanguage, Grade};

#[cfg(feature = "python")]
use super::program;
use crate::exit_status::ExitStatus;
use crate::output;

/// Grades each change, with a line for each. Changes that cannot be graded do not pass.
pub(super) fn try_all(exercise: &Exercise) -> anyhow::Result<ExitCode> {
    let mut out = output::stdout();
    let mutants = exercise.mutants();
    let mut passed = 0_usize;
    for mutant in &mutants {
        let (mark, why) = match grade(exercise, &exercise.with_region(&mutant.lines)) {
            Ok(grade) if grade.is_passed => {
                passed += 1;
                ("PASSES", String::new())
            }
            Ok(grade) => ("missed", grade.why_missed.unwrap_or_default()),
            Err(error) => ("missed", error.to_string()),
        };
        let why = if why.is_empty() { why } else { format!(": {why}") };
        output::line(&mut out, &format!("{mark} {}{why}", mutant.change))?;
    }
    output::line(&mut out, &format!("{passed} of {} changes pass.", mutants.len()))?;
    out.flush()?;
    Ok(if passed == 0 { ExitStatus::Positive } else { ExitStatus::Negative }.into())
}

fn grade(exercise: &Exercise, text: &str) -> anyhow::Result<Grade> {
    match exercise.language {
        ExerciseLanguage::Workload => exercise.grade(text).map_err(|error| anyhow!(error)),
        #[cfg(feature = "python")]
        ExerciseLanguage::Python => program::grade(exercise, "mutant.py", text, program::Output::Hidden),
        #[cfg(not(feature = "python"))]
        ExerciseLanguage::Python => anyhow::bail!(super::NO_PYTHON),
    }
}
