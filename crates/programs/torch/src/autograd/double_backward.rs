//! Which backward functions a real GPU was recorded to differentiate again (`create_graph=True`), and in
//! which variants.
//!
//! A recorded program proves the variant that it ran and no other: a norm of order 3 is another formula than
//! one of order 2. So what counts as recorded is a signature: the backward function, which gradients are
//! wanted, the gradients that come in and the saved tensors by type, dimensions and layout, and what the
//! formula itself branches on. A signature that no recorded program has is marked. Backward functions that
//! their operator declares as `composed` need their name alone: what they allocate follows from the operators
//! of their statements, whatever the variant.
//!
//! `second_derivatives.txt` has the signatures of the recorded programs whose every line and event is equal;
//! a test of the crate `python` runs these programs and compares.

use std::fmt::Write as _;
use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::node::{Body, Node};
use super::saved::SavedVariable;
use super::{GradMode, Gradients};
use crate::{Tensor, registry, session};

static RECORDED: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| include_str!("second_derivatives.txt").lines().collect());

/// Backward functions that need their name alone: see `Entry::composed`.
static COMPOSED: LazyLock<FxHashSet<&str>> = LazyLock::new(|| registry::composed().collect());

/// The variant of an operator that a program called in place.
pub(crate) const IN_PLACE: &str = "in place";

/// Notes what the running formula branches on, so that one branch is not taken for another.
pub(crate) fn set_variant(name: &str) {
    let session = session();
    let mut variant = session.modes.variant.borrow_mut();
    if !variant.is_empty() {
        variant.push('+');
    }
    variant.push_str(name);
}

/// The signature of a backward function that is about to run, where it belongs to a second derivative: it is
/// differentiated again, or it was made by a backward function.
pub(super) fn begin(node: &Node, grads: &Gradients, wanted: &[bool]) -> Option<String> {
    if !GradMode::is_enabled() && !node.is_of_backward() {
        return None;
    }
    session().modes.variant.borrow_mut().clear();
    let mut text = node.name().to_owned();
    if COMPOSED.contains(node.name()) {
        return Some(text);
    }
    text.push_str(" wants ");
    text.extend(wanted.iter().map(|wanted| if *wanted { '1' } else { '0' }));
    text.push_str(" grads");
    for grad in grads {
        describe(&mut text, grad.as_ref());
    }
    if let Body::Function { saved, .. } = &node.body {
        text.push_str(" saved");
        for variable in saved.borrow().iter() {
            match variable {
                SavedVariable::Kept { tensor, .. } => describe(&mut text, Some(tensor)),
                SavedVariable::Packed { .. } => text.push_str(" packed"),
                SavedVariable::Nothing | SavedVariable::Released(_) => describe(&mut text, None),
            }
        }
    }
    Some(text)
}

/// Marks the backward function that ran, where its signature is not recorded.
pub(super) fn finish(node: &Node, signature: Option<String>) {
    let Some(mut signature) = signature else { return };
    let session = session();
    let variant = session.modes.variant.take();
    // An operator that worked in place saves other tensors, whatever its formula is made of.
    if !variant.is_empty() && (!COMPOSED.contains(node.name()) || variant == IN_PLACE) {
        signature.push_str(" as ");
        signature.push_str(&variant);
    }
    if !RECORDED.contains(signature.as_str()) {
        session.note_estimate(
            node.name(),
            "its second derivative (create_graph=True) was not recorded in this variant",
        );
    }
    session.modes.second_derivatives.borrow_mut().insert(signature);
}

/// Type, number of dimensions and layout.
fn describe(text: &mut String, tensor: Option<&Tensor>) {
    let Some(tensor) = tensor else {
        text.push_str(" -");
        return;
    };
    let layout = if tensor.is_contiguous() {
        ""
    } else if tensor.suggested_format() != crate::MemoryFormat::Contiguous {
        " last"
    } else {
        " strided"
    };
    // Writing to a text does not fail.
    let _written = write!(text, " {}:{}{layout}", tensor.dtype().scalar_name(), tensor.dim());
}
