//! Runs a program and gives what it printed.

use blockyard_python::{
    Interpreter, Output, ProgramOutcome, ProgramSettings, ProgramSource, run as run_in_child,
};

/// Runs `source` as the file x.py.
pub(crate) fn run(source: &str) -> (String, ProgramOutcome) {
    run_with(source, "x.py", ProgramSettings::default())
}

/// Runs `source` as `file`.
pub(crate) fn run_with(source: &str, file: &str, settings: ProgramSettings) -> (String, ProgramOutcome) {
    let program = ProgramSource { file: file.to_owned(), source: source.to_owned(), arguments: Vec::new() };
    run_program(&program, settings)
}

/// The same for a program with arguments.
#[allow(dead_code, reason = "an example gives no arguments")]
pub(crate) fn run_program(program: &ProgramSource, settings: ProgramSettings) -> (String, ProgramOutcome) {
    let settings = ProgramSettings {
        python: settings.python.or_else(|| Interpreter::of_recordings().map(|python| python.command)),
        has_rules_of_recordings: true,
        ..settings
    };
    let mut printed = String::new();
    let mut take = |text: &str| printed.push_str(text);
    let outcome = run_in_child(program, &settings, Output::Taken(&mut take)).expect("the program runs");
    (printed, outcome)
}

/// Whether a Python is here under which programs do what they did in the recordings; says so if not.
#[allow(dead_code, clippy::print_stdout, reason = "not all tests compare with recordings; a person reads it")]
pub(crate) fn has_python_of_recordings() -> bool {
    let found = Interpreter::of_recordings().is_some();
    assert!(found || std::env::var_os("REQUIRE_PYTHON").is_none(), "there is no Python 3.12 or 3.13");
    if !found {
        println!("skipped: the recordings need Python 3.12 or 3.13");
    }
    found
}
