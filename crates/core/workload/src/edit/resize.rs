//! Another size for a tensor, in the statement that allocates it.

use blockyard_record::Bytes;

use super::EditError;
use super::outline::Outline;
use crate::request::{Request, TensorId};
use crate::size::write_size;
use crate::workload::Workload;

/// A text in which one statement allocates another size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResizedText {
    /// The new text; it parses.
    pub text: String,
    /// How many tensors the statement allocates: more than 1 in a loop.
    pub tensors: usize,
}

/// Changes the size in the statement that allocates a tensor. In a loop this is the size of all tensors of
/// the statement.
///
/// `workload` is the workload of `text`. The rest of the statement and of the text stays as it is; a function
/// of PyTorch's becomes `alloc` and the size.
///
/// # Errors
///
/// [`EditError::Text`] and [`EditError::Stale`] when `text` and `workload` do not belong together,
/// [`EditError::NotAllocated`] for a tensor that no request allocates, [`EditError::Rejected`] for a size
/// that the text cannot have, [`EditError::NotExpressible`] where it is not clear which statement allocates
/// the tensor.
pub fn resize(
    text: &str,
    workload: &Workload,
    tensor: TensorId,
    size: Bytes,
) -> Result<ResizedText, EditError> {
    let outline = Outline::new(text)?;
    if outline.workload.requests() != workload.requests() {
        return Err(EditError::Stale);
    }
    let is_made =
        |request: &Request| matches!(request, Request::Allocate { tensor: made, .. } if *made == tensor);
    let request = workload.requests().iter().position(is_made).ok_or(EditError::NotAllocated { tensor })?;
    let span = outline.size_of(request, tensor).ok_or(EditError::NotExpressible)?;
    let (before, after) = (text.get(..span.start), text.get(span.end..));
    let (Some(before), Some(after)) = (before, after) else { return Err(EditError::NotExpressible) };
    let text = format!("{before}alloc {}{after}", write_size(size));
    let changed = Workload::parse(&text).map_err(EditError::Rejected)?;
    let tensors = resized(workload, &changed, request, size).ok_or(EditError::NotExpressible)?;
    Ok(ResizedText { text, tensors })
}

/// How many tensors have the new size, if nothing else differs and the tensor of `request` is one of them.
fn resized(before: &Workload, after: &Workload, request: usize, size: Bytes) -> Option<usize> {
    let (old, new) = (before.requests(), after.requests());
    let line = before.line(request);
    let base_of = |tensor: TensorId| before.names.get(tensor.get() as usize).map(|name| name.base);
    let base = match old.get(request)? {
        Request::Allocate { tensor, .. } => base_of(*tensor),
        _ => None,
    };
    if old.len() != new.len() {
        return None;
    }
    let mut tensors = 0;
    for (index, (one, other)) in old.iter().zip(new).enumerate() {
        let is_of_line = before.line(index) == line;
        match (*one, *other) {
            (one, other) if one == other && index != request => {
                tensors += usize::from(
                    matches!(other, Request::Allocate { tensor, size: same, .. } if same == size && is_of_line && base_of(tensor) == base),
                );
            }
            (
                Request::Allocate { tensor, stream, .. },
                Request::Allocate { tensor: same, size: changed, stream: on },
            ) if tensor == same && stream == on && changed == size && is_of_line => tensors += 1,
            _ => return None,
        }
    }
    Some(tensors)
}
