//! An answer as a student hands it in: the whole program, or the student's own lines without the task's.

use super::{Exercise, GradeError, REGION_FROM, REGION_TO};

/// Words of Python that begin a line of any program.
const COMMON: [&str; 15] = [
    "for", "with", "if", "else", "elif", "while", "def", "return", "del", "torch", "print", "import", "from",
    "assert", "try",
];

impl Exercise {
    /// The whole answer of a text, which may have the reader's lines alone.
    ///
    /// # Errors
    ///
    /// [`GradeError::Locked`] where a line of the task was changed, [`GradeError::NoTask`] where the text has no
    /// line of the task and does not look like lines of this exercise.
    pub fn whole_answer(&self, text: &str) -> Result<String, GradeError> {
        let Err(changed) = self.check_locked(text) else { return Ok(text.to_owned()) };
        let lines: Vec<&str> = self.start.lines().collect();
        let task = lines.iter().enumerate().filter(|(line, _)| !self.region.contains(line));
        // A line of the task may be one of the reader's, too.
        let known = self.known_lines();
        let is_task = |line: &&str| !line.is_empty() && !known.contains(line);
        let task: Vec<&str> = task.map(|(_, line)| line.trim()).filter(is_task).collect();
        let (shared, own): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| task.contains(&line.trim()));
        let is_any = |line: &str| line == REGION_FROM || line == REGION_TO || is_import(line);
        // Beside the comments around the reader's lines are lines of the task.
        let place = |mark: &str| text.lines().position(|line| line.trim() == mark);
        let (from, to) = (place(REGION_FROM).unwrap_or(0), place(REGION_TO).unwrap_or(usize::MAX));
        let beside = text.lines().enumerate().filter(|(line, _)| *line < from || *line > to);
        let mut beside = beside.map(|(_, line)| line.trim()).filter(|line| !line.is_empty());
        if !shared.iter().all(|line| is_any(line.trim())) || !beside.all(is_import) {
            return Err(changed);
        }
        if self.likeness(text) == 0 {
            return Err(GradeError::NoTask);
        }
        // Lines of a loop may be written without its margin.
        let margin = lines.get(self.region.start).map_or(0, |line| line.len() - line.trim_start().len());
        let first = own.iter().find(|line| !line.trim().is_empty());
        let margin = if first.is_some_and(|line| line.starts_with(' ')) { 0 } else { margin };
        let own: Vec<String> = own.iter().map(|line| " ".repeat(margin) + line.trim_end()).collect();
        Ok(self.with_region(own.join("\n").trim_matches('\n')))
    }

    /// How many lines of a text look like the reader's lines of this exercise: a line of the start or of the
    /// solution counts twice, another line about a name that these begin with once.
    pub(crate) fn likeness(&self, text: &str) -> usize {
        let known = self.known_lines();
        let like = |line: &str| {
            if known.contains(&line) {
                2
            } else {
                usize::from(
                    first_name(line)
                        .is_some_and(|name| known.iter().any(|known| first_name(known) == Some(name))),
                )
            }
        };
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(like).sum()
    }

    /// The reader's lines of the start and of the solution.
    fn known_lines(&self) -> Vec<&str> {
        let start: Vec<&str> = self.start.lines().collect();
        let start = start.get(self.region.clone()).unwrap_or_default().iter().copied();
        start.chain(self.solution().unwrap_or_default().lines()).map(str::trim).collect()
    }
}

fn is_import(line: &str) -> bool {
    line.starts_with("import ") || line.starts_with("from ")
}

/// The name that a line begins with.
fn first_name(line: &str) -> Option<&str> {
    let end = line.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(line.len());
    line.get(..end).filter(|name| !name.is_empty() && !COMMON.contains(name))
}
