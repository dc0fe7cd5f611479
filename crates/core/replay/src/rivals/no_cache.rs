//! No caching: each request is a call of the device.

use crate::rivals::per_stream::{PerStream, Policy, RivalDevice};

/// No caching at all: every request is a call of the device.
pub type NoCache = PerStream<NoCachePolicy>;

/// The policy of [`NoCache`].
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCachePolicy;

impl Policy for NoCachePolicy {
    fn allocate(&mut self, device: &mut RivalDevice, size: u64) -> Option<(u64, u64)> {
        device.0.take(size).map(|addr| (addr, size))
    }

    fn free(&mut self, device: &mut RivalDevice, _addr: u64, size: u64) {
        device.0.give_back(size);
    }

    fn empty_cache(&mut self, _device: &mut RivalDevice) {}
}
