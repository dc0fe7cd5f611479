//! Ranks over a real PyTorch: `TORCH=PYTHON cargo test -p blockyard-dry-run ranks::`, with a Python that
//! has PyTorch for CUDA. Without `TORCH` the tests are skipped.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::Path;

use blockyard_dry_run::{Program, Ranks, RanksReport, run, run_ranks};
use blockyard_gpus::{GpuProfile, NonPytorchHolder};

use super::common::over_torch;

/// Runs a program of `tests/fixtures/ranks` as these ranks of so many.
fn ran(name: &str, world: u32, asked: &[u32], is_interrupted: bool) -> Option<RanksReport> {
    let over = over_torch()?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/ranks").join(name);
    let ranks = Ranks::new(1, world, asked).unwrap();
    let program = |rank: u32| Program {
        devices: world,
        output: Some(over.folder.path().join(format!("output{rank}"))),
        ..Program::new(file.clone(), over.python.clone(), GpuProfile::H200)
    };
    Some(run_ranks(&ranks, None, program, &over.torch, &over.prepared, || is_interrupted).unwrap())
}

#[test]
fn checkpoints_are_saved_and_loaded_where_ranks_are_absent() {
    for asked in [&[0][..], &[1, 3]] {
        let Some(report) = ran("checkpoint_load.py", 4, asked, false) else { return };
        assert_eq!((report.status(), report.first_failed), (0, None), "{asked:?}");
        for rank in &report.ranks {
            let notes = rank.report.sentences().join("\n");
            assert!(
                notes.contains("the object that is gathered of it is assumed to be this rank's own"),
                "{notes}"
            );
            assert_eq!(notes.contains("rank 1 plans the checkpoint in its place"), asked[0] == 1, "{notes}");
        }
    }
}

#[test]
fn an_interrupted_run_blames_no_rank() {
    let Some(report) = ran("checkpoint_load.py", 2, &[], true) else { return };
    assert_eq!((report.status(), report.first_failed, report.is_interrupted), (130, None, true));
}

/// What one rank sends to another (here gradients) is used by NCCL's stream: when its block is free again,
/// the GPU's work decides. With `layouts.py --pp 2` of `tests/fixtures/fit` two H100s allocated 1 MiB more
/// for this reason.
#[test]
fn blocks_of_messages_are_marked() {
    let Some(report) = ran("pipeline.py", 2, &[], false) else { return };
    assert_eq!(report.status(), 0);
    let notes = report.ranks[1].report.sentences().join("\n");
    assert!(notes.contains("another stream uses a tensor"), "{notes}");
}

/// One process over two devices.
const PARALLEL: &str = "
import torch
model = torch.nn.DataParallel(torch.nn.Linear(64, 64).cuda())
model(torch.zeros(8, 64, device='cuda'))
";

#[test]
fn communicators_of_one_process_are_on_the_devices_of_their_ranks() {
    let Some(over) = over_torch() else { return };
    let file = over.folder.path().join("program.py");
    std::fs::write(&file, PARALLEL).unwrap();
    let program = Program {
        devices: 2,
        output: Some(over.folder.path().join("output")),
        ..Program::new(file, over.python.clone(), GpuProfile::H200)
    };
    let report = run(&program, &over.torch, &over.prepared).unwrap();
    let counted = |device: usize| {
        let of = report.holder_counts.iter().filter(|taken| taken.device == device);
        of.filter(|taken| taken.what == NonPytorchHolder::Communicators.name()).map(|taken| taken.count).max()
    };
    assert_eq!((report.status, counted(0), counted(1)), (0, Some(1), Some(1)));
}
