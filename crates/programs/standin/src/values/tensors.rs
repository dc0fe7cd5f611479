//! Tensors as PyTorch hands them to its observers: boxed, with a storage and, where they have bytes, sizes
//! and strides.
#![expect(unsafe_code, reason = "PyTorch's objects are read, and its C functions are called")]

use std::ffi::{CStr, c_void};

use libloading::os::unix::Library;

use crate::memory::{Certainty, device_of};
use crate::state::state;
use crate::values::layout::{IValue, ObjectLayout, word};

/// Where a tensor's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryKind {
    Device,
    Host,
    /// The tensor has no bytes: a fake or meta tensor of PyTorch's, or a tensor without elements.
    Nowhere,
}

/// The bytes of a tensor's storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    pub(super) data: u64,
    pub(super) bytes: u64,
}

impl Storage {
    /// The storage of a boxed tensor; `None` for a tensor that has none.
    pub(super) fn of(boxed: &IValue, layout: &ObjectLayout) -> Option<Self> {
        // SAFETY: the payload of a tensor's tag is its object, whose storage was found at this offset.
        let storage = unsafe { word(boxed.payload, layout.storage) };
        if storage == 0 {
            return None;
        }
        // SAFETY: as above.
        let (data, bytes) = unsafe { (word(storage, layout.data), word(storage, layout.bytes)) };
        // A symbolic count is not a number.
        (bytes < 1 << 47).then_some(Self { data, bytes })
    }

    /// Where the bytes are.
    pub(super) fn home(&self) -> MemoryKind {
        if self.data == 0 || self.bytes == 0 {
            MemoryKind::Nowhere
        } else if device_of(self.data).is_some() {
            MemoryKind::Device
        } else {
            MemoryKind::Host
        }
    }

    /// Whether any byte is known.
    pub(super) fn is_partly_known(&self) -> bool {
        state().devices.is_partly_known(self.data, self.data.saturating_add(self.bytes))
    }
}

/// A tensor: elements in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tensor {
    /// The address of the first element.
    pub(super) data: u64,
    /// PyTorch's number of the type.
    pub(super) dtype: i32,
    /// Bytes of an element.
    pub(super) element: u64,
    pub(super) sizes: Vec<i64>,
    /// The strides in elements.
    pub(super) strides: Vec<i64>,
}

/// Bytes of an element, by PyTorch's number of the type; `None` for types that are left alone: complex
/// numbers (whose conjugate may be pending), and packed ones.
fn element(dtype: i32) -> Option<u64> {
    Some(match dtype {
        0 | 1 | 11 => 1,
        2 | 5 | 15 => 2,
        3 | 6 => 4,
        4 | 7 => 8,
        _ => return None,
    })
}

type Get<T> = unsafe extern "C" fn(*const c_void, *mut T) -> i32;

/// The value that a function of PyTorch reports about a tensor; `None` where the function fails.
fn get<T>(function: Get<T>, handle: *const c_void, start: T) -> Option<T> {
    let mut value = start;
    // SAFETY: the handle is a tensor's, and lives through the call.
    (unsafe { function(handle, &raw mut value) } == 0).then_some(value)
}

/// PyTorch's C functions that describe a tensor.
#[derive(Debug)]
pub(super) struct Functions {
    dim: Get<i64>,
    sizes: Get<*const i64>,
    strides: Get<*const i64>,
    dtype: Get<i32>,
    data: Get<u64>,
    device: Get<i32>,
    is_defined: Get<bool>,
    /// `at::_ops::_nnz::call`, which has no name in C.
    places: Option<unsafe extern "C" fn(*const c_void) -> i64>,
    /// `c10::TensorImpl::requires_grad`, which has no name in C.
    requires_grad: Option<unsafe extern "C" fn(u64) -> bool>,
}

impl Functions {
    /// Finds the functions in PyTorch's library; `None` where one is missing.
    pub(super) fn of(torch: &Library) -> Option<Self> {
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the types are those of the header `aoti_torch/c/shim.h`, which PyTorch keeps
                // stable.
                *unsafe { torch.get($name) }.ok()?
            };
        }
        Some(Self {
            dim: function!(b"aoti_torch_get_dim\0"),
            sizes: function!(b"aoti_torch_get_sizes\0"),
            strides: function!(b"aoti_torch_get_strides\0"),
            dtype: function!(b"aoti_torch_get_dtype\0"),
            data: function!(b"aoti_torch_get_data_ptr\0"),
            device: function!(b"aoti_torch_get_device_type\0"),
            is_defined: function!(b"aoti_torch_is_defined\0"),
            // SAFETY: a reference to a tensor is an address, and the result a number of 64 bits.
            places: unsafe { torch.get(b"_ZN2at4_ops4_nnz4callERKNS_6TensorE\0") }
                .ok()
                .map(|function| *function),
            // SAFETY: the object is the only argument. Libraries that the library needs are searched, too.
            requires_grad: unsafe { torch.get(b"_ZNK3c1010TensorImpl13requires_gradEv\0") }
                .ok()
                .map(|function| *function),
        })
    }

    /// Whether a boxed tensor is defined (`Tensor::defined`).
    pub(super) fn is_defined(&self, boxed: &IValue) -> bool {
        let mut is_defined = false;
        // SAFETY: a tensor's handle is the address of the place that holds its object: the box.
        unsafe { (self.is_defined)(std::ptr::from_ref(boxed).cast(), &raw mut is_defined) == 0 && is_defined }
    }

    /// Whether a boxed tensor without bytes belongs to a CUDA device.
    pub(super) fn is_for_device(&self, boxed: &IValue) -> bool {
        const CUDA: i32 = 1;
        let mut device = 0;
        // SAFETY: a tensor's handle is the address of the place that holds its object: the box.
        unsafe { (self.device)(std::ptr::from_ref(boxed).cast(), &raw mut device) == 0 && device == CUDA }
    }

    /// How many places a boxed sparse tensor (COO) lists; `None` where PyTorch's library has no such function.
    pub(super) fn places(&self, boxed: &IValue) -> Option<i64> {
        // SAFETY: the function does not fail for a sparse tensor. A tensor is the place that holds its object.
        self.places.map(|places| unsafe { places(std::ptr::from_ref(boxed).cast()) })
    }

    /// Whether a boxed tensor is one that is trained, or was computed of such.
    pub(super) fn requires_grad(&self, boxed: &IValue) -> bool {
        // SAFETY: the payload of a tensor is its object.
        self.requires_grad.is_some_and(|function| unsafe { function(boxed.payload) })
    }

    /// A boxed tensor that has bytes; `None` for a type that is left alone.
    pub(super) fn tensor(&self, boxed: &IValue) -> Option<Tensor> {
        // A tensor's handle is the address of the place that holds its object: the box.
        let handle = std::ptr::from_ref(boxed).cast::<c_void>();
        let dim = usize::try_from(get(self.dim, handle, 0)?).ok()?;
        let dtype = get(self.dtype, handle, 0)?;
        let list = |values: *const i64| {
            // SAFETY: the lists have as many numbers as the tensor has dimensions, and live as long as the
            // tensor.
            (0..dim).map(|index| unsafe { values.add(index).read() }).collect::<Vec<i64>>()
        };
        Some(Tensor {
            data: get(self.data, handle, 0)?,
            dtype,
            element: element(dtype)?,
            sizes: list(get(self.sizes, handle, std::ptr::null())?),
            strides: list(get(self.strides, handle, std::ptr::null())?),
        })
    }
}

/// The most rows that are marked one by one.
const MAX_ROWS: u64 = 1 << 16;

impl Tensor {
    /// How many elements the tensor has.
    pub(super) fn count(&self) -> u64 {
        self.sizes
            .iter()
            .fold(1_u64, |product, size| product.saturating_mul(u64::try_from(*size).unwrap_or(0)))
    }

    /// Whether the elements are integers or truth values.
    pub(super) fn is_of_integers(&self) -> bool {
        matches!(self.dtype, 0..=4 | 11)
    }

    /// The address of the first byte, and the address after the last.
    pub(super) fn extent(&self) -> (u64, u64) {
        if self.count() == 0 {
            return (self.data, self.data);
        }
        let steps = self.sizes.iter().zip(&self.strides).fold(1_u64, |sum, (size, stride)| {
            let last = u64::try_from(size.saturating_sub(1)).unwrap_or(0);
            sum.saturating_add(last.saturating_mul(u64::try_from(*stride).unwrap_or(0)))
        });
        (self.data, self.data.saturating_add(steps.saturating_mul(self.element)))
    }

    /// How sure the least sure byte is.
    pub(super) fn certainty(&self) -> Certainty {
        let (start, end) = self.extent();
        let state = state();
        let whole = state.devices.certainty(start, end);
        if whole != Certainty::Unknown {
            return whole;
        }
        let Some(rows) = self.rows() else { return whole };
        rows.into_iter().map(|(start, end)| state.devices.certainty(start, end)).max().unwrap_or(whole)
    }

    /// Sets how sure the elements' bytes are from now on. Bytes between the elements stay as they are.
    pub(super) fn mark(&self, certainty: Certainty) {
        let mut state = state();
        if let Some(rows) = self.rows() {
            for (start, end) in rows {
                state.devices.mark(start, end, certainty);
            }
        } else {
            let (start, end) = self.extent();
            state.devices.mark(start, end, Certainty::Unknown);
        }
    }

    /// Whether the elements are one range of bytes, in whatever order.
    pub(super) fn is_dense(&self) -> bool {
        self.rows().is_some_and(|rows| rows.len() == 1)
    }

    /// The elements as ranges of bytes without gaps; `None` where there are too many.
    fn rows(&self) -> Option<Vec<(u64, u64)>> {
        let mut dimensions: Vec<(u64, u64)> = self
            .sizes
            .iter()
            .zip(&self.strides)
            .filter(|(size, _)| **size != 1)
            .map(|(size, stride)| (u64::try_from(*size).unwrap_or(0), u64::try_from(*stride).unwrap_or(0)))
            .filter(|(_, stride)| *stride > 0)
            .collect();
        if self.count() == 0 {
            return Some(Vec::new());
        }
        dimensions.sort_by_key(|(_, stride)| *stride);
        // Dimensions that follow each other without a gap are one run.
        let mut run = 1_u64;
        let mut inner = 0;
        for (size, stride) in &dimensions {
            if *stride != run {
                break;
            }
            run = run.saturating_mul(*size);
            inner += 1;
        }
        let mut starts = vec![self.data];
        for (size, stride) in dimensions.get(inner..).unwrap_or(&[]) {
            if (starts.len() as u64).saturating_mul(*size) > MAX_ROWS {
                return None;
            }
            let step = stride.saturating_mul(self.element);
            starts = starts
                .iter()
                .flat_map(|start| {
                    (0..*size).map(move |index| start.saturating_add(index.saturating_mul(step)))
                })
                .collect();
        }
        let bytes = run.saturating_mul(self.element);
        Some(starts.into_iter().map(|start| (start, start.saturating_add(bytes))).collect())
    }
}

/// The characters of a boxed text.
pub(super) fn text(boxed: &IValue, layout: &ObjectLayout) -> Option<String> {
    // SAFETY: the argument is a text by its operator's schema; a text ends with a zero, as `std::string`
    // says.
    let characters = unsafe { word(boxed.payload, layout.text) };
    if characters == 0 {
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { CStr::from_ptr(characters as *const _) }.to_string_lossy().into_owned())
}

/// The items of a boxed list.
pub(super) fn items<'a>(boxed: &IValue, layout: &ObjectLayout) -> &'a [IValue] {
    // SAFETY: the argument is a list by its operator's schema; its items live as long as the call.
    unsafe {
        let (begin, end) = (word(boxed.payload, layout.items), word(boxed.payload, layout.items + 8));
        let count = usize::try_from(end.wrapping_sub(begin) / 16).unwrap_or(0);
        if begin == 0 || count > 1 << 20 {
            return &[];
        }
        std::slice::from_raw_parts(begin as *const IValue, count)
    }
}
