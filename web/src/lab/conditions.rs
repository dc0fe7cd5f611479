//! The settings, the capacity and the limit of a question, from the fields of the panel.

use blockyard_lab::{Conditions, gpu_for_pytorch, pytorch_memory};
use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, ConfigError, Release};
use blockyard_workload::{ParseErrorKind, parse_rounded_size};
use leptos::prelude::*;
use thiserror::Error;

use super::LabSignals;
use crate::session::Feature;

/// Why a field of the panel cannot be read.
#[derive(Debug, Error)]
pub(crate) enum ConditionsError {
    /// The settings are wrong, in PyTorch's words.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The capacity or the limit is not a size.
    #[error(transparent)]
    Size(#[from] ParseErrorKind),
    /// A number without a unit, which no person means as bytes.
    #[error("{0} has no unit: write {0} MiB, {0} GiB or {0} B")]
    NoUnit(String),
    /// A device that is neither a size nor a GPU.
    #[error("{0} is neither a size, as 24 GiB, nor a GPU that is known here, as T4")]
    NoDevice(String),
    /// A device that has no more than the driver and the libraries take.
    #[error("of {0} the CUDA context and libraries leave nothing for PyTorch")]
    NothingLeft(Bytes),
}

/// The bytes of a GPU that PyTorch can reserve, from a text that names the GPU or its whole memory; `None`
/// for an empty text.
fn optional_gpu(text: &str) -> Result<Option<Bytes>, ConditionsError> {
    match optional_size(text) {
        Ok(None) => Ok(None),
        Ok(Some(size)) => match pytorch_memory(size) {
            Bytes::ZERO => Err(ConditionsError::NothingLeft(size)),
            left => Ok(Some(left)),
        },
        Err(ConditionsError::NoUnit(text)) => Err(ConditionsError::NoUnit(text)),
        Err(_) => match gpu_for_pytorch(text) {
            Some(left) => Ok(Some(left)),
            None => Err(ConditionsError::NoDevice(text.trim().to_owned())),
        },
    }
}

/// A size that may be left out.
fn optional_size(text: &str) -> Result<Option<Bytes>, ConditionsError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let has_unit = text.chars().any(char::is_alphabetic);
    let size = parse_rounded_size(text)?;
    if has_unit { Ok(Some(size)) } else { Err(ConditionsError::NoUnit(text.to_owned())) }
}

impl Feature<LabSignals> {
    /// The release whose rules hold: the chosen one, else that of the run. Reads signals.
    pub(crate) fn rules(self) -> Release {
        let own = self.session.run.with(|run| run.recording.info().release);
        self.release.get().map_or(own, |release| release.with_dialect_of(own))
    }

    /// The conditions of the panel's fields.
    ///
    /// # Errors
    ///
    /// [`ConditionsError`] if a field cannot be read.
    pub(crate) fn conditions(self) -> Result<Conditions, ConditionsError> {
        let conf = self.conf.get_untracked().trim().to_owned();
        AllocatorConfig::parse(&conf, untrack(|| self.rules()))?;
        let own = self.own_conditions()?;
        Ok(Conditions { conf, ..own })
    }

    /// The conditions of the panel's fields, as [`Feature::conditions`] reads them, but with the settings of
    /// the run itself.
    pub(super) fn own_conditions(self) -> Result<Conditions, ConditionsError> {
        let conf = self.session.run.with_untracked(|run| run.recording.info().conf.clone());
        // The GPU of a program is known, so no limit is inferred from served and refused requests; a memory
        // fraction that the program sets counts as its limit.
        let is_limited = || {
            self.session.run.with_untracked(|run| run.series.process_limit(run.series.step_count()).is_some())
        };
        let own_capacity = || {
            let shown = untrack(|| self.session.shown_program()).filter(|_| !is_limited());
            shown.map(|result| result.run.recording.capacity())
        };
        let typed = self.capacity.get_untracked();
        // The device of a workload is not a GPU, so no non-PyTorch memory is subtracted.
        let typed =
            if untrack(|| self.is_about_gpu()) { optional_gpu(&typed)? } else { optional_size(&typed)? };
        let capacity = typed.or_else(own_capacity);
        let limit = optional_size(&self.limit.get_untracked())?;
        Ok(Conditions { conf, capacity, limit, release: self.release.get_untracked() })
    }

    /// Whether the run is a program's run on a GPU, and not a workload. Reads signals.
    pub(crate) fn is_about_gpu(self) -> bool {
        self.session.shows_recording() || self.session.shown_program().is_some()
    }

    /// The conditions under which the reader asked about the shown run, in the order of asking, each once.
    pub(crate) fn tried(self) -> Vec<Conditions> {
        let answers = untrack(|| self.answers()).unwrap_or_default();
        let rows = answers.what_if.iter().rev().flat_map(|found| &found.rows);
        let mut tried: Vec<Conditions> = Vec::new();
        for row in rows {
            if !tried.contains(&row.conditions) {
                tried.push(row.conditions.clone());
            }
        }
        tried
    }

    /// Empties the fields of the device, the limit and the release, and makes the verdict for the run as it
    /// was.
    pub(crate) fn forget_given(self) {
        self.empty_fields();
        self.make_verdict();
    }

    /// Empties the fields of the device, the limit and the release: values that were given for one file do
    /// not apply to another.
    pub(crate) fn empty_fields(self) {
        self.capacity.set(String::new());
        self.limit.set(String::new());
        self.release.set(None);
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn a_number_without_a_unit_is_refused_with_what_to_write() {
        let refused = optional_size("1260").map_err(|why| why.to_string());
        assert_eq!(refused, Err("1260 has no unit: write 1260 MiB, 1260 GiB or 1260 B".to_owned()));
        assert!(matches!(optional_size("1262 MiB"), Ok(Some(size)) if size == Bytes::mib(1262)));
        assert!(matches!(optional_size(" "), Ok(None)));
        assert!(matches!(optional_size("many"), Err(ConditionsError::Size(_))));
    }

    #[test]
    fn a_device_is_a_size_or_a_gpu_and_the_context_is_taken_off() {
        let left = |text: &str| optional_gpu(text).map_err(|why| why.to_string());
        assert_eq!(left("24 GiB"), Ok(Some(pytorch_memory(Bytes::gib(24)))));
        assert_eq!(left("24 GB"), Ok(Some(pytorch_memory(Bytes::new(24_000_000_000)))));
        assert_eq!(left("Tesla T4"), Ok(gpu_for_pytorch("t4")));
        assert_eq!(left(""), Ok(None));
        assert_eq!(left("24"), Err("24 has no unit: write 24 MiB, 24 GiB or 24 B".to_owned()));
        let why = "of 700 MiB the CUDA context and libraries leave nothing for PyTorch";
        assert_eq!(left("700 MiB"), Err(why.to_owned()));
        let why = "B9000 is neither a size, as 24 GiB, nor a GPU that is known here, as T4";
        assert_eq!(left("B9000"), Err(why.to_owned()));
    }
}
