//! C++ values that PyTorch passes to the hooks of memory pools, as libstdc++ on 64-bit Linux lays them out.

use std::ffi::{c_int, c_void};

use blockyard_record::{PoolId, StreamId};

use crate::error::PluginError;

/// A `c10::cuda::MempoolId_t`: a `std::pair` of two numbers, passed like any struct of two.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MempoolId {
    /// The number of a pool that a graph capture made.
    pub capture: u64,
    /// The number of a pool that the program made.
    pub user: u64,
}

impl MempoolId {
    /// The id of the memory pool; an error for a number that is too large.
    pub(crate) fn pool(self) -> Result<PoolId, PluginError> {
        let Self { capture, user } = self;
        match (u32::try_from(capture), u32::try_from(user)) {
            (Ok(capture), Ok(user)) => Ok(PoolId { capture, user }),
            _ => Err(PluginError::Pool(capture, user)),
        }
    }
}

type Data = [usize; 2];
type Manager = unsafe extern "C" fn(to: *mut Data, from: *const Data, operation: c_int) -> bool;
type Invoker = unsafe extern "C" fn(data: *const Data, stream: *mut *mut c_void) -> bool;

const CLONE: c_int = 2;
const DESTROY: c_int = 3;

/// A `std::function<bool(cudaStream_t)>`: which streams' requests go to a pool. C++ passes a pointer to it.
#[repr(C)]
#[derive(Debug)]
pub struct StreamFilter {
    data: Data,
    manager: Option<Manager>,
    invoker: Option<Invoker>,
}

/// A copy of a [`StreamFilter`], which this library owns.
#[derive(Debug)]
pub(crate) struct OwnFilter(StreamFilter);

#[expect(unsafe_code, reason = "only the caller that passes it knows")]
// SAFETY: PyTorch asks its filters from any thread that allocates.
unsafe impl Send for OwnFilter {}

impl OwnFilter {
    /// Copies a filter; `None` for null and for an empty function.
    ///
    /// # Safety
    ///
    /// The pointer must be null or that of a live `std::function<bool(cudaStream_t)>` of libstdc++.
    #[expect(unsafe_code, reason = "a value of C++ is copied by its own function")]
    pub(crate) unsafe fn copy(from: *const StreamFilter) -> Option<Self> {
        // SAFETY: as the caller says.
        let from = unsafe { from.as_ref() }?;
        let (manager, invoker) = (from.manager?, from.invoker?);
        let mut data = [0; 2];
        // SAFETY: the function is the one that the value itself names for this, and `data` is as large as its
        // own.
        unsafe { manager(&raw mut data, &raw const from.data, CLONE) };
        Some(Self(StreamFilter { data, manager: Some(manager), invoker: Some(invoker) }))
    }

    /// Asks PyTorch's function whether requests of a stream go to the pool.
    pub(crate) fn accepts(&self, stream: StreamId) -> bool {
        let Some(invoker) = self.0.invoker else { return true };
        let mut handle: *mut c_void =
            std::ptr::with_exposed_provenance_mut(usize::try_from(stream.get()).unwrap_or_default());
        #[expect(unsafe_code, reason = "a function of C++ is called")]
        // SAFETY: the function is the value's own, its data are alive, and the handle is one that PyTorch
        // passed.
        unsafe {
            invoker(&raw const self.0.data, &raw mut handle)
        }
    }
}

impl Drop for OwnFilter {
    fn drop(&mut self) {
        if let Some(manager) = self.0.manager {
            #[expect(unsafe_code, reason = "a value of C++ is destroyed by its own function")]
            // SAFETY: the data were copied by the same function, and nobody uses them after this.
            unsafe {
                manager(&raw mut self.0.data, &raw const self.0.data, DESTROY)
            };
        }
    }
}

const _: () = assert!(size_of::<StreamFilter>() == 32);
