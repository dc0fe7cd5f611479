//! Memory pools and their snapshots.

use std::path::Path;

use blockyard_python::ProgramSettings;
use blockyard_rules::{AllocatorConfig, Release};

use crate::support::{run, run_with};

#[test]
fn pools_and_snapshots_say_what_pytorch_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/written");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the fixture can be read");
    let source = read("pools.py");
    let recorded = [("", "pools.txt"), ("expandable_segments:True", "pools.expandable_segments.txt")];
    for (conf, name) in recorded {
        let config =
            AllocatorConfig::parse(conf, Release::OF_RECORDED_OPERATORS).expect("the settings can be read");
        let settings = ProgramSettings { config, devices: 2, ..ProgramSettings::default() };
        let (printed, finished) = run_with(&source, "pools.py", settings);
        assert_eq!((finished.traceback, printed), (None, read(name)), "{name}");
    }
}

/// The last line of the traceback of a program.
fn refused(lines: &str) -> String {
    let source = format!("import threading, torch\npool = torch.cuda.MemPool()\n{lines}\n");
    let traceback = run(&source).1.traceback.expect("it is refused");
    traceback.trim_end().lines().next_back().unwrap_or_default().to_owned()
}

#[test]
fn what_is_not_modeled_of_pools_is_refused() {
    let cases = [
        ("torch.cuda.MemPool(object())", "with its own allocator is not modeled"),
        ("torch.cuda.memory._record_memory_history()\npool.snapshot()", "its blocks would have stacks"),
        (
            "with torch.cuda.use_mem_pool(pool):\n    threading.Thread(target=print).start()",
            "a thread that starts inside torch.cuda.use_mem_pool is not modeled here",
        ),
    ];
    for (lines, expected) in cases {
        let last = refused(lines);
        assert!(last.starts_with("NotImplementedError: ") && last.contains(expected), "{lines}: {last}");
    }
}

#[test]
fn a_snapshot_says_what_depends_on_addresses() {
    let source = "import torch
def empty(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device='cuda')
tensors = [empty(16), empty(16)]
print(len(torch.cuda.memory_snapshot()))
tensors.append(empty(32))
print(len(torch.cuda.memory_snapshot()))
tensors = [empty(64)]
other = empty(12)
print(len(torch.cuda.memory_snapshot()))
";
    let (printed, finished) = run(source);
    assert_eq!((finished.traceback, printed.as_str()), (None, "2\n3\n4\n"));
    let notes: Vec<u32> = finished.notes.iter().map(|note| note.line).collect();
    assert_eq!(notes, [7, 10], "where segments differ, their order is the driver's");
    assert_eq!(finished.estimates, [], "which of two equal segments is used makes no difference");
}
