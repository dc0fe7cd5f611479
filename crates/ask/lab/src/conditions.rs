//! The conditions of a replay: settings, capacity, limit, release.

use blockyard_gpus::{GpuProfile, context_and_libraries, pytorch_memory};
use blockyard_record::Bytes;
use blockyard_rules::{AllocatorConfig, ConfigError, Release};
use serde::{Deserialize, Serialize};

use crate::Run;

/// The bytes that the GPU with this name leaves for PyTorch: all its memory without the CUDA context and
/// libraries, as the verdict and `fit` count. `None` for a text that does not name a GPU.
pub fn gpu_for_pytorch(name: &str) -> Option<Bytes> {
    GpuProfile::from_words(name).map(|gpu| pytorch_memory(gpu.total_memory))
}

/// A device in words, by the bytes that it leaves for PyTorch: `Tesla T4 (14.01 GiB for PyTorch)`, `a device
/// of 24 GiB (23.27 GiB for PyTorch)`. Where the whole device has no size that people write, `a device with
/// 10 GiB for PyTorch`.
pub fn device_text(for_pytorch: Bytes) -> String {
    let total = for_pytorch.saturating_add(context_and_libraries());
    if let Some(gpu) = GpuProfile::ALL.iter().find(|gpu| gpu.total_memory == total) {
        return format!("{} ({for_pytorch} for PyTorch)", gpu.name);
    }
    let exact = total.exact_text();
    if ["MiB", "GiB", "TiB"].iter().any(|unit| exact.ends_with(unit)) {
        return format!("a device of {exact} ({for_pytorch} for PyTorch)");
    }
    match gigabytes(total) {
        Some(gigabytes) => format!("a device of {gigabytes} ({total}, of which {for_pytorch} for PyTorch)"),
        None => format!("a device with {} for PyTorch", for_pytorch.exact_text()),
    }
}

/// A size in GB with at most one decimal; `None` if this text is not the size to the byte.
fn gigabytes(size: Bytes) -> Option<String> {
    const TENTH: u64 = 100_000_000;
    let tenths = size.get().checked_div(TENTH).filter(|_| size.get().is_multiple_of(TENTH))?;
    let (whole, tenth) = (tenths / 10, tenths % 10);
    Some(if tenth == 0 { format!("{whole} GB") } else { format!("{whole}.{tenth} GB") })
}

/// The conditions of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conditions {
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// All bytes of the device; `None` for those of the run's own device. A capacity without a limit replaces
    /// the limit that the file implies.
    pub capacity: Option<Bytes>,
    /// The most that may be reserved, as a memory fraction limits it; `None` for the limit that the run's
    /// file implies, if it implies one: [`Run::limit_under`].
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

    /// These conditions with another setting.
    #[must_use]
    pub fn and_conf(&self, conf: &str) -> Self {
        Self { conf: conf.to_owned(), ..self.clone() }
    }

    /// These conditions with another limit.
    #[must_use]
    pub fn and_limit(&self, limit: Bytes) -> Self {
        Self { limit: Some(limit), ..self.clone() }
    }

    /// These conditions with the rules of another release.
    #[must_use]
    pub fn and_release(&self, release: Release) -> Self {
        Self { release: Some(release), ..self.clone() }
    }

    /// The release whose rules hold for a run under these conditions.
    pub fn release_of(&self, run: &Run) -> Release {
        self.release.map_or(run.release, |release| release.with_dialect_of(run.release))
    }

    /// The settings of a run under these conditions, as the release reads them.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for settings that are wrong, or that the release does not have.
    pub fn config(&self, run: &Run) -> Result<AllocatorConfig, ConfigError> {
        AllocatorConfig::parse(&self.conf, self.release_of(run))
    }

    /// The capacity of the device for a run under these conditions.
    pub fn capacity_of(&self, run: &Run) -> Bytes {
        self.capacity.unwrap_or(run.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_with_what_it_has_for_pytorch() {
        let typed = |total: u64| device_text(pytorch_memory(Bytes::new(total)));
        assert_eq!(typed(24 << 30), "a device of 24 GiB (23.27 GiB for PyTorch)");
        assert_eq!(typed(24_000_000_000), "a device of 24 GB (22.35 GiB, of which 21.62 GiB for PyTorch)");
        assert_eq!(
            gpu_for_pytorch("t4").map(device_text).unwrap_or_default(),
            "Tesla T4 (14.01 GiB for PyTorch)"
        );
        // A capacity that the caller gives is PyTorch's memory, so nothing is subtracted from it.
        assert_eq!(device_text(Bytes::gib(10)), "a device with 10 GiB for PyTorch");
        assert_eq!(gpu_for_pytorch("B9000"), None);
    }
}
