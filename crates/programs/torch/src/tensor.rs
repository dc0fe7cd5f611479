//! Tensors: a handle, and the shape, strides, type, storage and history that it leads to.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use crate::autograd::{AutogradMeta, GradMode, Node};
use crate::geometry::{element_offsets, is_channels_last_like, is_contiguous, is_dense, matches_order};
use crate::memory::Category;
use crate::sparse::SparseParts;
use crate::{Device, Dtype, MemoryFormat, Result, Scalar, Storage, contiguous_strides, numel};

/// The most elements of a tensor whose values are kept.
const MAX_KNOWN: i64 = 4096;

/// Sizes or strides.
pub type Shape = Rc<[i64]>;

/// The tensor that a [`Tensor`], a handle, leads to.
pub struct TensorImpl {
    /// The first field, since fields are dropped in order and PyTorch drops the history before the memory.
    pub(crate) autograd: RefCell<AutogradMeta>,
    storage: RefCell<Rc<Storage>>,
    shape: RefCell<Shape>,
    strides: RefCell<Shape>,
    offset: Cell<i64>,
    dtype: Cell<Dtype>,
    is_wrapped_number: Cell<bool>,
    is_inference: Cell<bool>,
    pub(crate) version: RefCell<Rc<Cell<u32>>>,
    /// The parts of a sparse tensor, whose own storage is empty; `None` for a dense tensor.
    sparse: RefCell<Option<SparseParts>>,
    object: Cell<Option<TensorObject>>,
}

/// The object of another language that stands for a tensor (`PyObjectSlot`).
///
/// The object has one handle of the tensor. While there are other handles, the tensor has one reference to the
/// object: the object lives as long as the tensor does.
#[derive(Clone, Copy, Debug)]
pub struct TensorObject {
    /// Where the object is.
    pub address: usize,
    /// Takes a reference to the object (`incref_pyobject`).
    pub keep: fn(usize),
    /// Gives a reference to the object back (`decref_pyobject`).
    pub release: fn(usize),
    /// How many references to the object there are; an object without one dies now.
    pub references: fn(usize) -> isize,
}

/// A handle of a tensor, as cheap to clone as a Python reference.
pub struct Tensor(Rc<TensorImpl>);

impl Clone for Tensor {
    fn clone(&self) -> Self {
        let other = Self(Rc::clone(&self.0));
        if let Some(object) = other.0.object.get()
            && other.use_count() == 2
        {
            (object.keep)(object.address);
        }
        other
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // Of the two handles one is the object's: the object may die here, and takes its handle along.
        if let Some(object) = self.0.object.get()
            && self.use_count() == 2
        {
            (object.release)(object.address);
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:?}, {}, {})", self.shape(), self.dtype(), self.device())
    }
}

impl fmt::Debug for TensorImpl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorImpl({:?}, {})", self.shape.borrow(), self.dtype.get())
    }
}

impl Tensor {
    /// A tensor over existing memory, with no history.
    #[must_use]
    pub fn over(storage: Rc<Storage>, shape: &[i64], strides: &[i64], offset: i64, dtype: Dtype) -> Self {
        Self::build(storage, shape.into(), strides.into(), offset, dtype, Rc::new(Cell::new(0)))
    }

    fn build(
        storage: Rc<Storage>,
        shape: Shape,
        strides: Shape,
        offset: i64,
        dtype: Dtype,
        version: Rc<Cell<u32>>,
    ) -> Self {
        Self(Rc::new(TensorImpl {
            storage: RefCell::new(storage),
            shape: RefCell::new(shape),
            strides: RefCell::new(strides),
            offset: Cell::new(offset),
            dtype: Cell::new(dtype),
            is_wrapped_number: Cell::new(false),
            is_inference: Cell::new(GradMode::is_inference()),
            version: RefCell::new(version),
            autograd: RefCell::default(),
            sparse: RefCell::default(),
            object: Cell::new(None),
        }))
    }

    /// `_efficientzerotensor`: zeros that take no memory.
    pub(crate) fn zeros_without_memory(shape: &[i64], dtype: Dtype, device: Device) -> Result<Self> {
        let storage = Storage::new(device, 0, Category::Temporary)?;
        Ok(Self::over(storage, shape, &contiguous_strides(shape), 0, dtype))
    }

    /// Whether the tensor has elements and no memory: it is made of zeros (`_efficientzerotensor`), or its
    /// storage was resized to 0.
    pub(crate) fn is_without_memory(&self) -> bool {
        self.device().is_cuda() && self.numel() > 0 && self.storage().bytes() == 0 && !self.is_sparse()
    }

    /// Another tensor over the same memory, with no history; it shares the version counter.
    #[must_use]
    pub fn alias(&self, shape: &[i64], strides: &[i64], offset: i64) -> Self {
        let version = Rc::clone(&self.0.version.borrow());
        let view = Self::build(self.storage(), shape.into(), strides.into(), offset, self.dtype(), version);
        view.0.is_inference.set(self.is_inference());
        view
    }

    /// Whether the tensor, or the one that it is a view of, was made in inference mode.
    pub fn is_inference(&self) -> bool {
        self.0.is_inference.get()
    }

    /// Another tensor over the same memory with the same shape and values, without history.
    #[must_use]
    pub fn shallow_copy(&self) -> Self {
        let version = Rc::clone(&self.0.version.borrow());
        let copy =
            Self::build(self.storage(), self.shape(), self.strides(), self.offset(), self.dtype(), version);
        copy.0.is_wrapped_number.set(self.is_wrapped_number());
        copy.0.is_inference.set(self.is_inference());
        copy.set_sparse_parts(self.sparse_parts());
        copy
    }

    /// Takes the memory and the geometry of another tensor (`x.data = y`); history stays.
    pub fn set_data(&self, other: &Self) {
        // An older accumulator, which a graph may keep alive, adds up gradients of the type and the device
        // before.
        if self.dtype() != other.dtype() || self.device() != other.device() {
            self.0.autograd.borrow_mut().accumulator = std::rc::Weak::new();
        }
        let old = self.0.storage.replace(other.storage());
        *self.0.shape.borrow_mut() = other.shape();
        *self.0.strides.borrow_mut() = other.strides();
        self.0.offset.set(other.offset());
        self.0.dtype.set(other.dtype());
        self.set_sparse_parts(other.sparse_parts());
        drop(old);
    }

    /// Gives the tensor another shape over the same memory.
    pub fn set_geometry(&self, shape: &[i64], strides: &[i64], offset: i64) {
        *self.0.shape.borrow_mut() = shape.into();
        *self.0.strides.borrow_mut() = strides.into();
        self.0.offset.set(offset);
    }

    /// The memory that the elements are in.
    pub fn storage(&self) -> Rc<Storage> {
        Rc::clone(&self.0.storage.borrow())
    }

    /// The sizes of the dimensions.
    pub fn shape(&self) -> Shape {
        Rc::clone(&self.0.shape.borrow())
    }

    /// The strides, in elements.
    pub fn strides(&self) -> Shape {
        Rc::clone(&self.0.strides.borrow())
    }

    /// Where in the storage the tensor begins, in elements.
    pub fn offset(&self) -> i64 {
        self.0.offset.get()
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.0.dtype.get()
    }

    /// The device that the tensor is on.
    pub fn device(&self) -> Device {
        self.0.storage.borrow().device()
    }

    /// The number of dimensions.
    pub fn dim(&self) -> usize {
        self.0.shape.borrow().len()
    }

    /// The size of one dimension; a negative number counts from the end. 1 where no dimension has that
    /// number.
    pub fn size(&self, dim: i64) -> i64 {
        let shape = self.0.shape.borrow();
        let count = i64::try_from(shape.len()).unwrap_or(i64::MAX);
        let index = if dim < 0 { dim + count } else { dim };
        usize::try_from(index).ok().and_then(|index| shape.get(index).copied()).unwrap_or(1)
    }

    /// The number of elements.
    pub fn numel(&self) -> i64 {
        numel(&self.0.shape.borrow())
    }

    /// Bytes of all elements; the storage may have more or fewer.
    pub fn nbytes(&self) -> u64 {
        u64::try_from(self.numel()).unwrap_or(0).saturating_mul(self.dtype().size())
    }

    /// Whether the tensor was made of a Python number, which does not decide the type of a result
    /// (`wrapped_number`).
    pub fn is_wrapped_number(&self) -> bool {
        self.0.is_wrapped_number.get()
    }

    /// Marks the tensor as made of a Python number.
    pub(crate) fn set_wrapped_number(&self) {
        self.0.is_wrapped_number.set(true);
    }

    /// How many handles of the tensor exist: PyTorch's `use_count`.
    pub fn use_count(&self) -> usize {
        Rc::strong_count(&self.0)
    }

    /// Whether nobody needs the tensor but its object and holders that are `expected`
    /// (`impl::is_tensor_stealable`).
    pub(crate) fn is_stealable(&self, expected: usize) -> bool {
        let count = self.use_count();
        let is_objects_own = |object: TensorObject| (object.references)(object.address) == 1;
        count <= expected || (count == expected + 1 && self.object().is_some_and(is_objects_own))
    }

    /// Whether two handles are of one tensor.
    pub fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// A number that no other live tensor has.
    pub fn identity(&self) -> usize {
        Rc::as_ptr(&self.0).addr()
    }

    /// A handle that keeps nothing alive.
    pub fn downgrade(&self) -> std::rc::Weak<TensorImpl> {
        Rc::downgrade(&self.0)
    }

    /// The tensor of a weak handle, if the tensor still lives.
    pub fn upgrade(weak: &std::rc::Weak<TensorImpl>) -> Option<Self> {
        let inner = weak.upgrade()?;
        if let Some(object) = inner.object.get()
            && Rc::strong_count(&inner) == 2
        {
            if (object.references)(object.address) == 0 {
                return None;
            }
            (object.keep)(object.address);
        }
        Some(Self(inner))
    }

    /// The object that stands for the tensor; `None` where there is none yet.
    pub fn object(&self) -> Option<TensorObject> {
        self.0.object.get()
    }

    /// Sets the object that stands for the tensor, and has one of its handles.
    pub fn set_object(&self, object: TensorObject) {
        self.0.object.set(Some(object));
        if self.use_count() > 1 {
            (object.keep)(object.address);
        }
    }

    /// Forgets the object, which gives up its handle now: it is the only one.
    pub fn forget_object(&self) {
        self.0.object.set(None);
    }

    /// The place of a sparse tensor's parts.
    pub(crate) fn sparse_cell(&self) -> &RefCell<Option<SparseParts>> {
        &self.0.sparse
    }

    /// The tensor's part in the graph.
    pub(crate) fn autograd(&self) -> &RefCell<AutogradMeta> {
        &self.0.autograd
    }

    /// How often the memory was changed in place (`_version`).
    pub fn version(&self) -> u32 {
        self.0.version.borrow().get()
    }

    /// Counts a change of the memory in place. The values are not known from here on: an operator that
    /// knows the new values sets them afterwards.
    pub(crate) fn bump_version(&self) {
        let version = self.0.version.borrow();
        version.set(version.get().wrapping_add(1));
        drop(version);
        self.forget_values();
    }

    /// The values of this tensor's elements are not known any more; those of other elements in its storage
    /// stay.
    pub(crate) fn forget_values(&self) {
        if self.storage().values.borrow().is_none() {
            return;
        }
        let unknown = (self.numel() <= MAX_KNOWN && !self.covers_storage())
            .then(|| vec![Scalar::Unknown(self.dtype()); self.numel().max(0) as usize]);
        self.set_values(unknown.as_deref());
    }

    fn covers_storage(&self) -> bool {
        self.is_contiguous() && self.nbytes() == self.storage().bytes()
    }

    /// Whether elements follow each other in order without gaps.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(&self.0.shape.borrow(), &self.0.strides.borrow())
    }

    /// Whether elements follow each other without gaps in the given order.
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        let (shape, strides) = (self.shape(), self.strides());
        match format {
            MemoryFormat::Contiguous | MemoryFormat::Preserve => is_contiguous(&shape, &strides),
            MemoryFormat::ChannelsLast => shape.len() == 4 && matches_order(&shape, &strides, &[1, 3, 2, 0]),
            MemoryFormat::ChannelsLast3d => {
                shape.len() == 5 && matches_order(&shape, &strides, &[1, 4, 3, 2, 0])
            }
        }
    }

    /// Whether the elements fill a stretch of memory in some order, without gaps and without two elements at
    /// one place.
    pub fn is_non_overlapping_and_dense(&self) -> bool {
        let (shape, strides) = (self.shape(), self.strides());
        is_contiguous(&shape, &strides) || is_dense(&shape, &strides)
    }

    /// The order that an operator chooses for its result if it keeps the order of this tensor
    /// (`suggest_memory_format`).
    pub fn suggested_format(&self) -> MemoryFormat {
        let (shape, strides) = (self.shape(), self.strides());
        match shape.len() {
            4 if is_channels_last_like(&shape, &strides, &[1, 3, 2, 0]) => MemoryFormat::ChannelsLast,
            5 if is_channels_last_like(&shape, &strides, &[1, 4, 3, 2, 0]) => MemoryFormat::ChannelsLast3d,
            _ => MemoryFormat::Contiguous,
        }
    }

    /// Exact values in the order of elements, where they are known.
    pub fn values(&self) -> Option<Vec<Scalar>> {
        let storage = self.storage();
        let values = storage.values.borrow();
        let values = values.as_ref().filter(|_| self.numel() <= MAX_KNOWN)?;
        let mut result = Vec::new();
        for index in element_offsets(&self.shape(), &self.strides(), self.offset()) {
            result.push(*values.get(usize::try_from(index).ok()?)?);
        }
        Some(result)
    }

    /// Sets the values to numbers of a program, which are rounded to the tensor's type.
    pub fn set_numbers(&self, numbers: &[Scalar]) {
        let cast = |number: &Scalar| crate::ops::host_values::cast(*number, self.dtype());
        self.set_values(Some(&numbers.iter().map(cast).collect::<Vec<_>>()));
    }

    /// Sets exact values in the order of elements. Only small tensors of the host keep values; others have
    /// none afterwards.
    pub fn set_values(&self, values: Option<&[Scalar]>) {
        let storage = self.storage();
        let mut held = storage.values.borrow_mut();
        let Some(values) = values.filter(|_| self.device() == Device::Cpu && self.numel() <= MAX_KNOWN)
        else {
            *held = None;
            return;
        };
        if self.covers_storage() {
            *held = Some(values.to_vec());
        } else if let Some(held) = held.as_mut() {
            let offsets = element_offsets(&self.shape(), &self.strides(), self.offset());
            for (index, value) in offsets.into_iter().zip(values) {
                if let Some(slot) = usize::try_from(index).ok().and_then(|index| held.get_mut(index)) {
                    *slot = *value;
                }
            }
        }
    }

    /// The gradient function that made the tensor; `None` for a leaf. Renews the function of a view whose
    /// memory was changed.
    pub fn grad_fn(&self) -> Option<Rc<Node>> {
        crate::autograd::view::renew(self);
        self.grad_fn_as_it_stands()
    }

    /// [`Self::grad_fn`] for an observer, which must change nothing: a view whose memory was changed keeps
    /// its earlier function.
    pub fn grad_fn_as_it_stands(&self) -> Option<Rc<Node>> {
        self.0.autograd.borrow().grad_fn.clone()
    }
}
