//! When tensors die that only cycles of references hold, and the rule of the Python that made the recordings.

use crate::support::run;
use blockyard_python::Interpreter;

#[track_caller]
fn check(source: &str, expected: &str) {
    let (printed, finished) = run(source);
    assert_eq!((finished.traceback, printed.as_str()), (None, expected), "{source}");
}

#[test]
fn a_closed_generator_keeps_its_variables_as_in_the_python_of_the_recordings() {
    let source = "class Value:
    def __del__(self):
        print('dies', end=' ')
def plain():
    value = Value()
    yield 1
def guarded():
    value = Value()
    try:
        yield 1
    finally:
        print('finally', end=' ')
for make in plain, guarded:
    generator = make()
    next(generator)
    generator.close()
    print('closed', end=' ')
    del generator
";
    // Code of Python 3.10 does not say which of its parts are inside of `try`.
    let python = Interpreter::find(None).expect("a Python is installed").version;
    let plain = if python.starts_with("3.10.") { "dies closed" } else { "closed dies" };
    check(source, &format!("{plain} finally dies closed "));
}

#[test]
fn cycles_die_by_themselves() {
    let source = "import torch
class Node:
    def __init__(self):
        self.me = self
        self.data = torch.zeros(1 << 20, device='cuda')
for i in range(1000):
    Node()
print(torch.cuda.max_memory_allocated() < 1000 << 22)
";
    check(source, "True\n");
    check(&format!("import gc\ngc.disable()\n{source}"), "False\n");
}

#[test]
fn a_cycle_through_a_hook_or_a_function_of_the_program_is_found() {
    let source = "import gc
import torch
class Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.others = []
        Keep.last = ctx
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        return grad
def hooked():
    x = torch.ones(1 << 20, device='cuda', requires_grad=True)
    x.register_hook(lambda grad: x)
def made_by_a_function():
    y = Keep.apply(torch.ones(1 << 20, device='cuda', requires_grad=True))
    Keep.last.others.append(y)
    del Keep.last
for make in hooked, made_by_a_function:
    make()
    before = torch.cuda.memory_allocated()
    gc.collect()
    print(before > 0, torch.cuda.memory_allocated())
";
    check(source, "True 0\nTrue 0\n");
}
