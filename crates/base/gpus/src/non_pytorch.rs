//! Non-PyTorch memory: what the driver and CUDA's libraries take of a GPU beside PyTorch's segments.
//! `nvidia-smi` shows it, and no statistic of PyTorch counts it; `torch.OutOfMemoryError` names it
//! ("Including non-PyTorch memory").
//!
//! One rule for all answers: the memory that a GPU has for PyTorch is [all of it without the non-PyTorch
//! memory](pytorch_memory_beside), on every GPU, and [one sentence](left_for_pytorch_text) says so. `fit`,
//! dry runs and `guard` count the non-PyTorch memory of the run; the verdict, replays on another device and
//! simulated programs take [that of a training program](context_and_libraries). On a GPU where none was
//! recorded the bytes of the H100 count, and every text that has them says that they are [an
//! estimate](non_pytorch_measured_text).
//!
//! All bytes are recorded, by NVML before and after each event, with nothing else on the GPU: on an H100 80GB
//! HBM3 with driver 580.159.04 and NCCL 2.28.9 (`tests/fixtures/measured/outside.txt`). An H200 showed equal
//! bytes at the five events that were recorded there (`nvidia_smi.txt`). Other GPUs, and communicators of
//! more ranks than two, were not recorded and have no number.

use blockyard_record::Bytes;

use crate::GpuProfile;

/// Who holds non-PyTorch memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NonPytorchHolder {
    /// The context of a process.
    Context,
    /// Code of kernels, at the first launch.
    Code,
    /// Local memory, from the first kernel on that needs more of it than a context starts with.
    LocalMemory,
    /// The streams that PyTorch makes together, at the first that is wanted.
    Streams,
    /// Handles of cuBLAS: one for each thread that multiplies matrices.
    Blas,
    /// Handles of cuDNN: one for each thread.
    Dnn,
    /// Plans of cuFFT.
    Fft,
    /// Handles of cuSOLVER.
    Solver,
    /// Handles of cuSPARSE.
    Sparse,
    /// Communicators of NCCL.
    Communicators,
    /// Communicators that had a collective.
    Collectives,
    /// Communicators that had a message from one rank to another, or of all to all.
    Messages,
    /// Communicators in which this rank sent a message.
    Sent,
    /// Communicators in which this rank received a message.
    Received,
}

/// How the bytes of a holder follow from how often it took memory.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// Bytes that the first time takes in addition to `each`.
    first: u64,
    each: u64,
}

impl NonPytorchHolder {
    /// All holders, in the order in which a program meets them.
    pub const ALL: [Self; 14] = [
        Self::Context,
        Self::Code,
        Self::LocalMemory,
        Self::Streams,
        Self::Blas,
        Self::Dnn,
        Self::Fft,
        Self::Solver,
        Self::Sparse,
        Self::Communicators,
        Self::Collectives,
        Self::Messages,
        Self::Sent,
        Self::Received,
    ];

    /// The name in the lines that the stand-in writes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Code => "code",
            Self::LocalMemory => "local memory",
            Self::Streams => "streams",
            Self::Blas => "cublas",
            Self::Dnn => "cudnn",
            Self::Fft => "cufft",
            Self::Solver => "cusolver",
            Self::Sparse => "cusparse",
            Self::Communicators => "communicators",
            Self::Collectives => "collectives",
            Self::Messages => "messages",
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }

    /// The holder of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|holder| holder.name() == name)
    }

    /// The bytes at the first time and at each time; `None` where they were not recorded. The arguments of
    /// `rule` below are MiB.
    fn rule(self, ranks: u64) -> Option<Rule> {
        let rule = |first: u64, each: u64| Some(Rule { first: first << 20, each: each << 20 });
        match self {
            Self::Context => Some(Rule { first: CONTEXT_BYTES, each: 0 }),
            Self::Code | Self::Sparse => rule(2, 0),
            Self::LocalMemory => rule(90, 0),
            Self::Streams => rule(70, 0),
            // 2 MiB are shared with cuDNN.
            Self::Blas => rule(2, 64),
            Self::Dnn => rule(0, 8),
            Self::Fft => rule(8, 0),
            Self::Solver => rule(96, 0),
            // The only bytes that a group of one rank takes.
            Self::Communicators if ranks == 1 => rule(0, 388),
            Self::Collectives | Self::Messages | Self::Sent | Self::Received if ranks == 1 => rule(0, 0),
            Self::Communicators if ranks == 2 => rule(102, 198),
            Self::Collectives if ranks == 2 => rule(0, 288),
            // Three recordings separate these bytes: a rank that only sent, one that only received, and ranks
            // that did both.
            Self::Messages if ranks == 2 => rule(0, 54),
            Self::Sent if ranks == 2 => rule(0, 68),
            Self::Received if ranks == 2 => rule(0, 324),
            Self::Communicators | Self::Collectives | Self::Messages | Self::Sent | Self::Received => None,
        }
    }

    /// The bytes of the holder after it took memory `times` times; for NCCL in communicators of `ranks`
    /// ranks. `None` where the bytes were not recorded.
    pub fn bytes(self, ranks: u64, times: u64) -> Option<Bytes> {
        let rule = self.rule(ranks)?;
        let first = if times == 0 { 0 } else { rule.first };
        Some(Bytes::new(first.saturating_add(rule.each.saturating_mul(times))))
    }
}

/// Bytes that a GPU has less for a context. `nvidia-smi` lists 9 MiB less for the process, and so does the message
/// of an out-of-memory error (`tests/fixtures/measured/process.txt`).
const CONTEXT_BYTES: u64 = 552_402_944;
/// Code of NCCL's kernels, at the first collective or message of a process.
pub const NCCL_CODE: Bytes = Bytes::mib(186);
/// Bytes that the first handle of cuDNN takes in a process without a handle of cuBLAS.
pub const SHARED_LIBRARY_BYTES: Bytes = Bytes::mib(2);
/// The GPU that the bytes were recorded on.
pub const NON_PYTORCH_RECORDED_ON: &str = "NVIDIA H100 80GB HBM3";

/// The non-PyTorch memory of a process: its context and these holders, each with the number of ranks of its
/// communicators (0 for other holders) and how often the holder took memory. A holder whose bytes were not
/// recorded counts as 0 bytes.
pub fn non_pytorch_bytes(taken: impl IntoIterator<Item = (NonPytorchHolder, u64, u64)>) -> Bytes {
    let mut sum = NonPytorchHolder::Context.bytes(0, 1).unwrap_or_default();
    let (mut has_blas, mut has_dnn, mut has_work) = (false, false, false);
    for (holder, ranks, times) in taken {
        sum = sum.saturating_add(holder.bytes(ranks, times).unwrap_or_default());
        match holder {
            NonPytorchHolder::Blas => has_blas = true,
            NonPytorchHolder::Dnn => has_dnn = true,
            NonPytorchHolder::Collectives
            | NonPytorchHolder::Messages
            | NonPytorchHolder::Sent
            | NonPytorchHolder::Received => has_work |= ranks > 1,
            _ => {}
        }
    }
    if has_dnn && !has_blas {
        sum = sum.saturating_add(SHARED_LIBRARY_BYTES);
    }
    if has_work { sum.saturating_add(NCCL_CODE) } else { sum }
}

/// The non-PyTorch memory that is assumed for a training program without NCCL after its first iteration,
/// where it was not counted: the context, kernels, and a handle of cuBLAS in each of two threads.
pub fn context_and_libraries() -> Bytes {
    non_pytorch_bytes([
        (NonPytorchHolder::Code, 0, 1),
        (NonPytorchHolder::LocalMemory, 0, 1),
        (NonPytorchHolder::Blas, 0, 2),
    ])
}

/// The bytes of a GPU with `total` bytes that are left for PyTorch beside this non-PyTorch memory.
pub fn pytorch_memory_beside(non_pytorch: Bytes, total: Bytes) -> Bytes {
    total.saturating_sub(non_pytorch)
}

/// The bytes of a GPU with `total` bytes that are left for PyTorch where the non-PyTorch memory of the run
/// was not counted: that of a [training program](context_and_libraries) counts in its place.
pub fn pytorch_memory(total: Bytes) -> Bytes {
    pytorch_memory_beside(context_and_libraries(), total)
}

/// The parts of [`context_and_libraries`], under the names that the lesson about `nvidia-smi` gives them.
pub fn parts_of_training() -> [(&'static str, Bytes); 3] {
    let context = non_pytorch_bytes([]);
    let of = |taken: &[(NonPytorchHolder, u64, u64)]| {
        non_pytorch_bytes(taken.iter().copied()).saturating_sub(context)
    };
    [
        ("context", context),
        ("kernels", of(&[(NonPytorchHolder::Code, 0, 1), (NonPytorchHolder::LocalMemory, 0, 1)])),
        ("cuBLAS", of(&[(NonPytorchHolder::Blas, 0, 2)])),
    ]
}

/// The sentence about the bytes of a GPU that are left for PyTorch; `gpu` is the GPU's name.
pub fn left_for_pytorch_text(left: Bytes, total: Bytes, gpu: &str) -> String {
    format!(
        "{left} of the GPU's {total} are left for PyTorch: each run leaves out the non-PyTorch memory of the \
         CUDA context and libraries ({})",
        non_pytorch_measured_text(gpu)
    )
}

/// The words beside bytes of non-PyTorch memory: the GPU that they were measured on, and that they are an
/// estimate where `gpu`, a name, is another GPU.
pub fn non_pytorch_measured_text(gpu: &str) -> String {
    let is_measured = GpuProfile::ALL.iter().any(|known| known.name == gpu && known.has_non_pytorch_recorded);
    if is_measured || gpu.is_empty() {
        return format!("measured on an {NON_PYTORCH_RECORDED_ON}");
    }
    let article = if gpu.starts_with("NVIDIA") { "an" } else { "a" };
    format!("an estimate: measured on an {NON_PYTORCH_RECORDED_ON}, and not on {article} {gpu}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_another_gpu_are_an_estimate() {
        let words = non_pytorch_measured_text("Tesla T4");
        assert_eq!(
            words,
            format!("an estimate: measured on an {NON_PYTORCH_RECORDED_ON}, and not on a Tesla T4")
        );
        assert_eq!(
            non_pytorch_measured_text(NON_PYTORCH_RECORDED_ON),
            format!("measured on an {NON_PYTORCH_RECORDED_ON}")
        );
    }

    #[test]
    fn names_are_found_again() {
        for holder in NonPytorchHolder::ALL {
            assert_eq!(NonPytorchHolder::from_name(holder.name()), Some(holder));
        }
    }

    #[test]
    fn all_together_are_the_sum_with_what_is_shared() {
        let context = Bytes::new(CONTEXT_BYTES);
        assert_eq!(non_pytorch_bytes([]), context);
        assert_eq!(context_and_libraries(), context.saturating_add(Bytes::mib(222)));
        let parts = parts_of_training();
        assert_eq!(parts.map(|(_, bytes)| bytes), [context, Bytes::mib(92), Bytes::mib(130)]);
        assert_eq!(parts.iter().map(|(_, bytes)| *bytes).sum::<Bytes>(), context_and_libraries());
        // Of a convolution alone the libraries' 2 MiB are cuDNN's.
        let dnn = [(NonPytorchHolder::Code, 0, 1), (NonPytorchHolder::Dnn, 0, 1)];
        assert_eq!(non_pytorch_bytes(dnn), context.saturating_add(Bytes::mib(12)));
        let both = [(NonPytorchHolder::Dnn, 0, 1), (NonPytorchHolder::Blas, 0, 1)];
        assert_eq!(non_pytorch_bytes(both), context.saturating_add(Bytes::mib(8 + 66)));
        let ranks =
            |ranks| [(NonPytorchHolder::Communicators, ranks, 1), (NonPytorchHolder::Collectives, ranks, 1)];
        assert_eq!(non_pytorch_bytes(ranks(2)), context.saturating_add(Bytes::mib(300 + 288 + 186)));
        assert_eq!(non_pytorch_bytes(ranks(8)), context.saturating_add(NCCL_CODE));
    }

    #[test]
    fn what_was_not_recorded_has_no_bytes() {
        assert_eq!(NonPytorchHolder::Blas.bytes(0, 2), Some(Bytes::mib(130)));
        assert_eq!(NonPytorchHolder::Context.bytes(0, 1), Some(Bytes::new(552_402_944)));
        assert_eq!(NonPytorchHolder::Communicators.bytes(2, 2), Some(Bytes::mib(498)));
        assert_eq!(NonPytorchHolder::Communicators.bytes(8, 1), None);
    }
}
