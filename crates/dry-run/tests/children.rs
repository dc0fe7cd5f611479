//! Processes that a program starts, over a real PyTorch: `TORCH=PYTHON cargo test -p blockyard-dry-run --test children`, with a Python that has
//! PyTorch for CUDA. Without `TORCH` the tests are skipped.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::done;

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
    let Some((report, lines)) = done("loader", LOADER, &[]) else { return };
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
    let Some((report, lines)) = done("children", CHILDREN, &[]) else { return };
    assert_eq!(lines.last().map(String::as_str), Some("1048576"), "{lines:?}");
    let mut found: Vec<u64> = report.children.iter().map(|child| child.bytes.get()).collect();
    found.sort_unstable();
    assert_eq!(found, [24 << 20, 50 << 20]);
    assert_eq!(report.peak_reserved().get(), 2 << 20);
    assert_eq!(report.peak_of_all_processes().get(), 76 << 20);
}
