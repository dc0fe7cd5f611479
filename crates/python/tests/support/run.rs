//! Runs a program and gives what it printed.

use std::sync::{Arc, Mutex};

use blockyard_python::{ProgramOutcome, ProgramSettings, ProgramSource, run_on_thread};

/// Runs `source` as the file x.py.
pub(crate) fn run(source: &str) -> (String, ProgramOutcome) {
    run_with(source, "x.py", ProgramSettings::default())
}

/// Runs `source` as `file`.
pub(crate) fn run_with(source: &str, file: &str, settings: ProgramSettings) -> (String, ProgramOutcome) {
    let program = ProgramSource { file: file.to_owned(), source: source.to_owned(), arguments: Vec::new() };
    run_program(program, settings)
}

/// The same for a program with arguments.
#[allow(dead_code, reason = "not all tests give arguments")]
pub(crate) fn run_program(program: ProgramSource, settings: ProgramSettings) -> (String, ProgramOutcome) {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&printed);
    let finished = run_on_thread(program, settings, move |text: &str| {
        sink.lock().expect("no printing failed").push_str(text);
    })
    .expect("the interpreter answers");
    let printed = printed.lock().expect("no printing failed").clone();
    (printed, finished)
}
