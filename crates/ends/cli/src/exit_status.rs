//! The exit statuses of the command. `docs/command.md` has the table.

use std::process::ExitCode;

/// The result of a command for a script, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExitStatus {
    /// The answer is good: all files are alike, every run fits, nothing grows, the goals are met.
    Positive = 0,
    /// The answer is bad: a difference, an out of memory, a growth, a value that does not fit, a goal that is
    /// missed.
    Negative = 1,
    /// There is no answer: a file or an argument is wrong, or a program failed for another reason than
    /// memory.
    Failed = 2,
    /// Ctrl-C ended the command.
    Interrupted = 130,
}

impl ExitStatus {
    /// The number that the process ends with.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The exit status of a program that the command ran; 1 for a status that does not fit in a byte.
    pub(crate) fn of_program(status: i32) -> ExitCode {
        ExitCode::from(u8::try_from(status).unwrap_or(Self::Negative.code()))
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_each_status() {
        let document = include_str!("../../../../docs/command.md");
        let table = document.split("| exit status | meaning |").nth(1).unwrap();
        for status in
            [ExitStatus::Positive, ExitStatus::Negative, ExitStatus::Failed, ExitStatus::Interrupted]
        {
            assert!(table.contains(&format!("| {} |", status.code())), "{status:?}");
        }
    }
}
