//! Programs that do not end, or take ever more: each ends with a sentence that names the limit.

#![allow(clippy::expect_used, reason = "helpers of tests")]

use std::io::ErrorKind;
use std::time::Duration;

use blockyard_python::{HostMemoryLimit, ProgramOutcome, ProgramSettings, ProgramSource, run_on_thread};
use blockyard_record::Bytes;

fn run(source: &str, settings: ProgramSettings) -> ProgramOutcome {
    let program = ProgramSource { file: "x.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
    run_on_thread(program, settings, |_: &str| {}).expect("the interpreter answers")
}

fn stopped(source: &str, settings: ProgramSettings) -> String {
    let finished = run(source, settings);
    assert_eq!(finished.status, 1);
    finished.traceback.expect("it ends with a sentence")
}

#[test]
fn a_program_may_ask_for_so_many_allocations_and_frees() {
    let source = "import torch\nwhile True:\n    x = torch.empty(4, device='cuda')\n";
    let settings = ProgramSettings { max_requests: 1000, ..ProgramSettings::default() };
    let text = stopped(source, settings);
    assert!(
        text.starts_with("blockyard: the program was stopped at line 3: it asked for 1,000 allocations and frees of GPU memory"),
        "{text}"
    );
    // What it did until then is there.
    let settings = ProgramSettings { max_requests: 1000, is_recorded: true, ..ProgramSettings::default() };
    let devices = run(source, settings).devices;
    let recording = devices.first().and_then(|device| device.recording.as_ref()).expect("it was recorded");
    assert!((999..1002).contains(&recording.step_count()), "{}", recording.step_count());
}

#[test]
fn a_program_may_call_so_many_operators() {
    let settings = ProgramSettings { max_operators: 1234, ..ProgramSettings::default() };
    let text = stopped("import torch\nx = torch.zeros(1)\nwhile True:\n    x = x + 1\n", settings);
    assert!(text.contains("at line 4: it called 1,234 operators, as many as one run may"), "{text}");
}

#[test]
fn a_program_that_takes_ever_more_memory_of_the_computer_is_stopped() {
    let used = || 5 << 30;
    let settings = ProgramSettings {
        process_memory: Some(HostMemoryLimit { used, most: Bytes::gib(4) }),
        ..ProgramSettings::default()
    };
    let text = stopped("xs = []\nwhile True:\n    xs = [len(xs)]\n", settings);
    assert!(text.contains("its own data takes more than 4 GiB of this computer's memory"), "{text}");
}

#[test]
fn calls_without_end_and_endless_numbers_are_errors_that_can_be_caught() {
    let source = "import sys\n\
        def f(n):\n    return f(n + 1)\n\
        class A:\n    def __getattr__(self, name):\n        return getattr(self, name + 'x')\n\
        def g():\n    yield from g()\n\
        def xs():\n    x = []\n    x.append(x)\n    return repr(x)\n\
        for case in (lambda: f(0), lambda: A().y, lambda: list(g()), lambda: 10**10**8, lambda: 1 << 10**12, lambda: 2**2**2**2**2**2):\n    \
        try:\n        case()\n    except (RecursionError, MemoryError) as e:\n        print(type(e).__name__)\n\
        assert 2**100 == 1 << 100 and (-2)**3 == -8 and pow(3, 10**30, 7) >= 0 and 2**-1 == 0.5 and 1**10**30 == 1 and 0 << 10**30 == 0\n\
        assert xs() == '[[...]]'\n";
    let finished = run(source, ProgramSettings::default());
    assert_eq!((finished.status, finished.traceback), (0, None));
}

#[test]
fn a_generator_without_an_end_is_stopped_when_the_time_is_over() {
    let settings =
        ProgramSettings { time_limit: Some(Duration::from_millis(100)), ..ProgramSettings::default() };
    let text = stopped("def g():\n    while True:\n        yield 1\nsum(g())\n", settings);
    assert!(text.contains("was stopped after 0 s, as long as one run may take"), "{text}");
}

#[test]
fn a_line_that_repeats_in_a_traceback_is_written_three_times() {
    let finished = run("def f(): f()\nf()\n", ProgramSettings::default());
    let text = finished.traceback.expect("it is too deep");
    assert!(
        text.contains("    ~^^\n  [Previous line repeated ") && text.contains(" more times]\nRecursionError"),
        "{text}"
    );
    assert_eq!(text.matches("line 1, in f").count(), 3);
}

#[test]
fn one_call_that_does_not_end_is_given_up_when_the_time_is_over() {
    let settings =
        ProgramSettings { time_limit: Some(Duration::from_millis(100)), ..ProgramSettings::default() };
    let program = ProgramSource {
        file: "x.py".to_owned(),
        source: "import itertools\nsum(itertools.count())\n".to_owned(),
        arguments: Vec::new(),
    };
    let error = run_on_thread(program, settings, |_: &str| {}).expect_err("it does not end");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("one call of the program does not end"), "{error}");
}
