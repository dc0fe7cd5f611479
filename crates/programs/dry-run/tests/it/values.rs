//! Values that a program computes on the device, followed over a real PyTorch:
//! `TORCH=PYTHON cargo test -p blockyard-dry-run values::`, with a Python that has PyTorch for CUDA.
//! Without `TORCH` the tests are skipped.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use super::common::done;

const LARGE: &str = "\
import resource, torch
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
a = torch.arange(20_000, device='cuda')
print((a[:7].unsqueeze(0) + a[:7].unsqueeze(1)).sum().item())
before = used()
places = torch.arange(100_000_000, device='cuda')
sums = a.unsqueeze(0) + a.unsqueeze(1)
copies = a.repeat(5_000)
order = torch.randperm(50_000_000, device='cuda')
print(used() - before)
print(torch.cuda.memory_allocated() >> 20)
";

#[test]
fn large_results_over_known_bytes_take_no_memory_of_the_host() {
    let Some((report, lines)) = done(LARGE, &[]) else { return };
    let numbers: Vec<u64> = lines.iter().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(numbers[0], 294);
    assert!(numbers[1] < 64, "{} MiB of the host for 5 GB of the device", numbers[1]);
    assert_eq!(numbers[2], 4_960);
    assert!(report.is_exact(), "{:?}", report.notes);
}

/// Masks of several MiB that the host wrote, then more work than a run does.
const MASKS: &str = "\
import torch
masks = torch.arange(4 * 640 * 960).reshape(4, 640, 960) % 3
small = masks.to(torch.uint8)
for _ in range(3):
    y, z = masks.cuda(), small.to('cuda', dtype=torch.long)
    assert y.min() >= 0 and y.max() < 3
    if not torch.equal(y, z) or (z > 2).any():
        raise ValueError
print(y.sum().item(), z[1].unique().tolist(), (y[3] == 1).sum().item())
for _ in range(400):
    y = y + 1
print(y.min().item())
";

#[test]
fn large_integers_of_the_host_are_known_until_the_work_of_a_run_is_done() {
    let Some((report, lines)) = done(MASKS, &[]) else { return };
    assert_eq!(lines, ["2457600 [0, 1, 2] 204800", "1"]);
    let sentences = report.sentences();
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert!(sentences[0].contains("program.py:12: "), "{sentences:?}");
}

/// Links in a matrix of 28 MiB that the host wrote, beside parameters and more numbers than are kept.
const MATRIX: &str = "\
import resource, torch
links = torch.zeros(2708, 2708)
links[torch.arange(2708), torch.arange(2708) // 2] = 0.5
links = links.cuda()
print(links.nonzero().shape, (links > 0).sum().item(), links.max().item(), links.clone().any().item())
for _ in range(80):
    count = len(links.nonzero())
links[0, 5] = 1
print(count, len(links.nonzero()))
layers = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096, bias=False) for _ in range(6)])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
layers.cuda()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10) - before)
numbers = torch.ones(1 << 24)
for _ in range(20):
    numbers.cuda()
print(numbers.cuda().max().item(), links.cuda().min().item())
";

#[test]
fn large_numbers_of_the_host_are_known_until_a_run_has_kept_many() {
    let Some((report, lines)) = done(MATRIX, &[]) else { return };
    assert_eq!(lines[0], "torch.Size([2708, 2]) 2708 0.5 True");
    assert_eq!(lines[1], "2708 2709", "a search is made again where a number changed");
    assert!(
        lines[2].parse::<u64>().is_ok_and(|used| used < 64),
        "{} MiB of the host for parameters",
        lines[2]
    );
    assert_eq!(lines[3], "1.0 0.0");
    let sentences = report.sentences();
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert!(sentences[0].contains("program.py:17: "), "{sentences:?}");
}

/// A sparse tensor of the host whose places a kernel counts.
const SPARSE: &str = "\
import torch
links = torch.tensor([[0, 1, 2, 4], [1, 2, 0, 4]])
a = torch.sparse_coo_tensor(links, torch.rand(4), (5, 5)).cuda()
print(a.coalesce()._nnz(), (a @ torch.rand(5, 3, device='cuda')).shape)
";

#[test]
fn places_of_a_sparse_tensor_are_assumed_to_be_different() {
    let Some((report, lines)) = done(SPARSE, &[]) else { return };
    assert_eq!(lines.last().map(String::as_str), Some("4 torch.Size([5, 3])"), "a warning may come first");
    let sentences = report.sentences();
    assert!(sentences.iter().any(|line| line.ends_with("assumed to be 4")), "{sentences:?}");
}

/// Arguments that are freed when the operator ends, and arguments that the operator writes.
const ARGUMENTS: &str = "\
import torch
a = torch.arange(6, device='cuda')
print(torch.ops.aten.add.Tensor(a, 2).tolist())
print(a[torch.tensor([5, 0])].tolist())
torch.ops.aten.roll.out(a, [1], [0], out=a)
print(a.tolist())
torch.cumsum(a, 0, out=a)
print(a.tolist())
a.mul_(a)
print(a.tolist())
";

#[test]
fn what_an_operator_reads_is_what_was_there_when_it_started() {
    let Some((report, lines)) = done(ARGUMENTS, &[]) else { return };
    assert_eq!(
        lines,
        [
            "[2, 3, 4, 5, 6, 7]",
            "[5, 0]",
            "[5, 0, 1, 2, 3, 4]",
            "[5, 5, 6, 8, 11, 15]",
            "[25, 25, 36, 64, 121, 225]",
        ]
    );
    assert!(report.is_exact(), "{:?}", report.notes);
}

/// Numbers that PyTorch makes tensors of, for operators that take a number and for operators that take a
/// tensor alone.
const NUMBERS: &str = "\
import torch
a = torch.arange(6, device='cuda')
print((a * 2).tolist(), (a * 0.5).tolist())
a[1:] = 3
print(a.tolist(), torch.equal(a, a.clone()))
a[a > 2] = 7
print(torch.where(a > 3, a, torch.tensor(1)).tolist(), torch.where(a > 3, 1.5, a).tolist())
print(torch.eq(a, torch.tensor(7)).sum().item(), torch.pow(2, a).tolist())
";

#[test]
fn numbers_are_arguments_in_place_of_tensors() {
    let Some((report, lines)) = done(NUMBERS, &[]) else { return };
    assert_eq!(
        lines,
        [
            "[0, 2, 4, 6, 8, 10] [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]",
            "[0, 3, 3, 3, 3, 3] True",
            "[1, 7, 7, 7, 7, 7] [0.0, 1.5, 1.5, 1.5, 1.5, 1.5]",
            "5 [1, 128, 128, 128, 128, 128]",
        ]
    );
    assert!(report.is_exact(), "{:?}", report.notes);
}

/// Each line reads by another way.
const ASSUMED: &str = "\
import torch
x = torch.empty(8, device='cuda')
flags = torch.isnan(x)
print(flags.any().item())
print(bool(flags.any()))
print(int(flags.sum()))
print(float(flags.sum() * 2.0))
print(x.sum().item())
print(flags.nonzero().shape)
print(flags.tolist())
print(torch.arange(3, device='cuda').sum().item())
";

#[test]
fn a_person_names_values_by_the_line_that_reads_them() {
    let given: Vec<String> = ["4=true", "5=True", "6=3", "7=2.5", "8=0.25", "9=2", "11=7"]
        .iter()
        .map(|value| format!("program.py:{value}"))
        .collect();
    let Some((_, lines)) = done(ASSUMED, &[]) else { return };
    let without = ["False", "False", "0", "0.0", "1.0", "torch.Size([1, 1])"];
    let flags = "[False, False, False, False, False, False, False, False]";
    assert_eq!(lines[..6], without);
    assert_eq!(lines[6..], [flags, "3"]);
    let Some((report, lines)) = done(ASSUMED, &[("STANDIN_ASSUME", &given.join("\n"))]) else {
        return;
    };
    assert_eq!(lines[..6], ["True", "True", "3", "2.5", "0.25", "torch.Size([2, 1])"]);
    // Many values have no name, and what is exact is not assumed.
    assert_eq!(lines[6..], [flags, "3"]);
    assert!(!report.is_exact());
}

/// The end of a search by beams and the length of its sequences, as `generate` of transformers computes them,
/// and the same elsewhere.
const BEAMS: &str = "\
import torch
def _beam_search_has_unfinished_sequences(better, ended, stops):
    return torch.any(better) & ~(torch.all(ended) & False) & ~torch.all(stops)
def elsewhere(better, ended, stops):
    return torch.any(better) & ~(torch.all(ended) & False) & ~torch.all(stops)
better = torch.empty(4, device='cuda') > 0
for goes_on in (_beam_search_has_unfinished_sequences, elsewhere):
    print([bool(goes_on(better, better, torch.full((4,), end, device='cuda'))) for end in (False, True)])
def _beam_search(beams):
    return (beams + 1).bool().sum(dim=1).max()
def other(beams):
    return (beams + 1).bool().sum(dim=1).max()
beams = torch.empty(4, 24, dtype=torch.int32, device='cuda')
print(torch.arange(99)[: _beam_search(beams)].shape, torch.arange(99)[: other(beams)].shape)
";

#[test]
fn a_search_by_beams_goes_on_until_its_number_of_tokens() {
    let Some((report, lines)) = done(BEAMS, &[]) else { return };
    assert_eq!(lines, ["[True, False]", "[False, False]", "torch.Size([24]) torch.Size([1])"]);
    assert!(!report.is_exact());
}

/// Tensors that are filled, compared with those of the host, and fills that end within a page or leave gaps.
const FILLED: &str = "\
import torch
kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool)
for kind in kinds:
    for value in (0, 1, 2.5, 0.1, 7):
        there = torch.empty(5, 3, dtype=kind, device='cuda').fill_(value)
        assert torch.equal(there.cpu(), torch.empty(5, 3, dtype=kind).fill_(value)), (kind, value)
pages = torch.full((4096 * 3,), 9, dtype=torch.uint8, device='cuda')
pages[5:9000].zero_()
print(pages.cpu().long().sum().item())
grid = torch.zeros(100, 100, device='cuda')
grid[3:5, 7:9] = 4.0
grid[:, 2].fill_(1)
print(grid.cpu().sum().item())
large = torch.ones(1 << 21, device='cuda')
large.zero_()
print(large.cpu().sum().item())
";

#[test]
fn a_filled_tensor_holds_what_it_was_filled_with() {
    let Some((report, lines)) = done(FILLED, &[]) else { return };
    assert_eq!(lines, ["29637".to_owned(), "116.0".to_owned(), "0.0".to_owned()]);
    assert!(report.is_exact(), "{:?}", report.notes);
}

/// A checkpoint stops the forward pass that it runs again by an exception of a hook in Python, in the middle
/// of an operator.
const CHECKPOINT: &str = "\
import torch
from torch.nn.functional import gelu, linear
from torch.utils.checkpoint import checkpoint
wide, narrow = (torch.ones(256, 64, device='cuda', requires_grad=True), torch.ones(64, 256, device='cuda', requires_grad=True))
def block(x):
    return linear(gelu(linear(x, wide)), narrow)
x = torch.empty(16, 64, device='cuda', requires_grad=True)
checkpoint(block, x, use_reentrant=False).sum().backward()
known = torch.ones(4, 64, device='cuda')
checkpoint(block, known, use_reentrant=False).sum().backward()
print(x.grad.shape, torch.cuda.memory_allocated())
";

#[test]
fn an_exception_that_ends_an_operator_reaches_the_program() {
    let Some((report, lines)) = done(CHECKPOINT, &[]) else { return };
    assert!(lines[0].starts_with("torch.Size([16, 64]) "), "{lines:?}");
    assert!(report.is_exact(), "{:?}", report.notes);
}

/// Parameters on the host, large and small, by functions that PyTorch's modules call under several names.
const PARAMETERS: &str = "\
import resource, torch
from torch import nn
layers = [nn.Linear(8192, 8192, bias=False) for _ in range(4)] + [nn.MultiheadAttention(2048, 8), nn.Linear(4, 4)]
model = nn.Sequential(*layers)
print(bool((layers[-1].weight == 0).any()))
model.cuda()
print(torch.cuda.memory_allocated() >> 20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
";

#[test]
fn large_parameters_on_the_host_need_no_memory_without_their_initialization() {
    let Some((report, lines)) = done(PARAMETERS, &[("BLOCKYARD_DRY_RUN_SKIP_INIT", "1")]) else {
        return;
    };
    assert_eq!(lines[0], "False");
    let numbers: Vec<u64> = lines[1].split(' ').map(|number| number.parse().expect("a number")).collect();
    assert_eq!(numbers[0], 1_088);
    assert!(numbers[1] < 600, "{} MiB of the host", numbers[1]);
    assert!(!report.is_exact());
}

#[test]
fn a_block_whose_free_waits_for_another_stream_is_marked() {
    let source = "import torch\nx = torch.zeros(1024, device='cuda')\nx.record_stream(torch.cuda.Stream())\n";
    let Some((report, _)) = done(source, &[]) else { return };
    let sentences = report.sentences();
    assert!(sentences.iter().any(|sentence| sentence.contains("program.py:3: ")), "{sentences:?}");
}

/// Autograd hands gradients from stream to stream and records the second on them, without an operator.
const STREAMS: &str = "
import torch
side = torch.cuda.Stream()
weight = torch.ones(1024, 1024, device='cuda', requires_grad=True)
for step in range(2):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = (weight * 2).sin()
    torch.cuda.current_stream().wait_stream(side)
    (y * 3).sum().backward()
";

#[test]
fn gradients_that_go_from_stream_to_stream_are_marked() {
    let Some((report, _)) = done(STREAMS, &[]) else { return };
    let sentences = report.sentences();
    assert!(
        sentences.iter().any(|sentence| sentence.contains("another stream uses a tensor")),
        "{sentences:?}"
    );
}

#[test]
fn a_question_for_the_work_of_the_gpu_is_exact_after_a_wait() {
    let source = |wait: &str| {
        format!(
            "import torch\nevent = torch.cuda.Event()\nx = torch.zeros(4, device='cuda')\nevent.record()\n{wait}\nevent.query()\n"
        )
    };
    let Some((waited, _)) = done(&source("torch.cuda.synchronize()"), &[]) else { return };
    assert_eq!(waited.sentences(), Vec::<String>::new());
    let Some((asked, _)) = done(&source(""), &[]) else { return };
    let sentences = asked.sentences();
    assert!(
        sentences.iter().any(|sentence| sentence.contains("program.py:6: the program asks")),
        "{sentences:?}"
    );
}

#[test]
fn the_seed_of_a_recurrent_layers_dropout_is_known() {
    let source = "
import torch
layer = torch.nn.LSTM(16, 32, num_layers=2, dropout=0.2).cuda()
layer(torch.zeros(4, 8, 16, device='cuda'))
";
    let Some((report, _)) = done(source, &[]) else { return };
    let sentences = report.sentences();
    assert!(!sentences.iter().any(|sentence| sentence.contains("the program reads")), "{sentences:?}");
}

/// Prints how often Python's garbage collector began within the helper that computes values, and whether it
/// began at all.
const COLLECTED: &str = "
import gc, sys, torch
within, begun = 0, 0
def look(phase, info):
    global within, begun
    if phase == 'start':
        begun += 1
        frame = sys._getframe()
        while frame is not None:
            within += frame.f_code.co_name in ('begin', 'end', 'bound', 'compute')
            frame = frame.f_back
gc.callbacks.append(look)
x = torch.ones(8, device='cuda')
gc.set_threshold(1, 1, 1)
kept = []
for step in range(20):
    y = x + 1
    kept.append([y.sum(), [step]])
gc.set_threshold(700, 10, 10)
print(begun > 0, within)
";

#[test]
fn garbage_is_collected_when_the_program_makes_it() {
    let Some((_, lines)) = done(COLLECTED, &[]) else { return };
    assert_eq!(lines, ["True 0"]);
}

/// Checks of unknown values, in the program and in PyTorch; then checks of what is known.
const CHECKED: &str = include_str!("../checked.py");

#[test]
fn checks_of_unknown_values_pass_and_others_are_as_ever() {
    let Some((report, lines)) = done(CHECKED, &[]) else { return };
    assert_eq!(lines, ["passed", "branches: False 2", "helper", "known", "shape", "close"]);
    let passed = report.notes.iter().filter(|note| note.text.starts_with("the check is assumed to pass"));
    let mut places: Vec<u32> = passed.map(|note| note.line).collect();
    places.sort_unstable();
    let checks = CHECKED.lines().zip(1..).filter(|(line, _)| line.contains("# passes")).map(|(_, line)| line);
    assert_eq!(places, checks.collect::<Vec<_>>());
}

#[test]
fn a_person_may_say_that_a_check_fails() {
    let source = "import torch\nx = torch.empty(8, device='cuda').sin()\ntry:\n    assert (x > 0).all()\n\
                  except AssertionError:\n    print('failed')\n";
    let given = [("STANDIN_ASSUME", "program.py:4=false")];
    let Some((_, lines)) = done(source, &given) else { return };
    assert_eq!(lines, ["failed"]);
}
