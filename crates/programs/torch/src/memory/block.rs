//! A block in use.

use std::cell::RefCell;
use std::rc::Rc;

use blockyard_allocator::BackendAllocation;
use blockyard_record::StreamId;

use super::addresses::OtherBlocks;
use super::{Category, LogEntry, SimulatedGpu};
use crate::Result;

/// Memory of a GPU in use; dropping it gives the block back.
#[derive(Debug)]
pub struct OwnedBlock {
    pub(super) device: Rc<SimulatedGpu>,
    pub(super) allocation: RefCell<Option<BackendAllocation>>,
    pub(super) others: OtherBlocks,
    pub(super) number: u32,
}

impl OwnedBlock {
    /// The block's number: an index into [`SimulatedGpu::origins`].
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The device that the block is on.
    pub fn device(&self) -> &Rc<SimulatedGpu> {
        &self.device
    }

    /// The address; 0 once the block is freed.
    pub fn addr(&self) -> u64 {
        self.allocation.borrow().as_ref().map_or(0, |allocation| allocation.addr().get())
    }

    /// `Tensor.record_stream`: after its free, the block is not allocated again before this stream's work is
    /// done.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`](crate::TorchError::Runtime) when the device fails.
    pub fn record_stream(&self, stream: StreamId) -> Result<()> {
        self.device.call_if_due(false);
        let allocation = self.allocation.borrow();
        let Some(allocation) = allocation.as_ref() else { return Ok(()) };
        self.device.others.borrow_mut().record_stream(&self.others, stream);
        self.device.step(|allocator| allocator.record_stream(allocation, stream))
    }

    /// Says what the block is for, once that is known.
    pub fn set_category(&self, category: Category) {
        if let Some(origin) = self.device.origins.borrow_mut().get_mut(self.number as usize) {
            origin.category = category;
        }
    }

    /// What the block is for.
    pub fn category(&self) -> Category {
        self.device
            .origins
            .borrow()
            .get(self.number as usize)
            .map_or(Category::Temporary, |origin| origin.category)
    }
}

impl Drop for OwnedBlock {
    fn drop(&mut self) {
        self.device.call_if_due(true);
        let Some(allocation) = self.allocation.take() else { return };
        self.device.note_request(LogEntry::Free(self.number));
        // After the recording was finished nothing is left to give the block back to.
        let _finished = self.device.step(|allocator| allocator.free(allocation));
        self.device.others.borrow_mut().free(&mut self.others);
    }
}
