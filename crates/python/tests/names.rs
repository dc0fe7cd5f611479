//! The names of PyTorch that programs use most: which are there, and which are refused in a sentence.
//!
//! `names.txt` was counted over 426 files of eight public repositories (examples and tutorials): how many files name each, first the 300
//! names of modules, then the methods of tensors. A name that fails otherwise, as one that nobody thought of, is missing.

#![allow(clippy::expect_used, reason = "helpers of tests")]

use std::sync::{Arc, Mutex};

use blockyard_python::{Program, ProgramSettings, run_on_thread};

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

#[test]
fn the_most_used_names_are_there_or_refused_in_a_sentence() {
    let names: Vec<&str> =
        include_str!("names.txt").lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&printed);
    let source = format!("NAMES = {:?}\n{LOOK}", names.join(" "));
    let program = Program { file: "x.py".to_owned(), source, arguments: Vec::new() };
    let finished = run_on_thread(program, ProgramSettings::default(), move |text: &str| {
        sink.lock().expect("no printing failed").push_str(text);
    })
    .expect("the interpreter answers");
    assert_eq!(finished.traceback, None);
    let printed = printed.lock().expect("no printing failed").clone();
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
