//! The programs that come with the page.

use blockyard_gpus::GpuProfile;

/// A program that comes with the page. Text files beside it have the output of PyTorch on an H200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Example {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// The settings under which it was recorded, and how the names of these text files end.
    pub(crate) recordings: &'static [(&'static str, &'static str)],
}

const DEFAULT: &[(&str, &str)] = &[("", "txt")];
const BOTH: &[(&str, &str)] = &[("", "txt"), ("expandable_segments:True", "expandable_segments.txt")];

pub(crate) static EXAMPLES: [Example; 12] = [
    Example { id: "mlp_adam", title: "An MLP with Adam", recordings: DEFAULT },
    Example { id: "language_model", title: "A small language model", recordings: DEFAULT },
    Example { id: "autoencoder", title: "An autoencoder with BatchNorm", recordings: DEFAULT },
    Example { id: "checkpoint_and_autocast", title: "Checkpointing and autocast", recordings: DEFAULT },
    Example { id: "memory_of_operators", title: "What operators allocate", recordings: DEFAULT },
    Example { id: "fragmentation_1_blocks", title: "Fragmentation 1: blocks", recordings: BOTH },
    Example {
        id: "fragmentation_2_small_first",
        title: "Fragmentation 2: small tensors first",
        recordings: BOTH,
    },
    Example {
        id: "fragmentation_3_large_first",
        title: "Fragmentation 3: large tensors first",
        recordings: BOTH,
    },
    Example { id: "fragmentation_4_pages", title: "Fragmentation 4: pages", recordings: BOTH },
    Example { id: "fragmentation_5_both_orders", title: "Fragmentation 5: both orders", recordings: BOTH },
    Example { id: "fragmentation_6_kept", title: "Fragmentation 6: what is kept", recordings: BOTH },
    Example { id: "fragmentation_7_one_mib", title: "Fragmentation 7: 1 MiB", recordings: BOTH },
];

/// The GPU whose numbers were compared with recordings.
pub(crate) const DEFAULT_GPU: &str = GpuProfile::H200.id;

/// The program in the editor on the first visit.
pub(crate) const FIRST_PROGRAM: &str = r#"import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
print("parameters:", torch.cuda.memory_allocated(), "bytes")

for step in range(3):
    inputs = torch.randn(256, 1024, device="cuda")
    targets = torch.randint(0, 10, (256,), device="cuda")
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item(), "allocated", torch.cuda.memory_allocated())

print("peak:", torch.cuda.max_memory_allocated(), "reserved:", torch.cuda.memory_reserved())
"#;

/// The note about every GPU but the H200.
pub(crate) const DERIVED_NUMBERS: &str =
    "the numbers of this GPU are derived; those of the H200 were checked against recordings";
