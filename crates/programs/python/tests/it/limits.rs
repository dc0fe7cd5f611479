//! Programs that do not end, or take ever more: each ends with a sentence that names the limit.

use std::time::Duration;

use blockyard_python::{Output, ProgramOutcome, ProgramSettings, ProgramSource, RunError};
use blockyard_record::Bytes;

fn try_run(source: &str, settings: &ProgramSettings) -> Result<ProgramOutcome, RunError> {
    let program = ProgramSource { file: "x.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
    blockyard_python::run(&program, settings, Output::Hidden)
}

fn run(source: &str, settings: &ProgramSettings) -> ProgramOutcome {
    try_run(source, settings).expect("the program runs")
}

fn stopped(source: &str, settings: &ProgramSettings) -> String {
    let finished = run(source, settings);
    assert_eq!(finished.status, 1);
    finished.traceback.expect("it ends with a sentence")
}

#[test]
fn a_program_may_ask_for_so_many_allocations_and_frees() {
    let source = "import torch\nwhile True:\n    x = torch.empty(4, device='cuda')\n";
    let settings = ProgramSettings { max_requests: 1000, ..ProgramSettings::default() };
    let text = stopped(source, &settings);
    assert!(
        text.starts_with("blockyard: the program was stopped at line 3: it asked for 1,000 allocations and frees of GPU memory"),
        "{text}"
    );
    // What it did until then is there.
    let settings = ProgramSettings { max_requests: 1000, is_recorded: true, ..ProgramSettings::default() };
    let devices = run(source, &settings).devices;
    let recording = devices.first().and_then(|device| device.recording.as_ref()).expect("it was recorded");
    assert!((999..1002).contains(&recording.step_count()), "{}", recording.step_count());
}

#[test]
fn a_program_may_call_so_many_operators() {
    let settings = ProgramSettings { max_operators: 1234, ..ProgramSettings::default() };
    let text = stopped("import torch\nx = torch.zeros(1)\nwhile True:\n    x = x + 1\n", &settings);
    assert!(text.contains("at line 4: it called 1,234 operators, as many as one run may"), "{text}");
}

#[test]
fn a_program_that_takes_ever_more_memory_of_the_computer_is_stopped() {
    let settings = ProgramSettings { host_memory: Some(Bytes::mib(512)), ..ProgramSettings::default() };
    let text = stopped("xs = []\nwhile True:\n    xs.append(bytearray(1 << 20))\n", &settings);
    assert!(text.contains("its own data takes more than 0.5 GiB of this computer's memory"), "{text}");
    let text = stopped("x = bytearray(1 << 40)\n", &settings);
    assert!(text.contains("its own data takes more than 0.5 GiB of this computer's memory"), "{text}");
}

#[test]
fn a_generator_without_an_end_is_stopped_when_the_time_is_over() {
    let settings =
        ProgramSettings { time_limit: Some(Duration::from_millis(100)), ..ProgramSettings::default() };
    let text = stopped("def g():\n    while True:\n        yield 1\nsum(g())\n", &settings);
    assert!(text.contains("was stopped after 0 s, as long as one run may take"), "{text}");
}

#[test]
fn one_call_that_does_not_end_is_ended_when_the_time_is_over() {
    let settings =
        ProgramSettings { time_limit: Some(Duration::from_millis(100)), ..ProgramSettings::default() };
    let error =
        try_run("import itertools\nsum(itertools.count())\n", &settings).expect_err("it does not end");
    assert!(matches!(error, RunError::Time(_)), "{error}");
}

#[test]
fn a_process_that_dies_is_an_error() {
    let error = try_run("import os\nos.kill(os.getpid(), 9)\n", &ProgramSettings::default());
    let error = error.expect_err("it has no outcome");
    assert!(matches!(error, RunError::Ended(_)), "{error}");
}
