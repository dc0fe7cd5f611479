//! Why memory is alive, in words.

use std::fmt;

/// A reason why memory is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Names of the program lead to a tensor in it, such as `model[0].weight`.
    Name(String),
    /// A node of the backward graph saved the memory.
    Saved {
        /// The node, such as `MulBackward0`.
        node: &'static str,
        /// The node's member that keeps the memory, if PyTorch names the member.
        member: Option<&'static str>,
        /// The tensor to which the backward graph belongs.
        graph_of: String,
    },
    /// A node of the backward graph adds up this leaf's gradient.
    Leaf {
        /// The tensor to which the backward graph belongs.
        graph_of: String,
    },
    /// A library keeps the memory until the process ends.
    Library(&'static str),
    /// The cache of `torch.autocast` keeps the memory.
    AutocastCache,
    /// The line that runs uses the memory.
    Value,
    /// Only objects that refer to each other hold the memory, until Python's garbage collector runs.
    Cycle,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Saved { node, member: Some(member), graph_of } => {
                write!(f, "saved as {member} by {node}, in the backward graph of {graph_of}")
            }
            Self::Saved { node, member: None, graph_of } => {
                write!(f, "saved by {node}, in the backward graph of {graph_of}")
            }
            Self::Leaf { graph_of } => write!(f, "a leaf of the backward graph of {graph_of}"),
            Self::Library(name) => write!(f, "{name} keeps it until the process ends"),
            Self::AutocastCache => f.write_str("the cache of torch.autocast, until its outermost block ends"),
            Self::Value => f.write_str("a value of the line that runs, without a name"),
            Self::Cycle => f.write_str(
                "a cycle of Python references that nothing else holds, until the garbage collector runs",
            ),
        }
    }
}
