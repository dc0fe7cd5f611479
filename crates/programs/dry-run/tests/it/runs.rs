//! Programs run over a package that stands for PyTorch: how a run ends, and what its report says. No PyTorch
//! and no GPU is needed.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use blockyard_dry_run::{
    Library, LibraryFolder, PreloadedProcess, Program, Report, Torch, prepare_in, run, run_interruptible,
    run_until, write_library, write_runner,
};
use blockyard_gpus::GpuProfile;
use blockyard_record::Bytes;
use serde_json::Value;
use tempfile::TempDir;

/// What a test asks for beside a program that is run.
#[derive(Default)]
struct RunOptions {
    steps: Option<u32>,
    totals: Vec<u64>,
    is_with_snapshot: bool,
    fraction: Option<f64>,
    ends_at_oom: bool,
    /// A release of PyTorch that no recording is of.
    is_new_release: bool,
}

struct RunOutput {
    report: Report,
    output: String,
    snapshot: Option<String>,
}

fn has_python() -> bool {
    let mut command = Command::new("python3");
    let is_there =
        command.arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_there {
        assert!(env::var_os("REQUIRE_PYTHON").is_none(), "REQUIRE_PYTHON, but there is no python3");
        eprintln!("skipped: there is no python3");
    }
    is_there
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("the folder is made")
}

/// A folder with the runner and without libraries.
fn runner_alone(folder: &Path) -> LibraryFolder {
    write_runner(folder).expect("the runner is written");
    LibraryFolder { folder: folder.to_owned(), preload: Vec::new() }
}

fn stub() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub/site-packages")
}

fn torch(folder: PathBuf) -> Torch {
    Torch {
        folder,
        version: "2.11.0+stub".to_owned(),
        cuda: 13_000,
        cudnn: None,
        python: "3.12.7".to_owned(),
    }
}

/// Runs a program with the runner alone; `None` where there is no Python.
fn done(source: &str, asked: &RunOptions) -> Option<RunOutput> {
    if !has_python() {
        return None;
    }
    let folder = folder();
    let prepared = runner_alone(folder.path());
    let file = folder.path().join("program.py");
    fs::write(&file, source).expect("the program is written");
    let in_folder = |name: &str| folder.path().join(name);
    let program = Program {
        arguments: vec!["one".to_owned()],
        snapshot: asked.is_with_snapshot.then(|| in_folder("snapshot")),
        iterations: asked.steps,
        totals: asked.totals.iter().map(|total| Bytes::new(*total)).collect(),
        lists_lines: true,
        fraction: asked.fraction,
        ends_at_oom: asked.ends_at_oom,
        environment: vec![
            ("PYTHONPATH".to_owned(), stub().display().to_string()),
            ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()),
        ],
        ..program(file, in_folder("output"))
    };
    let torch = torch(stub().join("torch"));
    let torch = if asked.is_new_release {
        Torch { version: "2.99.0+stub".to_owned(), python: "3.12.3".to_owned(), ..torch }
    } else {
        torch
    };
    let report = run(&program, &torch, &prepared).expect("it runs");
    let read = |name: &str| fs::read_to_string(in_folder(name));
    Some(RunOutput {
        report,
        output: read("output").expect("there is output"),
        snapshot: read("snapshot").ok(),
    })
}

fn json(report: &Report) -> Value {
    serde_json::to_value(report.to_answer(&[GpuProfile::H200])).expect("plain fields")
}

/// How a program ends in these ways, and what must hold of each: it took 5,000 bytes before.
fn ended(name: &str, how: &str) -> Option<RunOutput> {
    let source = format!("import os, sys, torch\ntorch.take(5000)\nprint('started')\n{how}\n");
    let done = done(&source, &RunOptions::default())?;
    assert!(!done.report.is_cut, "{name}: {:?}", done.report);
    assert_eq!(done.report.devices[0].peak_allocated.get(), 5000, "{name}");
    assert!(done.output.starts_with("started\n"), "{name}: {}", done.output);
    Some(done)
}

#[test]
fn every_end_of_a_program_has_its_status_and_its_report() {
    let cases = [
        ("end", "pass", 0, None),
        ("exit", "sys.exit(3)", 3, None),
        ("large", "sys.exit(200)", 200, None),
        ("text", "sys.exit('words')", 1, None),
        ("at-once", "os._exit(4)", 4, None),
        ("raise", "raise ValueError('bad')", 1, Some("ValueError")),
        ("memory", "torch.take(2 << 20)", 1, Some("OutOfMemoryError")),
        ("interrupt", "import signal; signal.raise_signal(signal.SIGINT)", 130, Some("KeyboardInterrupt")),
        ("abort", "os.abort()", 134, Some("SIGABRT")),
        ("segment", "import ctypes; ctypes.string_at(0)", 139, Some("SIGSEGV")),
        // Without Python's lock, in a thread that Python does not wait for, while the program computes.
        (
            "thread",
            "import ctypes, threading; threading.Thread(target=ctypes.CDLL(None).abort).start()\nwhile True: pass",
            134,
            Some("SIGABRT"),
        ),
    ];
    for (name, how, status, error) in cases {
        let Some(done) = ended(name, how) else { return };
        assert_eq!((done.report.status, done.report.error.as_deref()), (status, error), "{name}");
        let at = done.report.error_at.map(|at| at.line);
        assert_eq!(at, error.filter(|error| !error.starts_with("SIG")).map(|_| 4), "{name}");
        assert_eq!(done.output.contains("Traceback"), at.is_some(), "{name}: {}", done.output);
        assert!(!done.output.contains("blockyard_dry_run"), "{name}: {}", done.output);
    }
}

#[test]
fn a_process_that_is_killed_has_what_its_steps_said() {
    let source = "import os, torch\no = torch.optim.Optimizer()\ntorch.take(700)\no.step()\ntorch.take(9)\nos.kill(os.getpid(), 9)\n";
    let Some(done) = done(source, &RunOptions { steps: Some(5), ..RunOptions::default() }) else {
        return;
    };
    assert!(done.report.is_cut && !done.report.is_exact());
    assert_eq!((done.report.status, done.report.error.as_deref()), (137, Some("SIGKILL")));
    assert_eq!(done.report.devices[0].peak_allocated.get(), 700);
}

#[test]
fn threads_and_handlers_at_the_end_count() {
    let source = "import atexit, threading, time, torch\ntorch.take(10)\natexit.register(torch.take, 300)\n\
                  threading.Thread(target=lambda: (time.sleep(0.2), torch.take(5000))).start()\n";
    let Some(done) = done(source, &RunOptions::default()) else { return };
    assert_eq!(done.report.devices[0].peak_allocated.get(), 5310);
}

const STEPS: &str = "\
import sys, torch
print(sys.argv[1:], __name__)
o, other = torch.optim.Optimizer(), torch.optim.Optimizer()
for i in range(9):
    torch.take(1000 if i == 0 else 500)
    torch.take(2000)
    torch.give(2000 + 500 * (i > 0))
    if i == 1:
        torch.cuda.reset_peak_memory_stats()
    o.step()
    other.step()
    print(i, torch.cuda.max_memory_allocated())
";

#[test]
fn a_run_ends_after_its_steps_and_peaks_are_those_of_each_step() {
    let Some(done) = done(STEPS, &RunOptions { steps: Some(3), ..RunOptions::default() }) else {
        return;
    };
    // The program sees the peaks that it would have seen: those since its own reset.
    assert_eq!(done.output, "['one'] __main__\n0 3000\n1 1000\n");
    let peaks: Vec<(u32, u64, u64)> = done
        .report
        .iterations
        .iter()
        .map(|step| (step.number, step.devices[0].peak_allocated.get(), step.devices[0].allocated.get()))
        .collect();
    assert_eq!(peaks, [(1, 3000, 1000), (2, 3500, 1000), (3, 3500, 1000)]);
    assert_eq!(done.report.devices[0].peak_allocated.get(), 3500);
    // Segments stay, so that the reserved peaks of the last two differ.
    assert_eq!(done.report.is_steady(), Some(false));
    let rows: u64 = done.report.holders.iter().map(|row| row.bytes.get()).sum();
    assert_eq!(rows, 2500, "what the peak has beyond the end: the stub has no blocks");
    assert_eq!(json(&done.report)["steps"][1]["peak_allocated"], 3500);
}

#[test]
fn the_end_of_the_steps_is_no_error_even_in_other_clothes() {
    let source = "import torch\ntorch.take(1)\no = torch.optim.Optimizer()\ntry:\n    o.step()\n\
                  except BaseException as error:\n    raise RuntimeError('training failed') from error\n";
    let Some(done) = done(source, &RunOptions { steps: Some(1), ..RunOptions::default() }) else {
        return;
    };
    assert_eq!((done.report.status, done.report.error.as_deref(), done.output.as_str()), (0, None, ""));
}

/// As libraries do that work with several frameworks.
#[test]
fn steps_are_counted_if_a_library_asked_for_pytorch_before_it_was_loaded() {
    let source = format!(
        "import importlib.util as util\nassert util.find_spec('torch') and util.find_spec('torch')\n{STEPS}"
    );
    let Some(done) = done(&source, &RunOptions { steps: Some(2), ..RunOptions::default() }) else {
        return;
    };
    assert_eq!(done.report.iterations.len(), 2, "{}", done.output);
    assert!(done.report.remarks.is_empty());
}

#[test]
fn peaks_are_known_if_pytorch_is_loaded_unseen() {
    let source = "import sys\nsys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != '_Loaded']\nimport torch\ntorch.take(700)\n";
    let Some(done) = done(source, &RunOptions { steps: Some(2), ..RunOptions::default() }) else {
        return;
    };
    assert_eq!(done.report.devices[0].peak_allocated.get(), 700);
    assert!(
        done.report.remarks[0].contains("before the dry run could observe it"),
        "{:?}",
        done.report.remarks
    );
}

#[test]
fn a_program_without_steps_is_left_alone() {
    let Some(done) = done(STEPS, &RunOptions::default()) else { return };
    assert_eq!(done.output.lines().count(), 10);
    assert_eq!(done.report.lines.len(), 10);
    assert!(done.report.lines.iter().all(|line| line.why.is_none()) && done.report.is_exact());
    // The peak of the whole run, although the program forgot it.
    assert_eq!(done.report.devices[0].peak_allocated.get(), 3500);
}

#[test]
fn a_smaller_gpu_names_the_line_also_within_backward() {
    // A thread without a line of the program, as those of backward.
    let source = "import threading, torch\ntorch.take(1000)\ndef backward():\n    \
                  thread = threading.Thread(target=torch.take, args=(6000,))\n    thread.start()\n    thread.join()\n\
                  torch.take(3000)\ntorch.autograd._engine_run_backward(backward)\n";
    let asked = RunOptions { totals: vec![3999, 5000, 10_000], ..RunOptions::default() };
    let Some(done) = done(source, &asked) else { return };
    let at: Vec<(u64, Option<u32>)> = done
        .report
        .crossings
        .iter()
        .map(|crossing| (crossing.total.get(), crossing.at.as_ref().map(|at| at.line)))
        .collect();
    assert_eq!(at, [(3999, Some(7)), (5000, Some(8))]);
}

/// What the program would do about it is not asked: the search for the largest batch counts it as one that
/// does not fit.
#[test]
fn a_run_may_end_at_the_first_request_that_runs_out() {
    let source = "import threading, torch\ntorch.take(1000)\ntry:\n    torch.take(600 << 10)\n\
                  except torch.OutOfMemoryError:\n    print('caught', flush=True)\ntorch.take(7000)\n";
    let asked = RunOptions { fraction: Some(0.5), ..RunOptions::default() };
    let Some(goes_on) = done(source, &asked) else { return };
    assert_eq!((goes_on.report.status, goes_on.output.as_str()), (0, "caught\n"));
    assert_eq!((goes_on.report.failed, goes_on.report.files.len()), (None, 0));
    let asked = RunOptions { ends_at_oom: true, ..asked };
    let Some(ended) = done(source, &asked) else { return };
    assert_eq!((ended.report.status, ended.output.as_str()), (1, ""));
    assert_eq!(ended.report.error.as_deref(), Some("OutOfMemoryError"));
    assert_eq!(ended.report.devices[0].peak_allocated.get(), 1000);
    let failed = ended.report.failed.expect("a request failed");
    assert_eq!(
        (failed.bytes.get(), failed.at.map(|at| at.line), failed.is_of_other_thread),
        (600 << 10, Some(4), false)
    );
    assert!(ended.report.files.iter().any(|file| file.ends_with("program.py")), "{:?}", ended.report.files);
    // A thread without a line of the program, as those of backward: the line that waits for it.
    let below = "import threading, torch\nthread = threading.Thread(target=torch.take, args=(600 << 10,))\nthread.start()\nthread.join()\n";
    let Some(below) = done(below, &asked) else { return };
    let failed = below.report.failed.expect("a request failed");
    assert!(failed.is_of_other_thread && failed.at.is_some_and(|at| (3..=4).contains(&at.line)));
    // Memory for all of it.
    let asked = RunOptions { ends_at_oom: true, ..RunOptions::default() };
    let Some(fits) = done(source, &asked) else { return };
    assert_eq!((fits.report.status, fits.report.failed), (0, None));
}

#[test]
fn a_run_that_is_stopped_is_ended() {
    if !has_python() {
        return;
    }
    let folder = folder();
    let prepared = runner_alone(folder.path());
    let file = folder.path().join("program.py");
    fs::write(&file, "import time\ntime.sleep(600)\n").expect("the program is written");
    let asked = program(file, folder.path().join("output"));
    let report = run_until(&asked, &torch(stub().join("torch")), &prepared, || true).expect("it starts");
    assert!(report.is_cut && report.error.as_deref() == Some("SIGKILL"), "{report:?}");
}

#[test]
fn a_program_that_ctrl_c_did_not_reach_gets_it_from_the_command() {
    if !has_python() {
        return;
    }
    let folder = folder();
    let prepared = runner_alone(folder.path());
    let file = folder.path().join("program.py");
    fs::write(&file, "import time\ntime.sleep(600)\n").expect("the program is written");
    let asked = program(file, folder.path().join("output"));
    let torch = torch(stub().join("torch"));
    let report = run_interruptible(&asked, &torch, &prepared, || true).expect("it starts");
    assert_eq!((report.status, report.error.as_deref()), (130, Some("KeyboardInterrupt")), "{report:?}");
    assert!(!report.is_cut, "its memory is counted");
}

#[test]
fn copies_share_the_first_imports_of_a_program_and_not_what_follows() {
    if !has_python() {
        return;
    }
    let folder = folder();
    let prepared = runner_alone(folder.path());
    let modules = folder.path().join("modules");
    fs::create_dir(&modules).expect("the folder is made");
    let write = |path: PathBuf, source: &str| fs::write(path, source).expect("the file is written");
    let pid = "import os\npid = os.getpid()\n";
    write(modules.join("first.py"), pid);
    write(modules.join("later.py"), pid);
    // A module of the program hides an installed one.
    write(modules.join("own.py"), "raise RuntimeError('not this one')\n");
    write(folder.path().join("own.py"), pid);
    let file = folder.path().join("program.py");
    write(
        file.clone(),
        "\"\"\"Words.\"\"\"\nimport first, torch\nfrom own import pid as own_pid\nimport later\nimport os\ntorch.take(5000)\n\
         print(first.pid, os.getpid(), own_pid, later.pid)\n",
    );
    let path = env::join_paths([stub(), modules]).expect("paths without colons");
    let asked = Program {
        environment: vec![("PYTHONPATH".to_owned(), path.to_string_lossy().into_owned())],
        ..program(file, folder.path().join("output"))
    };
    let torch = torch(stub().join("torch"));
    let process = PreloadedProcess::load_imports(&asked, &torch, &prepared).expect("it starts");
    let run = || {
        let asked = Program { preloaded: Some(process.clone()), ..asked.clone() };
        let report = run(&asked, &torch, &prepared).expect("it runs");
        assert_eq!((report.status, report.devices[0].peak_allocated.get()), (0, 5000), "{report:?}");
        let printed = fs::read_to_string(folder.path().join("output")).expect("there is output");
        let pids: Vec<u32> = printed.split_whitespace().map(|pid| pid.parse().expect("a number")).collect();
        let [first, program, own, later] = pids[..] else { panic!("four numbers: {printed}") };
        assert_eq!((own, later), (program, program), "{printed}");
        assert_ne!(first, program, "{printed}");
        first
    };
    assert_eq!(run(), run());
}

/// A program over the stub without any options.
fn program(file: PathBuf, output: PathBuf) -> Program {
    Program { output: Some(output), ..Program::new(file, "python3".to_owned(), GpuProfile::H200) }
}

#[test]
fn a_snapshot_is_written_even_after_an_exception() {
    let asked = RunOptions { is_with_snapshot: true, ..RunOptions::default() };
    let Some(done) = done("import torch\ntorch.take(1)\n1 / 0\n", &asked) else { return };
    assert_eq!(done.snapshot.as_deref(), Some("snapshot"));
}

#[test]
fn a_release_without_recordings_is_named() {
    let source = "import torch\ntorch.take(1)\n";
    let Some(known) = done(source, &RunOptions::default()) else { return };
    assert!(known.report.remarks.is_empty());
    let asked = RunOptions { is_new_release: true, ..RunOptions::default() };
    let Some(new) = done(source, &asked) else { return };
    assert!(new.report.remarks[0].contains("those of 2.99 may have other sizes"), "{:?}", new.report.remarks);
    assert!(new.report.remarks[1].starts_with("Python 3.12.3 keeps"), "{:?}", new.report.remarks);
}

#[test]
fn a_program_without_pytorch_has_a_report() {
    let Some(done) = done("print('no torch')", &RunOptions::default()) else { return };
    assert!(done.report.devices.is_empty() && done.report.is_exact());
    assert_eq!(json(&done.report)["lines"][0]["text"], "no torch");
}

/// The libraries here have no sections, so that nothing is seen that they want: what is wanted is tested over
/// real ones by hand.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_folder_is_made_once() {
    let folder = folder();
    let package = folder.path().join("torch");
    fs::create_dir_all(package.join("lib")).expect("the package is made");
    let write = |path: &Path, library: &Library<'_>| {
        fs::write(path, write_library(library).expect("it is written")).expect("the file is written");
    };
    let own =
        Library { name: "libtorch_cuda.so", needed: &["libcudart.so.13", "libc.so.6"], ..Library::default() };
    write(&package.join("lib/libtorch_cuda.so"), &own);
    let standin = folder.path().join("libblockyard_standin.so");
    write(&standin, &Library { name: "libblockyard_standin.so", ..Library::default() });
    let cache = folder.path().join("cache");
    let first = prepare_in(&torch(package.clone()), &standin, &cache).expect("it is made");
    for file in
        ["runner/__main__.py", "libblockyard_standin.so", "libblockyard_standin_rest.so", "generated.txt"]
    {
        assert!(first.folder.join(file).is_file(), "{file}");
    }
    let made = fs::metadata(&first.folder).and_then(|folder| folder.modified()).expect("it is there");
    let again = prepare_in(&torch(package.clone()), &standin, &cache).expect("it is there");
    assert_eq!(again, first);
    assert_eq!(fs::metadata(&again.folder).and_then(|folder| folder.modified()).ok(), Some(made));
    write(&package.join("lib/libtorch_cuda.so"), &Library { needed: &["libcudart.so.12"], ..own });
    let other = prepare_in(&torch(package), &standin, &cache).expect("it is made");
    assert_ne!(other.folder, first.folder, "each PyTorch has another folder");
}
