//! One allocator for each device, made when the device is first used and kept until the process ends.

use std::ffi::c_int;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use blockyard_allocator::{CachingAllocator, SharedAllocator};
use blockyard_device_cuda::CudaDevice;
use blockyard_rules::{AllocatorConfig, Environment, Release};

use crate::error::PluginError;
use crate::history::HistorySink;

/// The most devices, which is more than PyTorch is built for.
const MAX_DEVICES: usize = 128;

/// The allocator of a device, with its history.
pub(crate) type Allocator = CachingAllocator<CudaDevice, HistorySink>;

/// A device in use.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) index: c_int,
    pub(crate) allocator: SharedAllocator<CudaDevice, HistorySink>,
    /// The memory fraction that a program set, as the bits of an `f64`; that of 1 for no limit.
    fraction: AtomicU64,
}

// Never dropped: when a process ends, the driver may be unloaded before this library, and releases all memory
// itself.
static DEVICES: [OnceLock<Device>; MAX_DEVICES] = [const { OnceLock::new() }; MAX_DEVICES];

impl Device {
    /// The device of that number, which is opened at its first use.
    #[inline]
    pub(crate) fn get_or_open(index: c_int) -> Result<&'static Self, PluginError> {
        match Self::opened(index) {
            Some(device) => Ok(device),
            None => Self::open(index),
        }
    }

    /// The device of that number; `None` if it was not opened yet.
    #[inline]
    pub(crate) fn opened(index: c_int) -> Option<&'static Self> {
        DEVICES.get(usize::try_from(index).ok()?)?.get()
    }

    /// All devices in use, by ascending number.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        DEVICES.iter().filter_map(OnceLock::get)
    }

    #[cold]
    fn open(index: c_int) -> Result<&'static Self, PluginError> {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let (place, number) = usize::try_from(index)
            .ok()
            .and_then(|place| DEVICES.get(place))
            .zip(u32::try_from(index).ok())
            .ok_or(PluginError::NoSuchDevice(index))?;
        if let Some(device) = place.get() {
            return Ok(device);
        }
        let config = settings()?;
        let fraction = config.per_process_memory_fraction();
        let mut device =
            CudaDevice::open(number).map_err(|source| PluginError::Open { device: index, source })?;
        #[expect(unsafe_code, reason = "only PyTorch knows what streams it passes")]
        // SAFETY: PyTorch passes handles of the runtime, which are the driver's, and never destroys the
        // streams of its pools.
        unsafe {
            device.use_handles_as_streams();
        }
        let allocator = SharedAllocator::new(CachingAllocator::new(device, config, HistorySink::default()));
        let fraction = AtomicU64::new(fraction.to_bits());
        Ok(place.get_or_init(|| Self { index, allocator, fraction }))
    }

    /// Limits the reserved bytes to a fraction of the device's memory.
    pub(crate) fn set_fraction(&self, fraction: f64) -> Result<(), PluginError> {
        self.allocator
            .with(|allocator| allocator.set_memory_fraction(fraction))
            .map_err(PluginError::Allocator)?;
        self.fraction.store(fraction.to_bits(), Ordering::Relaxed);
        Ok(())
    }

    /// The settings in force, with the memory fraction that a program set.
    pub(crate) fn settings_text(&self) -> String {
        let (mut text, set_before) = self.allocator.with(|allocator| {
            let config = allocator.config();
            (config.text().to_owned(), config.per_process_memory_fraction())
        });
        let fraction = f64::from_bits(self.fraction.load(Ordering::Relaxed));
        if fraction.to_bits() != set_before.to_bits() {
            if !text.is_empty() {
                text.push(',');
            }
            let _ = write!(text, "per_process_memory_fraction:{fraction}");
        }
        text
    }
}

/// The release of PyTorch whose rules hold, after the Python module has named the PyTorch that runs.
static RELEASE: OnceLock<Release> = OnceLock::new();

/// Follows the release of this version of PyTorch, or the nearest that is known. The first version of a
/// process counts.
pub(crate) fn follow(version: &str) {
    RELEASE.get_or_init(|| Release::nearest(version));
}

/// The settings of the environment, as the release of the process reads them.
pub(crate) fn settings() -> Result<AllocatorConfig, PluginError> {
    let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
    let environment = Environment::read(variable);
    environment.config_under(RELEASE.get().copied().unwrap_or_default()).map_err(|source| {
        PluginError::RunSettings {
            variable: environment.settings_variable().unwrap_or("the environment"),
            source,
        }
    })
}
