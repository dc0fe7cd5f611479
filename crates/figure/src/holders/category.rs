//! Categories of data (parameters, gradients, activations), derived from stacks.

use blockyard_record::{Frame, StackId, Stacks};

/// The kind of data that an allocation holds, if the stack shows it.
///
/// A stack says which code asked for memory, not what became of it: temporaries of a forward pass count as activations, those
/// of a backward pass as gradients. PyTorch runs most of a backward pass on its own threads, which have no Python stack.
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
    /// No stack was recorded, as for most of a backward pass.
    Unknown,
}

impl StackCategory {
    /// All of them.
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
            Self::Unknown => "no stack",
        }
    }

    /// The category of an allocation with this stack.
    #[must_use]
    pub fn of(stacks: &Stacks, stack: StackId) -> Self {
        let frames = || stacks.frames(stack).map(|frame| stacks.frame(frame));
        let any = |is_so: fn(&Frame<'_>) -> bool| frames().any(|frame| is_so(&frame));
        if frames().len() == 0 {
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
}

/// `Module.to` and its like, parameters that a constructor makes, and checkpoints that are loaded.
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
