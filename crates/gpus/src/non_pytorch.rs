//! What the driver and CUDA's libraries take of a GPU beside PyTorch's segments: `nvidia-smi` shows it, and no number of PyTorch has it.
//!
//! All bytes are recorded, by NVML before and after each event, with nothing else on the GPU: on an H100 80GB HBM3 with driver 580.159.04 and NCCL
//! 2.28.9 (`tests/fixtures/measured/outside.txt`). An H200 showed the same at the five events that were recorded there
//! (`nvidia_smi.txt`). What was not recorded has no number: other GPUs, and communicators of other numbers of ranks than one and two.

use blockyard_record::Bytes;

use crate::GpuProfile;

/// What takes memory of a GPU beside PyTorch's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Taker {
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

/// How the bytes of a taker follow from how often it took some.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// At the first time, beside what each time takes.
    first: u64,
    each: u64,
}

impl Taker {
    /// All of them.
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

    /// The name in the lines that a run writes.
    #[must_use]
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

    /// That of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|taker| taker.name() == name)
    }

    /// The bytes at the first time and at each time. The numbers of `rule` are MiB.
    fn rule(self, ranks: u64) -> Option<Rule> {
        let rule = |first: u64, each: u64| Some(Rule { first: first << 20, each: each << 20 });
        match self {
            Self::Context => Some(Rule { first: CONTEXT, each: 0 }),
            Self::Code | Self::Sparse => rule(2, 0),
            Self::LocalMemory => rule(90, 0),
            Self::Streams => rule(70, 0),
            // 2 MiB are shared with cuDNN.
            Self::Blas => rule(2, 64),
            Self::Dnn => rule(0, 8),
            Self::Fft => rule(8, 0),
            Self::Solver => rule(96, 0),
            // All of a group of one rank.
            Self::Communicators if ranks == 1 => rule(0, 388),
            Self::Collectives | Self::Messages | Self::Sent | Self::Received if ranks == 1 => rule(0, 0),
            Self::Communicators if ranks == 2 => rule(102, 198),
            Self::Collectives if ranks == 2 => rule(0, 288),
            // Three recordings tell these apart: a rank that sent alone, one that received alone, and those that did both.
            Self::Messages if ranks == 2 => rule(0, 54),
            Self::Sent if ranks == 2 => rule(0, 68),
            Self::Received if ranks == 2 => rule(0, 324),
            Self::Communicators | Self::Collectives | Self::Messages | Self::Sent | Self::Received => None,
        }
    }

    /// What it takes after so many times, in communicators of so many ranks where it is NCCL; none where that was not recorded.
    #[must_use]
    pub fn bytes(self, ranks: u64, times: u64) -> Option<Bytes> {
        let rule = self.rule(ranks)?;
        let first = if times == 0 { 0 } else { rule.first };
        Some(Bytes::new(first.saturating_add(rule.each.saturating_mul(times))))
    }
}

/// Bytes of a context.
const CONTEXT: u64 = 552_402_944;
/// Code of NCCL's kernels, at the first collective or message of a process.
pub const NCCL_CODE: Bytes = Bytes::mib(186);
/// What the handles of cuDNN take at the first, where there are none of cuBLAS.
pub const LIBRARIES: Bytes = Bytes::mib(2);
/// The GPU that the bytes were recorded on.
pub const OUTSIDE_RECORDED_ON: &str = "NVIDIA H100 80GB HBM3";

/// What all of these take together, the context of the process with them: each taker with the ranks of its communicators (0 where it is none) and
/// how often it took some. What was not recorded counts as nothing.
#[must_use]
pub fn outside_bytes(taken: impl IntoIterator<Item = (Taker, u64, u64)>) -> Bytes {
    let mut sum = Taker::Context.bytes(0, 1).unwrap_or_default();
    let (mut has_blas, mut has_dnn, mut has_work) = (false, false, false);
    for (taker, ranks, times) in taken {
        sum = sum.saturating_add(taker.bytes(ranks, times).unwrap_or_default());
        match taker {
            Taker::Blas => has_blas = true,
            Taker::Dnn => has_dnn = true,
            Taker::Collectives | Taker::Messages | Taker::Sent | Taker::Received => has_work |= ranks > 1,
            _ => {}
        }
    }
    if has_dnn && !has_blas {
        sum = sum.saturating_add(LIBRARIES);
    }
    if has_work { sum.saturating_add(NCCL_CODE) } else { sum }
}

/// What a training program without NCCL has taken after its first step: kernels, and a handle of cuBLAS in each of two threads.
#[must_use]
pub fn context_and_libraries() -> Bytes {
    outside_bytes([(Taker::Code, 0, 1), (Taker::LocalMemory, 0, 1), (Taker::Blas, 0, 2)])
}

/// What the CUDA context and the libraries of a training program leave for PyTorch, of all memory of a GPU.
#[must_use]
pub fn left_for_pytorch(total: Bytes) -> Bytes {
    total.saturating_sub(context_and_libraries())
}

/// The parts of [`context_and_libraries`], under the names that the lesson about `nvidia-smi` gives them.
#[must_use]
pub fn parts_of_training() -> [(&'static str, Bytes); 3] {
    let context = outside_bytes([]);
    let of = |taken: &[(Taker, u64, u64)]| outside_bytes(taken.iter().copied()).saturating_sub(context);
    [
        ("context", context),
        ("kernels", of(&[(Taker::Code, 0, 1), (Taker::LocalMemory, 0, 1)])),
        ("cuBLAS", of(&[(Taker::Blas, 0, 2)])),
    ]
}

/// On which GPU [`context_and_libraries`] was measured, beside its bytes; where `gpu`, a name, is another one, that this one was not measured.
#[must_use]
pub fn outside_measured_words(gpu: &str) -> String {
    let is_measured = GpuProfile::ALL.iter().any(|known| known.name == gpu && known.has_outside_recorded);
    if is_measured || gpu.is_empty() {
        return format!("measured on an {OUTSIDE_RECORDED_ON}");
    }
    let article = if gpu.starts_with("NVIDIA") { "an" } else { "a" };
    format!("measured on an {OUTSIDE_RECORDED_ON}; {article} {gpu} was not measured")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_another_gpu_are_said_to_be_measured_there() {
        let words = outside_measured_words("Tesla T4");
        assert_eq!(words, format!("measured on an {OUTSIDE_RECORDED_ON}; a Tesla T4 was not measured"));
        assert_eq!(
            outside_measured_words(OUTSIDE_RECORDED_ON),
            format!("measured on an {OUTSIDE_RECORDED_ON}")
        );
    }

    #[test]
    fn names_are_found_again() {
        for taker in Taker::ALL {
            assert_eq!(Taker::from_name(taker.name()), Some(taker));
        }
    }

    #[test]
    fn all_together_are_the_sum_with_what_is_shared() {
        let context = Bytes::new(CONTEXT);
        assert_eq!(outside_bytes([]), context);
        assert_eq!(context_and_libraries(), context.saturating_add(Bytes::mib(222)));
        let parts = parts_of_training();
        assert_eq!(parts.map(|(_, bytes)| bytes), [context, Bytes::mib(92), Bytes::mib(130)]);
        assert_eq!(parts.iter().map(|(_, bytes)| *bytes).sum::<Bytes>(), context_and_libraries());
        // Of a convolution alone the libraries' 2 MiB are cuDNN's.
        let dnn = [(Taker::Code, 0, 1), (Taker::Dnn, 0, 1)];
        assert_eq!(outside_bytes(dnn), context.saturating_add(Bytes::mib(12)));
        let both = [(Taker::Dnn, 0, 1), (Taker::Blas, 0, 1)];
        assert_eq!(outside_bytes(both), context.saturating_add(Bytes::mib(8 + 66)));
        let ranks = |ranks| [(Taker::Communicators, ranks, 1), (Taker::Collectives, ranks, 1)];
        assert_eq!(outside_bytes(ranks(2)), context.saturating_add(Bytes::mib(300 + 288 + 186)));
        assert_eq!(outside_bytes(ranks(8)), context.saturating_add(NCCL_CODE));
    }

    #[test]
    fn what_was_not_recorded_has_no_bytes() {
        assert_eq!(Taker::Blas.bytes(0, 2), Some(Bytes::mib(130)));
        assert_eq!(Taker::Context.bytes(0, 1), Some(Bytes::new(552_402_944)));
        assert_eq!(Taker::Communicators.bytes(2, 2), Some(Bytes::mib(498)));
        assert_eq!(Taker::Communicators.bytes(8, 1), None);
    }
}
