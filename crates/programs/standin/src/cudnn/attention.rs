//! Attention: found in a graph of operations, as PyTorch builds it.

use blockyard_gpus::layers::Attention;

use crate::cudnn::attributes::{kind, name};
use crate::cudnn::backend::{Descriptor, Descriptors, Tensor, tensor};
use crate::settings::settings;

/// The forward pass has two products, the backward pass five.
const PRODUCTS_FORWARD: usize = 2;

fn size(tensor: &Tensor, index: usize) -> Option<u64> {
    u64::try_from(*tensor.sizes.get(index)?).ok()
}

/// The shape from queries (batch, heads, queries, width) and keys, whose places for heads and keys follow.
fn shape(queries: &Tensor, keys: &Tensor, place_of_keys: usize) -> Option<Attention> {
    Some(Attention {
        batch: size(queries, 0)?,
        heads: size(queries, 1)?,
        key_heads: size(keys, 1)?,
        queries: size(queries, 2)?,
        keys: size(keys, place_of_keys)?,
        width: size(queries, 3)?,
        // Only types of two bytes have attention.
        element_bytes: 2,
    })
}

/// Bytes of the workspace that the graph needs; `None` if the graph is not attention.
pub(super) fn workspace(all: &Descriptors, operations: &[&Descriptor]) -> Option<u64> {
    let multiprocessors = u64::from(settings().gpu.multiprocessors);
    let part = |operation: &Descriptor, attribute| tensor(all, operation.named(attribute)?);
    if let [operation] = operations
        && operation.kind == kind::ATTENTION
    {
        let (queries, keys) =
            (part(operation, name::ATTENTION_QUERIES)?, part(operation, name::ATTENTION_KEYS)?);
        return Some(shape(&queries, &keys, 2)?.forward(multiprocessors));
    }
    let products: Vec<_> = operations.iter().filter(|operation| operation.kind == kind::PRODUCT).collect();
    // Queries times keys comes first in both passes, with the keys as columns.
    let first = products.first()?;
    let shape = shape(&part(first, name::PRODUCT_A)?, &part(first, name::PRODUCT_B)?, 3)?;
    Some(if products.len() == PRODUCTS_FORWARD { shape.forward(multiprocessors) } else { shape.backward() })
}
