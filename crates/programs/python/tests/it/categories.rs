//! What the memory of a program is for, as the page colors it.

use crate::support::run;
use blockyard_torch::memory::Category;

/// The bytes of a category that were requested, of all allocations of a program.
fn requested(source: &str, category: Category) -> u64 {
    let (printed, finished) = run(source);
    assert_eq!(finished.traceback, None, "{printed}");
    let origins = finished.devices.iter().flat_map(|device| &device.origins);
    origins.filter(|origin| origin.category == category).map(|origin| origin.requested.get()).sum()
}

#[test]
fn the_weights_of_an_lstm_stay_parameters_after_a_backward_pass() {
    let program = |layer: &str, input: &str| {
        format!(
            "import torch
layer = torch.nn.{layer}.cuda()
x = torch.randn({input}, device='cuda')
out = layer(x)
out = out[0] if isinstance(out, tuple) else out
out.sum().backward()
print(sum(p.numel() for p in layer.parameters()))
"
        )
    };
    // The weights as they were moved to the GPU, and the block that holds all of them since.
    let elements = 4 * (256 * 64 + 256 * 256 + 2 * 256);
    let lstm = requested(&program("LSTM(64, 256)", "10, 2, 64"), Category::Parameter);
    assert!((2 * elements * 4..2 * elements * 4 + 4096).contains(&lstm), "{lstm} of {}", 2 * elements * 4);
    let linear = requested(&program("Linear(64, 256)", "10, 64"), Category::Parameter);
    assert_eq!(linear, (64 * 256 + 256) * 4);
}
