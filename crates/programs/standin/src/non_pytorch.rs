//! Addresses that the driver and CUDA's libraries take for themselves.
//!
//! Segments of PyTorch fill the holes between them, so that the order of segments depends on when they are
//! taken. When which addresses are taken was found on an H200 with driver 580, by asking for 330 ranges of 2
//! MiB after each of 125 operators (`docs/dry-run-driver.md`, "Addresses"). No program can touch
//! these ranges. Their bytes count as taken of the device's memory where `STANDIN_NON_PYTORCH` asks for that.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use blockyard_gpus::{NonPytorchHolder, non_pytorch_bytes};

use crate::addresses::Addresses;
use crate::report;
use crate::state::{current_device, state};

const MIB: u64 = 1 << 20;

/// The chunk of a new context, and the bytes of it that the driver takes.
const CONTEXT: (u64, u64) = (32 * MIB, 8 * MIB);
/// The chunk of the local memory of kernels, and the bytes of it that are taken.
const LOCAL: (u64, u64) = (416 * MIB, 414 * MIB);
/// Addresses between the two chunks, at which no segment was recorded.
const BETWEEN: u64 = 64 * MIB;
/// Local memory from the first kernel on that needs more than a context starts with.
const LOCAL_OF_KERNELS: u64 = 506 * MIB;
/// The heap of `malloc` in kernels and the buffer of `printf`, from the first kernel on that can fail an
/// assertion.
const HEAP: u64 = 10 * MIB;
/// Code of kernels, which is loaded at the first launch.
const CODE: u64 = 2 * MIB;
/// Bytes of each handle of cuBLAS.
const BLAS: u64 = 64 * MIB;
/// Bytes of the first handle of cuDNN.
const DNN: u64 = 12 * MIB;
/// Bytes of the first pinned memory of the host.
const PINNED: u64 = 2 * MIB;
/// Bytes of each stream.
const STREAM: u64 = MIB;

/// Parts of the names of kernels that need more local memory than a context starts with.
/// `elementwise_kernel_with_index`, random numbers, `cat`, `softmax`, pooling, scans and the kernels of
/// optimizers do not.
const WITH_LOCAL_MEMORY: [&str; 12] = [
    "vectorized_elementwise_kernel",
    "18elementwise_kernelI",
    "layer_norm_kernel",
    "fused_dropout_kernel",
    "bernoulli",
    "fmha_cutlass",
    "index_elementwise_kernel",
    // These have assertions too.
    "unrolled_elementwise_kernel",
    "13reduce_kernelI",
    "gather",
    "indexFunc",
    "nll_loss",
];

/// Parts of the names of kernels that can fail an assertion.
const WITH_ASSERTION: [&str; 6] = [
    "unrolled_elementwise_kernel",
    "13reduce_kernelI",
    "gather",
    "indexFunc",
    "nll_loss",
    "gpu_index_kernel",
];

/// What makes the driver or a library take addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NonPytorchUse {
    /// A kernel is launched.
    Kernel { needs_local_memory: bool, has_assertion: bool },
    /// `cublasCreate`.
    Blas,
    /// `cudnnCreate`.
    Dnn,
    /// Memory of the host is pinned.
    Pinned,
    /// A stream is made.
    Stream,
    /// `cusolverDnCreate`.
    Solver,
    /// `cusparseCreate`.
    Sparse,
    /// A plan of cuFFT.
    Fft,
    /// NCCL: a communicator of this number of ranks is made.
    Communicator { ranks: u64 },
    /// The first collective of a communicator.
    Collective { ranks: u64 },
    /// The first message of a communicator.
    Message { ranks: u64 },
    /// The first message that this rank sends in a communicator.
    FirstSend { ranks: u64 },
    /// The first message that this rank receives in a communicator.
    FirstReceive { ranks: u64 },
}

impl NonPytorchUse {
    /// The holder that the use counts as in the report, with the number of the communicator's ranks, 0
    /// elsewhere. `None` for a kernel, which counts by the memory that the driver takes after its launch, and
    /// for pinned memory.
    fn holder(self) -> Option<(NonPytorchHolder, u64)> {
        match self {
            Self::Kernel { .. } | Self::Pinned => None,
            Self::Blas => Some((NonPytorchHolder::Blas, 0)),
            Self::Dnn => Some((NonPytorchHolder::Dnn, 0)),
            Self::Stream => Some((NonPytorchHolder::Streams, 0)),
            Self::Solver => Some((NonPytorchHolder::Solver, 0)),
            Self::Sparse => Some((NonPytorchHolder::Sparse, 0)),
            Self::Fft => Some((NonPytorchHolder::Fft, 0)),
            Self::Communicator { ranks } => Some((NonPytorchHolder::Communicators, ranks)),
            Self::Collective { ranks } => Some((NonPytorchHolder::Collectives, ranks)),
            Self::Message { ranks } => Some((NonPytorchHolder::Messages, ranks)),
            Self::FirstSend { ranks } => Some((NonPytorchHolder::Sent, ranks)),
            Self::FirstReceive { ranks } => Some((NonPytorchHolder::Received, ranks)),
        }
    }
}

/// Memory that is taken once, at the first event of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OneTimeCost {
    Code,
    Heap,
    Blas,
    Dnn,
    Pinned,
}

/// What a device's driver took so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct NonPytorchAddresses {
    /// The local memory that a context starts with, until more is needed.
    local: Option<u64>,
    once: BTreeSet<OneTimeCost>,
    /// How often each holder took memory, by the number of its communicator's ranks.
    counts: BTreeMap<(NonPytorchHolder, u64), u64>,
}

impl NonPytorchAddresses {
    /// Bytes of the device's memory that the driver and the libraries have taken so far, as recorded on an
    /// H100.
    pub(crate) fn bytes(&self) -> u64 {
        non_pytorch_bytes(self.counts.iter().map(|((holder, ranks), times)| (*holder, *ranks, *times))).get()
    }
}

/// A holder, the number of ranks of its communicator, and how often the holder has taken memory so far.
pub(crate) type CountedHolder = (NonPytorchHolder, u64, u64);

impl Addresses {
    /// Takes the addresses that a process has of a device when its context is new: below the highest 32 MiB,
    /// a chunk of which little is left.
    pub(crate) fn start(&mut self) {
        let Some(start) = self.cut(LOCAL.0 + BETWEEN + CONTEXT.0) else { return };
        self.start_chunk(start + LOCAL.0 + BETWEEN, CONTEXT.0, CONTEXT.1);
        self.start_chunk(start, LOCAL.0, LOCAL.1);
        self.non_pytorch.local = Some(start);
    }

    /// Takes the addresses that the driver takes after an event, and counts them for the report. Without room
    /// nothing is taken: a segment will not find room either.
    pub(crate) fn note_use(&mut self, event: NonPytorchUse) -> Vec<CountedHolder> {
        let mut counted = Vec::new();
        if let Some((holder, ranks)) = event.holder() {
            counted.push(self.count(holder, ranks));
        }
        if !self.is_driver() {
            return counted;
        }
        match event {
            NonPytorchUse::Kernel { needs_local_memory, has_assertion } => {
                if self.once(OneTimeCost::Code, CODE) {
                    counted.push(self.count(NonPytorchHolder::Code, 0));
                }
                if needs_local_memory && let Some(local) = self.non_pytorch.local.take() {
                    self.allocate_for_driver(LOCAL_OF_KERNELS);
                    self.release_for_driver(local);
                    counted.push(self.count(NonPytorchHolder::LocalMemory, 0));
                }
                if has_assertion {
                    self.once(OneTimeCost::Heap, HEAP);
                }
            }
            NonPytorchUse::Blas => {
                self.once(OneTimeCost::Blas, CODE);
                self.allocate_for_driver(BLAS);
            }
            NonPytorchUse::Dnn => _ = self.once(OneTimeCost::Dnn, DNN),
            NonPytorchUse::Pinned => _ = self.once(OneTimeCost::Pinned, PINNED),
            NonPytorchUse::Stream => {
                self.allocate_for_driver(STREAM);
            }
            // Where the addresses of these libraries are was not recorded.
            NonPytorchUse::Solver
            | NonPytorchUse::Sparse
            | NonPytorchUse::Fft
            | NonPytorchUse::Communicator { .. }
            | NonPytorchUse::Collective { .. }
            | NonPytorchUse::Message { .. }
            | NonPytorchUse::FirstSend { .. }
            | NonPytorchUse::FirstReceive { .. } => {}
        }
        counted
    }

    /// Takes a cost once; returns whether this was the first time.
    fn once(&mut self, what: OneTimeCost, size: u64) -> bool {
        let is_first = self.non_pytorch.once.insert(what);
        if is_first {
            self.allocate_for_driver(size);
        }
        is_first
    }

    fn count(&mut self, holder: NonPytorchHolder, ranks: u64) -> CountedHolder {
        let count = self.non_pytorch.counts.entry((holder, ranks)).or_default();
        *count = count.saturating_add(1);
        (holder, ranks, *count)
    }

    /// Whether no further kernel changes anything.
    pub(crate) fn knows_kernels(&self) -> bool {
        !self.is_driver()
            || (self.non_pytorch.local.is_none() && self.non_pytorch.once.contains(&OneTimeCost::Heap))
    }
}

/// Takes the addresses that the driver takes after an event, on the calling thread's device.
pub(crate) fn follow(event: NonPytorchUse) {
    follow_on(current_device(), event);
}

/// Takes the addresses that the driver takes after an event, on the device of this number.
pub(crate) fn follow_on(number: i32, event: NonPytorchUse) {
    let counted = state().devices.get(number).map(|device| device.addresses().note_use(event));
    report_bytes(number, counted.unwrap_or_default());
}

fn report_bytes(device: i32, counted: Vec<CountedHolder>) {
    for (holder, ranks, count) in counted {
        // A pool of streams counts once.
        if holder != NonPytorchHolder::Streams || count == 1 {
            report::report_taken(device, holder.name(), ranks, count);
        }
    }
}

/// Devices on which no further kernel changes anything, a bit each: most launches need no look at a name.
static KNOWN: AtomicU64 = AtomicU64::new(0);

/// The launch of a kernel of this name, as the compiler writes it.
fn kernel_use(name: &str) -> NonPytorchUse {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    NonPytorchUse::Kernel { needs_local_memory: has(&WITH_LOCAL_MEMORY), has_assertion: has(&WITH_ASSERTION) }
}

/// How many kernels a thread remembers.
const KEPT: usize = 256;

thread_local! {
    /// The last kernels that the thread launched, each with its device: the driver takes memory once after a
    /// kernel.
    static LAST: RefCell<[(u64, i32); KEPT]> = const { RefCell::new([(0, 0); KEPT]) };
}

/// Whether the thread launched this kernel on this device before, as far as it remembers.
fn is_kept(kernel: u64, device: i32) -> bool {
    let place = usize::try_from(kernel.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).unwrap_or(0) % KEPT;
    LAST.with_borrow_mut(|last| {
        let Some(slot) = last.get_mut(place) else { return false };
        std::mem::replace(slot, (kernel, device)) == (kernel, device)
    })
}

/// Takes the addresses that the driver takes after the launch of the kernel with this address on the host.
/// The name is asked for only where the address is not known yet.
pub(crate) fn follow_kernel(kernel_address: u64, name: impl FnOnce() -> Option<&'static CStr>) {
    let device = current_device();
    let bit = 1_u64.checked_shl(device.unsigned_abs()).unwrap_or(0);
    if KNOWN.load(Ordering::Relaxed) & bit != 0 || is_kept(kernel_address, device) {
        return;
    }
    let event = kernel_use(&name().map(CStr::to_string_lossy).unwrap_or_default());
    let counted = state().devices.get(device).map(|device| {
        let counted = device.addresses().note_use(event);
        if device.addresses().knows_kernels() {
            KNOWN.fetch_or(bit, Ordering::Relaxed);
        }
        counted
    });
    report_bytes(device, counted.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use blockyard_gpus::DriverAddressOrder;

    use super::{NonPytorchAddresses, NonPytorchUse, kernel_use};
    use crate::addresses::Addresses;

    #[test]
    fn bytes_follow_the_events() {
        let context = NonPytorchAddresses::default().bytes();
        assert_eq!(context, 552_402_944);
        for order in [DriverAddressOrder::Driver, DriverAddressOrder::Rising] {
            let mut addresses = Addresses::new(1 << 40, 1 << 38, order);
            addresses.note_use(NonPytorchUse::Blas);
            assert_eq!(addresses.non_pytorch.bytes() - context, 66 << 20, "{order:?}");
            addresses.note_use(NonPytorchUse::Blas);
            addresses.note_use(NonPytorchUse::Stream);
            addresses.note_use(NonPytorchUse::Stream);
            assert_eq!(addresses.non_pytorch.bytes() - context, (130 + 70) << 20, "{order:?}");
        }
    }

    #[test]
    fn names_of_kernels_tell_what_they_need() {
        // Names in PyTorch 2.11; what they need was seen on an H200.
        for (name, needs_local_memory, has_assertion) in [
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
                true,
                false,
            ),
            (
                "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIfEEvT_EEviT1_",
                true,
                false,
            ),
            ("_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfEEEEvT1_", true, true),
            ("_ZN2at6native27unrolled_elementwise_kernelIfEEvT_", true, true),
            ("_ZN2at6native29elementwise_kernel_with_indexIiEEvT_", false, false),
            ("_ZN2at6native43distribution_elementwise_grid_stride_kernelIfLi4EEEvT_", false, false),
            ("_ZN2at6native25multi_tensor_apply_kernelIfEEvT_", false, false),
            ("", false, false),
        ] {
            assert_eq!(
                kernel_use(name),
                NonPytorchUse::Kernel { needs_local_memory, has_assertion },
                "{name}"
            );
        }
    }
}
