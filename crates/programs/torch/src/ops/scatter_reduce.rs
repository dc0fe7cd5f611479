//! Scattering with a reduction, and indexing into all elements: `scatter_reduce`, `index_reduce`, `take`,
//! `put`, `masked_scatter`.

use crate::arguments::arguments;
use crate::autograd::{Context, GradMode, GradModeGuard, Gradients, Save, double_backward, nodes, record};
use crate::error::runtime;
use crate::iterator;
use crate::registry::{Entry, in_place, op, pairs};
use crate::{Dtype, MemoryFormat, Result, Scalar, Tensor, Value, session};

use super::copy::{clone, contiguous, copy_below, to_dtype};
use super::creation::{self, empty, ones_like, wrapped, zeros_like};
use super::join::cat;
use super::pointwise::{
    change_in_place, div, eq, gt, kept_for_gradient, logical_and, masked_fill, masked_fill_in_place, mul,
    where_,
};
use super::scatter::{cloned_to_change, gather, index_select};
use super::sort::{scan_bytes, temporary};
use super::views::{expand, first, view, wrap};

/// How values that meet at one place are joined (`reduce=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduce {
    Sum,
    Product,
    Mean,
    Extremum,
}

/// How an index names places: one index for each value (`scatter_reduce`), or one for each slice
/// (`index_reduce`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scatter,
    Index,
}

impl Kind {
    fn pick(self, tensor: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        match self {
            Self::Scatter => gather(tensor, dim, index),
            Self::Index => index_select(tensor, dim, index),
        }
    }

    /// `scatter_add` or `index_add`, as a new tensor.
    fn add(self, input: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let name = if self == Self::Scatter { "scatter_add" } else { "index_add" };
        crate::call(name, &[input.into(), dim.into(), index.into(), source.into()], &[])?.tensor()
    }

    fn node(self) -> &'static str {
        if self == Self::Scatter { nodes::ScatterReduceBackward0 } else { nodes::IndexReduceBackward0 }
    }
}

/// One call of `scatter_reduce` or `index_reduce`.
#[derive(Clone, Copy, Debug)]
struct Plan {
    kind: Kind,
    reduce: Reduce,
    dim: i64,
    includes_input: bool,
}

fn zero() -> Tensor {
    wrapped(Scalar::Int(0))
}

fn one() -> Tensor {
    wrapped(Scalar::Int(1))
}

arguments! {
    /// The arguments of `scatter_reduce` and `index_reduce`.
    #[derive(Clone, Copy)]
    struct ReduceArguments<'a> {
        input: &'a Tensor,
        dim: i64,
        index: &'a Tensor,
        source: &'a Tensor,
        reduce: &'a str,
        includes_input: bool,
    }
}

/// The tensors that a call keeps for its gradient.
#[derive(Clone, Copy)]
struct SavedTensors<'a> {
    index: &'a Tensor,
    input: &'a Tensor,
    source: &'a Tensor,
    result: &'a Tensor,
}

impl Plan {
    fn of(arguments: &ReduceArguments<'_>, kind: Kind) -> Result<Self> {
        let reduce = match (arguments.reduce, kind) {
            ("sum", Kind::Scatter) => Reduce::Sum,
            ("prod", _) => Reduce::Product,
            ("mean", _) => Reduce::Mean,
            ("amax" | "amin", _) => Reduce::Extremum,
            _ => return runtime("reduce argument must be either sum, prod, mean, amax or amin."),
        };
        let dim = wrap(arguments.dim, arguments.input.dim())? as i64;
        Ok(Self { kind, reduce, dim, includes_input: arguments.includes_input })
    }

    /// Runs the kernels; `output` has the values of the tensor already.
    fn fill(self, output: &Tensor, source: &Tensor) -> Result<()> {
        if self.reduce != Reduce::Mean {
            return Ok(());
        }
        let ones = if self.kind == Kind::Scatter { Some(ones_like(source)?) } else { None };
        let count = if self.includes_input { ones_like(output)? } else { zeros_like(output)? };
        if self.kind == Kind::Index {
            // This tensor of ones lives to the end of the statement in which it is added up.
            drop(ones_like(source)?);
        }
        masked_fill_in_place(&count, &eq(&count, &zero())?, &one())?;
        drop(count);
        drop(ones);
        Ok(())
    }

    fn reduce(self, input: &Tensor, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let output = {
            let _no_grad = GradModeGuard::new(false);
            let output = empty(&input.shape(), input.dtype(), input.device())?;
            copy_below(&output, input, false)?;
            output.forget_values();
            self.fill(&output, source)?;
            output
        };
        self.note(input, input, index, source, &output)?;
        Ok(output)
    }

    fn note(
        self,
        input: &Tensor,
        kept: &Tensor,
        index: &Tensor,
        source: &Tensor,
        output: &Tensor,
    ) -> Result<()> {
        let saved =
            [Save::Input(Some(index)), Save::Input(Some(kept)), Save::Input(Some(source)), Save::Output(0)];
        record(self.kind.node(), &[input, source], &[output], &saved, move |ctx, grads| {
            self.backward(ctx, first(grads)?)
        })
    }

    /// `scatter_reduce_backward` and `index_reduce_backward`.
    fn backward(self, ctx: &Context<'_>, grad: &Tensor) -> Result<Gradients> {
        let (index, input, source, result) = (ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?, ctx.saved(3)?);
        let kept = SavedTensors { index: &index, input: &input, source: &source, result: &result };
        double_backward::set_variant(&format!("{:?} {}", self.reduce, self.includes_input));
        let (mut grad_input, to_source) = match self.reduce {
            Reduce::Sum => (grad.clone(), gather(grad, self.dim, &index)?),
            Reduce::Mean => self.mean_backward(grad, &index, &source)?,
            Reduce::Extremum => self.extremum_backward(grad, kept)?,
            Reduce::Product => self.product_backward(grad, kept)?,
        };
        if !self.includes_input {
            let name = if self.kind == Kind::Scatter { "scatter" } else { "index_fill" };
            let filled =
                crate::call(name, &[(&grad_input).into(), self.dim.into(), (&index).into(), 0.into()], &[])?;
            grad_input = filled.tensor()?;
        }
        Ok(vec![Some(grad_input), Some(to_source)])
    }

    fn mean_backward(self, grad: &Tensor, index: &Tensor, source: &Tensor) -> Result<(Tensor, Tensor)> {
        let start = if self.includes_input { ones_like(grad)? } else { zeros_like(grad)? };
        let count = {
            let ones = ones_like(source)?;
            let count = self.kind.add(&start, self.dim, index, &ones)?;
            drop(start);
            count
        };
        masked_fill_in_place(&count, &eq(&count, &zero())?, &one())?;
        let grad_input = div(grad, &count)?;
        let of_source = self.kind.pick(&count, self.dim, index)?;
        let to_source = div(&self.kind.pick(grad, self.dim, index)?, &of_source)?;
        drop(of_source);
        drop(count);
        Ok((grad_input, to_source))
    }

    fn extremum_backward(self, grad: &Tensor, kept: SavedTensors<'_>) -> Result<(Tensor, Tensor)> {
        let SavedTensors { index, input, source, result } = kept;
        let value = self.kind.pick(result, self.dim, index)?;
        let own_is_result = to_dtype(&eq(input, result)?, input.dtype())?;
        let source_is_result = to_dtype(&eq(source, &value)?, input.dtype())?;
        let count = self.kind.add(&own_is_result, self.dim, index, &source_is_result)?;
        let spread = div(grad, &count)?;
        let (grad_input, to_source) = if self.kind == Kind::Scatter {
            let grad_input = mul(&eq(input, result)?, &spread)?;
            let picked = gather(&spread, self.dim, index)?;
            let to_source = mul(&eq(source, &value)?, &picked)?;
            drop(picked);
            (grad_input, to_source)
        } else {
            let grad_input = mul(&own_is_result, &spread)?;
            let to_source = mul(&source_is_result, &index_select(&spread, self.dim, index)?)?;
            (grad_input, to_source)
        };
        drop(spread);
        drop(count);
        drop(source_is_result);
        drop(own_is_result);
        drop(value);
        Ok((grad_input, to_source))
    }

    fn product_backward(self, grad: &Tensor, kept: SavedTensors<'_>) -> Result<(Tensor, Tensor)> {
        let SavedTensors { index, input, source, result } = kept;
        let masked_input = masked_fill(input, &eq(input, &zero())?, &one())?;
        let masked_own_result = self.reduce(&masked_input, index, source)?;
        let grad_input = div(&mul(grad, &masked_own_result)?, &masked_input)?;
        let is_zero = eq(source, &zero())?;
        let zeros = {
            let start = zeros_like(input)?;
            let flags = to_dtype(&is_zero, input.dtype())?;
            let count = self.kind.add(&start, self.dim, index, &flags)?;
            self.kind.pick(&count, self.dim, index)?
        };
        let is_single_zero = logical_and(&is_zero, &eq(&zeros, &one())?)?;
        let masked_source = masked_fill(source, &is_single_zero, &one())?;
        let masked_source_result = self.reduce(input, index, &masked_source)?;
        let to_source = {
            let divisor = masked_fill(source, &is_zero, &one())?;
            let product = mul(grad, result)?;
            let picked = self.kind.pick(&product, self.dim, index)?;
            let right = div(&picked, &divisor)?;
            let product_left = mul(grad, &masked_source_result)?;
            let left = self.kind.pick(&product_left, self.dim, index)?;
            where_(&is_single_zero, &left, &right)?
        };
        if GradMode::is_enabled() {
            drop(crate::call("any", &[(&gt(&zeros, &one())?).into()], &[])?);
        }
        drop(masked_source_result);
        drop(masked_source);
        drop(is_single_zero);
        drop(zeros);
        drop(is_zero);
        drop(masked_own_result);
        drop(masked_input);
        Ok((grad_input, to_source))
    }
}

fn reduce_into(arguments: &ReduceArguments<'_>, kind: Kind, in_place: bool) -> Result<Tensor> {
    let ReduceArguments { input, index, source, .. } = *arguments;
    let plan = Plan::of(arguments, kind)?;
    if !in_place {
        return plan.reduce(input, index, source);
    }
    let kept = kept_for_gradient(input)?;
    change_in_place(input)?;
    {
        let _no_grad = GradModeGuard::new(false);
        plan.fill(input, source)?;
    }
    plan.note(input, kept.as_ref().unwrap_or(input), index, source, input)?;
    Ok(input.clone())
}

/// `take`: elements by their place in the whole tensor.
pub(crate) fn take(input: &Tensor, index: &Tensor) -> Result<Tensor> {
    if index.dtype() != Dtype::I64 {
        return runtime(format!(
            "take(): Expected a long tensor for index, but got {}",
            index.dtype().scalar_name()
        ));
    }
    let output = empty(&index.shape(), input.dtype(), input.device())?;
    let saved = [Save::Input(Some(index)), Save::Input(Some(input))];
    record(nodes::TakeBackward0, &[input], &[&output], &saved, |ctx, grads| {
        let (index, input) = (ctx.saved(0)?, ctx.saved(1)?);
        let full = zeros_like(&input)?;
        put_in_place(&full, &index, first(grads)?, true)?;
        Ok(vec![Some(full)])
    })?;
    Ok(output)
}

fn put_in_place(input: &Tensor, index: &Tensor, source: &Tensor, accumulates: bool) -> Result<()> {
    if index.dtype() != Dtype::I64 {
        return runtime(format!(
            "put_(): Expected a long tensor for index, but got {}",
            index.dtype().scalar_name()
        ));
    }
    if index.numel() != source.numel() {
        return runtime(format!(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, \
             index.numel() = {}",
            source.numel(),
            index.numel()
        ));
    }
    change_in_place(input)?;
    record_put(input, input, index, source, accumulates)
}

fn record_put(
    input: &Tensor,
    output: &Tensor,
    index: &Tensor,
    source: &Tensor,
    accumulates: bool,
) -> Result<()> {
    let saved = [Save::Input(Some(index)), Save::Input(Some(source))];
    record(nodes::PutBackward0, &[input, source], &[output], &saved, move |ctx, grads| {
        let (grad, index, source) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        let grad_input = match (ctx.wants(0), accumulates) {
            (false, _) => None,
            (true, true) => Some(grad.clone()),
            (true, false) => Some(put(grad, &index, &zeros_like(&source)?, false)?),
        };
        let to_source = ctx.gradient(1, || super::views::reshape(&take(grad, &index)?, &source.shape()))?;
        Ok(vec![grad_input, to_source])
    })
}

/// `put`: a copy into which `put_` writes.
fn put(input: &Tensor, index: &Tensor, source: &Tensor, accumulates: bool) -> Result<Tensor> {
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let output = clone(input, MemoryFormat::Preserve)?;
        put_in_place(&output, index, source, accumulates)?;
        output
    };
    record_put(input, &output, index, source, accumulates)?;
    Ok(output)
}

/// `masked_scatter`, as a new tensor or in place.
fn masked_scatter(input: &Tensor, mask: &Tensor, source: &Tensor, in_place: bool) -> Result<Value> {
    if input.dtype() != source.dtype() {
        return runtime(format!(
            "masked_scatter_: expected self and source to have same dtypes but got {} and {}",
            input.dtype().scalar_name(),
            source.dtype().scalar_name()
        ));
    }
    if mask.dtype() != Dtype::Bool {
        return runtime(format!(
            "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
            mask.dtype().scalar_name()
        ));
    }
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let output = if in_place {
            change_in_place(input)?;
            input.clone()
        } else {
            let shape = iterator::broadcast(&[&mask.shape(), &input.shape()])?;
            cloned_to_change(&expand(input, &shape)?, MemoryFormat::Contiguous)?
        };
        let spread = expand(mask, &output.shape())?;
        let count = output.numel().max(0) as u64;
        let sums = empty(&output.shape(), Dtype::I64, input.device())?;
        let read = contiguous(&spread)?;
        if input.device().is_cuda() {
            drop(temporary(input.device(), scan_bytes(count, Dtype::I64))?);
        }
        drop(contiguous(source)?);
        drop(read);
        drop(sums);
        output
    };
    let sizes = source.shape();
    record(
        nodes::MaskedScatterBackward0,
        &[input, source],
        &[&output],
        &[Save::Input(Some(mask))],
        move |ctx, grads| {
            let (grad, mask) = (first(grads)?, ctx.saved(0)?);
            let grad_input = ctx.gradient(0, || masked_fill(grad, &mask, &zero()))?;
            let to_source = ctx.gradient(1, || masked_scatter_backward(grad, &mask, &sizes))?;
            Ok(vec![grad_input, to_source])
        },
    )?;
    Ok(output.into())
}

/// `masked_scatter_backward`: the elements that the mask selects, and zeros for the elements of the source
/// that were not used.
fn masked_scatter_backward(grad: &Tensor, mask: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    let wanted = crate::numel(sizes);
    let selected = crate::call("masked_select", &[grad.into(), mask.into()], &[])?.tensor()?;
    let missing = wanted - selected.numel();
    if missing < 0 {
        session().note_estimate("masked_scatter", "how many elements the mask selects depends on values");
        return view(&super::views::narrow(&selected, 0, 0, wanted)?, sizes);
    }
    if missing == 0 {
        return view(&selected, sizes);
    }
    let rest = creation::zeros(&[missing], grad.dtype(), grad.device())?;
    let joined = cat(&[selected, rest], 0)?;
    view(&joined, sizes)
}

pub(crate) const TABLE: &[Entry] = &[
    op!("take(Tensor self, Tensor index)", take),
    op!("put(Tensor self, Tensor index, Tensor source, bool accumulate=False)", put),
    in_place!("put_(Tensor self, Tensor index, Tensor source, bool accumulate=False)", put_in_place),
];

pub(crate) const PAIRS: &[Entry] = pairs! {
    "scatter_reduce" "Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True"
        |arguments: ReduceArguments<'_>| reduce_into(&arguments, Kind::Scatter);
    "index_reduce" "Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True"
        |arguments: ReduceArguments<'_>| reduce_into(&arguments, Kind::Index);
    "masked_scatter" "Tensor self, Tensor mask, Tensor source"
        |own: &Tensor, mask: &Tensor, source: &Tensor| masked_scatter(own, mask, source);
};
