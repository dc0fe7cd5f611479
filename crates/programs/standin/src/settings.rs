//! The GPUs that the stand-in stands for, by environment variables. Without these variables: one H200.

use std::env;
use std::sync::OnceLock;

use crate::addresses::DriverAddressOrder;

/// The properties of the devices, which are all equal, and the versions of CUDA's libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) devices: i32,
    pub(crate) name: String,
    /// Bytes of a device's memory.
    pub(crate) memory: u64,
    pub(crate) multiprocessors: i32,
    /// Threads that one multiprocessor holds.
    pub(crate) threads: i32,
    /// Bytes of shared memory that one multiprocessor has.
    pub(crate) shared: i32,
    /// The compute capability: `major` and `minor`.
    pub(crate) major: i32,
    pub(crate) minor: i32,
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
        let capability = variable("STANDIN_CAPABILITY").unwrap_or_default();
        let (major, minor) = capability
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .unwrap_or((9, 0));
        // Kilobytes of shared memory by capability, from CUDA's table of technical specifications.
        let shared = match (major, minor) {
            (7, 5) => 64,
            (8, 0 | 7) => 164,
            (8 | 12, _) => 100,
            (7, _) => 96,
            _ => 228,
        };
        Self {
            devices: small("STANDIN_DEVICES", 1).clamp(1, 64),
            name: variable("STANDIN_NAME").unwrap_or_else(|| "NVIDIA H200".to_owned()),
            memory: number("STANDIN_MEMORY", 150_109_880_320),
            multiprocessors: small("STANDIN_MULTIPROCESSORS", 132),
            threads: small("STANDIN_THREADS", 2048),
            shared: shared * 1024,
            major,
            minor,
            cuda: small("STANDIN_CUDA", 13_000),
            cudnn: usize::try_from(number("STANDIN_CUDNN", 91_900)).unwrap_or(91_900),
            counts_non_pytorch: variable("STANDIN_NON_PYTORCH").as_deref() == Some("1"),
            addresses: match variable("STANDIN_ADDRESSES").as_deref() {
                Some("rising") => DriverAddressOrder::Rising,
                Some("falling") => DriverAddressOrder::Falling,
                _ => DriverAddressOrder::Driver,
            },
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
    use super::Settings;
    use crate::addresses::DriverAddressOrder;

    #[test]
    fn variables_say_which_gpu() {
        let h200 = Settings::of(|_| None);
        assert_eq!((h200.devices, h200.memory, h200.major), (1, 150_109_880_320, 9));
        let other = Settings::of(|name| {
            let value = match name {
                "STANDIN_DEVICES" => "2",
                "STANDIN_MEMORY" => "1000",
                "STANDIN_CAPABILITY" => "7.5",
                "STANDIN_CUDA" => "no number",
                _ => return None,
            };
            Some(value.to_owned())
        });
        assert_eq!((other.devices, other.memory, other.major, other.minor), (2, 1000, 7, 5));
        assert_eq!((other.cuda, other.shared), (13_000, 65_536));
        let order = |text: &str| {
            Settings::of(|name| (name == "STANDIN_ADDRESSES").then(|| text.to_owned())).addresses
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
