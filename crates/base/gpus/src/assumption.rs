//! Values that only a GPU knows, as a person names them.

use std::str::FromStr;

/// A value of a device that only a GPU knows, as a person names it: `train.py:88=0.3`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumption {
    /// The file of the line that reads the value: its path, or the end of its path.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The value; 1 for true, 0 for false.
    pub value: f64,
}

/// A text that names no value by its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssumptionError;

impl std::fmt::Display for AssumptionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an assumption reads FILE:LINE=VALUE, as train.py:88=0.3 or train.py:90=true")
    }
}

impl std::error::Error for AssumptionError {}

impl FromStr for Assumption {
    type Err = AssumptionError;

    fn from_str(text: &str) -> Result<Self, AssumptionError> {
        let (place, value) = text.rsplit_once('=').ok_or(AssumptionError)?;
        let (file, line) = place.rsplit_once(':').ok_or(AssumptionError)?;
        let value = match value.trim() {
            "true" | "True" => 1.0,
            "false" | "False" => 0.0,
            number => number.parse().map_err(|_error| AssumptionError)?,
        };
        let line = line.trim().parse().map_err(|_error| AssumptionError)?;
        let file = file.trim().to_owned();
        if file.is_empty() { Err(AssumptionError) } else { Ok(Self { file, line, value }) }
    }
}

impl Assumption {
    /// Whether the value is that of a line.
    pub fn is_for(&self, file: &str, line: i32) -> bool {
        let is_file =
            file.strip_suffix(&self.file).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        is_file && u32::try_from(line) == Ok(self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::Assumption;

    #[test]
    fn an_assumption_names_a_line_and_a_value() {
        for (text, file, line, value) in [
            ("train.py:88=0.3", "train.py", 88, 0.3),
            ("a/b.py:1=true", "a/b.py", 1, 1.0),
            ("c:x.py:7=-1", "c:x.py", 7, -1.0),
            ("a=b.py:7=False", "a=b.py", 7, 0.0),
        ] {
            assert_eq!(text.parse(), Ok(Assumption { file: file.to_owned(), line, value }));
        }
        for bad in
            ["train.py=3", "train.py:88", "train.py:no=1", ":3=1", "train.py:88=maybe", "train.py:-1=1"]
        {
            assert!(bad.parse::<Assumption>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_is_named_by_the_end_of_its_path() {
        let named = |text: &str, file: &str, line| {
            text.parse::<Assumption>().is_ok_and(|assumption| assumption.is_for(file, line))
        };
        assert!(named("train.py:8=1", "/home/a/train.py", 8) && named("train.py:8=1", "train.py", 8));
        assert!(named("/home/a/train.py:8=1", "/home/a/train.py", 8));
        assert!(!named("train.py:8=1", "/home/a/retrain.py", 8));
        assert!(!named("train.py:8=1", "/home/a/train.py", 9));
    }
}
