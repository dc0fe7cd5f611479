//! Non-PyTorch memory, which `nvidia-smi` would show beside PyTorch's segments: an estimate from what was
//! recorded.

use blockyard_gpus::{
    GpuProfile, NCCL_CODE, NonPytorchHolder, SHARED_LIBRARY_BYTES, non_pytorch_measured_text,
};
use blockyard_record::{Bytes, counted};
use serde::Deserialize;

use crate::Report;

/// How often a holder of non-PyTorch memory took memory of a device, as the stand-in counts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HolderCount {
    /// The index of the device.
    pub device: usize,
    /// The name of a [`NonPytorchHolder`].
    pub what: String,
    /// How many ranks a communicator has; 0 if the number is not known or the holder has no ranks.
    pub ranks: u64,
    /// How often the holder has taken memory so far.
    pub count: u64,
}

/// The non-PyTorch memory of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonPytorchMemory {
    /// Each holder, with its bytes.
    pub parts: Vec<(String, Bytes)>,
    /// Sentences about memory that is taken and was not recorded, and about parts that were recorded on
    /// another GPU.
    pub unknown: Vec<String>,
}

impl NonPytorchMemory {
    /// The sum of all parts.
    pub fn bytes(&self) -> Bytes {
        self.parts.iter().fold(Bytes::ZERO, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// The bytes that `nvidia-smi` will show for a device on which this number of bytes is reserved, and what
    /// is not known, in sentences. `what` is the device.
    pub fn sentences(&self, what: &str, reserved: Bytes) -> Vec<String> {
        let parts: Vec<String> = self.parts.iter().map(|(what, bytes)| format!("{bytes} {what}")).collect();
        let all = reserved.saturating_add(self.bytes());
        let shown = (!parts.is_empty()).then(|| {
            let parts = parts.join(", ");
            format!(
                "{what}: nvidia-smi will show about {all}, an estimate: {reserved} reserved, and beside it {parts}"
            )
        });
        shown.into_iter().chain(self.unknown.iter().map(|unknown| format!("{what}: {unknown}"))).collect()
    }
}

impl Report {
    /// The non-PyTorch memory of each device, by the device's number; no parts where the program did not use
    /// the device.
    pub fn non_pytorch(&self, gpu: &GpuProfile) -> Vec<NonPytorchMemory> {
        let devices = self.devices.iter().enumerate();
        devices
            .map(|(at, device)| {
                let taken: Vec<&HolderCount> =
                    self.holder_counts.iter().filter(|taken| taken.device == at).collect();
                if taken.is_empty() && device.peak_reserved.is_zero() {
                    return NonPytorchMemory::default();
                }
                device_memory(&taken, gpu)
            })
            .collect()
    }
}

fn device_memory(taken: &[&HolderCount], gpu: &GpuProfile) -> NonPytorchMemory {
    let count = |wanted: NonPytorchHolder| -> u64 {
        let of = taken.iter().filter(|taken| taken.what == wanted.name()).map(|taken| taken.count);
        of.max().unwrap_or(0)
    };
    let bytes = |holder: NonPytorchHolder| holder.bytes(0, count(holder)).unwrap_or_default();
    let mut all = vec![
        ("CUDA context".to_owned(), NonPytorchHolder::Context.bytes(0, 1).unwrap_or_default()),
        (
            "kernels' code and local memory".to_owned(),
            bytes(NonPytorchHolder::Code).saturating_add(bytes(NonPytorchHolder::LocalMemory)),
        ),
        ("PyTorch's pool of streams".to_owned(), bytes(NonPytorchHolder::Streams)),
        (handles(count(NonPytorchHolder::Blas), "cuBLAS"), bytes(NonPytorchHolder::Blas)),
    ];
    let mut dnn = bytes(NonPytorchHolder::Dnn);
    if count(NonPytorchHolder::Blas) == 0 && !dnn.is_zero() {
        dnn = dnn.saturating_add(SHARED_LIBRARY_BYTES);
    }
    all.push((handles(count(NonPytorchHolder::Dnn), "cuDNN"), dnn));
    let others = [
        (NonPytorchHolder::Fft, "cuFFT"),
        (NonPytorchHolder::Solver, "cuSOLVER"),
        (NonPytorchHolder::Sparse, "cuSPARSE"),
    ];
    all.extend(others.map(|(holder, name)| (name.to_owned(), bytes(holder))));
    let mut unknown = Vec::new();
    all.extend(nccl(taken, &mut unknown));
    all.retain(|(_, bytes)| !bytes.is_zero());
    if !gpu.has_non_pytorch_recorded {
        unknown.insert(0, non_pytorch_measured_text(gpu.name));
    }
    NonPytorchMemory { parts: all, unknown }
}

fn handles(count: u64, library: &str) -> String {
    format!("{library}, {}", counted(count, "handle"))
}

/// The buffers of communicators, by their numbers of ranks.
fn nccl(taken: &[&HolderCount], unknown: &mut Vec<String>) -> Vec<(String, Bytes)> {
    let of = |holder: NonPytorchHolder, ranks: u64| -> u64 {
        let is = |taken: &&&HolderCount| taken.what == holder.name() && taken.ranks == ranks;
        taken.iter().filter(is).map(|taken| taken.count).max().unwrap_or(0)
    };
    let mut sizes: Vec<u64> = taken
        .iter()
        .filter(|taken| taken.what == NonPytorchHolder::Communicators.name())
        .map(|taken| taken.ranks)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut parts = Vec::new();
    let mut has_work = false;
    for ranks in sizes {
        let holders = [
            NonPytorchHolder::Communicators,
            NonPytorchHolder::Collectives,
            NonPytorchHolder::Messages,
            NonPytorchHolder::Sent,
            NonPytorchHolder::Received,
        ];
        let bytes: Option<Vec<Bytes>> =
            holders.iter().map(|holder| holder.bytes(ranks, of(*holder, ranks))).collect();
        has_work |= ranks > 1 && holders.iter().skip(1).any(|holder| of(*holder, ranks) > 0);
        let communicators = of(NonPytorchHolder::Communicators, ranks);
        let named = if communicators == 1 {
            "1 communicator".to_owned()
        } else {
            format!("{communicators} communicators")
        };
        let of_ranks = match ranks {
            0 => "of ranks, some of which do not run".to_owned(),
            1 => "of 1 rank".to_owned(),
            _ => format!("of {ranks} ranks"),
        };
        match bytes {
            Some(bytes) => {
                let sum = bytes.into_iter().fold(Bytes::ZERO, Bytes::saturating_add);
                parts.push((format!("NCCL, {named} {of_ranks}"), sum));
            }
            None => unknown.push(format!(
                "more bytes, which are not known: NCCL's buffers of {named} {of_ranks}; recorded are those of 2 ranks on one host, 588 MiB for the first communicator with collectives, \
                 486 MiB for each other, 446 MiB more where it has messages"
            )),
        }
    }
    if has_work {
        parts.push(("NCCL, code".to_owned(), NCCL_CODE));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceReport;

    fn taken(what: NonPytorchHolder, ranks: u64, count: u64) -> HolderCount {
        HolderCount { device: 0, what: what.name().to_owned(), ranks, count }
    }

    fn report(taken: Vec<HolderCount>) -> Report {
        let device = DeviceReport { peak_reserved: Bytes::mib(20), ..DeviceReport::default() };
        Report { devices: vec![device, DeviceReport::default()], holder_counts: taken, ..Report::default() }
    }

    /// The stand-in takes off the sum, and the report lists the parts.
    #[test]
    fn the_parts_are_the_sum() {
        let all = NonPytorchHolder::ALL.into_iter().filter(|holder| *holder != NonPytorchHolder::Context);
        let mut counts: Vec<(NonPytorchHolder, u64, u64)> = Vec::new();
        for (number, holder) in (1..).zip(all) {
            let ranks = if holder < NonPytorchHolder::Communicators { 0 } else { 2 };
            counts.push((holder, ranks, number % 3 + 1));
            let found =
                report(counts.iter().map(|(holder, ranks, times)| taken(*holder, *ranks, *times)).collect());
            let sum = blockyard_gpus::non_pytorch_bytes(counts.iter().copied());
            assert_eq!(found.non_pytorch(&GpuProfile::H200)[0].bytes(), sum, "{counts:?}");
        }
    }

    #[test]
    fn parts_are_what_an_h100_showed() {
        // A matrix product and its backward pass: 222 MiB more than the context.
        let found = report(vec![
            taken(NonPytorchHolder::Code, 0, 1),
            taken(NonPytorchHolder::LocalMemory, 0, 1),
            taken(NonPytorchHolder::Blas, 0, 1),
            taken(NonPytorchHolder::Blas, 0, 2),
        ]);
        let non_pytorch = found.non_pytorch(&GpuProfile::H200);
        assert_eq!(non_pytorch[0].bytes(), Bytes::new(552_402_944 + (222 << 20)));
        assert_eq!(non_pytorch[0].parts[2].0, "cuBLAS, 2 handles");
        assert_eq!((&non_pytorch[0].unknown, &non_pytorch[1]), (&Vec::new(), &NonPytorchMemory::default()));
        // A convolution alone: 12 MiB.
        let found = report(vec![taken(NonPytorchHolder::Code, 0, 1), taken(NonPytorchHolder::Dnn, 0, 1)]);
        assert_eq!(found.non_pytorch(&GpuProfile::H200)[0].bytes(), Bytes::new(552_402_944 + (12 << 20)));
    }

    #[test]
    fn communicators_of_two_ranks_are_recorded() {
        let nccl = |more: Vec<HolderCount>| {
            let first =
                vec![taken(NonPytorchHolder::Streams, 0, 1), taken(NonPytorchHolder::Communicators, 2, 1)];
            let found = report([first, more].concat()).non_pytorch(&GpuProfile::H200);
            found[0].bytes().get() - 552_402_944
        };
        // Created; with a collective; with messages alone; with both; a second one.
        assert_eq!(nccl(Vec::new()), 370 << 20);
        assert_eq!(nccl(vec![taken(NonPytorchHolder::Collectives, 2, 1)]), 844 << 20);
        let [all, sent, received] =
            [NonPytorchHolder::Messages, NonPytorchHolder::Sent, NonPytorchHolder::Received]
                .map(|holder| taken(holder, 2, 1));
        assert_eq!(nccl(vec![all.clone(), sent.clone(), received.clone()]), 1002 << 20);
        let both = taken(NonPytorchHolder::Collectives, 2, 1);
        assert_eq!(nccl(vec![both.clone(), all.clone(), sent.clone(), received.clone()]), 1290 << 20);
        // A rank that scatters, and the one that receives its part.
        assert_eq!(nccl(vec![both.clone(), all.clone(), sent]), (844 + 122) << 20);
        assert_eq!(nccl(vec![both, all, received]), (844 + 378) << 20);
        let second =
            vec![taken(NonPytorchHolder::Communicators, 2, 2), taken(NonPytorchHolder::Collectives, 2, 2)];
        assert_eq!(nccl(second), (844 + 486) << 20);
    }

    #[test]
    fn what_was_not_recorded_is_said() {
        let found = report(vec![
            taken(NonPytorchHolder::Communicators, 64, 1),
            taken(NonPytorchHolder::Collectives, 64, 1),
        ]);
        let non_pytorch = found.non_pytorch(&GpuProfile::H200);
        assert!(
            non_pytorch[0].unknown[0].starts_with(
                "more bytes, which are not known: NCCL's buffers of 1 communicator of 64 ranks;"
            ),
            "{non_pytorch:?}"
        );
        assert_eq!(non_pytorch[0].parts.len(), 2, "{non_pytorch:?}");
        let t4 = GpuProfile::from_id("t4").unwrap();
        let non_pytorch = report(Vec::new()).non_pytorch(&t4);
        assert_eq!(non_pytorch[0].parts, [("CUDA context".to_owned(), Bytes::new(552_402_944))]);
        assert_eq!(
            non_pytorch[0].unknown,
            ["an estimate: measured on an NVIDIA H100 80GB HBM3, and not on a Tesla T4"]
        );
    }

    /// Bytes beside PyTorch's segments at the end of a part of the recording, in its last line of this
    /// beginning.
    fn recorded(part: &str, line: &str) -> u64 {
        let text = include_str!("../../../../tests/fixtures/measured/outside.txt");
        let lines = text
            .lines()
            .skip_while(|found| *found != part)
            .skip(1)
            .take_while(|found| found.starts_with("  "));
        let found = lines
            .filter(|found| found.trim_start().starts_with(line))
            .last()
            .unwrap_or_else(|| panic!("{part}, {line}"));
        let number = |name: &str| -> u64 {
            let (_, after) = found.split_once(name).unwrap_or_else(|| panic!("{found}"));
            after
                .split(' ')
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or_else(|| panic!("{found}"))
        };
        number("used ") - number("reserved ")
    }

    #[test]
    fn each_recorded_event_has_its_bytes() {
        let code = || taken(NonPytorchHolder::Code, 0, 1);
        let local = || taken(NonPytorchHolder::LocalMemory, 0, 1);
        let cases = [
            ("alone no_stack", vec![code()]),
            ("alone stack", vec![code(), local()]),
            ("alone norm", vec![code(), local()]),
            ("alone pinned", Vec::new()),
            ("alone streams", vec![taken(NonPytorchHolder::Streams, 0, 1)]),
            ("alone matmul", vec![code(), taken(NonPytorchHolder::Blas, 0, 1)]),
            ("alone linear", vec![code(), taken(NonPytorchHolder::Blas, 0, 1)]),
            ("alone backward", vec![code(), local(), taken(NonPytorchHolder::Blas, 0, 2)]),
            ("alone convolution", vec![code(), taken(NonPytorchHolder::Dnn, 0, 1)]),
            ("alone convolution_backward", vec![code(), local(), taken(NonPytorchHolder::Dnn, 0, 2)]),
            ("alone attention", vec![code(), local(), taken(NonPytorchHolder::Dnn, 0, 2)]),
        ];
        for (part, taken) in cases {
            let found = report(taken).non_pytorch(&GpuProfile::H200);
            assert_eq!(found[0].bytes().get(), recorded(part, ""), "{part}");
        }
    }

    #[test]
    fn programs_of_two_ranks_are_within_four_mib() {
        let mib = |bytes: u64| bytes >> 20;
        let both = [NonPytorchHolder::Messages, NonPytorchHolder::Sent, NonPytorchHolder::Received]
            .map(|holder| taken(holder, 2, 1));
        let collectives = || taken(NonPytorchHolder::Collectives, 2, 1);
        let dnn = || taken(NonPytorchHolder::Dnn, 0, 2);
        let cases = [
            ("program fsdp2.py", "rank 0", vec![collectives()]),
            ("program zero1.py", "rank 1", vec![collectives()]),
            ("program pipeline.py", "rank 1", both.to_vec()),
            ("program tensor_parallel.py", "rank 0", vec![collectives(), both[0].clone(), both[1].clone()]),
            ("program tensor_parallel.py", "rank 1", vec![collectives(), both[0].clone(), both[2].clone()]),
            ("program layouts.py --dp 2", "rank 0", vec![collectives(), dnn()]),
            ("program layouts.py --pp 2", "rank 1", [both.to_vec(), vec![dnn()]].concat()),
        ];
        for (part, rank, more) in cases {
            let first = vec![
                taken(NonPytorchHolder::Code, 0, 1),
                taken(NonPytorchHolder::LocalMemory, 0, 1),
                taken(NonPytorchHolder::Blas, 0, 2),
                taken(NonPytorchHolder::Streams, 0, 1),
                taken(NonPytorchHolder::Communicators, 2, 1),
            ];
            let found = mib(report([first, more].concat()).non_pytorch(&GpuProfile::H200)[0].bytes().get());
            let file = part.trim_start_matches("program ");
            let was = mib(recorded(&format!("two: {part}"), &format!("{rank} {file} before")).max(1));
            assert!(found.abs_diff(was) <= 4, "{part}, {rank}: {found} MiB, recorded {was} MiB");
        }
    }
}
