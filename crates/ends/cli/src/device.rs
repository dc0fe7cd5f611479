//! The device that a command runs on, by its name on the command line.

use std::str::FromStr;

use anyhow::{Context, bail};
use blockyard_device_cuda::CudaDevice;

/// A device as it is named on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DeviceName {
    /// No hardware.
    #[default]
    Virtual,
    /// The CUDA device with this index.
    Cuda(u32),
}

impl FromStr for DeviceName {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.split_once(':') {
            None if text == "virtual" => Ok(Self::Virtual),
            None if text == "cuda" => Ok(Self::Cuda(0)),
            Some(("cuda", index)) => {
                index.parse().map(Self::Cuda).with_context(|| format!("`{index}` is not a device number"))
            }
            _ => bail!("expected `virtual`, or `cuda:` and a device number"),
        }
    }
}

pub(crate) fn open_cuda(index: u32) -> anyhow::Result<CudaDevice> {
    CudaDevice::open(index).with_context(|| format!("cuda:{index}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_as_in_pytorch() {
        assert_eq!("virtual".parse::<DeviceName>().unwrap(), DeviceName::Virtual);
        assert_eq!("cuda".parse::<DeviceName>().unwrap(), DeviceName::Cuda(0));
        assert_eq!("cuda:3".parse::<DeviceName>().unwrap(), DeviceName::Cuda(3));
        for wrong in ["", "cuda:", "cuda:-1", "cuda:x", "gpu", "virtual:0"] {
            assert!(wrong.parse::<DeviceName>().is_err(), "{wrong}");
        }
    }
}
