use blockyard_device::VirtualDevice;
use blockyard_record::{Bytes, EventSink};
use blockyard_replay::{AllocatorConfig, Replayer};
use serde::{Deserialize, Serialize};

use crate::{LabError, Run};

/// Under what a run is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conditions {
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// All bytes of the device; `None` for those of the run's own device.
    pub capacity: Option<Bytes>,
    /// The most that may be reserved, as a memory fraction limits it; `None` for the run's own limit, if it has one.
    pub limit: Option<Bytes>,
}

impl Conditions {
    /// A setting on the run's own device, under its own limit.
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

    /// The limit that counts for a run.
    #[must_use]
    pub fn limit_of(&self, run: &Run) -> Option<Bytes> {
        self.limit.or(run.limit)
    }

    /// The capacity that counts for a run.
    #[must_use]
    pub fn capacity_of(&self, run: &Run) -> Bytes {
        self.capacity.unwrap_or(run.capacity)
    }

    /// A replayer of the run before its first request.
    pub(crate) fn replayer<'a, S: EventSink>(
        &self,
        run: &'a Run,
        config: &AllocatorConfig,
        sink: S,
    ) -> Result<Replayer<'a, VirtualDevice, S>, LabError> {
        let capacity = self.capacity_of(run);
        let mut replayer = Replayer::new(run.plan(), config, VirtualDevice::new(capacity), sink)?;
        if let Some(limit) = self.limit_of(run) {
            replayer.set_memory_fraction(fraction(limit, capacity))?;
        }
        Ok(replayer)
    }
}

/// The share of `capacity` that limits the reserved bytes to `limit`, to the byte.
#[expect(clippy::cast_precision_loss, reason = "the allocator multiplies doubles and cuts off")]
fn fraction(limit: Bytes, capacity: Bytes) -> f64 {
    // Half a byte more, so that cutting off the product gives the limit again.
    ((limit.get() as f64 + 0.5) / capacity.get().max(1) as f64).min(1.0)
}
