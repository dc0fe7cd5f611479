//! The option or variable that is searched, and how a run gets its value.

use std::str::FromStr;

use blockyard_answers::{FitValues, FitVary, FitVaryKind};
use thiserror::Error;

use crate::{Values, ValuesError};

/// Why a text names nothing that can be varied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VaryError {
    /// No settings follow `conf=`.
    #[error("settings are missing: conf=expandable_segments:True")]
    NoSettings,
    /// The text has another form.
    #[error("write NAME=LOW..HIGH, as batch-size=1..512 or env:BATCH=1..64, or conf=SETTINGS")]
    Form,
    /// The option has no name.
    #[error("the name before `=` is missing")]
    NoName,
    /// The values are wrong.
    #[error(transparent)]
    Values(#[from] ValuesError),
}

/// The argument of an option `--vary`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaryOption {
    /// An option of the program, or a variable of its environment.
    Numbers(Vary),
    /// Settings of the allocator, each as in `PYTORCH_CUDA_ALLOC_CONF`.
    Settings(Vec<String>),
}

impl FromStr for VaryOption {
    type Err = VaryError;

    fn from_str(text: &str) -> Result<Self, VaryError> {
        let vary = text.parse::<Vary>();
        // A program may have an option of this name, whose values are numbers.
        match text.strip_prefix("conf=").filter(|_| vary.is_err()) {
            None => Ok(Self::Numbers(vary?)),
            Some(settings) => {
                let settings: Vec<String> = settings
                    .split(';')
                    .map(|conf| conf.trim().to_owned())
                    .filter(|conf| !conf.is_empty())
                    .collect();
                if settings.is_empty() {
                    return Err(VaryError::NoSettings);
                }
                Ok(Self::Settings(settings))
            }
        }
    }
}

/// Numbers of an option or a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// The option without hyphens, or the variable.
    pub name: String,
    /// Whether a variable of the environment gets the values.
    pub is_variable: bool,
    /// The values.
    pub values: Values,
}

impl FromStr for Vary {
    type Err = VaryError;

    fn from_str(text: &str) -> Result<Self, VaryError> {
        let Some((name, values)) = text.split_once('=') else {
            return Err(VaryError::Form);
        };
        let (name, is_variable) = match name.strip_prefix("env:") {
            Some(name) => (name, true),
            None => (name.trim_start_matches('-'), false),
        };
        if name.is_empty() {
            return Err(VaryError::NoName);
        }
        Ok(Self { name: name.to_owned(), is_variable, values: values.parse()? })
    }
}

impl Vary {
    /// The variable with one of its values.
    pub(crate) fn set(&self, value: u64) -> Set {
        Set { name: self.name.clone(), is_variable: self.is_variable, value }
    }

    /// The option or variable with its values, for an answer.
    pub(crate) fn answer(&self) -> FitVary {
        let kind = if self.is_variable { FitVaryKind::Variable } else { FitVaryKind::Option };
        FitVary { kind, values: self.values_answer() }
    }

    /// The name and the values, for an answer.
    pub(crate) fn values_answer(&self) -> FitValues {
        let values = &self.values;
        FitValues {
            name: self.name.clone(),
            low: values.low(),
            high: values.high(),
            multiple: values.multiple(),
            list: values.multiple().is_none().then(|| values.iter().collect()),
        }
    }
}

/// An option or variable with the value that a run gets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) is_variable: bool,
    pub(crate) value: u64,
}

/// The program's arguments with these values. If an argument has `{name}`, the value replaces it; otherwise
/// the value is an option after the arguments.
pub(crate) fn arguments(own: &[String], sets: &[Set]) -> Vec<String> {
    let mut all = own.to_vec();
    let mut options = Vec::new();
    for set in sets.iter().filter(|set| !set.is_variable) {
        let place = format!("{{{}}}", set.name);
        if all.iter().any(|argument| argument.contains(&place)) {
            for argument in &mut all {
                *argument = argument.replace(&place, &set.value.to_string());
            }
        } else {
            options.extend([format!("--{}", set.name), set.value.to_string()]);
        }
    }
    all.extend(options);
    all
}

/// The program's variables with these values.
pub(crate) fn environment(sets: &[Set]) -> Vec<(String, String)> {
    let variables = sets.iter().filter(|set| set.is_variable);
    variables.map(|set| (set.name.clone(), set.value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_goes_where_the_program_reads_it() {
        let own = ["--lr".to_owned(), "1".to_owned()];
        let option: Vary = "batch-size=1..8".parse().unwrap();
        let length: Vary = "length=128,256".parse().unwrap();
        assert_eq!(arguments(&own, &[option.set(4)]), ["--lr", "1", "--batch-size", "4"]);
        assert_eq!(
            arguments(&["data.batch={batch-size}".to_owned()], &[length.set(128), option.set(4)]),
            ["data.batch=4", "--length", "128"]
        );
        let variable: Vary = "env:BATCH=1..8".parse().unwrap();
        assert_eq!(arguments(&own, &[variable.set(4)]), own);
        assert_eq!(environment(&[option.set(1), variable.set(4)]), [("BATCH".to_owned(), "4".to_owned())]);
    }

    #[test]
    fn settings_and_numbers_are_told_apart() {
        let settings = |text: &str| match text.parse::<VaryOption>() {
            Ok(VaryOption::Settings(settings)) => settings,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(settings("conf=expandable_segments:True"), ["expandable_segments:True"]);
        assert_eq!(
            settings("conf=max_split_size_mb:64,garbage_collection_threshold:0.8; backend:native;"),
            ["max_split_size_mb:64,garbage_collection_threshold:0.8", "backend:native"]
        );
        assert!(matches!("conf=1..8".parse(), Ok(VaryOption::Numbers(_))));
        for wrong in ["batch-size", "=1..8", "env:=1..8", "batch-size=8..1", "conf=", "conf=;"] {
            assert!(wrong.parse::<VaryOption>().is_err(), "{wrong}");
        }
    }
}
