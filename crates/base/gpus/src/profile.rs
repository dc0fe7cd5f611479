//! GPU profiles: what PyTorch asks about a GPU.

use blockyard_record::Bytes;

use crate::Architecture::{self, Ada, Ampere, Hopper, Turing};

/// The properties of a GPU on which PyTorch's allocations depend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuProfile {
    /// The name that `torch.cuda.get_device_name` prints.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The short name for the command line.
    pub id: &'static str,
    /// All memory, as `get_device_properties` says.
    pub total_memory: Bytes,
    /// How many streaming multiprocessors the GPU has.
    pub multiprocessors: u32,
    /// Threads that one multiprocessor holds.
    pub threads_per_multiprocessor: u32,
    /// The architecture, which has the compute capability.
    pub architecture: Architecture,
    /// Whether the numbers were compared with recordings from this GPU; the numbers of other GPUs are
    /// derived.
    pub is_proved: bool,
    /// Whether non-PyTorch memory ([`non_pytorch_bytes`](crate::non_pytorch_bytes)) was recorded on this GPU.
    /// On other GPUs the recorded bytes count too, as an estimate that names the GPU of the recording.
    pub has_non_pytorch_recorded: bool,
}

impl GpuProfile {
    /// The GPU of the recordings.
    pub const H200: Self = Self {
        name: "NVIDIA H200",
        title: "NVIDIA H200",
        id: "h200",
        total_memory: Bytes::new(150_109_880_320),
        multiprocessors: 132,
        threads_per_multiprocessor: 2048,
        architecture: Hopper,
        is_proved: true,
        has_non_pytorch_recorded: true,
    };

    /// All profiles, those with more memory first; the first one is proved.
    pub const ALL: [Self; 7] = [
        Self::H200,
        Self {
            has_non_pytorch_recorded: true,
            ..Self::derived("NVIDIA H100 80GB HBM3", "NVIDIA H100 80 GB", "h100", 85_019_590_656, 132, Hopper)
        },
        Self::derived("NVIDIA A100-SXM4-80GB", "NVIDIA A100 80 GB", "a100", 84_974_239_744, 108, Ampere),
        Self::derived("NVIDIA A100-SXM4-40GB", "NVIDIA A100 40 GB", "a100-40g", 42_298_834_944, 108, Ampere),
        Self::derived("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", "rtx4090", 25_386_352_640, 128, Ada),
        Self::derived("NVIDIA L4", "NVIDIA L4", "l4", 23_664_656_384, 58, Ada),
        Self::derived("Tesla T4", "Tesla T4", "t4", 15_828_320_256, 40, Turing),
    ];

    /// A GPU whose numbers nobody compared with recordings. The bytes are those of `cudaGetDeviceProperties` in
    /// public reports.
    const fn derived(
        name: &'static str,
        title: &'static str,
        id: &'static str,
        total_memory: u64,
        multiprocessors: u32,
        architecture: Architecture,
    ) -> Self {
        Self {
            name,
            title,
            id,
            total_memory: Bytes::new(total_memory),
            multiprocessors,
            threads_per_multiprocessor: match architecture {
                Turing => 1024,
                Ada => 1536,
                Ampere | Hopper => 2048,
            },
            architecture,
            is_proved: false,
            has_non_pytorch_recorded: false,
        }
    }

    /// The profile with that short name; `None` for any other text.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.id == id)
    }

    /// The profile that a person names: by its short name, or by words that are in one name alone, as
    /// `A100 40GB` or `RTX 4090`. `None` for words that are in no name or in several.
    pub fn from_words(text: &str) -> Option<Self> {
        let plain = |text: &str| text.to_lowercase().replace(|letter: char| !letter.is_alphanumeric(), "");
        let named = plain(text);
        if let Some(profile) = Self::ALL.into_iter().find(|profile| plain(profile.id) == named) {
            return Some(profile);
        }
        let words: Vec<String> = text.split_whitespace().map(plain).collect();
        let is_in = |name: &str| words.iter().all(|word| plain(name).contains(word.as_str()));
        let mut all = Self::ALL.into_iter().filter(|profile| is_in(profile.name));
        let first = all.next()?;
        (all.next().is_none() && !named.is_empty()).then_some(first)
    }

    /// Bytes of the workspace that cuBLAS gets for each thread and stream (`CUBLAS_WORKSPACE_CONFIG` unset).
    pub fn cublas_workspace(&self) -> Bytes {
        match self.architecture {
            Turing | Ampere | Ada => Bytes::kib(4096 * 2 + 16 * 8),
            Hopper => Bytes::kib(32 * 1024),
        }
    }

    /// Bytes of cuBLASLt's workspace (`CUBLASLT_WORKSPACE_SIZE` unset).
    pub fn cublaslt_workspace(&self) -> Bytes {
        Bytes::mib(1)
    }
}

#[cfg(test)]
mod tests {
    use super::GpuProfile;

    #[test]
    fn all_profiles_are_ordered_by_memory() {
        assert!(GpuProfile::ALL.is_sorted_by(|one, next| one.total_memory > next.total_memory));
    }

    #[test]
    fn a_gpu_is_found_by_what_people_call_it() {
        let id = |text: &str| GpuProfile::from_words(text).map(|profile| profile.id);
        for (text, expected) in [
            ("t4", "t4"),
            ("Tesla T4", "t4"),
            ("A100", "a100"),
            ("A100 40GB", "a100-40g"),
            ("a100-40g", "a100-40g"),
            ("H100 80 GB", "h100"),
            ("RTX 4090", "rtx4090"),
            ("NVIDIA L4", "l4"),
        ] {
            assert_eq!(id(text), Some(expected), "{text}");
        }
        // Names of several GPUs and of none.
        for text in ["", "  ", "NVIDIA", "80GB", "B9000"] {
            assert_eq!(id(text), None, "{text}");
        }
    }
}
