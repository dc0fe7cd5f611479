use blockyard_record::Bytes;
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
}

impl Conditions {
    /// A setting on the run's own device, under the limit that its file implies.
    #[must_use]
    pub fn with_conf(conf: &str) -> Self {
        Self { conf: conf.to_owned(), capacity: None, limit: None }
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

    /// The capacity that counts for a run.
    #[must_use]
    pub fn capacity_of(&self, run: &Run) -> Bytes {
        self.capacity.unwrap_or(run.capacity)
    }
}
