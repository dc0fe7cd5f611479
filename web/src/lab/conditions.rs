//! The settings, the capacity and the limit of a question, from the fields of the panel.

use blockyard_lab::Conditions;
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
    /// The settings, in PyTorch's words.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The capacity or the limit.
    #[error(transparent)]
    Size(#[from] ParseErrorKind),
}

/// A size that may be left out.
fn optional_size(text: &str) -> Result<Option<Bytes>, ParseErrorKind> {
    let text = text.trim();
    if text.is_empty() { Ok(None) } else { parse_rounded_size(text).map(Some) }
}

impl Feature<LabSignals> {
    /// The conditions of the panel's fields.
    ///
    /// # Errors
    ///
    /// [`ConditionsError`] if a field cannot be read.
    pub(crate) fn conditions(self) -> Result<Conditions, ConditionsError> {
        let conf = self.conf.get_untracked().trim().to_owned();
        AllocatorConfig::parse(&conf, self.release.get_untracked().unwrap_or(Release::LATEST))?;
        let own = self.own_conditions()?;
        Ok(Conditions { conf, ..own })
    }

    /// As [`Feature::conditions`], but with the settings of the run itself.
    pub(super) fn own_conditions(self) -> Result<Conditions, ConditionsError> {
        let conf = self.session.run.with_untracked(|run| run.recording.info().config.clone());
        // A snapshot of a program does not say how large its GPU is; the run does.
        let own_capacity =
            || untrack(|| self.session.shown_program()).map(|result| result.run.recording.capacity());
        let capacity = optional_size(&self.capacity.get_untracked())?.or_else(own_capacity);
        let limit = optional_size(&self.limit.get_untracked())?;
        Ok(Conditions { conf, capacity, limit, release: self.release.get_untracked() })
    }
}
