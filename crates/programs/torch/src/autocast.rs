//! Autocast: which operators cast their inputs to a lower precision, and the cache of cast parameters.

use std::cell::{Cell, RefCell};

use crate::ops::copy;
use crate::{Device, Dtype, Result, Tensor, session};

/// The state of `torch.autocast("cuda")`.
#[derive(Debug)]
pub struct Autocast {
    dtype: Cell<Option<Dtype>>,
    nesting: Cell<u32>,
    is_cache_enabled: Cell<bool>,
    is_excluded: Cell<bool>,
    cache: RefCell<Vec<(Tensor, Tensor)>>,
}

impl Default for Autocast {
    fn default() -> Self {
        Self {
            dtype: Cell::new(None),
            nesting: Cell::new(0),
            is_cache_enabled: Cell::new(true),
            is_excluded: Cell::new(false),
            cache: RefCell::default(),
        }
    }
}

/// The settings of autocast before [`enter`], which [`exit`] sets again.
#[derive(Clone, Copy, Debug)]
pub struct SavedAutocast {
    dtype: Option<Dtype>,
    is_cache_enabled: bool,
}

/// `autocast.__enter__`: `None` switches autocast off. Returns the settings before.
#[expect(clippy::must_use_candidate, reason = "a setter gives back what was before")]
pub fn enter(dtype: Option<Dtype>, is_cache_enabled: bool) -> SavedAutocast {
    let session = session();
    let state = &session.autocast;
    state.nesting.set(state.nesting.get() + 1);
    SavedAutocast {
        dtype: state.dtype.replace(dtype),
        is_cache_enabled: state.is_cache_enabled.replace(is_cache_enabled),
    }
}

/// `autocast.__exit__`: sets the settings before [`enter`] again. The outermost exit clears the cache.
pub fn exit(before: SavedAutocast) {
    let session = session();
    let state = &session.autocast;
    // A program may call `__exit__` without `__enter__`.
    let nesting = state.nesting.get().saturating_sub(1);
    state.nesting.set(nesting);
    if nesting == 0 {
        clear_cache();
    }
    state.dtype.set(before.dtype);
    state.is_cache_enabled.set(before.is_cache_enabled);
}

/// Each parameter in the cache with its cast.
pub fn cached() -> Vec<(Tensor, Tensor)> {
    session().autocast.cache.try_borrow().map(|cache| cache.clone()).unwrap_or_default()
}

/// `torch.clear_autocast_cache`.
pub fn clear_cache() {
    let session = session();
    let dropped = session.autocast.cache.take();
    for index in 0..session.device_count() {
        let dies = |cast: &Tensor| {
            cast.device() == Device::Cuda(index)
                && cast.use_count() == 1
                && std::rc::Rc::strong_count(&cast.storage()) == 2
        };
        let count = dropped.iter().filter(|(_, cast)| dies(cast)).count();
        if let Ok(device) = session.device(index) {
            device.log_unordered(blockyard_record::index_u32(count));
        }
    }
    drop(dropped);
}

/// The type that autocast casts to; `None` where autocast is off.
pub fn dtype() -> Option<Dtype> {
    let session = session();
    if session.autocast.is_excluded.get() { None } else { session.autocast.dtype.get() }
}

/// Switches autocast off for the operators that an operator calls, until the guard is dropped.
#[derive(Debug)]
pub(crate) struct AutocastGuard {
    before: bool,
}

impl Drop for AutocastGuard {
    fn drop(&mut self) {
        session().autocast.is_excluded.set(self.before);
    }
}

fn exclude() -> AutocastGuard {
    AutocastGuard { before: session().autocast.is_excluded.replace(true) }
}

fn is_eligible(tensor: &Tensor) -> bool {
    tensor.device().is_cuda() && tensor.dtype().is_floating() && tensor.dtype() != Dtype::F64
}

/// `cached_cast`: casts of leaves that require a gradient are kept until the outermost exit.
fn cached_cast(to: Dtype, tensor: &Tensor) -> Result<Tensor> {
    if !is_eligible(tensor) || tensor.dtype() == to {
        return Ok(tensor.clone());
    }
    let session = session();
    let state = &session.autocast;
    let lower = state.dtype.get().unwrap_or(Dtype::F16);
    let can_cache = to == lower
        && tensor.dtype() == Dtype::F32
        && tensor.requires_grad()
        && tensor.is_leaf()
        && !tensor.is_view()
        && state.is_cache_enabled.get();
    if can_cache {
        let cached =
            state.cache.borrow().iter().find(|(from, _)| from.is_same(tensor)).map(|(_, cast)| cast.clone());
        if let Some(cached) = cached {
            return Ok(cached);
        }
    }
    let cast = copy::to_dtype(tensor, to)?;
    if can_cache {
        state.cache.borrow_mut().push((tensor.clone(), cast.clone()));
    }
    Ok(cast)
}

/// The type of the result for operators that take such a type (`fp32_set_opt_dtype`). These operators read
/// inputs of the lower precision without a cast.
pub(crate) fn full_dtype(input: &Tensor, named: Option<Dtype>) -> Option<Dtype> {
    let is_on = dtype().is_some() && input.device().is_cuda() && input.dtype().is_reduced_float();
    named.or(is_on.then_some(Dtype::F32))
}

/// How one operator's arguments are cast; no argument is cast where autocast is off.
#[derive(Debug)]
pub(crate) struct Cast {
    to: Option<Dtype>,
    _excluded: Option<AutocastGuard>,
}

impl Cast {
    /// For operators that run in the lower precision.
    pub(crate) fn lower(device: Device) -> Self {
        let to = if device.is_cuda() { dtype() } else { None };
        Self::new(to)
    }

    /// For operators that run in `float32`.
    pub(crate) fn full(device: Device) -> Self {
        let to = if device.is_cuda() && dtype().is_some() { Some(Dtype::F32) } else { None };
        Self::new(to)
    }

    /// For operators that run in the widest type of their inputs.
    pub(crate) fn widest(tensors: &[&Tensor]) -> Self {
        let is_on = tensors.iter().any(|tensor| tensor.device().is_cuda()) && dtype().is_some();
        let lower = dtype().unwrap_or(Dtype::F16);
        let to = is_on.then(|| {
            let is_full = tensors.iter().any(|tensor| is_eligible(tensor) && tensor.dtype() == Dtype::F32);
            if is_full { Dtype::F32 } else { lower }
        });
        Self::new(to)
    }

    /// For operators whose arguments autocast does not cast.
    pub(crate) fn off() -> Self {
        Self::new(None)
    }

    fn new(to: Option<Dtype>) -> Self {
        Self { to, _excluded: to.map(|_| exclude()) }
    }

    /// Whether the arguments are cast.
    pub(crate) fn is_on(&self) -> bool {
        self.to.is_some()
    }

    /// The tensor in the type that autocast casts to; the same tensor where nothing is cast.
    pub(crate) fn apply(&self, tensor: &Tensor) -> Result<Tensor> {
        match self.to {
            Some(to) => cached_cast(to, tensor),
            None => Ok(tensor.clone()),
        }
    }

    /// Casts several arguments, as [`Self::apply`] does, the last one first: autocast's casts are the
    /// arguments of a call in C++, which are made from the last to the first. An array that is kept whole
    /// frees them as C++ does, from the first to the last.
    pub(crate) fn apply_all<const N: usize>(&self, tensors: [&Tensor; N]) -> Result<[Tensor; N]> {
        let mut cast = tensors.map(Tensor::clone);
        for tensor in cast.iter_mut().rev() {
            *tensor = self.apply(tensor)?;
        }
        Ok(cast)
    }

    /// Casts an argument that may be left out, as [`Self::apply`] does.
    pub(crate) fn apply_optional(&self, tensor: Option<&Tensor>) -> Result<Option<Tensor>> {
        tensor.map(|tensor| self.apply(tensor)).transpose()
    }
}
