//! `blockyard watch`: programs that end, that never use PyTorch, and, where `TORCH` names a Python with PyTorch,
//! programs over the stand-in, whose events are compared with PyTorch's snapshot after each step.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{CommandOutput, command};

/// A file that cargo builds beside the tests.
fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the test has a file");
    own.parent().unwrap_or(Path::new(".")).join(name)
}

fn watch_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = command();
    command.current_dir(folder).env("BLOCKYARD_WATCH", built("libblockyard_watch.so"));
    command.env("BLOCKYARD_STANDIN", built("libblockyard_standin.so"));
    command.arg("watch").args(arguments).stdin(Stdio::null());
    command
}

fn watch(folder: &Path, arguments: &[&str]) -> CommandOutput {
    let output = watch_command(folder, arguments).output().expect("it starts");
    CommandOutput {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn the_exit_status_and_the_output_are_the_programs() {
    let folder = tempfile::tempdir().unwrap();
    let ended = watch(folder.path(), &["--", "sh", "-c", "echo hello; exit 7"]);
    assert_eq!((ended.status, ended.out.as_str()), (7, "hello\n"));
    assert!(ended.err.contains("nothing was watched"), "{}", ended.err);
    assert_eq!(watch(folder.path(), &["--", "no-such-program"]).status, 2);
}

#[test]
fn the_hook_lets_another_sitecustomize_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sitecustomize.py"), "print('the own one')").unwrap();
    let script =
        "PYTHONPATH=$PYTHONPATH:. python3 -c 'import sys; print(\"blockyard_watch\" in sys.modules)'";
    if !has_python() {
        return;
    }
    let ended = watch(folder.path(), &["--", "sh", "-c", script]);
    assert_eq!((ended.status, ended.out.as_str()), (0, "the own one\nTrue\n"), "{}", ended.err);
}

fn has_python() -> bool {
    let there = std::process::Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    let is_there = there.is_ok_and(|status| status.success());
    if !is_there {
        assert!(std::env::var_os("REQUIRE_PYTHON").is_none(), "REQUIRE_PYTHON, but there is no python3");
        eprintln!("skipped: there is no python3");
    }
    is_there
}

/// The first Python of `TORCH`.
fn torch() -> Option<String> {
    let python = std::env::var("TORCH").ok().and_then(|list| list.split(':').next().map(str::to_owned));
    if python.is_none() {
        eprintln!("skipped: TORCH names no Python with PyTorch");
    }
    python
}

/// Watches a dry run of a program: the folder with the recording, and what was printed. `None` without PyTorch.
fn watched(source: &str, options: &[&str]) -> Option<(TempDir, CommandOutput)> {
    watched_with(source, &[], options)
}

/// The same with options of `watch`.
fn watched_with(source: &str, of_watch: &[&str], options: &[&str]) -> Option<(TempDir, CommandOutput)> {
    let python = torch()?;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.py"), source).unwrap();
    let mut arguments = [&["--check"], of_watch].concat();
    arguments.extend(["--", env!("CARGO_BIN_EXE_blockyard"), "dry-run", "--quiet"]);
    arguments.extend(["--python", &python]);
    arguments.extend(options);
    arguments.push("train.py");
    let ended = watch(folder.path(), &arguments);
    assert!(ended.err.contains("all equal"), "{}", ended.err);
    assert!(!ended.err.contains("did not fit"), "{}", ended.err);
    assert!(!ended.err.contains("lines are not known"), "{}", ended.err);
    Some((folder, ended))
}

/// Each step keeps 3 MB.
const LEAK: &str = r#"
import torch, torch.nn as nn
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
opt = torch.optim.AdamW(model.parameters())
kept = []
for step in range(200):
    model(torch.randn(64, 512, device="cuda")).square().mean().backward()
    kept.append(torch.empty(3_000_000, dtype=torch.uint8, device="cuda"))
    opt.step()
    opt.zero_grad(set_to_none=True)
"#;

#[test]
fn the_forecast_names_the_step_that_fails() {
    for conf in ["", "expandable_segments:True"] {
        let options = ["--total-memory", "1200000000", "--conf", conf];
        let Some((folder, ended)) = watched(LEAK, &options) else { return };
        assert_ne!(ended.status, 0);
        let step_after = |text: &str| -> Vec<u64> {
            let number = |rest: &str| rest.split(|one: char| !one.is_ascii_digit()).next()?.parse().ok();
            ended.err.split(text).skip(1).filter_map(number).collect()
        };
        let (failed, forecasts) = (step_after("out of memory in step "), step_after("at this growth step "));
        assert_eq!(failed.len(), 1, "{}", ended.err);
        assert!(!forecasts.is_empty(), "{}", ended.err);
        let is_right = |step: &u64| step.abs_diff(failed[0]) <= 1;
        assert!(forecasts.iter().all(is_right), "{conf}: {forecasts:?} and {failed:?}");
        assert!(ended.err.contains("MiB of <module> train.py:8"), "{}", ended.err);
        let report = fs::read_to_string(folder.path().join("watch.report.html")).unwrap();
        assert!(report.contains("train.py"));
        assert!(ended.err.contains("; the report of the failure is watch.report.html"), "{}", ended.err);
        // The recording is for all questions.
        let mut verdict = command();
        let verdict = verdict.arg("watch.pickle").current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&verdict.stdout).into_owned();
        assert!(text.contains("out of memory") && text.contains("train.py:8"), "{text}");
    }
}

#[test]
fn where_small_requests_have_no_line_the_forecast_names_that_of_a_large_one() {
    let from = "import blockyard_watch; blockyard_watch._watch.library.blockyard_watch_stacks_from(1 << 20); kept = []";
    let large = LEAK.replace("kept = []", from);
    let Some((_folder, ended)) = watched(&large, &["--total-memory", "1200000000"]) else { return };
    assert!(ended.err.contains("MiB for <module> train.py:9"), "{}", ended.err);
    let growth = |program: &str| {
        let (_folder, ended) = watched(program, &[])?;
        let line = ended.err.lines().find(|line| line.contains("step 100: "))?;
        Some((line.contains("; +488.5 KiB to the step before"), line.ends_with("of <module> train.py:8")))
    };
    assert_eq!(growth(&large.replace("3_000_000", "500_000")), Some((true, false)));
    assert_eq!(growth(&LEAK.replace("3_000_000", "500_000")), Some((true, true)));
}

/// A program that saves when it gets a signal, and ends.
const SAVES: &str = r"
import signal, sys
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
";

#[test]
fn the_program_saves_some_steps_before_it_fails() {
    let steps = LEAK.replace("step in range(200):", "step in range(1, 200):");
    let ends = "    if asked:\n        sys.exit(print('saved in step', step) or 7)\n";
    let options = ["--total-memory", "1200000000"];
    let stop = ["--stop-before-failure", "9"];
    let program = format!("{SAVES}{steps}{ends}");
    let Some((_folder, ended)) = watched_with(&program, &stop, &options) else { return };
    assert_eq!(ended.status, 7, "{}", ended.err);
    let number = |text: &str, from: &str| -> u64 {
        let rest = text.split(from).nth(1).unwrap_or_else(|| panic!("no {from}: {text}"));
        rest.split(|one: char| !one.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    assert!(ended.err.contains("SIGUSR1 was sent, so that a checkpoint is saved"), "{}", ended.err);
    assert_eq!(ended.err.matches("SIGUSR1").count(), 1, "{}", ended.err);
    let (saved, fails) = (number(&ended.out, "saved in step "), number(&ended.err, "at this growth step "));
    assert!((fails - 9..fails).contains(&saved), "saved in {saved}, fails in {fails}");
    // A program without a handler is left alone, and fails where it does without the option.
    let Some((_folder, ended)) = watched_with(LEAK, &stop, &options) else { return };
    assert!(ended.err.contains("no handler of SIGUSR1: nothing was sent"), "{}", ended.err);
    assert!(ended.err.contains("out of memory in step"), "{}", ended.err);
}

/// Two streams, a memory pool and releases of the cache.
const STREAMS: &str = r#"
import torch, torch.nn as nn
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
opt = torch.optim.AdamW(model.parameters())
side, pool, kept = torch.cuda.Stream(), torch.cuda.MemPool(), []
for step in range(10):
    with torch.cuda.stream(side):
        x = torch.randn(64 + 8 * (step % 3), 512, device="cuda")
        y = torch.empty(7_000_000 + 100_000 * step, dtype=torch.uint8, device="cuda")
    y.record_stream(torch.cuda.current_stream())
    x.record_stream(torch.cuda.current_stream())
    with torch.cuda.use_mem_pool(pool):
        kept.append(torch.empty(3_000_000 * (step % 4 + 1), device="cuda"))
    model(x).square().mean().backward()
    del x, y
    if step % 4 == 3:
        kept.clear()
        torch.cuda.empty_cache()
    opt.step()
    opt.zero_grad(set_to_none=True)
"#;

#[test]
fn the_events_lead_to_pytorchs_snapshot_after_each_step() {
    for conf in ["", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4"] {
        let Some((_folder, ended)) = watched(STREAMS, &["--conf", conf]) else { return };
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert!(ended.err.contains("10 snapshots"), "{conf}: {}", ended.err);
    }
}

/// Steps of a few events, and two of very many. It goes on at its third step once a file is there.
const CROWDED: &str = r#"
import os, pathlib, time
import torch, torch.nn as nn
model = nn.Linear(512, 512).cuda()
opt = torch.optim.SGD(model.parameters())
for step in range(1, 13):
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    for _ in range(20_000 if step in (2, 5) else 0):
        torch.empty(1000, device="cuda")
    opt.step()
    opt.zero_grad(set_to_none=True)
    time.sleep(0.05)
    if step == 3 and WAITS:
        pathlib.Path("there.new").write_text(str(os.getpid()))
        os.rename("there.new", "there")
        while not os.path.exists("go on"):
            time.sleep(0.01)
pathlib.Path("done").touch()
"#;

#[test]
fn a_full_queue_is_a_gap_and_the_next_steps_are_known_again() {
    let Some(python) = torch() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.py"), format!("WAITS = False\n{CROWDED}")).unwrap();
    let dry_run = [env!("CARGO_BIN_EXE_blockyard"), "dry-run", "--quiet", "--python", &python, "train.py"];
    let arguments = [&["--check", "--"], &dry_run[..]].concat();
    let output =
        watch_command(folder.path(), &arguments).env("BLOCKYARD_WATCH_EVENTS", "512").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("events of cuda:0 were lost; the next step begins anew"), "{text}");
    assert!(text.contains("not known, since events were lost"), "{text}");
    assert!(text.contains("snapshots of PyTorch's compared with the events: none differs"), "{text}");
    assert!(text.contains("step 12: peak"), "{text}");
}

/// Waits until something is so; a test fails that looks for it in vain.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    const MAX_LOOKS: u32 = 30_000;
    for _ in 0..MAX_LOOKS {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}");
}

#[test]
fn a_killed_or_stopped_command_changes_nothing_in_the_program() {
    let Some(python) = torch() else { return };
    for signal in ["KILL", "STOP"] {
        let folder = tempfile::tempdir().unwrap();
        let [there, go_on, done] = ["there", "go on", "done"].map(|name| folder.path().join(name));
        fs::write(folder.path().join("train.py"), format!("WAITS = True\n{CROWDED}")).unwrap();
        let blockyard = env!("CARGO_BIN_EXE_blockyard");
        let arguments = ["--", blockyard, "dry-run", "--quiet", "--python", &python, "train.py"];
        let mut command =
            watch_command(folder.path(), &arguments).stderr(Stdio::null()).spawn().expect("it starts");
        let send = |signal: &str| {
            let pid = command.id().to_string();
            assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        };
        wait_until("the third step", || there.exists());
        send(signal);
        fs::write(&go_on, "").unwrap();
        let program = PathBuf::from("/proc").join(fs::read_to_string(&there).unwrap());
        wait_until("the end of the program", || done.exists() && !program.exists());
        if signal == "STOP" {
            send("CONT");
            assert!(command.wait().unwrap().success());
            assert!(folder.path().join("watch.pickle").exists());
        } else {
            let _ = command.wait();
        }
    }
}

/// One of two ranks that wait for each other. Rank 1 keeps memory, and in the end asks for too much.
const RANK: &str = r#"
import os, time
import torch, torch.nn as nn
rank = int(os.environ["RANK"])
torch.zeros(1, device="cuda")
def together(name):
    open(f"{name}{rank}", "w").close()
    while not all(os.path.exists(f"{name}{one}") for one in (0, 1)):
        time.sleep(0.01)
together("began")
time.sleep(1)
model = nn.Linear(512, 512).cuda()
opt = torch.optim.SGD(model.parameters())
kept = []
for step in range(4):
    model(torch.randn(64, 512, device="cuda")).square().mean().backward()
    if rank == 1:
        kept.append(torch.empty(3_000_000, dtype=torch.uint8, device="cuda"))
    opt.step()
    together(f"step {step} ")
try:
    if rank == 1:
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    while not all(os.path.exists(f"watch.rank{one}.pickle") for one in (0, 1)):
        time.sleep(0.01)
    print("both are written")
together("ended")
"#;

#[test]
fn ranks_share_the_line_of_a_step_and_a_failure_of_one_writes_all() {
    let Some(python) = torch() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.py"), RANK).unwrap();
    let run = format!("{} dry-run --quiet --python {python} train.py", env!("CARGO_BIN_EXE_blockyard"));
    let ended = watch(folder.path(), &["--", "sh", "-c", &format!("RANK=0 {run} & RANK=1 {run}; wait")]);
    assert!(ended.out.contains("both are written"), "{} {}", ended.out, ended.err);
    let line = "step 3, 2 ranks: peak ";
    assert_eq!(ended.err.matches(line).count(), 1, "{}", ended.err);
    assert!(ended.err.contains("(rank1) reserved; grew most: rank1 by 2.86 MiB"), "{}", ended.err);
    assert!(ended.err.contains("rank1 out of memory in step 5"), "{}", ended.err);
}

/// One of two ranks whose debug page is PyTorch's. Rank 0 prints it once both ranks have a forecast.
const DEBUG: &str = r#"
import os, socket, sys, time, types, urllib.request
import torch, torch.nn as nn
from torch.distributed import TCPStore
try:
    import tabulate
except ImportError:
    # Other pages of PyTorch's want it.
    sys.modules["tabulate"] = types.SimpleNamespace(tabulate=None)
    import torch.distributed.debug._debug_handlers
    del sys.modules["tabulate"]
rank = int(os.environ["RANK"])
os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
if rank == 0:
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with open("port.new", "w") as file:
        file.write(str(store.port))
    os.rename("port.new", "port")
while not os.path.exists("port"):
    time.sleep(0.01)
os.environ["MASTER_PORT"] = open("port").read()
with socket.socket() as free:
    free.bind(("", 0))
    port = free.getsockname()[1]
from torch.distributed import debug
debug.start_debug_server(port)
model = nn.Linear(512, 512).cuda()
opt = torch.optim.SGD(model.parameters())
kept = []
for step in range(4):
    model(torch.randn(64, 512, device="cuda")).square().mean().backward()
    kept.append(torch.empty(1_000_000 * (1 + rank), dtype=torch.uint8, device="cuda"))
    opt.step()
text = ""
while rank == 0 and text.count("forecast: ") < 2:
    time.sleep(0.1)
    try:
        text = urllib.request.urlopen(f"http://localhost:{port}/memory").read().decode()
    except OSError as fault:
        text = str(fault)
if rank == 0:
    print(text)
    open("printed", "w").close()
    debug.stop_debug_server()
while not os.path.exists("printed"):
    time.sleep(0.01)
"#;

#[test]
fn pytorchs_debug_page_lists_all_ranks() {
    let Some(python) = torch() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.py"), DEBUG).unwrap();
    let run = format!("{} dry-run --quiet --python {python} train.py", env!("CARGO_BIN_EXE_blockyard"));
    let ended = watch(folder.path(), &["--", "sh", "-c", &format!("RANK=0 {run} & RANK=1 {run}; wait")]);
    for part in ["Memory</a>", "Rank 0: ", "Rank 1: "] {
        assert!(ended.out.contains(part), "{part}: {} {}", ended.out, ended.err);
    }
    let pages: Vec<&str> = ended.out.split("Rank ").skip(1).collect();
    for (page, growth) in pages.iter().zip(["977 KiB", "1.91 MiB"]) {
        assert!(page.contains("<pre>step 4: peak ") && page.contains("\nforecast: "), "{page}");
        assert!(
            page.contains(&format!("; +{growth} to the step before, {growth} of &lt;module&gt; train.py:")),
            "{page}"
        );
    }
}

/// A program that begins to leak once a file is there, and writes its process id before.
const UNPREPARED: &str = r#"
import os, pathlib, sys, time
import torch, torch.nn as nn
model = nn.Linear(512, 512).cuda()
opt = torch.optim.SGD(model.parameters())
kept = [torch.empty(50_000_000, dtype=torch.uint8, device="cuda")]
pathlib.Path("there.new").write_text(str(os.getpid()))
os.rename("there.new", "there")
while "blockyard_watch" not in sys.modules:
    time.sleep(0.01)
for step in range(20):
    model(torch.randn(64, 512, device="cuda")).square().mean().backward()
    kept.append(torch.empty(3_000_000, dtype=torch.uint8, device="cuda"))
    opt.step()
"#;

#[test]
fn a_program_that_runs_already_is_watched_by_a_debugger() {
    let Some(python) = torch() else { return };
    if Command::new("gdb").arg("--version").output().is_err() {
        eprintln!("skipped: there is no gdb");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there");
    fs::write(folder.path().join("train.py"), UNPREPARED).unwrap();
    let mut program = command();
    program.current_dir(folder.path()).env("BLOCKYARD_STANDIN", built("libblockyard_standin.so"));
    program.args(["dry-run", "--quiet", "--python", &python, "train.py"]).stdin(Stdio::null());
    let mut program = program.spawn().unwrap();
    wait_until("the beginning", || there.exists());
    let ended = watch(folder.path(), &["--check", "--pid", &fs::read_to_string(&there).unwrap()]);
    let _ = program.kill().and_then(|()| program.wait());
    if ended.err.contains("not permitted") {
        eprintln!("skipped: a process here may not be debugged");
        return;
    }
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(
        ended.err.contains("20 snapshots of PyTorch's compared with the events: none differs"),
        "{}",
        ended.err
    );
    let line = "+2.86 MiB to the step before, 2.86 MiB of <module> train.py:13";
    assert!(ended.err.contains(line), "{}", ended.err);
}

#[test]
fn a_process_that_cannot_be_watched_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::process::id().to_string();
    let ended = watch(folder.path(), &["--pid", &own]);
    assert_eq!(ended.status, 2);
    assert!(ended.err.contains("is not a Python, but"), "{}", ended.err);
    let none = watch(folder.path(), &["--pid", "999999999"]);
    assert!(none.err.contains("the process 999999999"), "{}", none.err);
    assert_eq!(watch(folder.path(), &[]).status, 2);
}
