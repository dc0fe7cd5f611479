//! Notes for the author of an exercise that is solved before the reader begins, or without any line of the
//! reader.

use std::collections::BTreeSet;

use blockyard_workload::Workload;

use super::goal::GoalKind;
use super::{Exercise, ExerciseLanguage};
use crate::measure::RunStretch;
use crate::proof::{UnprovedWord, note, stated_words};

impl Exercise {
    /// The numbers and comparing words of the goals, which the text of the task may repeat.
    pub(crate) fn said_by_goals(&self) -> BTreeSet<String> {
        let goals: Vec<String> = self.goals.iter().map(ToString::to_string).collect();
        stated_words(goals.iter().map(String::as_str))
    }

    /// Adds a note if the start meets all goals already. An exercise without a solution is unfinished and
    /// gets no note.
    pub(super) fn add_notes(&self, notes: &mut Vec<UnprovedWord>) {
        let Some((at, _)) = &self.solution else { return };
        let is_passed = |text: &str| self.grade(text).is_ok_and(|grade| grade.is_passed);
        if is_passed(&self.start) {
            notes.push(note(*at, "the exercise is solved before the reader changes a line".to_owned()));
        } else if is_passed(&self.with_region("")) || self.is_program_without_need() {
            let text = "the goals are met without any line of the reader's: add a goal such as \
                        \"allocations at least 1\", or a line after them that needs their result";
            notes.push(note(*at, text.to_owned()));
        }
    }

    /// Whether a program without the reader's lines would meet the goals: a run without any request meets
    /// them, and no line of the task has a name that the reader's lines define. Programs are not run here.
    fn is_program_without_need(&self) -> bool {
        if self.language != ExerciseLanguage::Python {
            return false;
        }
        let nothing = Workload::default();
        let Ok(recording) = self.run(&nothing) else { return false };
        let stretch = RunStretch::of(&nothing, &recording);
        let is_met = |aim: &GoalKind| match aim {
            GoalKind::Condition(condition) => condition.holds(&stretch).is_ok_and(|(is_met, _)| is_met),
            GoalKind::Ends | GoalKind::SameRequests | GoalKind::Without(_) => true,
        };
        if !self.goals.iter().all(|goal| is_met(&goal.kind)) {
            return false;
        }
        let lines: Vec<&str> = self.start.lines().collect();
        let own = lines.get(self.region.clone()).unwrap_or_default();
        let after = lines.get(self.region.end..).unwrap_or_default();
        let used: BTreeSet<&str> = after.iter().flat_map(|line| names(code(line))).collect();
        !own.iter().flat_map(|line| names(code(line))).any(|name| used.contains(name) && name != "torch")
    }
}

/// The line without its comment.
fn code(line: &str) -> &str {
    line.split('#').next().unwrap_or_default()
}

fn names(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.split(move |character| !is_part(character))
        .filter(|word| word.starts_with(|first: char| first.is_alphabetic()))
}
