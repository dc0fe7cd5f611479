//! Why memory is alive at a step: the names that lead to it, and what saved it.

use std::collections::BTreeMap;

use crate::support::{run, run_with};
use blockyard_python::{ProgramOutcome, ProgramSettings, ProgramSource, Referrers, run_to_step};

/// The reasons at a step, by the number of the allocation, as they are shown.
fn referrers(source: &str, step: usize) -> BTreeMap<u32, Vec<String>> {
    look(source, step).1.reasons
}

fn look(source: &str, step: usize) -> (ProgramOutcome, Referrers) {
    let program = ProgramSource { file: "x.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let mut finished = run_to_step(&program, &ProgramSettings::default(), step).expect("the program runs");
    assert_eq!(finished.traceback, None);
    let referrers = finished.referrers.take().expect("the step or the end was reached");
    assert_eq!(referrers.step, step);
    (finished, referrers)
}

fn of(referrers: &BTreeMap<u32, Vec<String>>, number: u32) -> Vec<&str> {
    referrers.get(&number).map(|reasons| all_of([reasons])).unwrap_or_default()
}

fn all_of<'a>(reasons: impl IntoIterator<Item = &'a Vec<String>>) -> Vec<&'a str> {
    reasons.into_iter().flatten().map(String::as_str).collect()
}

#[test]
fn names_of_the_program_lead_to_memory_through_lists_dictionaries_and_calls() {
    let source = "import torch
a = torch.ones(8, device='cuda')
kept = {'first': [torch.ones(8, device='cuda')]}
def work(x):
    y = x + 1
    return y * 2
z = work(a)
b = a
";
    // Before the fourth request, the result of `y * 2`: inside of the call.
    let inside = referrers(source, 3);
    assert_eq!(of(&inside, 0), ["a", "x in work"]);
    assert_eq!(of(&inside, 1), ["kept['first'][0]"]);
    assert_eq!(of(&inside, 2), ["y in work"]);
    let end = referrers(source, 5);
    assert_eq!(of(&end, 0), ["a", "b"]);
    assert_eq!(of(&end, 3), ["z"]);
    assert_eq!(of(&end, 2), Vec::<&str>::new());
}

#[test]
fn saved_tensors_gradients_and_optimizer_state_are_told_apart() {
    let source = "import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Sigmoid()).cuda()
optimizer = torch.optim.Adam(model.parameters())
x = torch.ones(64, 64, device='cuda')
loss = model(x).sum()
optimizer.zero_grad()
marker = torch.empty(64, device='cuda')
loss.backward()
optimizer.step()
";
    let all = referrers(source, 10_000);
    assert_eq!(of(&all, 0)[0], "model[0].weight");
    let reasons = all_of(all.values());
    assert!(reasons.contains(&"model[0].weight.grad"), "{reasons:?}");
    assert!(reasons.contains(&"optimizer.state[model[0].weight]['exp_avg']"), "{reasons:?}");
    assert!(reasons.contains(&"cuBLAS keeps it until the process ends"), "{reasons:?}");
    assert!(reasons.iter().all(|reason| !reason.starts_with("saved")), "{reasons:?}");
    // Before `marker`, the graph of the loss still has what it saved: the weight's product, the input, and
    // the result of Sigmoid.
    let steps = (1..30).find(|step| all_of(referrers(source, *step).values()).contains(&"marker"));
    let forward = referrers(source, steps.expect("marker is allocated"));
    let reasons = all_of(forward.values());
    assert!(
        reasons.contains(&"saved as result by SigmoidBackward0, in the backward graph of loss"),
        "{reasons:?}"
    );
    assert!(
        reasons.iter().any(|reason| reason.starts_with("saved as ") && reason.contains("MmBackward0")),
        "{reasons:?}"
    );
}

#[test]
fn a_cycle_that_waits_for_the_garbage_collector_is_called_by_its_name() {
    let source = "import torch, gc
gc.disable()
class Holder:
    pass
def make():
    holder = Holder()
    holder.me = holder
    holder.x = torch.ones(8, device='cuda')
make()
b = torch.ones(8, device='cuda')
del b
";
    let all = referrers(source, 1);
    assert_eq!(
        of(&all, 0),
        ["a cycle of Python references that nothing else holds, until the garbage collector runs"]
    );
}

#[test]
fn a_traceback_and_a_generator_hold_what_their_calls_have() {
    let source = "import torch
def batches():
    batch = torch.ones(8, device='cuda')
    yield batch.shape
    yield None
stream = batches()
next(stream)
def fail():
    large = torch.ones(8, device='cuda')
    raise ValueError('no')
try:
    fail()
except ValueError as error:
    kept = error
";
    let all = referrers(source, 2);
    assert_eq!(of(&all, 0), ["batch in batches"]);
    assert_eq!(of(&all, 1), ["large in fail"]);
}

/// The names in the recording of a program, by allocation; an empty one for an allocation without.
fn recorded_names(source: &str) -> Vec<String> {
    let settings = ProgramSettings { is_recorded: true, ..ProgramSettings::default() };
    let (_, finished) = run_with(source, "x.py", settings);
    let recording =
        finished.devices.first().and_then(|device| device.recording.as_ref()).expect("a recording");
    let device = finished.devices.first().expect("a device");
    let origins = device.origins.iter();
    origins
        .map(|origin| origin.allocation.and_then(|id| recording.name(id)).unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn what_a_program_keeps_has_its_name_in_the_recording() {
    let names = recorded_names(
        "import torch
a = torch.ones(8, device='cuda')
kept = [torch.ones(8, device='cuda')]
b = a * 2 + 1
del a
",
    );
    // `a` is freed at the end, and `a * 2` never had a name.
    assert_eq!(names, ["", "kept[0]", "", "b"]);
}

#[test]
fn where_a_program_fails_the_names_of_its_calls_are_in_the_recording() {
    let names = recorded_names(
        "import torch
x = torch.ones(8, device='cuda')
def work(y):
    z = y + 1
    return torch.empty(1 << 50, device='cuda')
work(x)
",
    );
    assert_eq!(names.get(..2), Some(["x", "z in work"].map(str::to_owned).as_slice()));
}

#[test]
fn a_tensor_of_a_line_has_no_name_and_the_line_is_told() {
    let source = "import torch
def make():
    return torch.ones(8, device='cuda')
total = make() + torch.ones(8, device='cuda')
";
    let (_, found) = look(source, 1);
    assert_eq!(of(&found.reasons, 0), ["a value of the line that runs, without a name"]);
    assert_eq!((found.line, found.operator.as_str()), (4, "ones"));
}

#[test]
fn classes_closures_hooks_and_functions_of_the_program_lead_to_memory() {
    let source = "import torch
class Config:
    scale = torch.ones(8, device='cuda')
def outer():
    shift = torch.ones(8, device='cuda')
    def inner(x):
        return x + shift
    return inner
call = outer()
class Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mask = torch.ones(8, device='cuda')
        return x * ctx.mask
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.mask
y = Masked.apply(torch.ones(8, requires_grad=True, device='cuda'))
";
    let all = referrers(source, 10_000);
    assert_eq!(of(&all, 0), ["Config.scale"]);
    assert_eq!(of(&all, 1), ["shift in the closure of call"]);
    assert_eq!(of(&all, 2), ["a leaf of the backward graph of y"]);
    assert_eq!(of(&all, 3), ["ctx.mask of MaskedBackward, in the backward graph of y"]);
}

#[test]
fn the_search_changes_no_lifetimes() {
    let source = "import torch
class Holder:
    def __init__(self, x):
        self.x = x
    def __del__(self):
        torch.ones(1024, device='cuda')
def batches():
    for i in range(3):
        batch = torch.ones(8, device='cuda')
        yield batch
def work(x):
    holder = Holder(x + 1)
    x = None
    for y in batches():
        z = y * 2
    holder = None
    return z + 1
z = work(torch.ones(8, device='cuda'))
try:
    work(3)
except Exception as error:
    kept = error
";
    let requests = |outcome: &ProgramOutcome| outcome.devices.first().map(|device| device.requests.clone());
    let (_, plain) = run(source);
    assert!(requests(&plain).is_some_and(|requests| requests.len() > 20));
    for step in (0..30).step_by(4) {
        assert_eq!(requests(&look(source, step).0), requests(&plain), "{step}");
    }
}
