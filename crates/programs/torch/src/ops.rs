//! The operators, by family. Each is one function with ATen's statements in ATen's order.
//!
//! A `drop` of a tensor frees its memory at the place where C++ destroys the temporary. Local tensors without
//! a `drop` are freed at the end of the function, the last first, as in C++.
//!
//! An operator is a row of its family's `TABLE`: `op!("schema", function)`, or `in_place!` where the result
//! is the first argument; a row of `pairs!` is two operators, of which the second works in place. The
//! function's parameters are the schema's, by type (`&Tensor`, `i64`, `Option<&[i64]>`, `Unread` for an
//! argument that memory does not depend on; all in `arguments.rs`): a row whose function does not agree with
//! its schema does not compile. A row may add:
//!
//! - `.copies_or_fills()`: the operator's kernels make the driver load nothing;
//! - `.takes_sparse()`: the row is an overload for sparse tensors;
//! - `.composed(&["Node"])`: every statement of these backward functions is an operator. In
//!   `second_derivatives.txt`, which recorded programs fill, such a function needs its name alone, and not
//!   each variant.
//!
//! An operator whose first parameter is `self` is a method of `Tensor` too; give it another name where
//! PyTorch has no such method. Of several rows with one name the first that takes the arguments counts, and a
//! number's parameter takes a tensor of one element as well: overloads for tensors come first. `error.rs` has
//! the forms of PyTorch's refusals.
//!
//! `op!("relu(Tensor self)", relu)` would be a row, and `fn relu(input: &Tensor) -> Result<Tensor>` its
//! function. A derivative is `autograd::record` in the function.

pub(crate) mod attention;
mod bce;
mod by_value;
pub(crate) mod conv;
pub(crate) mod copy;
pub(crate) mod creation;
mod ctc;
mod distance;
pub(crate) mod dropout;
mod einsum;
mod embedding;
mod fold;
pub(crate) mod foreach;
mod gated;
mod grid;
mod group_norm;
pub(crate) mod host_values;
pub(crate) mod index;
mod integrate;
mod interpolate;
pub(crate) mod join;
mod kernels;
pub(crate) mod loss;
mod margin;
pub(crate) mod matmul;
mod noise;
pub(crate) mod norm;
mod norm_double;
mod order;
pub(crate) mod out;
mod packed;
mod pad;
pub(crate) mod pointwise;
pub(crate) mod pool;
mod products;
pub(crate) mod reduce;
pub(crate) mod rnn;
mod scatter;
mod scatter_reduce;
mod scatter_views;
mod searchsorted;
pub(crate) mod softmax;
pub(crate) mod sort;
pub(crate) mod sparse;
mod special;
mod statistics;
mod transformer;
pub(crate) mod unary;
mod vector_norm;
pub(crate) mod views;
mod weight_norm;

use crate::registry::Entry;

/// The tables of all families.
pub(crate) const TABLES: &[&[Entry]] = &[
    creation::TABLE,
    copy::TABLE,
    copy::CASTS,
    pointwise::TABLE,
    pointwise::PAIRS,
    pointwise::BINARY,
    unary::TABLE,
    unary::ACTIVATIONS,
    unary::OTHERS,
    join::TABLE,
    sort::TABLE,
    order::TABLE,
    distance::TABLE,
    index::TABLE,
    scatter::TABLE,
    scatter::PAIRS,
    embedding::TABLE,
    by_value::TABLE,
    loss::TABLE,
    softmax::TABLE,
    dropout::TABLE,
    margin::TABLE,
    pad::TABLE,
    norm::TABLE,
    pool::TABLE,
    interpolate::TABLE,
    attention::TABLE,
    transformer::TABLE,
    conv::TABLE,
    rnn::TABLE,
    foreach::TABLE,
    foreach::LISTS,
    reduce::TABLE,
    reduce::SPREADS,
    matmul::TABLE,
    views::TABLE,
    special::TABLE,
    special::OF_TWO,
    integrate::TABLE,
    searchsorted::TABLE,
    noise::TABLE,
    products::TABLE,
    statistics::TABLE,
    ctc::TABLE,
    fold::TABLE,
    grid::TABLE,
    packed::TABLE,
    scatter_reduce::TABLE,
    scatter_reduce::PAIRS,
    scatter_views::TABLE,
    scatter_views::PAIRS,
    weight_norm::TABLE,
    sparse::TABLE,
];
