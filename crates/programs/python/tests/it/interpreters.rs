//! A program runs under each Python that is installed, from 3.10 on: the extension is one file for all of them.

use std::collections::BTreeMap;

use blockyard_python::{Interpreter, Output, ProgramSettings, ProgramSource, RunError};

/// What an H200 printed for the program.
const PROGRAM: (&str, &str) = (
    include_str!("../../../../../examples/programs/language_model.py"),
    include_str!("../../../../../examples/programs/language_model.txt"),
);

/// An object that holds itself and a tensor is freed by the garbage collector; a number of the GPU stays unknown.
const CYCLE: &str = "\
import gc, torch
class Cycle:
    pass
kept = Cycle()
kept.itself, kept.tensor = kept, torch.empty(1 << 20, device='cuda')
total = kept.tensor.sum()
del kept
before = torch.cuda.memory_allocated()
gc.collect()
print(before - torch.cuda.memory_allocated(), '%.3f %s' % (total, float(total)), f'{total.item():.2f}')
";

/// Each installed Python, by its version.
fn installed() -> BTreeMap<String, Interpreter> {
    let names = (10..=14).map(|minor| format!("python3.{minor}")).chain(["python3".to_owned()]);
    names
        .chain(blockyard_python::pyenv_commands())
        .filter_map(|name| Interpreter::find(Some(&name)).ok())
        .map(|python| (python.version.clone(), python))
        .collect()
}

#[test]
fn a_program_does_the_same_under_each_python() {
    let all = installed();
    assert!(!all.is_empty(), "there is no Python");
    for (version, python) in all {
        let run = |source: &str| {
            let settings =
                ProgramSettings { python: Some(python.command.clone()), ..ProgramSettings::default() };
            let program =
                ProgramSource { file: "x.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
            let mut printed = String::new();
            let mut take = |text: &str| printed.push_str(text);
            let outcome = blockyard_python::run(&program, &settings, Output::Taken(&mut take));
            assert_eq!(outcome.expect("the program runs").traceback, None, "{version}");
            printed
        };
        assert_eq!(run(PROGRAM.0), PROGRAM.1, "{version}");
        assert_eq!(run(CYCLE), "4194304 ? ? ?\n", "{version}");
        println!("Python {version}");
    }
}

#[test]
fn a_python_that_is_missing_is_an_error_that_says_what_to_do() {
    let error = Interpreter::find(Some("no-such-python")).expect_err("there is none");
    assert!(matches!(error, RunError::NoPython(_)), "{error}");
    assert!(error.to_string().contains("--python"), "{error}");
}
