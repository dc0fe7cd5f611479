//! Devices and storages.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use blockyard_allocator::HostAllocation;
use blockyard_record::Bytes;

use crate::error::runtime;
use crate::memory::{Category, OwnedBlock};
use crate::{Result, Scalar, Session, TorchError, session};

/// PyTorch's alignment of host memory, in bytes (`gAlignment`).
const HOST_ALIGNMENT: u64 = 64;

thread_local! {
    /// The lowest address of the host that is free: addresses are given in ascending order and never again.
    static NEXT_HOST_ADDR: Cell<u64> = const { Cell::new(0x5555_0000_0000) };
}

/// The device that a tensor's memory is on (`torch.device`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// The host (`cpu`).
    Cpu,
    /// The GPU of that number.
    Cuda(u8),
    /// No device: the tensor has a shape and no memory (`meta`).
    Meta,
}

impl Device {
    /// The device that a text like `cuda`, `cuda:1` or `cpu` means.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`] with PyTorch's text for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = || TorchError::Runtime(format!("Invalid device string: '{text}'"));
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, Some(index.parse::<u8>().map_err(|_| invalid())?)),
            None => (text, None),
        };
        if kind.contains(|letter: char| !letter.is_ascii_alphabetic() && letter != '_') {
            return Err(invalid());
        }
        match kind {
            "cpu" => Ok(Self::Cpu),
            "meta" => Ok(Self::Meta),
            "cuda" => Ok(Self::Cuda(index.unwrap_or_else(|| session().current_device()))),
            _ => runtime(format!(
                "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, \
                 vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: {kind}"
            )),
        }
    }

    /// Whether the device is a GPU.
    pub fn is_cuda(self) -> bool {
        matches!(self, Self::Cuda(_))
    }
}

/// `cuda:0`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Meta => f.write_str("meta"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// Pinned memory of the host, which is freed in the session that allocated it.
#[derive(Debug)]
struct PinnedMemory {
    session: Rc<Session>,
    allocation: RefCell<Option<HostAllocation>>,
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation.take() {
            self.session.free_pinned(allocation);
        }
    }
}

/// Memory that tensors share (`StorageImpl`). When the last handle is dropped, the block is freed.
#[derive(Debug)]
pub struct Storage {
    device: Device,
    bytes: Cell<u64>,
    block: RefCell<Option<OwnedBlock>>,
    pinned: Option<PinnedMemory>,
    /// The address of host memory, which is chosen when it is first asked for; 0 before.
    host_addr: Cell<u64>,
    /// Exact values by element, for small tensors of the host; `None` where they are not known.
    pub(crate) values: RefCell<Option<Vec<Scalar>>>,
}

impl Storage {
    /// Memory of this many bytes.
    ///
    /// # Errors
    ///
    /// [`TorchError::OutOfMemory`] with PyTorch's text.
    pub fn new(device: Device, bytes: u64, category: Category) -> Result<Rc<Self>> {
        let block = match device {
            Device::Cuda(index) => session().device(index)?.allocate(Bytes::new(bytes), category)?,
            Device::Cpu | Device::Meta => None,
        };
        Ok(Rc::new(Self {
            device,
            bytes: Cell::new(bytes),
            block: RefCell::new(block),
            pinned: None,
            host_addr: Cell::new(0),
            values: RefCell::new(None),
        }))
    }

    /// Host memory of this many bytes, which is not counted and so never fails.
    pub fn on_host(bytes: u64) -> Rc<Self> {
        Rc::new(Self {
            device: Device::Cpu,
            bytes: Cell::new(bytes),
            block: RefCell::new(None),
            pinned: None,
            host_addr: Cell::new(0),
            values: RefCell::new(None),
        })
    }

    /// Pinned host memory of this many bytes.
    ///
    /// # Errors
    ///
    /// [`TorchError::Runtime`] when the host has no more to pin.
    pub fn pinned(bytes: u64) -> Result<Rc<Self>> {
        let session = session();
        let allocation = session.allocate_pinned(Bytes::new(bytes))?;
        Ok(Rc::new(Self {
            device: Device::Cpu,
            bytes: Cell::new(bytes),
            block: RefCell::new(None),
            pinned: Some(PinnedMemory { session, allocation: RefCell::new(allocation) }),
            host_addr: Cell::new(0),
            values: RefCell::new(None),
        }))
    }

    /// `UntypedStorage.clone`: another storage of equal size on the same device, with the same values.
    ///
    /// # Errors
    ///
    /// [`TorchError::OutOfMemory`] with PyTorch's text.
    pub fn copy(&self) -> Result<Rc<Self>> {
        let copy = Self::new(self.device, self.bytes.get(), self.category())?;
        copy.values.borrow_mut().clone_from(&self.values.borrow());
        Ok(copy)
    }

    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// The device of the memory.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Whether the memory is pinned host memory.
    pub fn is_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// The GPU block's number; `None` on the host and for no bytes.
    pub fn block_number(&self) -> Option<u32> {
        // While the storage is resized, the block is borrowed.
        self.block.try_borrow().ok()?.as_ref().map(OwnedBlock::number)
    }

    /// The GPU block's address. Memory of the host has an address of ours, so that programs can tell storages
    /// apart by it. 0 without memory.
    pub fn addr(&self) -> u64 {
        match self.device {
            Device::Cuda(_) => self.block.borrow().as_ref().map_or(0, OwnedBlock::addr),
            Device::Cpu if self.bytes.get() > 0 => self.host_addr(),
            Device::Cpu | Device::Meta => 0,
        }
    }

    fn host_addr(&self) -> u64 {
        if self.host_addr.get() == 0 {
            let bytes = self.bytes.get().next_multiple_of(HOST_ALIGNMENT);
            self.host_addr.set(NEXT_HOST_ADDR.with(|next| next.replace(next.get().saturating_add(bytes))));
        }
        self.host_addr.get()
    }

    /// Says what the GPU block is for.
    pub fn set_category(&self, category: Category) {
        if let Some(block) = self.block.borrow().as_ref() {
            block.set_category(category);
        }
    }

    /// What the GPU block is for.
    pub fn category(&self) -> Category {
        self.block.borrow().as_ref().map_or(Category::Temporary, OwnedBlock::category)
    }

    /// Looks at the GPU's block; `None` on the host and for no bytes.
    pub(crate) fn with_block<T>(&self, look: impl FnOnce(&OwnedBlock) -> T) -> Option<T> {
        self.block.borrow().as_ref().map(look)
    }

    /// `UntypedStorage.resize_` to another size in bytes: as in PyTorch, the new memory is taken before the
    /// old is freed.
    ///
    /// # Errors
    ///
    /// [`TorchError::OutOfMemory`] with PyTorch's text.
    pub fn resize(&self, bytes: u64) -> Result<()> {
        if let Device::Cuda(index) = self.device {
            let new = session().device(index)?.allocate(Bytes::new(bytes), Category::Temporary)?;
            let old = self.block.replace(new);
            drop(old);
        }
        self.bytes.set(bytes);
        Ok(())
    }
}
