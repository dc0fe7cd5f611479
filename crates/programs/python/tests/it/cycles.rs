//! Cycles of references: which of them Python's garbage collector frees, and when.
//!
//! `checkpoint_cycle.txt` is what an H200 printed for `checkpoint_cycle.py` (PyTorch 2.11.0, Python 3.12):
//! `== ARGUMENTS`, then the lines.

use blockyard_python::{Interpreter, ProgramOutcome, ProgramSettings, ProgramSource};

/// The lines of a program, and its outcome.
fn run(source: &str, arguments: &[&str]) -> (String, ProgramOutcome) {
    let program = ProgramSource {
        file: "program.py".to_owned(),
        source: source.to_owned(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
    };
    let settings = ProgramSettings { has_rules_of_recordings: true, ..ProgramSettings::default() };
    let (printed, outcome) = crate::support::run_program(&program, settings);
    assert_eq!(outcome.traceback, None);
    (printed, outcome)
}

fn is_collection_noted(outcome: &ProgramOutcome) -> bool {
    outcome.notes.iter().any(|note| note.text.contains("garbage collector ran here"))
}

/// The bytes that each line says are allocated.
fn allocated(lines: &str) -> Vec<u64> {
    let number = |line: &str| line.split("allocated ").nth(1)?.split(',').next()?.parse().ok();
    lines.lines().filter_map(number).collect()
}

#[test]
fn a_checkpoint_in_a_cycle_frees_what_an_h200_frees() {
    // The moments at which the collector begins are those of Python 3.12.
    let is_recordings = Interpreter::of_recordings().is_none_or(|python| python.version.starts_with("3.12."));
    let mut forms = 0;
    for answer in include_str!("../checkpoint_cycle.txt").split("== ").skip(1) {
        let (arguments, wanted) = answer.split_once('\n').expect("arguments");
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let (printed, outcome) = run(include_str!("../checkpoint_cycle.py"), &arguments);
        forms += 1;
        assert_eq!(is_collection_noted(&outcome), arguments.is_empty(), "{arguments:?}");
        if is_recordings || !arguments.is_empty() {
            assert_eq!(printed, wanted, "{arguments:?}");
            continue;
        }
        // Another Python makes other objects, and collects at other steps.
        let (ours, theirs) = (allocated(&printed), allocated(wanted));
        assert_eq!(ours.len(), theirs.len());
        assert!(ours.iter().max() <= theirs.iter().max(), "{printed}");
    }
    assert_eq!(forms, 3);
}

/// PyTorch's own build prints the same number in a dry run.
#[test]
fn a_thousand_cycles_leave_the_blocks_that_pytorch_leaves() {
    let source = "\
import torch
class Node:
    def __init__(self):
        self.me = self
        self.data = torch.zeros(1 << 20, device='cuda')
for i in range(1000):
    Node()
print(torch.cuda.max_memory_allocated() >> 22)
";
    let (printed, outcome) = run(source, &[]);
    // PyTorch leaves 351 blocks; how many objects are new when the loop begins decides about one more.
    assert!(["351\n", "352\n"].contains(&printed.as_str()), "{printed}");
    assert!(is_collection_noted(&outcome));
}

/// The memory that is used after each line of a program: a list of MiB.
fn used_after(source: &str) -> String {
    let prelude = "\
import gc, weakref
import torch
gc.disable()
def used():
    return torch.cuda.memory_allocated() >> 20
def ones():
    return torch.ones(1 << 18, device='cuda', requires_grad=True)
";
    let (printed, outcome) = run(&format!("{prelude}{source}"), &[]);
    assert!(!is_collection_noted(&outcome));
    printed.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_hook_of_a_leaf_that_holds_the_leaf_is_collected() {
    let source = "\
x = ones()
x.register_hook(lambda grad, x=x: None)
del x
print(used())
gc.collect()
print(used())
";
    assert_eq!(used_after(source), "1 0");
}

#[test]
fn a_hook_of_another_tensor_that_holds_the_tensor_is_never_collected() {
    let source = "\
x = ones()
y = x * 2
y.register_hook(lambda grad, y=y: None)
del x, y
print(used())
gc.collect()
print(used())
";
    assert_eq!(used_after(source), "2 2");
}

#[test]
fn a_function_whose_context_holds_its_result_is_collected() {
    let source = "\
class Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x * 2
        return ctx.y
    @staticmethod
    def backward(ctx, grad):
        return grad
y = Keep.apply(ones())
del y
print(used())
gc.collect()
print(used())
y = Keep.apply(ones())
z = y * 1
del y
gc.collect()
print(used())
";
    assert_eq!(used_after(source), "2 0 3");
}

#[test]
fn a_handle_of_a_hook_keeps_no_tensor() {
    let source = "\
x = ones()
handle = x.register_hook(lambda grad: None)
del x
print(used())
handle.remove()
";
    assert_eq!(used_after(source), "0");
}

#[test]
fn the_object_of_a_tensor_lives_as_long_as_the_tensor() {
    let source = "\
x = ones()
x.mark = 'a mark'
reference = weakref.ref(x)
y = x * x
del x
print(reference() is not None, reference().mark.split()[1])
del y
print(reference() is None)
w = ones()
(w * 2).sum().backward()
print(w.grad is w.grad)
";
    assert_eq!(used_after(source), "True mark True True");
}

#[test]
fn the_context_of_a_function_keeps_no_node() {
    let source = "\
class Save(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad
y = Save.apply(ones())
node = y.grad_fn
print(used(), node.name())
del y
print(used())
";
    assert_eq!(used_after(source), "2 SaveBackward 0");
}
