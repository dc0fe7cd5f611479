//! The names of PyTorch that programs use most: which are there, and which are refused in a sentence.
//!
//! `names.txt` was counted over 426 files of eight public repositories (examples and tutorials): how many
//! files name each, first the 300 names of modules, then the methods of tensors. A name that fails otherwise,
//! as one that nobody thought of, is missing.

/// Tells for each of `NAMES` whether it is there.
const LOOK: &str = r#"
import sys, torch
from _refused import Missing

def look(name):
    parts, value = name.split("."), torch
    if name.startswith("torch.Tensor."):
        value, parts = torch.zeros(2, 2), parts[1:]
    for end, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except NotImplementedError:
            return "refused"
        except RuntimeError:
            return "there"
        except AttributeError as error:
            if "not modeled" in str(error):
                return "refused"
            try:
                __import__(".".join(parts[:end]))
                value = sys.modules[".".join(parts[:end])]
            except ImportError:
                return "missing"
    return "refused" if isinstance(value, Missing) else "there"

for name in NAMES.split():
    print(look(name), name)
"#;

/// Counts the names of [`scripts/public_names.py`](../../../scripts/public_names.py) that are there and that
/// are refused; prints the others.
const LOOK_PUBLIC: &str = r#"
import torch
from torch._public import NAMES
from _refused import Missing

def look(value, name):
    try:
        return "refused" if isinstance(getattr(value, name), Missing) else "there"
    except RuntimeError:
        return "there"
    except (AttributeError, NotImplementedError) as error:
        return "refused" if "not modeled" in str(error) else "missing"

OBJECTS = {"Tensor": lambda: torch.zeros(2, 2), "Module": lambda: torch.nn.Linear(1, 1),
           "Optimizer": lambda: torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)}

def found_or_none(value, name):
    return getattr(value, name) if look(value, name) == "there" else None

counts, refused = {"there": 0, "refused": 0}, {}
for path, names in NAMES.items():
    parts = path.split(".")[1:]
    value = torch
    try:
        if parts and parts[-1] not in OBJECTS:
            __import__(path)
    except ImportError:
        pass
    for part in parts:
        if value is not None:
            value = OBJECTS[part]() if part in OBJECTS else found_or_none(value, part)
    for name in names.split():
        # Of a module that is refused every name is.
        found = look(value, name) if value is not None else "refused"
        if name in ("T_destination", "OptimizerPostHook", "OptimizerPreHook"):
            continue  # Names for checkers of types.
        if found == "missing":
            print("missing", path, name)
        else:
            counts[found] += 1
            if found == "refused":
                refused.setdefault(path, []).append(name)
print(counts["there"], "there,", counts["refused"], "refused")
for path, names in refused.items():
    print("refused", path + ":", *names)

try:
    torch.cuda.memory_alocated()
except AttributeError as error:
    print(error)
from torch.nn import FractionalMaxPool2d
try:
    FractionalMaxPool2d(4)
except NotImplementedError as error:
    print(error)
try:
    from torch.nn import Lineal
except ImportError as error:
    print(str(error)[:26])
"#;

/// What `docs/programs.md` says: how many public names there are, how many of them are here, and how many are
/// refused.
fn documented() -> Vec<usize> {
    let text = include_str!("../../../../../docs/programs.md");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, rest) = text.split_once("Of the ").expect("the document counts names");
    let (sentence, _) = rest.split_once("are refused").expect("the document counts names that are refused");
    let is_number = |word: &&str| word.chars().all(|letter| letter.is_ascii_digit() || letter == ',');
    sentence
        .split_whitespace()
        .filter(is_number)
        .filter_map(|word| word.replace(',', "").parse().ok())
        .collect()
}

#[test]
fn every_public_name_of_pytorch_is_there_or_refused_and_other_names_are_errors() {
    let (printed, finished) = crate::support::run(LOOK_PUBLIC);
    assert_eq!(finished.traceback, None);
    let missing: Vec<&str> = printed.lines().filter(|line| line.starts_with("missing")).collect();
    assert_eq!(missing, Vec::<&str>::new());
    let lines: Vec<&str> = printed.lines().collect();
    let counts = lines.first().copied().unwrap_or_default();
    println!("{counts}");
    let counts: Vec<usize> = counts.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(
        documented(),
        [&[counts.iter().sum()], counts.as_slice()].concat(),
        "docs/programs.md counts names: how many, how many are there, how many are refused"
    );
    lines.iter().filter(|line| line.starts_with("refused")).for_each(|line| println!("{line}"));
    assert!(printed.contains("module 'torch.cuda' has no attribute 'memory_alocated'"), "{printed}");
    assert!(printed.contains("torch.nn.FractionalMaxPool2d is not modeled here"), "{printed}");
    assert!(printed.contains("cannot import name 'Lineal"), "{printed}");
}

const AVERAGES: &str = r#"
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, SWALR, get_ema_multi_avg_fn, update_bn
model = nn.Sequential(nn.Linear(256, 256), nn.BatchNorm1d(256)).cuda()
before = torch.cuda.memory_allocated()
average = AveragedModel(model)
print(torch.cuda.memory_allocated() - before == before)
ema = AveragedModel(model, device="cuda", multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
torch.cuda.reset_peak_memory_stats()
held = torch.cuda.memory_allocated()
for _ in range(3):
    average.update_parameters(model)
    ema.update_parameters(model)
print(torch.cuda.memory_allocated() - held, torch.cuda.max_memory_allocated() - held, average.n_averaged.item())
update_bn([torch.randn(8, 256, device="cuda")], average)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = SWALR(optimizer, swa_lr=0.5, anneal_epochs=3, anneal_strategy="linear")
rates = [optimizer.param_groups[0]["lr"]]
for _ in range(4):
    optimizer.step()
    schedule.step()
    rates.append(round(optimizer.param_groups[0]["lr"], 6))
print(rates)
x = torch.randn(2, 3, 8, 8, device="cuda")
print(nn.CircularPad2d(2)(x).shape, nn.LPPool2d(2, 2)(x).shape, nn.ZeroPad1d(1)(x[0]).shape, nn.ReplicationPad3d(1)(x[None]).shape)
"#;

#[test]
fn averages_of_weights_paddings_and_pools_are_there() {
    let (printed, finished) = crate::support::run(AVERAGES);
    assert_eq!(finished.traceback, None);
    let lines: Vec<&str> = printed.lines().collect();
    // The rates are what PyTorch 2.11 prints for this schedule.
    assert_eq!(lines.first(), Some(&"True"));
    assert!(lines.get(1).is_some_and(|line| line.starts_with("0 ") && line.ends_with(" 3")), "{printed}");
    assert_eq!(lines.get(2), Some(&RATES));
    assert_eq!(
        lines.get(3),
        Some(
            &"torch.Size([2, 3, 12, 12]) torch.Size([2, 3, 4, 4]) torch.Size([3, 8, 10]) torch.Size([1, 2, 5, 10, 10])"
        )
    );
}

const RATES: &str = "[0.1, 0.233333, 0.366667, 0.5, 0.5]";

#[test]
fn the_most_used_names_are_there_or_refused_in_a_sentence() {
    let names: Vec<&str> =
        include_str!("../names.txt").lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let source = format!("NAMES = {:?}\n{LOOK}", names.join(" "));
    let (printed, finished) = crate::support::run(&source);
    assert_eq!(finished.traceback, None);
    let of_kind = |kind: &str| -> Vec<&str> {
        printed.lines().filter_map(|line| line.strip_prefix(kind)).map(str::trim).collect()
    };
    let (there, refused, missing) = (of_kind("there "), of_kind("refused "), of_kind("missing "));
    println!(
        "{} names: {} are there, {} are refused: {}",
        names.len(),
        there.len(),
        refused.len(),
        refused.join(" ")
    );
    assert_eq!(missing, Vec::<&str>::new());
    assert_eq!(there.len() + refused.len(), names.len());
    assert!(there.len() >= 401, "fewer than before: {}", there.len());
}
