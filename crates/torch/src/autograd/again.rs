//! Which backward functions a real GPU was recorded to run with `create_graph=True`.

use super::GradMode;
use super::node::Node;
use crate::session;

/// Backward functions of recorded programs that were differentiated again. Others are run by PyTorch's formulas too, but no recording
/// says that their temporaries live as long as here.
const RECORDED: &[&str] = &[
    "AbsBackward0",
    "AddBackward0",
    "AddmmBackward0",
    "BinaryCrossEntropyWithLogitsBackward0",
    "BmmBackward0",
    "CatBackward0",
    "ClampBackward1",
    "CloneBackward0",
    "ConvolutionBackward0",
    "CudnnBatchNormBackward0",
    "DivBackward0",
    "EluBackward0",
    "ExpBackward0",
    "GeluBackward0",
    "LeakyReluBackward0",
    "LinalgVectorNormBackward0",
    "LogBackward0",
    "LogSoftmaxBackward0",
    "MaxBackward0",
    "MeanBackward0",
    "MeanBackward1",
    "MmBackward0",
    "MseLossBackward0",
    "MulBackward0",
    "NativeLayerNormBackward0",
    "NllLossBackward0",
    "PowBackward0",
    "ReciprocalBackward0",
    "ReluBackward0",
    "RsqrtBackward0",
    "SelectBackward0",
    "SigmoidBackward0",
    "SiluBackward0",
    "SinBackward0",
    "SliceBackward0",
    "SoftmaxBackward0",
    "SoftplusBackward0",
    "SqrtBackward0",
    "SubBackward0",
    "SumBackward0",
    "SumBackward1",
    "TBackward0",
    "TanhBackward0",
    "TanhBackwardBackward0",
    "UnsafeViewBackward0",
    "ViewBackward0",
];

/// Marks a backward function that is differentiated again, where no recording has that.
pub(super) fn mark_unrecorded(node: &Node) {
    if GradMode::is_enabled() && !RECORDED.contains(&node.name()) {
        mark(node.name());
    }
}

/// Marks a second derivative.
pub(crate) fn mark(operator: &str) {
    session().mark_estimated(operator, "its second derivative (create_graph=True) was not recorded");
}
