//! Why memory is alive at a step: the names that lead to it, and what saved it.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

use std::sync::{Arc, Mutex};

use blockyard_python::{ProgramSettings, ProgramSource, Referrers, run_to_step};

/// The reasons at a step, by the number of the allocation, as they are shown.
fn referrers(source: &str, step: usize) -> Vec<(u32, Vec<String>)> {
    let reported: Arc<Mutex<Option<Referrers>>> = Arc::default();
    let sink = Arc::clone(&reported);
    let program = ProgramSource { file: "x.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let thread = std::thread::Builder::new().stack_size(1 << 28);
    let finished = thread
        .spawn(move || {
            run_to_step(&program, &ProgramSettings::default(), step, move |referrers| {
                *sink.lock().expect("nobody failed") = Some(referrers);
            })
        })
        .expect("there is a thread")
        .join()
        .expect("the interpreter answers");
    assert_eq!(finished.traceback, None);
    let referrers = reported.lock().expect("nobody failed").take().expect("the step was reached");
    assert_eq!(referrers.step, step);
    let shown = |(number, reasons): (u32, Vec<blockyard_python::Reason>)| {
        (number, reasons.iter().map(ToString::to_string).collect())
    };
    referrers.reasons.into_iter().map(shown).collect()
}

fn of(referrers: &[(u32, Vec<String>)], number: u32) -> Vec<&str> {
    let found = referrers.iter().find(|(other, _)| *other == number);
    found.map(|(_, reasons)| reasons.iter().map(String::as_str).collect()).unwrap_or_default()
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
    let reasons: Vec<&str> = all.iter().flat_map(|(_, reasons)| reasons.iter().map(String::as_str)).collect();
    assert!(reasons.contains(&"model[0].weight.grad"), "{reasons:?}");
    assert!(reasons.contains(&"optimizer.state[model[0].weight]['exp_avg']"), "{reasons:?}");
    assert!(reasons.contains(&"cuBLAS keeps it until the process ends"), "{reasons:?}");
    assert!(reasons.iter().all(|reason| !reason.starts_with("saved")), "{reasons:?}");
    // Before `marker`, the graph of the loss still has what it saved: the weight's product, the input, and
    // the result of Sigmoid.
    let steps = (1..30).find(|step| {
        referrers(source, *step).iter().any(|(_, reasons)| reasons.iter().any(|reason| reason == "marker"))
    });
    let forward = referrers(source, steps.expect("marker is allocated"));
    let reasons: Vec<&str> =
        forward.iter().flat_map(|(_, reasons)| reasons.iter().map(String::as_str)).collect();
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
fn recorded_names(source: &'static str) -> Vec<String> {
    let program = ProgramSource { file: "x.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let settings = ProgramSettings { is_recorded: true, ..ProgramSettings::default() };
    let thread = std::thread::Builder::new().stack_size(1 << 28);
    let finished = thread
        .spawn(move || blockyard_python::run(&program, &settings, Box::new(|_: &str| ())))
        .expect("there is a thread")
        .join()
        .expect("the interpreter answers");
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
