//! Processes that a program starts, over a real PyTorch:
//! `TORCH=PYTHON cargo test -p blockyard-dry-run children::`, with a Python that has PyTorch for CUDA.
//! Without `TORCH` the tests are skipped.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use super::common::{done, over_torch};

/// Workers of a loader make batches, which one thread copies to pinned memory.
const LOADER: &str = "\
import torch
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, place):
        return torch.full((256,), float(place)), place
if __name__ == '__main__':
    model = torch.nn.Linear(256, 64).cuda()
    for is_pinned in (False, True):
        loader = DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=is_pinned, persistent_workers=is_pinned)
        for batch, places in loader:
            model(batch.cuda(non_blocking=True)).sum().backward()
        print(places.tolist(), int(places.cuda().sum()))
";

#[test]
fn workers_of_a_loader_take_no_memory_of_the_device() {
    let Some((report, lines)) = done(LOADER, &[]) else { return };
    let last = "[24, 25, 26, 27, 28, 29, 30, 31] 220";
    assert_eq!(lines.iter().filter(|line| *line == last).count(), 2, "{lines:?}");
    assert!(report.is_exact() && report.children.is_empty(), "{:?} {:?}", report.notes, report.children);
}

/// A spawned process, one of another program, and one that ends without a word.
const CHILDREN: &str = "\
import os, subprocess, sys, torch
import torch.multiprocessing as processes
def work(rank):
    torch.zeros(24 << 18, device='cuda')
    os._exit(0)
if __name__ == '__main__':
    own = torch.zeros(1 << 18, device='cuda')
    context = processes.get_context('spawn')
    child = context.Process(target=work, args=(0,))
    child.start()
    child.join()
    text = 'import torch; x = torch.zeros(50 << 18, device=\"cuda\")'
    subprocess.run([sys.executable, '-c', text], check=True)
    print(torch.cuda.max_memory_allocated())
";

#[test]
fn what_processes_take_that_the_program_starts_is_said() {
    let Some((report, lines)) = done(CHILDREN, &[]) else { return };
    assert_eq!(lines.last().map(String::as_str), Some("1048576"), "{lines:?}");
    let mut found: Vec<u64> = report.children.iter().map(|child| child.bytes.get()).collect();
    found.sort_unstable();
    assert_eq!(found, [24 << 20, 50 << 20]);
    let mut counted: Vec<u64> =
        report.children.iter().filter_map(|child| Some(child.counted?.peak_allocated.get())).collect();
    counted.sort_unstable();
    assert_eq!(counted, [24 << 20, 50 << 20]);
    assert!(!report.is_of_children && report.is_exact(), "{:?}", report.notes);
    assert_eq!(report.peak_reserved().get(), 2 << 20);
    assert_eq!(report.peak_of_all_processes().get(), 76 << 20);
}

/// Processes that read what they computed, one device each; the first way to start them starts Python again,
/// the second copies the process.
const READERS: &str = "\
import sys, torch
import torch.multiprocessing as processes
def work(rank):
    places = torch.arange(1000, device=f'cuda:{rank}')
    every = (places % 7 == rank).nonzero()
    print(rank, every.numel(), places.sum().item(), flush=True)
    own = torch.zeros(3 + rank << 18, device=f'cuda:{rank}')
    del own
if __name__ == '__main__':
    processes.start_processes(work, nprocs=2, start_method='WAY')
";

#[test]
fn values_are_followed_in_processes_that_the_program_starts() {
    for way in ["spawn", "fork"] {
        let source = READERS.replace("WAY", way);
        let environment = [("STANDIN_DEVICES", "2")];
        let Some((report, mut lines)) = done(&source, &environment) else { return };
        lines.sort_unstable();
        assert_eq!(lines, ["0 143 499500", "1 143 499500"], "{way}");
        assert!(report.is_exact() && report.is_of_children, "{way}: {:?}", report.notes);
        let peaks: Vec<u64> = report.devices.iter().map(|device| device.peak_reserved.get()).collect();
        assert_eq!(peaks, [22 << 20, 22 << 20], "{way}");
        assert!(report.devices[0].peak_allocated < report.devices[1].peak_allocated, "{way}");
    }
}

/// A process that would make more steps than are asked for.
const STEPS: &str = "\
import torch
import torch.multiprocessing as processes
def work(rank):
    model = torch.nn.Linear(256, 256).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        model(torch.ones(8, 256, device='cuda')).sum().backward()
        optimizer.step()
        print(step, flush=True)
if __name__ == '__main__':
    processes.spawn(work, nprocs=1)
    print('done')
";

#[test]
fn a_process_that_the_program_starts_ends_after_its_steps() {
    let Some(over) = over_torch() else { return };
    let (file, output) = (over.folder.path().join("program.py"), over.folder.path().join("output"));
    std::fs::write(&file, STEPS).expect("the program is written");
    let program = blockyard_dry_run::Program {
        iterations: Some(2),
        output: Some(output.clone()),
        ..blockyard_dry_run::Program::new(file, over.python, blockyard_gpus::GpuProfile::H200)
    };
    let report = blockyard_dry_run::run(&program, &over.torch, &over.prepared).expect("it runs");
    assert_eq!(std::fs::read_to_string(output).expect("there is output"), "0\ndone\n");
    assert_eq!((report.status, report.is_of_children), (0, true), "{report:?}");
}
