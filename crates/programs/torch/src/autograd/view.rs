//! Views in the graph: what happens to a history where a view, or the tensor that it is a view of, is changed
//! in place.

use crate::autograd::nodes;
use std::rc::Rc;

use super::node::{Body, Context, Gradients, Node};
use crate::ops::views::first;
use crate::ops::{copy, creation, reduce};
use crate::{MemoryFormat, Result, Tensor, session};

/// Shape, strides and offset of a tensor in its memory, in elements.
#[derive(Clone, Debug)]
struct Geometry {
    shape: Rc<[i64]>,
    strides: Rc<[i64]>,
    offset: i64,
}

impl Geometry {
    fn of(tensor: &Tensor) -> Self {
        Self { shape: tensor.shape(), strides: tensor.strides(), offset: tensor.offset() }
    }

    /// How many elements of memory the tensor takes from the beginning of its storage on, where its first
    /// element is at `offset`; 0 for a tensor without elements.
    fn extent(&self, offset: i64) -> i64 {
        if self.shape.contains(&0) {
            return 0;
        }
        let reach = |(size, stride): (&i64, &i64)| (size - 1).saturating_mul(*stride);
        let last = self.shape.iter().zip(&*self.strides).map(reach).fold(offset, i64::saturating_add);
        last.saturating_add(1)
    }
}

/// `grad_fn` of a view: where the memory was changed since the view got its history, the history is that of
/// the changed base.
pub(crate) fn renew(view: &Tensor) {
    let base = {
        let meta = view.autograd().borrow();
        let is_stale = meta.view_version != view.version();
        match &meta.base {
            Some(base) if is_stale && (meta.grad_fn.is_some() || base.requires_grad()) => base.clone(),
            _ => return,
        }
    };
    regenerate(view, &base);
}

/// Gives a view the history `AsStridedBackward0` of its base.
fn regenerate(view: &Tensor, base: &Tensor) {
    let to_base = as_strided_function(base, view);
    let backward = move |_: &Context<'_>, grads: &[Option<Tensor>]| Ok(vec![Some(to_base(first(grads)?)?)]);
    let node = Node::new(nodes::AsStridedBackward0, &[base], &[view], Body::function(Vec::new(), backward));
    view.autograd().borrow_mut().view_version = view.version();
    view.set_history(&node, 0);
}

/// The backward function of `as_strided`, from a tensor to a view of it by shape, strides and offset.
pub(crate) fn as_strided_function(
    base: &Tensor,
    view: &Tensor,
) -> impl Fn(&Tensor) -> Result<Tensor> + use<> {
    let (of_base, of_view) = (Geometry::of(base), Geometry::of(view));
    move |grad| as_strided_backward(grad, &of_base, &of_view)
}

/// `as_strided_backward`: zeros in the place of the memory that base and view reach, into which the gradient
/// is copied.
fn as_strided_backward(grad: &Tensor, base: &Geometry, view: &Geometry) -> Result<Tensor> {
    let mut grad = grad.clone();
    let mut view = view.clone();
    for dim in (0..view.shape.len()).rev() {
        let is_spread =
            view.strides.get(dim) == Some(&0) && view.shape.get(dim).is_some_and(|size| *size > 1);
        if is_spread {
            grad = reduce::sum(&grad, Some(&[dim as i64]), true, None)?;
            view.shape = grad.shape();
        }
    }
    if overlaps(&view) || overlaps(base) {
        session().note_estimate("as_strided", "the gradient of elements that overlap was not recorded");
    }
    let shared = base.offset.min(view.offset);
    let length = base.extent(base.offset - shared).max(view.extent(view.offset - shared));
    let storage = creation::zeros(&[length], grad.dtype(), grad.device())?;
    let part = storage.alias(&view.shape, &view.strides, view.offset - shared);
    copy::copy_below(&part, &grad, false)?;
    Ok(storage.alias(&base.shape, &base.strides, base.offset - shared))
}

/// `_maybe_overlapping_memory`: whether two elements may be the same one.
fn overlaps(geometry: &Geometry) -> bool {
    let mut dims: Vec<(i64, i64)> = geometry
        .strides
        .iter()
        .copied()
        .zip(geometry.shape.iter().copied())
        .filter(|(_, size)| *size > 1)
        .collect();
    dims.sort_unstable();
    let mut reach = 0;
    dims.into_iter().any(|(stride, size)| {
        let is_within = stride <= reach;
        reach = reach.saturating_add(stride.saturating_mul(size - 1));
        is_within
    })
}

/// `CopySlices`: the gradient of a base of which a view was changed by the function `change`.
pub(super) fn copy_slices(
    base: &Tensor,
    view: &Tensor,
    change: impl Fn(&Context<'_>, &[Option<Tensor>]) -> Result<Gradients> + 'static,
) -> impl Fn(&Context<'_>, &[Option<Tensor>]) -> Result<Gradients> + 'static {
    let (of_base, of_view) = (Geometry::of(base), Geometry::of(view));
    move |ctx, grads| {
        let grad = first(grads)?;
        let result = copy::empty_strided(&of_base.shape, &of_base.strides, grad.dtype(), grad.device())?;
        copy::copy_below(&result, grad, false)?;
        let offset = result.offset() + of_view.offset - of_base.offset;
        let slice = result.alias(&of_view.shape, &of_view.strides, offset);
        // The function may keep its input, so it gets a copy.
        let cloned = [Some(copy::clone(&slice, MemoryFormat::Contiguous)?)];
        let mut outputs = change(ctx, &cloned)?;
        drop(cloned);
        if let Some(Some(own)) = outputs.first_mut() {
            copy::copy_below(&slice, &std::mem::replace(own, result), false)?;
        }
        Ok(outputs)
    }
}

/// `rebase_history`: the base gets the history `node`, and the view that of its base.
pub(super) fn rebase(base: &Tensor, view: &Tensor, node: &Rc<Node>) {
    base.set_history(node, 0);
    regenerate(view, base);
}
