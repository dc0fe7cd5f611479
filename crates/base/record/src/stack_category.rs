//! Categories of data (parameters, gradients, activations), derived from stacks.

use crate::own_code::{frame_of, is_backward_function};
use crate::{Frame, StackId, Stacks};

/// The kind of data that an allocation holds, if the stack shows it.
///
/// A stack says which code asked for memory, not what became of it: temporaries of a forward pass count as
/// activations, those of a backward pass as gradients. PyTorch runs most of a backward pass on its own
/// threads, which have no Python stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StackCategory {
    /// Made while a module was built, moved to the device or loaded.
    Parameters,
    /// Made in a backward pass that the stack shows.
    Gradients,
    /// Made by an optimizer: its state and its temporaries.
    Optimizer,
    /// Made in the forward pass of a module.
    Activations,
    /// Made by other code.
    Other,
    /// No stack was recorded, as for most of a backward pass. A figure infers from more than the stack which
    /// of these allocations are gradients.
    Unknown,
}

impl StackCategory {
    /// All categories.
    pub const ALL: [Self; 6] =
        [Self::Parameters, Self::Gradients, Self::Optimizer, Self::Activations, Self::Other, Self::Unknown];

    /// The name in a legend.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::Optimizer => "optimizer",
            Self::Activations => "activations",
            Self::Other => "other code",
            Self::Unknown => "without a stack",
        }
    }

    /// The category of an allocation with this stack.
    #[must_use]
    pub fn of(stacks: &Stacks, stack: StackId) -> Self {
        Self::of_frames(|| stacks.frames(stack).map(|frame| stacks.frame(frame)))
    }

    /// The category of an allocation with this stack of texts, `function (file:line)` each.
    #[must_use]
    pub fn from_texts(stack: &[String]) -> Self {
        Self::of_frames(|| stack.iter().map(|line| frame_of(line)))
    }

    fn of_frames<'a, I: Iterator<Item = Frame<'a>>>(frames: impl Fn() -> I) -> Self {
        let any = |is_so: fn(&Frame<'_>) -> bool| frames().any(|frame| is_so(&frame));
        if frames().next().is_none() {
            Self::Unknown
        } else if any(is_optimizer) {
            Self::Optimizer
        } else if any(is_backward) {
            Self::Gradients
        } else if any(is_building) {
            Self::Parameters
        } else if any(is_forward) {
            Self::Activations
        } else {
            Self::Other
        }
    }
}

fn is_optimizer(frame: &Frame<'_>) -> bool {
    frame.filename.contains("torch/optim/")
}

fn is_backward(frame: &Frame<'_>) -> bool {
    (frame.name == "backward" && frame.filename.contains("torch/"))
        || frame.name == "_engine_run_backward"
        || frame.filename.ends_with("torch/autograd/graph.py")
        // A thread of autograd, where frames of C++ were recorded.
        || frame.name.starts_with("torch::autograd::Engine::")
        || is_backward_function(frame.name)
}

/// Whether the frame is `Module.to` or a similar method, a constructor that makes parameters, or a function
/// that loads saved weights.
fn is_building(frame: &Frame<'_>) -> bool {
    let is_module = frame.filename.ends_with("torch/nn/modules/module.py");
    (is_module && matches!(frame.name, "_apply" | "to" | "cuda" | "_load_from_state_dict"))
        || (frame.name == "__init__" && frame.filename.contains("torch/nn/"))
        || matches!(
            frame.name,
            "reset_parameters"
                | "flatten_parameters"
                | "_init_sharded_param"
                | "from_pretrained"
                | "load_state_dict"
        )
}

fn is_forward(frame: &Frame<'_>) -> bool {
    frame.name == "forward" || frame.name == "_call_impl"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_of_texts_has_the_category_of_its_frames() {
        let of = |frames: &[&str]| {
            StackCategory::from_texts(&frames.iter().map(|frame| (*frame).to_owned()).collect::<Vec<_>>())
        };
        let adam = "_init_group (/x/site-packages/torch/optim/adam.py:169)";
        assert_eq!(of(&[adam, "main (train.py:90)"]), StackCategory::Optimizer);
        let to = "_apply (/x/site-packages/torch/nn/modules/module.py:928)";
        assert_eq!(of(&[to, "main (train.py:12)"]), StackCategory::Parameters);
        assert_eq!(of(&["main (train.py:12)"]), StackCategory::Other);
        let accumulate = "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&) (:0)";
        let thread =
            "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&) (??:0)";
        assert_eq!(of(&["at::native::mul(at::Tensor const&) (??:0)", thread]), StackCategory::Gradients);
        assert_eq!(of(&[accumulate]), StackCategory::Gradients);
        let forward = "torch::autograd::VariableType::(anonymous namespace)::mul(at::Tensor const&) (:0)";
        assert_eq!(of(&[forward, "main (train.py:12)"]), StackCategory::Other);
        assert_eq!(of(&[]), StackCategory::Unknown);
    }
}
