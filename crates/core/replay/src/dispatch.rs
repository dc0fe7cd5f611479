//! Sends each request of a workload to an allocator.

use std::collections::BTreeMap;

use blockyard_allocator::{AllocError, BackendAllocation, BackendAllocator, PoolOptions};
use blockyard_device::{Advance, DeviceMemory};
use blockyard_record::{DeviceAddr, EventSink, PoolId};
use blockyard_rules::ConfigError;
use blockyard_workload::{Request, TensorId};

/// Calls an allocator for each request, and keeps the allocations.
#[derive(Debug)]
pub(crate) struct Dispatcher<D: DeviceMemory, S: EventSink> {
    pub(crate) allocator: BackendAllocator<D, S>,
    /// The allocation of each tensor.
    live: Vec<Option<BackendAllocation>>,
    /// The allocator's number of each memory pool that the workload created or entered.
    user_pools: BTreeMap<PoolId, PoolId>,
}

/// The effect of a request that did not fail. It has no text: a replay runs millions of requests and reads none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestResult {
    /// Allocated at this address; 0 for a request of zero bytes.
    Allocated(DeviceAddr),
    Done,
    /// The tensor has no allocation, because its request failed.
    Skipped(TensorId),
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum DispatchError {
    Allocator(AllocError),
    Config(ConfigError),
}

impl From<AllocError> for DispatchError {
    fn from(error: AllocError) -> Self {
        Self::Allocator(error)
    }
}

impl<D: DeviceMemory + Advance, S: EventSink> Dispatcher<D, S> {
    /// An allocator with the allocations `live`, which belong to the first tensors in order.
    pub(crate) fn new(allocator: BackendAllocator<D, S>, live: Vec<Option<BackendAllocation>>) -> Self {
        Self { allocator, live, user_pools: BTreeMap::new() }
    }

    /// Runs a request; `settings` returns the text of [`Request::Set`].
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(crate) fn perform<'a>(
        &mut self,
        request: &Request,
        settings: impl FnOnce(u32) -> Option<&'a str>,
    ) -> Result<RequestResult, DispatchError> {
        match *request {
            Request::Allocate { tensor, size, stream } => {
                let allocation = match self.allocator.allocate(size, stream) {
                    Ok(allocation) => allocation,
                    Err(error) => return Err(self.allocation_failed(error)),
                };
                let addr = allocation.addr();
                self.keep(tensor, allocation);
                Ok(RequestResult::Allocated(addr))
            }
            Request::Free { tensor } => {
                let place = self.live.get_mut(tensor.get() as usize);
                let Some(allocation) = place.and_then(Option::take) else {
                    return Ok(RequestResult::Skipped(tensor));
                };
                self.allocator.free(allocation)?;
                Ok(RequestResult::Done)
            }
            _ => self.dispatch_infrequent(request, settings),
        }
    }

    #[cold]
    fn allocation_failed(&mut self, error: AllocError) -> DispatchError {
        if matches!(error, AllocError::OutOfMemory(_) | AllocError::MallocAsyncOutOfMemory(_)) {
            self.allocator.device_mut().end_failed_request();
        }
        error.into()
    }

    /// Runs a request that is not an allocation or a free. This is a separate function, so that the caller
    /// decides between the two frequent requests with a branch, which is faster than a jump table.
    #[inline(never)]
    fn dispatch_infrequent<'a>(
        &mut self,
        request: &Request,
        settings: impl FnOnce(u32) -> Option<&'a str>,
    ) -> Result<RequestResult, DispatchError> {
        match *request {
            // The caller runs these.
            Request::Allocate { .. } | Request::Free { .. } => {}
            Request::RecordStream { tensor, stream } => {
                let Some(Some(allocation)) = self.live.get(tensor.get() as usize) else {
                    return Ok(RequestResult::Skipped(tensor));
                };
                self.allocator.record_stream(allocation, stream)?;
            }
            Request::Advance { stream } => self.allocator.device_mut().advance_streams(stream),
            Request::EmptyCache => self.allocator.empty_cache()?,
            Request::SetFraction { fraction } => self.allocator.set_memory_fraction(fraction)?,
            Request::CreatePool { .. }
            | Request::EnterPool { .. }
            | Request::LeavePool { .. }
            | Request::DestroyPool { .. } => self.perform_pool_request(request)?,
            Request::Set { settings: number } => {
                // A workload has a text for each of its numbers; without one, no setting changes.
                let text = settings(number).unwrap_or_default();
                self.allocator.apply_settings(text).map_err(DispatchError::Config)?;
            }
            Request::ResetPeak => self.allocator.reset_peak_stats(),
            Request::ResetAccumulated => self.allocator.reset_accumulated_stats(),
            Request::Snapshot => self.allocator.record_snapshot()?,
        }
        Ok(RequestResult::Done)
    }

    /// Runs a request about memory pools.
    fn perform_pool_request(&mut self, request: &Request) -> Result<(), AllocError> {
        match *request {
            Request::CreatePool { pool_id, never_splits, serves_on_oom } => {
                let made = self.allocator.create_pool(PoolOptions { never_splits, serves_on_oom })?;
                self.user_pools.insert(pool_id, made);
                Ok(())
            }
            Request::EnterPool { pool_id } => self.enter_pool(pool_id),
            Request::LeavePool { pool_id } => {
                // `use_mem_pool` releases its own use of the pool, not the use of the owner.
                let pool_id = self.number_of(pool_id);
                self.allocator.end_allocate_to_pool(pool_id)?;
                self.allocator.release_pool(pool_id)
            }
            Request::DestroyPool { pool_id } => self.allocator.destroy_pool(self.number_of(pool_id)),
            _ => Ok(()),
        }
    }

    fn enter_pool(&mut self, pool_id: PoolId) -> Result<(), AllocError> {
        // A program's pool keeps its memory after a scope ends: the use of the first scope stands for the use
        // of the owner.
        if pool_id.user > 0 && self.user_pools.insert(pool_id, self.number_of(pool_id)).is_none() {
            self.allocator.begin_allocate_to_pool(pool_id, None)?;
            self.allocator.end_allocate_to_pool(pool_id)?;
        }
        self.allocator.begin_allocate_to_pool(self.number_of(pool_id), None)
    }

    fn number_of(&self, pool_id: PoolId) -> PoolId {
        self.user_pools.get(&pool_id).copied().unwrap_or(pool_id)
    }

    fn keep(&mut self, tensor: TensorId, allocation: BackendAllocation) {
        let index = tensor.get() as usize;
        if index >= self.live.len() {
            self.live.resize_with(index + 1, || None);
        }
        self.live[index] = Some(allocation);
    }
}
