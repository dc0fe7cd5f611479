//! When objects die. `deallocation.txt` is what CPython printed for `deallocation.py` (3.12 for the closed
//! generator, which lets go of its locals at once in other releases).

#![allow(clippy::expect_used, reason = "helpers of tests")]

#[path = "support/run.rs"]
mod support;

use support::run;

#[test]
fn objects_die_when_and_in_the_order_in_which_they_die_in_cpython() {
    let (printed, finished) = run(include_str!("deallocation.py"));
    assert_eq!(finished.traceback, None);
    let lines: Vec<&str> = printed.split('|').map(str::trim_end).collect();
    assert_eq!(lines.join("\n"), include_str!("deallocation.txt").trim_end());
}

#[test]
fn cycles_die_by_themselves_and_a_note_says_where() {
    let source = "import torch\nclass Node:\n    def __init__(self):\n        self.me = self\n        \
                  self.data = torch.zeros(1 << 20, device='cuda')\n\
                  for i in range(1000):\n    Node()\nprint(torch.cuda.max_memory_allocated() < 1000 << 22)\n";
    let (printed, finished) = run(source);
    assert_eq!(printed, "True\n");
    assert!(finished.notes.iter().any(|note| note.text.contains("garbage collector ran here")));
    let (printed, finished) = run(&format!("import gc\ngc.disable()\n{source}"));
    assert_eq!(printed, "False\n");
    assert_eq!(finished.notes, []);
}
