//! The conditions of a replay: settings, capacity, limit, release.

use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, ConfigError, Release};
use serde::{Deserialize, Serialize};

use crate::Run;

/// Under what a run is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conditions {
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// All bytes of the device; `None` for those of the run's own device. A capacity without a limit replaces the limit that the
    /// file implies.
    pub capacity: Option<Bytes>,
    /// The most that may be reserved, as a memory fraction limits it; `None` for the limit that the run's file implies, if it
    /// implies one: [`Run::limit_under`].
    pub limit: Option<Bytes>,
    /// The release of PyTorch whose rules hold; `None` for the run's own.
    pub release: Option<Release>,
}

impl Conditions {
    /// A setting on the run's own device, under the limit that its file implies.
    #[must_use]
    pub fn with_conf(conf: &str) -> Self {
        Self { conf: conf.to_owned(), ..Self::default() }
    }

    /// The same under another setting.
    #[must_use]
    pub fn and_conf(&self, conf: &str) -> Self {
        Self { conf: conf.to_owned(), ..self.clone() }
    }

    /// The same under another limit.
    #[must_use]
    pub fn and_limit(&self, limit: Bytes) -> Self {
        Self { limit: Some(limit), ..self.clone() }
    }

    /// The same under the rules of another release.
    #[must_use]
    pub fn and_release(&self, release: Release) -> Self {
        Self { release: Some(release), ..self.clone() }
    }

    /// The release that counts for a run.
    #[must_use]
    pub fn release_of(&self, run: &Run) -> Release {
        self.release.unwrap_or(run.release)
    }

    /// The settings as the release that counts reads them.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for settings that are wrong, or that the release does not have.
    pub fn config(&self, run: &Run) -> Result<AllocatorConfig, ConfigError> {
        AllocatorConfig::parse(&self.conf, self.release_of(run))
    }

    /// The capacity that counts for a run.
    #[must_use]
    pub fn capacity_of(&self, run: &Run) -> Bytes {
        self.capacity.unwrap_or(run.capacity)
    }
}
