//! Kernels that draw one number for each element, from distributions beyond uniform and normal ones.

use crate::arguments::Unread;
use crate::autograd::{GradModeGuard, Save, nodes, record};
use crate::error::not_implemented;
use crate::iterator::broadcast;
use crate::registry::{Entry, op};
use crate::{Result, Tensor, Value};

use super::creation::{empty, zeros, zeros_like};
use super::pointwise::{change_in_place, mul};
use super::views::first;

/// `at::empty(self.sizes(), self.options())`, whose numbers the host's generator draws in an order that was
/// not looked up.
fn drawn_as(like: &Tensor) -> Result<Tensor> {
    let output = empty(&like.shape(), like.dtype(), like.device())?;
    crate::session().generators.forget_on(like.device());
    Ok(output)
}

/// `poisson`; its derivative is zeros of the input's shape.
fn poisson(rate: &Tensor) -> Result<Tensor> {
    let output = drawn_as(rate)?;
    let (shape, dtype, device) = (rate.shape(), rate.dtype(), rate.device());
    record(nodes::PoissonBackward0, &[rate], &[&output], &[], move |_, _| {
        Ok(vec![Some(zeros(&shape, dtype, device)?)])
    })?;
    Ok(output)
}

/// `binomial`, which PyTorch does not differentiate.
fn binomial(count: &Tensor, prob: &Tensor) -> Result<Tensor> {
    broadcast(&[&count.shape(), &prob.shape()])?;
    let output = drawn_as(count)?;
    record("NotImplemented", &[count, prob], &[&output], &[], |_, _| {
        not_implemented("derivative for aten::binomial is not implemented")
    })?;
    Ok(output)
}

/// `_standard_gamma`, which is differentiated by `_standard_gamma_grad`.
fn standard_gamma(alpha: &Tensor) -> Result<Tensor> {
    let output = drawn_as(alpha)?;
    let saved = [Save::Input(Some(alpha)), Save::Output(0)];
    record(nodes::StandardGammaBackward0, &[alpha], &[&output], &saved, |ctx, grads| {
        let slope = standard_gamma_grad(&ctx.saved(0)?, &ctx.saved(1)?)?;
        Ok(vec![Some(mul(first(grads)?, &slope)?)])
    })?;
    Ok(output)
}

fn standard_gamma_grad(alpha: &Tensor, output: &Tensor) -> Result<Tensor> {
    let slope = empty(&alpha.shape(), alpha.dtype(), alpha.device())?;
    record(nodes::StandardGammaGradBackward0, &[alpha, output], &[&slope], &[], |_, _| {
        not_implemented("the derivative for '_standard_gamma_grad' is not implemented.")
    })?;
    Ok(slope)
}

/// `_sample_dirichlet`: standard gammas, divided by their sums.
fn sample_dirichlet(alpha: &Tensor) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let output = drawn_as(alpha)?;
    let sums = super::reduce::sum(&output, Some(&[-1]), true, None)?;
    drop(sums);
    Ok(output)
}

/// `cauchy_`, `geometric_` and `log_normal_`: the gradient of the tensor becomes zeros.
fn fill(tensor: &Tensor, node: &'static str) -> Result<Value> {
    change_in_place(tensor)?;
    tensor.set_values(None);
    crate::session().generators.forget_on(tensor.device());
    record(node, &[tensor], &[tensor], &[], |_, grads| Ok(vec![Some(zeros_like(first(grads)?)?)]))?;
    Ok(tensor.into())
}

pub(crate) const TABLE: &[Entry] = &[
    op!("poisson(Tensor input)", poisson),
    op!("binomial(Tensor count, Tensor prob)", binomial),
    op!("_standard_gamma(Tensor self)", standard_gamma),
    op!("_sample_dirichlet(Tensor self)", sample_dirichlet),
    op!("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total)", |x: &Tensor, _: Unread, _: Unread| {
        empty(&x.shape(), x.dtype(), x.device())
    }),
    op!("cauchy_(Tensor self, float median=0, float sigma=1)", |tensor: &Tensor, _: Unread, _: Unread| {
        fill(tensor, nodes::CauchyBackward0)
    }),
    op!("log_normal_(Tensor self, float mean=1, float std=2)", |tensor: &Tensor, _: Unread, _: Unread| {
        fill(tensor, nodes::LogNormalBackward0)
    }),
    op!("geometric_(Tensor self, float p)", |tensor: &Tensor, _: Unread| fill(
        tensor,
        nodes::GeometricBackward0
    )),
];
