//! The GPUs that the stand-in stands for, by environment variables. Without these variables: one H200.

use std::env;
use std::sync::OnceLock;

use blockyard_gpus::{Architecture, DriverAddressOrder, GpuProfile};
use blockyard_hooks::variables;
use blockyard_record::Bytes;

/// The properties of the devices, which are all equal, and the versions of CUDA's libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) devices: i32,
    pub(crate) gpu: GpuProfile,
    /// CUDA's version as `cudaRuntimeGetVersion` counts it: 13000 is 13.0.
    pub(crate) cuda: i32,
    /// cuDNN's version as `cudnnGetVersion` counts it.
    pub(crate) cudnn: usize,
    /// Whether the bytes that the driver and CUDA's libraries take count as taken of a device's memory
    /// (`STANDIN_NON_PYTORCH=1`).
    pub(crate) counts_non_pytorch: bool,
    /// The order of the addresses of segments (`STANDIN_ADDRESSES`: `driver`, `rising` or `falling`).
    pub(crate) addresses: DriverAddressOrder,
}

impl Settings {
    /// The settings of these variables.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str, otherwise: u64| {
            variable(name).and_then(|text| text.trim().parse().ok()).unwrap_or(otherwise)
        };
        let small = |name: &str, otherwise: i32| {
            i32::try_from(number(name, otherwise.unsigned_abs().into())).unwrap_or(otherwise)
        };
        let gpu =
            variable(variables::GPU).and_then(|id| GpuProfile::from_id(&id)).unwrap_or(GpuProfile::H200);
        let total_memory = Bytes::new(number(variables::MEMORY, gpu.total_memory.get()));
        Self {
            devices: small(variables::DEVICES, 1).clamp(1, 64),
            gpu: GpuProfile { total_memory, ..gpu },
            cuda: small(variables::CUDA, 13_000),
            cudnn: usize::try_from(number(variables::CUDNN, 91_900)).unwrap_or(91_900),
            counts_non_pytorch: variable(variables::NON_PYTORCH).as_deref() == Some("1"),
            addresses: variable(variables::ADDRESSES)
                .and_then(|name| DriverAddressOrder::ALL.into_iter().find(|order| order.name() == name))
                .unwrap_or_default(),
        }
    }

    /// Bytes of a device's memory.
    pub(crate) fn memory(&self) -> u64 {
        self.gpu.total_memory.get()
    }

    /// The compute capability, major and minor.
    pub(crate) fn capability(&self) -> (i32, i32) {
        let (major, minor) = self.gpu.architecture.capability();
        (major.cast_signed(), minor.cast_signed())
    }

    /// The shared memory of one multiprocessor, in bytes. Source: CUDA's table of technical specifications.
    pub(crate) fn shared(&self) -> i32 {
        let kibibytes = match self.gpu.architecture {
            Architecture::Turing => 64,
            Architecture::Ampere => 164,
            Architecture::Ada => 100,
            Architecture::Hopper => 228,
        };
        kibibytes * 1024
    }

    /// The most blocks of a kernel on one multiprocessor. Source: the same table.
    pub(crate) fn max_blocks(&self) -> i32 {
        match self.gpu.architecture {
            Architecture::Turing => 16,
            Architecture::Ada => 24,
            Architecture::Ampere | Architecture::Hopper => 32,
        }
    }

    /// Whether a kernel can have clusters of blocks.
    pub(crate) fn has_clusters(&self) -> bool {
        match self.gpu.architecture {
            Architecture::Turing | Architecture::Ampere | Architecture::Ada => false,
            Architecture::Hopper => true,
        }
    }
}

/// The settings of this process.
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| Settings::of(|name| env::var(name).ok()))
}

#[cfg(test)]
mod tests {
    use blockyard_gpus::GpuProfile;

    use super::{DriverAddressOrder, Settings, variables};

    #[test]
    fn variables_say_which_gpu() {
        let h200 = Settings::of(|_| None);
        assert_eq!((h200.devices, &h200.gpu), (1, &GpuProfile::H200));
        let other = Settings::of(|name| {
            let value = match name {
                variables::DEVICES => "2",
                variables::MEMORY => "1000",
                variables::GPU => "t4",
                variables::CUDA => "no number",
                _ => return None,
            };
            Some(value.to_owned())
        });
        assert_eq!((other.devices, other.memory(), other.capability()), (2, 1000, (7, 5)));
        assert_eq!((other.cuda, other.shared(), other.max_blocks()), (13_000, 65_536, 16));
        let order = |text: &str| {
            Settings::of(|name| (name == variables::ADDRESSES).then(|| text.to_owned())).addresses
        };
        assert_eq!(
            ["driver", "rising", "falling", ""].map(order),
            [
                DriverAddressOrder::Driver,
                DriverAddressOrder::Rising,
                DriverAddressOrder::Falling,
                DriverAddressOrder::Driver
            ]
        );
    }
}
