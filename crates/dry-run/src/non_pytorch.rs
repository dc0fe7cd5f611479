//! What `nvidia-smi` would show beside PyTorch's segments: an estimate by what was recorded.

use blockyard_gpus::{GpuProfile, LIBRARIES, NCCL_CODE, OUTSIDE_RECORDED_ON, Taker};
use blockyard_record::Bytes;
use serde::Deserialize;

use crate::Report;

/// Memory of a device that the driver or a library takes beside PyTorch's allocator, as the stand-in counts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct OutsideAllocation {
    /// The device.
    pub device: usize,
    /// The name of a [`Taker`].
    pub what: String,
    /// How many ranks a communicator has; 0 if the number is not known or the taker has no ranks.
    pub ranks: u64,
    /// How often the taker has taken memory until now.
    pub count: u64,
}

/// The memory of one device beside PyTorch's segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutsideMemory {
    /// Each holder, with its bytes.
    pub parts: Vec<(String, Bytes)>,
    /// Sentences about memory that is taken and was not recorded.
    pub unknown: Vec<String>,
}

impl OutsideMemory {
    /// The sum of all parts.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.parts.iter().fold(Bytes::ZERO, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }
}

impl Report {
    /// What each device has beside PyTorch's segments, by what was recorded of a GPU; nothing where the program did not use the device.
    #[must_use]
    pub fn outside(&self, gpu: &GpuProfile) -> Vec<OutsideMemory> {
        let devices = self.devices.iter().enumerate();
        devices
            .map(|(at, device)| {
                let taken: Vec<&OutsideAllocation> =
                    self.taken.iter().filter(|taken| taken.device == at).collect();
                if taken.is_empty() && device.peak_reserved.is_zero() {
                    return OutsideMemory::default();
                }
                of_device(&taken, gpu)
            })
            .collect()
    }
}

fn of_device(taken: &[&OutsideAllocation], gpu: &GpuProfile) -> OutsideMemory {
    let count = |wanted: Taker| -> u64 {
        let of = taken.iter().filter(|taken| taken.what == wanted.name()).map(|taken| taken.count);
        of.max().unwrap_or(0)
    };
    let bytes = |taker: Taker| taker.bytes(0, count(taker)).unwrap_or_default();
    let mut all = vec![
        ("CUDA context".to_owned(), Taker::Context.bytes(0, 1).unwrap_or_default()),
        (
            "kernels' code and local memory".to_owned(),
            bytes(Taker::Code).saturating_add(bytes(Taker::LocalMemory)),
        ),
        ("PyTorch's pool of streams".to_owned(), bytes(Taker::Streams)),
        (handles(count(Taker::Blas), "cuBLAS"), bytes(Taker::Blas)),
    ];
    let mut dnn = bytes(Taker::Dnn);
    if count(Taker::Blas) == 0 && !dnn.is_zero() {
        dnn = dnn.saturating_add(LIBRARIES);
    }
    all.push((handles(count(Taker::Dnn), "cuDNN"), dnn));
    let others = [(Taker::Fft, "cuFFT"), (Taker::Solver, "cuSOLVER"), (Taker::Sparse, "cuSPARSE")];
    all.extend(others.map(|(taker, name)| (name.to_owned(), bytes(taker))));
    let mut unknown = Vec::new();
    all.extend(nccl(taken, &mut unknown));
    all.retain(|(_, bytes)| !bytes.is_zero());
    if !gpu.has_outside_recorded {
        let sum = all.iter().fold(Bytes::ZERO, |sum, (_, bytes)| sum.saturating_add(*bytes));
        unknown.insert(
            0,
            format!("no recording of a {}: the same takes {sum} on a {OUTSIDE_RECORDED_ON}", gpu.name),
        );
        all.clear();
    }
    OutsideMemory { parts: all, unknown }
}

fn handles(count: u64, library: &str) -> String {
    format!("{library}, {count} {}", if count == 1 { "handle" } else { "handles" })
}

/// The buffers of communicators, by their numbers of ranks.
fn nccl(taken: &[&OutsideAllocation], unknown: &mut Vec<String>) -> Vec<(String, Bytes)> {
    let of = |taker: Taker, ranks: u64| -> u64 {
        let is = |taken: &&&OutsideAllocation| taken.what == taker.name() && taken.ranks == ranks;
        taken.iter().filter(is).map(|taken| taken.count).max().unwrap_or(0)
    };
    let mut sizes: Vec<u64> = taken
        .iter()
        .filter(|taken| taken.what == Taker::Communicators.name())
        .map(|taken| taken.ranks)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut parts = Vec::new();
    let mut has_work = false;
    for ranks in sizes {
        let takers =
            [Taker::Communicators, Taker::Collectives, Taker::Messages, Taker::Sent, Taker::Received];
        let bytes: Option<Vec<Bytes>> =
            takers.iter().map(|taker| taker.bytes(ranks, of(*taker, ranks))).collect();
        has_work |= ranks > 1 && takers.iter().skip(1).any(|taker| of(*taker, ranks) > 0);
        let communicators = of(Taker::Communicators, ranks);
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
                "NCCL's buffers of {named} {of_ranks}: recorded are those of 2 ranks on one host, 588 MiB for the first communicator with collectives, \
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

    fn taken(what: Taker, ranks: u64, count: u64) -> OutsideAllocation {
        OutsideAllocation { device: 0, what: what.name().to_owned(), ranks, count }
    }

    fn report(taken: Vec<OutsideAllocation>) -> Report {
        let device = DeviceReport { peak_reserved: Bytes::mib(20), ..DeviceReport::default() };
        Report { devices: vec![device, DeviceReport::default()], taken, ..Report::default() }
    }

    /// The stand-in takes off the sum, and the report lists the parts.
    #[test]
    fn the_parts_are_the_sum() {
        let all = Taker::ALL.into_iter().filter(|taker| *taker != Taker::Context);
        let mut counts: Vec<(Taker, u64, u64)> = Vec::new();
        for (number, taker) in (1..).zip(all) {
            let ranks = if taker < Taker::Communicators { 0 } else { 2 };
            counts.push((taker, ranks, number % 3 + 1));
            let found =
                report(counts.iter().map(|(taker, ranks, times)| taken(*taker, *ranks, *times)).collect());
            let sum = blockyard_gpus::outside_bytes(counts.iter().copied());
            assert_eq!(found.outside(&GpuProfile::H200)[0].bytes(), sum, "{counts:?}");
        }
    }

    #[test]
    fn parts_are_what_an_h100_showed() {
        // A matrix product and its backward pass: 222 MiB more than the context.
        let found = report(vec![
            taken(Taker::Code, 0, 1),
            taken(Taker::LocalMemory, 0, 1),
            taken(Taker::Blas, 0, 1),
            taken(Taker::Blas, 0, 2),
        ]);
        let outside = found.outside(&GpuProfile::H200);
        assert_eq!(outside[0].bytes(), Bytes::new(552_402_944 + (222 << 20)));
        assert_eq!(outside[0].parts[2].0, "cuBLAS, 2 handles");
        assert_eq!((&outside[0].unknown, &outside[1]), (&Vec::new(), &OutsideMemory::default()));
        // A convolution alone: 12 MiB.
        let found = report(vec![taken(Taker::Code, 0, 1), taken(Taker::Dnn, 0, 1)]);
        assert_eq!(found.outside(&GpuProfile::H200)[0].bytes(), Bytes::new(552_402_944 + (12 << 20)));
    }

    #[test]
    fn communicators_of_two_ranks_are_recorded() {
        let nccl = |more: Vec<OutsideAllocation>| {
            let first = vec![taken(Taker::Streams, 0, 1), taken(Taker::Communicators, 2, 1)];
            let found = report([first, more].concat()).outside(&GpuProfile::H200);
            found[0].bytes().get() - 552_402_944
        };
        // Created; with a collective; with messages alone; with both; a second one.
        assert_eq!(nccl(Vec::new()), 370 << 20);
        assert_eq!(nccl(vec![taken(Taker::Collectives, 2, 1)]), 844 << 20);
        let [all, sent, received] =
            [Taker::Messages, Taker::Sent, Taker::Received].map(|taker| taken(taker, 2, 1));
        assert_eq!(nccl(vec![all.clone(), sent.clone(), received.clone()]), 1002 << 20);
        let both = taken(Taker::Collectives, 2, 1);
        assert_eq!(nccl(vec![both.clone(), all.clone(), sent.clone(), received.clone()]), 1290 << 20);
        // A rank that scatters, and the one that receives its part.
        assert_eq!(nccl(vec![both.clone(), all.clone(), sent]), (844 + 122) << 20);
        assert_eq!(nccl(vec![both, all, received]), (844 + 378) << 20);
        let second = vec![taken(Taker::Communicators, 2, 2), taken(Taker::Collectives, 2, 2)];
        assert_eq!(nccl(second), (844 + 486) << 20);
    }

    #[test]
    fn what_was_not_recorded_is_said() {
        let found = report(vec![taken(Taker::Communicators, 64, 1), taken(Taker::Collectives, 64, 1)]);
        let outside = found.outside(&GpuProfile::H200);
        assert!(
            outside[0].unknown[0].starts_with("NCCL's buffers of 1 communicator of 64 ranks"),
            "{outside:?}"
        );
        assert_eq!(outside[0].parts.len(), 2, "{outside:?}");
        let t4 = GpuProfile::from_id("t4").unwrap();
        let outside = report(Vec::new()).outside(&t4);
        assert!(outside[0].parts.is_empty());
        assert_eq!(
            outside[0].unknown,
            ["no recording of a Tesla T4: the same takes 526.81 MiB on a NVIDIA H100 80GB HBM3"]
        );
    }

    /// Bytes beside PyTorch's segments at the end of a part of the recording, in its last line of this beginning.
    fn recorded(part: &str, line: &str) -> u64 {
        let text = include_str!("../../../tests/fixtures/measured/outside.txt");
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
        let code = || taken(Taker::Code, 0, 1);
        let local = || taken(Taker::LocalMemory, 0, 1);
        let cases = [
            ("alone no_stack", vec![code()]),
            ("alone stack", vec![code(), local()]),
            ("alone norm", vec![code(), local()]),
            ("alone pinned", Vec::new()),
            ("alone streams", vec![taken(Taker::Streams, 0, 1)]),
            ("alone matmul", vec![code(), taken(Taker::Blas, 0, 1)]),
            ("alone linear", vec![code(), taken(Taker::Blas, 0, 1)]),
            ("alone backward", vec![code(), local(), taken(Taker::Blas, 0, 2)]),
            ("alone convolution", vec![code(), taken(Taker::Dnn, 0, 1)]),
            ("alone convolution_backward", vec![code(), local(), taken(Taker::Dnn, 0, 2)]),
            ("alone attention", vec![code(), local(), taken(Taker::Dnn, 0, 2)]),
        ];
        for (part, taken) in cases {
            let found = report(taken).outside(&GpuProfile::H200);
            assert_eq!(found[0].bytes().get(), recorded(part, ""), "{part}");
        }
    }

    #[test]
    fn programs_of_two_ranks_are_within_four_mib() {
        let mib = |bytes: u64| bytes >> 20;
        let both = [Taker::Messages, Taker::Sent, Taker::Received].map(|taker| taken(taker, 2, 1));
        let collectives = || taken(Taker::Collectives, 2, 1);
        let dnn = || taken(Taker::Dnn, 0, 2);
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
                taken(Taker::Code, 0, 1),
                taken(Taker::LocalMemory, 0, 1),
                taken(Taker::Blas, 0, 2),
                taken(Taker::Streams, 0, 1),
                taken(Taker::Communicators, 2, 1),
            ];
            let found = mib(report([first, more].concat()).outside(&GpuProfile::H200)[0].bytes().get());
            let file = part.trim_start_matches("program ");
            let was = mib(recorded(&format!("two: {part}"), &format!("{rank} {file} before")).max(1));
            assert!(found.abs_diff(was) <= 4, "{part}, {rank}: {found} MiB, recorded {was} MiB");
        }
    }
}
