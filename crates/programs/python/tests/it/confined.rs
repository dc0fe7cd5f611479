//! Programs of others, in Python: each attempt is refused in words, and the run goes on to its end.
use std::time::Duration;

use blockyard_python::{Output, ProgramOutcome, ProgramSettings, ProgramSource, RunError};
use blockyard_record::Bytes;

/// Runs a program confined, with half a GiB and five seconds; `None` where the kernel cannot confine it.
fn run(source: &str) -> Option<(String, ProgramOutcome)> {
    let settings = ProgramSettings {
        is_confined: true,
        is_recorded: true,
        host_memory: Some(Bytes::mib(512)),
        time_limit: Some(Duration::from_secs(5)),
        ..ProgramSettings::default()
    };
    let program = ProgramSource { file: "x.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let mut printed = String::new();
    let mut take = |text: &str| printed.push_str(text);
    match blockyard_python::run(&program, &settings, Output::Taken(&mut take)) {
        Ok(outcome) => Some((printed, outcome)),
        Err(RunError::NotConfined(reason)) => {
            // The kernel is too old, or the system is another one.
            assert!(reason.contains("page for teachers"), "{reason}");
            assert!(std::env::var_os("REQUIRE_PYTHON").is_none(), "{reason}");
            println!("skipped: {reason}");
            None
        }
        Err(error) => unreachable!("{error}"),
    }
}

const ATTACKS: &str = "\
import ctypes, os, shutil, signal, socket, subprocess, tempfile, threading, torch
def attempt(name, action):
    try:
        action()
        print(name, 'was not refused')
    except (OSError, MemoryError) as error:
        print(name, type(error).__name__)
SECRET = os.path.expanduser('~')
attempt('list the home', lambda: os.listdir(SECRET))
attempt('read outside', lambda: open('/etc/passwd').read())
attempt('read the parent', lambda: open(f'/proc/{os.getppid()}/mem', 'rb'))
attempt('write outside', lambda: open('/tmp/blockyard-confined-test', 'w'))
attempt('write into the library', lambda: open(torch.__file__, 'a'))
attempt('remove the library', lambda: os.unlink(torch.__file__))
attempt('temporary file', lambda: tempfile.TemporaryFile())
attempt('socket', lambda: socket.socket())
attempt('local socket', lambda: socket.socket(socket.AF_UNIX))
attempt('fork', os.fork)
attempt('command', lambda: subprocess.run(['true']))
attempt('kill the parent', lambda: os.kill(os.getppid(), signal.SIGKILL))
attempt('fill the memory', lambda: bytearray(1 << 40))
def trace():
    if ctypes.CDLL(None, use_errno=True).ptrace(16, os.getppid(), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'ptrace')
attempt('trace the parent', trace)
x = torch.ones(1 << 20, device='cuda')
print(torch.cuda.memory_allocated())
";

#[test]
fn attempts_to_leave_are_refused_and_the_program_goes_on() {
    let Some((printed, outcome)) = run(ATTACKS) else { return };
    assert_eq!((outcome.status, outcome.traceback), (0, None), "{printed}");
    assert!(!printed.contains("was not refused"), "{printed}");
    assert_eq!(printed.lines().count(), 15, "{printed}");
    assert!(printed.contains("fill the memory MemoryError\n"), "{printed}");
    assert!(printed.ends_with("4194304\n"), "{printed}");
    let device = outcome.devices.first().expect("a device");
    assert!(device.recording.is_some(), "the recording is there");
}

#[test]
fn what_grows_without_end_is_stopped_with_its_outcome() {
    let Some((_, outcome)) = run(
        "import torch\nx = torch.ones(4, device='cuda')\nkept = []\nwhile True:\n    kept.append(bytearray(1 << 20))\n",
    ) else {
        return;
    };
    let text = outcome.traceback.expect("it is stopped");
    assert!(text.contains("takes more than 0.5 GiB of this computer's memory"), "{text}");
    let Some((_, outcome)) = run("while True:\n    pass\n") else { return };
    let text = outcome.traceback.expect("it is stopped");
    assert!(text.contains("was stopped after 5 s"), "{text}");
    let Some((_, outcome)) = run("import os\nwhile True:\n    os.fork()\n") else { return };
    let text = outcome.traceback.expect("no process is started");
    assert!(text.contains("PermissionError"), "{text}");
}

#[test]
fn the_environment_holds_nothing_of_the_callers() {
    let Some((printed, outcome)) =
        run("import os\nprint(sorted(name for name in os.environ if 'CARGO' in name or 'TOKEN' in name))\n")
    else {
        return;
    };
    assert_eq!((printed.as_str(), outcome.traceback), ("[]\n", None));
}
