//! The grade of an answer: which goals its run meets, and whether the answer keeps the lines of the task.

use blockyard_record::{Event, Recording};
use blockyard_replay::RunError;
use blockyard_workload::{ParseError, Workload};
use thiserror::Error;

use super::mistake::{Mistake, RunOfLines, mistake};
use super::{Exercise, ExerciseLanguage, Goal, GoalResult, REGION_FROM, REGION_TO};
use crate::lesson::MAX_REQUESTS;
use crate::measure::RunStretch;
use crate::program_end::{EndedProgram, refused_setting};

/// The result of grading an answer.
#[derive(Clone, Debug)]
pub struct Grade {
    /// Whether every goal is met, and the names that the task gives have kept their meaning.
    pub is_passed: bool,
    /// The verdict in a sentence, with the reason if a goal is missed.
    pub sentence: String,
    /// Why the answer does not pass, which is the end of the sentence; `None` if it passes.
    pub why_missed: Option<String>,
    /// The first difference between the answer and the lesson's solution; `None` if all goals are met, if the
    /// lesson has no solution, and for a program, whose difference [`Exercise::mistake`] finds.
    pub mistake: Option<Mistake>,
    /// All goals, in the order of the file.
    pub goals: Vec<GoalResult>,
    /// The answer's requests; empty for a program.
    pub workload: Workload,
    /// The run of the requests, or of the program.
    pub recording: Recording,
}

/// Why an answer cannot be graded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GradeError {
    /// The answer is not a workload.
    #[error(transparent)]
    Text(ParseError),
    /// A line was changed that belongs to the task.
    #[error("line {line} belongs to the task and was changed: it should read \"{expected}\"")]
    Locked {
        /// The line of the answer, from 1.
        line: usize,
        /// The text that is expected there.
        expected: String,
    },
    /// The answer has no line of the task.
    #[error(
        "it has no line of the task: hand in the whole file, as \"Save it as a file\" writes it, or the lines between \"{from}\" and \"{to}\"",
        from = REGION_FROM, to = REGION_TO
    )]
    NoTask,
    /// The answer makes more requests than an exercise may.
    #[error("an exercise makes at most {most} requests")]
    TooLong {
        /// The most requests that the answer may make.
        most: u64,
    },
    /// The answer is a program, which the caller runs for [`Exercise::grade_program`].
    #[error("the answer is a Python program, which is run before it is graded")]
    IsProgram,
    /// The allocator had no result.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Exercise {
    /// Runs the reader's whole workload and says which goals are met.
    ///
    /// The same text always has the same grade.
    ///
    /// # Errors
    ///
    /// [`GradeError::Locked`] where a line of the task was changed, [`GradeError::Text`] where the text is
    /// not a workload, [`GradeError::TooLong`] where the answer makes too many requests,
    /// [`GradeError::IsProgram`] where the exercise is in Python.
    pub fn grade(&self, text: &str) -> Result<Grade, GradeError> {
        if self.language == ExerciseLanguage::Python {
            return Err(GradeError::IsProgram);
        }
        self.check_locked(text)?;
        if Workload::length(text).is_ok_and(|length| length > MAX_REQUESTS) {
            return Err(GradeError::TooLong { most: MAX_REQUESTS });
        }
        let workload = Workload::parse(text).map_err(GradeError::Text)?;
        let recording = self.run(&workload)?;
        let refused = refused_setting(&workload, &recording);
        let mut grade = self.grade_run(workload, recording, refused.as_deref());
        if !grade.is_passed && refused.is_none() {
            grade.mistake = self.workload_mistake(text, &grade);
        }
        Ok(grade)
    }

    fn workload_mistake(&self, text: &str, grade: &Grade) -> Option<Mistake> {
        let solved = Workload::parse(&self.with_region(self.solution()?)).ok()?;
        let recording = self.run(&solved).ok()?;
        let lines = |workload: &Workload| -> Vec<u32> {
            (0..workload.requests().len()).map(|request| workload.line(request).unwrap_or(0)).collect()
        };
        let (own, solved) = (lines(&grade.workload), lines(&solved));
        self.mistake(
            text,
            &RunOfLines { recording: &grade.recording, lines: &own },
            &RunOfLines { recording: &recording, lines: &solved },
        )
    }

    /// The first difference between an answer's run and the run of the lesson's solution: the act of a line
    /// of the answer, and as a hint the act of the solution in its place. `text` is the whole answer. The
    /// author's sentence comes first, if the lesson has one for a line of the answer. Where no difference
    /// explains the answer, the sentence says what its run did. `None` for a run without a tensor.
    pub fn mistake(&self, text: &str, own: &RunOfLines<'_>, solved: &RunOfLines<'_>) -> Option<Mistake> {
        let known = self.mistakes.iter().find(|known| known.is_in(text));
        known
            .map(|known| Mistake::new(&*known.sentence, ""))
            .or_else(|| mistake(text, self.language, own, solved))
            .or_else(|| self.outcome(text, own))
    }

    /// Says which goals a program that the caller ran has met.
    ///
    /// # Errors
    ///
    /// [`GradeError::Locked`] where a line of the task was changed, [`GradeError::TooLong`] where the run has
    /// too many steps.
    pub fn grade_program(&self, text: &str, end: EndedProgram) -> Result<Grade, GradeError> {
        self.check_locked(text)?;
        if end.recording.step_count() as u64 > MAX_REQUESTS {
            return Err(GradeError::TooLong { most: MAX_REQUESTS });
        }
        let failure = end.failure(text, &self.own_lines(text));
        let mut grade = self.grade_run(Workload::default(), end.recording, failure.as_deref());
        if grade.is_passed
            && let Some(why) = self.changed_name(text)
        {
            grade.is_passed = false;
            grade.sentence = format!("Not yet: {why}.");
            grade.why_missed = Some(format!("{why}."));
        }
        Ok(grade)
    }

    fn grade_run(&self, workload: Workload, recording: Recording, failure: Option<&str>) -> Grade {
        let to = recording.step_count();
        let stretch = RunStretch { from: 0, to, ..RunStretch::of(&workload, &recording) };
        let grade = |goal: &Goal| goal.grade(&self.workload, &stretch, failure);
        let mut goals: Vec<_> = self.goals.iter().map(grade).collect();
        let has_tensors = recording.events_from(0).any(|event| matches!(event, Event::Allocated { .. }));
        let is_empty = self.language == ExerciseLanguage::Python && failure.is_none() && !has_tensors;
        if is_empty {
            // A program without a tensor on the GPU meets goals such as "at most" by doing nothing.
            goals.iter_mut().for_each(GoalResult::miss_without_tensors);
        }
        if failure.is_some() {
            // Goals that an unfinished program happens to meet do not count.
            goals.iter_mut().for_each(GoalResult::miss_without_end);
        }
        let missed: Vec<&str> =
            goals.iter().filter(|goal| !goal.is_met).map(|goal| goal.because.as_str()).collect();
        let is_passed = missed.is_empty();
        // A goal without a reason is in the list of goals alone.
        let mut found: Vec<&str> = goals.iter().filter_map(GoalResult::reason).collect();
        // Two goals about the same quantity have the same reason.
        found.dedup();
        let why_missed = (!is_passed).then(|| {
            if is_empty {
                "the program makes no tensor on the GPU. `device=\"cuda\"` puts a tensor there.".to_owned()
            } else {
                format!("{}.", failure.unwrap_or(&missed.join("; ")))
            }
        });
        let sentence = match (&why_missed, found.as_slice()) {
            (Some(why), _) => format!("Not yet: {why}"),
            (None, []) => "Passed.".to_owned(),
            (None, found) => format!("Passed: {}.", found.join("; ")),
        };
        Grade { is_passed, sentence, why_missed, mistake: None, goals, workload, recording }
    }

    /// Checks that the lines of the task are unchanged; blank lines and spaces at the ends of lines do not
    /// count.
    ///
    /// # Errors
    ///
    /// [`GradeError::Locked`] with the first line that was changed.
    pub fn check_locked(&self, text: &str) -> Result<(), GradeError> {
        let task: Vec<&str> = self.start.lines().collect();
        let answer: Vec<&str> = text.lines().map(str::trim_end).collect();
        let before = task.get(..self.region.start).unwrap_or_default();
        for (index, expected) in before.iter().enumerate() {
            if answer.get(index) != Some(&expected.trim_end()) {
                return Err(GradeError::Locked { line: index + 1, expected: (*expected).to_owned() });
            }
        }
        let end = answer.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        let after = task.get(self.region.end..).unwrap_or_default();
        let mut line = end;
        for expected in after.iter().rev().skip_while(|line| line.trim().is_empty()) {
            line = line.saturating_sub(1);
            let is_theirs = line < self.region.start || answer.get(line) != Some(&expected.trim_end());
            if is_theirs {
                return Err(GradeError::Locked { line: line + 1, expected: (*expected).to_owned() });
            }
        }
        Ok(())
    }
}
